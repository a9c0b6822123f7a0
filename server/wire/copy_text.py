"""COPY's text and csv formats: converts bytes to record batches of strings, and result batches to bytes.

The formats are those of PostgreSQL's docs, "COPY", section "File Formats". pyarrow's csv reader splits rows wherever it
reads them as Postgres does. Other rows, and rows with a mistake, are split by `server.wire.copy_split`, which is
slower.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from sparkwave.catalog.errors import PROGRAM_LIMIT_EXCEEDED, Error
from sparkwave.server.wire.client_encoding import UTF8
from sparkwave.server.wire.copy_split import check_header, line_text, split, splitter, unescape
from sparkwave.server.wire.messages import COPY_DATA, frame
from sparkwave.server.wire.result import CopyOptions, ResultColumn
from sparkwave.server.wire.row_messages import messages, slices
from sparkwave.server.wire.text_format import text_array
from sparkwave.server.wire.text_style import DEFAULT_STYLE, TextStyle

PARSE_AT = 1 << 20  # bytes gathered before they are parsed
MAX_ROW_BYTES = 1 << 30
_NEWLINE, _RETURN, _BACKSLASH, _DOT = b"\n\r\\."


def text_copy(**overrides: object) -> CopyOptions:
    """Return the text format's options: a tab between fields, `\\N` for NULL."""
    return replace(CopyOptions("text", "\t", "\\N"), **overrides)  # type: ignore[arg-type]


def csv_copy(**overrides: object) -> CopyOptions:
    """Return the csv format's options: a comma between fields, an empty NULL text, by default the quote as escape."""
    options = replace(CopyOptions("csv", ",", ""), **overrides)  # type: ignore[arg-type]
    return options if "escape" in overrides else replace(options, escape=options.quote)


def binary_copy() -> CopyOptions:
    return CopyOptions("binary")


# In


class CopyParser:
    """Parses the bytes of a COPY FROM STDIN, cut at any byte, into batches of `string` columns.

    Raises Error 22P04 for rows with too few or too many fields; its `context` is the line.
    """

    def __init__(self, columns: Sequence[str], options: CopyOptions) -> None:
        self.columns = list(columns)
        self.options = options
        self.lines = 0  # parsed so far, the header included
        self._splitter = splitter(options)
        self._parts: list[bytes] = []
        self._size = 0
        self._parse_at = PARSE_AT
        self._header = options.header
        self._ended = False
        self._rows = b""  # of the last batch
        self._batches: list[tuple[int, int | None]] = []  # the first row of each, and its line if rows are lines
        self._count = 0

    def line_of(self, row: int) -> int:
        """Return the line, from 1, on which a row of the last batch ends; the row is counted from 0."""
        end = int(self._row_ends(self._rows)[row]) if row else self._rows.find(b"\n")
        return self.lines + self._rows.count(b"\n", 0, end) + 1

    def place_of(self, row: int) -> str:
        """Return the place of a row, counted from 0 over all batches: "line N", and in the last batch its text.

        The place is "" where a row may have several lines.
        """
        place = bisect_right(self._batches, row, key=lambda batch: batch[0])
        first, line = self._batches[place - 1] if place else (0, None)
        if line is None:
            return ""
        if place < len(self._batches):
            return f"line {line + row - first}"
        return line_text(line + row - first, self._rows.split(b"\n")[row - first])

    def feed(self, data: bytes) -> Iterator[pa.RecordBatch]:
        if self._ended:
            return
        self._parts.append(data)
        self._size += len(data)
        if self._size >= self._parse_at:
            yield from self._parse(last=False)

    def finish(self) -> Iterator[pa.RecordBatch]:
        if not self._ended:
            yield from self._parse(last=True)

    def _parse(self, last: bool) -> Iterator[pa.RecordBatch]:
        data = b"".join(self._parts)
        if last and data and not data.endswith(b"\n"):
            data += b"\n"  # or pyarrow reads an empty last value as quoted if the value before it is quoted
        ends = self._row_ends(data)
        whole = len(data) if last else int(ends[-1]) + 1 if len(ends) else 0
        self._keep(data[whole:], grow=not whole)
        rows = self._until_marker(data[:whole], ends)
        if self._header and rows:
            self._header = False
            first = int(ends[0]) + 1 if len(ends) else len(rows)
            if self.options.header_match:
                check_header(self._splitter, rows[:first], self.columns)
            self.lines += rows.count(b"\n", 0, first)
            rows = rows[first:]
        if rows:
            self._rows = rows
            batch, lines = self._batch(rows), rows.count(b"\n")
            self._batches.append((self._count, self.lines + 1 if lines == batch.num_rows else None))
            self._count += batch.num_rows
            yield batch
            self.lines += lines

    def _keep(self, rest: bytes, grow: bool) -> None:
        """Keep the bytes after the last whole row for the next parse.

        Without a whole row, parse again when there are twice as many bytes, so that a long row is scanned few times.
        """
        self._parts, self._size = [rest], len(rest)
        self._parse_at = 2 * self._parse_at if grow else PARSE_AT + len(rest)
        if len(rest) > MAX_ROW_BYTES:
            raise Error(f"COPY row exceeds {MAX_ROW_BYTES} bytes", PROGRAM_LIMIT_EXCEEDED)

    def _row_ends(self, data: bytes) -> np.ndarray:
        """Return the positions of the newlines that end rows."""
        options = self.options
        newlines = np.flatnonzero(_characters(data) == _NEWLINE)
        if options.format == "text":
            return newlines if b"\\\n" not in data else np.array(self._splitter.row_ends(data), np.int64)
        if options.escape != options.quote:
            return np.array(self._splitter.row_ends(data), np.int64)
        quotes = np.flatnonzero(_characters(data) == ord(options.quote))
        return newlines[np.searchsorted(quotes, newlines) % 2 == 0] if len(quotes) else newlines

    def _until_marker(self, rows: bytes, ends: np.ndarray) -> bytes:
        """Return the rows before a line that is only `\\.`, which ends the data."""
        if b"\\." not in rows:
            return rows
        for start in [0, *(ends[ends < len(rows) - 2] + 1).tolist()]:
            if rows.startswith(b"\\.", start) and re.match(rb"\\\.\r?(\n|\Z)", rows[start : start + 4]):
                self._ended = True
                return rows[:start]
        return rows

    def _batch(self, rows: bytes) -> pa.RecordBatch:
        arrays = self._fast(rows)
        if arrays is None:
            values = split(self._splitter, rows, self.columns, self.lines)
            arrays = [pa.array(column, pa.string()) for column in zip(*values, strict=True)]
        return pa.RecordBatch.from_arrays(list(map(self._forced, self.columns, arrays)), names=self.columns)

    def _forced(self, column: str, array: pa.Array) -> pa.Array:
        null = self.options.null
        if column in self.options.force_not_null:
            array = array.fill_null(null)
        if column in self.options.force_null:
            array = pc.if_else(pc.equal(array, null), None, array)
        return array

    def _fast(self, rows: bytes) -> list[pa.Array] | None:
        """Return the columns as pyarrow reads them; None where it fails or would read other values than PostgreSQL."""
        is_text = self.options.format == "text"
        is_plain = (_is_plain_text if is_text else _is_plain_csv)(rows, self.options)
        if not is_plain or b"\0" in rows or (len(self.columns) > 1 and _has_empty_row(rows, self._row_ends(rows))):
            return None
        try:
            table = _read_csv(rows, len(self.columns), self.options)
        except pa.ArrowInvalid:
            return None
        arrays = [column.combine_chunks() for column in table.columns]
        return [_unescaped(array) for array in arrays] if is_text and b"\\" in rows else arrays


def _characters(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def _is_plain_text(rows: bytes, options: CopyOptions) -> bool:
    """Return whether no tab, carriage return or newline is escaped, so that each one separates."""
    escaped = (b"\\\n", b"\\\r", b"\\" + options.delimiter.encode())
    return rows.count(b"\r") == rows.count(b"\r\n") and not any(pair in rows for pair in escaped)


def _is_plain_csv(rows: bytes, options: CopyOptions) -> bool:
    """Return whether quotes enclose whole fields only, and carriage returns are before newlines or inside quotes."""
    characters = _characters(rows)
    quotes = np.flatnonzero(characters == ord(options.quote))
    returns = np.flatnonzero(characters == _RETURN)
    outside = returns[np.searchsorted(quotes, returns) % 2 == 0]
    after_return = np.append(characters, _NEWLINE)[outside + 1]
    if options.escape != options.quote or len(quotes) % 2 or (after_return != _NEWLINE).any():
        return False
    edges = [ord(options.delimiter), ord(options.quote), _NEWLINE, _RETURN]
    before = np.append(_NEWLINE, characters)[quotes[::2]]
    behind = np.append(characters, _NEWLINE)[quotes[1::2] + 1]
    return bool(np.isin(before, edges).all() and np.isin(behind, edges).all())


def _has_empty_row(rows: bytes, ends: np.ndarray) -> bool:
    """Return whether there is an empty row: an error with several columns, but pyarrow accepts it."""
    starts = np.concatenate(([0], ends[:-1] + 1)).astype(np.int64)[: len(ends)]
    return bool((_characters(rows)[starts + (_characters(rows)[starts] == _RETURN)] == _NEWLINE).any())


def _read_csv(rows: bytes, columns: int, options: CopyOptions) -> pa.Table:
    names = [str(i) for i in range(columns)]
    quote = options.quote if options.format == "csv" else False
    return pyarrow.csv.read_csv(
        pa.BufferReader(rows),
        read_options=pyarrow.csv.ReadOptions(use_threads=False, block_size=len(rows) + 1, column_names=names),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=options.delimiter,
            quote_char=quote,
            double_quote=bool(quote),
            escape_char=False,
            newlines_in_values=bool(quote),
            ignore_empty_lines=False,
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=[options.null],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def _unescaped(array: pa.Array) -> pa.Array:
    odd = pc.match_substring(array, "\\").fill_null(False)
    if not pc.any(odd).as_py():
        return array
    values = [UTF8.decode(unescape(value)) for value in array.filter(odd).cast(pa.binary()).to_pylist()]
    return pc.replace_with_mask(array, odd, pa.array(values, pa.string()))


# Out


def copy_rows(
    batches: Iterable[pa.RecordBatch],
    columns: Sequence[ResultColumn],
    options: CopyOptions,
    style: TextStyle = DEFAULT_STYLE,
) -> Iterator[tuple[int, bytes | memoryview]]:
    """Yield CopyData messages, one for each row, with their number of rows; the header line counts as 0 rows."""
    if options.header:
        yield 0, frame(COPY_DATA, style.encoding.from_utf8(_header(columns, options)))
    for batch in batches:
        for piece in slices(batch):
            yield piece.num_rows, messages(COPY_DATA, [_lines(piece, columns, options, style)])


def _header(columns: Sequence[ResultColumn], options: CopyOptions) -> bytes:
    arrays = [_escape(pa.array([column.name]), options, len(columns)) for column in columns]
    return (options.delimiter.join(array[0].as_py() for array in arrays) + "\n").encode()


def _lines(batch: pa.RecordBatch, columns: Sequence[ResultColumn], options: CopyOptions, style: TextStyle) -> pa.Array:
    if not columns:  # the batches of a query without columns have one
        return pa.array([style.encoding.from_utf8(b"\n")], pa.binary()).take(pa.array([0] * batch.num_rows))
    texts = (text_array(array, column.type, style) for array, column in zip(batch.columns, columns, strict=True))
    names = [column.name for column in columns]
    cells = [
        _escape(text, options, len(columns), not {name, "*"}.isdisjoint(options.force_quote)).fill_null(options.null)
        for name, text in zip(names, texts, strict=True)
    ]
    rows = pc.binary_join_element_wise(*cells, options.delimiter)
    return style.encoding.encode_array(pc.binary_join_element_wise(rows, "\n", "").cast(pa.binary()))


def _escape(text: pa.Array, options: CopyOptions, columns: int, quotes_all: bool = False) -> pa.Array:
    return _csv_escape(text, options, columns, quotes_all) if options.format == "csv" else _text_escape(text, options)


_TEXT_ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def _text_escape(text: pa.Array, options: CopyOptions) -> pa.Array:
    escapes = _TEXT_ESCAPES | ({} if options.delimiter == "\t" else {options.delimiter: "\\" + options.delimiter})
    if not pc.any(pc.match_substring_regex(text, "[" + "".join(map(re.escape, escapes)) + "]")).as_py():
        return text
    for character, replacement in escapes.items():
        text = pc.replace_substring(text, character, replacement)
    return text


def _csv_escape(text: pa.Array, options: CopyOptions, columns: int, quotes_all: bool) -> pa.Array:
    """Put quotes around values that would read differently: separators, the text of NULL, the end marker."""
    special = "".join(map(re.escape, (options.delimiter, options.quote, "\n", "\r")))
    needs = f"[{special}]|^{re.escape(options.null)}$" + (r"|^\\\.$" if columns == 1 else "")
    odd = text.is_valid() if quotes_all else pc.match_substring_regex(text, needs)
    if not pc.any(odd).as_py():
        return text
    escaped = text
    for character in dict.fromkeys((options.escape, options.quote)):
        escaped = pc.replace_substring(escaped, character, options.escape + character)
    return pc.if_else(odd, pc.binary_join_element_wise(options.quote, escaped, options.quote, ""), text)
