"""Fills a view from a pinned snapshot of its upstreams, in slices: Snapshot backfill on Spark.

A slice is a range of row ids of the input that drives a fragment, the other inputs being there whole, or a bucket of
the rows that exchanges have moved. Each commits its rows together with the note that it is finished, in any order.
Where every fragment is one slice all of them are one task's and one commit's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

from catalog.job_store import BUCKET, Slice, Start, finish_step, finished_rows, load_slices
from catalog.lake import Cursor, register_files, registered_files
from catalog.lazy import lazy
from catalog.log_context import in_this_context
from catalog.metrics import BACKFILL_BYTES
from catalog.places import Place, delete_unused, keep_list, listed
from catalog.row_ids import ALL, RowIds
from catalog.types import Type
from executor.lake_rows import BUCKET_COLUMN, as_stored, bucket_of, in_buckets
from executor.program import whole
from executor.progress import Rows
from executor.slicing import input_rows, plan_slices
from executor.spark_engine import SparkEngine, filled_files
from executor.work import Work, step_directory
from planner.backfill import (
    PARTIALS,
    Fragment,
    bucket_query,
    fragments,
    merge_query,
    slice_query,
    whole_query,
)
from planner.functions.emit import to_sql
from planner.stream import StreamPlan

# Files by the bucket whose rows they have: 0 where all rows are together.
Buckets = Mapping[int, Sequence[str]]


@dataclass(frozen=True)
class _Cut:
    """A fragment as its slices cut it. `reader` are the slices that read its rows, if it is an exchange."""

    fragment: Fragment
    slices: Sequence[Slice]
    reader: Sequence[Slice]

    @property
    def is_whole(self) -> bool:
        """Whether one slice has all of it."""
        return len(self.slices) == 1 and self.slices[0].input != BUCKET

    @lazy
    def merges(self) -> list[Slice]:
        """The slices that make one result of partial ones."""
        return [] if self.is_whole else [s for s in self.slices if s.input is None]

    @lazy
    def parts(self) -> list[Slice]:
        return [s for s in self.slices if s not in self.merges]

    @lazy
    def buckets(self) -> int:
        """Into how many buckets its parts write what others read; 0 if what they write is the target's."""
        return len([s for s in self.reader if s.input == BUCKET]) if self.fragment.is_exchange else len(self.merges)

    @lazy
    def written(self) -> dict[str, Type]:
        """The columns that its parts write."""
        return {field.name: field.type for field in self.fragment.partial_fields}


def run(work: Work) -> None:
    """Read the slices that are not finished. Raises ControlsChanged when a rate limit is set while it runs."""
    work.planning(lambda: work.begin(start(work)))
    work.started.set()
    slices, finished = _stands(work)
    if not finished and all(s.id == 1 for s in slices):
        controls = _hold_back(work, sum(s.row_count for s in slices))
        work.retrying(partial(_run_whole, work, {s.fragment_id: s.row_count for s in slices}), controls)
        return
    moved: dict[int, Buckets] = {}
    for cut in _cuts(work, slices):
        parts, merges = ([s for s in of if (s.fragment_id, s.id) not in finished] for of in (cut.parts, cut.merges))
        _run_slices(work, parts, partial(_run_slice, work, cut, moved))
        if cut.fragment.is_exchange:
            moved[cut.fragment.id] = _buckets(work, cut.fragment)
        elif merges:
            _run_slices(work, merges, partial(_merge, work, cut, _buckets(work, cut.fragment)))


def _cuts(work: Work, slices: Sequence[Slice]) -> Iterator[_Cut]:
    """The fragments of a plan that have slices, each behind the exchanges that it reads."""
    plan = work.view.plan
    # The slices are cut already: what drives them no longer matters here, but what moves does.
    counts = dict.fromkeys((scan.input for scan in plan.scans), 0)
    if any(s.input == BUCKET for s in slices):
        counts = input_rows(work.lake.cursor(), plan, work.job.epoch.snapshot, work.row_count)
    for fragment in fragments(plan, counts):
        yield from _cut(fragment, slices, ())


def _cut(fragment: Fragment, slices: Sequence[Slice], reader: Sequence[Slice]) -> Iterator[_Cut]:
    own = [s for s in slices if s.fragment_id == fragment.id]
    for exchange in fragment.exchanges:
        yield from _cut(exchange, slices, own)
    if own:
        yield _Cut(fragment, own, reader)


def _buckets(work: Work, fragment: Fragment) -> Buckets:
    """The files that the parts of a fragment have written for others."""
    found: dict[int, list[str]] = {}
    for file in listed(work.staging, f"f{fragment.id}_s*"):
        found.setdefault(bucket_of(file), []).append(file)
    return found


def start(work: Work) -> Start:
    """The epoch to pin, and the slices."""
    cursor = work.lake.cursor()
    epoch = work.now(cursor)
    slice_rows, shares = work.settings.slice_rows(), work.shares
    slices = plan_slices(cursor, work.view.plan, epoch.snapshot, slice_rows, shares, work.row_count)
    return Start(epoch, tuple(slices))


def _stands(work: Work) -> tuple[Sequence[Slice], set[tuple[int, int]]]:
    """All slices, and (fragment, slice) of the finished ones."""
    if (fresh := work.fresh_start()) is not None:
        return fresh.slices, set()
    cursor = work.lake.cursor()
    work.progress.resume(finished_rows(cursor, work.id))
    return load_slices(cursor, work.id)


def _run_slices(work: Work, todo: Sequence[Slice], run_slice: Callable[[Slice], None]) -> None:
    """As many at a time as the job's group has room for."""
    if not todo:
        return
    slots = work.slots
    with ThreadPoolExecutor(slots, thread_name_prefix=f"job-{work.id}-slice") as pool:
        futures: set[Future[None]] = set()
        for slice_ in todo:
            if len(futures) >= slots:
                futures = _rest(futures)
            controls = _hold_back(work, slice_.row_count)
            futures.add(pool.submit(in_this_context(work.retrying), partial(run_slice, slice_), controls))
        while futures:
            futures = _rest(futures)


def _hold_back(work: Work, rows: int) -> int:
    """Keep to a rate limit that was set after the slices were cut: on average, since a slice is read at once.

    Returns the controls by which the next slice, of so many rows, may be read.
    """
    waited, started = 0.0, time.monotonic()
    while True:
        controls, limit = work.controls, work.job.rate_limit
        if limit is None or (limit and waited >= rows / limit):
            work.wait_because(None)
            return controls
        work.wait_because(None if limit else "the rate limit is 0")
        work.pause(rows / limit - waited if limit else 1.0, controls)
        waited = time.monotonic() - started


def _rest(futures: set[Future[None]]) -> set[Future[None]]:
    """Wait for one of them to be done. Raises what made it fail."""
    done, rest = wait(futures, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
    return rest


def _run_whole(work: Work, rows: Rows) -> None:
    """Fill the view and its states by one task: every fragment is one slice, of so many rows.

    Raises AlreadyDone when it is tried again after its commit.
    """
    cursor, epoch = work.lake.cursor(), work.job.epoch
    work.check_retry(cursor, 1, rows)
    inputs = {scan.input: ALL for scan in work.view.plan.scans}
    with work.spark("slice", work.data / "step_0", rows) as engine:
        filled = engine.fill(cursor, work.view, epoch.snapshot, inputs, whole(work.view.plan), epoch.time_us).as_files
    for fragment_id, addition in zip(rows, filled.additions, strict=True):
        BACKFILL_BYTES.add(work.id, addition.size, fragment_id)
    work.check()
    with work.lake.transaction(cursor, filled.tables):
        filled.apply(cursor)
        finish_step(cursor, work.id, 1, rows)
    work.progress.finish(rows)
    filled.clean_up()


def _begin(work: Work, slice_: Slice) -> Cursor:
    """A cursor for a slice. Raises AlreadyDone for one that is tried again after its commit."""
    cursor = work.lake.cursor()
    work.check_retry(cursor, slice_.id, [slice_.fragment_id])
    return cursor


def _run_slice(work: Work, cut: _Cut, moved: Mapping[int, Buckets], slice_: Slice) -> None:
    cursor = _begin(work, slice_)
    plan, epoch, fragment = work.view.plan, work.job.epoch, cut.fragment
    query = _query(plan, cut, slice_)
    target = _directory(work, fragment, slice_, cut.buckets > 0)
    with work.spark("slice", reads={fragment.id: slice_.row_count}) as engine:
        for scan in (scan for scan in plan.scans if f"{scan.input}_new" in query):
            work.check_step()
            is_range = scan.input == slice_.input and slice_.row_id_from is not None
            rows = RowIds(((slice_.row_id_from or 0, slice_.row_id_to),)) if is_range else ALL
            engine.bind_slice(cursor, scan, epoch.snapshot, rows)
        for exchange in fragment.exchanges if slice_.input == BUCKET else ():
            assert exchange.target is not None
            files = moved[exchange.id].get(slice_.row_id_from or 0, ())
            engine.bind_files(exchange.target, files, {f.name: f.type for f in exchange.partial_fields})
        _bind_states(work, engine, cursor, query)
        engine.times = epoch.time_us, epoch.time_us
        if cut.buckets > 1:
            keys = [to_sql(key) for key in fragment.keys]
            stored, by = in_buckets(query, cut.written, keys, cut.buckets), BUCKET_COLUMN
        else:
            stored, by = as_stored(query, cut.written if cut.buckets else plan.types_in(fragment.target)), None
        # Of several slices nobody would know which rows of the other inputs have been counted as failed.
        written = engine.run_to_parquet(stored, target, by)
    BACKFILL_BYTES.add(work.id, sum(file.size for file in written), fragment.id)
    work.check()
    if cut.buckets:
        keep_list(target, filled_files(written) or [file.path for file in written])
    _commit_slice(work, cursor, fragment, slice_, None if cut.buckets else target, filled_files(written))


def _query(plan: StreamPlan, cut: _Cut, slice_: Slice) -> str:
    if cut.is_whole:
        return to_sql(whole_query(plan, cut.fragment))
    if slice_.input == BUCKET:
        return to_sql(bucket_query(plan, cut.fragment))
    assert slice_.input is not None
    return to_sql(slice_query(plan, cut.fragment, slice_.input))


def _merge(work: Work, cut: _Cut, partials: Buckets, slice_: Slice) -> None:
    """Partial results become one, all of them or those in a bucket."""
    cursor, fragment = _begin(work, slice_), cut.fragment
    target = _directory(work, fragment, slice_, is_partial=False)
    with work.spark("merge", reads={fragment.id: slice_.row_count}) as engine:
        engine.bind_files(PARTIALS, partials.get(slice_.row_id_from or 0, ()), cut.written)
        query = to_sql(merge_query(work.view.plan, fragment))
        files = engine.run_to_parquet(as_stored(query, work.view.plan.types_in(fragment.target)), target)
    BACKFILL_BYTES.add(work.id, sum(file.size for file in files), fragment.id)
    work.check()
    _commit_slice(work, cursor, fragment, slice_, target, filled_files(files))


def _bind_states(work: Work, engine: SparkEngine, cursor: Cursor, query: str) -> None:
    """Make the states relations that a query reads, from the files that fragments before it have left."""
    for state in work.view.plan.states:
        if f"{state.name}_state" in query:
            engine.bind_state_files(work.view, state, registered_files(cursor, work.view.state_table(state)))


def _commit_slice(
    work: Work, cursor: Cursor, fragment: Fragment, slice_: Slice, directory: Place | None, files: Sequence[str]
) -> None:
    """Rows and cursor together: register the files of a directory and note the slice, or neither.

    What others read has no such directory: nothing of it is registered.
    """
    with work.lake.transaction(cursor):
        if directory is not None:
            register_files(cursor, work.view.table_of(fragment.target), files)
        finish_step(cursor, work.id, slice_.id, {slice_.fragment_id: slice_.row_count})
    work.progress.finish({slice_.fragment_id: slice_.row_count})
    if directory is not None:
        delete_unused(directory, files, 1)


def _directory(work: Work, fragment: Fragment, slice_: Slice, is_partial: bool) -> Place:
    directory = step_directory(work.staging if is_partial else work.data, fragment.id, slice_.id)
    directory.parent.mkdir(parents=True, exist_ok=True)
    return directory
