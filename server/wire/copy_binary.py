"""COPY's binary format: converts bytes to record batches, and result batches to bytes.

The format is that of PostgreSQL's docs, "COPY", section "Binary Format": a header, for each row the number of its
fields and each field's length and value, and a trailer. Values are encoded as by PostgreSQL's `*_send` and `*_recv`
functions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sparkwave.catalog.errors import (
    BAD_COPY_FILE_FORMAT,
    DATATYPE_MISMATCH,
    DATETIME_FIELD_OVERFLOW,
    FEATURE_NOT_SUPPORTED,
    INVALID_BINARY_REPRESENTATION,
    PROGRAM_LIMIT_EXCEEDED,
    Error,
)
from sparkwave.catalog.types import Type, type_of_oid
from sparkwave.server.wire.binary_format import DAYS_TO_2000, MICROS_TO_2000, NEGATIVE
from sparkwave.server.wire.client_encoding import UTF8, Encoding
from sparkwave.server.wire.messages import COPY_DATA, Reader, frame
from sparkwave.server.wire.parameter_values import decode_parameter
from sparkwave.server.wire.result import ResultColumn
from sparkwave.server.wire.row_messages import BINARY, constant, messages, row_parts
from sparkwave.server.wire.text_format import INFINITE_DAYS, INFINITE_MICROS
from sparkwave.server.wire.text_style import DEFAULT_STYLE, TextStyle

SIGNATURE = b"PGCOPY\n\xff\r\n\0"
HEADER = SIGNATURE + struct.pack("!ii", 0, 0)  # no flags, no header extension
TRAILER = struct.pack("!h", -1)
_WITH_OIDS, _CRITICAL = 1 << 16, 0xFFFF0000

PARSE_AT = 1 << 20  # bytes gathered before they are parsed
MAX_ROW_BYTES = 1 << 30

Cells = list[bytes | None]


# Out


def binary_rows(
    batches: Iterable[pa.RecordBatch], columns: Sequence[ResultColumn], style: TextStyle = DEFAULT_STYLE
) -> Iterator[tuple[int, bytes | memoryview]]:
    """Yield CopyData messages, one message for each row, together with the number of rows in them.

    The header is in front of the first row, or of the trailer, as PostgreSQL sends it: ADBC's reader relies on it. The
    trailer counts as 0 rows.
    """
    types, formats = [column.type for column in columns], [BINARY] * len(columns)
    header = HEADER
    for batch in batches:
        if header and batch.num_rows:
            first = [constant(header, 1), *row_parts(batch.slice(0, 1), types, formats, style)]
            yield 1, messages(COPY_DATA, first)
            header, batch = b"", batch.slice(1)
        if batch.num_rows:
            yield batch.num_rows, messages(COPY_DATA, row_parts(batch, types, formats, style))
    yield 0, frame(COPY_DATA, header + TRAILER)


# In


class BinaryCopyParser:
    """Parses the bytes of a COPY FROM STDIN, cut at any byte, into batches with the columns of `decode_column`.

    Raises Error 22P04 for data of another format, 22P03 for a value that its type does not have.
    """

    def __init__(self, columns: Sequence[ResultColumn], encoding: Encoding = UTF8) -> None:
        self.columns = list(columns)
        self._encoding = encoding
        self._parts: list[bytes] = []
        self._size = 0
        self._parse_at = PARSE_AT
        self._started = False
        self._ended = False

    def feed(self, data: bytes) -> Iterator[pa.RecordBatch]:
        if self._ended and data:
            raise _malformed("received copy data after EOF marker")
        self._parts.append(data)
        self._size += len(data)
        if self._size >= self._parse_at:
            yield from self._parse(last=False)

    def finish(self) -> Iterator[pa.RecordBatch]:
        yield from self._parse(last=True)

    def _parse(self, last: bool) -> Iterator[pa.RecordBatch]:
        data = b"".join(self._parts)
        at = 0
        if not self._started:
            at = _after_header(data, last)
            self._started = at > 0
        end, cells = self._rows(data, at) if self._started else (0, [])
        rest = data[end:]
        if rest and self._ended:
            raise _malformed("received copy data after EOF marker")
        if rest and last:
            raise _malformed("unexpected EOF in COPY data")
        self._keep(rest, grow=not end)
        if cells:
            width = len(self.columns)
            arrays = [self._column(cells[index::width], column) for index, column in enumerate(self.columns)]
            yield pa.RecordBatch.from_arrays(arrays, names=[column.name for column in self.columns])

    def _keep(self, rest: bytes, grow: bool) -> None:
        """Keep the bytes after the last whole row for the next parse.

        Without a whole row, parse again when there are twice as many bytes, so that a long row is copied few times.
        """
        self._parts, self._size = [rest], len(rest)
        self._parse_at = 2 * self._parse_at if grow else PARSE_AT + len(rest)
        if len(rest) > MAX_ROW_BYTES:
            raise Error(f"COPY row exceeds {MAX_ROW_BYTES} bytes", PROGRAM_LIMIT_EXCEEDED)

    def _rows(self, data: bytes, at: int) -> tuple[int, Cells]:
        """Return the position where the last whole row ends, and the values of all whole rows, row by row."""
        width, size = len(self.columns), len(data)
        count_of, length_of = struct.Struct("!h").unpack_from, struct.Struct("!i").unpack_from
        cells: Cells = []
        add = cells.append
        while at + 2 <= size and not self._ended:
            start, (count,) = at, count_of(data, at)
            at += 2
            if count == -1:
                self._ended = True
                return at, cells
            if count != width:
                raise _malformed(f"row field count is {count}, expected {width}")
            for _ in range(width):
                length = length_of(data, at)[0] if at + 4 <= size else size
                at += 4
                if length == -1:
                    add(None)
                    continue
                if length < 0:
                    raise _malformed("invalid field size")
                if at + length > size:
                    del cells[len(cells) - len(cells) % width :]
                    return start, cells
                add(data[at : at + length])
                at += length
        return at, cells

    def _column(self, cells: Cells, column: ResultColumn) -> pa.Array:
        try:
            if self._encoding.concerns(column.type):
                cells = [None if cell is None else self._encoding.to_utf8(cell) for cell in cells]
            return decode_column(cells, column.type)
        except Error as error:
            error.detail = error.detail or f"COPY, column {column.name}"
            raise


def _after_header(data: bytes, last: bool) -> int:
    """Return the position after the header; 0 when the header is not complete yet."""
    if data[: len(SIGNATURE)] != SIGNATURE[: len(data)] or (last and len(data) < len(SIGNATURE)):
        raise _malformed("COPY file signature not recognized")
    if len(data) < len(HEADER):
        if last:
            raise _malformed("invalid COPY file header (missing flags)")
        return 0
    flags, length = struct.unpack_from("!Ii", data, len(SIGNATURE))
    if flags & _WITH_OIDS:
        raise _malformed("invalid COPY file header (WITH OIDS)")
    if flags & _CRITICAL:
        raise _malformed("unrecognized critical flags in COPY file header")
    if length < 0:
        raise _malformed("invalid COPY file header (missing length)")
    if len(data) < len(HEADER) + length:
        if last:
            raise _malformed("invalid COPY file header (wrong length)")
        return 0
    return len(HEADER) + length


def _malformed(message: str) -> Error:
    return Error(message, BAD_COPY_FILE_FORMAT)


# Values


def decode_column(cells: Cells, type: Type) -> pa.Array:
    """Return a column's values, None for NULL, as an Arrow array that DuckDB can cast to `type`.

    Raises Error 22P03 for a malformed value, 42804 for an array of other elements, 0A000 for more than one dimension.
    """
    if type.dimensions:
        return _arrays(cells, type)
    return _DECODERS[type.name](cells, type)


def _numbers(cells: Cells, dtype: str, type: Type) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of fixed width, and a mask of the NULLs."""
    wire = np.dtype(dtype)
    if any(cell is not None and len(cell) != wire.itemsize for cell in cells):
        raise Error(f"incorrect binary data format for type {type}", INVALID_BINARY_REPRESENTATION)
    zero = bytes(wire.itemsize)
    values = np.frombuffer(b"".join(zero if cell is None else cell for cell in cells), wire)
    nulls = np.fromiter((cell is None for cell in cells), np.bool_, len(cells))
    return values.astype(wire.newbyteorder("=")), nulls


def _plain(dtype: str) -> Callable[[Cells, Type], pa.Array]:
    """Return a decoder for numbers of a fixed width, which only reverses their bytes."""

    def decode(cells: Cells, type: Type) -> pa.Array:
        values, nulls = _numbers(cells, dtype, type)
        return pa.array(values, mask=nulls)

    return decode


def _booleans(cells: Cells, type: Type) -> pa.Array:
    values, nulls = _numbers(cells, ">u1", type)
    return pa.array(values != 0, mask=nulls)


def _since_2000(dtype: str, epoch: int, infinite: int, arrow: pa.DataType) -> Callable[[Cells, Type], pa.Array]:
    """Return a decoder for times since 2000. Infinities become DuckDB's: its `-infinity` is one above PostgreSQL's."""

    def decode(cells: Cells, type: Type) -> pa.Array:
        values, nulls = _numbers(cells, dtype, type)
        above, below = values == infinite, values == -infinite - 1
        moved = values + values.dtype.type(epoch)
        if ((moved < values) & ~above).any():
            raise Error(f"{type} out of range", DATETIME_FIELD_OVERFLOW)
        moved[above], moved[below] = infinite, -infinite
        return pa.array(moved, mask=nulls).cast(arrow)

    return decode


def _times(cells: Cells, type: Type) -> pa.Array:
    values, nulls = _numbers(cells, ">i8", type)
    return pa.array(values, mask=nulls).cast(pa.time64("us"))


def _strings(cells: Cells, _type: Type) -> pa.Array:
    try:
        if any(b"\0" in cell for cell in cells if cell is not None):
            raise pa.ArrowInvalid("zero byte")
        return pa.array(cells, pa.binary()).cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([None if cell is None else UTF8.decode(cell) for cell in cells], pa.string())


def _bytes(cells: Cells, _type: Type) -> pa.Array:
    return pa.array(cells, pa.binary())


def _by_value(cells: Cells, type: Type) -> pa.Array:
    """Convert value by value to text, which DuckDB casts."""
    return pa.array(
        [None if cell is None else _spelled(decode_parameter(cell, 1, type)) for cell in cells], pa.string()
    )


_POWERS = 10 ** np.arange(19, dtype=np.int64)
_NUMERIC_WORDS = 12  # four words of header, and base-10000 digits


def _numerics(cells: Cells, type: Type) -> pa.Array:
    """Return decimals of the type's scale if 64 bits can hold all values, else texts by `_by_value`."""
    unscaled = _unscaled(cells, type.scale or 0) if type.precision is not None else None
    if unscaled is None:
        return _by_value(cells, type)
    words = pa.py_buffer(np.stack([unscaled, unscaled >> 63], axis=1).tobytes())
    decimals = pa.Array.from_buffers(pa.decimal128(38, type.scale or 0), len(cells), [None, words])
    return pc.if_else(pa.array([cell is not None for cell in cells]), decimals, None)


def _unscaled(cells: Cells, scale: int) -> np.ndarray | None:
    """Return the values times 10 ** scale, NULL as 0; None if one is too large, has a finer scale or is no number."""
    width = 2 * _NUMERIC_WORDS
    padded = b"".join(bytes(width) if cell is None else cell.ljust(width, b"\0") for cell in cells)
    if len(padded) != width * len(cells):
        return None
    words = np.frombuffer(padded, ">i2").reshape(-1, _NUMERIC_WORDS).astype(np.int64)
    count, weight, sign, digits = words[:, 0], words[:, 1], words[:, 2], words[:, 4:]
    lengths = np.fromiter((8 if cell is None else len(cell) for cell in cells), np.int64, len(cells))
    highest = np.where(count > 0, 4 * weight + 4 + scale, 0)
    is_plain = (
        (lengths == 8 + 2 * count) & ((sign == 0) | (sign == NEGATIVE)) & (words[:, 3] <= scale) & (highest <= 18)
    )
    if not is_plain.all() or (digits < 0).any() or (digits > 9999).any():
        return None
    total = np.zeros(len(cells), np.int64)
    for place in range(digits.shape[1]):
        exponent = 4 * (weight - place) + scale
        whole, rest = np.divmod(digits[:, place], _POWERS[np.clip(-exponent, 0, 4)])
        if rest.any():
            return None
        total += whole * _POWERS[np.clip(exponent, 0, 18)]
    return np.where(sign == NEGATIVE, -total, total)


def _spelled(value: object) -> str:
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _arrays(cells: Cells, type: Type) -> pa.Array:
    """Return lists of one dimension. The elements of all lists are decoded together, as one column."""
    if type.dimensions > 1:
        raise Error(f"binary input of {type} is not supported", FEATURE_NOT_SUPPORTED)
    elements: Cells = []
    offsets = [0]
    for cell in cells:
        if cell is not None:
            elements += _elements(cell, type)
        offsets.append(len(elements))
    nulls = pa.array([cell is None for cell in cells])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), decode_column(elements, type.element), mask=nulls)


def _elements(cell: bytes, type: Type) -> Cells:
    try:
        reader = Reader(cell)
        dimensions, _, oid = reader.int32(), reader.int32(), reader.oid()
        found, wanted = type_of_oid(oid), type.element
        if found is None or not (found.name == wanted.name or (found.is_text and wanted.is_text)):
            raise Error(
                f"binary data has array element type {found or oid} instead of expected {wanted}", DATATYPE_MISMATCH
            )
        if dimensions not in (0, 1):
            raise Error(f"binary input of {type} with {dimensions} dimensions is not supported", FEATURE_NOT_SUPPORTED)
        count = reader.int32() if dimensions else 0
        if dimensions:
            reader.int32()  # the lower bound
        values = [reader.value() for _ in range(count)]
        reader.done()
        return values
    except Error as error:
        if error.sqlstate in (DATATYPE_MISMATCH, FEATURE_NOT_SUPPORTED):
            raise
        raise Error(f"incorrect binary data format for type {type}", INVALID_BINARY_REPRESENTATION) from error


_DECODERS: dict[str, Callable[[Cells, Type], pa.Array]] = {
    "boolean": _booleans,
    "smallint": _plain(">i2"),
    "integer": _plain(">i4"),
    "bigint": _plain(">i8"),
    "oid": _plain(">u4"),
    "real": _plain(">f4"),
    "double precision": _plain(">f8"),
    "numeric": _numerics,
    "character varying": _strings,
    "text": _strings,
    "bytea": _bytes,
    "date": _since_2000(">i4", DAYS_TO_2000, INFINITE_DAYS, pa.date32()),
    "time without time zone": _times,
    "timestamp without time zone": _since_2000(">i8", MICROS_TO_2000, INFINITE_MICROS, pa.timestamp("us")),
    "timestamp with time zone": _since_2000(">i8", MICROS_TO_2000, INFINITE_MICROS, pa.timestamp("us", "UTC")),
    "interval": _by_value,
    "json": _by_value,
    "jsonb": _by_value,
    "uuid": _by_value,
}
