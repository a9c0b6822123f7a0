"""FETCH FIRST n ROWS WITH TIES, which DuckDB reads and ignores, as `rank() <= n` (PostgreSQL's page on SELECT)."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.trees import position_of, unsupported


def has_ties(query: exp.Expr, takes_offset: bool = False) -> bool:
    """Return whether a query's limit has WITH TIES.

    Raises Error 42601 without ORDER BY, and 0A000 with OFFSET unless `takes_offset`.
    """
    limit = query.args.get("limit")
    options = limit.args.get("limit_options") if isinstance(limit, exp.Fetch) else None
    if options is None or not options.args.get("with_ties"):
        return False
    if query.args.get("order") is None:
        message = "WITH TIES cannot be specified without ORDER BY clause"
        raise Error(message, errors.SYNTAX_ERROR, position=position_of(query))
    if query.args.get("offset") is not None and not takes_offset:
        raise unsupported("WITH TIES after OFFSET", query)
    return True


def expand_ties(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place. Raises Error 0A000 where the query is not a plain SELECT."""
    for query in list(tree.find_all(exp.Query)):
        if not has_ties(query, takes_offset=True):
            continue
        if not isinstance(query, exp.Select) or query.args.get("distinct"):
            raise unsupported("WITH TIES over DISTINCT or a set operation", query)
        count = query.args["limit"].args.get("count") or exp.Literal.number(1)
        if (offset := query.args.get("offset")) is not None:  # which skips the first of the rows that are left
            skipped = exp.Coalesce(
                this=exp.cast(offset.expression.copy(), "bigint"), expressions=[exp.Literal.number(0)]
            )
            count = exp.Add(this=exp.paren(count), expression=skipped)
        order = exp.Order(expressions=[_resolved(ordered, query) for ordered in query.args["order"].expressions])
        rank = exp.Window(this=exp.Rank(), order=order)
        query.set("qualify", exp.Qualify(this=exp.LTE(this=rank, expression=count)))
        query.set("limit", None)
    return tree


def _resolved(ordered: exp.Expr, select: exp.Select) -> exp.Expr:
    """Return an ORDER BY item over inputs: a window does not know outputs by name or place."""
    by = ordered.this
    if isinstance(by, exp.Literal) and by.is_int:
        if any(item.is_star for item in select.selects):
            raise unsupported("WITH TIES by a place among *", by)
        if 1 <= int(by.name) <= len(select.selects):
            by = select.selects[int(by.name) - 1].unalias()
    elif isinstance(by, exp.Column) and not by.table:
        by = next(
            (item.unalias() for item in select.selects if isinstance(item, exp.Alias) and item.alias == by.name), by
        )
    copied = ordered.copy()
    copied.set("this", by.copy())
    return copied
