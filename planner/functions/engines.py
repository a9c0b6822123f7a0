"""Which engines may run a view: both, or DuckDB alone.

The batch queries of clients run on DuckDB, so DuckDB's answer is what a view has to equal. Spark runs what is proven to
give the same: `planner.functions.portable` knows the scalar expressions, this module the aggregates, windows and types.
`tests/test_engines.py` proves them.
"""

from __future__ import annotations

from sqlglot import exp

from catalog.types import TIMESTAMPTZ
from planner.functions.operators import type_of_part
from planner.functions.portable import unproven_part
from planner.functions.typed import data_type
from planner.nodes import Aggregate, Call, Node, Order, OverWindow, TopN, Unnest, WindowCall, expressions, walk

# Aggregates computed by an expression, without FILTER, ORDER BY or WITHIN GROUP.
_AGGREGATES = (exp.Count, exp.Sum, exp.Min, exp.Max)
_WINDOWS = (
    exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue,
    exp.Count, exp.Sum, exp.Min, exp.Max,
)  # fmt: skip


def duckdb_only(root: Node) -> str | None:
    """What in a plan keeps it from Spark: an expression or a type; None when both engines may run it."""
    for node in walk(root):
        for field in node.fields:
            if field.type.base.spark is None:
                return f"the type {field.type}"
        if (sorted_ := _sorted_array(node)) is not None:
            return sorted_
        match node:
            case Aggregate(calls=calls):
                found = next((f for call in calls if (f := _unproven_call(call)) is not None), None)
            case OverWindow(calls=windows):
                found = next((w.expression for w in windows if not _is_proven_window(w)), None)
            case Unnest(array=exp.GenerateSeries() as series):
                found = _unproven_series(series)
            case _:
                parts = (_with_time_as_column(e) for e in expressions(node))
                found = next((f for e in parts if (f := unproven_part(e)) is not None), None)
        if found is not None:
            return found.sql(dialect="postgres").replace('"', "")
    return None


def _sorted_array(node: Node) -> str | None:
    """What of a node compares arrays, whose NULL elements the engines sort in different places; None for nothing."""
    if isinstance(node, Aggregate):
        found = [call for call in node.calls if call.function in ("min", "max") and call.type.dimensions]
        return f"{found[0].function} of arrays" if found else None
    orders: list[Order] = []
    if isinstance(node, OverWindow):
        orders = [order for call in node.calls for order in call.order]
        if any(isinstance(c.expression, exp.Min | exp.Max) and c.type.dimensions for c in node.calls):
            return "min or max of arrays"
    elif isinstance(node, TopN):
        orders = list(node.full_order)
    types = {field.name: field.type for part in node.inputs for field in part.fields}
    return "an order by an array" if any(types[o.name].dimensions for o in orders if o.name in types) else None


def _is_proven_window(call: WindowCall) -> bool:
    """Spark's sum of bigints is a bigint; it has no frames of groups, and none that leave rows out."""
    frame = call.frame
    if frame is not None and (frame.args.get("exclude") or str(frame.args.get("kind")).upper() == "GROUPS"):
        return False
    is_wide_sum = isinstance(call.expression, exp.Sum) and call.type.name == "numeric"
    return isinstance(call.expression, _WINDOWS) and not is_wide_sum


def _with_time_as_column(expression: exp.Expr) -> exp.Expr:
    """The epoch's time is a variable on both engines: as good as a column."""
    return expression.transform(lambda part: _time() if isinstance(part, exp.CurrentTimestamp) else part)


def _time() -> exp.Column:
    time = exp.column("now")
    time.type = data_type(TIMESTAMPTZ)
    return time


def _unproven_series(series: exp.GenerateSeries) -> exp.Expr | None:
    """A series of integers is the same on both, unless its step is computed."""
    parts = [series.args["start"], series.args["end"]]
    if series.args.get("step") is not None or any(not _is_integer(part) for part in parts):
        return series
    return next((found for part in parts if (found := unproven_part(part)) is not None), None)


def _is_integer(part: exp.Expr) -> bool:
    type_ = type_of_part(part)
    return type_ is not None and type_.is_integer


def _unproven_call(call: Call) -> exp.Expr | None:
    if call.expression is None:
        return None
    is_plain = isinstance(call.expression, _AGGREGATES) and not call.expression.find(exp.Order)
    return None if is_plain else call.expression
