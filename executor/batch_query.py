"""A client's query on Spark: the operators with state below first, each into files that the next reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from catalog.lake import Cursor, Lake
from catalog.places import Place, remove_tree
from executor.faults import error_of
from executor.groups import Group
from executor.spark_engine import SparkEngine, SparkError, spark_engine
from planner.backfill import first_rows
from planner.functions.emit import SPARK, to_sql
from planner.stream import StreamPlan


def rows_on_spark(
    engine: SparkEngine, cursor: Cursor, plan: StreamPlan, snapshot: int, time_us: int, target: Place
) -> list[str]:
    """Run a query at a snapshot, as of a time. Returns the Parquet files of its rows, in a new directory."""
    try:
        for scan in plan.scans:
            engine.check()
            engine.bind_slice(cursor, scan, snapshot)
        if plan.reads_now:
            engine.set_times((time_us, time_us))
        texts = [field.name for field in plan.root.fields if field.type.is_text]
        files: list[str] = []
        for part in first_rows(plan):
            query = to_sql(part.query, SPARK, lenient=False)
            written = engine.run_to_parquet(query, target / (part.target or "rows"), texts)
            if part.target is None:
                files = written
            else:
                engine.bind_files(f"{part.target}_state", written)
        return files
    except BaseException:
        remove_tree(target)
        raise


@contextmanager
def query_engine(group: Group, lake: Lake, check: Callable[[], None]) -> Iterator[SparkEngine]:
    """An engine for one query; what goes wrong on Spark is an Error."""
    try:
        with spark_engine(group, lake, "query", check=check) as engine:
            yield engine
    except SparkError as error:
        check()
        raise error_of(error) from error
