"""Fills a view by one step, which reads all rows of all inputs.

On Spark the step starts before its job is stored. Storing the job takes as long as a step that reads little.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sparkwave.catalog.counters import BACKFILL_BYTES
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.row_ids import ALL
from sparkwave.catalog.model import Position
from sparkwave.catalog.stores.job_store import Start
from sparkwave.executor.backfill.ahead import Filled
from sparkwave.executor.backfill.job_engines import engine_of
from sparkwave.executor.backfill.progress import Rows
from sparkwave.executor.backfill.work import End, Work
from sparkwave.executor.epochs.advance import Fill
from sparkwave.executor.epochs.delta_programs import whole
from sparkwave.planner.backfill.strategy import SNAPSHOT


def start_ahead(work: Work, start: Start, rows: Rows) -> None:
    """Begin the step on Spark. `rows` are what it reads, by fragment."""
    work.ahead.start(
        partial(_filled_ahead, work, Position.at(start.epoch, start.views_at), rows), f"job-{work.id}-ahead"
    )


def run(work: Work, rows: Rows, end: End, finish: Callable[[Cursor], None]) -> None:
    """Fill the view and its states, and commit the rows: by `end`, or else with `finish`, in the same transaction.

    Raises AlreadyDone when it is tried again after its commit.
    """
    work.check_retry(work.lake.cursor(), 1, rows)
    ahead = work.ahead.take()
    fill, cursor = ahead.result() if ahead is not None else _filled(work, work.job.applied, rows)
    fill = fill.of(work.filling)
    work.controls.check()
    if not end(cursor, fill):
        with work.lake.transaction(cursor, fill.tables):
            fill.apply(cursor)
            finish(cursor)
    finished(work, rows, fill)


def finished(work: Work, rows: Rows, fill: Fill) -> None:
    """Count what the step has read and written, and remove files without rows."""
    if work.job.strategy == SNAPSHOT:  # its fragments are those of the additions
        for fragment_id, addition in zip(rows, fill.additions, strict=False):
            BACKFILL_BYTES.add(work.id, addition.size, fragment_id)
    else:  # the bytes of a step over several fragments are not counted for any one of them
        BACKFILL_BYTES.add(work.id, fill.size, next(iter(rows)) if len(rows) == 1 else 0)
    work.progress.finish(rows)
    fill.clean_up()


def _filled_ahead(work: Work, position: Position, rows: Rows) -> Filled:
    work.await_group()
    return _filled(work, position, rows)


def _filled(work: Work, position: Position, rows: Rows) -> Filled:
    cursor, view = work.lake.cursor(), work.filling
    inputs = {scan.input: ALL for scan in view.plan.scans}
    with engine_of(work, "fill", cursor, work.data / "step_0", rows) as engine:
        fill = engine.fill(cursor, view, position, inputs, whole(view.plan), position.epoch.time_us)
    return fill.as_files, cursor
