"""Marks of expressions that stand for a constant as it was written, so that they do not name an output."""

from __future__ import annotations

from sqlglot import exp

_CONSTANT = "constant"


def as_constant(node: exp.Expr) -> exp.Expr:
    """Return the node, marked as one that stands for a constant."""
    node.meta[_CONSTANT] = True
    return node


def is_constant(node: exp.Expr) -> bool:
    """Return whether a node stands for a constant."""
    return _CONSTANT in node.meta
