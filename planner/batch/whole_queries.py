"""Statements that change rows as queries of all that they compute."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkwave.planner.parse.trees import other_tables


def as_query(tree: exp.Expr) -> exp.Query:
    """Return a query with the same expressions over the same tables."""
    if isinstance(tree, exp.Query):
        return tree
    if isinstance(tree, exp.Values):
        return exp.select("*").from_(exp.alias_(tree.copy(), "v", table=True))
    if not isinstance(tree, exp.DML):
        return exp.select(tree.copy())  # of RETURNING
    listed = [part.copy() for part in _computed(tree)]
    items = [exp.alias_(value, f"_{number}") for number, value in enumerate(listed)]
    query = exp.select(*(items or [exp.Literal.number(1)])).from_(tree.this.copy())
    for other in other_tables(tree):
        query = query.join(other.copy(), join_type="cross")
    query.set("with_", tree.args.get("with_"))
    where = tree.args["on"] if isinstance(tree, exp.Merge) else tree.args.get("where")
    return query.where(where.unnest().copy() if isinstance(tree, exp.Merge) else where.this.copy()) if where else query


def _computed(tree: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the values that an UPDATE or MERGE assigns, and the conditions of a MERGE."""
    if not isinstance(tree, exp.Merge):
        yield from (part.expression for part in tree.expressions)
        return
    for when in tree.args["whens"].expressions:
        then = when.args["then"]
        if when.args.get("condition") is not None:
            yield when.args["condition"]
        if isinstance(then, exp.Update):
            yield from (part.expression for part in then.expressions)
        elif isinstance(then, exp.Insert) and isinstance(then.expression, exp.Tuple):
            yield from (value for value in then.expression.expressions if not isinstance(value, exp.Var))
