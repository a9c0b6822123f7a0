"""Sparkwave's own relations in the lake: one reader and writer a relation."""
