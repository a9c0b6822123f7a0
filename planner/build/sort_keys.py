"""What ORDER BY and DISTINCT ON name: outputs of their SELECT, by place or name, or expressions."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.plan.nodes import Order


def order_of(name: str, ordered: exp.Expr) -> Order:
    """Return ORDER BY's direction for a field; by default NULLs are large, as in PostgreSQL."""
    descending = bool(ordered.args.get("desc"))
    nulls_first = ordered.args.get("nulls_first")
    return Order(name, descending, descending if nulls_first is None else bool(nulls_first))


def sort_source(ordered: exp.Expr, select: exp.Select) -> int | exp.Expr:
    """Return the sort key of an ORDER BY item: the place of an output, or an expression."""
    by = ordered.this
    if isinstance(by, exp.Literal) and by.is_int:
        return place_of(by, len(select.selects))
    if isinstance(by, exp.Column) and not by.table:
        for place, item in enumerate(select.selects):
            if item.alias_or_name == by.name:
                return place
    for place, item in enumerate(select.selects):
        if item.unalias() == by:
            return place
    assert isinstance(by, exp.Expr)
    return by


def place_of(number: exp.Literal, outputs: int) -> int:
    """Return the index (from 0) of the output at a position (from 1). Raises Error 42P10 if there is none."""
    place = int(number.name)
    if not 1 <= place <= outputs:
        raise Error(
            f"position {place} is not in select list",
            errors.INVALID_COLUMN_REFERENCE,
            position=position_of(number),
        )
    return place - 1


def distinct_on(select: exp.Select) -> list[int | exp.Expr]:
    """Return the keys of DISTINCT ON: the index of an output or an expression each; none without DISTINCT ON."""
    distinct = select.args.get("distinct")
    on = distinct.args.get("on") if distinct is not None else None
    if on is None:
        return []
    keys = on.expressions if isinstance(on, exp.Tuple) else [on.unnest()]
    return [sort_source(exp.Ordered(this=key.copy()), select) for key in keys]
