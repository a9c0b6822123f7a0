"""Runs a session's planned queries on DuckDB in the server's process; rows are streamed while the query runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cache

import pyarrow as pa

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.memory_transactions import rollback
from sparkwave.catalog.lake.sizes import SIZED, reads_sizes, set_sizes
from sparkwave.catalog.lake.translation import DuckDBError, is_overflow
from sparkwave.catalog.names import DEFAULT_DATABASE, literal
from sparkwave.catalog.stores.sequence_store import Position
from sparkwave.catalog.types import Type
from sparkwave.executor.backfill.binding import check_binds
from sparkwave.executor.memory.shared_buffer import ANCHOR
from sparkwave.planner.batch.index_selection import is_kept
from sparkwave.planner.batch.query import Batch
from sparkwave.planner.batch.sequence_calls import Draws, last_name
from sparkwave.planner.parse.text_values import decode_text
from sparkwave.planner.plan.stream_plan import StreamPlan
from sparkwave.server.reads.batches import BATCH_ROWS, Batches, bindings, execute, given
from sparkwave.server.reads.error_positions import placed
from sparkwave.server.reads.live_catalog import live_variables
from sparkwave.server.reads.result_columns import described_columns, result_columns
from sparkwave.server.session.plan_cache import Plan
from sparkwave.server.session.session import Session
from sparkwave.server.wire.result import Result, ResultColumn
from sparkwave.server.writes.sequence_numbers import describe_with


def check_plan(session: Session, plan: StreamPlan) -> None:
    """Raise Error if DuckDB cannot run a view's plan, so that the view's job would fail."""
    with closing(session.context.lake.cursor()) as cursor, session.interrupting(cursor):
        check_binds(cursor, plan)


def run(session: Session, plan: Plan, values: tuple[object, ...] = (), keeps: bool = False) -> Result:
    """Run a planned query; works as `query`, but keeps the columns and the rows of a constant query in the plan."""
    if plan.rows is not None:
        return Result("SELECT", plan.columns, iter(plan.rows), counts_rows=True)
    oldest = min(plan.environment.versions.values(), default=None)
    result = query(session, plan.batch, values, keeps=keeps, columns=plan.columns, oldest=oldest)
    plan.columns = result.columns
    if plan.batch.is_constant and result.batches is not None:
        plan.rows = tuple(result.batches)
        result.close()
        return run(session, plan)
    return result


def query(
    session: Session,
    batch: Batch,
    values: tuple[object, ...] = (),
    tag: str = "SELECT",
    keeps: bool = False,
    columns: tuple[ResultColumn, ...] | None = None,
    oldest: int | None = None,
) -> Result:
    """Run a query and stream its rows.

    With `keeps`, the query's snapshot stays pinned until the client has read the rows. `columns` are the query's
    columns if known, `oldest` is the oldest snapshot that the query names.
    """
    cursor = session.cursor()
    kept = session.context.lake.pin(oldest) if keeps else None
    try:
        with session.interrupting(cursor, batch.sql):
            show_system(session, cursor, batch)
            bound = given(cursor, batch, values)
            sql: str = batch.sql
            with drawing(session, cursor, batch.draws):
                has_index = run_indexed(session, cursor, batch, bound)
                if not has_index:
                    if batch.mixes:  # so that views and tables are read at one snapshot
                        cursor.execute(f"BEGIN; {ANCHOR}").fetchall()
                    sql = _execute(cursor, batch, bound)
                columns = columns or result_columns(cursor, batch.origins)
                # All numbers are drawn now, before another session draws.
                drawn = cursor.to_arrow_table() if batch.draws else None
            if drawn is None:
                sql = batch.indexed.sql if has_index and batch.indexed is not None else sql
                return stream(session, cursor, tag, columns, kept, lambda: run_again(cursor, sql, bound))
            _set_sequences(session, batch.draws, drawn)
            batches = Batches(session, cursor, drawn.to_reader(BATCH_ROWS), kept)
            return Result(tag, columns, batches, counts_rows=True)
    except BaseException:
        session.context.lake.unpin(kept)
        raise


def _execute(cursor: Cursor, batch: Batch, bound: list[object] | dict[str, object] | None) -> str:
    """Run a query, in the narrow spelling if its values fit. Returns the text that was run."""
    if batch.narrow is not None:
        try:
            execute(cursor, batch.narrow, bound)
            return batch.narrow
        except DuckDBError as error:
            if not is_overflow(error):
                raise
    execute(cursor, batch.sql, bound)
    return batch.sql


def _set_sequences(session: Session, draws: Draws, rows: pa.Table) -> None:
    """Run the calls of `setval` in a query, whose rows have the numbers."""
    for setting in draws.settings:
        for number in rows.column(setting.output).drop_null().to_pylist():
            session.context.sequence_numbers.set(setting.sequence, Position(number, setting.is_called))
            if setting.is_called:
                session.numbers.set(setting.sequence, number)


def run_indexed(
    session: Session, cursor: Cursor, batch: Batch, values: list[object] | dict[str, object] | None
) -> bool:
    """Run a query over indexes, if they can serve it and have all rows of their tables. Returns whether it ran.

    The query runs in a transaction, which ends with the cursor, so that indexes and tables are read at one snapshot.
    """
    indexed = batch.indexed
    if indexed is None:
        return False
    lake, store, pinned = session.context.lake, session.context.store, session.transaction.pinned
    if indexed.snapshot is None:
        coordinator, catalog = session.context.coordinator, store.catalog
        applied = coordinator.snapshot if indexed.reads_epochs else coordinator.stored_snapshot
    elif pinned is not None and pinned.snapshot == indexed.snapshot:
        applied, catalog = pinned.applied, pinned.catalog
    else:
        return False
    cursor.execute(f"BEGIN; {ANCHOR}").fetchall()
    changed = lake.has_changed(cursor, indexed.tables, applied, indexed.snapshot)
    # The newest catalog too: an index that falls behind is recorded there before other jobs go on, until it catches up.
    known = [catalog] if pinned is not None else [catalog, store.catalog]
    if not changed and all(is_kept(each, id_) for each in known for id_ in indexed.indexes):
        try:
            cursor.execute(indexed.sql, values)
            return True
        except DuckDBError:
            session.running.check()  # else the caller reads the tables, and meets any error of the query
    rollback(cursor)
    return False


@contextmanager
def drawing(session: Session, cursor: Cursor, draws: Draws) -> Iterator[None]:
    """A context in which the cursor runs one statement that draws numbers from sequences.

    Raises Error 55000 for `currval` or `lastval` of a sequence from which the session has drawn no number.
    """
    if not draws:
        yield
        return
    if (draws.nexts or draws.settings) and (session.context.lake.read_only or session.variables.is_read_only):
        name = "nextval" if draws.nexts else "setval"
        message = f"cannot execute {name}() in a read-only transaction"
        raise Error(message, errors.READ_ONLY_TRANSACTION)
    catalog = session.context.store.catalog
    for id_ in (*draws.lasts, *((None,) if draws.reads_last_of_all else ())):
        last = session.numbers.of(id_)
        if last is None:
            what = "lastval" if id_ is None else f'currval of sequence "{catalog.by_id[id_].name}"'
            raise Error(f"{what} is not yet defined in this session", errors.NOT_IN_PREREQUISITE_STATE)
        cursor.execute(f"SET VARIABLE {last_name(id_)} = {last}::BIGINT")
    with session.context.sequence_numbers.drawing(cursor, draws.nexts) as found:
        yield
    session.numbers.note({id_: found[id_] for id_ in draws.nexts if id_ in found})


def stream(
    session: Session,
    cursor: Cursor,
    tag: str,
    columns: tuple[ResultColumn, ...],
    kept: int | None = None,
    again: Callable[[], pa.RecordBatchReader] | None = None,
) -> Result:
    """Return the rows of the query that a cursor has just run.

    `kept` is a snapshot to unpin after the last row; `again` runs the query anew, as in `Batches`.
    """
    reader = cursor.to_arrow_reader(BATCH_ROWS)
    return Result(tag, columns, Batches(session, cursor, reader, kept, again), counts_rows=True)


def run_again(cursor: Cursor, sql: str, values: list[object] | dict[str, object] | None) -> pa.RecordBatchReader:
    """Run a query and return a reader of its rows, for `Batches`."""
    execute(cursor, sql, values)
    return cursor.to_arrow_reader(BATCH_ROWS)


def show_system(session: Session, cursor: Cursor, batch: Batch) -> None:
    """Let a cursor see the system catalogs as they are now, if a query reads them."""
    if not batch.reads_system:
        return
    session.context.system_views.refresh(batch.sql.reads)
    if session.database != DEFAULT_DATABASE:
        cursor.execute(f"SET VARIABLE database = {literal(session.database)}")
    if reads_sizes(batch.sql):
        session.context.system_views.refresh(SIZED)
        set_sizes(cursor)
    for name, value in live_variables(session, batch.sql.reads):
        cursor.execute(f"SET VARIABLE {name} = {literal(value)}")


def describe(session: Session, plan: Plan) -> tuple[ResultColumn, ...]:
    """Return the columns of a planned query without running it."""
    if plan.columns is None:
        with placed(plan.statement, session):
            plan.columns = describe_batch(session, plan.batch)
    return plan.columns


def describe_batch(session: Session, batch: Batch) -> tuple[ResultColumn, ...]:
    """Return the columns of a query without running it."""
    if batch.reads_system:
        session.context.system_views.refresh(batch.sql.reads)
    cursor = session.context.lake.cursor()
    describe_with(cursor, batch.draws)
    samples = tuple(map(_sample, batch.parameters))
    rows = cursor.execute(f"DESCRIBE {batch.sql}", bindings(cursor, batch.sql, samples)).fetchall()
    return described_columns([(name, type_) for name, type_, *_ in rows], batch.origins)


@cache
def _sample(type_: Type) -> object:
    """Return a value that stands for a parameter when a query is described.

    For DuckDB (1.5.5), an expression over a NULL parameter, such as `$1 || 'x'`, has the type integer.
    """
    if type_.is_struct or type_.labels:
        return type_.labels[0] if len(type_.labels) > 1 and not type_.dimensions else None
    text = _SAMPLES.get(type_.name, "1")
    return decode_text(f"{{{text}}}" if type_.dimensions else text, type_)


_DAY = "2000-01-01"
_SAMPLES = {
    "date": _DAY,
    "time without time zone": "12:00",
    "timestamp without time zone": _DAY,
    "timestamp with time zone": _DAY,
    "interval": "1 day",
    "uuid": "00000000-0000-0000-0000-000000000000",
}
