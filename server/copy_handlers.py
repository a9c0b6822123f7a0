"""COPY FROM STDIN into a table, COPY of a table or query TO STDOUT."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pyarrow as pa

from catalog.errors import FEATURE_NOT_SUPPORTED, INVALID_COLUMN_REFERENCE, INVALID_TEXT_REPRESENTATION, Error
from catalog.lake import Cursor
from catalog.model import Column, Relation
from catalog.names import quote
from catalog.translation import DuckDBError, translate
from catalog.types import DATE, INTERVAL, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Type
from planner.batch.query import find_relation, plan_query, select_columns
from planner.batch.write import resolve_target
from planner.statements import Copy
from server.copy import binary_copy, csv_copy, text_copy
from server.parameters import decode_parameter
from server.result import CopyOptions, Result, ResultColumn
from server.session import Session
from server.staging import compute_defaults, compute_generated, create_staging, fill_staging, target_columns
from server.writing import store_staged


def copy(session: Session, statement: Copy) -> Result:
    """Start a COPY; the rows follow on the wire."""
    make = {"text": text_copy, "csv": csv_copy, "binary": binary_copy}[statement.format]
    options = make(**statement.options)
    if not statement.is_from:
        query = statement.query
        if query is None:
            assert statement.table is not None
            find_relation(statement.table, session.environment)
            query = select_columns(statement.table, statement.columns)
        result = session.query(plan_query(query, session.environment), tag="COPY")
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
    cursor = session.context.lake.cursor()
    create_staging(cursor, target)
    wire_columns = tuple(ResultColumn(column.name, column.type) for column in columns)
    return Result("COPY", copy_in=_TableSink(wire_columns, options, session, cursor, target, columns))


@dataclass
class _TableSink:
    """Stages rows, cast to the table's types; `finish` stores them in one transaction."""

    columns: tuple[ResultColumn, ...]
    options: CopyOptions
    session: Session
    cursor: Cursor
    target: Relation
    targets: tuple[Column, ...]

    def write(self, batch: pa.RecordBatch) -> None:
        arrays = batch.columns if self.options.is_binary else map(_lists, batch.columns, self.targets)
        renamed = pa.RecordBatch.from_arrays(list(arrays), names=[column.name for column in self.targets])
        values = ", ".join(map(self._value, self.targets))
        self.cursor.register("copied_rows", renamed)
        try:
            rows = f"SELECT {values} FROM copied_rows"
            self.cursor.execute(fill_staging(self.targets, rows))
        except DuckDBError as error:
            raise self._name_column(translate(error), renamed) from error
        finally:
            self.cursor.unregister("copied_rows")

    def _value(self, column: Column) -> str:
        """SQL that reads a column that has come as a value of its type."""
        value = quote(column.name)
        return column.type.cast(value) if self.options.is_binary else _from_text(value, column.type)

    def _name_column(self, error: Error, batch: pa.RecordBatch) -> Error:
        """Say which column has the value that does not fit."""
        self.cursor.register("copied_rows", batch)
        for column in self.targets:
            tried = f"TRY({self._value(column)})"
            row = self.cursor.execute(
                f"SELECT {quote(column.name)} FROM copied_rows WHERE {quote(column.name)} IS NOT NULL "
                f"AND {tried} IS NULL LIMIT 1"
            ).fetchone()
            if row:
                self.cursor.unregister("copied_rows")
                message = f'invalid input syntax for type {column.type}: "{row[0]}"'
                return Error(message, "22P02", detail=f"COPY {self.target.name}, column {column.name}")
        self.cursor.unregister("copied_rows")
        return error

    def finish(self) -> int:
        with self.session.running(self.cursor):
            environment = self.session.environment
            compute_defaults(environment, self.cursor, self.target, self.targets, self.session.drawing)
            compute_generated(environment, self.cursor, self.target)
            return store_staged(self.session, self.cursor, self.target)

    def abort(self) -> None:
        self.cursor.close()


def _lists(array: pa.Array, column: Column) -> pa.Array:
    """PostgreSQL's array literals as lists of their elements' texts."""
    if not column.type.dimensions:
        return array
    texts = replace(VARCHAR, dimensions=column.type.dimensions)
    values = [None if text is None else decode_parameter(text.encode(), 0, texts) for text in array.to_pylist()]
    arrow = pa.string()
    for _ in range(column.type.dimensions):
        arrow = pa.list_(arrow)
    try:
        return pa.array(values, arrow)
    except pa.ArrowException:
        message = f'COPY into column "{column.name}" has an array that is no {column.type}'
        raise Error(message, INVALID_TEXT_REPRESENTATION) from None


def _from_text(value: str, type_: Type) -> str:
    """SQL that reads text, or lists of it for an array, as a value of its type."""
    if type_.is_text:
        return value
    if type_.name == "bytea" and type_.dimensions:
        return f"list_transform({value}, lambda x: {_from_text('x', type_.element)})"
    if type_.name == "bytea":
        return f"CASE WHEN {value} LIKE '\\x%' THEN from_hex(substr({value}, 3)) ELSE encode({value}) END"
    if type_ in (DATE, TIMESTAMP, TIMESTAMPTZ):
        return type_.cast(f"memory.pg.day_text({value})")
    if type_ == INTERVAL:
        return type_.cast(f"replace({value}, '+', '')")
    return type_.cast(value)
