"""Ends the creation of a view with the commit of its rows, where no step remains between them and the created views.

While no barrier runs, the created views stand at an epoch. Rows as of a snapshot are also the rows of that epoch if no
input of the view has changed in between.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Epoch, adds_a_view
from sparkwave.catalog.names import LakeTable
from sparkwave.catalog.stores.epoch_store import store_epoch
from sparkwave.catalog.stores.job_store import finish_job
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.epochs.advance import Fill
from sparkwave.executor.epochs.coordinator import Coordinator

# Seconds to wait for a barrier; after that, a step of its own waits for it.
PATIENCE_S = 0.5
# The most rows of a job that are committed while barriers wait.
MOST_ROWS = 50_000


def may_end_so(work: Work) -> bool:
    """Return whether the rows of a view need no further work before or after their commit."""
    return adds_a_view(work.relation) and not work.view.plan.reads_now


@contextmanager
def epoch_of(work: Work, coordinator: Coordinator, cursor: Cursor, snapshot: int) -> Iterator[Epoch | None]:
    """While entered, yield the epoch of the created views if it has the rows of a snapshot; else None.

    Yields None, too, if a barrier takes longer than PATIENCE_S.
    """
    with coordinator.between_barriers(PATIENCE_S) as epoch:
        yield epoch if epoch is not None and _still_holds(work, cursor, snapshot, epoch) else None


def _still_holds(work: Work, cursor: Cursor, snapshot: int, epoch: Epoch) -> bool:
    """Return whether all inputs at the newest epoch are as they were at a snapshot, and no input is left behind."""
    lake, catalog = work.lake, work.store.catalog
    jobs = (catalog.job_by_id.get(id_) for id_ in work.relation.upstreams)
    return (
        not any(job is not None and job.is_behind for job in jobs)
        and not lake.has_changed(cursor, _inputs(work, True), *sorted((snapshot, epoch.snapshot)))
        and not lake.has_changed(cursor, _inputs(work, False), snapshot, lake.newest(cursor))
    )


def _inputs(work: Work, are_tables: bool) -> list[LakeTable]:
    relations = (scan.relation for scan in work.view.plan.scans)
    return [relation.lake_table for relation in relations if relation.is_table == are_tables]


def end(work: Work, coordinator: Coordinator, cursor: Cursor, fill: Fill) -> bool:
    """Store all rows of a view and mark it created. Returns False, with nothing stored, if that needs more steps."""
    snapshot = work.job.epoch.snapshot
    if not may_end_so(work) or fill.inserted > MOST_ROWS or not coordinator.reach(snapshot, PATIENCE_S):
        return False
    with epoch_of(work, coordinator, cursor, snapshot) as epoch:
        if epoch is None:
            return False
        work.controls.check()
        with work.store.change(cursor, fill.tables):
            fill.apply(cursor)
            finish_job(cursor, work.id, work.store.catalog.steady_group(work.job))
            store_epoch(cursor, epoch)  # the view has applied it, too
    return True
