"""Spells aggregates and window functions that raise for some values so that they return NULL instead.

TRY cannot catch their errors, which come from the aggregation, not from an expression over its result.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sparkwave.planner.functions.aggregates import argument
from sparkwave.planner.functions.safe import AROUND_CALL
from sparkwave.planner.functions.scalar_functions import ours

# Squares of larger values would sum up beyond a double, with room for 10^17 rows.
_LARGEST = "1e145"
_SPREADS = (
    exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop, exp.Corr, exp.CovarPop, exp.CovarSamp,
    exp.RegrAvgx, exp.RegrAvgy, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope, exp.RegrSxx, exp.RegrSxy, exp.RegrSyy,
)  # fmt: skip
# Functions with a quotient by a variance.
_UNDEFINED = (exp.Corr, exp.RegrIntercept, exp.RegrR2, exp.RegrSlope)


def guarded(node: exp.Expr) -> exp.Expr | None:
    """Return a whole call with its surrounding nodes that is NULL where it would raise; None where it never raises."""
    call = _whole_call(node)
    if call is None:
        return None
    if isinstance(call, _SPREADS):
        return _spread(node, call)
    if (counted := counted_rows(node)) is not None:
        return counted
    if isinstance(call, exp.ArrayAgg) and (name := _field_name(argument(call))) is not None:
        is_named = exp.Not(this=exp.Is(this=name.copy(), expression=exp.null()))
        return exp.Case().when(_with(node, call, lambda _: exp.LogicalAnd(this=is_named)), node.copy())
    if isinstance(call, exp.Ntile) and not isinstance(call.this, exp.Literal):
        return _ntile(node, call)
    offset = call.args.get("offset") if isinstance(call, exp.Lag | exp.Lead) else None
    if offset is not None and not isinstance(offset, exp.Literal):
        offset.replace(exp.TryCast(this=offset.copy(), to=exp.DataType.build("int")))
    return None


def or_null(node: exp.Expr) -> exp.Expr | None:
    """Return a function over an array of rows that is NULL where the node, such a function, raises; None for others."""
    is_total = isinstance(node, exp.Anonymous) and node.name in ("sum_of_intervals", "avg_of_intervals")
    return ours(f"try_{node.name}", *node.expressions) if is_total else None


def _whole_call(node: exp.Expr) -> exp.Expr | None:
    """Return the innermost part of a whole call; None where the node itself is a part of one."""
    if isinstance(node.parent, AROUND_CALL) and node.arg_key == "this":
        return None
    call = node
    while isinstance(call, AROUND_CALL):
        call = call.this
    return call


def _with(node: exp.Expr, call: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return the whole call with its innermost part replaced by `change`."""
    if node is call:
        return change(call.copy())
    copied = node.copy()
    inner = copied
    while isinstance(inner, AROUND_CALL):
        inner = inner.this
    inner.replace(change(inner.copy()))
    return copied


def _spread(node: exp.Expr, call: exp.Expr) -> exp.Expr:
    in_range = exp.and_(*map(_is_small, _arguments(call)))

    def smaller(inner: exp.Expr) -> exp.Expr:
        for value in _arguments(inner):
            value.replace(exp.Case().when(_is_small(value), value.copy()))
        return inner

    is_safe = _with(node, call, lambda _: exp.LogicalAnd(this=in_range.copy()))
    value = _with(node, call, smaller)
    return exp.Case().when(is_safe, _without_nan(value) if isinstance(call, _UNDEFINED) else value)


def defined(node: exp.Expr) -> exp.Expr | None:
    """Return a whole call that is NULL where nothing varies, as for one row: DuckDB returns NaN. None for any other."""
    if not isinstance(node, (*_UNDEFINED, exp.Filter, exp.Window)):
        return None
    return _without_nan(node.copy()) if isinstance(_whole_call(node), _UNDEFINED) else None


def counted_rows(node: exp.Expr) -> exp.Expr | None:
    """Return count(1) for count(*) over a frame: DuckDB's (1.5.5) is below zero where the frame is empty."""
    if not isinstance(node, exp.Window) or node.args.get("spec") is None:
        return None
    call = _whole_call(node)
    if not isinstance(call, exp.Count) or not isinstance(call.this, exp.Star):
        return None
    return _with(node, call, lambda inner: exp.Count(this=exp.Literal.number(1), big_int=inner.args.get("big_int")))


def _without_nan(value: exp.Expr) -> exp.Expr:
    return exp.Nullif(this=value, expression=exp.cast(exp.Literal.string("NaN"), "double"))


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    """Return the one or two numbers that a call aggregates."""
    second = call.args.get("expression")
    return [argument(call), *([second] if second is not None else [])]


def _is_small(value: exp.Expr) -> exp.Expr:
    as_double = exp.TryCast(this=value.copy(), to=exp.DataType.build("double"))
    bound = exp.Literal.number(_LARGEST)
    return exp.Between(this=as_double, low=exp.Neg(this=bound), high=bound.copy())


def _field_name(value: exp.Expr) -> exp.Expr | None:
    """Return the name in a field of jsonb_object_agg, which raises for a NULL: a field has a name."""
    calls = (call for call in value.find_all(exp.Anonymous) if call.name in ("json_field", "jsonb_field"))
    return next((call.expressions[0] for call in calls), None)


def _ntile(node: exp.Expr, call: exp.Expr) -> exp.Expr:
    buckets = call.this
    one = exp.Literal.number(1)

    def positive(inner: exp.Expr) -> exp.Expr:
        return exp.Ntile(this=exp.Greatest(this=buckets.copy(), expressions=[one]))

    return exp.Case().when(exp.GTE(this=buckets.copy(), expression=one.copy()), _with(node, call, positive))
