"""Rows in memory: what no checkpoint has stored yet, and copies of what is read often."""
