"""Rewrites counts of distinct values as counts of groups, which follow changes without reading the input again.

`count(DISTINCT x)` by g is the number of groups by (g, x). Spark's RewriteDistinctAggregates does the same: with
several arguments, each row is there once for each of them. RisingWave keeps the values of each group for the same
purpose (src/stream/src/executor/aggregation/distinct.rs).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparkwave.catalog.types import BIGINT, INTEGER, Type
from sparkwave.planner.bind.binder import type_of
from sparkwave.planner.build.builder import typed
from sparkwave.planner.functions.typed import sql_type
from sparkwave.planner.plan.nodes import (
    COUNT,
    Aggregate,
    Call,
    Field,
    Item,
    Node,
    Project,
    Unnest,
    column,
    count_rows_call,
    transform,
)

# The number of the argument, from 1, for which a row is there; and the number of rows.
_COPY, _COPY_PLACE, _ROWS = "_copy", "_copy_place", "_rows"


@dataclass(frozen=True)
class _Distinct:
    """A count of the values of an argument in the rows that meet a condition; None for all rows."""

    name: str
    argument: exp.Expr
    condition: exp.Expr | None

    @property
    def met(self) -> Call:
        """The count of a value's rows that meet the condition."""
        return Call(f"{self.name}_met", "count", f"{self.name}_met", BIGINT)


def split_distinct_counts(root: Node) -> Node:
    """Replace aggregates with counts of distinct values by aggregates over groups of equal values.

    An aggregate that also has calls to compute again for each touched group stays as it is.
    """
    return transform(root, lambda node: _split(node) if isinstance(node, Aggregate) else node)


def _split(node: Aggregate) -> Node:
    distinct = list(_distinct_counts(node.calls))
    usual = [call for call in node.calls if call.expression is None and call.name != COUNT]
    if not distinct or 1 + len(distinct) + len(usual) < len(node.calls):
        return node
    values = {each.argument: _value(each.argument, node, place) for place, each in enumerate(distinct)}
    groups = _groups(node, usual, distinct, values)
    types = {field.name: field.type for field in groups.fields}
    items = [Item(name, column(name), types[name]) for name in node.keys]
    items.append(Item(_ROWS, _in_copy(1, column(COUNT), BIGINT, values), BIGINT))
    items += (Item(call.name, column(call.name), call.type) for call in usual)
    for each in distinct:
        counted: exp.Expr = exp.not_(exp.Is(this=column(values[each.argument]), expression=exp.null()))
        if each.condition is not None:
            counted = exp.and_(counted, exp.GT(this=column(each.met.name), expression=exp.Literal.number(0)))
        one = exp.Case().when(counted, exp.Literal.number(1)).else_(exp.Literal.number(0))
        items.append(Item(each.name, typed(one, INTEGER), INTEGER))
    calls = [
        count_rows_call(),
        Call(_ROWS, "sum", _ROWS, BIGINT),
        *(replace(c, function="sum" if c.function == "count" else c.function, argument=c.name) for c in usual),
        *(Call(each.name, "sum", each.name, BIGINT) for each in distinct),
    ]
    outputs = (Item(f.name, column(_ROWS if f.name == COUNT else f.name), f.type) for f in node.fields)
    return Project(Aggregate(Project(groups, tuple(items)), node.keys, tuple(calls)), tuple(outputs))


def _value(argument: exp.Expr, node: Aggregate, place: int) -> str:
    """Return the name of the field with an argument's values: the argument's, if it is a field and no key."""
    is_free = isinstance(argument, exp.Column) and argument.name not in node.keys
    return argument.name if is_free else f"_value{place}"


def _distinct_counts(calls: Sequence[Call]) -> Iterator[_Distinct]:
    for call in calls:
        tree, condition = call.expression, None
        if isinstance(tree, exp.Filter):
            tree, condition = tree.this, tree.expression.this
        if not isinstance(tree, exp.Count) or not isinstance(tree.this, exp.Distinct):
            continue
        arguments = tree.this.expressions
        if len(arguments) == 1 and sql_type(arguments[0].type) is not None:
            yield _Distinct(call.name, arguments[0], condition)


def _groups(node: Aggregate, usual: list[Call], distinct: list[_Distinct], values: dict[exp.Expr, str]) -> Aggregate:
    """Return the groups of equal keys and values, with the usual calls over their rows."""
    types = {field.name: field.type for field in node.input.fields}
    below, keys = node.input, [*node.keys]
    items = [Item(name, column(name), types[name]) for name in node.keys]
    if len(values) > 1:
        numbers = exp.GenerateSeries(start=_number(1), end=_number(len(values)))
        below = Unnest(below, numbers, Field(_COPY, BIGINT), _COPY_PLACE)
        keys.append(_COPY)
        items.append(Item(_COPY, column(_COPY), BIGINT))
    for number, (argument, name) in enumerate(values.items(), 1):
        type_ = type_of(argument)
        items.append(Item(name, _in_copy(number, argument, type_, values), type_))
    calls = [count_rows_call()]
    arguments = {str(call.argument): f"_argument{number}" for number, call in enumerate(usual)}
    for own, name in arguments.items():
        items.append(Item(name, _in_copy(1, column(own), types[own], values), types[own]))
    calls += (replace(call, argument=arguments[str(call.argument)]) for call in usual)
    for each in distinct:
        if each.condition is not None:
            is_met = typed(exp.Case().when(each.condition, exp.Literal.number(1)), INTEGER)
            items.append(Item(each.met.name, is_met, INTEGER))
            calls.append(each.met)
    return Aggregate(Project(below, tuple(items)), (*keys, *values.values()), tuple(calls))


def _in_copy(number: int, value: exp.Expr, type_: Type, values: dict[exp.Expr, str]) -> exp.Expr:
    """Return a value that is NULL in all copies of a row but one."""
    if len(values) == 1:
        return value
    return typed(exp.Case().when(exp.EQ(this=column(_COPY), expression=exp.Literal.number(number)), value), type_)


def _number(value: int) -> exp.Expr:
    return typed(exp.Literal.number(value), BIGINT)
