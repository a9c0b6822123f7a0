"""Fills a view from a pinned snapshot of its upstreams, in slices: Snapshot backfill on Spark.

A slice is a range of row ids of the input that drives a fragment; the other inputs are there whole. Each commits its
rows together with the note that it is finished, in any order.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial

from catalog.compute_errors import ComputeErrors, add_errors
from catalog.job_store import Slice, check_step, finish_step, finished_rows, load_slices, start_job
from catalog.lake import Cursor, register_files, registered_files
from catalog.log_context import in_this_context
from catalog.metrics import BACKFILL_BYTES
from catalog.places import Place, delete_unused, keep_list, listed
from catalog.row_ids import ALL, RowIds
from catalog.types import Type
from executor.lake_rows import as_stored
from executor.program import Check, new_checks
from executor.slicing import plan_slices
from executor.spark_engine import SparkEngine, filled_files
from executor.work import Work, step_directory
from planner.backfill import PARTIALS, Fragment, fragments, merge_query, slice_query, whole_query
from planner.functions.emit import to_sql
from planner.nodes import Aggregate


def run(work: Work) -> None:
    """Read the slices that are not finished. Raises ControlsChanged when a rate limit is set while it runs."""
    cursor = work.lake.cursor()
    work.planning(lambda: _plan(work, cursor))
    work.started.set()
    slices, finished = load_slices(cursor, work.id)
    work.progress.resume(finished_rows(cursor, work.id))
    # The slices are already cut, so what drives them no longer matters here.
    for fragment in fragments(work.view.plan, {scan.input: 0 for scan in work.view.plan.scans}):
        own = [s for s in slices if s.fragment_id == fragment.id]
        parts = [s for s in own if s.input is not None or len(own) == 1]
        _run_slices(work, fragment, parts, finished, is_only=len(own) == 1)
        for merge in (s for s in own if s not in parts and (s.fragment_id, s.id) not in finished):
            work.retrying(partial(_merge, work, fragment, merge))


def _plan(work: Work, cursor: Cursor) -> None:
    """Pin the epoch and write the slices down; from here on the job survives a restart."""
    epoch = work.now(cursor)
    slices = plan_slices(cursor, work.view.plan, epoch.snapshot, work.settings.slice_rows(), work.shares)
    with work.store.change() as transaction:
        start_job(transaction, work.job, epoch, slices)


def _run_slices(
    work: Work, fragment: Fragment, slices: Sequence[Slice], finished: set[tuple[int, int]], is_only: bool
) -> None:
    todo = [s for s in slices if (s.fragment_id, s.id) not in finished]
    if not todo:
        return
    slots = work.slots
    with ThreadPoolExecutor(slots, thread_name_prefix=f"job-{work.id}-slice") as pool:
        futures: set[Future[None]] = set()
        for slice_ in todo:
            if len(futures) >= slots:
                futures = _rest(futures)
            controls = _hold_back(work, slice_)
            run_slice = partial(_run_slice, work, fragment, slice_, is_only)
            futures.add(pool.submit(in_this_context(work.retrying), run_slice, controls))
        while futures:
            futures = _rest(futures)


def _hold_back(work: Work, slice_: Slice) -> int:
    """Keep to a rate limit that was set after the slices were cut: on average, since a slice is read at once.

    Returns the controls by which the slice may be read.
    """
    waited, started = 0.0, time.monotonic()
    while True:
        controls, limit = work.controls, work.job.rate_limit
        if limit is None or (limit and waited >= slice_.row_count / limit):
            work.wait_because(None)
            return controls
        work.wait_because(None if limit else "the rate limit is 0")
        work.pause(slice_.row_count / limit - waited if limit else 1.0, controls)
        waited = time.monotonic() - started


def _rest(futures: set[Future[None]]) -> set[Future[None]]:
    """Wait for one of them to be done. Raises what made it fail."""
    done, rest = wait(futures, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
    return rest


def _begin(work: Work, slice_: Slice) -> Cursor:
    """A cursor for a slice. Raises AlreadyDone for one that is tried again after its commit.

    What it wrote is the lake's then, and must not be written again.
    """
    cursor = work.lake.cursor()
    check_step(cursor, work.id, slice_.id, [slice_.fragment_id])
    return cursor


def _run_slice(work: Work, fragment: Fragment, slice_: Slice, is_only: bool) -> None:
    cursor = _begin(work, slice_)
    plan, epoch = work.view.plan, work.job.epoch
    if is_only:
        query = to_sql(whole_query(plan, fragment))
    else:
        assert slice_.input is not None
        query = to_sql(slice_query(plan, fragment, slice_.input))
    is_partial = fragment.end is not None and not is_only
    target = _directory(work, fragment, slice_, is_partial)
    with work.spark("slice", reads={fragment.id: slice_.row_count}) as engine:
        for scan in (scan for scan in plan.scans if f"{scan.input}_new" in query):
            work.check_step()
            whole = is_only or scan.input != slice_.input or slice_.row_id_from is None
            rows = ALL if whole else RowIds(((slice_.row_id_from or 0, slice_.row_id_to),))
            engine.bind_slice(cursor, scan, epoch.snapshot, rows)
        _bind_states(work, engine, cursor, query)
        engine.times = epoch.time_us, epoch.time_us
        name, checks = _checks(work, fragment, is_only)
        files, failed = engine.run_to_parquet(
            as_stored(query, _types(work, fragment, is_partial)), target, name, checks
        )
    BACKFILL_BYTES.add(work.id, sum(file.size for file in files), fragment.id)
    work.check()
    if is_partial:
        keep_list(target, filled_files(files) or [files[0].path])
    _commit_slice(work, cursor, fragment, slice_, None if is_partial else target, filled_files(files), failed)


def _checks(work: Work, fragment: Fragment, is_only: bool) -> tuple[str, tuple[Check, ...]]:
    """What finds the rows for which an expression failed, and the name by which it reads what a slice writes.

    Of several slices nobody would know which rows of the other inputs have been counted.
    """
    view = work.view
    states = view.plan.states_in(fragment.target)
    name = f"{states[0].name}_state" if states else "rows"
    is_whole = is_only and all(state.in_view for state in view.plan.states)  # it has no other fragment
    return name, new_checks(view.plan) if is_whole else ()


def _types(work: Work, fragment: Fragment, is_partial: bool) -> dict[str, Type]:
    """The columns that a slice writes: those of its target, or of partial results."""
    end = fragment.end
    if not is_partial or end is None:
        return work.view.plan.types_in(fragment.target)
    fields = end.fields if isinstance(end, Aggregate) else end.input.fields
    return {field.name: field.type for field in fields}


def _merge(work: Work, fragment: Fragment, slice_: Slice) -> None:
    """The last slice of a fragment with several that ends in an aggregate: their partial results become one."""
    cursor = _begin(work, slice_)
    target = _directory(work, fragment, slice_, is_partial=False)
    with work.spark("merge") as engine:
        partials = listed(work.staging, f"f{fragment.id}_s*")
        engine.bind_files(PARTIALS, partials, _types(work, fragment, is_partial=True))
        query = to_sql(merge_query(work.view.plan, fragment))
        files, _ = engine.run_to_parquet(as_stored(query, _types(work, fragment, is_partial=False)), target)
    BACKFILL_BYTES.add(work.id, sum(file.size for file in files), fragment.id)
    work.check()
    _commit_slice(work, cursor, fragment, slice_, target, filled_files(files))


def _bind_states(work: Work, engine: SparkEngine, cursor: Cursor, query: str) -> None:
    """Make the states relations that a query reads, from the files that fragments before it have left."""
    for state in work.view.plan.states:
        if f"{state.name}_state" in query:
            engine.bind_state_files(work.view, state, registered_files(cursor, work.view.state_table(state)))


def _commit_slice(
    work: Work, cursor: Cursor, fragment: Fragment, slice_: Slice, directory: Place | None, files: Sequence[str],
    failed: ComputeErrors | None = None,
) -> None:  # fmt: skip
    """Rows and cursor together: register the files of a directory and note the slice, or neither.

    Partial results have no such directory: nothing of them is registered.
    """
    filled = files if directory is not None else ()
    with work.lake.transaction(cursor):
        register_files(cursor, work.view.table_of(fragment.target), filled)
        finish_step(cursor, work.id, slice_.id, {slice_.fragment_id: slice_.row_count})
        add_errors(cursor, work.id, failed)
    work.progress.finish({slice_.fragment_id: slice_.row_count})
    if directory is not None:
        delete_unused(directory, filled, 1)


def _directory(work: Work, fragment: Fragment, slice_: Slice, is_partial: bool) -> Place:
    directory = step_directory(work.staging if is_partial else work.data, fragment.id, slice_.id)
    directory.parent.mkdir(parents=True, exist_ok=True)
    return directory
