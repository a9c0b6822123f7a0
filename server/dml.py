"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE: each statement is one durable transaction, or part of an atomic one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from catalog import errors
from catalog.errors import Error
from catalog.lake import Cursor
from catalog.model import Column, Relation, Watermark
from catalog.names import quote
from catalog.types import duckdb_type
from planner.batch.merge import plan_merge, resolve_merged
from planner.batch.query import Batch, Environment
from planner.batch.structs import aligned
from planner.batch.time_travel import points
from planner.batch.write import (
    CHANGED,
    INSERTED,
    ROW,
    WHEN,
    Change,
    default_text,
    plan_change,
    plan_insert,
    plan_returning,
    refuse_append_only,
    resolve_target,
)
from planner.statements import Delete, Insert, Merge, Truncate, Update
from server.result import Result, ResultColumn
from server.session import Session, bindings, result_columns
from server.stores import Store, Stored
from server.time_travel import environment_at

_RETURNED = "returned_rows"


def plan(session: Session, statement: Insert | Update | Delete | Merge, oids: tuple[int, ...]) -> Batch:
    """DuckDB's text of a write: of an INSERT, the query of its rows."""
    if isinstance(statement, Insert):
        return _plan_insert(session, statement, oids)
    return _plan_change(session, statement, oids)[1].batch


def returned_columns(
    session: Session, statement: Insert | Update | Delete, oids: tuple[int, ...]
) -> tuple[ResultColumn, ...] | None:
    """What RETURNING gives, without running the statement; None without it."""
    if not statement.returning:
        return None
    parameters = plan(session, statement, oids).parameters
    target = resolve_target(statement.table, _PRIVILEGES[type(statement)], session.environment)
    return session.describe_batch(plan_returning(statement, target, session.environment, parameters, is_staged=False))


def _plan_insert(session: Session, statement: Insert, oids: tuple[int, ...]) -> Batch:
    def make(environment: Environment) -> Batch:
        target = resolve_target(statement.table, "INSERT", environment)
        return plan_insert(statement, target, target_columns(target, statement.columns), environment, oids)

    return session.plan(statement, oids, make, environment_at(session, points(statement.source))).batch


def _plan_change(
    session: Session, statement: Update | Delete | Merge, oids: tuple[int, ...]
) -> tuple[Relation, Change]:
    environment, target = session.environment, _target_of(session, statement)
    if isinstance(statement, Merge):
        return target, plan_merge(statement, target, environment, oids)
    return target, plan_change(statement, target, environment, oids)


def _target_of(session: Session, statement: Update | Delete | Merge) -> Relation:
    if isinstance(statement, Merge):
        return resolve_merged(statement, session.environment)
    return resolve_target(statement.table, _PRIVILEGES[type(statement)], session.environment)


_PRIVILEGES: dict[type, str] = {Insert: "INSERT", Update: "UPDATE", Delete: "DELETE"}


def insert(session: Session, statement: Insert, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    """As in RisingWave, rows with a key that exists take the place of the stored ones; in an append-only table they are
    ignored. RETURNING gives the rows as they came."""
    target = resolve_target(statement.table, "INSERT", session.environment)
    columns = target_columns(target, statement.columns)
    batch = plan(session, statement, oids)
    cursor = session.cursor()
    with session.running(cursor):
        given = bindings(cursor, batch.sql, values)
        described = cursor.execute(f"DESCRIBE {batch.sql}", given and dict.fromkeys(given)).fetchall()
        width = len(described)
        if width > len(columns):
            raise Error("INSERT has more expressions than target columns", errors.SYNTAX_ERROR)
        if statement.columns and width < len(columns):
            raise Error("INSERT has more target columns than expressions", errors.SYNTAX_ERROR)
        create_staging(cursor, target)
        sources = tuple(duckdb_type(type_) for _, type_, *_ in described)
        rows = aligned(batch.sql, sources, tuple(column.type for column in columns))
        cursor.execute(fill_staging(session, target, columns[:width], rows), given)
        names_returned = _keep_returned(session, cursor, statement, target, batch, values)
        count = store_staged(session, cursor, target)
        return _result(session, cursor, f"INSERT 0 {count}", names_returned)


def change(
    session: Session, statement: Update | Delete | Merge, oids: tuple[int, ...], values: tuple[object, ...]
) -> Result:
    """UPDATE, DELETE or MERGE. Raises Error 21000 when a MERGE changes a row twice."""
    if session.block is not None:
        session.block.overlay(_target_of(session, statement))
    target, planned = _plan_change(session, statement, oids)
    batch = planned.batch
    cursor = session.cursor()
    with session.running(cursor):
        given = bindings(cursor, batch.sql, values)
        names: tuple[str, ...] = ()
        with _writing(session, cursor, target) as (store,):
            if planned.is_direct:
                count = _scalar(cursor, batch.sql, given)
            else:
                cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {CHANGED} AS {batch.sql}", given)
                count = _scalar(cursor, f"SELECT count(*) FROM {CHANGED}")
                if isinstance(statement, Merge):
                    _refuse_repeated(cursor)
                else:
                    names = _keep_returned(session, cursor, statement, target, batch, values)
                _apply(cursor, store, planned)
        return _result(session, cursor, f"{type(statement).__name__.upper()} {count}", names)


@contextlib.contextmanager
def _writing(session: Session, cursor: Cursor, *targets: Relation) -> Iterator[tuple[Store, ...]]:
    """Where the rows of some tables are written, as part of the atomic transaction or in one that ends here."""
    if session.block is not None:
        yield tuple(map(session.block.overlay, targets))
        return
    with session.context.lake.table_transaction(cursor, *(target.lake_table for target in targets)):
        yield tuple(map(Stored, targets))
    session.committed()


def _apply(cursor: Cursor, store: Store, planned: Change) -> None:
    """Do with the staged rows what there is to be done, inside the transaction."""
    target = store.target
    if numbers := planned.numbers("DELETE"):
        store.delete(cursor, f'SELECT "{ROW}" FROM {CHANGED} WHERE "{WHEN}" IN ({numbers})')
    if (numbers := planned.numbers("UPDATE")) and planned.assigned:
        rows = f'(SELECT * FROM {CHANGED} WHERE "{WHEN}" IN ({numbers}))'
        _check_not_null(cursor, target, rows, planned.assigned)
        store.update(cursor, planned.assigned, f"FROM {rows}")
    if numbers := planned.numbers("INSERT"):
        create_staging(cursor, target)
        names = ", ".join(quote(column.name) for column in target.visible)
        cursor.execute(f'INSERT INTO {INSERTED} SELECT {names} FROM {CHANGED} WHERE "{WHEN}" IN ({numbers})')
        _check_not_null(cursor, target, INSERTED)
        _store(cursor, store)


def _refuse_repeated(cursor: Cursor) -> None:
    if _scalar(cursor, f'SELECT count("{ROW}") - count(DISTINCT "{ROW}") FROM {CHANGED}'):
        raise Error(
            "MERGE command cannot affect row a second time",
            errors.CARDINALITY_VIOLATION,
            hint="Ensure that not more than one source row matches any one target row.",
        )


def _keep_returned(
    session: Session,
    cursor: Cursor,
    statement: Insert | Update | Delete,
    target: Relation,
    batch: Batch,
    values: tuple[object, ...],
) -> tuple[str, ...]:
    """Work out RETURNING before anything is stored, so that its errors leave nothing. Returns the names in it."""
    if not statement.returning:
        return ()
    returned = plan_returning(statement, target, session.environment, batch.parameters, is_staged=True)
    given = bindings(cursor, returned.sql, values)
    described = cursor.execute(f"DESCRIBE {returned.sql}", given and dict.fromkeys(given)).fetchall()
    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {_RETURNED} AS {returned.sql}", given)
    return tuple(name for name, *_ in described)


def _result(session: Session, cursor: Cursor, tag: str, names: tuple[str, ...]) -> Result:
    """What a write gives back: the tag, and the kept rows under these names if there are any."""
    if not names:
        return Result(tag)
    cursor.execute(f"FROM {_RETURNED}")
    columns = (replace(column, name=name) for column, name in zip(result_columns(cursor), names, strict=True))
    # The tag has the number of rows that were changed, however many of them the client takes.
    return replace(session.stream(cursor, tag, tuple(columns)), counts_rows=False)


def truncate(session: Session, statement: Truncate) -> Result:
    """Delete all rows of some tables, in one transaction. Views follow, as with DELETE."""
    targets = [resolve_target(name, "DELETE", session.environment) for name in statement.tables]
    for target, name in zip(targets, statement.tables, strict=True):
        refuse_append_only(target, name)
    cursor = session.cursor()
    with session.running(cursor), _writing(session, cursor, *targets) as stores:
        for store in stores:
            store.clear(cursor)
    return Result("TRUNCATE TABLE")


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
    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {INSERTED} ({columns})")


def fill_staging(session: Session, target: Relation, columns: tuple[Column, ...], rows: str) -> str:
    """The INSERT of a query's rows into the staged ones; the other columns have their defaults."""
    others = [column for column in target.visible if column.default is not None and column not in columns]
    names = ", ".join(quote(column.name) for column in (*columns, *others))
    if others:
        defaults = ", ".join(default_text(column, session.environment) for column in others)
        rows = f"SELECT *, {defaults} FROM ({rows}) AS given"
    return f"INSERT INTO {INSERTED} ({names}) {rows}"


def store_staged(session: Session, cursor: Cursor, target: Relation) -> int:
    """Write the staged rows in one transaction. Returns how many were staged. Raises Error 23502 for a NULL."""
    count = _scalar(cursor, f"SELECT count(*) FROM {INSERTED}")
    _check_not_null(cursor, target, INSERTED)
    with _writing(session, cursor, target) as (store,):
        _store(cursor, store)
    return count


def _store(cursor: Cursor, store: Store) -> None:
    """Write the staged rows, inside a transaction."""
    target = store.target
    if target.watermark is not None:
        _drop_late(cursor, store, target.watermark)
    if target.append_only:
        _drop_repeated(cursor, store)
    if target.primary_key and not target.append_only and _merge_needed(cursor, store):
        store.merge(cursor)
    else:
        store.insert(cursor)


def stage_query(session: Session, cursor: Cursor, target: Relation, batch: Batch, with_rows: bool) -> None:
    """Run a query whose rows a table that is yet to be made will have."""
    if batch.reads_system:
        session.context.system_views.refresh()
    create_staging(cursor, target)
    cursor.execute(f"INSERT INTO {INSERTED} {batch.sql}" if with_rows else f"EXPLAIN {batch.sql}")


def store_new(cursor: Cursor, target: Relation) -> int:
    """Write the staged rows into a table that the open transaction has made. Returns how many."""
    return _scalar(cursor, f"INSERT INTO {target.lake_name} FROM {INSERTED}")


def _drop_late(cursor: Cursor, store: Store, watermark: Watermark) -> None:
    """Leave the staged rows that are not below the watermark of the stored ones; none with NULL once there is one.

    The lake's statistics know the maximum, so no rows are read for it.
    """
    column = quote(watermark.column)
    delay = f" - to_microseconds({watermark.delay_us})" if watermark.delay_us else ""
    cursor.execute(
        f"DELETE FROM {INSERTED} USING (SELECT max({column}){delay} AS watermark FROM {store.rows}) AS stored "
        f"WHERE watermark IS NOT NULL AND coalesce({INSERTED}.{column} < watermark, true)"
    )


def _drop_repeated(cursor: Cursor, store: Store) -> None:
    """Leave the first staged row of each key, and none whose key is stored."""
    if store.target.primary_key:
        key = ", ".join(map(quote, store.target.primary_key))
        cursor.execute(f"DELETE FROM {INSERTED} WHERE rowid NOT IN (SELECT min(rowid) FROM {INSERTED} GROUP BY {key})")
        stored = f"SELECT s.rowid FROM {INSERTED} s SEMI JOIN {store.rows} USING ({key})"
        cursor.execute(f"DELETE FROM {INSERTED} WHERE rowid IN ({stored})")


def _check_not_null(cursor: Cursor, target: Relation, rows: str, assigned: tuple[str, ...] | None = None) -> None:
    """Raise Error 23502 for a NULL in some rows; `assigned` are the columns to look at, None all."""
    for column in target.visible:
        if assigned is not None and column.name not in assigned:
            continue
        required = column.not_null or column.name in target.primary_key
        if required and _scalar(cursor, f"SELECT count(*) FROM {rows} WHERE {quote(column.name)} IS NULL"):
            raise Error(
                f'null value in column "{column.name}" of relation "{target.name}" violates not-null constraint',
                errors.NOT_NULL_VIOLATION,
            )


def _merge_needed(cursor: Cursor, store: Store) -> bool:
    """Keep the last of the staged rows of each key; whether any key is stored already."""
    key = ", ".join(map(quote, store.target.primary_key))
    cursor.execute(f"DELETE FROM {INSERTED} WHERE rowid NOT IN (SELECT max(rowid) FROM {INSERTED} GROUP BY {key})")
    return bool(_scalar(cursor, f"SELECT count(*) FROM {store.rows} SEMI JOIN {INSERTED} USING ({key})"))


def _scalar(cursor: Cursor, sql: str, values: dict[str, object] | None = None) -> int:
    row = cursor.execute(sql, values).fetchone()
    return row[0] if row else 0
