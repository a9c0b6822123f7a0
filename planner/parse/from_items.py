"""The items of FROM: tables, subqueries and calls, in the order in which they are written."""

from __future__ import annotations

from sqlglot import exp


def from_items(select: exp.Expr) -> list[exp.Expr]:
    """Return the first item of a query's FROM and the right sides of its joins; none for a query without FROM."""
    first = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or ()]
    return [first.this, *joined] if first is not None else joined
