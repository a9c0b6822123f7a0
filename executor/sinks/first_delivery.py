"""The first delivery of a sink: all rows that it has read during its creation.

Rows for a table are written by ranges of row ids. Each range is a transaction that also stores the start of the next,
so that others can commit in between and a crash repeats nothing. A file is one step.
"""

from __future__ import annotations

from contextlib import suppress

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Job, Relation
from sparkwave.catalog.names import quote
from sparkwave.catalog.relation_details import TABLE
from sparkwave.catalog.stores.job_store import AlreadyDone, move_delivery
from sparkwave.executor.backfill.controls import ControlsChanged
from sparkwave.executor.backfill.slicing import row_ids
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.sinks.deliveries import Sinks, logs, targets

_ROWS = "sink_rows"
# The most rows that a commit writes into a table, because other commits wait for it.
STEP_ROWS = 100_000


def deliver_all(work: Work, sinks: Sinks) -> None:
    """Deliver the rows that the job has stored, and forget them with the last. Resumes after the last commit."""
    cursor, relation = work.lake.cursor(), work.relation
    steps = relation.sink.connector == TABLE
    if steps and work.job.deliver_from is None:
        work.retrying(lambda: _check(work, sinks, cursor))
    first, last = row_ids(cursor, relation, work.lake.snapshot(cursor))
    while (job := work.job).delivered is None:
        start = first if job.deliver_from is None else job.deliver_from
        stop = start + STEP_ROWS if steps and start + STEP_ROWS <= last else None
        with suppress(ControlsChanged):  # stored rows are delivered without a rate limit
            work.retrying(lambda: _deliver(work, sinks, cursor, job, start, stop))  # noqa: B023


def _check(work: Work, sinks: Sinks, cursor: Cursor) -> None:
    """Raise the errors that the table would raise for any row, before the first row is delivered."""
    _bind(cursor, work.relation)
    sinks.prepare(cursor, work.store.catalog, work.relation, _ROWS, work.job.epoch.snapshot)


def _bind(cursor: Cursor, relation: Relation, where: str = "") -> None:
    columns = "".join(f"{column.from_lake} AS {quote(column.lake_name)}, " for column in relation.stored)
    rows = f"SELECT {columns}1 AS _weight FROM {relation.lake_name}{where}"
    cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {_ROWS} AS {rows}")


def _deliver(work: Work, sinks: Sinks, cursor: Cursor, job: Job, start: int, stop: int | None) -> None:
    """Deliver the rows from row id `start` to before `stop`, None for the rest. Raises AlreadyDone."""
    relation, catalog = work.relation, work.store.catalog
    end = f" AND rowid < {stop}" if stop is not None else ""
    _bind(cursor, relation, f" WHERE rowid >= {start}{end}")
    delivery = sinks.prepare(cursor, catalog, relation, _ROWS, job.epoch.snapshot)
    try:
        work.controls.check()
        with work.lake.transaction(cursor, [relation.lake_table, *logs([relation])], targets(catalog, [relation])):
            move_delivery(cursor, job, stop)
            sinks.deliver(cursor, catalog, [delivery])
            if stop is None:
                cursor.execute(f"DELETE FROM {relation.lake_name}")
    except AlreadyDone:
        raise
    except BaseException:
        # The transaction may have been committed before the failure.
        work.store.reload()
        if work.job.delivered is None:
            sinks.forget([delivery])
        raise
    work.store.reload()
