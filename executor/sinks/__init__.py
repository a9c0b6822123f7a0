"""Sinks: the changes of an epoch, handed on once."""
