"""Decodes binary parameter values, as PostgreSQL's `*_recv` functions do.

Dates that Python cannot hold (`infinity`, years before 1 or after 9999) become text, which DuckDB casts.
"""

from __future__ import annotations

import datetime
import math
import re
import struct
import uuid
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from sparkwave.catalog.errors import DATATYPE_MISMATCH, FEATURE_NOT_SUPPORTED, INVALID_BINARY_REPRESENTATION, Error
from sparkwave.catalog.types import Type, type_of_oid
from sparkwave.planner.parse.text_values import decode_text
from sparkwave.server.wire.binary_format import DAYS_TO_2000, MICROS_TO_2000, NAN, NEGATIVE
from sparkwave.server.wire.client_encoding import UTF8
from sparkwave.server.wire.messages import Reader
from sparkwave.server.wire.moment_styles import clock_text
from sparkwave.server.wire.text_format import DAY, date_text, timestamp_text

_EPOCH = datetime.datetime(1970, 1, 1)
_EPOCH_DAY = _EPOCH.toordinal()


def decode_binary(data: bytes, type: Type) -> object:
    """Return the Python value of binary data of a type. Raises Error 22P03 for malformed data."""
    if type.dimensions:
        return _array(data, type)
    if type.is_struct:
        return _record_binary(data, type)
    try:
        value = _FROM_BINARY[type.name](data)
    except (struct.error, ValueError):
        raise Error(f"incorrect binary data format for type {type}", INVALID_BINARY_REPRESENTATION) from None
    return decode_text(str(value), type) if type.labels else value


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
    """Return a text of months, days and microseconds, since a timedelta cannot hold months."""
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
    # Text gives the value its display scale: quantize would round to the context's 28 digits.
    whole, _, fraction = format(value, "f").partition(".")
    return Decimal(f"{whole}.{fraction[:scale]:0<{scale}}" if scale else whole)


def _malformed_numeric() -> Decimal:
    raise ValueError("numeric")


def _uuid(data: bytes) -> uuid.UUID:
    return uuid.UUID(bytes=data)


def _jsonb(data: bytes) -> str:
    if data[:1] != b"\x01":
        raise Error(f"unsupported jsonb version number {data[0] if data else 0}", INVALID_BINARY_REPRESENTATION)
    return UTF8.decode(data[1:])


_FROM_BINARY: dict[str, Callable[[bytes], object]] = {
    "boolean": _struct("!?"),
    "smallint": _struct("!h"),
    "integer": _struct("!i"),
    "bigint": _int64,
    "oid": _struct("!I"),
    "real": _struct("!f"),
    "double precision": _struct("!d"),
    "numeric": _numeric_binary,
    "character varying": UTF8.decode,
    "text": UTF8.decode,
    "enum": UTF8.decode,
    "bytea": bytes,
    "date": _date_binary,
    "time without time zone": _time_binary,
    "timestamp without time zone": _timestamp_binary,
    "timestamp with time zone": _timestamptz_binary,
    "interval": _interval_binary,
    "json": UTF8.decode,
    "jsonb": _jsonb,
    "uuid": _uuid,
}


def _record_binary(data: bytes, type: Type) -> dict[str, object]:
    """Read a row as PostgreSQL's `record_recv` does; a field of another type than the row's is cast later."""
    reader = Reader(data)
    if reader.int32() != len(type.fields):
        raise Error(f"wrong number of columns for {type}", DATATYPE_MISMATCH)
    found: dict[str, object] = {}
    for name, field in type.fields:
        sent = type_of_oid(reader.oid())
        found[name] = _value(reader, sent or field)
    return found


def _value(reader: Reader, type: Type) -> object:
    data = reader.value()
    return None if data is None else decode_binary(data, type)


def _array(data: bytes, type: Type) -> list:
    """Return nested lists. The header names the elements' type, which may differ from the parameter's element type."""
    reader = Reader(data)
    dimensions, _, oid = reader.int32(), reader.int32(), reader.oid()
    lengths = [(reader.int32(), reader.int32())[0] for _ in range(dimensions)]
    element = replace(type, dimensions=0) if type.fields or type.labels else type_of_oid(oid)
    if (
        len(lengths) > 6
        or 4 * math.prod(max(length, 1) for length in lengths) > len(data)
        or min(lengths, default=1) < 0
    ):
        raise Error("invalid array dimensions", INVALID_BINARY_REPRESENTATION)
    if element is None:
        raise Error(f"array parameter with elements of type OID {oid} is not supported", FEATURE_NOT_SUPPORTED)
    return _elements(reader, lengths, element) if math.prod(lengths) and lengths else []


def _elements(reader: Reader, lengths: list[int], element: Type) -> list:
    if len(lengths) > 1:
        return [_elements(reader, lengths[1:], element) for _ in range(lengths[0])]
    return [_value(reader, element) for _ in range(lengths[0])]
