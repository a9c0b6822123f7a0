"""The items of FROM: tables, subqueries and calls, in the order in which they are written."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.parse.identifiers import folded


def from_items(select: exp.Expr) -> list[exp.Expr]:
    """Return the first item of a query's FROM and the right sides of its joins; none for a query without FROM."""
    first = select.args.get("from_")
    joined = [join.this for join in select.args.get("joins") or ()]
    return [first.this, *joined] if first is not None else joined


def columns_written(node: exp.Expr) -> list[str]:
    """Return the names of the columns of VALUES and of rows of arrays; none for what has others, or unknown ones."""
    alias = node.args.get("alias")
    given = [folded(name) for name in alias.columns] if isinstance(alias, exp.TableAlias) else []
    node = node.this if isinstance(node, exp.Lateral) else node
    if isinstance(node, exp.Values):
        first = node.expressions[0]
        width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        return [*given, *(f"column{number + 1}" for number in range(len(given), width))]
    if not isinstance(node, exp.Unnest) or alias is None or len(given) != len(node.expressions):
        return []
    offset = node.args.get("offset")
    number = folded(offset) if isinstance(offset, exp.Identifier) else "ordinality"
    return [*given, number] if offset else given
