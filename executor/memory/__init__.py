"""Rows in memory: changes that no checkpoint has stored yet, and copies of rows that are read often."""
