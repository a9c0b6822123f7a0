"""Converts Arrow arrays to Postgres' binary output, a column at a time.

Layouts are those of PostgreSQL's `*_send` functions: big-endian integers and floats, dates counted from 2000-01-01 in
days and microseconds, numeric as base-10000 digits, jsonb behind a version byte, arrays with a header.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwave.catalog.errors import FEATURE_NOT_SUPPORTED, Error
from sparkwave.catalog.types import Type
from sparkwave.server.wire.text_format import (
    DAY,
    INFINITE_DAYS,
    INFINITE_MICROS,
    conform,
    fixed,
    interval_parts,
    text_array,
    trims_zeros,
)

DAYS_TO_2000 = 10_957
MICROS_TO_2000 = DAYS_TO_2000 * DAY
NEGATIVE, NAN = 0x4000, 0xC000  # sign words of numeric


def binary_array(array: pa.Array, type: Type) -> pa.Array:
    """Return the values of `array` in Postgres' binary format as a `binary` array; NULLs stay null.

    Raises Error 0A000 for arrays of subarrays of several lengths, which PostgreSQL does not have.
    """
    plain = conform(array, type)
    encoded = _array(plain, type) if type.dimensions else _ENCODERS[type.name](plain, type)
    if plain.null_count and not encoded.null_count:
        encoded = pc.if_else(plain.is_valid(), encoded, None)
    return encoded


def _numbers(array: pa.Array, null: int = 0) -> np.ndarray:
    return array.fill_null(null).to_numpy(zero_copy_only=False)


def _fixed(wire_dtype: str) -> Callable[[pa.Array, Type], pa.Array]:
    """Return an encoder for numbers of a fixed width, which only reverses their bytes."""
    width = np.dtype(wire_dtype).itemsize

    def encode(array: pa.Array, _type: Type) -> pa.Array:
        return fixed(_numbers(array).astype(wire_dtype).tobytes(), len(array), width)

    return encode


def _boolean(array: pa.Array, type: Type) -> pa.Array:
    return _fixed(">u1")(array.cast(pa.uint8()), type)


def _date(array: pa.Array, _type: Type) -> pa.Array:
    days = _numbers(array.cast(pa.int32()))
    return fixed(_from_2000(days, DAYS_TO_2000, INFINITE_DAYS).astype(">i4").tobytes(), len(array), 4)


def _timestamp(array: pa.Array, _type: Type) -> pa.Array:
    micros = _numbers(array.cast(pa.int64()))
    return fixed(_from_2000(micros, MICROS_TO_2000, INFINITE_MICROS).astype(">i8").tobytes(), len(array), 8)


def _from_2000(values: np.ndarray, epoch: int, infinite: int) -> np.ndarray:
    """Return days or microseconds since 2000. Infinities stay; PostgreSQL's `-infinity` is one below DuckDB's."""
    moved = values - values.dtype.type(epoch)
    moved[values == infinite] = infinite
    moved[values == -infinite] = -infinite - 1
    return moved


def _time(array: pa.Array, type: Type) -> pa.Array:
    return _fixed(">i8")(array.cast(pa.int64()), type)


_WIRE_INTERVAL = np.dtype([("micros", ">i8"), ("days", ">i4"), ("months", ">i4")])


def _interval(array: pa.Array, _type: Type) -> pa.Array:
    target = np.empty(len(array), _WIRE_INTERVAL)
    target["months"], target["days"], target["micros"] = interval_parts(array)
    return fixed(target.tobytes(), len(array), 16)


def _text(array: pa.Array, type: Type) -> pa.Array:
    return text_array(array, type).cast(pa.binary())


def _bytea(array: pa.Array, _type: Type) -> pa.Array:
    return array.cast(pa.binary())


def _jsonb(array: pa.Array, type: Type) -> pa.Array:
    return pc.binary_join_element_wise(b"\x01", _text(array, type), b"")


_NIBBLE = np.zeros(256, np.uint8)
_NIBBLE[np.frombuffer(b"0123456789abcdef", np.uint8)] = np.arange(16)
_NIBBLE[np.frombuffer(b"ABCDEF", np.uint8)] = np.arange(10, 16)
_UUID_DIGITS = [i for i in range(36) if i not in (8, 13, 18, 23)]


def _uuid(array: pa.Array, _type: Type) -> pa.Array:
    """Return the 16 bytes of each UUID, from its 36 characters."""
    text = pa.concat_arrays([array.fill_null("0" * 36)])
    start = int(np.frombuffer(text.buffers()[1], np.int32)[text.offset])
    characters = np.frombuffer(text.buffers()[2], np.uint8)[start : start + 36 * len(text)].reshape(-1, 36)
    nibbles = _NIBBLE[characters[:, _UUID_DIGITS]]
    return fixed((nibbles[:, ::2] << 4 | nibbles[:, 1::2]).tobytes(), len(array), 16)


# numeric: ndigits, weight, sign, dscale, then base-10000 digits without zeros at either end


def _numeric(array: pa.Array, type: Type) -> pa.Array:
    if pa.types.is_integer(array.type) and not pa.types.is_uint64(array.type):
        array = array.cast(pa.decimal128(19, 0))
    if not pa.types.is_decimal128(array.type) or trims_zeros(array.type, type) or array.type.scale > 16:
        return _numeric_by_value(array, type)
    words = np.frombuffer(array.buffers()[1], "<i8").reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = (np.where(_valid(array), word, 0) for word in words.T)
    if (high != low >> 63).any() or (low == -(2**63)).any():
        return _numeric_by_value(array, type)
    return _numeric_words(low, array.type.scale)


def _valid(array: pa.Array) -> np.ndarray:
    return array.is_valid().to_numpy(zero_copy_only=False)


def _numeric_words(unscaled: np.ndarray, scale: int) -> pa.Array:
    """Encode int64 values with a common scale of at most 16."""
    count, groups = len(unscaled), -(-scale // 4)
    whole, fraction = np.divmod(np.abs(unscaled), np.int64(10**scale))
    fraction *= np.int64(10 ** (4 * groups - scale))
    digits = np.zeros((count, 5 + groups), np.int16)
    for column in range(4, -1, -1):
        whole, digits[:, column] = np.divmod(whole, 10_000)
    for column in range(4 + groups, 4, -1):
        fraction, digits[:, column] = np.divmod(fraction, 10_000)

    some = digits != 0
    empty = ~some.any(axis=1)
    first = np.where(empty, 0, some.argmax(axis=1))
    end = np.where(empty, 0, digits.shape[1] - some[:, ::-1].argmax(axis=1))
    words = np.empty((count, 4 + digits.shape[1]), ">i2")
    words[:, 0] = end - first
    words[:, 1] = np.where(empty, 0, 4 - first)
    words[:, 2] = np.where(unscaled < 0, NEGATIVE, 0)
    words[:, 3] = scale
    words[:, 4:] = digits

    place = np.arange(-4, digits.shape[1])
    keep = (place < 0) | ((place >= first[:, None]) & (place < end[:, None]))
    ends = np.concatenate(([0], np.cumsum(8 + 2 * (end - first)))).astype(np.int32)
    return pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(words[keep].tobytes())])


def _numeric_by_value(array: pa.Array, type: Type) -> pa.Array:
    """Encode value by value: for numbers beyond 64 bits and for numbers of different scales."""
    texts = text_array(array, type).to_pylist()
    return pa.array([None if text is None else numeric_bytes(Decimal(text)) for text in texts], pa.binary())


def numeric_bytes(value: Decimal) -> bytes:
    """Return one numeric in Postgres' binary format, NaN included."""
    if value.is_nan():
        return struct.pack("!hhHh", 0, 0, NAN, 0)
    sign, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    text = "".join(map(str, digits)) + "0" * max(int(exponent), 0) + "0" * (-scale % 4)
    text = text.rjust(-(-len(text) // 4) * 4, "0")
    groups = [int(text[i : i + 4]) for i in range(0, len(text), 4)]
    weight = len(groups) - -(-scale // 4) - 1
    while groups and groups[0] == 0:
        groups.pop(0)
        weight -= 1
    while groups and groups[-1] == 0:
        groups.pop()
    header = struct.pack("!hhHh", len(groups), weight if groups else 0, NEGATIVE if sign and groups else 0, scale)
    return header + struct.pack(f"!{len(groups)}h", *groups)


# Arrays: dimensions, has-nulls, element OID, then length and lower bound of each dimension, then the elements


def length_prefixes(array: pa.Array) -> pa.Array:
    """Return four bytes for each value of a `binary` array: its length, or -1 for NULL."""
    lengths = pc.binary_length(array).fill_null(-1).to_numpy(zero_copy_only=False).astype(">i4")
    return fixed(lengths.tobytes(), len(array), 4)


def _array(array: pa.Array, type: Type) -> pa.Array:
    """Encode arrays of any number of dimensions. Raises Error 0A000 for one whose subarrays differ in length."""
    lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
    sizes, rows, level = [lengths], np.repeat(np.arange(len(array)), lengths), array.flatten()
    for _ in range(type.dimensions - 1):
        lengths = pc.list_value_length(level).fill_null(-1).to_numpy(zero_copy_only=False)
        size = np.zeros(len(array), np.int64)
        size[rows] = lengths
        if (lengths != size[rows]).any() or (lengths < 0).any():
            raise Error(
                f"binary output of {type} with subarrays of several lengths is not supported", FEATURE_NOT_SUPPORTED
            )
        sizes, rows, level = [*sizes, size], np.repeat(rows, lengths), level.flatten()
    element = replace(type, dimensions=0)
    values = binary_array(level, element)
    prefixed = pc.binary_join_element_wise(length_prefixes(values), values.fill_null(b""), b"")
    counts = np.bincount(rows, minlength=len(array))
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    bodies = pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), prefixed), b"")

    layout = [("dims", ">i4"), ("nulls", ">i4"), ("oid", ">i4"), ("sizes", ">i4", (type.dimensions, 2))]
    header = np.zeros(len(array), np.dtype(layout))
    header["dims"], header["oid"] = np.where(counts > 0, type.dimensions, 0), element.oid
    header["nulls"] = np.bincount(rows, weights=~_valid(values), minlength=len(array)) > 0
    header["sizes"] = np.stack([np.stack(sizes, axis=1), np.ones((len(array), type.dimensions))], axis=2)
    headers = fixed(header.tobytes(), len(array), header.itemsize)
    headers = pc.if_else(pa.array(counts == 0), pc.binary_slice(headers, 0, 12), headers)
    return pc.binary_join_element_wise(headers, bodies, b"")


# Records: the number of fields, then the OID, length and value of each


def _record(array: pa.Array, type: Type) -> pa.Array:
    """Return rows in the binary layout of PostgreSQL's `record_send`."""
    parts = [_repeated(struct.pack("!i", len(type.fields)), len(array))]
    for values, (_, field) in zip(array.flatten(), type.fields, strict=True):
        encoded = binary_array(values, field)
        oid = struct.pack("!I", field.in_rows.oid)  # as in pg_attribute
        parts += [_repeated(oid, len(array)), length_prefixes(encoded), encoded.fill_null(b"")]
    return pc.binary_join_element_wise(*parts, b"")


def _repeated(data: bytes, count: int) -> pa.Array:
    return fixed(data * count, count, len(data))


_ENCODERS: dict[str, Callable[[pa.Array, Type], pa.Array]] = {
    "boolean": _boolean,
    "smallint": _fixed(">i2"),
    "integer": _fixed(">i4"),
    "bigint": _fixed(">i8"),
    "oid": _fixed(">u4"),
    "real": _fixed(">f4"),
    "double precision": _fixed(">f8"),
    "numeric": _numeric,
    "character varying": _text,
    "text": _text,
    "enum": _text,
    "bytea": _bytea,
    "date": _date,
    "time without time zone": _time,
    "timestamp without time zone": _timestamp,
    "timestamp with time zone": _timestamp,
    "interval": _interval,
    "json": _text,
    "jsonb": _jsonb,
    "uuid": _uuid,
    "struct": _record,
    "map": _text,
}
