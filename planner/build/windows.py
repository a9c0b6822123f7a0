"""OVER: window functions as nodes, one for each partitioning."""

from __future__ import annotations

from sqlglot import exp

from planner.bind import type_of
from planner.build.builder import Builder, added, refuse, replaced, scalar, text, typed_column, written
from planner.build.subqueries import order_of
from planner.functions.aggregates import is_aggregate, result_type
from planner.nodes import Item, Node, OverWindow, WindowCall, column


def build_windows(
    builder: Builder, select: exp.Select, node: Node, parts: list[exp.Expr], replacements: dict[str, exp.Expr]
) -> tuple[Node, dict[str, exp.Expr]]:
    """Add the window calls of some expressions to the rows; the replacements then know their fields too.

    `replacements` stand for aggregates and keys when the rows are groups.
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
        full = _named(window, select)
        partition = tuple(dict.fromkeys(field(key) for key in full.args.get("partition_by") or ()))
        order = full.args.get("order")
        sorts = tuple(order_of(field(o.this), o) for o in (order.expressions if order is not None else ()))
        type_ = result_type(full, type_of)
        if type_ is None:
            raise refuse(f"the window function {written(full.this)}", window)
        call = _over_fields(full.this, field)
        made = WindowCall(builder.fresh("over"), call, type_, sorts, _frame(full))
        by_partition.setdefault(partition, []).append(made)
        known[flat_text] = typed_column(made.name, type_)
    node = added(node, list(items.values()))
    for partition, calls in by_partition.items():
        node = OverWindow(node, partition, tuple(calls))
    return node, known


def _named(window: exp.Window, select: exp.Select) -> exp.Window:
    """The window with what a WINDOW clause says of its name."""
    alias = window.args.get("alias") or window.args.get("first")
    name = alias.name if isinstance(alias, exp.Identifier) else ""
    for definition in select.args.get("windows") or ():
        if name and definition.name == name:
            full = definition.copy()
            full.set("this", window.this.copy())
            return full
    return window


def _over_fields(call: exp.Expr, field: object) -> exp.Expr:
    """The call with each non-constant argument as a field."""
    copied = call.copy()
    inner = copied
    while isinstance(inner, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        if isinstance(inner, exp.Filter):
            condition = inner.expression
            condition.set("this", column(field(condition.this)))  # type: ignore[operator]
        inner = inner.this
    assert is_aggregate(inner) or isinstance(inner, exp.Func)
    for value in list(inner.args.values()):
        for argument in value if isinstance(value, list) else [value]:
            if isinstance(argument, exp.Expr) and not isinstance(argument, exp.Star) and argument.find(exp.Column):
                argument.replace(column(field(argument)))  # type: ignore[operator]
    return copied


def _frame(window: exp.Window) -> exp.WindowSpec | None:
    spec = window.args.get("spec")
    return spec.copy() if isinstance(spec, exp.WindowSpec) else None
