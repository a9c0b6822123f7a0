"""The first delivery of a sink: all rows that it has read during its creation.

Rows for a table are written by ranges of row ids. Each range is a transaction that also stores the start of the next,
so that others can commit in between and a crash repeats nothing. A file is one step.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Job
from sparkwave.catalog.names import quote
from sparkwave.catalog.relation_details import TABLE
from sparkwave.catalog.stores.job_store import AlreadyDone, move_delivery
from sparkwave.executor.backfill.controls import ControlsChanged
from sparkwave.executor.backfill.slicing import row_ids
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.memory.delta_tables import make_table
from sparkwave.executor.sinks.deliveries import Sinks, Undeliverable, logs, needs_order, order_of, targets

_ROWS = "sink_rows"
# The rows in their order, where it counts.
_ORDERED = "ordered_sink_rows"
# The most rows that a commit writes into a table, because other commits wait for it.
STEP_ROWS = 100_000


@dataclass(frozen=True)
class _Source:
    """The rows to deliver: a relation whose column `place` numbers the rows from `first` to `last`."""

    rows: str
    place: str
    first: int
    last: int

    def bind(self, cursor: Cursor, start: int, stop: int | None) -> None:
        """Make _ROWS the rows from place `start` to before `stop`, None for the rest."""
        end = f" AND {self.place} < {stop}" if stop is not None else ""
        rows = f"SELECT *, 1 AS _weight FROM {self.rows} WHERE {self.place} >= {start}{end}"
        cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {_ROWS} AS {rows}")


def deliver_all(work: Work, sinks: Sinks) -> None:
    """Deliver the rows that the job has stored, and forget them with the last. Resumes after the last commit."""
    with closing(work.lake.cursor()) as cursor:
        source = _source(work, cursor)
        if work.relation.sink.connector == TABLE and work.job.deliver_from is None:
            work.retries.run(lambda: _check(work, sinks, cursor, source))
        while (job := work.job).delivered is None:
            start, stop = _next(work, source, job.deliver_from)
            with suppress(ControlsChanged):  # stored rows are delivered without a rate limit
                work.retries.run(lambda: _deliver(work, sinks, cursor, job, source, start, stop))  # noqa: B023


def _source(work: Work, cursor: Cursor) -> _Source:
    """Return the rows by their row ids, or where the order of rows with one key counts, by their place in it."""
    relation = work.relation
    columns = ", ".join(f"{column.from_lake} AS {quote(column.lake_name)}" for column in relation.stored)
    if relation.target is not None and needs_order(relation, work.store.catalog.by_id[relation.target]):
        order = order_of(relation)
        rows = f"SELECT {columns} FROM {relation.lake_name}"
        query = f'SELECT *, row_number() OVER (ORDER BY {order}) AS "?place" FROM ({rows}) ORDER BY {order}'
        return _Source(_ORDERED, '"?place"', 1, make_table(cursor, _ORDERED, query))
    first, last = row_ids(cursor, relation, work.lake.snapshot(cursor))
    return _Source(f"(SELECT {columns}, rowid FROM {relation.lake_name})", "rowid", first, last)


def _next(work: Work, source: _Source, start: int | None) -> tuple[int, int | None]:
    """Return the places of the next step: from the first on, to before the second, None for the rest."""
    begin = source.first if start is None else start
    is_last = work.relation.sink.connector != TABLE or begin + STEP_ROWS > source.last
    return begin, None if is_last else begin + STEP_ROWS


def _check(work: Work, sinks: Sinks, cursor: Cursor, source: _Source) -> None:
    """Raise the errors that the table would raise for any row, before the first row is delivered."""
    stop: int | None = source.first
    while stop is not None:
        start, stop = _next(work, source, stop)
        source.bind(cursor, start, stop)
        sinks.prepare(cursor, work.store.catalog, work.relation, _ROWS, work.job.epoch.snapshot)


def _deliver(work: Work, sinks: Sinks, cursor: Cursor, job: Job, source: _Source, start: int, stop: int | None) -> None:
    """Deliver the rows from a place to before another, None for the rest. Raises AlreadyDone."""
    relation, catalog = work.relation, work.store.catalog
    source.bind(cursor, start, stop)
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
    except BaseException as error:
        # The transaction may have been committed before the failure.
        work.store.reload()
        if work.job.delivered is None:
            sinks.forget([delivery])
        raise (error.error if isinstance(error, Undeliverable) else error) from error
    work.store.reload()
