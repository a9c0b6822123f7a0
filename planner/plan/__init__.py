"""The plan of a view: its nodes, the rules that rewrite them, and its stored states."""
