"""Scalar expressions and aggregates as data: types, and how each engine spells them."""
