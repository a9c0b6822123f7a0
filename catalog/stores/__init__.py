"""Reads and writes Sparkwave's own relations in the lake: one module for each relation or group of relations."""
