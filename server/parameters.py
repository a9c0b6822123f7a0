"""Parameter values as clients send them, to Python values.

Text follows PostgreSQL's `*_in` functions for what drivers send; binary its `*_recv` functions.
Dates that Python cannot hold (`infinity`, years before 1 or after 9999) come back as text for the engine to cast.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import struct
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation

from catalog.errors import (
    CANNOT_COERCE,
    DATATYPE_MISMATCH,
    FEATURE_NOT_SUPPORTED,
    INVALID_BINARY_REPRESENTATION,
    INVALID_DATETIME_FORMAT,
    INVALID_TEXT_REPRESENTATION,
    NUMERIC_VALUE_OUT_OF_RANGE,
    Error,
)
from catalog.types import BASES, Type, type_of_oid
from planner.functions.records import split_record
from server.binary_format import DAYS_TO_2000, MICROS_TO_2000, NAN, NEGATIVE
from server.messages import Reader, utf8
from server.text_format import DAY, clock_text, date_text, timestamp_text

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()


def decode_parameter(data: bytes | None, format: int, type: Type) -> object:
    """The Python value of a parameter, None for NULL; `format` is 0 (text) or 1 (binary).

    int, float, Decimal, str, bytes, bool, date, time, datetime (aware for a timestamptz with an offset), uuid.UUID,
    list for arrays; json and interval as str. Raises Error 22P02 (22007 for dates) or 22P03 for a malformed value.
    """
    if data is None:
        return None
    return _decode_binary(data, type) if format else _decode_text(utf8(data), type)


# Text


def _decode_text(text: str, type: Type) -> object:
    if type.dimensions:
        return _ArrayText(text, type).parse()
    if type.is_struct:
        return _record(split_record(text), type)
    try:
        return _FROM_TEXT[type.name](text)
    except (ValueError, InvalidOperation):
        code = INVALID_DATETIME_FORMAT if type.name in _DATETIMES else INVALID_TEXT_REPRESENTATION
        raise Error(f'invalid input syntax for type {type}: "{text}"', code) from None


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


def _float(text: str) -> float:
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _numeric(text: str) -> Decimal:
    if "_" in text or ("nan" in text.lower() and text.strip().lower() != "nan"):
        raise ValueError(text)
    return Decimal(text.strip())


def _bytea(text: str) -> bytes:
    """Hex behind `\\x`, else the escape format: `\\\\` and three octal digits."""
    if text.startswith("\\x"):
        return bytes.fromhex(text[2:])
    data = text.encode()
    if re.fullmatch(rb"(?:[^\\]|\\\\|\\[0-3][0-7]{2})*", data, re.DOTALL) is None:
        raise ValueError(text)
    return re.sub(rb"\\(\\|[0-7]{3})", lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 8)]), data)


def _json(text: str) -> str:
    json.loads(text)
    return text


# Words and eras that the engine understands and Python does not.
_SPECIAL = re.compile(r"\s*(?:[+-]?infinity|epoch|now|today|tomorrow|yesterday)\s*$|.*\bBC\s*$|\s*\d{5,}-", re.I)
_DATE = r"(\d{4})-(\d{1,2})-(\d{1,2})"
_CLOCK = r"(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?"
_ZONE = r"\s*(Z|UTC|GMT|[+-]\d{1,2}(?::?\d{2}(?::?\d{2})?)?)?"
_TIMESTAMP = re.compile(rf"\s*{_DATE}(?:[T ]\s*{_CLOCK})?{_ZONE}\s*$", re.I)
_TIME = re.compile(rf"\s*{_CLOCK}{_ZONE}\s*$", re.I)


def _date(text: str) -> datetime.date | str:
    """The day, also of a text that has a time of day."""
    value = _timestamptz(text)
    return value if isinstance(value, str) else value.date()


def _timestamp(text: str) -> datetime.datetime | str:
    """An offset is read and ignored, as Postgres does for a type without time zone."""
    value = _timestamptz(text)
    return value if isinstance(value, str) else value.replace(tzinfo=None)


def _timestamptz(text: str) -> datetime.datetime | str:
    if _SPECIAL.match(text):
        return text.strip()
    match = _TIMESTAMP.match(text)
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    midnight = datetime.datetime(int(year), int(month), int(day))
    clock = _clock(hour or "0", minute or "0", second, fraction)
    return (midnight + clock).replace(tzinfo=_offset(zone) if zone else None)


def _clock(hour: str, minute: str, second: str | None, fraction: str | None) -> datetime.timedelta:
    """Time since midnight; 24:00:00 and second 60 are allowed, as in Postgres."""
    micros = round(int(f"{fraction or 0:0<9}") / 1000)
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


_DATETIMES = frozenset(name for name in BASES if name == "date" or name.startswith("time"))
_FROM_TEXT: dict[str, Callable[[str], object]] = {
    "boolean": _boolean,
    "smallint": _integer("smallint", -(2**15), 2**15 - 1),
    "integer": _integer("integer", -(2**31), 2**31 - 1),
    "bigint": _integer("bigint", -(2**63), 2**63 - 1),
    "oid": _integer("oid", 0, 2**32 - 1),
    "real": _float,
    "double precision": _float,
    "numeric": _numeric,
    "character varying": str,
    "text": str,
    "bytea": _bytea,
    "date": _date,
    "time without time zone": _time,
    "timestamp without time zone": _timestamp,
    "timestamp with time zone": _timestamptz,
    "interval": str,
    "jsonb": _json,
    "uuid": uuid.UUID,
}


def _record(texts: Sequence[str | None], type: Type) -> dict[str, object]:
    """A row by the names of its fields, as DuckDB takes one."""
    if len(texts) != len(type.fields):
        raise Error(f"cannot cast a record of {len(texts)} fields to {type}", CANNOT_COERCE)
    pairs = zip(type.fields, texts, strict=True)
    return {name: None if text is None else _decode_text(text, field) for (name, field), text in pairs}


class _ArrayText:
    """A reader of `{1,NULL,"a,b",{..}}`, optionally behind bounds such as `[0:1]=`."""

    _ITEM = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^",{}\\]|\\.)+))\s*', re.DOTALL)

    def __init__(self, text: str, type: Type) -> None:
        self.text, self.type = text, type
        self.element = replace(type, dimensions=0)
        self.at = len(re.match(r"\s*(?:(?:\[-?\d+:-?\d+\])+\s*=\s*)?", text)[0])  # type: ignore[index]

    def parse(self) -> list[object]:
        values = self._braces()
        if self.text[self.at :].strip():
            raise self._malformed()
        return values

    def _braces(self) -> list[object]:
        self._expect("{")
        values: list[object] = []
        if self._peek() == "}":
            self.at += 1
            return values
        while True:
            values.append(self._braces() if self._peek() == "{" else self._item())
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
        if bare is not None and bare.strip().upper() == "NULL":
            return None
        return _decode_text(
            re.sub(r"\\(.)", r"\1", bare.strip() if quoted is None else quoted, flags=re.S), self.element
        )

    def _peek(self) -> str:
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return self.text[self.at : self.at + 1]

    def _expect(self, character: str) -> None:
        if self._peek() != character:
            raise self._malformed()
        self.at += 1

    def _malformed(self) -> Error:
        return Error(f'malformed array literal: "{self.text}"', INVALID_TEXT_REPRESENTATION)


# Binary


def _decode_binary(data: bytes, type: Type) -> object:
    if type.dimensions:
        return _array(data, type)
    if type.is_struct:
        return _record_binary(data, type)
    try:
        return _FROM_BINARY[type.name](data)
    except (struct.error, ValueError):
        raise Error(f"incorrect binary data format for type {type}", INVALID_BINARY_REPRESENTATION) from None


def _struct(layout: str) -> Callable[[bytes], object]:
    unpack = struct.Struct(layout).unpack
    return lambda data: unpack(data)[0]


def _int64(data: bytes) -> int:
    return struct.unpack("!q", data)[0]


def _date_binary(data: bytes) -> datetime.date | str:
    days = struct.unpack("!i", data)[0]
    if days in (2**31 - 1, -(2**31)):
        return "infinity" if days > 0 else "-infinity"
    days += DAYS_TO_2000
    ordinal = days + _EPOCH_DAY
    return datetime.date.fromordinal(ordinal) if 1 <= ordinal <= datetime.date.max.toordinal() else date_text(days)


def _timestamp_binary(data: bytes) -> datetime.datetime | str:
    micros = _int64(data)
    if micros in (2**63 - 1, -(2**63)):
        return "infinity" if micros > 0 else "-infinity"
    micros += MICROS_TO_2000
    try:
        return _EPOCH + datetime.timedelta(microseconds=micros)
    except OverflowError:
        return timestamp_text(micros)


def _timestamptz_binary(data: bytes) -> datetime.datetime | str:
    value = _timestamp_binary(data)
    if isinstance(value, str):
        return value if "infinity" in value else re.sub(r"( BC)?$", r"+00\1", value, count=1)
    return value.replace(tzinfo=datetime.UTC)


def _time_binary(data: bytes) -> datetime.time | str:
    micros = _int64(data)
    if not 0 <= micros <= DAY:
        raise ValueError(micros)
    return clock_text(micros) if micros == DAY else (_EPOCH + datetime.timedelta(microseconds=micros)).time()


def _interval_binary(data: bytes) -> str:
    """In units any engine reads: a timedelta could not hold the months."""
    micros, days, months = struct.unpack("!qii", data)
    return f"{months} months {days} days {micros} microseconds"


def _numeric_binary(data: bytes) -> Decimal:
    count, weight, sign, scale = struct.unpack_from("!HhHh", data)
    if sign not in (0, NEGATIVE):
        names = {NAN: "NaN", 0xD000: "Infinity", 0xF000: "-Infinity"}
        return Decimal(names[sign]) if sign in names else _malformed_numeric()
    words = struct.unpack(f"!{count}h", data[8:])
    if any(not 0 <= word <= 9999 for word in words):
        _malformed_numeric()
    digits = "".join(f"{word:04}" for word in words) or "0"
    value = Decimal(f"{'-' if sign else ''}{digits}E{4 * (weight - count + 1) if count else 0}")
    # Brought to its display scale through text: quantize would round to the context's 28 digits.
    whole, _, fraction = format(value, "f").partition(".")
    return Decimal(f"{whole}.{fraction[:scale]:0<{scale}}" if scale else whole)


def _malformed_numeric() -> Decimal:
    raise ValueError("numeric")


def _uuid(data: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=data)


def _jsonb(data: bytes) -> str:
    if data[:1] != b"\x01":
        raise Error(f"unsupported jsonb version number {data[0] if data else 0}", INVALID_BINARY_REPRESENTATION)
    return utf8(data[1:])


_FROM_BINARY: dict[str, Callable[[bytes], object]] = {
    "boolean": _struct("!?"),
    "smallint": _struct("!h"),
    "integer": _struct("!i"),
    "bigint": _int64,
    "oid": _struct("!I"),
    "real": _struct("!f"),
    "double precision": _struct("!d"),
    "numeric": _numeric_binary,
    "character varying": utf8,
    "text": utf8,
    "bytea": bytes,
    "date": _date_binary,
    "time without time zone": _time_binary,
    "timestamp without time zone": _timestamp_binary,
    "timestamp with time zone": _timestamptz_binary,
    "interval": _interval_binary,
    "jsonb": _jsonb,
    "uuid": _uuid,
}


def _record_binary(data: bytes, type: Type) -> dict[str, object]:
    """As PostgreSQL's `record_recv`, but a field may be of another type than the row's own, which it is cast to."""
    reader = Reader(data)
    if reader.int32() != len(type.fields):
        raise Error(f"wrong number of columns for {type}", DATATYPE_MISMATCH)
    found: dict[str, object] = {}
    for name, field in type.fields:
        sent = type_of_oid(reader.oid())
        found[name] = decode_parameter(reader.value(), 1, sent or field)
    return found


def _array(data: bytes, type: Type) -> list:
    """Nested lists. The elements are of the type the header names: it need not be the parameter's own."""
    reader = Reader(data)
    dimensions, _, oid = reader.int32(), reader.int32(), reader.oid()
    lengths = [(reader.int32(), reader.int32())[0] for _ in range(dimensions)]
    element = replace(type, dimensions=0) if type.fields else type_of_oid(oid)
    if len(lengths) > 6 or 4 * math.prod(lengths) > len(data) or min(lengths, default=1) < 1:
        raise Error("invalid array dimensions", INVALID_BINARY_REPRESENTATION)
    if element is None:
        raise Error(f"array parameter with elements of type OID {oid} is not supported", FEATURE_NOT_SUPPORTED)
    return _elements(reader, lengths, element) if lengths else []


def _elements(reader: Reader, lengths: list[int], element: Type) -> list:
    if len(lengths) > 1:
        return [_elements(reader, lengths[1:], element) for _ in range(lengths[0])]
    return [decode_parameter(reader.value(), 1, element) for _ in range(lengths[0])]
