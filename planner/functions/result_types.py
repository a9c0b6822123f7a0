"""Rules for the type of a function's result, by the types of its arguments.

A type of None is an argument of unknown type: NULL or a string literal, which takes the type of its place. A rule
returns None when the result's type is unknown.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog.types import (
    BIGINT,
    BYTEA,
    DATE,
    DEFAULT_NUMERIC,
    DOUBLE,
    INTEGER,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    QUOTIENT,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    VARCHAR,
    Type,
    struct_type,
)
from sparkwave.planner.since import EXACT_DIGITS, NUMERIC_LOGARITHMS, WIDE_ARRAYS, is_since

Known = Type | None

# From narrow to wide: Postgres' implicit casts go to the right.
NUMBERS = ("smallint", "integer", "bigint", "numeric", "real", "double precision")
TIMES = ("date", "timestamp without time zone", "timestamp with time zone")


def keeps_digits() -> bool:
    """Return whether computed numerics keep more than ten digits after the point."""
    return is_since(EXACT_DIGITS)


def computed(scale: int) -> Type:
    """Return the type of a computed numeric with at most so many digits after the point."""
    return Type("numeric", DEFAULT_NUMERIC[0], scale) if keeps_digits() else NUMERIC


def _holding(*exact: Type) -> Type:
    """Return the type of numerics that are values of some exact types."""
    return computed(max(type_.digits[1] if type_.name == "numeric" else 0 for type_ in exact))


def common(types: tuple[Known, ...]) -> Known:
    """Return the common type of several values: of CASE, COALESCE, ARRAY[..], greatest, UNION."""
    known = [type_ for type_ in types if type_ is not None]
    if not known:
        return None
    result = known[0]
    for type_ in known[1:]:
        result = _wider(result, type_)
    return result


def _wider(left: Type, right: Type) -> Type:
    if left.is_struct and right.is_struct and len(left.fields) == len(right.fields):
        return _wider_struct(left, right)
    if left.is_map and right.is_map and left != right:
        entry = struct_type(zip(("key", "value"), (t for _, t in left.fields), strict=True))
        return replace(left, fields=_wider_struct(entry, replace(entry, fields=right.fields)).fields)
    if QUOTIENT in (left, right) and _is_exact(left) and _is_exact(right):
        return QUOTIENT
    if left.name == right.name and left.dimensions == right.dimensions:
        if left == right:
            return left
        is_numeric = left.name == "numeric"
        return replace(_holding(left, right), dimensions=left.dimensions) if is_numeric else left.without_digits
    if left.dimensions or right.dimensions:
        return left
    for ladder in (NUMBERS, TIMES):
        if left.name in ladder and right.name in ladder:
            wider = max(left, right, key=lambda type_: ladder.index(type_.name))
            return _holding(left, right) if wider.name == "numeric" else wider
    return right if left.is_text else left


def _is_exact(type_: Type) -> bool:
    return type_.is_numeric and not type_.is_float


def _wider_struct(left: Type, right: Type) -> Type:
    """Return the wider struct field by field, with the names of the struct that has its own names."""
    has_names = any(name != f"f{number}" for number, (name, _) in enumerate(left.fields, start=1))
    named = left if has_names else right
    pairs = zip(left.fields, right.fields, strict=True)
    return struct_type(
        (name, _wider(one, other)) for (name, _), ((_, one), (_, other)) in zip(named.fields, pairs, strict=True)
    )


def holds_struct(type_: Known) -> bool:
    """Return whether a type is a struct or an array of structs."""
    return type_ is not None and type_.name == "struct"


def holds_json(type_: Known) -> bool:
    """Return whether a type is json, an array of it, or a struct with it."""
    return type_ is not None and type_.holds_json


def row_of(types: tuple[Known, ...]) -> Known:
    """Return the type of ROW(..): its fields are f1, f2, …; an unknown type is text."""
    return struct_type((None, type_ or VARCHAR) for type_ in types)


def field_place(owner: Type, field: exp.Expr) -> int | None:
    """Return the place of a field in a struct, from 1; None when there is no field of this name."""
    name = field.name if field.args.get("quoted") else field.name.lower()
    return next((place for place, (own, _) in enumerate(owner.fields, start=1) if own == name), None)


def first(types: tuple[Known, ...]) -> Known:
    return types[0] if types else None


def number_of_first(types: tuple[Known, ...]) -> Known:
    return number(types[:1])


def number(types: tuple[Known, ...]) -> Known:
    """Return double precision, or numeric when an argument is numeric and none is a float: ceil, round."""
    wide = _numeric(types)
    if wide is None:
        return DOUBLE
    return QUOTIENT if wide.digits[1] > DEFAULT_NUMERIC[1] else NUMERIC


def _without_digits(numeric: Type) -> Type:
    """Return numeric with room for the digits of one."""
    return QUOTIENT if numeric == QUOTIENT else computed(numeric.digits[1])


def real_number(types: tuple[Known, ...]) -> Known:
    """Return the type of `number` for functions whose results have decimal places of their own: sqrt, power."""
    return DOUBLE if _numeric(types) is None else QUOTIENT


def real_number_of_first(types: tuple[Known, ...]) -> Known:
    return real_number(types[:1])


def logarithm(types: tuple[Known, ...]) -> Known:
    """Return the type of log: with a base it is a numeric, unless an argument is a float."""
    if len(types) < 2 or not is_since(NUMERIC_LOGARITHMS):
        return real_number(types)
    return DOUBLE if any(type_ in (REAL, DOUBLE) for type_ in types) else QUOTIENT


def _numeric(types: tuple[Known, ...]) -> Known:
    """Return the common type of arguments that are numerics, maybe with integers."""
    wide = common(types)
    return wide if wide is not None and wide.name == "numeric" and not wide.dimensions else None


def bytea_or_text(types: tuple[Known, ...]) -> Known:
    return BYTEA if types and types[0] == BYTEA else VARCHAR


def truncated(types: tuple[Known, ...]) -> Known:
    """Return the type of date_trunc: for a date it is a timestamp, for a time an interval."""
    value = types[1] if len(types) > 1 else None
    return TIMESTAMP if value in (DATE, None) else INTERVAL if value == TIME else value


def array_of_first(types: tuple[Known, ...]) -> Known:
    return _array(types, 0, 1)


def array_of_second(types: tuple[Known, ...]) -> Known:
    return _array(types, 1, 0)


def _array(types: tuple[Known, ...], array: int, element: int) -> Known:
    if len(types) != 2:
        return None
    one = types[element]
    return of_arrays(types) if types[array] is not None else array_type(one) if one is not None else None


def array_with(types: tuple[Known, ...]) -> Known:
    """Return the type of an array that may get, or is compared with, the elements behind it."""
    return (of_arrays(types) or types[0]) if types and types[0] is not None else None


def array_of_results(types: tuple[Known, ...]) -> Known:
    """Return the type of array_transform, whose second argument has the type of a lambda's results; text by default."""
    return array_type(types[1] or VARCHAR) if len(types) == 2 else None


def array_type(element: Type) -> Type:
    return replace(element, dimensions=element.dimensions + 1)


def element_of_first(types: tuple[Known, ...]) -> Known:
    array = first(types)
    return array.element if array is not None and array.dimensions else None


def rows_of_elements(types: tuple[Known, ...]) -> Type:
    """Return the type of an array of rows, each of one element of every array."""
    return array_type(struct_type((None, element_of_first((type_,)) or VARCHAR) for type_ in types))


# The fields of the rows of jsonb_each and the like.
PAIR = ("key", "value")


def rows_of_pairs(types: tuple[Known, ...]) -> Type:
    """Return the type of an array of rows of a key and a value, by the types of the arrays of both."""
    return array_type(
        struct_type((name, element_of_first((t,)) or VARCHAR) for name, t in zip(PAIR, types, strict=True))
    )


def sum_of_first(types: tuple[Known, ...]) -> Known:
    """Return the type of the sum of an array's elements, as that of sum()."""
    element = element_of_first(types)
    if element in (SMALLINT, INTEGER):
        return BIGINT
    if element is not None and element.name in ("bigint", "numeric"):
        return _without_digits(element)
    return element


def is_numeric(type_: Known) -> bool:
    return type_ is not None and type_.is_numeric


def addition(types: tuple[Known, ...]) -> Known:
    """Return the type of `+`: of numbers, or of a date or time and a duration."""
    left, right = types
    if DATE in (left, right):
        other = right if left == DATE else left
        if other is None or other.is_integer:
            return DATE
        return TIMESTAMP if other in (INTERVAL, TIME) else None
    for moment in (TIMESTAMP, TIMESTAMPTZ, TIME, INTERVAL):
        if moment in (left, right):
            return moment
    return arithmetic(types)


def subtraction(types: tuple[Known, ...]) -> Known:
    """Return the type of `-`: of numbers, of dates, times and durations, or of jsonb and arrays without an element."""
    left, right = types
    if left == DATE:
        if right is None or right == DATE:
            return INTEGER
        return DATE if right.is_integer else TIMESTAMP if right in (INTERVAL, TIME) else INTERVAL
    if left in (TIMESTAMP, TIMESTAMPTZ):
        return left if right in (INTERVAL, TIME) else INTERVAL
    if left == INTERVAL:
        return INTERVAL
    if right in (DATE, TIMESTAMP, TIMESTAMPTZ) and left is None:
        return INTEGER if right == DATE else INTERVAL
    if left == TIME or (right == TIME and left is None):
        return INTERVAL if right == TIME else TIME
    if left == JSONB or (left is not None and left.dimensions):
        return left
    return addition(types)


def multiplication(types: tuple[Known, ...]) -> Known:
    """Return the type of `*` and of `/`: a time is an interval there."""
    return INTERVAL if INTERVAL in types or TIME in types else arithmetic(types)


def division(types: tuple[Known, ...]) -> Known:
    """Return the type of `/`: for exact numbers it has the scale of an average."""
    made = multiplication(types)
    return QUOTIENT if made is not None and made.name == "numeric" and not made.dimensions else made


def arithmetic(types: tuple[Known, ...]) -> Known:
    """Return the common type of numbers."""
    if any(type_ is not None and not is_numeric(type_) for type_ in types):
        return None
    wide = common(types)
    if wide == REAL and not all(type_ in (REAL, None) for type_ in types):
        return DOUBLE
    return _without_digits(wide) if wide is not None and wide.name == "numeric" else wide


def of_arrays(types: tuple[Known, ...]) -> Known:
    """Return the type of arrays joined, or of an array with elements: as many dimensions, and the elements' type."""
    arrays = [side for side in types if side is not None and side.dimensions]
    if not arrays:
        return None
    most = max(arrays, key=lambda side: side.dimensions)
    elements = tuple(replace(type_, dimensions=0) for type_ in types if type_ is not None)
    if not is_since(WIDE_ARRAYS) or not all(map(is_numeric, elements)):
        return most
    element = common(elements)
    return replace(element, dimensions=most.dimensions) if element is not None else most


def part_of_document(types: tuple[Known, ...]) -> Known:
    """Return the type of `->` and `#>`: json of json, jsonb of jsonb."""
    return JSON if types and types[0] == JSON else JSONB


def concatenation(types: tuple[Known, ...]) -> Known:
    """Return the type of `||`: arrays and their elements, jsonb, bytea, else text."""
    left, right = types
    if (array := of_arrays(types)) is not None:
        return array
    for side, other in ((left, right), (right, left)):
        if side in (JSONB, BYTEA) and (other is None or other == side):
            return side
    return VARCHAR
