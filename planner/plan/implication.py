"""Tells whether one condition implies another one, from comparisons of the same expression with constants."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from sqlglot import exp

# Texts may stand for values of any type, so that other texts may be the same value.
_Value = Decimal | date | datetime | str
_OPPOSITE: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LTE,
    exp.GTE: exp.LT,
    exp.LT: exp.GTE,
    exp.LTE: exp.GT,
    exp.EQ: exp.NEQ,
    exp.NEQ: exp.EQ,
}
_SWAPPED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}


def implies(one: exp.Expr, other: exp.Expr) -> bool:
    """Return whether `other` is true wherever `one` is. False also where this is unknown.

    Different constants may be equal once they are cast to the type of the expression, such as a float, unless the
    expression is annotated with a type in which they stay what they are.
    """
    if one == other:
        return True
    if isinstance(one, exp.Or):
        return all(implies(part, other) for part in one.flatten())
    if isinstance(one, exp.In) and one.expressions:
        return all(implies(exp.EQ(this=one.this, expression=value), other) for value in one.expressions)
    if isinstance(other, exp.Or):
        return any(implies(one, part) for part in other.flatten())
    first, second = _compared(one), _compared(other)
    if first is None or second is None or first[1] != second[1]:
        return False
    (operator, expression, [value]), (wanted, _, limits) = first, second
    if operator is exp.EQ:
        return _holds(value, wanted, limits, _is_exact(expression))
    if len(limits) != 1 or wanted not in _BOUNDS or operator not in _BOUNDS[wanted]:
        return False
    [limit] = limits
    is_beyond = _is_less(limit, value) if wanted in (exp.GT, exp.GTE) else _is_less(value, limit)
    is_as_strict = operator is wanted or operator in (exp.GT, exp.LT)
    return (is_as_strict and (is_beyond or value == limit)) or (is_beyond and _is_exact(expression))


_BOUNDS: dict[type[exp.Expr], tuple[type[exp.Expr], ...]] = {
    **dict.fromkeys((exp.GT, exp.GTE), (exp.GT, exp.GTE)),
    **dict.fromkeys((exp.LT, exp.LTE), (exp.LT, exp.LTE)),
}


def is_not_true(parts: Sequence[exp.Expr], known: Sequence[exp.Expr]) -> exp.Expr:
    """Return the condition that not all `parts` are true, where `known` are.

    It is a comparison if it can be, by which files without such rows are skipped.
    """
    [*rest, part] = parts
    compared = _compared(part)
    # A comparison that is true has no NULL.
    if not rest and type(part) in _OPPOSITE and compared and any(_is_about(each, compared[1]) for each in known):
        return _OPPOSITE[type(part)](this=part.this.copy(), expression=part.expression.copy())
    whole = exp.and_(*(each.copy() for each in parts), copy=False)
    return exp.Not(this=exp.Coalesce(this=exp.paren(whole, copy=False), expressions=[exp.false()]))


def _is_about(part: exp.Expr, expression: exp.Expr) -> bool:
    compared = _compared(part)
    return compared is not None and compared[1] == expression


def _compared(part: exp.Expr) -> tuple[type[exp.Expr], exp.Expr, tuple[_Value, ...]] | None:
    """Return a comparison as its operator, the compared expression and the constants, with EQ for a list of them."""
    part = part.unnest()
    if isinstance(part, exp.In):
        values = [_constant(value, part.this.type) for value in part.expressions]
        known = tuple(value for value in values if value is not None)
        is_list = bool(known) and len(known) == len(values) and not part.args.get("query")
        return (exp.EQ, part.this.unnest(), known) if is_list else None
    if type(part) not in _SWAPPED:
        return None
    left, right = part.this.unnest(), part.expression.unnest()
    for operator, one, other in ((type(part), left, right), (_SWAPPED[type(part)], right, left)):
        value = _constant(other, one.type)
        if value is not None and _constant(one) is None:
            return operator, one, (value,)
    return None


def _constant(part: exp.Expr, type_: exp.DataType | None = None) -> _Value | None:
    """Return the value of a constant; a text without a type of its own is one of `type_`."""
    part = part.unnest()
    if isinstance(part, exp.Neg):
        value = _constant(part.this)
        return -value if isinstance(value, Decimal) else None
    if isinstance(part, exp.Literal):
        return _of_text(part.name, type_) if part.is_string else Decimal(part.name)
    if isinstance(part, exp.Cast) and isinstance(part.this, exp.Literal) and part.this.is_string:
        return _of_text(part.this.name, part.to)
    return None


def _of_text(text: str, type_: exp.DataType | None) -> _Value | None:
    """Return a date or time in ISO's form, or the text for any other type."""
    try:
        if type_ is not None and type_.this == exp.DType.DATE:
            return date.fromisoformat(text)
        return datetime.fromisoformat(text) if type_ is not None and type_.this == exp.DType.TIMESTAMP else text
    except ValueError:
        return None


_EXACT = (
    exp.DType.SMALLINT, exp.DType.INT, exp.DType.BIGINT, exp.DType.DECIMAL, exp.DType.DATE, exp.DType.TIMESTAMP,
)  # fmt: skip


def _is_exact(expression: exp.Expr) -> bool:
    return expression.type is not None and expression.type.this in _EXACT


def _holds(value: _Value, operator: type[exp.Expr], limits: tuple[_Value, ...], is_exact: bool) -> bool:
    """Return whether a constant meets a comparison."""
    if operator is exp.EQ:
        return value in limits
    [limit] = limits
    if operator in (exp.GTE, exp.LTE) and value == limit:
        return True
    is_less, is_more = _is_less(value, limit), _is_less(limit, value)
    if operator is exp.NEQ:
        return is_exact and (is_less or is_more)
    return (is_more if operator in (exp.GT, exp.GTE) else is_less) and (is_exact or operator in (exp.GTE, exp.LTE))


def _is_less(one: _Value, other: _Value) -> bool:
    """Return whether one constant is less than another one of the same type. False where these cannot be compared."""
    if type(one) is not type(other) or isinstance(one, str):
        return False
    try:
        return one < other  # type: ignore[operator]
    except TypeError:  # a time with and one without a time zone
        return False
