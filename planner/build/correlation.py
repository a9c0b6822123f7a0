"""What a subquery reads of the queries around it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.planner.plan.nodes import conjuncts


def outer_columns(query: exp.Expr) -> dict[str, exp.Column]:
    """Return the columns of surrounding queries that a query reads, by their flat names."""
    own = {source.alias_or_name for source in query.find_all(exp.Table, exp.Subquery, exp.Unnest, exp.Values, exp.CTE)}
    read = (column for column in query.find_all(exp.Column) if column.table and column.table not in own)
    return {_flat(column): column for column in read}


@dataclass(frozen=True)
class Equalities:
    """A SELECT without the equalities of its WHERE that read outer columns, and their sides.

    `null_safe` tells for each whether NULL equals NULL.
    """

    select: exp.Select
    inner: list[exp.Expr]
    outer: list[exp.Expr]
    null_safe: list[bool]


def split_equalities(query: exp.Expr, names: Iterable[str]) -> Equalities | None:
    """Return the equalities with outer columns; None for a query that reads outer columns in another place.

    `names` are the flat names of the outer columns.
    """
    outer_names = frozenset(names)

    def kinds(part: exp.Expr) -> set[bool]:
        return {_flat(column) in outer_names for column in part.find_all(exp.Column)}

    where = query.args.get("where") if isinstance(query, exp.Select) else None
    if not isinstance(query, exp.Select) or where is None:
        return None
    own: list[exp.Expr] = []
    inner: list[exp.Expr] = []
    outer: list[exp.Expr] = []
    null_safe: list[bool] = []
    for part in conjuncts(where.this):
        if True not in kinds(part):
            own.append(part)
            continue
        sides = [part.this, part.expression] if isinstance(part, exp.EQ | exp.NullSafeEQ) else []
        sides.sort(key=lambda side: True in kinds(side))
        if not sides or not kinds(sides[0]) <= {False} or kinds(sides[1]) != {True} or part.find(exp.Query):
            return None
        inner.append(sides[0].unnest())
        outer.append(sides[1].unnest())
        null_safe.append(isinstance(part, exp.NullSafeEQ))
    select = query.copy()
    select.set("where", exp.Where(this=exp.and_(*own)) if own else None)
    return None if True in kinds(select) else Equalities(select, inner, outer, null_safe)


def _flat(column: exp.Column) -> str:
    return f"{column.table}.{column.name}"
