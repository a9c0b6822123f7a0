"""Sinks: the changes of an epoch are delivered elsewhere, once."""
