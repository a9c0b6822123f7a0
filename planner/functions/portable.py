"""Which expressions are proven to give the same result on DuckDB and on Spark.

A view that uses anything else runs on DuckDB alone. `tests/test_engines.py` evaluates every case of
`tests/golden/functions.txt` that passes here on both engines, and every kind of node named here is in one of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from catalog.types import DATE, INTERVAL, TIMESTAMP, TIMESTAMPTZ, Type
from planner.functions.functions import FUNCTIONS
from planner.functions.operators import as_call, type_of_part
from planner.functions.result_types import Known
from planner.functions.spark_spelling import spark_form
from planner.functions.typed import sql_type

_Types = tuple[Known, ...]

# Decimal digits that a float holds exactly, and DuckDB's narrower form of a decimal.
_EXACT_IN_FLOAT, _NARROW, _WIDEST = 15, 18, 38
_FLOATS = ("real", "double precision")
_COMPARABLE = frozenset(
    {
        "boolean", "smallint", "integer", "bigint", "numeric", "real", "double precision", "character varying", "date",
        "timestamp without time zone", "timestamp with time zone",
    }
)  # fmt: skip


def _anything(types: _Types) -> bool:
    return True


def _plain(type_: Known) -> bool:
    return type_ is None or (type_.name in _COMPARABLE and not type_.dimensions)


def _exact(types: _Types) -> bool:
    """No numeric meets a float, unless it has so few digits that its float is the same on both engines."""
    if not any(type_ is not None and type_.name in _FLOATS for type_ in types):
        return True
    numerics = [type_ for type_ in types if type_ is not None and type_.name == "numeric"]
    return all(type_.precision is not None and type_.precision <= _EXACT_IN_FLOAT for type_ in numerics)


def _comparable(types: _Types) -> bool:
    zones = {type_.name for type_ in types if type_ in (DATE, TIMESTAMP, TIMESTAMPTZ) and type_ is not None}
    return all(map(_plain, types)) and _exact(types) and not (len(zones) > 1 and TIMESTAMPTZ.name in zones)


def _alike(types: _Types) -> bool:
    """Of one type, so that no engine has to find a common one; integers meet in the wider on both."""
    known = {type_ for type_ in types if type_ is not None}
    return _comparable(types) and (len(known) <= 1 or all(type_.is_integer for type_ in known))


def _digits(type_: Known) -> tuple[int, int] | None:
    """Digits before and after the point of an exact number; None for another or one without bounds."""
    if type_ is None or type_.dimensions:
        return None
    whole = {"smallint": 5, "integer": 10, "bigint": 19}.get(type_.name)
    if whole is not None:
        return whole, 0
    if type_.name != "numeric" or type_.precision is None:
        return None
    return type_.precision - (type_.scale or 0), type_.scale or 0


def _numbers(types: _Types, product: bool = False) -> bool:
    if any(type_ is None or not type_.is_numeric for type_ in types) or not _exact(types):
        return False
    if not any(type_ is not None and type_.name == "numeric" for type_ in types):
        return (
            len({type_ for type_ in types if type_ is not None and type_.name == "real"}) == 0 or len(set(types)) == 1
        )
    if any(type_ is not None and type_.name in _FLOATS for type_ in types):
        return True
    known = [_digits(type_) for type_ in types]
    parts = [part for part in known if part is not None]
    if len(parts) != len(known):
        return False
    if product:
        return sum(map(sum, parts)) < _WIDEST and sum(scale for _, scale in parts) <= 10
    total = max(whole for whole, _ in parts) + max(scale for _, scale in parts) + 1
    return total <= _NARROW or (total <= _WIDEST and max(map(sum, parts)) > _NARROW)


def _sum(types: _Types) -> bool:
    return _numbers(types) or _moved(types)


def _moved(types: _Types) -> bool:
    """A date and whole days, or a moment and an interval."""
    days = types[0] == DATE and types[1] in (DATE, Type("integer"), Type("smallint"))
    return days or (types[0] in (DATE, TIMESTAMP, TIMESTAMPTZ) and types[1] == INTERVAL)


def _product(types: _Types) -> bool:
    return _numbers(types, product=True)


def _quotient(types: _Types) -> bool:
    """Of integers or floats; not of numerics, whose scales the engines choose by other rules."""
    no_numeric = all(type_ is not None and type_.name not in ("numeric", "real") for type_ in types)
    return no_numeric and _numbers(types)


def _integers(types: _Types) -> bool:
    return all(type_ is not None and type_.name in ("integer", "bigint") for type_ in types)


def _signed(types: _Types) -> bool:
    return types[0] is not None and types[0].is_numeric


def _text(types: _Types) -> bool:
    return all(
        type_ is None or type_.is_text or (type_.name in ("integer", "bigint") and not type_.dimensions)
        for type_ in types
    )


def _one_text(types: _Types) -> bool:
    return all(type_ is None or type_.is_text for type_ in types)


def _elements(types: _Types) -> bool:
    return _alike(types) and not any(type_ is not None and type_.name == "numeric" for type_ in types)


# Kinds of nodes, with what the types of their parts have to be.
PORTABLE: dict[type[exp.Expr], Callable[[_Types], bool]] = {
    **dict.fromkeys(
        (exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Paren, exp.And, exp.Or, exp.Not, exp.Is,
         exp.If), _anything,
    ),
    **dict.fromkeys(
        (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In),
        _comparable,
    ),
    **dict.fromkeys((exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least), _alike),
    exp.Neg: _signed,
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Mul: _product,
    exp.Div: _quotient,
    exp.Mod: _integers,
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot), _integers),
    exp.DPipe: _text,
    exp.Like: _one_text,
    exp.Array: _elements,
}  # fmt: skip

# Casts, from a type to those it goes to alike. A numeric goes to a float only with few digits.
_INTEGERS = frozenset({"smallint", "integer", "bigint"})
_CASTS: dict[str, frozenset[str]] = {
    "boolean": frozenset({"integer", "character varying"}),
    "smallint": _INTEGERS | {"double precision", "numeric", "character varying"},
    "integer": _INTEGERS | {"real", "double precision", "numeric", "character varying", "boolean"},
    "bigint": _INTEGERS | {"double precision", "numeric", "character varying"},
    "real": frozenset({"double precision"}),
    "double precision": frozenset({"integer", "smallint"}),
    "numeric": _INTEGERS | {"numeric", "double precision"},
    "date": frozenset({"timestamp without time zone", "timestamp with time zone"}),
    "timestamp without time zone": frozenset({"date", "timestamp with time zone"}),
    "timestamp with time zone": frozenset({"date", "timestamp without time zone"}),
}
# Constants that both engines read alike.
_CONSTANTS: dict[str, str] = {
    "date": r"\d{4}-\d\d-\d\d",
    "timestamp without time zone": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?",
    "timestamp with time zone": r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d",
    "character varying": r"(?s).*",
}
# A pattern in which the escape character only stands before what it can escape.
_PATTERN = re.compile(r"(?:[^\\]|\\[%_\\])*", re.DOTALL)
_UNITS = frozenset({"year", "month", "week", "day", "hour", "minute", "second"})


def unproven_part(expression: exp.Expr) -> exp.Expr | None:
    """The first part of an expression that is not proven; None if all are."""
    if _is_made_by_planner(expression):
        return None
    if not _is_proven(expression):
        return expression
    call = as_call(expression)
    children = call[1] if call is not None else list(expression.iter_expressions())
    for child in children:
        if not isinstance(child, exp.DataType | exp.Interval) and (found := unproven_part(child)) is not None:
            return found
    return None


def _is_proven(node: exp.Expr) -> bool:
    if isinstance(node, exp.Cast):
        return _is_proven_cast(node)
    if isinstance(node, exp.Case):
        return _alike(tuple(type_of_part(value) for value in _results(node)))
    if isinstance(node, exp.Like):
        pattern = node.expression
        if not pattern.is_string or not _PATTERN.fullmatch(pattern.name):
            return False
    call = as_call(node)
    if call is not None and call[0] in FUNCTIONS:
        return spark_form(*call) is not None and _has_constants(*call)
    types = tuple(_type(part) for part in node.iter_expressions())
    if isinstance(node, exp.Add | exp.Sub) and INTERVAL in types and not _is_simple_interval(node.expression):
        return False
    check = PORTABLE.get(type(node))
    return check is not None and check(types)


def _type(part: exp.Expr) -> Known:
    """The type of a part; of a constant with its own digits."""
    if isinstance(part, exp.Literal) and not part.is_string and re.fullmatch(r"\d*\.\d+", part.name):
        whole, fraction = part.name.split(".")
        return Type("numeric", len(whole.lstrip("0")) + len(fraction), len(fraction))
    return type_of_part(part)


def _has_constants(name: str, arguments: list[exp.Expr]) -> bool:
    """Whether the digits of a rounding are constant, as both engines want them."""
    return name != "round" or len(arguments) == 1 or isinstance(arguments[1], exp.Literal)


def _results(case: exp.Expr) -> list[exp.Expr]:
    branches = [branch.args["true"] for branch in case.args["ifs"]]
    return [*branches, *([default] if (default := case.args.get("default")) is not None else [])]


def _is_simple_interval(node: exp.Expr) -> bool:
    """A constant of one unit, such as INTERVAL '1 month'."""
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        return False
    return node.this.name.isdigit() and node.text("unit").lower().removesuffix("s") in _UNITS


def _is_proven_cast(node: exp.Cast) -> bool:
    value, target = node.this, sql_type(node.to)
    if isinstance(value, exp.Null):
        return True
    if target is None or target.dimensions:
        return False
    if value.is_string:
        pattern = _CONSTANTS.get(target.name)
        return pattern is not None and re.fullmatch(pattern, value.name) is not None and not node.to.expressions
    source = type_of_part(value)
    if source is None or source.dimensions or (target.is_text and node.to.expressions):
        return False
    return source == target or (target.name in _CASTS.get(source.name, ()) and _exact((source, target)))


def _is_made_by_planner(node: exp.Expr) -> bool:
    """The two halves of avg: a stored sum or count as a double."""
    if isinstance(node, exp.Div):
        return all(_is_made_by_planner(side.unnest()) for side in (node.this, node.expression))
    if not isinstance(node, exp.Cast):
        return False
    is_state = isinstance(node.this, exp.Column) and node.this.type is None and node.this.name.startswith("_")
    return is_state and node.to.this.value == "DOUBLE"
