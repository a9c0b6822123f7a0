"""The fractions of percentile_cont and percentile_disc, which DuckDB wants as constant numbers."""

from __future__ import annotations

from decimal import Decimal

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.batch.pg_casts import nested_items
from sparkwave.planner.parse.trees import position_of

PERCENTILES = (exp.PercentileCont, exp.PercentileDisc)


def with_fractions(call: exp.PercentileCont | exp.PercentileDisc) -> None:
    """Write the fractions of a percentile as one number or an array of numbers. Changes the call.

    Raises Error 22003 for a fraction that is not between 0 and 1; 0A000 for one that is NULL or no constant, for none
    of them, and for arrays of arrays.
    """
    given = call.this.unnest()
    value = _uncast(given)
    if value.find(exp.Column, exp.Query) is not None:
        message = "a fraction that is not a constant is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
    items = value.expressions if isinstance(value, exp.Array) else None
    if value is not given and (texts := nested_items(value)) is not None:
        items = [exp.null() if text is None else _written(text) for text in texts]
    if items is None:
        call.set("this", _number(value, call))
        return
    if not items:
        raise _unsupported("an empty array of fractions", call)
    if value is not given or not any(item.is_string for item in items):
        made = exp.Array(expressions=_of_one_scale([_number(_uncast(item), call) for item in items]))
        made.type = given.type
        call.set("this", made)


def _of_one_scale(numbers: list[exp.Expr]) -> list[exp.Expr]:
    """Return literals with equally many digits after the point: a cast to their common type is no constant."""
    literals = [Decimal(number.name) for number in numbers if isinstance(number, exp.Literal)]
    scale = max((len(f"{literal:f}".partition(".")[2]) for literal in literals), default=0)
    return [
        exp.Literal.number(f"{Decimal(number.name):.{scale}f}") if isinstance(number, exp.Literal) else number
        for number in numbers
    ]


def _written(text: str | list[object]) -> exp.Expr:
    return exp.Literal.string(text) if isinstance(text, str) else exp.Array()


def _uncast(value: exp.Expr) -> exp.Expr:
    value = value.unnest()
    return _uncast(value.this) if isinstance(value, exp.Cast) else value


def _number(value: exp.Expr, call: exp.Func) -> exp.Expr:
    if isinstance(value, exp.Array):
        raise _unsupported("an array of arrays of fractions", call)
    if isinstance(value, exp.Null):
        raise _unsupported("NULL as a fraction", call)
    is_negative = isinstance(value, exp.Neg)
    literal = value.this.unnest() if is_negative else value
    if not isinstance(literal, exp.Literal):
        return value
    try:
        number = float(literal.name) * (-1 if is_negative else 1)
    except ValueError:
        return value  # DuckDB's error is PostgreSQL's
    if not 0 <= number <= 1:
        message = f"percentile value {number:g} is not between 0 and 1"
        raise Error(message, errors.NUMERIC_VALUE_OUT_OF_RANGE, position=position_of(literal))
    return exp.Literal.number(literal.name) if literal.is_string else value


def _unsupported(what: str, call: exp.Func) -> Error:
    message = f"{what} of {call.sql_name().lower()} is not supported"
    return Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
