"""Checks rows against their table's NOT NULL, varchar(n) and CHECK, and rounds times to their columns' digits."""

from __future__ import annotations

from collections.abc import Collection

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Concerned, Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.modifiers import TO_MODIFIER, modifier_of_length
from sparkwave.catalog.names import ROW, quote
from sparkwave.planner.batch.query import Environment
from sparkwave.planner.batch.values import condition_text, null_message
from sparkwave.planner.parse.generated import columns_read
from sparkwave.server.wire.text_format import text_array

_NUMBER = '"?number"'


def check_rows(
    environment: Environment,
    cursor: Cursor,
    target: Relation,
    rows: str,
    columns: Collection[str] | None = None,
    which: str = "true",
    stored: str | None = None,
) -> None:
    """Raise Error 22001, 23502 or 23514 for a row, in a temporary table, that breaks a constraint of `target`.

    The temporary table `rows` has the lake's column names; `which` is the condition of the rows to check. With
    `columns`, only constraints on those columns count; None means all. As in PostgreSQL, blanks beyond the n of
    varchar(n) are cut off, and times are cut or rounded to the type's fields and digits. The rows may lack columns that
    `stored`, the table's rows, has by `?row`.
    """
    looked_at = [column for column in target.visible if columns is None or column.name in columns]
    _fit_times(cursor, target, rows, looked_at, which)
    required = [c for c in looked_at if c.not_null or c.name in target.primary_key]
    limited = [(c, length) for c in looked_at if c.type.is_text and (length := target.length_of(c)) is not None]
    names = {column.name for column in looked_at}
    checks = [c for c in target.constraints.checks if columns is None or names & columns_read(c.condition)]
    in_lake = {column.name: column.lake_name for column in target.visible}
    conditions = [condition_text(check.condition, target.visible, environment, in_lake) for check in checks]
    tests = [
        *(f"bool_or(length(rtrim({quote(c.lake_name)}, ' ')) > {length})" for c, length in limited),
        *(f"bool_or(length({quote(c.lake_name)}) > {length})" for c, length in limited),
        *(f"bool_or({quote(column.lake_name)} IS NULL)" for column in required),
        *(f"bool_or(NOT ({condition}))" for condition in conditions),
    ]
    if not tests:
        return
    [found] = cursor.execute(f"SELECT {', '.join(tests)} FROM {rows} WHERE {which}").fetchall()
    is_wrong = iter(found)
    for column, length in limited:
        if next(is_wrong):
            name = quote(column.lake_name)
            error = too_long(column, length)
            longer = f"length(rtrim({name}, ' ')) > {length} AND {which}"
            first = _first(cursor, rows, name, longer) if columns is None else None
            raise _placed(error, first[0], column, first[1]) if first is not None else error
    for column, length in limited:
        if next(is_wrong):
            name = quote(column.lake_name)
            longer = f"length({name}) > {length} AND {which}"
            cursor.execute(f"UPDATE {rows} SET {name} = left({name}, {length}) WHERE {longer}")
    for column in required:
        if next(is_wrong):
            condition = f"{quote(column.lake_name)} IS NOT NULL"
            error = Error(null_message(column, target), errors.NOT_NULL_VIOLATION)
            error.concerned = Concerned(target.schema, target.name, column=column.name)
            raise _failed(error, cursor, target, rows, f"NOT ({condition}) AND {which}", stored)
    for check, condition in zip(checks, conditions, strict=True):
        if next(is_wrong):
            message = f'new row for relation "{target.name}" violates check constraint "{check.name}"'
            error = Error(message, errors.CHECK_VIOLATION)
            error.concerned = Concerned(target.schema, target.name, constraint=check.name)
            raise _failed(error, cursor, target, rows, f"NOT ({condition}) AND {which}", stored)


def _fit_times(cursor: Cursor, target: Relation, rows: str, columns: Collection[Column], which: str) -> None:
    """Cut and round times in the rows to the modifiers of their columns' types."""
    limited = [(column, length) for column in columns if (length := target.length_of(column)) is not None]
    fitted = [f"{quote(c.lake_name)} = {fitted_time(c, length)}" for c, length in limited if not c.type.is_text]
    if fitted:
        cursor.execute(f"UPDATE {rows} SET {', '.join(fitted)} WHERE {which}")


def fitted_time(column: Column, length: int) -> str:
    """Return DuckDB's SQL of a column of times as it is stored, cut and rounded to its modifier."""
    made = f"memory.pg.{TO_MODIFIER}({column.from_lake}, {modifier_of_length(length)})"
    return f"CAST({made} AS {column.type.in_lake()})"


def too_long(column: Column, length: int) -> Error:
    """Return the error for a value that exceeds the length of its column."""
    return Error(f"value too long for type {column.type}({length})", errors.STRING_DATA_RIGHT_TRUNCATION)


def _first(cursor: Cursor, rows: str, value: str, condition: str) -> tuple[int, object] | None:
    """Return the number of the first row for which a condition is true, and a value of it."""
    found = cursor.execute(f"SELECT rowid, {value} FROM {rows} WHERE {condition} ORDER BY rowid LIMIT 1").fetchone()
    return (int(found[0]), found[1]) if found is not None else None


def _placed(error: Error, row: int, column: Column | None = None, value: object = None) -> Error:
    """Return the error with the number of a staged row, and a value of a column in it."""
    error.staged = row, f'column {column.name}: "{value}"' if column is not None else ""
    return error


def _value(column: Column, origin: str) -> str:
    """Return SQL of a column's value in a staged row, or in one of the lake."""
    name = f"{origin}.{quote(column.lake_name)}"
    return column.type.from_lake(name) if origin == "stored" else name


def _failed(error: Error, cursor: Cursor, target: Relation, rows: str, condition: str, stored: str | None) -> Error:
    """Return the error with the first row for which a condition is true, in PostgreSQL's words."""
    columns = [column for column in target.visible if not column.is_former]
    failing = f"(FROM {rows} SELECT rowid AS {_NUMBER}, * WHERE {condition} ORDER BY rowid LIMIT 1) AS failing"
    origin = dict.fromkeys((column.lake_name for column in columns), "failing")
    if stored is not None:
        failing += f' LEFT JOIN {stored} AS stored ON stored.rowid = failing."{ROW}"'
        staged = {name for name, *_ in cursor.execute(f"DESCRIBE {rows}").fetchall()}
        origin |= dict.fromkeys(origin.keys() - staged, "stored")
    listed = ", ".join([_NUMBER, *(_value(column, origin[column.lake_name]) for column in columns)])
    number, *values = cursor.execute(f"SELECT {listed} FROM {failing}").to_arrow_table().columns
    texts = (
        text_array(value.combine_chunks(), column.type).to_pylist()[0]
        for value, column in zip(values, columns, strict=True)
    )
    error.detail = f"Failing row contains ({', '.join('null' if text is None else text for text in texts)})."
    return _placed(error, number[0].as_py())
