"""Literals that the engines would misread, in a form that they read as PostgreSQL does.

These are text literals that are cast, with PostgreSQL's errors, and numbers with an exponent. Dates, times and
intervals change only where an engine would misread them; the engine reports the ones it refuses.
"""

from __future__ import annotations

import re

from sqlglot import exp

from sparkwave.catalog.types import TIME, parse_type
from sparkwave.planner.parse.intervals import interval_text
from sparkwave.planner.parse.text_values import day_text, decode_text

_CHECKED = {"BOOLEAN", "SMALLINT", "INT", "BIGINT", "UUID", "BYTEA", "REAL", "DOUBLE PRECISION"}
_DAYS = {"DATE", "TIMESTAMP", "TIMESTAMPTZ"}
_FINE = re.compile(r"\.\d{7}")  # digits of a second that the engines truncate
_COMPACT = re.compile(r"\s*(\d{4})(\d{2})(\d{2})(?=\s*$|[T ])")


def with_literals(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with the text of each cast literal in the engines' form.

    Raises Error 22P02 or 22003 for a text that is no value of the type.
    """
    for escaped in list(tree.find_all(exp.ByteString)):  # E'..', whose escapes are read already
        escaped.replace(exp.Literal.string(escaped.name))
    for cast in list(tree.find_all(exp.Cast)):
        if isinstance(cast.this, exp.Array) and cast.to.is_type(exp.DType.ARRAY) and cast.to.expressions:
            _cast_items(cast.this, cast.to.expressions[0])
    for cast in tree.find_all(exp.Cast):
        if cast.this.is_string:
            text = engine_text(cast.this.name, cast.to.sql(dialect="postgres").upper())
            if text != cast.this.name:
                cast.set("this", exp.Literal.string(text))
    return tree


def _cast_items(array: exp.Array, to: exp.Expr) -> None:
    """Let each text in `ARRAY['…']::type[]` be a cast of its own; the engines would misread it in an array."""
    if to.sql(dialect="postgres").upper() not in _DAYS | {"BYTEA", "INTERVAL"}:
        return
    for item in array.expressions:
        if item.is_string:
            item.replace(exp.Cast(this=item.copy(), to=to.copy()))


def engine_text(text: str, type_: str) -> str:
    """Return a text of a type in the engines' form. Raises Error.

    `type_` is the type's name as sqlglot writes PostgreSQL's, in upper case.
    """
    if type_ == "INTERVAL":
        return interval_text(text)
    if type_ == "TIME" and _FINE.search(text):
        return str(decode_text(text, TIME))
    if type_ in _DAYS:
        return day_text(_COMPACT.sub(r"\1-\2-\3", text))
    if type_ not in _CHECKED:
        return text
    value = decode_text(text, parse_type(type_.lower()))
    if isinstance(value, bytes):
        return f"\\x{value.hex()}"
    return str(value).lower() if isinstance(value, bool) else text
