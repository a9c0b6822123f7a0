"""The engines that compute a job's steps: DuckDB in process, or the job's group of Spark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.places import Place
from sparkwave.catalog.model import Epoch
from sparkwave.catalog.stores.job_store import move_job_epoch
from sparkwave.executor.backfill.progress import NO_ROWS, Rows
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.epochs.advance import Changes, Engine
from sparkwave.executor.epochs.duckdb_engine import DuckDBEngine
from sparkwave.executor.epochs.versions import Version
from sparkwave.executor.spark.spark_engine import SparkEngine, spark_engine
from sparkwave.executor.spark.workers import actors_of


def number_of_actors(work: Work) -> int:
    """Return the number of parallel parts of the job's work."""
    return 1 if work.in_process else actors_of(work.job, work.group.get().size.all_cores)


def engine_of(work: Work, purpose: str, cursor: Cursor, data: Place, reads: Rows) -> AbstractContextManager[Engine]:
    """Return a context with the engine that reads the rows of the upstreams."""
    return _duckdb(work, cursor, data) if work.in_process else spark_of(work, purpose, data, reads)


@contextmanager
def spark_of(
    work: Work, purpose: str, data: Place | None = None, reads: Rows = NO_ROWS, tasks: int = 1
) -> Iterator[SparkEngine]:
    """Yield an engine of the job's group for a step that reads rows of some fragments; a cancel interrupts it.

    `data` is as in SparkEngine. Each of the step's `tasks` reads about as many rows.
    """
    work.controls.check()
    group, waiting = work.group.get(), work.waiting
    share = work.share.of_tasks if work.shares_a_machine else None
    engine_of_group = spark_engine(
        group, work.lake, f"{purpose}_{work.id}", data, work.controls.check_step, work.inputs.of, work, share
    )
    with (
        group.turns.turn(work.controls.check_step),
        work.calls.watched(work.id, purpose, waiting.because, waiting.no_longer, lambda: group.silent_since),
        engine_of_group as engine,
        work.controls.interruptible(engine.interrupt),
        work.progress.running(reads, [engine.says(task) for task in range(tasks)]),
    ):
        work.retries.goes_on()
        yield engine


@contextmanager
def _duckdb(work: Work, cursor: Cursor, data: Place | None = None) -> Iterator[DuckDBEngine]:
    """Yield the engine in process, on a cursor that a cancel interrupts; `data` is as in DuckDBEngine."""
    work.controls.check()
    work.lake.threads.provide(lambda: work.inputs.total, cursor)
    with work.controls.interruptible(cursor.interrupt):
        work.retries.goes_on()
        yield DuckDBEngine(data=data)


def advance_job(
    work: Work, cursor: Cursor, versions: Mapping[str, Version], changes: Changes, old: Epoch, new: Epoch
) -> None:
    """Advance the job's view to an epoch by the changes that the cursor has, and commit that.

    Few changes are computed in process, as for created views; many on Spark.
    """
    done = None
    if changes.inputs:
        in_process = work.in_process or work.settings.duckdb_takes(changes.rows)
        with _duckdb(work, cursor) if in_process else spark_of(work, "log") as engine:
            done = engine.advance(cursor, work.view, versions, changes)
    work.controls.check()
    with work.lake.transaction(cursor, done.tables if done is not None else ()):
        if done is not None:
            done.apply(cursor)
        move_job_epoch(cursor, work.id, old, new)
    work.store.reload()
