"""Converts between Sparkwave's types and sqlglot's, which are in the form that DuckDB's dialect prints."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from functools import lru_cache

import sqlglot
from sqlglot import exp

from sparkwave.catalog.errors import NUMERIC_VALUE_OUT_OF_RANGE, Error
from sparkwave.catalog.types import (
    DEFAULT_NUMERIC,
    DOUBLE,
    FLOAT_DIGITS,
    MOST_DIGITS,
    NUMERIC,
    QUOTIENT,
    QUOTIENT_NUMERIC,
    REAL,
    VARCHAR,
    Type,
    duckdb_type,
    map_type,
    struct_type,
)
from sparkwave.planner.parse.constant_marks import as_constant
from sparkwave.planner.parse.constant_runs import ConstantRun
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.type_text import NAMED

# Marks DuckDB's JSON, which is jsonb, apart from the json that a user writes.
IS_JSONB = "jsonb"
_UNTOLD = (exp.DataType.Type.UNKNOWN, exp.DataType.Type.NULL)


def data_type(type_: Type) -> exp.DataType:
    """Return sqlglot's form of a type, with the name of a user's type."""
    made = _data_type(type_).copy()
    if type_.named is not None:
        made.meta[NAMED] = type_.named
    return made


def text_name(type_: Type) -> str:
    """Return the name of a type for `planner.parse.literals.engine_text`."""
    if type_.name == "jsonb":  # whose DataType is DuckDB's JSON
        return "JSONB" + "[]" * type_.dimensions
    return data_type(type_).sql(dialect="postgres").upper()


@lru_cache(maxsize=1000)
def _data_type(type_: Type) -> exp.DataType:
    made = exp.DataType.build(type_.duckdb(), dialect="duckdb")
    for kind in made.find_all(exp.DataType):
        if kind.this == exp.DType.JSON:
            kind.meta[IS_JSONB] = True
    return made


def stored_value(type_: Type, stored: exp.Expr) -> exp.Expr:
    """Return the value of a lake column, as `Type.from_lake`. `stored` is part of the result or copied into it."""
    if type_.is_read_as_stored:
        return stored
    value = _stored_value(type_).copy()
    for place in [found for found in value.find_all(exp.Column) if found.name == _STORED and not found.this.quoted]:
        place.replace(stored.copy())
    return value


_STORED = "stored"  # users' names are quoted


@lru_cache(maxsize=1000)
def _stored_value(type_: Type) -> exp.Expr:
    return sqlglot.parse_one(type_.from_lake(_STORED), read="duckdb")


def sql_type(kind: exp.DataType | None) -> Type | None:
    """Return the type of a sqlglot type; None for an unknown one, NULL's, or an unsupported one."""
    if kind is None or not isinstance(kind, exp.DataType) or kind.this in _UNTOLD:
        return None
    if _holds_parts(kind):
        found, named = _with_parts(kind), kind.meta.get(NAMED)
        return replace(found, named=named) if found is not None and named is not None else found
    if kind.this == exp.DataType.Type.BIGDECIMAL:
        return NUMERIC
    if kind.this == exp.DataType.Type.DOUBLE:
        return DOUBLE
    if kind.this == exp.DataType.Type.FLOAT:
        return REAL
    if kind.this in exp.DataType.TEXT_TYPES:
        return VARCHAR
    if kind.this in (exp.DataType.Type.JSON, exp.DataType.Type.JSONB):
        return Type("jsonb")
    if kind.this == exp.DataType.Type.USERDEFINED or not all(
        isinstance(p, exp.DataTypeParam) for p in kind.expressions
    ):
        return _parsed_type(kind)
    return _plain_type(kind.this, *(parameter.name for parameter in kind.expressions))


@lru_cache(maxsize=1000)
def _plain_type(name: exp.DType, *numbers: str) -> Type | None:
    parameters = [exp.DataTypeParam(this=exp.Literal.number(number)) for number in numbers]
    return _parsed_type(exp.DataType(this=name, expressions=parameters))


def _parsed_type(kind: exp.DataType) -> Type | None:
    try:
        found = duckdb_type(kind.sql(dialect="duckdb"))
    except Error:
        return None
    is_default = found.name == "numeric" and (found.precision, found.scale) == DEFAULT_NUMERIC
    return Type("numeric", dimensions=found.dimensions) if is_default else found


def _holds_parts(kind: exp.DataType) -> bool:
    is_array = kind.this == exp.DataType.Type.ARRAY and len(kind.expressions) == 1
    return _holds_parts(kind.expressions[0]) if is_array else kind.this in (exp.DType.STRUCT, exp.DType.MAP)


def _with_parts(kind: exp.DataType) -> Type | None:
    """Return a struct or a map, or an array of them.

    Fields are distinguished from their types, as text has other names in DuckDB.
    """
    if kind.this == exp.DataType.Type.ARRAY:
        element = sql_type(kind.expressions[0])
        return replace(element, dimensions=element.dimensions + 1) if element is not None else None
    fields: list[tuple[str | None, Type]] = []
    for part in kind.expressions:
        type_ = sql_type(part.args.get("kind") if isinstance(part, exp.ColumnDef) else part)
        if type_ is None:
            return None
        name = part.this if isinstance(part, exp.ColumnDef) else None
        fields.append((folded(name) if name is not None else None, type_))
    if kind.this == exp.DType.MAP:
        (_, key), (_, value) = fields
        return map_type(key, value)
    return struct_type(fields)


def type_of_part(node: exp.Expr) -> Type | None:
    """Return the type of an annotated node; None for NULL and a string literal, which take the type of their place."""
    if isinstance(node, exp.Literal) and node.is_string:
        return None
    return sql_type(node.type)


def with_written_numerics(tree: exp.Expr, in_arrays: bool = True, have_exponents: bool = True) -> exp.Expr:
    """Return the tree, changed in place, where `numeric` in a user's cast has the digits of a QUOTIENT.

    `in_arrays` tells whether elements of arrays, and fields of structs, have them too. With `have_exponents` a number
    such as 1e-5 is a numeric, which DuckDB takes for a double.
    """
    if have_exponents:
        for literal in list(tree.find_all(exp.Literal)):
            if (number := _without_exponent(literal)) is not None:
                literal.replace(number)
    for cast in tree.find_all(exp.Cast):
        to, value = cast.args["to"], cast.this
        for element in to.find_all(exp.DataType) if in_arrays else ():
            if element.this == exp.DType.DECIMAL and not element.expressions and element is not to:
                element.set("expressions", data_type(QUOTIENT).expressions)
        if to.this == exp.DType.DECIMAL and has_exponent(value):
            value.replace(exp.Literal.string(value.sql()))
        if to.this == exp.DType.DECIMAL and not to.expressions:
            cast.set("to", data_type(QUOTIENT))
        if to.this in _FLOATS:
            value.replace(in_float_text(value))
    return tree


_FLOATS = (exp.DType.FLOAT, exp.DType.DOUBLE)


def in_float_text(value: exp.Expr) -> exp.Expr:
    """Return a constant that becomes a float as a text if it is a number with many digits; any other value as it is.

    A ConstantRun becomes one of texts. Raises Error 22003 for a number beyond all floats.
    """
    if isinstance(value, ConstantRun):
        return value.in_texts()
    literal = value.this if isinstance(value, exp.Neg) else value
    is_number = isinstance(literal, exp.Literal) and not literal.is_string
    if is_number and has_exponent(literal):
        if math.isinf(float(literal.name)):
            message = f'"{value.sql()}" is out of range for type double precision'
            raise Error(message, NUMERIC_VALUE_OUT_OF_RANGE)
        return value
    is_long = is_number and (
        len(literal.name.replace(".", "").lstrip("0")) > FLOAT_DIGITS or len(literal.name) > MOST_DIGITS
    )
    return exp.Literal.string(value.sql()) if is_long else value


def _without_exponent(literal: exp.Literal) -> exp.Expr | None:
    """Return a number with an exponent as a numeric; None for others, and where it has more digits than a numeric."""
    if not has_exponent(literal):
        return None
    whole, _, fraction = f"{Decimal(literal.name):f}".partition(".")
    precision, scale = QUOTIENT_NUMERIC
    if len(whole) > precision - scale or len(fraction) > scale:
        return None
    number = exp.Literal.number(f"{whole}.{fraction}" if fraction else whole)
    is_count = isinstance(literal.parent, exp.Limit | exp.Offset | exp.Fetch)
    return number if fraction or is_count else as_constant(exp.cast(number, exp.DType.DECIMAL))


def is_quotient(kind: exp.DataType) -> bool:
    """Return whether a DataType is `numeric` as a user writes it."""
    return kind.this == exp.DType.DECIMAL and sql_type(kind) == QUOTIENT


def has_exponent(value: exp.Expr) -> bool:
    """Return whether a constant is a number with an exponent, as in 1e18.

    It is a numeric, which DuckDB takes for a double.
    """
    literal = value.this if isinstance(value, exp.Neg) else value
    return isinstance(literal, exp.Literal) and not literal.is_string and "e" in literal.name.lower()
