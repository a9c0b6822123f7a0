"""Creates a view whose rows are soon there in one transaction, which stores the view together with its rows.

The rows are computed as of the newest snapshot, before anything of the view is stored: of little data in process, else
on Spark by the step that a job begins ahead. Then, while no barrier runs, the view is stored as created, if its inputs
have not changed since from the created views' point of view. If this fails or takes longer than a moment, nothing is
stored, and a job creates the view; it goes on with the step on Spark.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.row_ids import ALL
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import Epoch, Position, Relation
from sparkwave.catalog.stores.epoch_store import store_epoch
from sparkwave.catalog.stores.job_store import Start, add_created_job
from sparkwave.executor.backfill import whole_fill
from sparkwave.executor.backfill.one_commit import MOST_ROWS, PATIENCE_S, epoch_of, may_end_so
from sparkwave.executor.backfill.progress import Rows
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.epochs.advance import Fill, View
from sparkwave.executor.epochs.coordinator import Coordinator
from sparkwave.executor.epochs.delta_programs import whole
from sparkwave.executor.epochs.duckdb_engine import DuckDBEngine
from sparkwave.executor.epochs.time_limit import interrupted_after
from sparkwave.executor.faults import message_of

logger = logging.getLogger(__name__)

# A view that takes longer is created by a job, whose progress can be watched. In process its rows are then computed
# again; a step on Spark goes on, but storing its job takes a tenth of a second of two cores.
MOMENT_S = 0.5
MOMENT_ON_SPARK_S = 1.5

# Stores a relation and its empty tables in the cursor's transaction.
Add = Callable[[Cursor], Relation]


def _is_for(work: Work) -> bool:
    """Return whether a view may be created at once: few rows, read in process, and no rate limit."""
    return (
        may_end_so(work)
        and work.job.rate_limit is None
        and work.in_process
        and work.inputs.total <= min(MOST_ROWS, work.settings.slice_rows())
    )


def create(work: Work, coordinator: Coordinator, add: Add) -> View | None:
    """Create the view of a job that is not stored yet. Returns the stored view, or None if a job has to create it.

    Raises the errors of `add`.
    """
    with closing(work.lake.cursor()) as cursor:
        try:
            snapshot = _applied(work, coordinator, cursor) if _is_for(work) else None
            fill = _fill(work, cursor, snapshot) if snapshot is not None else None
            if snapshot is None or fill is None or sum(fill.counts) > MOST_ROWS:
                return None
            return _store(work, coordinator, cursor, fill, snapshot, add)
        except DuckDBError as error:
            logger.info("%s is not created at once: %s", work.relation.qualified_name, message_of(error))
    return None


def finish(work: Work, coordinator: Coordinator, start: Start, rows: Rows, add: Add) -> View | None:
    """Create the view of a job that is not stored yet with the rows of its step ahead, which reads `rows`.

    Returns the stored view, or None if a job has to create it. Raises the errors of `add`.
    """
    filled = work.ahead.within(MOMENT_ON_SPARK_S) if may_end_so(work) and work.job.rate_limit is None else None
    if filled is None:
        return None
    (fill, cursor), snapshot = filled, start.epoch.snapshot
    try:
        if fill.inserted > MOST_ROWS or not coordinator.reach(snapshot, PATIENCE_S):
            return None
        view = _store(work, coordinator, cursor, fill, snapshot, add)
    except DuckDBError as error:
        logger.info("%s is not created at once: %s", work.relation.qualified_name, message_of(error))
        work.store.reload()
        # The commit may have succeeded though it has failed to say so.
        view = View(work.store.catalog.by_id[work.id], work.view.plan) if work.is_created else None
    if view is not None:
        whole_fill.finished(work, rows, fill)
        work.remove_staging()
    return view


def _applied(work: Work, coordinator: Coordinator, cursor: Cursor) -> int | None:
    """Return the newest snapshot, once the created views have applied all earlier changes; None where that takes long.

    Then the snapshot has the inputs as of the views' epoch, from which the next barrier starts.
    """
    if coordinator.reach(work.lake.newest(cursor), PATIENCE_S):
        coordinator.checkpoints.run()
        return work.lake.newest(cursor)
    return None


def _fill(work: Work, cursor: Cursor, snapshot: int) -> Fill:
    """Return the rows of the view and its states at a snapshot. Raises DuckDBError after MOMENT_S seconds."""
    inputs = {scan.input: ALL for scan in work.view.plan.scans}
    epoch = Epoch(snapshot, time.time_ns() // 1000)
    with interrupted_after(cursor, MOMENT_S):
        return DuckDBEngine().fill(cursor, work.view, Position.at(epoch), inputs, whole(work.view.plan), epoch.time_us)


def _store(
    work: Work, coordinator: Coordinator, cursor: Cursor, fill: Fill, snapshot: int, add: Add
) -> View | None:  # fmt: skip
    """Store the view with its rows as of a snapshot. Returns None if its inputs have changed since."""
    with epoch_of(work, coordinator, cursor, snapshot) as epoch:
        if epoch is None:
            return None
        fields = (*work.view.plan.root.fields, *(f for state in work.view.plan.states for f in state.node.fields))
        with work.store.change(cursor):
            view = View(add(cursor), work.view.plan)
            add_created_job(cursor, replace(work.job, id=view.relation.id))
            with work.lake.inlining.off(field.type for field in fields):
                fill.of(view).apply(cursor)
            store_epoch(cursor, epoch)  # the view has applied it, too
        return view
