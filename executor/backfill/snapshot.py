"""Fills a view from a pinned snapshot of its upstreams, in slices: Snapshot backfill on Spark, and edits.

A slice is a range of row ids of the input that drives a fragment, with all rows of the other inputs, or a bucket of the
rows that exchanges have moved. The slices of one Spark job commit their rows together with the mark that they are
finished, in any order. If every fragment is one slice, one task and one commit fill the view.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial

from sparkwave.catalog.counters import BACKFILL_BYTES
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import register_files, registered_files
from sparkwave.catalog.lake.places import delete_unused, keep_list, listed
from sparkwave.catalog.lake.row_ids import RowIds
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.log_context import in_this_context
from sparkwave.catalog.model import Position
from sparkwave.catalog.stores.compute_errors import add_errors
from sparkwave.catalog.stores.job_store import (
    BUCKET,
    Slice,
    Start,
    finish_slices,
    finish_step,
    finished_rows,
    load_slices,
)
from sparkwave.catalog.types import Type
from sparkwave.executor.backfill import whole_fill
from sparkwave.executor.backfill.job_engines import spark_of
from sparkwave.executor.backfill.progress import Rows
from sparkwave.executor.backfill.slicing import input_rows, plan_slices
from sparkwave.executor.backfill.work import End, Work, step_directory
from sparkwave.executor.epochs.delta_programs import Check, checks_of
from sparkwave.executor.epochs.script import bound_checks
from sparkwave.executor.spark.kernel import Step
from sparkwave.executor.spark.lake_rows import BUCKET_COLUMN, as_stored, bucket_of, in_buckets
from sparkwave.executor.spark.spark_engine import SparkEngine, filled_files
from sparkwave.planner.backfill.fragment_checks import (
    Part,
    bucket_checks,
    merge_checks,
    rest_checks,
    slice_checks,
    whole_checks,
)
from sparkwave.planner.backfill.fragments import (
    PARTIALS,
    Fragment,
    bucket_query,
    fragments,
    merge_query,
    slice_query,
    whole_query,
)
from sparkwave.planner.functions.emit import Sql, to_sql
from sparkwave.planner.functions.raising import or_raise
from sparkwave.planner.plan.stream_plan import StreamPlan

# A task reads slices for about this long; this work is lost when the server is killed meanwhile.
SLICE_SECONDS = 20.0

# Files by the bucket of their rows; bucket 0 where all rows are together.
Buckets = Mapping[int, Sequence[str]]


@dataclass(frozen=True)
class _Cut:
    """A fragment and its slices. If the fragment is an exchange, `reader` has the slices that read its rows."""

    fragment: Fragment
    slices: Sequence[Slice]
    reader: Sequence[Slice]

    @property
    def is_whole(self) -> bool:
        """Whether one slice has all of the fragment."""
        return len(self.slices) == 1 and self.slices[0].input != BUCKET

    @lazy
    def merges(self) -> list[Slice]:
        """The slices that merge partial results."""
        return [] if self.is_whole else [s for s in self.slices if s.input is None]

    @lazy
    def parts(self) -> list[Slice]:
        return [s for s in self.slices if s not in self.merges]

    @lazy
    def buckets(self) -> int:
        """The number of buckets into which the parts write rows for other slices; 0 if they write the target's rows."""
        return len([s for s in self.reader if s.input == BUCKET]) if self.fragment.is_exchange else len(self.merges)

    @lazy
    def written(self) -> dict[str, Type]:
        """The columns that the parts write."""
        return {field.name: field.type for field in self.fragment.partial_fields}


@dataclass(frozen=True)
class _Part:
    """SQL of a `planner.backfill.fragment_checks.Part`.

    `raising` is its query by `planner.functions.raising.or_raise`.
    """

    query: Sql
    raising: Sql
    checks: tuple[Check, ...]

    @staticmethod
    def of(part: Part) -> _Part:
        return _Part(to_sql(part.query), or_raise(part.query), checks_of(part.checks))


def run(work: Work, end: End) -> None:
    """Run the slices that are not finished. If one task can run all of them, its commit ends the creation.

    Raises ControlsChanged when a rate limit is set meanwhile.
    """
    work.planning(lambda: work.begin(start(work)))
    work.started.set()
    slices, finished = _stands(work)
    if not finished and _is_one_task(slices):
        controls = _hold_back(work, sum(s.row_count for s in slices))
        rows = _rows(slices)
        finish = partial(finish_step, job_id=work.id, step=1, row_counts=rows)
        work.retries.run(partial(whole_fill.run, work, rows, end, finish), controls)
        return
    left: dict[str, Buckets] = {}
    for cut in _cuts(work, slices):
        parts, merges = ([s for s in of if (s.fragment_id, s.id) not in finished] for of in (cut.parts, cut.merges))
        _run_slices(work, cut, left, parts)
        if cut.fragment.is_exchange:
            left[cut.fragment.relation] = _buckets(work, cut.fragment)
        elif merges:
            _run_slices(work, cut, {PARTIALS: _buckets(work, cut.fragment)}, merges)


def _cuts(work: Work, slices: Sequence[Slice]) -> Iterator[_Cut]:
    """Return the fragments of a plan that have slices, each after the exchanges that it reads."""
    plan = work.filling.plan
    # The slices are cut already, so that row counts matter only for which rows move to buckets.
    counts = dict.fromkeys((scan.input for scan in plan.scans), 0)
    if any(s.input == BUCKET for s in slices):
        counts = input_rows(work.lake.cursor(), plan, work.job.applied, work.inputs.of)
    for fragment in fragments(plan, counts):
        yield from _cut(fragment, slices, ())


def _cut(fragment: Fragment, slices: Sequence[Slice], reader: Sequence[Slice]) -> Iterator[_Cut]:
    own = [s for s in slices if s.fragment_id == fragment.id]
    for exchange in fragment.exchanges:
        yield from _cut(exchange, slices, own)
    if own:
        yield _Cut(fragment, own, reader)


def _buckets(work: Work, fragment: Fragment) -> Buckets:
    """Return the files that the parts of a fragment have written for other slices."""
    found: dict[int, list[str]] = {}
    for file in listed(work.staging, f"f{fragment.id}_s*"):
        found.setdefault(bucket_of(file), []).append(file)
    return found


def start(work: Work) -> Start:
    """Return the epoch to pin, and the slices."""
    cursor, plan = work.lake.cursor(), work.filling.plan
    position = work.edit.position if work.edit is not None else Position.at(work.now(cursor))
    rows, shares = (sys.maxsize, 1) if work.in_process else (work.settings.slice_rows(), work.group.shares)
    slices = plan_slices(cursor, plan, position, rows, shares, work.inputs.of)
    return Start(position.epoch, tuple(slices), views_at=None if work.edit is None else position.views)


def _stands(work: Work) -> tuple[Sequence[Slice], set[tuple[int, int]]]:
    """Return all slices, and (fragment, slice) of the finished ones."""
    if (fresh := work.fresh_start()) is not None:
        return fresh.slices, set()
    cursor = work.lake.cursor()
    work.progress.resume(finished_rows(cursor, work.id))
    return load_slices(cursor, work.id)


def _run_slices(work: Work, cut: _Cut, left: Mapping[str, Buckets], todo: Sequence[Slice]) -> None:
    """Run slices as tasks of Spark jobs; each job has as many tasks as the group has slots.

    A task reads neighbouring slices for about SLICE_SECONDS, going by the time of earlier slices, and at most twice as
    many as the tasks before. A second Spark job runs behind the first, for nodes that have finished their tasks. `left`
    are the files that other slices have left, by relation name.
    """
    if not todo:
        return
    slots, waiting, length, jobs = work.group.slots, deque(todo), 1, 1
    with ThreadPoolExecutor(2, thread_name_prefix=f"job-{work.id}-slice") as pool:
        running: set[Future[float]] = set()
        while waiting or running:
            while waiting and len(running) < jobs:
                is_limited = work.job.rate_limit is not None
                shared = min(length, -(-len(waiting) // slots))
                tasks = _taken(waiting, *((1, 1) if is_limited else (slots, shared)))
                controls = _hold_back(work, sum(s.row_count for task in tasks for s in task))
                running.add(pool.submit(in_this_context(_timed), work, cut, left, tasks, controls))
            running, seconds = _done(running)
            length = max(min(int(SLICE_SECONDS / seconds), 2 * length), 1)
            jobs = 1 if slots == 1 or work.share.pace.is_slowed else 2


def _taken(waiting: deque[Slice], tasks: int, length: int) -> list[list[Slice]]:
    """Return the slices of up to `tasks` tasks, each with up to `length` neighbouring slices."""
    found: list[list[Slice]] = []
    while waiting and len(found) < tasks:
        task = [waiting.popleft()]
        while waiting and len(task) < length and _are_neighbours(task[-1], waiting[0]):
            task.append(waiting.popleft())
        found.append(task)
    return found


def _are_neighbours(one: Slice, other: Slice) -> bool:
    return one.input not in (None, BUCKET) and one.input == other.input and one.row_id_to == other.row_id_from


def _timed(
    work: Work, cut: _Cut, left: Mapping[str, Buckets], tasks: Sequence[Sequence[Slice]], controls: int
) -> float:
    """Run tasks. Returns the seconds per slice of the task with the most slices."""
    start = time.monotonic()
    work.retries.run(partial(_run_tasks, work, cut, left, tasks), controls)
    return (time.monotonic() - start) / max(map(len, tasks))


def _hold_back(work: Work, rows: int) -> int:
    """Wait as a rate limit requires that was set after the slices were cut.

    A slice is read at once, so that the limit holds on average. Returns the controls under which the next slice, of
    `rows` rows, may be read.
    """
    waited, started = 0.0, time.monotonic()
    while True:
        controls, limit = work.controls.version, work.job.rate_limit
        if limit is None or (limit and waited >= rows / limit):
            work.waiting.because(None)
            return controls
        work.tell_limit(limit)
        work.controls.pause(rows / limit - waited if limit else 1.0, controls)
        waited = time.monotonic() - started


def _done(futures: set[Future[float]]) -> tuple[set[Future[float]], float]:
    """Wait until a future is done.

    Returns the other futures and the largest result. Raises the error of a failed one.
    """
    done, rest = wait(futures, return_when=FIRST_COMPLETED)
    return rest, max(future.result() for future in done)


def whole_rows(start: Start) -> Rows | None:
    """Return the rows by fragment if every fragment is one slice, so that one task fills the view."""
    return _rows(start.slices) if _is_one_task(start.slices) else None


def _is_one_task(slices: Sequence[Slice]) -> bool:
    return all(s.id == 1 for s in slices)


def _rows(slices: Sequence[Slice]) -> Rows:
    return {s.fragment_id: s.row_count for s in slices}


def _run_tasks(work: Work, cut: _Cut, left: Mapping[str, Buckets], tasks: Sequence[Sequence[Slice]]) -> None:
    """Run slices as tasks of one Spark job, and commit their rows and failed-row counts, all or nothing."""
    plan, fragment, first = work.filling.plan, cut.fragment, tasks[0][0]
    slices = [slice_ for task in tasks for slice_ in task]
    rows = {fragment.id: sum(slice_.row_count for slice_ in slices)}
    cursor = work.lake.cursor()
    work.check_retry(cursor, first.id, [fragment.id])
    is_target = first in cut.merges or not cut.buckets
    target = step_directory(work.data if is_target else work.staging, fragment.id, first.id)
    by = BUCKET_COLUMN if not is_target and cut.buckets > 1 else None
    with spark_of(work, "slice", None, rows, len(tasks)) as engine:
        engine.times = work.job.epoch.time_us, work.job.epoch.time_us
        rest = _rest(plan, cut, slices)
        parts = list(_bound(work, cut, left, tasks, engine, cursor, rest))
        types = plan.types_in(fragment.target) if is_target else cut.written
        keys = [to_sql(key) for key in fragment.keys]

        def stored(query: str) -> str:
            return in_buckets(query, types, keys, cut.buckets) if by else as_stored(query, types)

        states = [f"{state.name}_state" for state in plan.states_in(fragment.target)] if is_target else []
        [name] = states or ["rows"]  # checks find the written rows under the state's name
        steps = [Step(name, stored(p.query), str(target), by, stored(p.raising)) for p in parts]
        failing = [part.checks for part in parts]
        written, failed = engine.run_each(target, steps, failing, bound_checks(rest, engine.inputs))
    BACKFILL_BYTES.add(work.id, sum(file.size for file in written), fragment.id)
    work.controls.check()
    files = filled_files(written)
    if not is_target:
        keep_list(target, files or [file.path for file in written[:1]])
    with work.lake.transaction(cursor):
        if is_target:
            register_files(cursor, work.view.table_of(fragment.target), files)
        add_errors(cursor, work.view.relation.id, failed)
        finish_slices(cursor, work.id, slices)
    work.progress.finish(rows)
    if is_target:
        delete_unused(target, files, 1)


def _bound(
    work: Work, cut: _Cut, left: Mapping[str, Buckets], tasks: Sequence[Sequence[Slice]], engine: SparkEngine,
    cursor: Cursor, rest: Sequence[Check],
) -> Iterator[_Part]:  # fmt: skip
    """Return the query of each task, with the relations it reads as CTEs.

    Relations that `rest` reads are bound, too.
    """
    made: dict[str | None, _Part] = {}
    for task in tasks:
        first, last = task[0], task[-1]
        if first.input not in made:
            part = made[first.input] = _Part.of(_part(work.filling.plan, cut, first))
            _bind_whole(work, engine, cursor, {*part.query.reads, *_reads(rest)}, first)
        driver = next((scan for scan in work.filling.plan.scans if scan.input == first.input), None)
        if driver is not None and first.row_id_from is not None:
            work.controls.check_step()
            rows = RowIds(((first.row_id_from, last.row_id_to),))
            engine.bind_slice(cursor, driver, work.job.applied.of(driver.relation), rows)
        for name, types in _left_types(cut, first).items():
            engine.bind_files(name, left[name].get(first.row_id_from or 0, ()), types)
        part = made[first.input]
        yield _Part(engine.bound(part.query), engine.bound(part.raising), bound_checks(part.checks, engine.inputs))


def _reads(checks: Iterable[Check]) -> Iterator[str]:
    """Yield the names of the relations that checks read."""
    return (name for check in checks for name in check.count.reads)


def _left_types(cut: _Cut, slice_: Slice) -> dict[str, dict[str, Type]]:
    """Return the relations of other slices' files that a slice reads, with their columns."""
    if slice_ in cut.merges:
        return {PARTIALS: cut.written}
    if slice_.input != BUCKET:
        return {}
    return {x.relation: {f.name: f.type for f in x.partial_fields} for x in cut.fragment.exchanges}


def _part(plan: StreamPlan, cut: _Cut, slice_: Slice) -> Part:
    fragment = cut.fragment
    if cut.is_whole:
        return Part(whole_query(plan, fragment), whole_checks(plan, fragment))
    if slice_.input is None:
        return Part(merge_query(plan, fragment), merge_checks(plan, fragment))
    if slice_.input == BUCKET:
        return Part(bucket_query(plan, fragment), bucket_checks(plan, fragment))
    return Part(slice_query(plan, fragment, slice_.input), slice_checks(plan, fragment, slice_.input))


def _rest(plan: StreamPlan, cut: _Cut, slices: Sequence[Slice]) -> tuple[Check, ...]:
    """Return the checks that run once, with the first of the slices, because no single slice can run them."""
    if cut.is_whole or cut.parts[0] not in slices:
        return ()
    drivers = {s.input for s in cut.parts if s.input is not None and s.input != BUCKET}
    return checks_of(rest_checks(plan, cut.fragment, drivers or None))


def _bind_whole(work: Work, engine: SparkEngine, cursor: Cursor, reads: Collection[str], slice_: Slice) -> None:
    """Make relations of the inputs that a slice's query reads as a whole."""
    for scan in (scan for scan in work.filling.plan.scans if f"{scan.input}_new" in reads):
        if scan.input != slice_.input or slice_.row_id_from is None:
            work.controls.check_step()
            engine.bind_slice(cursor, scan, work.job.applied.of(scan.relation))
    _bind_states(work, engine, cursor, reads)


def _bind_states(work: Work, engine: SparkEngine, cursor: Cursor, reads: Collection[str]) -> None:
    """Make relations of the states among the names that a query reads, from the files that earlier fragments left."""
    for state in work.filling.plan.states:
        if f"{state.name}_state" in reads:
            engine.bind_state_files(work.view, state, registered_files(cursor, work.view.state_table(state)))
