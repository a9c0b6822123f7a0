"""The first delivery of a sink: all that it has read while it was being created."""

from __future__ import annotations

from catalog.store import AlreadyDone
from executor.sinks import Sinks, logs, targets
from executor.work import Work

_ROWS = "sink_rows"


def deliver_all(work: Work, sinks: Sinks) -> None:
    """Hand on the rows that the job has stored, and forget them in the same transaction. Raises AlreadyDone."""
    cursor, relation, catalog = work.lake.cursor(), work.relation, work.store.catalog
    snapshot = work.job.epoch.snapshot
    cursor.execute(f"CREATE TEMPORARY VIEW {_ROWS} AS SELECT *, 1 AS _weight FROM {relation.lake_name}")
    delivery = sinks.prepare(cursor, catalog, relation, _ROWS, snapshot)
    try:
        work.check()
        with work.lake.transaction(cursor, [relation.lake_table, *logs([relation])], targets(catalog, [relation])):
            work.store.set_delivered(cursor, work.id, snapshot)
            sinks.deliver(cursor, catalog, [delivery])
            cursor.execute(f"DELETE FROM {relation.lake_name}")
    except AlreadyDone:
        raise
    except BaseException:
        # It may have been committed before it failed.
        work.store.reload()
        if work.job.delivered is None:
            sinks.forget([delivery])
        raise
    work.store.reload()
