"""Keeps constant intervals of equal length apart: for DuckDB `30 days` is `1 month`, so that it computes one for both.

DuckDB (1.5.5) computes equal expressions of a query's windows, aggregates and filters once, and a constant equals
another one that is as long. A constant in a subquery equals none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from sparkwave.catalog.errors import Error
from sparkwave.catalog.interval_texts import Interval, read_interval
from sparkwave.catalog.types import INTERVAL
from sparkwave.planner.functions.typed import data_type

_COMPUTED_ONCE = (exp.Window, exp.AggFunc, exp.Filter)
_DAY_US = 86_400_000_000


def apart(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with intervals that DuckDB would take for one another in subqueries."""
    for node in found_alike([tree]):
        if node.find_ancestor(*_COMPUTED_ONCE) is not None and node.find_ancestor(exp.Lambda) is None:
            query = exp.Subquery(this=exp.Select(expressions=[node.copy()]))
            query.type = data_type(INTERVAL)
            node.replace(query)
    return tree


def found_alike(trees: Sequence[exp.Expr]) -> list[exp.Expr]:
    """Return the constants that are as long as another one before them, and another interval.

    An interval that is a parameter may be as long as any.
    """
    lengths: dict[int | None, object] = {}
    listed = [item for tree in trees for item in _constants(tree)]
    if len({value for _, value in listed}) < 2:
        return []
    has_parameters = any(not isinstance(value, Interval) for _, value in listed)
    found = []
    for node, value in listed:
        length = _length_us(value) if isinstance(value, Interval) and not has_parameters else None
        if lengths.setdefault(length, value) != value:
            found.append(node)
    return found


def _constants(tree: exp.Expr) -> Iterator[tuple[exp.Expr, object]]:
    """Yield the constant intervals of a tree, and what they are: an interval, or the text of a parameter."""
    for node in tree.find_all(exp.Interval, exp.Cast):
        if isinstance(node, exp.Cast) and node.to.this != exp.DType.INTERVAL:
            continue
        text = node.this
        if isinstance(text, exp.Parameter | exp.Placeholder):
            yield node, text.sql()
        elif isinstance(text, exp.Literal):
            try:
                yield node, read_interval(f"{text.name} {node.text('unit')}".strip())
            except Error:
                continue


def _length_us(interval: Interval) -> int:
    return (interval.months * 30 + interval.days) * _DAY_US + interval.micros
