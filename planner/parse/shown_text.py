"""The text of a table's expression, as it is stored and shown: PostgreSQL's, with functions in lower case."""

from __future__ import annotations

from sqlglot import exp


def shown_text(tree: exp.Expr) -> str:
    """Return the text of a default, a condition, a column's definition or an index's expression."""
    return tree.sql(dialect="postgres", normalize_functions="lower")
