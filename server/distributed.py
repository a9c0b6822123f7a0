"""Queries with `query_mode = distributed`: Spark computes them from one snapshot, and its files are streamed."""

from __future__ import annotations

import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from catalog.lake import DuckDBError, translate
from catalog.names import literal, quote
from executor.batch_query import query_engine, rows_on_spark
from planner.batch.distributed import Distributed, plan_distributed, reads_stored
from planner.batch.query import Environment
from planner.statements import Query
from server.plan_cache import Plan
from server.result import Result, ResultColumn
from server.session import Session


def distributed(
    session: Session, statement: Query, environment: Environment, width: Callable[[], int]
) -> Distributed | None:
    """The plan of a query for Spark; None where DuckDB runs it: for another mode, and without relations of users.

    `width` tells how many outputs it has.
    Raises Error 0A000 for one that may not run on Spark.
    """
    if session.get("query_mode") != "distributed" or not reads_stored(statement.tree, environment):
        return None
    return plan_distributed(statement.tree, environment, width())


def run(session: Session, query: Distributed, plan: Plan) -> Result:
    """Run a query on the Spark of the session's database. Raises Error 57014 when cancelled, and what Spark does."""
    lake, columns = session.context.lake, session.describe(plan)
    group = session.context.groups.get(plan.environment.catalog.databases[session.database], session.is_cancelled)
    session.check_cancelled()
    target = lake.spill_path / f"query_{uuid.uuid4().hex}"
    target.mkdir(parents=True)
    pinned = lake.pin()
    try:
        snapshot = pinned if plan.environment.snapshot is None else plan.environment.snapshot
        with (
            closing(lake.cursor()) as cursor,
            query_engine(group, lake, session.check_cancelled) as engine,
            session.running(engine),
            session.running(cursor),
        ):
            now_us = time.time_ns() // 1000
            files = rows_on_spark(engine, cursor, query.plan, snapshot, now_us, target)
        return _streamed(session, query, columns, files, target)
    except BaseException as error:
        shutil.rmtree(target, ignore_errors=True)
        session.check_cancelled()
        if isinstance(error, DuckDBError):
            raise translate(error) from error
        raise
    finally:
        lake.unpin(pinned)


def _streamed(
    session: Session, query: Distributed, columns: tuple[ResultColumn, ...], files: list[str], target: Path
) -> Result:
    """The rows in files, in the query's order and its types."""
    fields = query.plan.root.fields
    values = ", ".join(
        f"{quote(field.name)}::{column.type.duckdb()} AS {quote(f'_{number}')}"
        for number, (field, column) in enumerate(zip(fields, columns, strict=False))
    )
    listed = ", ".join(map(literal, files))
    cursor = session.cursor()
    with session.running(cursor):
        cursor.execute(f"SELECT {values} FROM read_parquet([{listed}]){query.order}")
    result = session.stream(cursor, "SELECT", columns)
    assert result.batches is not None
    result.batches = _OfFiles(result.batches, target)
    return result


class _OfFiles:
    """Record batches of files that go when these are closed."""

    def __init__(self, batches: Iterator[pa.RecordBatch], directory: Path) -> None:
        self._batches, self._directory = batches, directory

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        return next(self._batches)

    def close(self) -> None:
        if hasattr(self._batches, "close"):
            self._batches.close()
        shutil.rmtree(self._directory, ignore_errors=True)
