"""COPY FROM STDIN into a table, COPY of a table or query TO STDOUT."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sparkwave.catalog.errors import (
    DATATYPE_MISMATCH,
    FEATURE_NOT_SUPPORTED,
    INVALID_COLUMN_REFERENCE,
    INVALID_PARAMETER_VALUE,
    INVALID_TEXT_REPRESENTATION,
    NUMERIC_VALUE_OUT_OF_RANGE,
    UNDEFINED_COLUMN,
    Error,
)
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import quote
from sparkwave.catalog.types import BOOLEAN, INTERVAL, JSON, JSONB, TIME, VARCHAR, Type
from sparkwave.planner.batch.interval_fields import interval_in_fields, modifier_of_column
from sparkwave.planner.batch.query import find_relation, plan_query, select_columns
from sparkwave.planner.batch.values import condition_text
from sparkwave.planner.batch.write import INSERTED, resolve_target
from sparkwave.planner.parse.text_values import ISO_DAY, ISO_TIME, MOMENTS, decode_text, moment_text
from sparkwave.planner.statements import Copy
from sparkwave.server.reads import execution
from sparkwave.server.session.session import Session
from sparkwave.server.wire.client_encoding import ENCODINGS, encoding_name
from sparkwave.server.wire.copy_text import binary_copy, csv_copy, text_copy
from sparkwave.server.wire.parameter_values import decode_parameter
from sparkwave.server.wire.result import BadValue, CopyOptions, Result, ResultColumn
from sparkwave.server.writes.staging import (
    compute_defaults,
    compute_generated,
    create_staging,
    fill_staging,
    target_columns,
)
from sparkwave.server.writes.writing import store_staged

# The column of a batch that counts its rows.
_ROW = "?row"


def copy(session: Session, statement: Copy) -> Result:
    """Start a COPY; its rows then pass over the wire."""
    make = {"text": text_copy, "csv": csv_copy, "binary": binary_copy}[statement.format]
    options = make(**_with_encoding(statement.options))
    if not statement.is_from:
        query = statement.query
        if query is None:
            assert statement.table is not None
            find_relation(statement.table, session.environment)
            query = select_columns(statement.table, statement.columns)
        result = execution.query(session, plan_query(query, session.environment), tag="COPY")
        _check_forced(options, [column.name for column in result.columns or ()])
        result.copy_out = options
        return result
    assert statement.table is not None
    target = resolve_target(statement.table, "INSERT", session.environment, statement.columns)
    columns = target_columns(target, statement.columns)
    for column in columns:
        if column.generated is not None:
            message = f'column "{column.name}" is a generated column'
            detail = "Generated columns cannot be used in COPY."
            position = statement.table.position
            raise Error(message, INVALID_COLUMN_REFERENCE, detail=detail, position=position)
        if column.type.fields:
            message = f'COPY into column "{column.name}" of type {column.type} is not supported'
            raise Error(message, FEATURE_NOT_SUPPORTED, hint="INSERT its rows.", position=statement.table.position)
    _check_forced(options, [column.name for column in columns], target)
    condition = _condition(session, statement, target) if statement.where is not None else None
    cursor = session.context.lake.cursor()
    create_staging(cursor, target)
    wire_columns = tuple(ResultColumn(column.name, column.type) for column in columns)
    sink = _TableSink(wire_columns, options, session, cursor, target, columns, condition, target.name)
    return Result("COPY", copy_in=sink)


def _with_encoding(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options with the encoding looked up. Raises Error 22023 for an unknown encoding."""
    if "encoding" not in options:
        return options
    try:
        return options | {"encoding": ENCODINGS[encoding_name(str(options["encoding"]))]}
    except ValueError:
        message = 'argument to option "encoding" must be a valid encoding name'
        raise Error(message, INVALID_PARAMETER_VALUE) from None


def _check_forced(options: CopyOptions, columns: Collection[str], target: Relation | None = None) -> None:
    """Raise Error 42703 or 42P10 for a column of a FORCE option that does not exist or is not copied."""
    for option in ("force_quote", "force_not_null", "force_null"):
        for name in set(getattr(options, option)) - {"*", *columns}:
            if target is not None and name in {column.name for column in target.visible}:
                message = f'{option.upper()} column "{name}" not referenced by COPY'
                raise Error(message, INVALID_COLUMN_REFERENCE)
            place = f' of relation "{target.name}"' if target is not None else ""
            raise Error(f'column "{name}"{place} does not exist', UNDEFINED_COLUMN)


def _condition(session: Session, statement: Copy, target: Relation) -> str:
    """Return DuckDB's text of COPY's WHERE over the staged rows. Raises the errors of such a query, and 42804."""
    assert statement.table is not None and statement.where is not None
    value = select_columns(statement.table, ()).select(statement.where.tree.copy(), append=False)
    [found] = execution.describe_batch(session, plan_query(value, session.environment))
    if found.type != BOOLEAN:
        message = f"argument of WHERE must be type boolean, not type {found.type}"
        raise Error(message, DATATYPE_MISMATCH)
    names = {c.name: c.lake_name for c in target.visible}
    return condition_text(statement.where.sql, target.visible, session.environment, names)


@dataclass
class _TableSink:
    """Stages rows, cast to the table's types; `finish` stores them in one transaction."""

    columns: tuple[ResultColumn, ...]
    options: CopyOptions
    session: Session
    cursor: Cursor
    target: Relation
    targets: tuple[Column, ...]
    condition: str | None = None
    table: str = ""

    def write(self, batch: pa.RecordBatch) -> None:
        arrays = batch.columns if self.options.is_binary else map(self._readable, batch.columns, self.targets)
        renamed = pa.RecordBatch.from_arrays(list(arrays), names=[column.name for column in self.targets])
        values = ", ".join(map(self._value, self.targets))
        self.cursor.register("copied_rows", renamed)
        try:
            rows = f"SELECT {values} FROM copied_rows"
            self.cursor.execute(fill_staging(self.targets, rows))
        except DuckDBError as error:
            raise self._placed(translate(error), renamed, batch) from error
        finally:
            self.cursor.unregister("copied_rows")

    def _readable(self, array: pa.Array, column: Column) -> pa.Array:
        """Return texts that DuckDB casts to the column's type as PostgreSQL does."""
        modifier = modifier_of_column(column, self.target)
        if modifier is not None:
            return _intervals(array, modifier)
        if column.type in MOMENTS:
            return _moments(array, column.type, self.session.variables.date_order)
        if column.type == JSONB:
            _check_documents(array, column)
        lists = _lists(array, column)
        element = replace(column.type, dimensions=0)
        return _over_items(lists, element, self.session.variables.date_order) if element in MOMENTS else lists

    def _value(self, column: Column) -> str:
        """Return SQL that casts a copied column to the column's type."""
        value = quote(column.name)
        return column.type.cast(value) if self.options.is_binary else _from_text(value, column.type)

    def _placed(self, error: Error, rows: pa.RecordBatch, copied: pa.RecordBatch) -> Error:
        """Return the error with the place of the first value that does not fit, as it was copied."""
        self.cursor.register("copied_rows", rows.append_column(_ROW, pa.array(range(rows.num_rows))))
        first: tuple[int, int] | None = None
        for place, column in enumerate(self.targets):
            name = quote(column.name)
            found = self.cursor.execute(
                f"SELECT {quote(_ROW)} FROM copied_rows WHERE {name} IS NOT NULL "
                f"AND TRY({self._value(column)}) IS NULL ORDER BY ALL LIMIT 1"
            ).fetchone()
            if found and (first is None or found[0] < first[0]):
                first = found[0], place
        if first is not None:
            row, place = first
            error = self._bad_value(row, self.targets[place], copied.column(place)[row].as_py())
        self.cursor.unregister("copied_rows")
        return error

    def _bad_value(self, row: int, column: Column, value: object) -> BadValue:
        """Return the error of a value, with its place."""
        what = "input value for enum" if column.type.labels else "input syntax for type"
        found = BadValue(f'invalid {what} {column.type}: "{value}"', INVALID_TEXT_REPRESENTATION)
        if replace(column.type, dimensions=0) in (*MOMENTS, JSON, JSONB):
            try:
                decode_text(str(value), column.type, self.session.variables.date_order)
            except Error as error:
                found = BadValue(error.message, error.sqlstate, detail=error.detail, hint=error.hint)
            return _at(found, row, column, value)
        try:
            self.cursor.execute(f"SELECT {self._value(column)} FROM copied_rows WHERE {quote(_ROW)} = {row}").fetchall()
        except DuckDBError as raised:
            told = translate(raised)
            is_told = f'"{value}"' in told.message or told.sqlstate == NUMERIC_VALUE_OUT_OF_RANGE
            if column.type.dimensions or is_told:
                found = BadValue(told.message, told.sqlstate, detail=told.detail)
        return _at(found, row, column, value)

    def finish(self) -> int:
        with self.session.interrupting(self.cursor):
            environment = self.session.environment
            compute_defaults(
                environment, self.cursor, self.target, self.targets, partial(execution.drawing, self.session)
            )
            compute_generated(environment, self.cursor, self.target)
            if self.condition is not None:
                self.cursor.execute(f"DELETE FROM {INSERTED} WHERE ({self.condition}) IS NOT TRUE")
            return store_staged(self.session, self.cursor, self.target)

    def abort(self) -> None:
        self.cursor.close()


def _at(error: BadValue, row: int, column: Column, value: object) -> BadValue:
    """Return the error with the place of the value."""
    error.context, error.row = f'column {column.name}: "{value}"', row
    return error


def _intervals(array: pa.Array, modifier: int) -> pa.Array:
    """Return intervals in DuckDB's form, by the column's fields; other texts become one that DuckDB refuses."""

    def read(text: str | None) -> str | None:
        try:
            return None if text is None else interval_in_fields(text, modifier)
        except Error:
            return "?"

    return pa.array(map(read, array.to_pylist()), pa.string())


def _moments(array: pa.Array, type_: Type, order: str) -> pa.Array:
    """Return dates or times in DuckDB's form; texts that DuckDB reads as PostgreSQL does stay as they are."""
    is_plain = pc.match_substring_regex(array, rf"^(?:{ISO_TIME if type_ == TIME else ISO_DAY})$", ignore_case=True)
    if pc.all(is_plain).as_py() in (True, None):
        return array
    others = array.filter(pc.invert(is_plain)).unique()
    read = pa.array([_read(text, type_, order) for text in others.to_pylist()], array.type)
    return pc.coalesce(read.take(pc.index_in(array, others)), array)


def _over_items(array: pa.Array, type_: Type, order: str) -> pa.Array:
    """Do for lists of dates or times, or lists of such lists, what `_moments` does for single ones."""
    if not pa.types.is_list(array.type):
        return _moments(array, type_, order)
    items = _over_items(array.values, type_, order)
    return pa.ListArray.from_arrays(array.offsets, items, mask=array.is_null())


def _read(text: str, type_: Type, order: str) -> str:
    """Return a date or time in DuckDB's form; a text that is neither becomes a text that DuckDB refuses."""
    try:
        return moment_text(text, type_, order)
    except Error:
        return "?"


def _lists(array: pa.Array, column: Column) -> pa.Array:
    """Return PostgreSQL's array literals as lists of the texts of their elements."""
    if not column.type.dimensions:
        return array
    texts = replace(VARCHAR, dimensions=column.type.dimensions)
    values = []
    for row, text in enumerate(array.to_pylist()):
        try:
            if text is not None and column.type.name == JSONB.name:
                decode_text(text, column.type)
            values.append(None if text is None else decode_parameter(text.encode(), 0, texts))
        except Error as error:
            raise _at(BadValue(error.message, error.sqlstate, detail=error.detail), row, column, text) from None
    arrow = pa.string()
    for _ in range(column.type.dimensions):
        arrow = pa.list_(arrow)
    try:
        return pa.array(values, arrow)
    except pa.ArrowException:
        message = f'COPY into column "{column.name}" has an array that is no {column.type}'
        raise Error(message, INVALID_TEXT_REPRESENTATION) from None


# Marks of texts that DuckDB may take for documents and PostgreSQL does not (`pg.jsonb_in`).
_MAYBE_NONE = r"(?i)nan|inf|,\s*[\]}]|\\u(?:0000|d[89a-f])"


def _check_documents(array: pa.Array, column: Column) -> None:
    """Raise Error 22P02 or 22P05 for a text that is no document, but that DuckDB would take for one."""
    for row in pc.indices_nonzero(pc.fill_null(pc.match_substring_regex(array, _MAYBE_NONE), False)).to_pylist():
        text = array[row].as_py()
        try:
            decode_text(text, JSONB)
        except Error as error:
            raise _at(BadValue(error.message, error.sqlstate, detail=error.detail), row, column, text) from None


def _from_text(value: str, type_: Type) -> str:
    """Return SQL that casts text, or a list of texts for an array, to a value of the type."""
    if type_.is_text:
        return value
    if type_.name == "bytea" and type_.dimensions:
        return f"list_transform({value}, lambda x: {_from_text('x', type_.element)})"
    if type_.name == "bytea":
        return f"CASE WHEN {value} LIKE '\\x%' THEN from_hex(substr({value}, 3)) ELSE encode({value}) END"
    if type_ == INTERVAL:
        return type_.cast(f"memory.pg.interval_in({value}, 'interval')")
    return type_.cast(value)
