"""OVER: window functions as nodes, one for each partitioning."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import QUOTIENT, Type
from sparkwave.planner.bind.binder import type_of
from sparkwave.planner.build.builder import Builder, added, refuse, replaced, scalar, text, typed_column, written
from sparkwave.planner.build.sort_keys import order_of
from sparkwave.planner.functions.aggregates import SPREADS, is_aggregate, result_type
from sparkwave.planner.functions.aggregates import argument as argument_of
from sparkwave.planner.functions.sums import is_summed, of_sums, sums_of
from sparkwave.planner.parse.named_windows import named
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.plan.nodes import Item, Node, OverWindow, WindowCall, column


def build_windows(
    builder: Builder, select: exp.Select, node: Node, parts: list[exp.Expr], replacements: dict[str, exp.Expr]
) -> tuple[Node, dict[str, exp.Expr]]:
    """Add the window calls of some expressions to the rows. Returns the node and the replacements with the new fields.

    `replacements` are those of aggregates and keys when the rows are groups.
    """
    windows = [window for part in parts for window in part.find_all(exp.Window) if window.parent_select is select]
    if not windows:
        return node, replacements
    known = dict(replacements)
    items: dict[str, Item] = {}

    def field(expression: exp.Expr) -> str:
        flat = replaced(scalar(expression), replacements)
        if isinstance(flat, exp.Column):
            return flat.name
        made = items.setdefault(text(flat), Item(builder.fresh("w"), flat, type_of(expression)))
        return made.name

    by_partition: dict[tuple[str, ...], list[WindowCall]] = {}
    for window in windows:
        flat_text = text(scalar(window))
        if flat_text in known:
            continue
        _check(window)
        full = named(window, select)
        partition = tuple(dict.fromkeys(field(key) for key in full.args.get("partition_by") or ()))
        order = full.args.get("order")
        sorts = tuple(order_of(field(o.this), o) for o in (order.expressions if order is not None else ()))
        type_ = result_type(full, type_of)
        if type_ is None:
            raise refuse(f"the window function {written(full.this)}", window)
        summed = _summed_type(full.this, type_)
        columns: list[exp.Expr] = []
        for part in [full.this] if summed is None else sums_of(full.this, summed):
            own = type_ if part is full.this else result_type(part, type_of) or type_
            made = WindowCall(builder.fresh("over"), _over_fields(part, field), own, sorts, _frame(full))
            by_partition.setdefault(partition, []).append(made)
            columns.append(typed_column(made.name, own))
        known[flat_text] = columns[0] if summed is None else of_sums(full.this, columns, summed)
    node = added(node, list(items.values()))
    for partition, calls in by_partition.items():
        node = OverWindow(node, partition, tuple(calls))
    return node, known


def _summed_type(call: exp.Expr, result: Type) -> Type | None:
    """Return the type of the argument of a call that is computed from sums; None for any other call."""
    inner = call.this if isinstance(call, exp.Filter) else call
    if not isinstance(inner, (exp.Sum, exp.Avg, *SPREADS)):
        return None
    type_ = type_of(argument_of(inner))
    return type_ if is_summed(inner, type_) or (isinstance(inner, exp.Avg) and result == QUOTIENT) else None


def _check(window: exp.Window) -> None:
    """Raise Error 0A000 for syntax that PostgreSQL does not have in window functions either."""
    call = window.this.this if isinstance(window.this, exp.Filter) else window.this
    for kind, what in ((exp.Distinct, "DISTINCT"), (exp.Order, "ORDER BY in an aggregate")):
        if call.find(kind) is not None:
            raise Error(
                f"{what} is not implemented for window functions",
                errors.FEATURE_NOT_SUPPORTED,
                position=position_of(window),
            )


def _over_fields(call: exp.Expr, field: Callable[[exp.Expr], str]) -> exp.Expr:
    """Return the call with each non-constant argument as a field."""
    copied = call.copy()
    inner = copied
    while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(inner, exp.Filter):
            condition = inner.expression
            condition.set("this", column(field(condition.this)))
        inner = inner.this
    if not (is_aggregate(inner) or isinstance(inner, exp.Func)):
        raise Error('syntax error at or near "OVER"', errors.SYNTAX_ERROR)
    for value in list(inner.args.values()):
        for argument in value if isinstance(value, list) else [value]:
            if isinstance(argument, exp.Expr) and argument.find(exp.Column, exp.AggFunc) is not None:
                argument.replace(typed_column(field(argument), type_of(argument)))
    return copied


def _frame(window: exp.Window) -> exp.WindowSpec | None:
    """Return the frame of a window, with its words as stored definitions have them."""
    spec = window.args.get("spec")
    if not isinstance(spec, exp.WindowSpec):
        return None
    frame = spec.copy()
    for name, word in spec.args.items():
        if isinstance(word, str):
            frame.set(name, word.upper())
    return frame
