"""Bound syntax to relational nodes."""
