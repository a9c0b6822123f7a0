"""The text of a table's expression, as it is stored and shown: PostgreSQL's, with functions in lower case."""

from __future__ import annotations

from sqlglot import exp


def shown_text(tree: exp.Expr) -> str:
    """Return the text of a default, a condition, a column's definition or an index's expression."""
    return tree.transform(_named).sql(dialect="postgres", normalize_functions="lower")


def _named(node: exp.Expr) -> exp.Expr:
    """Give a function its name of PostgreSQL that sqlglot prints in upper case."""
    return exp.Anonymous(this="gen_random_uuid") if isinstance(node, exp.Uuid) else node
