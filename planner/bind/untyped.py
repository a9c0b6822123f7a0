"""Gives untyped text literals the type of their context, as for a parameter (PostgreSQL documentation 10.2, 10.5).

The engines do so too, but read the text in their own way: they read no arrays, other bytes, fewer dates.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial

from sqlglot import exp

from sparkwave.catalog.errors import DATETIME_FIELD_OVERFLOW, Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.moment_texts import MDY
from sparkwave.catalog.moment_words import is_relative
from sparkwave.catalog.types import (
    BOOLEAN,
    BYTEA,
    DATE,
    DOUBLE,
    INTERVAL,
    JSON,
    JSONB,
    NUMERIC,
    QUOTIENT,
    TIME,
    TIMESTAMP,
    TIMESTAMPTZ,
    Type,
)
from sparkwave.planner.batch.parameters import Seen, type_by_place
from sparkwave.planner.batch.typer import Typer
from sparkwave.planner.bind.binder import BoundQuery, annotate_again, data_type
from sparkwave.planner.bind.user_types import check_label
from sparkwave.planner.functions.typed import text_name
from sparkwave.planner.functions.unstable import unstable
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.literals import (
    IS_NEW,
    MOMENTS,
    definition_text,
    engine_text,
    is_of_days,
    moment_now,
)
from sparkwave.planner.parse.text_values import decode_text
from sparkwave.planner.parse.trees import at, position_of

_PLACES = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Nullif, exp.In, exp.Between,
    exp.Coalesce, exp.Greatest, exp.Least, exp.Case, exp.If,
)  # fmt: skip
_COUNTS = (exp.Limit, exp.Offset, exp.Fetch, exp.BitwiseLeftShift, exp.BitwiseRightShift)
_BITS = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor)
_FACTORS = (exp.Mul, exp.Div, exp.Mod)
_OUTPUTS = (exp.Select, exp.Alias, exp.Tuple)
_SUMS = (exp.Add, exp.Sub)
# What the engines read as an integer, and PostgreSQL does not: 1.5 as 2, 1e3, 1_000, 0x10.
_NO_INTEGER = re.compile(r"\s*[-+]?(?!\d+\s*$)(?:0[xXoObB]\w+|(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*")
_IN_NO_INTEGER = re.compile("[.eE_xXoObB]")
_INTEGERS = ("smallint", "integer", "bigint")
_DECIMAL = re.compile(r"\s*(\d+(\.\d*)?|\.\d+)\s*")
_COMPARED = (exp.Predicate, exp.Nullif, exp.In)
_READ_OTHERWISE = (BYTEA, DATE, TIMESTAMP, TIMESTAMPTZ, DOUBLE, JSON, JSONB, TIME, INTERVAL)


def type_literals(bound: BoundQuery, has_typed_outputs: bool = True, order: str | None = None) -> None:
    """Give the literals of a bound query of a definition their types, and type the expressions over them again.

    Without `has_typed_outputs` texts beside numbers or booleans in a set operation made texts of them. `order` is the
    session's order of dates, for `definition_text`; None for a stored definition. Raises Error 0A000 for words for the
    time in a new definition, since their values change while the tables do not.
    """
    seen: Seen = {}
    has_checked = holds_checked(bound.tree, bound.tables.values())
    types = [
        (literal, type_by_place(literal, seen)) for literal in _untyped(bound.tree, has_checked, has_typed_outputs)
    ]
    read = partial(_in_definition, order=order)
    given = [_give(literal, type_, read) for literal, type_ in types]
    if any(given):
        annotate_again(bound)
    if order is not None:
        for cast in bound.tree.find_all(exp.Cast):
            if cast.this.is_string and is_relative(cast.this.name) and _name(cast.to) in MOMENTS:
                raise unstable(cast.this)


def with_literals_of(tree: exp.Expr, typed: Typer, has_checked: bool, order: str) -> exp.Expr:
    """Type the literals of an untyped tree, changed in place. `order` is that of dates in them.

    Raises Error 22P02 for a text beside a number that is none.
    """
    literals = list(_untyped(tree, has_checked, has_typed_outputs=True))
    if not literals:
        return tree
    seen: Seen = {}
    places = typed(tree, literals)
    types = [type_by_place(place, seen) if place is not None else None for place in places]
    for literal, type_ in zip(literals, types, strict=True):
        if type_ is not None and _may_pass(literal, type_):
            with at(literal):
                decode_text(literal.name, type_.without_digits)
        _give(literal, type_, partial(_in_query, order=order))
    return tree


def _may_pass(literal: exp.Expr, type_: Type) -> bool:
    """Return whether the engines may not refuse a text that is no value of its type for PostgreSQL.

    They read some as integers, or as arrays of some, and skip what COALESCE does not need.
    """
    if isinstance(literal.parent, exp.Substring):  # which has a pattern, too
        return False
    if isinstance(literal.parent, exp.Coalesce) and type_.is_numeric and not type_.dimensions:
        return True
    if type_.dimensions:
        return type_.name in _INTEGERS and _IN_NO_INTEGER.search(literal.name) is not None
    return type_.is_integer and _NO_INTEGER.fullmatch(literal.name) is not None


def with_literals_of_enums(tree: exp.Expr, enums: Mapping[str, Type]) -> None:
    """Let an expression over columns, changed in place, compare those that are enums as enums."""
    columns = [column for column in tree.find_all(exp.Column) if folded(column.this) in enums]
    for column in columns:
        type_ = enums[folded(column.this)]
        parent = column.parent
        for sibling in list(parent.iter_expressions()) if isinstance(parent, _PLACES) else ():
            if sibling.is_string:
                _give(sibling, type_, partial(_in_definition, order=None))
    for column in columns:
        column.replace(exp.Cast(this=column.copy(), to=data_type(enums[folded(column.this)])))


def holds_checked(tree: exp.Expr, read: Iterable[Relation]) -> bool:
    """Return whether a tree casts to enums or json, or reads columns of them: then any text may be one of them."""
    of_enum = (column.type.labels or column.type.holds_json for relation in read for column in relation.visible)
    kinds = (exp.DType.ENUM, exp.DType.UNION)
    return any(of_enum) or any(kind.args["this"] in kinds for kind in tree.find_all(exp.DataType))


def _untyped(tree: exp.Expr, has_checked: bool, has_typed_outputs: bool) -> Iterator[exp.Expr]:
    for literal in tree.find_all(exp.Literal):
        parent = literal.parent
        is_assigned = isinstance(parent, exp.EQ) and isinstance(parent.parent, exp.Update)
        is_placed = isinstance(parent, _PLACES) and not is_assigned and (has_checked or _may_be_misread(literal.name))
        is_argument = isinstance(parent, exp.Func | exp.Paren) and not isinstance(parent, exp.Cast)
        is_whole = isinstance(parent, (*_SUMS, *_COUNTS, *_BITS)) and _NO_INTEGER.fullmatch(literal.name) is not None
        is_bytes = isinstance(parent, exp.DPipe) and literal.name.startswith("\\")
        is_value = is_placed or is_argument or is_whole or is_bytes or isinstance(parent, _FACTORS)
        if literal.is_string and (is_value or _is_output(literal, has_checked or has_typed_outputs)):
            yield literal


def _is_output(literal: exp.Expr, may_be_any: bool) -> bool:
    """Return whether a text is an output of a set operation, or a value in FROM, that may be of another type."""
    parent = literal.parent
    if isinstance(parent, exp.Tuple):
        values = parent.parent
        is_one = isinstance(values, exp.Values) and isinstance(values.parent, exp.From | exp.Join | exp.Subquery)
    else:
        is_one = isinstance(parent, exp.Select | exp.Alias) and literal.find_ancestor(exp.SetOperation) is not None
    return is_one and (may_be_any or _may_be_misread(literal.name))


def _may_be_misread(text: str) -> bool:
    """Return whether a text is an array, a document, bytes, a time or an interval that the engines need otherwise, or a
    number that they round.
    """
    if text.lstrip()[:1] in ("{", "[", "\\"):
        return True
    if not any(character.isdigit() for character in text):
        return is_relative(text)
    return _NO_INTEGER.fullmatch(text) is not None or any(
        _is_changed(text, type_) for type_ in ("TIMESTAMPTZ", "INTERVAL", "TIME")
    )


def _is_changed(text: str, type_: str) -> bool:
    try:
        return engine_text(text, type_) != text
    except Error as error:
        return error.sqlstate == DATETIME_FIELD_OVERFLOW  # perhaps not in another order


# Returns the value of a literal of a type in the engines' form; None where it is left to the engine.
Read = Callable[[exp.Expr, str], exp.Expr | None]


def _in_query(literal: exp.Expr, type_: str, order: str) -> exp.Expr:
    now = moment_now(literal.name, type_)
    if now is not None:
        return now
    is_new = literal.meta.get(IS_NEW)
    read = definition_text if is_new else engine_text
    with at(literal):
        return exp.Literal.string(read(literal.name, type_, MDY if is_new is False else order))


def _in_definition(literal: exp.Expr, type_: str, order: str | None) -> exp.Expr | None:
    if order is not None:
        with at(literal):
            text = definition_text(literal.name, type_, order)
    elif is_relative(literal.name):
        return None
    else:
        try:
            text = engine_text(literal.name, type_)
        except Error:
            return None
    value = exp.Literal.string(text)
    value.meta.update(literal.meta)
    return value


def _name(type_: exp.Expr) -> str:
    return type_.sql(dialect="postgres").upper()


def _give(literal: exp.Expr, type_: Type | None, read: Read) -> bool:
    """Cast a literal to a type whose texts the engines misread, as a factor or as an output.

    Returns whether it is cast.
    """
    is_number = type_ is not None and type_.is_numeric and isinstance(literal.parent, (*_FACTORS, *_OUTPUTS))
    if type_ is not None and (is_number or (type_ == BOOLEAN and isinstance(literal.parent, _OUTPUTS))):
        is_decimal = type_.name == NUMERIC.name and _DECIMAL.fullmatch(literal.name) is not None
        cast = exp.Cast(this=literal.copy(), to=data_type(QUOTIENT if type_.name == NUMERIC.name else type_))
        literal.replace(exp.Literal.number(literal.name.strip()) if is_decimal else cast)
        return True
    if type_ is None or not (type_.dimensions or type_.labels or type_ in _READ_OTHERWISE):
        return False
    if type_ == JSON and isinstance(literal.parent, _COMPARED):
        return False  # which is an error about the literal as it is
    to = data_type(type_)
    if (type_.labels or type_ == JSON) and not type_.dimensions:
        check_label(literal.name, type_, position_of(literal))
        literal.replace(exp.Cast(this=literal.copy(), to=to))
        return True
    name = text_name(type_)
    is_left = type_.dimensions > 0 and not is_of_days(name) and type_.name != "jsonb"
    value = exp.Literal.string(literal.name) if is_left else read(literal, name)
    if value is None and not type_.dimensions and type_ != JSONB:
        return False
    is_same = value is not None and value.name == literal.name
    if type_ in (TIME, INTERVAL) and is_same and not isinstance(literal.parent, _OUTPUTS):
        return False
    literal.replace(exp.Cast(this=exp.Literal.string(literal.name) if value is None else value, to=to))
    return True
