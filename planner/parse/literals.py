"""Literals that the engines would misread, in a form that they read as PostgreSQL does.

These are text literals that are cast, with PostgreSQL's errors, and numbers with an exponent. Dates, times and
intervals change only where an engine would misread them.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog.errors import FEATURE_NOT_SUPPORTED, Error
from sparkwave.catalog.moment_texts import MDY
from sparkwave.catalog.moment_words import is_relative
from sparkwave.catalog.types import DATE, TIME, TIMESTAMP, TIMESTAMPTZ, Type, parse_type
from sparkwave.planner.parse.constant_marks import as_constant
from sparkwave.planner.parse.intervals import interval_text
from sparkwave.planner.parse.json_texts import check_json
from sparkwave.planner.parse.text_values import days_text, decode_text, moment_text

# Marks a text in the query of a plain view: True in a new view, False in a stored one.
IS_NEW = "is_new"
_CHECKED = {"BOOLEAN", "SMALLINT", "INT", "BIGINT", "UUID", "BYTEA", "REAL", "DOUBLE PRECISION", "JSONB"}
_DAYS = {"DATE", "TIMESTAMP", "TIMESTAMPTZ"}
# By the names that sqlglot writes for PostgreSQL, in upper case.
MOMENTS = {"TIME": TIME, "DATE": DATE, "TIMESTAMP": TIMESTAMP, "TIMESTAMPTZ": TIMESTAMPTZ}
_AWAY = {"today": 0, "tomorrow": 1, "yesterday": -1}  # days


def with_literals(tree: exp.Expr, order: str | None = None, is_definition: bool = False) -> exp.Expr:
    """Return the tree, changed in place, with the text of each cast literal in the engines' form.

    `order` is a session's order of dates; None in a stored definition, of which dates and documents that cannot be
    read are left to the engine. A new definition is read as by `definition_text`. Raises Error 22P02 or 22003, or 22007
    to 22009 for dates, for a text that is no value of the type.
    """
    for escaped in list(tree.find_all(exp.ByteString)):  # E'..', whose escapes are read already
        escaped.replace(exp.Literal.string(escaped.name))
    for cast in list(tree.find_all(exp.Cast)):
        if isinstance(cast.this, exp.Array) and cast.to.is_type(exp.DType.ARRAY) and cast.to.expressions:
            _cast_items(cast.this, cast.to.expressions[0])
            if order is not None and _element(cast.to.sql(dialect="postgres").upper()) == "JSONB":
                _check_documents(cast.this)
    for cast in tree.find_all(exp.Cast):
        if cast.this.is_string:
            _read(cast, cast.to.sql(dialect="postgres").upper(), order, is_definition)
    return tree


def _read(cast: exp.Cast, type_: str, order: str | None, is_definition: bool) -> None:
    now = moment_now(cast.this.name, type_) if order is not None and not is_definition else None
    if now is not None:
        cast.set("this", as_constant(now))
        return
    read = definition_text if is_definition and order is not None else engine_text
    try:
        text = read(cast.this.name, type_, order or MDY)
    except Error as error:
        if order is None and (type_ in MOMENTS or is_of_days(type_) or _element(type_) == "JSONB"):
            return
        error.position = error.position or _place(cast.this)
        raise
    if text != cast.this.name:
        cast.set("this", exp.Literal.string(text))


def moment_value(text: str, type_: Type, order: str) -> exp.Expr:
    """Return a text of one of MOMENTS as a literal in the engines' form; of `now`, `today`, .. the value.

    Raises Error 22007, 22008, 22009 or 22023.
    """
    [name] = (name for name, each in MOMENTS.items() if each == type_)
    return moment_now(text, name) or exp.Literal.string(moment_text(text, type_, order))


def array_value(text: str, type_: Type, order: str) -> exp.Expr:
    """Return a text of an array's type as a literal in the engines' form. Raises Error as `moment_value`, or 22P02."""
    element = replace(type_, dimensions=0)
    return exp.Literal.string(days_text(text, element, order) if element in (DATE, TIMESTAMP, TIMESTAMPTZ) else text)


def moment_now(text: str, type_: str) -> exp.Expr | None:
    """Return the value of a text that `is_relative` as one of MOMENTS; None of another text."""
    word = text.strip().lower()
    if word == "now" and type_ in MOMENTS:
        now = exp.CurrentTimestamp()
        return exp.cast(now, "timestamp") if type_ == "TIME" else now
    if word not in _AWAY or type_ not in _DAYS:
        return None
    today, days = exp.CurrentDate(), _AWAY[word]
    return exp.paren(exp.Add(this=today, expression=exp.Literal.number(days)), copy=False) if days else today


def _place(literal: exp.Expr) -> int | None:
    return literal.meta["start"] + 1 if "start" in literal.meta else None


def _check_documents(array: exp.Array) -> None:
    for item in array.find_all(exp.Literal):
        if item.is_string and isinstance(item.parent, exp.Array):
            try:
                check_json(item.name, is_read=True)
            except Error as error:
                error.position = _place(item)
                raise


def _cast_items(array: exp.Array, to: exp.Expr) -> None:
    """Let each text in `ARRAY['…']::type[]` be a cast of its own; the engines would misread it in an array."""
    if to.sql(dialect="postgres").upper() not in _DAYS | {"BYTEA", "INTERVAL"}:
        return
    for item in array.expressions:
        if item.is_string:
            item.replace(exp.Cast(this=item.copy(), to=to.copy()))


def is_of_days(type_: str) -> bool:
    """Return whether a type, as sqlglot writes PostgreSQL's, is one of days, or an array of them."""
    return _element(type_) in _DAYS


def _element(type_: str) -> str:
    return type_.rstrip("[]")


def definition_text(text: str, type_: str, order: str) -> str:
    """Work as `engine_text` in a new definition, whose dates are read in the order MDY, whatever a session's is.

    Raises Error 0A000 where the order of the session, `order`, makes another value of the text.
    """
    if type_ in MOMENTS and is_relative(text):
        return text
    own = engine_text(text, type_, order)
    if (type_ not in MOMENTS and not is_of_days(type_)) or order == MDY:
        return own
    try:
        is_same = engine_text(text, type_, MDY) == own
    except Error:
        is_same = False
    if not is_same:
        message = f'"{text}" has another meaning in the order MDY, in which definitions are read'
        raise Error(message, FEATURE_NOT_SUPPORTED, hint=f"Write it as '{own}'.")
    return own


def engine_text(text: str, type_: str, order: str = MDY) -> str:
    """Return a text of a type in the engines' form. Raises Error.

    `type_` is the type's name as sqlglot writes PostgreSQL's, in upper case. `order` is that of dates.
    """
    if type_ == "INTERVAL":
        return interval_text(text)
    if type_ in MOMENTS:
        return moment_text(text, MOMENTS[type_], order)
    if is_of_days(type_) and type_ not in _DAYS:
        return days_text(text, MOMENTS[_element(type_)], order)
    if (_element(type_) if type_.startswith("JSONB") else type_) not in _CHECKED:
        return text
    value = decode_text(text, parse_type(type_.lower()))
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return str(value).lower() if isinstance(value, bool) else text
