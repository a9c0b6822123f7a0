"""Runs a client's query on Spark: stateful operators first, each into files that the next one reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.places import Place, remove_tree
from sparkwave.executor.faults import error_of
from sparkwave.executor.spark.groups import Group
from sparkwave.executor.spark.lake_rows import as_stored
from sparkwave.executor.spark.spark_engine import SparkEngine, SparkError, spark_engine
from sparkwave.planner.backfill.fragments import first_rows
from sparkwave.planner.functions.emit import Sql, to_sql
from sparkwave.planner.plan.stream_plan import StreamPlan


def rows_on_spark(
    engine: SparkEngine, cursor: Cursor, plan: StreamPlan, snapshot: int, time_us: int, target: Place
) -> list[str]:
    """Run a query at a snapshot; `time_us` is `now()` in microseconds.

    Returns Parquet files of its rows in a new directory.
    """
    try:
        for scan in plan.scans:
            engine.check()
            engine.bind_slice(cursor, scan, snapshot)
        engine.times = time_us, time_us
        files: list[str] = []
        for part in first_rows(plan):
            types = plan.types_in(part.target)
            given = to_sql(part.query, lenient=False)
            query = Sql(as_stored(given, {column: types[column] for column in part.columns}), given.reads)
            written = engine.run_to_parquet(query, target / (part.target or "rows"))
            files = [file.path for file in written]
            if part.target is not None:
                engine.bind_files(f"{part.target}_state", files)
        return files
    except BaseException:
        remove_tree(target)
        raise


@contextmanager
def query_engine(group: Group, lake: Lake, check: Callable[[], None]) -> Iterator[SparkEngine]:
    """Yield an engine for one query. Failures of Spark are raised as Error."""
    try:
        with spark_engine(group, lake, "query", check=check) as engine:
            yield engine
    except SparkError as error:
        check()
        raise error_of(error) from error
