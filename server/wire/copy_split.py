"""Splits COPY data into rows and fields exactly as Postgres does, one value at a time.

It serves data that the fast path of `server.wire.copy_text` does not understand, and finds the line of a mistake.
Source of the rules: PostgreSQL's `copyfromparse.c` (CopyReadLineText, CopyReadAttributesText, CopyReadAttributesCSV).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sparkwave.catalog.errors import BAD_COPY_FILE_FORMAT, Error
from sparkwave.server.wire.client_encoding import UTF8
from sparkwave.server.wire.result import CopyOptions

Fields = list[bytes | None]

_CONTROL = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}
_ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9A-Fa-f]{1,2})|(.|\Z))", re.DOTALL)


def unescape(data: bytes) -> bytes:
    """Return a field of the text format with its backslash sequences resolved."""
    return _ESCAPE.sub(_character, data)


def _character(match: re.Match[bytes]) -> bytes:
    octal, hexadecimal, other = match.groups()
    if other is not None:
        return _CONTROL.get(other, other)
    return bytes([(int(octal, 8) if octal else int(hexadecimal, 16)) & 0xFF])


class TextSplitter:
    """Splits the text format, where a backslash may stand before any character, also a delimiter or a line end."""

    def __init__(self, options: CopyOptions) -> None:
        delimiter = re.escape(options.delimiter.encode())
        self.null = options.null.encode()
        self._row = re.compile(rb"((?:[^\\\n]|\\.|\\\Z)*+)(\n|\Z)", re.DOTALL)
        self._field = re.compile(rb"((?:[^\\" + delimiter + rb"]|\\.|\\\Z)*+)(" + delimiter + rb"|\Z)", re.DOTALL)
        self._return = re.compile(rb"(?:[^\\\r]|\\.)*+\r", re.DOTALL)

    def row_ends(self, data: bytes) -> list[int]:
        return [match.start(2) for match in self._row.finditer(data) if match[2]]

    def fields(self, row: bytes) -> Fields:
        if self._return.match(row):
            raise Error(
                "literal carriage return found in data",
                BAD_COPY_FILE_FORMAT,
                hint='Use "\\r" to represent carriage return.',
            )
        return [None if raw == self.null else unescape(raw) for raw in _separated(self._field, row)]


class CsvSplitter:
    """Splits the csv format, where quotes may open and close anywhere inside a field."""

    def __init__(self, options: CopyOptions) -> None:
        quote, escape, delimiter = (
            re.escape(character.encode()) for character in (options.quote, options.escape, options.delimiter)
        )
        quoted = quote + rb"((?:" + escape + rb"[" + escape + quote + rb"]|[^" + quote + rb"])*+)(?:" + quote + rb"|\Z)"
        inner = re.sub(rb"\((?!\?)", rb"(?:", quoted)
        self.null = options.null.encode()
        self._row = re.compile(rb"((?:[^" + quote + rb"\n]|" + inner + rb")*+)(\n|\Z)", re.DOTALL)
        self._field = re.compile(
            rb"((?:[^" + quote + delimiter + rb"]|" + inner + rb")*+)(" + delimiter + rb"|\Z)", re.DOTALL
        )
        self._part = re.compile(rb"([^" + quote + rb"]++)|" + quoted, re.DOTALL)
        self._escaped = re.compile(escape + rb"([" + escape + quote + rb"])")
        self._closed = re.compile(rb"(?:[^" + quote + rb"]|" + inner.replace(rb"|\Z)", rb")") + rb")*+\Z", re.DOTALL)

    def row_ends(self, data: bytes) -> list[int]:
        return [match.start(2) for match in self._row.finditer(data) if match[2]]

    def fields(self, row: bytes) -> Fields:
        if not self._closed.match(row):
            raise Error("unterminated CSV quoted field", BAD_COPY_FILE_FORMAT)
        return [self._value(raw) for raw in _separated(self._field, row)]

    def _value(self, raw: bytes) -> bytes | None:
        if raw == self.null:
            return None
        parts = []
        for plain, quoted in self._part.findall(raw):
            if b"\r" in plain:
                raise Error(
                    "unquoted carriage return found in data",
                    BAD_COPY_FILE_FORMAT,
                    hint="Use quoted CSV field to represent carriage return.",
                )
            parts.append(plain or self._escaped.sub(rb"\1", quoted))
        return b"".join(parts)


Splitter = TextSplitter | CsvSplitter


def splitter(options: CopyOptions) -> Splitter:
    return CsvSplitter(options) if options.format == "csv" else TextSplitter(options)


def _separated(field: re.Pattern[bytes], row: bytes) -> Iterator[bytes]:
    """Yield the raw fields of a row: one more than the row has delimiters."""
    at = 0
    while True:
        match = field.match(row, at)
        assert match is not None
        yield match[1]
        if not match[2]:
            return
        at = match.end()


def split(splitter: Splitter, data: bytes, columns: Sequence[str], lines: int) -> list[list[str | None]]:
    """Return the rows of `data`, which holds whole rows, each with a value for every column.

    `lines` is the number of lines before `data`. Raises Error 22P04 (22021 for bad UTF-8), whose context is the line.
    """
    rows, start = [], 0
    for end in [*splitter.row_ends(data), len(data)]:
        row = data[start:end]
        lines += row.count(b"\n") + (end < len(data))
        if start < len(data):
            rows.append(_checked(splitter, row.removesuffix(b"\r"), columns, lines))
        start = end + 1
    return rows


def check_header(splitter: Splitter, line: bytes, columns: Sequence[str]) -> None:
    """Raise Error 22P04 unless a header has the names of all columns."""
    row = line.removesuffix(b"\n").removesuffix(b"\r")
    names = _checked(splitter, row, columns, 1)
    for place, (name, column) in enumerate(zip(names, columns, strict=True), start=1):
        if name != column:
            found = "null value" if name is None else f'"{name}"'
            message = f'column name mismatch in header line field {place}: got {found}, expected "{column}"'
            error = Error(message, BAD_COPY_FILE_FORMAT)
            error.context = line_text(1, row)
            raise error


def line_text(number: int, row: bytes) -> str:
    shown = row.decode("utf-8", "replace")
    return f'line {number}: "{shown[:100]}{"..." if len(shown) > 100 else ""}"'


def _checked(splitter: Splitter, row: bytes, columns: Sequence[str], line: int) -> list[str | None]:
    try:
        fields = splitter.fields(row)
        if len(fields) < len(columns):
            raise Error(f'missing data for column "{columns[len(fields)]}"', BAD_COPY_FILE_FORMAT)
        if len(fields) > len(columns):
            raise Error("extra data after last expected column", BAD_COPY_FILE_FORMAT)
        return [None if field is None else UTF8.decode(field) for field in fields]
    except Error as error:
        error.context = line_text(line, row)
        raise
