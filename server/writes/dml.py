"""INSERT, UPDATE, DELETE, MERGE and TRUNCATE: each statement is one durable transaction, or part of an atomic one."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.model import Column, Relation, lacks_columns
from sparkwave.catalog.names import ROW
from sparkwave.catalog.types import described_type
from sparkwave.planner.batch.merge import plan_merge, resolve_merged
from sparkwave.planner.batch.query import Batch, Environment
from sparkwave.planner.batch.row_structs import aligned
from sparkwave.planner.batch.time_travel import points
from sparkwave.planner.batch.upsert import check_upsert, upsert_query
from sparkwave.planner.batch.write import (
    CHANGED,
    INSERTED,
    WHEN,
    Change,
    plan_change,
    plan_insert,
    plan_returning,
    refuse_append_only,
    resolve_target,
    written_columns,
)
from sparkwave.planner.parse.constant_rows import ConstantRows
from sparkwave.planner.statements import Delete, Insert, Merge, Truncate, Update
from sparkwave.server.reads import execution
from sparkwave.server.reads.batches import bindings
from sparkwave.server.reads.error_positions import placed
from sparkwave.server.reads.past_queries import environment_at
from sparkwave.server.reads.result_columns import described_columns
from sparkwave.server.session.plan_cache import Plan, parse_all
from sparkwave.server.session.session import Session
from sparkwave.server.wire.result import Result, ResultColumn
from sparkwave.server.writes.conflicts import meets_stored
from sparkwave.server.writes.row_checks import check_rows
from sparkwave.server.writes.sequence_numbers import describe_with
from sparkwave.server.writes.staging import (
    compute_defaults,
    compute_generated,
    create_staging,
    fill_staging,
    scalar,
    take_in,
    target_columns,
)
from sparkwave.server.writes.stores import Store, Stored, listed, names_of
from sparkwave.server.writes.upserts import upsert
from sparkwave.server.writes.writing import (
    change_places,
    may_share,
    most_places,
    pace,
    steady,
    store_shared,
    store_staged,
    writing,
)

_RETURNED = "returned_rows"
# A longer text of rows is stored in its own transaction: to share one would save little of its cost.
LONGEST_SHARED = 1_000_000


def plan(session: Session, statement: Insert | Update | Delete | Merge, oids: tuple[int, ...]) -> Batch:
    """Return DuckDB's text of a write; for an INSERT, the text of the query of its rows."""
    if isinstance(statement, Insert):
        planned, _ = _planned(statement, _into(session, statement)[1], session.variables.date_order)
        return _plan_insert(session, planned, oids).batch
    return _plan_change(session, statement, oids)[1].batch


def returned_columns(
    session: Session, statement: Insert | Update | Delete, oids: tuple[int, ...]
) -> tuple[ResultColumn, ...] | None:
    """Return the columns of RETURNING without running the statement; None without RETURNING."""
    if not statement.returning:
        return None
    parameters = plan(session, statement, oids).parameters
    target = resolve_target(
        statement.table, _PRIVILEGES[type(statement)], session.environment, written_columns(statement)
    )
    with placed(statement, session):
        batch = plan_returning(statement, target, session.environment, parameters, is_staged=False)
        return execution.describe_batch(session, batch)


def _into(session: Session, statement: Insert) -> tuple[Relation, tuple[Column, ...]]:
    """Return the table of an INSERT, and the columns that it fills."""
    target = resolve_target(statement.table, "INSERT", session.environment, statement.columns)
    if lacks_columns(target) and statement.returning:
        raise Error("RETURNING of a table without columns is not supported", errors.FEATURE_NOT_SUPPORTED)
    return target, target_columns(target, statement.columns)


def _planned(statement: Insert, columns: tuple[Column, ...], order: str) -> tuple[Insert, ConstantRows | None]:
    """Return the statement to plan, and its constants apart from it, if they have a common form.

    All INSERTs of one form then share one plan, and no plan holds all their rows.
    """
    constants = statement.rows
    if constants is None:
        return statement, None
    fits = constants.fit(columns)
    parsed = parse_all(constants.form if fits else constants.sql, order)
    assert isinstance(parsed, Insert)
    return parsed, constants if fits else None


def _plan_insert(session: Session, statement: Insert, oids: tuple[int, ...]) -> Plan:
    def make(environment: Environment) -> Batch:
        target = resolve_target(statement.table, "INSERT", environment, statement.columns)
        others = []
        if statement.upsert is not None:
            check_upsert(statement, target, environment)
            others = (
                [upsert_query(statement, target, session.environment, False)]
                if statement.upsert.tree is not None
                else []
            )
        columns = target_columns(target, statement.columns)
        return plan_insert(statement, target, columns, environment, oids, *others)

    return session.plan(statement, oids, make, environment_at(session, points(statement.source)))


def _plan_change(
    session: Session, statement: Update | Delete | Merge, oids: tuple[int, ...], in_steps: bool = False
) -> tuple[Relation, Change]:
    target = _target_of(session, statement)

    def make(environment: Environment) -> Change:
        if isinstance(statement, Merge):
            return plan_merge(statement, target, environment, oids)
        return plan_change(statement, target, environment, oids, most_places(session.context, target), in_steps)

    planned = make(session.environment) if in_steps else session.plan(statement, oids, make).change
    assert planned is not None
    return target, planned


def _target_of(session: Session, statement: Update | Delete | Merge) -> Relation:
    if isinstance(statement, Merge):
        return resolve_merged(statement, session.environment)
    privilege, columns = _PRIVILEGES[type(statement)], written_columns(statement)
    return resolve_target(statement.table, privilege, session.environment, columns)


_PRIVILEGES: dict[type, str] = {Insert: "INSERT", Update: "UPDATE", Delete: "DELETE"}


def insert(session: Session, statement: Insert, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    """Run an INSERT.

    As in RisingWave, the table determines the effect of a row whose key exists (`server.writes.conflicts`), and
    RETURNING has the rows as given. With PostgreSQL's ON CONFLICT the statement determines the effect, and RETURNING
    has the rows as stored.
    """
    target, columns = _into(session, statement)
    statement, constants = _planned(statement, columns, session.variables.date_order)
    planned = _plan_insert(session, statement, oids)
    batch = planned.batch
    cursor = session.cursor()
    with session.interrupting(cursor, batch.sql):
        execution.show_system(session, cursor, batch)
        given = bindings(cursor, batch.sql, values)
        if planned.types is None:
            describe_with(cursor, batch.draws)
            described = cursor.execute(f"DESCRIBE {batch.sql}", given and dict.fromkeys(given)).fetchall()
            planned.types = tuple(described_type(type_) for _, type_, *_ in described)
        width = len(planned.types)
        if width > len(columns):
            raise Error("INSERT has more expressions than target columns", errors.SYNTAX_ERROR)
        if statement.columns and width < len(columns):
            raise Error("INSERT has more target columns than expressions", errors.SYNTAX_ERROR)
        columns = columns[:width]
        query, count = (constants.query, constants.count) if constants else (batch.sql, batch.constant_rows)
        rows = aligned(query, planned.types, tuple(column.type for column in columns))
        is_plain = count and rows == query and statement.upsert is None and not statement.returning
        if is_plain and len(rows) <= LONGEST_SHARED and may_share(session, target, columns):
            store_shared(session, target, columns, rows.removeprefix("VALUES "), count, given)
            return Result(f"INSERT 0 {count}")
        create_staging(cursor, target)
        with execution.drawing(session, cursor, batch.draws):
            cursor.execute(fill_staging(columns, rows), given)
        compute_defaults(session.environment, cursor, target, columns, partial(execution.drawing, session))
        compute_generated(session.environment, cursor, target)
        if statement.upsert is not None:
            pace(session, target, scalar(cursor, f"SELECT count(*) FROM {INSERTED}"))
            with writing(session, cursor, target) as (store,):
                count = upsert(session, cursor, statement, store, batch.parameters, values)
                returned = _keep_returned(session, cursor, statement, target, batch, values)
                replaces = statement.upsert.tree is not None and meets_stored(cursor, store)
                (store.merge if replaces else store.insert)(cursor)
        else:
            if statement.returning and target.constraints.lengths:  # the check cuts trailing blanks off
                check_rows(session.environment, cursor, target, INSERTED)
            returned = _keep_returned(session, cursor, statement, target, batch, values)
            count = store_staged(session, cursor, target)
        return _result(session, cursor, f"INSERT 0 {count}", returned)


def change(
    session: Session, statement: Update | Delete | Merge, oids: tuple[int, ...], values: tuple[object, ...]
) -> Result:
    """Run an UPDATE, DELETE or MERGE. Raises Error 21000 when a MERGE changes a row twice."""
    try:
        return _change(session, statement, oids, values)
    except DuckDBError as error:
        if translate(error).sqlstate != errors.NOT_NULL_VIOLATION:
            raise
        return _change(session, statement, oids, values, in_steps=True)  # finds the row for the message


def _change(
    session: Session,
    statement: Update | Delete | Merge,
    oids: tuple[int, ...],
    values: tuple[object, ...],
    in_steps: bool = False,
) -> Result:
    if session.transaction.block is not None:
        session.transaction.block.overlay(_target_of(session, statement))
    target, planned = _plan_change(session, statement, oids, in_steps)
    batch = planned.batch
    cursor = session.cursor()
    with session.interrupting(cursor, batch.sql):
        execution.show_system(session, cursor, batch)
        given = bindings(cursor, batch.sql, values)
        returned: tuple[ResultColumn, ...] = ()
        pace(session, target, 0)
        with steady(session, target):
            since, count = session.context.lake.newest(cursor), 0
            if not planned.is_direct:
                with execution.drawing(session, cursor, batch.draws):
                    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {CHANGED} AS {batch.sql}", given)
                if planned.assigned or planned.numbers("INSERT"):
                    compute_generated(session.environment, cursor, target, CHANGED)
                count = scalar(cursor, f"SELECT count(*) FROM {CHANGED}")
                _check_updated(session, cursor, target, planned)
                if isinstance(statement, Merge):
                    _refuse_repeated(cursor)
                else:
                    returned = _keep_returned(session, cursor, statement, target, batch, values)
            if not (planned.has_places and change_places(session, cursor, target, planned.assigned, since, count)):
                with writing(session, cursor, target, is_steady=True) as (store,):
                    if not planned.is_direct:
                        _apply(session, cursor, store, planned)
                    else:
                        with execution.drawing(session, cursor, batch.draws):
                            count = scalar(cursor, batch.sql, given)
        session.context.dml_pace.spend(target.id, count)
        return _result(session, cursor, f"{type(statement).__name__.upper()} {count}", returned)


def _check_updated(session: Session, cursor: Cursor, target: Relation, planned: Change) -> None:
    """Raise the errors of `check_rows` for the rows after an UPDATE."""
    if (numbers := planned.numbers("UPDATE")) and planned.assigned:
        which = f'"{WHEN}" IN ({numbers})'
        block = session.transaction.block
        stored = (block.overlay(target) if block is not None else Stored(target)).rows
        check_rows(session.environment, cursor, target, CHANGED, planned.assigned, which, stored)


def _apply(session: Session, cursor: Cursor, store: Store, planned: Change) -> None:
    """Apply the staged changes to the table, inside the transaction."""
    target = store.target
    if numbers := planned.numbers("DELETE"):
        store.delete(cursor, f'SELECT "{ROW}" FROM {CHANGED} WHERE "{WHEN}" IN ({numbers})')
    if (numbers := planned.numbers("UPDATE")) and planned.assigned:
        store.update(cursor, planned.assigned, f'FROM (SELECT * FROM {CHANGED} WHERE "{WHEN}" IN ({numbers}))')
    if numbers := planned.numbers("INSERT"):
        create_staging(cursor, target)
        names = listed(names_of(target))
        cursor.execute(f'INSERT INTO {INSERTED} SELECT {names} FROM {CHANGED} WHERE "{WHEN}" IN ({numbers})')
        take_in(session.environment, cursor, store)


def _refuse_repeated(cursor: Cursor) -> None:
    if scalar(cursor, f'SELECT count("{ROW}") - count(DISTINCT "{ROW}") FROM {CHANGED}'):
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
) -> tuple[ResultColumn, ...]:
    """Compute RETURNING before anything is stored, so that its errors have no effect. Returns its columns."""
    if not statement.returning:
        return ()
    returned = plan_returning(statement, target, session.environment, batch.parameters, is_staged=True)
    execution.show_system(session, cursor, returned)
    given = bindings(cursor, returned.sql, values)
    with execution.drawing(session, cursor, returned.draws):
        described = cursor.execute(f"DESCRIBE {returned.sql}", given and dict.fromkeys(given)).fetchall()
        cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {_RETURNED} AS {returned.sql}", given)
    return described_columns([(name, type_) for name, type_, *_ in described], returned.origins)


def _result(session: Session, cursor: Cursor, tag: str, columns: tuple[ResultColumn, ...]) -> Result:
    """Return a write's result: the tag, and the rows of RETURNING, if any."""
    if not columns:
        return Result(tag)
    cursor.execute(f"FROM {_RETURNED}")
    # The tag has the number of changed rows, even if the client does not read them all.
    return replace(execution.stream(session, cursor, tag, columns), counts_rows=False)


def truncate(session: Session, statement: Truncate) -> Result:
    """Delete all rows of tables, in one transaction. Views follow, as after DELETE."""
    targets = [resolve_target(name, "DELETE", session.environment) for name in statement.tables]
    for target, name in zip(targets, statement.tables, strict=True):
        refuse_append_only(target, name)
    cursor = session.cursor()
    for target in targets:
        pace(session, target, 0)
    with session.interrupting(cursor), writing(session, cursor, *targets) as stores:
        for store in stores:
            store.clear(cursor)
    if statement.restarts_identity:
        session.context.sequence_numbers.restart(targets)
    return Result("TRUNCATE TABLE")
