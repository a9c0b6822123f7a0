"""The fill of a view: its strategy, its fragments, and the order of its upstreams."""
