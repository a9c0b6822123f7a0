"""The formats of files: CSV, JSON (a value a line) and Parquet, read as Arrow from a position on.

Text is read as text: SQL converts it to a value of the column's type, the same for all rows.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv
from pyarrow import parquet

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import Column
from sparkwave.catalog.names import literal, quote
from sparkwave.catalog.types import JSON, Type
from sparkwave.executor.sources.connector import READ
from sparkwave.executor.sources.file_storage import File
from sparkwave.executor.sources.text_records import first_record, line_at, read_records

# Columns of a part in addition to those of the file.
FILE, OFFSET, LINE = "?file", "?offset", "?line"


@dataclass(frozen=True)
class Part:
    """Rows of a file, with `OFFSET`, and the position after them."""

    table: Any  # pyarrow.Table
    position: int
    is_last: bool


@dataclass(frozen=True)
class Value:
    """SQL of a column's value. `text` is SQL of its source text, None where the conversion cannot fail."""

    sql: str
    text: str | None = None


class Format(Protocol):
    def values(self) -> tuple[Value, ...]:
        """Return the columns, as SQL over a part's columns."""

    def read(self, file: File, position: int, rows: int) -> Part:
        """Return at most `rows` rows. Raises OSError, ValueError (pyarrow.ArrowInvalid) or Error for a faulty file."""

    def place(self, file: File, offset: int) -> str:
        """Return the place of a row in a file, in words."""


def open_format(encode: str, options: Mapping[str, str], columns: tuple[Column, ...]) -> Format:
    """Return the format of ENCODE for the columns that come from the file."""
    if encode == "CSV":
        return _Csv(columns, options.get("delimiter", ","), options.get("without_header", "false").lower() == "true")
    return _Json(columns) if encode == "JSON" else _Parquet(columns)


@dataclass(frozen=True)
class _Csv:
    """CSV by RFC 4180; an empty field is NULL. With a header, columns are found by name, otherwise by place."""

    columns: tuple[Column, ...]
    delimiter: str
    without_header: bool

    def values(self) -> tuple[Value, ...]:
        return tuple(from_text(column.type, quote(column.name)) for column in self.columns)

    def read(self, file: File, position: int, rows: int) -> Part:
        names = [column.name for column in self.columns]
        if not self.without_header:
            header, start = first_record(file)
            names = next(csv.reader([header.decode()], delimiter=self.delimiter), [])
            position = max(position, start)
        records = read_records(file, position, rows, is_quoted=True)
        starts = records.starts[~records.is_blank] + position
        offsets = pa.array(starts)
        # A header may have a name twice, or names of no column.
        numbered = self._parse(file, starts, records.data, len(names)) if len(offsets) else None
        places = {name: place for place, name in reversed(list(enumerate(names)))}
        arrays = [
            numbered.column(places[column.name])
            if numbered is not None and column.name in places
            else pa.nulls(len(offsets), pa.string())
            for column in self.columns
        ]
        table = pa.table([*arrays, offsets], names=[*(column.name for column in self.columns), OFFSET])
        return Part(table, records.position, records.is_last)

    def _parse(self, file: File, starts: Any, data: bytes, width: int) -> Any:
        wrong: list[Any] = []

        def refuse(row: Any) -> str:
            wrong.append(row)
            return "error"

        names = [str(number) for number in range(width)]
        try:
            return arrow_csv.read_csv(
                io.BytesIO(data),
                arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
                arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=refuse),
                _as_text(names),
            )
        except pa.ArrowInvalid as error:
            if not wrong:
                raise
            row = wrong[0]
            line = line_at(file, int(starts[row.number - 1]))  # blank lines are not rows
            message = f"line {line}: expected {row.expected_columns} fields, got {row.actual_columns}"
            raise Error(message, errors.BAD_COPY_FILE_FORMAT) from error

    def place(self, file: File, offset: int) -> str:
        return f"line {line_at(file, offset)}"


@dataclass(frozen=True)
class _Json:
    """A JSON object in each line."""

    columns: tuple[Column, ...]

    def values(self) -> tuple[Value, ...]:
        return tuple(_from_json(column.type, _member(column.name)) for column in self.columns)

    def read(self, file: File, position: int, rows: int) -> Part:
        records = read_records(file, position, rows, is_quoted=False)
        offsets = pa.array(np.append(records.starts, len(records.data)).astype(np.int32))
        lines = pa.Array.from_buffers(
            pa.binary(), len(records.starts), [None, offsets.buffers()[1], pa.py_buffer(records.data)]
        )
        table = pa.table([lines.cast(pa.string()), pa.array(records.starts + position)], names=[LINE, OFFSET])
        return Part(table.filter(pa.array(~records.is_blank)), records.position, records.is_last)

    def place(self, file: File, offset: int) -> str:
        return f"line {line_at(file, offset)}"


class _Parquet:
    """Parquet; columns are found by name.

    The position is a row number. The row group read last is kept for the next part.
    """

    def __init__(self, columns: tuple[Column, ...]) -> None:
        self._columns = columns
        self._group: tuple[str, int, Any] | None = None

    def values(self) -> tuple[Value, ...]:
        named = ((column.type, quote(column.name)) for column in self._columns)
        return tuple(
            Value(type_.cast(name) if type_ == JSON else f"CAST({name} AS {type_.duckdb()})", name)
            for type_, name in named
        )

    def read(self, file: File, position: int, rows: int) -> Part:
        with file.open("rb") as opened, parquet.ParquetFile(opened) as found:
            total = found.metadata.num_rows
            present = set(found.schema_arrow.names)
            first = 0
            for number in range(found.num_row_groups):
                count = found.metadata.row_group(number).num_rows
                if position < first + count:
                    break
                first += count
            else:
                return Part(self._select(found.schema_arrow.empty_table(), 0, 0), total, True)
            if self._group is None or self._group[:2] != (str(file), number):
                wanted = [column.name for column in self._columns if column.name in present]
                self._group = (str(file), number, found.read_row_group(number, columns=wanted))
        stop = min(position + rows, first + count)
        table = self._group[2].slice(position - first, stop - position)
        if stop == first + count:
            self._group = None
        return Part(self._select(table, position, stop - position), stop, stop == total)

    def _select(self, table: Any, position: int, count: int) -> Any:
        names = set(table.column_names)
        arrays = [table.column(column.name) if column.name in names else pa.nulls(count) for column in self._columns]
        offsets = pa.array(np.arange(position, position + count, dtype=np.int64))
        return pa.table([*arrays, offsets], names=[*(column.name for column in self._columns), OFFSET])

    def place(self, file: File, offset: int) -> str:
        return f"row {offset + 1}"


def _as_text(names: list[str]) -> arrow_csv.ConvertOptions:
    """Return options that read all fields as text, NULL where they are empty."""
    return arrow_csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()),
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=True,
    )


# Messages: one value each.


def message_values(encode: str, columns: tuple[Column, ...]) -> tuple[Value, ...]:
    """Return the columns, as SQL over the columns of `decode_messages`."""
    if encode == "JSON":
        return _Json(columns).values()
    if encode == "CSV":
        return tuple(from_text(column.type, quote(column.name)) for column in columns)
    return tuple(Value(quote(column.name)) for column in columns)


def decode_messages(
    encode: str, options: Mapping[str, str], columns: tuple[Column, ...], values: list[bytes | None]
) -> dict[str, Any]:
    """Return Arrow columns with a row for each value.

    Raises ValueError (pyarrow.ArrowInvalid) for an unreadable value.
    """
    if encode == "JSON":
        return {LINE: pa.array(values, pa.binary()).cast(pa.string())}
    if encode == "BYTES":
        return {column.name: pa.array(values, pa.binary()) for column in columns}
    names = [str(number) for number in range(len(columns))]
    data = b"\n".join((value or b"").rstrip(b"\r\n") for value in values) + b"\n"
    found = arrow_csv.read_csv(
        io.BytesIO(data),
        arrow_csv.ReadOptions(column_names=names, use_threads=False, block_size=len(data) + 1),
        arrow_csv.ParseOptions(
            delimiter=options.get("delimiter", ","), newlines_in_values=True, ignore_empty_lines=len(columns) > 1
        ),
        _as_text(names),
    )
    if found.num_rows != len(values):
        raise ValueError(f"expected a record in each message, got {found.num_rows} in {len(values)}")
    return {column.name: found.column(number) for number, column in enumerate(columns)}


# SQL of values.


def selected(
    columns: Iterable[Column], values: Mapping[str, Value], included: Mapping[str, str], known: Mapping[str, Value]
) -> str:
    """Return the select list of a part: values by column, or for the columns of INCLUDE the `known` values."""
    made = ((column, values.get(column.name) or known[included[column.name]]) for column in columns)
    return ", ".join(f"{value.sql} AS {quote(column.name)}" for column, value in made)


@dataclass(frozen=True)
class Fault:
    """The fault of a row; `place` has the values that identify the row."""

    place: tuple[Any, ...]
    text: str


def find_fault(
    cursor: Cursor, place: tuple[str, ...], columns: tuple[Column, ...], values: tuple[Value, ...]
) -> Fault | None:
    """Return the first of the read rows for which the SQL of a column's value fails."""
    checks = []
    if any(quote(LINE) in value.sql for value in values):
        checks.append(("no JSON", f"NOT json_valid({quote(LINE)})", f"left(rtrim({quote(LINE)}, chr(10)), 100)"))
    for column, value in zip(columns, values, strict=True):
        if value.text is not None:
            what = f'column "{column.name}": invalid input syntax for type {column.type}'
            condition = f"{value.text} IS NOT NULL AND TRY({value.sql}) IS NULL"
            checks.append((what, condition, f"CAST({value.text} AS VARCHAR)"))
    for what, condition, shown in checks:
        try:
            row = cursor.execute(
                f"SELECT {', '.join(map(quote, place))}, {shown} FROM {READ} WHERE {condition} LIMIT 1"
            ).fetchone()
        except DuckDBError:
            continue
        if row is not None:
            return Fault(row[:-1], f'{what}: "{row[-1]}"')
    return None


def from_text(type_: Type, text: str) -> Value:
    """Return SQL of PostgreSQL's input conversion of a type."""
    if type_.is_text:
        return Value(text)
    if type_.name == "bytea":
        return Value(f"if(starts_with({text}, '\\x'), unhex({text}[3:]), encode({text}))", text)
    return Value(type_.cast(text), text)


def _from_json(type_: Type, member: str) -> Value:
    """Return SQL of a member of a line's object as a value of a type; JSON's null is NULL."""
    text = f"({quote(LINE)} ->> {member})"
    if type_.element == JSON and type_.dimensions == 1:
        value = f"({quote(LINE)} -> {member})"
        texts = f"list_transform(json_transform_strict({value}, '[\"JSON\"]'), lambda x: CAST(x AS VARCHAR))"
        return Value(type_.from_lake(texts), value)
    if type_.dimensions or type_.is_struct:
        # The strict function also wants every field of a struct to be present, while a missing one is to be NULL.
        function = "json_transform" if "struct" in str(type_) else "json_transform_strict"
        value = f"({quote(LINE)} -> {member})"
        return Value(f"{function}({value}, {literal(json.dumps(_structure(type_)))})", value)
    if type_.name in ("json", "jsonb"):
        text = f"nullif(CAST(({quote(LINE)} -> {member}) AS VARCHAR), 'null')"
        return Value(type_.from_lake(text) if type_ == JSON else f"CAST({text} AS JSON)")
    if type_.name.startswith("timestamp"):
        moment = f"CAST({_moment(text)} AS {type_.duckdb()})"
        return Value(f"if(regexp_full_match({text}, '-?[0-9]+'), {moment}, CAST({text} AS {type_.duckdb()}))", text)
    return from_text(type_, text)


def _member(name: str) -> str:
    """Return the path of an object's member in SQL."""
    return literal('$."' + name.replace("\\", "\\\\").replace('"', '\\"') + '"')


def _moment(text: str) -> str:
    """Return SQL of a number as a time. Its size tells the unit: seconds, milliseconds, microseconds or nanoseconds.

    As in RisingWave (src/common/src/types/timestamp.rs).
    """
    number = f"TRY_CAST({text} AS BIGINT)"
    micros = (
        f"CASE WHEN abs({number}) < 100000000000 THEN {number} * 1000000 "
        f"WHEN abs({number}) < 100000000000000 THEN {number} * 1000 "
        f"WHEN abs({number}) < 100000000000000000 THEN {number} ELSE {number} // 1000 END"
    )
    return f"make_timestamp({micros})"


def _structure(type_: Type) -> object:
    """Return the structure that DuckDB's json_transform takes for a type."""
    if type_.dimensions:
        return [_structure(type_.element)]
    if type_.is_struct:
        return {name: _structure(field) for name, field in type_.fields}
    return type_.duckdb()
