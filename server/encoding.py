"""Record batches to messages: one row is one message, built a column at a time.

A message is a type byte, the length of what follows including itself, and a body (PostgreSQL docs, "Message Formats").
"""

from __future__ import annotations

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


def slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The batch in pieces whose encoded form stays far below Arrow's 2 GiB for one array."""
    width = batch.nbytes // batch.num_rows + 1 if batch.num_rows else 1
    step = max(1, min(ROWS_PER_SLICE, BYTES_PER_SLICE // width))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def data_rows(batch: pa.RecordBatch, types: Sequence[Type], formats: Sequence[int], zone: str = "UTC") -> memoryview:
    """DataRow messages for all rows. `formats` has 0 (text) or 1 (binary) for each column; `zone` is TimeZone."""
    return messages(DATA_ROW, row_parts(batch, types, formats, zone))


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
