"""Averages, standard deviations and variances of exact numbers, and totals of intervals: computed from counts and sums.

So those of a group are exact, and follow changes without reading its rows again. Squares are summed up in units of the
last digit, whole or by parts, of which no sum has more than 38 digits; the fields of intervals each by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog.types import BIGINT, DOUBLE, INTERVAL, QUOTIENT, Type
from sparkwave.planner.functions.aggregates import AROUND, OF_FLOATS, SPREADS, argument, average_type, whole_call
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.scalar_functions import AS_NUMERIC, INTERVAL_FIELDS
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.since import EXACT_SPREADS, SUMMED_INTERVALS, is_since

_UNITS = Type("numeric", 38, 0)
_OF_SAMPLES = (exp.Stddev, exp.StddevSamp, exp.Variance)
_ROOTS = (exp.Stddev, exp.StddevSamp, exp.StddevPop)


@dataclass(frozen=True)
class _Squares:
    """How values and their squares are summed up: by functions of a value in units, each with its result type.

    The sums of `parts` are the square's, those of `totals` the value's; without `totals` the values themselves are
    summed up. The function `spread` computes the result from the sums.
    """

    spread: str
    parts: tuple[tuple[str, Type], ...]
    totals: tuple[tuple[str, Type], ...] = ()


_WHOLE = _Squares("_spread_of_squares", (("_square", _UNITS),))
_OF_INTEGERS = _Squares("_spread_of_squares", (("_square", BIGINT),))
_BY_HALVES = _Squares(
    "_spread_of_halves",
    (("_square_by_halves_0", _UNITS), ("_square_by_halves_1", BIGINT), ("_square_by_halves_2", BIGINT)),
)
_BY_LIMBS = _Squares(
    "_spread_of_limbs",
    tuple((f"_square_by_limbs_{place}", _UNITS) for place in range(5)),
    (("_high_units", _UNITS), ("_low_units", _UNITS)),
)


def _squares(type_: Type) -> tuple[_Squares, str | None]:
    """Return how the squares of exact numbers are summed up, and the function that gives a decimal's units."""
    if type_.is_integer:
        return (_BY_HALVES if type_ == BIGINT else _OF_INTEGERS), None
    if type_.digits[0] <= 15:
        return _WHOLE, "_units_of_float"
    return (_BY_HALVES, "_units_in_64") if type_.digits[0] <= 18 else (_BY_LIMBS, "_units_in_128")


def is_exact_spread(call: exp.Expr, type_: Known) -> bool:
    """Return whether a call is one of SPREADS that is computed from sums, for an argument of this type.

    A spread of distinct values is not, because two values may have one square.
    """
    if not isinstance(call, SPREADS) or not is_since(EXACT_SPREADS) or call.meta.get(OF_FLOATS):
        return False
    if type_ is None or type_.dimensions or average_type(type_) != QUOTIENT:
        return False
    return (type_.is_integer or type_.digits[1] <= QUOTIENT.digits[1]) and not call.find(exp.Distinct, exp.Order)


def is_summed(call: exp.Expr, type_: Known) -> bool:
    """Return whether a call is computed from the sums of `summands`, for an argument of this type.

    False for an average of numbers, which the planner computes from a sum and a count in any case.
    """
    if isinstance(call, exp.Sum | exp.Avg) and type_ == INTERVAL:
        return is_since(SUMMED_INTERVALS) and not call.find(exp.Distinct, exp.Order)
    return is_exact_spread(call, type_)


def summands(call: exp.Expr, value: exp.Expr, type_: Known) -> list[exp.Expr]:
    """Return what is summed up for a call, of its argument: for an average the argument, else parts of it."""
    if type_ == INTERVAL:
        return [_typed(exp.Anonymous(this=name, expressions=[value.copy()]), BIGINT) for name in INTERVAL_FIELDS]
    if type_ is not None and isinstance(call, SPREADS):
        return _powers(value, type_)
    return [value.copy()]


def _powers(value: exp.Expr, type_: Type) -> list[exp.Expr]:
    """Return a number, or its parts, and the parts of its square."""
    squares, units = _squares(type_)
    own: exp.Expr = exp.cast(value.copy(), data_type(BIGINT if units is None else type_))
    if units is not None:
        scale = [exp.Literal.number(type_.digits[1])] if units != "_units_in_128" else []
        own = _typed(exp.Anonymous(this=units, expressions=[own, *scale]), _UNITS)
    parts = (*squares.totals, *squares.parts)
    made = [_typed(exp.Anonymous(this=name, expressions=[own.copy()]), part) for name, part in parts]
    return made if squares.totals else [value.copy(), *made]


def _typed(node: exp.Expr, type_: Type) -> exp.Expr:
    node.type = data_type(type_)
    return node


def combined(call: exp.Expr, count: exp.Expr, sums: Sequence[exp.Expr], type_: Type) -> exp.Expr:
    """Return the result of a call for an argument of this type, from its count and the sums of its `summands`."""
    if isinstance(call, SPREADS):
        made = _spread(call, count, sums, type_)
    elif type_ == INTERVAL:
        name = "_interval_average" if isinstance(call, exp.Avg) else "_interval_sum"
        made = _typed(exp.Anonymous(this=name, expressions=[*sums, count]), INTERVAL)
    else:
        return average(sums[0], count, type_)
    made.meta["name"] = call.meta.get("name") or call.sql(dialect="postgres").partition("(")[0].lower()
    return made


def _spread(call: exp.Expr, count: exp.Expr, sums: Sequence[exp.Expr], type_: Type) -> exp.Expr:
    """Return one of SPREADS of values of this type.

    As for an average, PostgreSQL rounds to at least the decimal places of the squares.
    """
    scale = 0 if type_.is_integer else type_.digits[1]
    squares, _ = _squares(type_)
    total, *parts = sums
    if not type_.is_integer and not squares.totals:
        total = exp.cast(total, data_type(Type("numeric", 38, scale)))
        total = exp.Anonymous(this="_units_in_128", expressions=[total])
    places = exp.null() if type_.is_unconstrained else exp.Literal.number(2 * scale)
    less = exp.Literal.number(int(isinstance(call, _OF_SAMPLES)))
    is_root = exp.Boolean(this=isinstance(call, _ROOTS))
    given = [count, total, *parts, exp.Literal.number(scale), places, less, is_root]
    return _typed(exp.Anonymous(this=squares.spread, expressions=given), QUOTIENT)


def average(total: exp.Expr, count: exp.Expr, type_: Type) -> exp.Expr:
    """Return avg(x) with a QUOTIENT's type for an x of this type, from its sum and count.

    PostgreSQL rounds to at least the decimal places of the values, which numeric values without a precision have by
    themselves.
    """
    if type_.is_integer:
        total = exp.cast(total, data_type(_UNITS))
    digits: exp.Expr = exp.Literal.number(type_.scale or 0)
    if type_.is_unconstrained:
        digits = exp.Neg(this=exp.Literal.number(1)) if type_ == QUOTIENT else exp.null()
    return _typed(exp.Anonymous(this="_avg", expressions=[total, count, digits]), QUOTIENT)


def sums_of(call: exp.Expr, type_: Known) -> list[exp.Expr]:
    """Return the calls from which `of_sums` computes a call with its DISTINCT, FILTER and OVER; the last counts."""
    inner = _inner(call)
    summed = (exp.Sum(this=value) for value in summands(inner, inner.this, type_))
    return [_instead(call, new) for new in (*summed, exp.Count(this=inner.this.copy()))]


def of_sums(call: exp.Expr, sums: Sequence[exp.Expr], type_: Type) -> exp.Expr:
    """Return a whole call's result for an argument of this type, from the results of `sums_of`."""
    *totals, count = sums
    return combined(_inner(call), count, totals, type_)


def _instead(call: exp.Expr, new: exp.Expr) -> exp.Expr:
    """Return a whole call with another innermost part."""
    if call is _inner(call):
        return new
    made = call.copy()
    _inner(made).replace(new)
    return made


def _inner(call: exp.Expr) -> exp.Expr:
    while isinstance(call, (*AROUND, exp.Window)):
        call = call.this
    return call


def with_numeric_spreads(tree: exp.Expr, type_of: Callable[[exp.Expr], Known]) -> bool:
    """Make numerics of the SPREADS that DuckDB computes as floats, in a tree that is changed in place.

    Returns whether there are any.
    """
    found = [
        call
        for call in tree.find_all(*SPREADS)
        if type_of(call) == QUOTIENT and not is_exact_spread(call, type_of(argument(call)))
    ]
    for call in found:
        call.meta[OF_FLOATS] = True
        whole = whole_call(call)
        made = exp.Anonymous(this=AS_NUMERIC)
        whole.replace(made)
        made.set("expressions", [whole])
        call.type, made.type = data_type(DOUBLE), data_type(QUOTIENT)
    return bool(found)
