"""Reads values from text like PostgreSQL's `*_in` functions: parameters, and literals that are cast.

Dates that Python cannot represent (`infinity`, years before 1 or after 9999) are returned as text for the engine.
"""

from __future__ import annotations

import datetime
import math
import re
import string
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

from sparkwave.catalog.array_literals import UNEQUAL, fault_of_array
from sparkwave.catalog.errors import (
    CANNOT_COERCE,
    INVALID_DATETIME_FORMAT,
    INVALID_PARAMETER_VALUE,
    INVALID_TEXT_REPRESENTATION,
    NUMERIC_VALUE_OUT_OF_RANGE,
    PROGRAM_LIMIT_EXCEEDED,
    Error,
)
from sparkwave.catalog.moment_texts import MDY, iso_text, read_moment
from sparkwave.catalog.moment_words import is_relative
from sparkwave.catalog.types import DATE, TIME, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Type
from sparkwave.planner.functions.composite_text import split_record
from sparkwave.planner.parse.intervals import interval_text
from sparkwave.planner.parse.json_texts import check_json

# The types of `moment_text`.
MOMENTS = (DATE, TIME, TIMESTAMP, TIMESTAMPTZ)
_EPOCH = datetime.datetime(1970, 1, 1)


def decode_text(text: str, type: Type, order: str = MDY) -> object:
    """Return the value that PostgreSQL's input function of the type reads, with DateStyle's `order` of dates.

    Raises Error 22P02, or 22007, 22008, 22009 or 22023 for dates.
    """
    if type.dimensions:
        return _ArrayText(text, type, order).parse()
    if type.is_struct:
        return _record(split_record(text), type, order)
    if type.name in _MOMENTS:
        return _moment(text, type, order)
    if type.name == "enum":
        return _label(text, type)
    try:
        return _FROM_TEXT[type.name](text)
    except (ValueError, InvalidOperation, RecursionError):
        code = INVALID_DATETIME_FORMAT if type.name == "interval" else INVALID_TEXT_REPRESENTATION
        raise Error(f'invalid input syntax for type {type}: "{text}"', code) from None


def _label(text: str, enum: Type) -> str:
    if text not in enum.labels[:-1]:
        raise Error(f'invalid input value for enum {enum}: "{text}"', INVALID_TEXT_REPRESENTATION)
    return text


_BOOLEANS = {word[:n]: True for word in ("true", "yes") for n in range(1, len(word) + 1)}
_BOOLEANS |= {word[:n]: False for word in ("false", "no", "off") for n in range(1, len(word) + 1)}
_BOOLEANS |= {"on": True, "1": True, "0": False}
del _BOOLEANS["o"]  # on or off?


def _boolean(text: str) -> bool:
    try:
        return _BOOLEANS[text.strip().lower()]
    except KeyError:
        raise ValueError(text) from None


def _integer(name: str, low: int, high: int) -> Callable[[str], int]:
    def decode(text: str) -> int:
        if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", text):
            raise ValueError(text)
        value = int(text)
        if not low <= value <= high:
            raise Error(f'value "{text}" is out of range for type {name}', NUMERIC_VALUE_OUT_OF_RANGE)
        return value

    return decode


def _float(text: str, type_: str = "double precision", most: float = sys.float_info.max, least: float = 0.0) -> float:
    """Read a float. Raises Error 22003 for a number that is beyond the type's greatest, or so small that it is 0."""
    if "_" in text:
        raise ValueError(text)
    value = float(text)
    size, digits = abs(value), text.lower().partition("e")[0]
    is_large = size > most and "inf" not in text.lower()
    if is_large or (size <= least and re.search("[1-9]", digits)):
        raise Error(f'"{text}" is out of range for type {type_}', NUMERIC_VALUE_OUT_OF_RANGE)
    return value


# The middles between the greatest real and the next number, and between 0 and the smallest real.
_real = partial(_float, type_="real", most=math.ldexp(2 - 2**-24, 127), least=math.ldexp(1, -150))


def _numeric(text: str) -> Decimal:
    if "_" in text or ("nan" in text.lower() and text.strip().lower() != "nan"):
        raise ValueError(text)
    value = Decimal(text.strip())
    if not value.is_finite() or int(value.as_tuple().exponent) <= 0:
        return value
    if value and value.adjusted() > _MOST_DIGITS:
        raise Error("value overflows numeric format", NUMERIC_VALUE_OUT_OF_RANGE)
    return Decimal(f"{value:f}")  # for a number with an exponent DuckDB (1.5.5) reads the digits alone


_MOST_DIGITS = 40


def _bytea(text: str) -> bytes:
    """Read hex after `\\x`, else the escape format: `\\\\` and three octal digits."""
    if text.startswith("\\x"):
        return _hexadecimal(text[2:])
    data = text.encode()
    if re.fullmatch(rb"(?:[^\\]|\\\\|\\[0-3][0-7]{2})*", data, re.DOTALL) is None:
        raise ValueError(text)
    return re.sub(rb"\\(\\|[0-7]{3})", lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]), data)


def _hexadecimal(digits: str) -> bytes:
    """Read pairs of hexadecimal digits, with spaces between them. Raises Error 22023 (PostgreSQL: hex_decode)."""
    digits = "".join(digits.split())
    wrong = next((digit for digit in digits if digit not in string.hexdigits), None)
    if wrong is not None:
        raise Error(f'invalid hexadecimal digit: "{wrong}"', INVALID_PARAMETER_VALUE)
    if len(digits) % 2:
        raise Error("invalid hexadecimal data: odd number of digits", INVALID_PARAMETER_VALUE)
    return bytes.fromhex(digits)


def _json(text: str, is_read: bool) -> str:
    check_json(text, is_read)
    return text


# Dates and times that DuckDB reads as PostgreSQL does (`pg.date_in` and `pg.time_in` have the same patterns).
_CLOCK_PART = r"(?:[01]\d|2[0-3]):[0-5]\d"
_ZONE_PART = r"(?:Z|[+-](?:0\d|1[0-5])(?::[0-5]\d)?)?"
ISO_DAY = (
    r"[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])"
    rf"(?:[ T]{_CLOCK_PART}(?::[0-5]\d(?:\.\d{{1,6}})?{_ZONE_PART})?)?"
)
ISO_TIME = rf"{_CLOCK_PART}(?::[0-5]\d(?:\.\d{{1,6}})?)?"
_PLAIN_DAY, _PLAIN_TIME = re.compile(ISO_DAY), re.compile(ISO_TIME)
_WORDS = frozenset(("infinity", "-infinity", "epoch"))


def moment_text(text: str, type: Type, order: str = MDY) -> str:
    """Return the text of a date, timestamp or time in DuckDB's form, as it is if DuckDB reads it as PostgreSQL does.

    Raises Error 22007, 22008, 22009 or 22023.
    """
    is_plain = _PLAIN_TIME.fullmatch(text) if type == TIME else _PLAIN_DAY.fullmatch(text) and _is_day(text[:10])
    return text if is_plain or text in _WORDS else iso_text(read_moment(text, type.name, order), type.name)


# Days that the engines read as items of arrays: their year comes first.
_YEAR_FIRST = re.compile(r"\s*(?:[+-]?\d{4,6}([-/ ])\d{1,2}\1\d{1,2}(?!\d)|[+-]?infinity\s*$|epoch\s*$)", re.I)


def days_text(text: str, type: Type, order: str = MDY) -> str:
    """Return the text of an array of days, with the items that the engines do not read in DuckDB's form.

    `type` is DATE, TIMESTAMP or TIMESTAMPTZ. Raises Error 22P02, or as `moment_text`.
    """
    changed: list[str] = []

    def item(value: Any) -> str:
        if isinstance(value, list):
            return f"{{{','.join(map(item, value))}}}"
        if value is None:
            return "NULL"
        if not _YEAR_FIRST.match(value) and not is_relative(value):
            changed.append(value := moment_text(value, type, order))
        escaped = re.sub(r"([\\\"])", r"\\\1", value)
        return f'"{escaped}"'

    written = item(array_texts(text))
    return written if changed else text


def _moment(text: str, type: Type, order: str) -> object:
    """Return a date, time or datetime, or the engine's text of what Python cannot represent."""
    if is_relative(text):
        return text.strip().lower()
    try:
        return _MOMENTS[type.name](text)
    except ValueError:
        written = iso_text(read_moment(text, type.name, order), type.name)
    try:
        return _MOMENTS[type.name](written)
    except ValueError:
        return written


def _is_day(text: str) -> bool:
    try:
        datetime.date.fromisoformat(text)
    except ValueError:
        return False
    return True


_DATE = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?"
_ZONE = r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?)?"
_TIMESTAMP = re.compile(rf"\s*{_DATE}(?:[T ]\s*{_CLOCK})?{_ZONE}\s*$", re.I)
_TIME = re.compile(rf"\s*{_CLOCK}{_ZONE}\s*$", re.I)


def _date(text: str) -> datetime.date | str:
    """Return the day, also of a text with a time of day."""
    value = _timestamptz(text)
    return value if isinstance(value, str) else value.date()


def _timestamp(text: str) -> datetime.datetime | str:
    """Return the timestamp of a text. An offset is read and ignored, as PostgreSQL does for this type."""
    value = _timestamptz(text)
    return value if isinstance(value, str) else value.replace(tzinfo=None)


def _timestamptz(text: str) -> datetime.datetime | str:
    if text in _WORDS:
        return text
    match = _TIMESTAMP.match(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    midnight = datetime.datetime(int(year), int(month), int(day))
    clock = _clock(hour or "0", minute or "0", second, fraction)
    return (midnight + clock).replace(tzinfo=_offset(zone) if zone else None)


def _clock(hour: str, minute: str, second: str | None, fraction: str | None) -> datetime.timedelta:
    """Return the time since midnight; 24:00:00 and second 60 are allowed, as in Postgres."""
    micros = round(float(f"0.{fraction or 0}") * 1_000_000)  # as PostgreSQL rounds
    clock = datetime.timedelta(hours=int(hour), minutes=int(minute), seconds=int(second or 0), microseconds=micros)
    if int(minute) > 59 or int(second or 0) > 60 or clock > datetime.timedelta(days=1):
        raise ValueError("field out of range")
    return clock


def _offset(zone: str) -> datetime.timezone:
    if zone[0] not in "+-":
        return datetime.UTC
    digits = zone[1:].replace(":", "")
    digits = digits.zfill(2 if len(digits) < 3 else 4 if len(digits) < 5 else 6).ljust(6, "0")
    seconds = int(digits[:2]) * 3600 + int(digits[2:4]) * 60 + int(digits[4:])
    return datetime.timezone(datetime.timedelta(seconds=-seconds if zone[0] == "-" else seconds))


def _time(text: str) -> datetime.time | str:
    match = _TIME.match(text)
    if match is None:
        raise ValueError(text)
    clock = _clock(*match.groups()[:4])
    return "24:00:00" if clock.days else (_EPOCH + clock).time()


_MOMENTS: dict[str, Callable[[str], object]] = {
    "date": _date,
    "time without time zone": _time,
    "timestamp without time zone": _timestamp,
    "timestamp with time zone": _timestamptz,
}
_FROM_TEXT: dict[str, Callable[[str], object]] = {
    "boolean": _boolean,
    "smallint": _integer("smallint", -(2**15), 2**15 - 1),
    "integer": _integer("integer", -(2**31), 2**31 - 1),
    "bigint": _integer("bigint", -(2**63), 2**63 - 1),
    "oid": _integer("oid", 0, 2**32 - 1),
    "real": _real,
    "double precision": _float,
    "numeric": _numeric,
    "character varying": str,
    "text": str,
    "bytea": _bytea,
    "interval": interval_text,
    "json": partial(_json, is_read=False),
    "jsonb": partial(_json, is_read=True),
    "uuid": uuid.UUID,
}


def _record(texts: Sequence[str | None], type: Type, order: str) -> dict[str, object]:
    """Return a row by the names of its fields, in DuckDB's form."""
    if len(texts) != len(type.fields):
        raise Error(f"cannot cast a record of {len(texts)} fields to {type}", CANNOT_COERCE)
    pairs = zip(type.fields, texts, strict=True)
    return {name: None if text is None else decode_text(text, field, order) for (name, field), text in pairs}


def array_texts(text: str) -> list[Any]:
    """Return the texts of an array's items, as nested lists with several dimensions, None for NULL.

    Raises Error 22P02.
    """
    return _ArrayText(text, VARCHAR).parse()


# PostgreSQL's blanks around items (array_isspace in arrayfuncs.c); Python has more.
BLANKS = " \t\n\r\v\f"
_MOST_DIMENSIONS = 6  # PostgreSQL's MAXDIM


class _ArrayText:
    """A reader of `{1,NULL,"a,b",{..}}`, optionally after bounds such as `[0:1]=`."""

    _ITEM = re.compile(rf'[{BLANKS}]*(?:"((?:[^"\\]|\\.)*)"|((?:[^",{{}}\\]|\\.)+))[{BLANKS}]*', re.DOTALL)

    def __init__(self, text: str, type: Type, order: str = MDY) -> None:
        self.text, self.type, self.order = text, type, order
        self.element = replace(type, dimensions=0)
        bounds = re.match(r"\s*(?:((?:\[-?\d+:-?\d+\])+)\s*=\s*)?", text)
        assert bounds is not None
        self.at = bounds.end()
        self._bounds = [(int(low), int(high)) for low, high in re.findall(r"\[(-?\d+):(-?\d+)\]", bounds[1] or "")]

    def parse(self) -> list[object]:
        """Return the elements; lists of elements where the array has several dimensions. Raises Error 22P02."""
        values = self._braces()
        if self.text[self.at :].strip(BLANKS):
            raise self._malformed()
        lengths = self._lengths(values)
        if self._bounds and lengths != [high - low + 1 for low, high in self._bounds]:
            raise self._malformed("Specified array dimensions do not match array contents.")
        return values

    def _lengths(self, values: list[object]) -> list[int]:
        """Return the length of each dimension. Raises Error 22P02 unless all arrays in an array have the same."""
        if not any(isinstance(value, list) for value in values):
            return [len(values)]
        inner = [self._lengths(value) if isinstance(value, list) else [] for value in values]
        if any(each != inner[0] for each in inner):
            raise self._malformed(UNEQUAL)
        return [len(values), *inner[0]]

    def _braces(self, depth: int = 1) -> list[object]:
        if depth > _MOST_DIMENSIONS:
            message = f"number of array dimensions ({depth}) exceeds the maximum allowed ({_MOST_DIMENSIONS})"
            raise Error(message, PROGRAM_LIMIT_EXCEEDED)
        self._expect("{")
        values: list[object] = []
        if self._peek() == "}":
            self.at += 1
            return values
        while True:
            values.append(self._braces(depth + 1) if self._peek() == "{" else self._item())
            if self._peek() == "}":
                self.at += 1
                return values
            self._expect(",")

    def _item(self) -> object:
        match = self._ITEM.match(self.text, self.at)
        if match is None:
            raise self._malformed()
        self.at = match.end()
        quoted, bare = match.groups()
        if bare is not None and bare.strip(BLANKS).upper() == "NULL":
            return None
        written = bare.strip(BLANKS) if quoted is None else quoted
        return decode_text(re.sub(r"\\(.)", r"\1", written, flags=re.S), self.element, self.order)

    def _peek(self) -> str:
        while self.text[self.at : self.at + 1] in BLANKS and self.at < len(self.text):
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._malformed()
        self.at += 1

    def _malformed(self, detail: str | None = None) -> Error:
        message = f'malformed array literal: "{self.text}"'
        return Error(message, INVALID_TEXT_REPRESENTATION, detail=detail or fault_of_array(self.text))
