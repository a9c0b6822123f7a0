"""INSERT, UPDATE and DELETE: each statement is one durable transaction."""

from __future__ import annotations

from catalog import errors
from catalog.errors import Error
from catalog.lake import Cursor
from catalog.model import Column, Relation, Watermark
from catalog.names import quote
from catalog.types import duckdb_type
from planner.batch.query import Batch, Environment, plan_source, plan_write, resolve_target
from planner.batch.structs import aligned
from planner.statements import Delete, Insert, Update
from server.result import Result
from server.session import Session

STAGED = "staged_rows"
_PRIVILEGES: dict[type, str] = {Insert: "INSERT", Update: "UPDATE", Delete: "DELETE"}


def plan(session: Session, statement: Insert | Update | Delete, oids: tuple[int, ...]) -> Batch:
    """DuckDB's text of a write: of an INSERT, the query of its rows."""

    def make(environment: Environment) -> Batch:
        target = resolve_target(statement.table, _PRIVILEGES[type(statement)], environment)
        if isinstance(statement, Insert):
            columns = target_columns(target, statement.columns)
            return plan_source(statement.source, tuple(c.type for c in columns), environment, oids)
        return plan_write(statement.tree, target, environment, oids)

    return session.plan(statement, oids, make).batch


def insert(session: Session, statement: Insert, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    """As in RisingWave, rows with a key that exists take the place of the stored ones; in an append-only table they are
    ignored."""
    target = resolve_target(statement.table, "INSERT", session.environment)
    columns = target_columns(target, statement.columns)
    batch = plan(session, statement, oids)
    cursor = session.context.lake.cursor()
    with session.running(cursor):
        described = cursor.execute(f"DESCRIBE {batch.sql}", [None] * len(batch.parameters) or None).fetchall()
        width = len(described)
        if width > len(columns):
            raise Error("INSERT has more expressions than target columns", errors.SYNTAX_ERROR)
        if statement.columns and width < len(columns):
            raise Error("INSERT has more target columns than expressions", errors.SYNTAX_ERROR)
        create_staging(cursor, target)
        names = ", ".join(quote(column.name) for column in columns[:width])
        sources = tuple(duckdb_type(type_) for _, type_, *_ in described)
        rows = aligned(batch.sql, sources, tuple(column.type for column in columns))
        cursor.execute(f"INSERT INTO {STAGED} ({names}) {rows}", list(values) if batch.parameters else None)
        count = store_staged(session, cursor, target)
    return Result(f"INSERT 0 {count}")


def target_columns(target: Relation, names: tuple[str, ...]) -> tuple[Column, ...]:
    """The columns an INSERT or COPY fills: those it names, or all. Raises Error 42703 or 42701."""
    for index, name in enumerate(names):
        if name not in [column.name for column in target.visible]:
            raise Error(f'column "{name}" of relation "{target.name}" does not exist', errors.UNDEFINED_COLUMN)
        if name in names[:index]:
            raise Error(f'column "{name}" specified more than once', errors.DUPLICATE_COLUMN)
    by_name = {column.name: column for column in target.visible}
    return tuple(by_name[name] for name in names) if names else target.visible


def create_staging(cursor: Cursor, target: Relation) -> None:
    """An empty temporary table with the target's columns; the cursor's own."""
    columns = ", ".join(f"{quote(column.name)} {column.type.duckdb()}" for column in target.visible)
    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {STAGED} ({columns})")


def store_staged(session: Session, cursor: Cursor, target: Relation) -> int:
    """Write the staged rows in one transaction. Returns how many were staged. Raises Error 23502 for a NULL."""
    count = _scalar(cursor, f"SELECT count(*) FROM {STAGED}")
    _check_not_null(cursor, target)
    with session.context.lake.table_transaction(cursor, target.lake_table):
        if target.watermark is not None:
            _drop_late(cursor, target, target.watermark)
        if target.append_only:
            _drop_repeated(cursor, target)
            cursor.execute(f"INSERT INTO {target.lake_name} FROM {STAGED}")
        elif target.primary_key and _merge_needed(cursor, target):
            _merge(cursor, target)
        else:
            cursor.execute(f"INSERT INTO {target.lake_name} FROM {STAGED}")
    _committed(session)
    return count


def _drop_late(cursor: Cursor, target: Relation, watermark: Watermark) -> None:
    """Leave the staged rows that are not below the watermark of the stored ones; none with NULL once there is one.

    The lake's statistics know the maximum, so no rows are read for it.
    """
    column = quote(watermark.column)
    delay = f" - to_microseconds({watermark.delay_us})" if watermark.delay_us else ""
    cursor.execute(
        f"DELETE FROM {STAGED} USING (SELECT max({column}){delay} AS watermark FROM {target.lake_name}) AS stored "
        f"WHERE watermark IS NOT NULL AND coalesce({STAGED}.{column} < watermark, true)"
    )


def _drop_repeated(cursor: Cursor, target: Relation) -> None:
    """Leave the first staged row of each key, and none whose key is stored."""
    if target.primary_key:
        key = ", ".join(map(quote, target.primary_key))
        cursor.execute(f"DELETE FROM {STAGED} WHERE rowid NOT IN (SELECT min(rowid) FROM {STAGED} GROUP BY {key})")
        stored = f"SELECT s.rowid FROM {STAGED} s SEMI JOIN {target.lake_name} USING ({key})"
        cursor.execute(f"DELETE FROM {STAGED} WHERE rowid IN ({stored})")


def _check_not_null(cursor: Cursor, target: Relation) -> None:
    for column in target.visible:
        required = column.not_null or column.name in target.primary_key
        if required and _scalar(cursor, f"SELECT count(*) FROM {STAGED} WHERE {quote(column.name)} IS NULL"):
            raise Error(
                f'null value in column "{column.name}" of relation "{target.name}" violates not-null constraint',
                errors.NOT_NULL_VIOLATION,
            )


def _merge_needed(cursor: Cursor, target: Relation) -> bool:
    """Keep the last of the staged rows of each key; whether any key is stored already."""
    key = ", ".join(map(quote, target.primary_key))
    cursor.execute(f"DELETE FROM {STAGED} WHERE rowid NOT IN (SELECT max(rowid) FROM {STAGED} GROUP BY {key})")
    return bool(_scalar(cursor, f"SELECT count(*) FROM {target.lake_name} SEMI JOIN {STAGED} USING ({key})"))


def _merge(cursor: Cursor, target: Relation) -> None:
    names = [column.name for column in target.visible]
    on = " AND ".join(f"t.{quote(name)} = s.{quote(name)}" for name in target.primary_key)
    others = [name for name in names if name not in target.primary_key] or list(target.primary_key)
    assignments = ", ".join(f"{quote(name)} = s.{quote(name)}" for name in others)
    values = ", ".join(f"s.{quote(name)}" for name in names)
    cursor.execute(
        f"MERGE INTO {target.lake_name} t USING {STAGED} s ON {on} "
        f"WHEN MATCHED THEN UPDATE SET {assignments} WHEN NOT MATCHED THEN INSERT VALUES ({values})"
    )


def write(session: Session, statement: Update | Delete, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    """UPDATE or DELETE."""
    target = resolve_target(statement.table, _PRIVILEGES[type(statement)], session.environment)
    if isinstance(statement, Update):
        _check_assignments(statement, target)
    batch = plan(session, statement, oids)
    cursor = session.context.lake.cursor()
    with session.running(cursor), session.context.lake.table_transaction(cursor, target.lake_table):
        count = _scalar(cursor, batch.sql, list(values) if batch.parameters else None)
    _committed(session)
    verb = "UPDATE" if isinstance(statement, Update) else "DELETE"
    return Result(f"{verb} {count}")


def _check_assignments(statement: Update, target: Relation) -> None:
    for assignment in statement.tree.expressions:
        name = assignment.this.name
        if target.column(name) is None:
            raise Error(f'column "{name}" of relation "{target.name}" does not exist', errors.UNDEFINED_COLUMN)
        if name in target.primary_key:
            raise Error("update modifying the PK column is unsupported", errors.FEATURE_NOT_SUPPORTED)


def _committed(session: Session) -> None:
    session.context.coordinator.notify()
    if session.flag("implicit_flush"):
        session.context.coordinator.flush(session.is_cancelled)


def _scalar(cursor: Cursor, sql: str, values: list[object] | None = None) -> int:
    row = cursor.execute(sql, values).fetchone()
    return row[0] if row else 0
