"""Builds relational nodes from bound syntax."""
