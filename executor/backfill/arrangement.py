"""Fills a view by reading more of its upstreams while applying their changes: NoShuffle and Arrangement backfill.

Each step is `advance` between two versions of the inputs, a version being a snapshot and the row ids read so far. A
step either reads more rows at a snapshot, or goes to a newer snapshot with the changes of the rows read so far
(RisingWave: src/stream/src/executor/backfill/arrangement_backfill.rs). The committed rows are always the view over the
rows read so far.

A Snapshot backfill with a rate limit, or in process, reads in the same way, but stays at its snapshot.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing

from sparkwave.catalog.counters import BACKFILL_BYTES
from sparkwave.catalog.lake.ducklake import Cursor, at_one_moment
from sparkwave.catalog.lake.places import Place
from sparkwave.catalog.lake.row_ids import ALL, NONE
from sparkwave.catalog.model import Epoch
from sparkwave.catalog.stores.job_store import Start, finish_step, finished_rows, load_positions, move_positions
from sparkwave.catalog.stores.positions import Positions, cut
from sparkwave.executor.backfill import whole_fill
from sparkwave.executor.backfill.controls import ControlsChanged
from sparkwave.executor.backfill.job_engines import advance_job, engine_of, number_of_actors
from sparkwave.executor.backfill.pace import pause_s
from sparkwave.executor.backfill.progress import Rows
from sparkwave.executor.backfill.slicing import row_ids
from sparkwave.executor.backfill.throttle import Throttle
from sparkwave.executor.backfill.work import End, Work
from sparkwave.executor.epochs.advance import Advance, Changes, Fill, bind_changes
from sparkwave.executor.epochs.delta_programs import more, whole
from sparkwave.executor.epochs.feeds import Feeds
from sparkwave.executor.epochs.versions import Version
from sparkwave.planner.backfill.strategy import ARRANGEMENT, SNAPSHOT, exchange_reason

# An Arrangement backfill keeps the positions of this many vnodes an input, as RisingWave does.
VNODES = 256
# The most rows of a step in process that gives way by pauses (`MachineShare.is_by_pauses`). Only of a view whose steps
# add rows: an operator that needs several rows together merges each step into what is stored, and takes ten times as
# long in small ones.
YIELDING_ROWS = 1_000_000


def run(work: Work, end: End) -> None:
    """Read every upstream to its end, from the last commit on. If one step reads all, it ends the creation."""
    work.planning(lambda: work.begin(start(work)))
    work.started.set()
    throttle = Throttle()
    step, positions = _stands(work)
    while not _is_finished(step, positions):
        work.controls.check()
        controls = work.controls.version
        limit = work.job.rate_limit
        rows = throttle.grant(limit, _most(work))
        work.tell_limit(limit)
        try:
            if rows:
                target = _target(work, positions, rows)
                started = time.monotonic()
                work.retries.run(lambda: _read_on(work, positions, target, step, end), controls)  # noqa: B023
                step, positions = step + 1, target
                if work.share.is_by_pauses and work.share.pace.is_slowed and not _is_finished(step, positions):
                    work.controls.pause(pause_s(work.share.pace, time.monotonic() - started), controls)
            elif limit is not None:
                work.controls.pause(throttle.wait_s(limit), controls)
            # The first step fills the empty view. A change applied before it would be there twice.
            if step and not work.is_over and work.job.strategy != SNAPSHOT:
                work.retries.run(lambda: _take_up_changes(work, positions))  # noqa: B023
        except ControlsChanged:  # maybe after the step's commit
            if work.has_ended():
                return
            step, positions = load_positions(work.lake.cursor(), work.id)


def _most(work: Work) -> int:
    """Return the most rows of a step."""
    rows, share = work.settings.slice_rows(), work.share
    is_beside = share.is_beside_views or share.pace.is_slowed
    is_short = share.is_by_pauses and is_beside and exchange_reason(work.view.plan.root) is None
    return min(rows, YIELDING_ROWS) if is_short else rows


def _stands(work: Work) -> tuple[int, tuple[Positions, ...]]:
    """Return the number of committed steps, and the positions of the scans."""
    if (fresh := work.fresh_start()) is not None:
        return 0, fresh.positions
    work.progress.resume(finished_rows(work.lake.cursor(), work.id))
    return load_positions(work.lake.cursor(), work.id)


def _is_finished(step: int, positions: tuple[Positions, ...]) -> bool:
    """Return whether all is read. The first step runs even without rows, because an aggregate of no rows has a row."""
    return step > 0 and all(p.is_finished for p in positions)


def start(work: Work) -> Start:
    """Return the epoch to pin, and the first positions of the scans."""
    cursor = work.lake.cursor()
    epoch = work.now(cursor)
    vnodes = VNODES if work.job.strategy == ARRANGEMENT else number_of_actors(work)
    scans = [s for s in work.view.plan.scans if s.input not in work.view.plan.looked_up]
    positions = []
    with at_one_moment(cursor):  # else each query reads the lake's catalog anew
        for number, scan in enumerate(scans, start=1):
            stop = row_ids(cursor, scan.relation, epoch.snapshot)[1] + 1
            rows = work.inputs.of(cursor, scan.relation, epoch.snapshot)
            positions.append(Positions(scan.input, number, scan.relation.id, cut(stop, rows, vnodes)))
    return Start(epoch, positions=tuple(positions))


def whole_rows(work: Work, start: Start) -> Rows | None:
    """Return the rows by fragment if one step may read all of them."""
    whole = _target(work, start.positions, _most(work))
    return _rows_between(start.positions, whole) if _is_finished(1, whole) else None


def _rows_between(old: Sequence[Positions], new: Sequence[Positions]) -> Rows:
    """Return the rows that a step reads, by fragment."""
    return {after.fragment_id: after.rows_since(before) for before, after in zip(old, new, strict=True)} or {1: 0}


def _target(work: Work, positions: tuple[Positions, ...], rows: int) -> tuple[Positions, ...]:
    """Return the positions after the next step of about `rows` rows. Inputs with the fewest rows left are read first.

    So small inputs are read before large ones, and the large side of a join meets all rows of its small sides.
    """
    actors = min(rows, number_of_actors(work))
    unread = {p.upstream_id for p in positions if not p.is_finished}
    held = {after for before, after in work.job.order if before in unread}
    moved = {p.input: p for p in positions}
    for p in sorted(positions, key=lambda p: p.remaining):
        if not p.is_finished and p.upstream_id not in held and (rows or not p.remaining):
            moved[p.input] = p.extended(rows, actors)
            rows = max(rows - moved[p.input].rows_since(p), 0)
    return tuple(moved[p.input] for p in positions)


def _versions(
    work: Work, snapshots: tuple[int, int], old: Sequence[Positions], new: Sequence[Positions]
) -> dict[str, Version]:
    before, after = ({p.input: p.rows for p in positions} for positions in (old, new))
    return {
        s.input: Version(s.relation, *snapshots, None, before.get(s.input, ALL), after.get(s.input, ALL))
        for s in work.view.plan.scans
    }


def _read_on(work: Work, old: tuple[Positions, ...], new: tuple[Positions, ...], step: int, end: End) -> None:
    """Run the step after the first `step` ones: read more rows, and commit them with the new positions.

    The rows are of the same snapshot. Raises AlreadyDone when it is tried again after its commit, because its files
    belong to the lake then.
    """
    rows = _rows_between(old, new)

    def finish(cursor: Cursor) -> None:
        move_positions(cursor, work.id, old, new)
        finish_step(cursor, work.id, step + 1, rows)

    if not step and _is_finished(1, new):
        whole_fill.run(work, rows, end, finish)
        return
    cursor = work.lake.cursor()
    work.check_retry(cursor, step + 1, rows)
    result = _added(work, cursor, old, new, step, rows)
    if isinstance(result, Fill):
        # The bytes of a step over several fragments are not counted for any one of them.
        BACKFILL_BYTES.add(work.id, result.size, next(iter(rows)) if len(rows) == 1 else 0)
    work.controls.check()
    with work.lake.transaction(cursor, result.tables):
        result.apply(cursor)
        finish(cursor)
    work.progress.finish(rows)
    result.clean_up()


def _added(
    work: Work, cursor: Cursor, old: Sequence[Positions], new: Sequence[Positions], step: int, rows: Rows
) -> Fill | Advance:
    """Return the change of the view by the newly read rows.

    The first step, and a step of a view without an operator that needs several rows together, adds its rows without
    reading any state. Any other step is computed as a change.
    """
    plan, epoch, position = work.view.plan, work.job.epoch, work.job.applied
    versions = _versions(work, (epoch.snapshot, epoch.snapshot), old, new)
    moved = frozenset(name for name, version in versions.items() if version.added_rows != NONE)
    with engine_of(work, "step", cursor, _directory(work, step), rows) as engine:
        if not step:
            first = {name: version.new_rows for name, version in versions.items()}
            return engine.fill(cursor, work.view, position, first, whole(plan), epoch.time_us)
        if exchange_reason(plan.root) is None:
            added = {name: version.added_rows for name, version in versions.items()}
            return engine.fill(cursor, work.view, position, added, more(plan, tuple(sorted(moved))), epoch.time_us)
        times = (epoch.time_us, epoch.time_us)
        return engine.advance(cursor, work.view, versions, Changes(moved, sum(rows.values()), False, times))


def _directory(work: Work, step: int) -> Place:
    """Return the directory where Spark writes the rows of the step after the first `step` ones."""
    return work.data / f"step_{step}"


def _take_up_changes(work: Work, positions: tuple[Positions, ...]) -> None:
    """Run one step to the newest snapshot, with the changes of the rows read so far."""
    cursor = work.lake.cursor()
    old, new = work.job.epoch, work.now(cursor)
    epoch = Epoch(new.snapshot, max(old.time_us, new.time_us))
    versions = _versions(work, (old.snapshot, new.snapshot), positions, positions)
    with closing(Feeds(work.lake, cursor, lambda: work.view.plan.scans)) as feeds:
        changed = any(feeds.has_changes(v.relation, v.old, v.new) for v in versions.values())
        if changed or work.view.plan.reads_now:
            changes = bind_changes(cursor, work.view, versions, feeds, (old.time_us, epoch.time_us))
            advance_job(work, cursor, versions, changes, old, epoch)
