"""Converts record batches to messages, one message for each row, built a column at a time.

A message is a type byte, a length that includes itself, and a body (PostgreSQL docs, "Message Formats").
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwave.catalog.types import Type
from sparkwave.server.wire.binary_format import binary_array
from sparkwave.server.wire.client_encoding import Encoding
from sparkwave.server.wire.text_format import fixed, text_array
from sparkwave.server.wire.text_style import DEFAULT_STYLE, TextStyle

DATA_ROW = b"D"
TEXT, BINARY = 0, 1

# Small enough for the processor's cache, and for a first row to be sent soon.
ROWS_PER_SLICE = 8192
BYTES_PER_SLICE = 64 << 20

# A part of each row's message: a `binary` array without nulls, or a block, a byte matrix of rows of one width.
Part: TypeAlias = "pa.Array | np.ndarray"

# Up to this many rows, encoding row by row is faster than column by column.
FEW_ROWS = 8


def slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the batch in pieces whose encoded form stays far below 2 GiB, Arrow's limit for one array."""
    if batch.num_rows <= 1:  # to measure a single row takes longer than to encode it
        if batch.num_rows:
            yield batch
        return
    width = batch.nbytes // batch.num_rows + 1
    step = max(1, min(ROWS_PER_SLICE, BYTES_PER_SLICE // width))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def data_rows(
    batch: pa.RecordBatch, types: Sequence[Type], formats: Sequence[int], style: TextStyle = DEFAULT_STYLE
) -> memoryview:
    """Return DataRow messages for all rows. `formats` has 0 (text) or 1 (binary) for each column."""
    if batch.num_rows <= FEW_ROWS:
        return memoryview(_few_rows(batch, types, formats, style))
    return messages(DATA_ROW, row_parts(batch, types, formats, style))


def _few_rows(batch: pa.RecordBatch, types: Sequence[Type], formats: Sequence[int], style: TextStyle) -> bytes:
    columns = [_values(*column, style) for column in _columns(batch, types, formats)]
    out = bytearray()
    for number in range(batch.num_rows):
        body = bytearray(_COUNT.pack(len(columns)))
        for column in columns:
            value = column[number]
            body += _LENGTH.pack(-1 if value is None else len(value))
            body += value or b""
        out += DATA_ROW + _LENGTH.pack(4 + len(body)) + body
    return bytes(out)


_COUNT, _LENGTH = struct.Struct("!h"), struct.Struct("!i")


def _columns(
    batch: pa.RecordBatch, types: Sequence[Type], formats: Sequence[int]
) -> Iterable[tuple[pa.Array, Type, int]]:
    """Return the columns with their types and formats: none without `types`, although Arrow's batch has a column."""
    return zip(batch.columns, types, formats, strict=True) if types else ()


def _values(array: pa.Array, type: Type, format: int, style: TextStyle) -> list[bytes | None]:
    """Return a column's values one by one. Common plain types are encoded directly, which is faster."""
    if format == TEXT and not type.dimensions:
        if array.type == pa.string() and type.name != "jsonb" and style.encoding.is_utf8:
            return [None if value is None else value.encode() for value in array.to_pylist()]
        if _PLAIN.get(type.name) == array.type:
            return [None if value is None else b"%d" % value for value in array.to_pylist()]
    return _encode(array, type, format, style).to_pylist()


_PLAIN = {"smallint": pa.int16(), "integer": pa.int32(), "bigint": pa.int64()}


def row_parts(
    batch: pa.RecordBatch, types: Sequence[Type], formats: Sequence[int], style: TextStyle = DEFAULT_STYLE
) -> list[Part]:
    """Return the bodies of DataRow and of binary COPY: the number of fields, then each field's length and value."""
    parts: list[Part] = [constant(_COUNT.pack(len(types)), batch.num_rows)]
    for array, type, format in _columns(batch, types, formats):
        parts += _field(_encode(array, type, format, style))
    return parts


def _field(values: pa.Array) -> tuple[Part, Part]:
    """Return the lengths and values of a column. Values of one common width form a block too."""
    lengths = pc.binary_length(values)
    if values.null_count or not len(values):
        prefixes = lengths.fill_null(-1).to_numpy(zero_copy_only=False)
        return _block(prefixes.astype(">i4")), values.fill_null(b"")
    widths = lengths.to_numpy()
    width = int(widths[0])
    if (widths != width).any():
        return _block(widths.astype(">i4")), values
    _, offsets, data = values.buffers()
    start = int(np.frombuffer(offsets, np.int32, 1, 4 * values.offset)[0])
    block = np.frombuffer(data or b"", np.uint8, width * len(values), start).reshape(len(values), width)
    return constant(_LENGTH.pack(width), len(values)), block


def _encode(array: pa.Array, type: Type, format: int, style: TextStyle) -> pa.Array:
    if format == TEXT:
        return style.encoding.encode_array(text_array(array, type, style).cast(pa.binary()))
    values = binary_array(array, type)
    return values if style.encoding.is_utf8 else _recoded(values, type, style.encoding)


def _recoded(values: pa.Array, type: Type, encoding: Encoding) -> pa.Array:
    """Return binary values, with text values converted to the encoding."""
    return encoding.encode_array(values) if encoding.concerns(type) else values


def messages(code: bytes, parts: Sequence[Part]) -> memoryview:
    """Return one message for each row, whose body is the row's value of each part, in order."""
    count = len(parts[0])
    if not count:
        return memoryview(b"")
    length = np.full(count, 4, np.int32)
    for part in parts:
        length += part.shape[1] if isinstance(part, np.ndarray) else pc.binary_length(part).to_numpy()
    pieces = list(_merged([constant(code, count), _block(length.astype(">i4")), *parts]))
    if len(pieces) == 1:
        return memoryview(pieces[0].buffers()[2])
    joined = pc.binary_join_element_wise(*pieces, b"")
    _, offsets, data = joined.buffers()
    return memoryview(data)[: np.frombuffer(offsets, np.int32)[count]]


def _merged(parts: Sequence[Part]) -> Iterator[pa.Array]:
    """Yield the parts as `binary` arrays. Adjacent blocks become one array, since each array to join costs time."""
    for is_block, neighbours in itertools.groupby(parts, lambda part: isinstance(part, np.ndarray)):
        if not is_block:
            yield from neighbours
            continue
        blocks = [block for block in neighbours if block.shape[1]]
        if not blocks:
            continue
        rows = np.empty(len(blocks[0]), np.dtype([("", f"V{block.shape[1]}") for block in blocks]))
        for name, block in zip(rows.dtype.names or (), blocks, strict=True):
            is_constant = not block.strides[0]
            rows[name] = block[0].tobytes() if is_constant else block.view(rows.dtype[name]).ravel()
        yield fixed(rows.data, len(rows), rows.dtype.itemsize)


def _block(values: np.ndarray) -> np.ndarray:
    """Return values of one width as a block."""
    return values.view(np.uint8).reshape(len(values), values.dtype.itemsize)


def constant(value: bytes, count: int) -> np.ndarray:
    """Return a block with the same bytes for each row."""
    return np.broadcast_to(np.frombuffer(value, np.uint8), (count, len(value)))
