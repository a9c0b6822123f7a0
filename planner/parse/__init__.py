"""Parses text into statements."""
