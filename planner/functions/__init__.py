"""Scalar functions and aggregates as data: their types, and their spelling for each engine."""
