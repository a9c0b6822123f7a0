"""COPY FROM STDIN into a table, COPY of a table or query TO STDOUT."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from catalog.errors import FEATURE_NOT_SUPPORTED, Error
from catalog.lake import Cursor, DuckDBError, translate
from catalog.model import Column, Relation
from catalog.names import quote
from catalog.types import Type
from planner.batch.query import find_relation, plan_query, resolve_target, select_columns
from planner.statements import Copy
from server.copy import csv_copy, text_copy
from server.dml import STAGED, create_staging, store_staged, target_columns
from server.result import CopyOptions, Result, ResultColumn
from server.session import Session


def copy(session: Session, statement: Copy) -> Result:
    """Start a COPY; the rows follow on the wire."""
    make = {"text": text_copy, "csv": csv_copy}[statement.format]
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
    target = resolve_target(statement.table, "INSERT", session.environment)
    columns = target_columns(target, statement.columns)
    for column in columns:
        if column.type.fields:
            message = f'COPY into column "{column.name}" of type {column.type} is not supported'
            raise Error(message, FEATURE_NOT_SUPPORTED, hint="INSERT its rows.", position=statement.table.position)
    cursor = session.context.lake.cursor()
    create_staging(cursor, target)
    wire_columns = tuple(ResultColumn(column.name, column.type) for column in columns)
    return Result("COPY", copy_in=_TableSink(wire_columns, options, session, cursor, target, columns))


@dataclass
class _TableSink:
    """Stages text rows, cast to the table's types; `finish` stores them in one transaction."""

    columns: tuple[ResultColumn, ...]
    options: CopyOptions
    session: Session
    cursor: Cursor
    target: Relation
    targets: tuple[Column, ...]

    def write(self, batch: pa.RecordBatch) -> None:
        names = ", ".join(quote(column.name) for column in self.targets)
        renamed = batch.rename_columns([column.name for column in self.targets])
        values = ", ".join(_from_text(column.name, column.type) for column in self.targets)
        self.cursor.register("copied_rows", renamed)
        try:
            self.cursor.execute(f"INSERT INTO {STAGED} ({names}) SELECT {values} FROM copied_rows")
        except DuckDBError as error:
            raise self._name_column(translate(error), renamed) from error
        finally:
            self.cursor.unregister("copied_rows")

    def _name_column(self, error: Error, batch: pa.RecordBatch) -> Error:
        """Say which column has the value that does not fit."""
        self.cursor.register("copied_rows", batch)
        for column in self.targets:
            tried = f"TRY({_from_text(column.name, column.type)})"
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
            return store_staged(self.session, self.cursor, self.target)

    def abort(self) -> None:
        self.cursor.close()


def _from_text(name: str, type_: Type) -> str:
    """SQL that reads a column's text as a value of its type."""
    column = quote(name)
    if type_.is_text:
        return column
    if type_.name == "bytea":
        return f"CASE WHEN {column} LIKE '\\x%' THEN from_hex(substr({column}, 3)) ELSE encode({column}) END"
    return f"CAST({column} AS {type_.duckdb()})"
