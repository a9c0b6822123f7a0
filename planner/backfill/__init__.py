"""How a view is filled: its strategy, its fragments, and the order of its upstreams."""
