"""Record batches to messages: one row is one message, built a column at a time.

A message is a type byte, the length of what follows including itself, and a body (PostgreSQL docs, "Message Formats").
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from catalog.types import Type
from server.binary_format import binary_array, length_prefixes
from server.text_format import fixed, text_array

DATA_ROW = b"D"
TEXT, BINARY = 0, 1

# Small enough to stay in the processor's cache and to send a first row soon.
ROWS_PER_SLICE = 8192
BYTES_PER_SLICE = 64 << 20

# Up to here a row at a time is less work than a column at a time.
FEW_ROWS = 8


def slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces whose encoded form stays far below Arrow's 2 GiB for one array."""
    if batch.num_rows <= 1:  # whose size takes longer to tell than to encode
        if batch.num_rows:
            yield batch
        return
    width = batch.nbytes // batch.num_rows + 1
    step = max(1, min(ROWS_PER_SLICE, BYTES_PER_SLICE // width))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def data_rows(batch: pa.RecordBatch, types: Sequence[Type], formats: Sequence[int], zone: str = "UTC") -> memoryview:
    """DataRow messages for all rows. `formats` has 0 (text) or 1 (binary) for each column; `zone` is TimeZone."""
    if batch.num_rows <= FEW_ROWS:
        return memoryview(_few_rows(batch, types, formats, zone))
    return messages(DATA_ROW, row_parts(batch, types, formats, zone))


def _few_rows(batch: pa.RecordBatch, types: Sequence[Type], formats: Sequence[int], zone: str) -> bytes:
    columns = [_values(*column, zone) for column in zip(batch.columns, types, formats, strict=True)]
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


def _values(array: pa.Array, type: Type, format: int, zone: str) -> list[bytes | None]:
    """A column's values one by one; of the plainest types without a detour."""
    if format == TEXT and not type.dimensions:
        if array.type == pa.string():
            return [None if value is None else value.encode() for value in array.to_pylist()]
        if _PLAIN.get(type.name) == array.type:
            return [None if value is None else b"%d" % value for value in array.to_pylist()]
    return _encode(array, type, format, zone).to_pylist()


_PLAIN = {"smallint": pa.int16(), "integer": pa.int32(), "bigint": pa.int64()}


def row_parts(
    batch: pa.RecordBatch, types: Sequence[Type], formats: Sequence[int], zone: str = "UTC"
) -> list[pa.Array]:
    """Rows as DataRow and binary COPY have them: the number of fields, then each one's length and value."""
    header = np.zeros(batch.num_rows, np.dtype([("count", ">i2")]))
    header["count"] = batch.num_columns
    parts = [fixed(header.tobytes(), batch.num_rows, 2)]
    for array, type, format in zip(batch.columns, types, formats, strict=True):
        values = _encode(array, type, format, zone)
        parts.append(length_prefixes(values))
        parts.append(values.fill_null(b"") if values.null_count else values)
    return parts


def _encode(array: pa.Array, type: Type, format: int, zone: str) -> pa.Array:
    if format == BINARY:
        return binary_array(array, type)
    return text_array(array, type, zone).cast(pa.binary())


def messages(code: bytes, parts: Sequence[pa.Array]) -> memoryview:
    """One message for each row, whose body is the row's value of each `binary` array in turn."""
    count = len(parts[0])
    header = np.empty(count, np.dtype([("code", "S1"), ("length", ">i4")]))
    header["code"] = code
    header["length"] = 4 + sum(pc.binary_length(part).to_numpy(zero_copy_only=False) for part in parts)
    joined = pc.binary_join_element_wise(fixed(header.tobytes(), count, 5), *parts, b"")
    _, offsets, data = joined.buffers()
    return memoryview(data)[: np.frombuffer(offsets, np.int32)[count]] if count else memoryview(b"")
