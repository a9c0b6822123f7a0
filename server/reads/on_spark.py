"""Queries that run on Spark, from one snapshot; the files that Spark writes are streamed to the client.

These are the queries with `query_mode = distributed`, and with `auto` those for which the server lacks memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing

import pyarrow as pa

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.places import Place, remove_tree
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.names import literal, quote
from sparkwave.executor.spark.batch_query import query_engine, rows_on_spark
from sparkwave.planner.batch.distributed import Distributed, plan_distributed, reads_stored
from sparkwave.planner.batch.query import Environment
from sparkwave.planner.statements import Query
from sparkwave.server.reads import execution
from sparkwave.server.session.plan_cache import Plan
from sparkwave.server.session.session import Session
from sparkwave.server.wire.result import Notice, Result, ResultColumn


def distributed(
    session: Session, statement: Query, environment: Environment, width: Callable[[], int]
) -> Distributed | None:
    """Return the Spark plan of a query; None where DuckDB runs it: in another mode, or without stored relations.

    `width` returns the number of the query's output columns. Raises Error 0A000 for a query that Spark cannot run.
    """
    if session.variables.get("query_mode") != "distributed" or not reads_stored(statement.tree, environment):
        return None
    return plan_distributed(statement.tree, environment, width())


def run(session: Session, query: Distributed, plan: Plan) -> Result:
    """Run a query on the Spark of the session's database. Raises Error 57014 when cancelled, and Spark's errors."""
    lake, columns = session.context.lake, execution.describe(session, plan)
    group = session.context.groups.get(
        plan.environment.catalog.databases[session.database], session.running.is_cancelled
    )
    session.running.check()
    target = lake.new_temporary("query")
    target.mkdir(parents=True)
    session.store_views()
    pinned = lake.pin()
    try:
        snapshot = pinned if plan.environment.snapshot is None else plan.environment.snapshot
        with (
            closing(lake.cursor()) as cursor,
            query_engine(group, lake, session.running.check) as engine,
            session.interrupting(engine),
            session.interrupting(cursor),
        ):
            now_us = time.time_ns() // 1000
            files = rows_on_spark(engine, cursor, query.plan, snapshot, now_us, target)
        return _streamed(session, query, columns, files, target)
    except BaseException as error:
        remove_tree(target)
        session.running.check()
        if isinstance(error, DuckDBError):
            raise translate(error) from error
        raise
    finally:
        lake.unpin(pinned)


def or_on_spark(session: Session, statement: Query, plan: Plan, query: Callable[[], Result]) -> Result:
    """Return a query's result in the server; with `query_mode = auto`, from Spark if the server lacks memory.

    Raises Error 53200 with the reason when Spark cannot run the query.
    """
    if session.variables.get("query_mode") != "auto":
        return query()
    try:
        result = query()
    except DuckDBError as error:
        failure = translate(error)
        if failure.sqlstate != errors.OUT_OF_MEMORY:
            raise
        return _instead(session, statement, plan, failure)
    if plan.rows is None and result.batches is not None:
        result.batches = _OrOnSpark(result.batches, lambda error: _instead(session, statement, plan, error))
    return result


def _instead(session: Session, statement: Query, plan: Plan, error: Error) -> Result:
    """Return the rows of a query from Spark after DuckDB ran out of memory.

    Raises `error` where Spark cannot run the query.
    """
    environment = plan.environment
    if not reads_stored(statement.tree, environment):
        raise error
    try:
        query = plan_distributed(statement.tree, environment, len(execution.describe(session, plan)))
    except Error as refused:
        error.detail, error.hint = refused.message, _HINT
        raise error from refused
    session.notify(Notice("the query needs more memory than the server has for it: it runs on Spark"))
    try:
        return run(session, query, plan)
    except Error as failed:
        if failed.sqlstate == errors.OUT_OF_MEMORY:
            failed.hint = _HINT
        raise


_HINT = "Give the server more memory (--duckdb-memory), or let the query keep less: long values cannot be spilled."


class _OrOnSpark:
    """Record batches of a query in the server; from Spark if DuckDB runs out of memory before the first batch."""

    def __init__(self, batches: Iterator[pa.RecordBatch], instead: Callable[[Error], Result]) -> None:
        self._batches, self._instead = batches, instead
        self._has_begun = False

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            batch = next(self._batches)
        except Error as error:
            if self._has_begun or error.sqlstate != errors.OUT_OF_MEMORY:
                raise
            self._has_begun = True
            self.close()
            found = self._instead(error).batches
            assert found is not None
            self._batches = found
            batch = next(self._batches)
        self._has_begun = True
        return batch

    def close(self) -> None:
        if hasattr(self._batches, "close"):
            self._batches.close()


def _streamed(
    session: Session, query: Distributed, columns: tuple[ResultColumn, ...], files: list[str], target: Place
) -> Result:
    """Return the rows in files, in the query's order and types."""
    fields = query.plan.root.fields
    values = ", ".join(
        f"{column.type.from_lake(quote(field.name))}::{column.type.duckdb()} AS {quote(f'_{number}')}"
        for number, (field, column) in enumerate(zip(fields, columns, strict=False))
    )
    listed = ", ".join(map(literal, files))
    cursor = session.cursor()
    with session.interrupting(cursor):
        cursor.execute(f"SELECT {values} FROM read_parquet([{listed}]){query.order}")
    result = execution.stream(session, cursor, "SELECT", columns)
    assert result.batches is not None
    result.batches = _OfFiles(result.batches, target)
    return result


class _OfFiles:
    """Record batches that are read from files; closing them deletes the files."""

    def __init__(self, batches: Iterator[pa.RecordBatch], directory: Place) -> None:
        self._batches, self._directory = batches, directory

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def close(self) -> None:
        if hasattr(self._batches, "close"):
            self._batches.close()
        remove_tree(self._directory)
