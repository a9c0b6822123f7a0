"""Jobs and the progress of their backfills: the relations `jobs`, `slices`, `finished_slices` and `positions`.

Writing functions take the cursor of an open lake transaction, as the methods of `catalog.stores.store` do, so that
progress commits with the rows that it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import CREATED, CREATING, FAILED, INITIAL, Epoch, Job, Position
from sparkwave.catalog.names import literal, system_table
from sparkwave.catalog.redaction import redact
from sparkwave.catalog.stores.positions import Positions, Vnode

# The `input` of a slice that reads a bucket of exchanged rows; no real input has this name.
BUCKET = "bucket"


@dataclass(frozen=True)
class Slice:
    """A part of a fragment's work: rows `row_id_from <= _row_id < row_id_to` of one input.

    `row_id_to` None is an open end; both None are the whole input. With `input` BUCKET the slice reads a bucket of the
    fragment's exchanges. With `input` None it merges the fragment's partial results, all or those of a bucket;
    `row_id_from` is then the bucket's number.
    """

    fragment_id: int
    id: int
    upstream_id: int | None
    input: str | None
    row_id_from: int | None
    row_id_to: int | None
    row_count: int


@dataclass(frozen=True)
class Start:
    """The start of a backfill: its epoch, and its slices or the positions of its scans.

    `views_at` is as in `Job`.
    """

    epoch: Epoch
    slices: tuple[Slice, ...] = ()
    positions: tuple[Positions, ...] = ()
    views_at: int | None = None


class AlreadyDone(Exception):
    """A repeated step had been committed before, whatever failed after the commit."""


def load_jobs(cursor: Cursor, stored: str = system_table("jobs")) -> tuple[Job, ...]:
    """Return all jobs, from SQL of the relation `jobs`."""
    rows = cursor.execute(
        "SELECT id, status, is_background, is_serverless, resource_group, strategy, snapshot, error, time_us, "
        "rate_limit, parallelism, backfill_parallelism, backfill_order, waiting, specific_group, delivered, "
        "deliver_from, views_at, if(waiting IS NULL, waiting_since, NULL) "
        f"FROM {stored} ORDER BY id"
    ).fetchall()
    jobs = (Job(*row) for row in rows)
    return tuple(replace(job, order=tuple((before, after) for before, after in job.order)) for job in jobs)


def add_job(cursor: Cursor, job: Job) -> None:
    cursor.execute(
        f"INSERT INTO {system_table('jobs')} VALUES ({', '.join('?' * 15)}, NULL, NULL, NULL, ?)",
        [
            job.id,
            job.status,
            job.is_background,
            job.is_serverless,
            job.resource_group,
            job.strategy,
            job.snapshot,
            job.error,
            job.time_us,
            job.rate_limit,
            job.parallelism,
            job.backfill_parallelism,
            [list(edge) for edge in job.order],
            job.waiting,
            job.specific_group,
            job.views_at,
        ],
    )


def set_job_waiting(cursor: Cursor, job_id: int, reason: str | None) -> None:
    """Store the reason why a creating job makes no progress; None when it does."""
    since = "NULL" if reason is None else "now()"
    cursor.execute(
        f"UPDATE {system_table('jobs')} SET waiting = ?, waiting_since = {since} "
        f"WHERE id = ? AND status IN ('{INITIAL}', '{CREATING}')",
        [reason and redact(reason), job_id],
    )


def set_job_control(cursor: Cursor, job: Job) -> None:
    """Store the rate limit, the parallelisms and the resource groups that ALTER has set."""
    cursor.execute(
        f"UPDATE {system_table('jobs')} SET rate_limit = ?, parallelism = ?, backfill_parallelism = ?, "
        "resource_group = ?, specific_group = ? WHERE id = ?",
        [
            job.rate_limit,
            job.parallelism,
            job.backfill_parallelism,
            job.resource_group,
            job.specific_group,
            job.id,
        ],
    )


def set_job_group(cursor: Cursor, job_id: int, group: str) -> None:
    cursor.execute(f"UPDATE {system_table('jobs')} SET resource_group = ? WHERE id = ?", [group, job_id])


def add_started_job(cursor: Cursor, job: Job, start: Start) -> None:
    """Add a job that starts at once."""
    epoch = start.epoch
    add_job(
        cursor,
        replace(job, status=CREATING, snapshot=epoch.snapshot, time_us=epoch.time_us, views_at=start.views_at),
    )
    _add_steps(cursor, job.id, start)


def add_created_job(cursor: Cursor, job: Job) -> None:
    """Add the job of a relation that is created without a backfill."""
    add_job(cursor, replace(job, status=CREATED))


def start_job(cursor: Cursor, job: Job, start: Start) -> None:
    """Pin the epoch of a planned backfill and store its slices or positions, in place of earlier slices."""
    if job.status == CREATING:
        cursor.execute(f"DELETE FROM {system_table('slices')} WHERE job_id = ?", [job.id])
    cursor.execute(
        f"UPDATE {system_table('jobs')} SET status = '{CREATING}', snapshot = ?, time_us = ?, views_at = ? "
        "WHERE id = ?",
        [start.epoch.snapshot, start.epoch.time_us, start.views_at, job.id],
    )
    _add_steps(cursor, job.id, start)


def _add_steps(cursor: Cursor, job_id: int, start: Start) -> None:
    values: list[object] = []
    for s in start.slices:
        values += [job_id, s.fragment_id, s.id, s.upstream_id, s.input, s.row_id_from, s.row_id_to, s.row_count]
    if values:
        rows = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?)"] * len(start.slices))
        cursor.execute(f"INSERT INTO {system_table('slices')} VALUES {rows}", values)
    add_positions(cursor, job_id, start.positions)


def load_positions(cursor: Cursor, job_id: int) -> tuple[int, tuple[Positions, ...]]:
    """Return the last step number of a job that reads in order, and the positions of its scans."""
    row = cursor.execute(
        f"SELECT coalesce(max(slice_id), 0) FROM {system_table('finished_slices')} WHERE job_id = ?", [job_id]
    ).fetchone()
    assert row is not None
    found: dict[tuple[str, int, int], list[Vnode]] = {}
    for *scan, number, first, stop, position, total in cursor.execute(
        "SELECT input, fragment_id, upstream_id, vnode, row_id_from, row_id_to, position, row_total "
        f"FROM {system_table('positions')} WHERE job_id = ? ORDER BY fragment_id, vnode",
        [job_id],
    ).fetchall():
        found.setdefault(tuple(scan), []).append(Vnode(number, first, stop, position, total))
    return row[0], tuple(Positions(*scan, tuple(vnodes)) for scan, vnodes in found.items())


def add_positions(cursor: Cursor, job_id: int, positions: Iterable[Positions]) -> None:
    """Store the start positions of a job's scans."""
    rows = [
        f"({job_id}, {p.fragment_id}, {p.upstream_id}, {literal(p.input)}, "
        f"{v.number}, {v.first}, {v.stop}, {v.position}, {v.row_total})"
        for p in positions
        for v in p.vnodes
    ]
    if rows:
        cursor.execute(f"INSERT INTO {system_table('positions')} VALUES {', '.join(rows)}")


def move_positions(cursor: Cursor, job_id: int, old: Iterable[Positions], new: Iterable[Positions]) -> None:
    """Store the positions that differ between `old` and `new`."""
    moved = [
        (after.fragment_id, v.number, v.position)
        for before, after in zip(old, new, strict=True)
        for v in after.moved_since(before)
    ]
    if moved:
        values = ", ".join(map(str, moved))
        cursor.execute(
            f"UPDATE {system_table('positions')} p SET position = m.position "
            f"FROM (VALUES {values}) m (fragment_id, vnode, position) "
            "WHERE p.job_id = ? AND p.fragment_id = m.fragment_id AND p.vnode = m.vnode",
            [job_id],
        )


def check_step(cursor: Cursor, job_id: int, step: int, fragments: Iterable[int]) -> None:
    """Raise AlreadyDone for a step, or a slice, that has been committed."""
    done = cursor.execute(
        f"SELECT 1 FROM {system_table('finished_slices')} "
        f"WHERE job_id = ? AND fragment_id IN ({', '.join(map(str, fragments))}) AND slice_id = ?",
        [job_id, step],
    ).fetchone()
    if done:
        raise AlreadyDone


def finish_step(cursor: Cursor, job_id: int, step: int, row_counts: Mapping[int, int]) -> None:
    """Store that a step has read so many rows of the fragments' upstreams. Raises AlreadyDone the second time."""
    _finish(cursor, job_id, [(fragment_id, step, rows) for fragment_id, rows in row_counts.items()])


def finish_slices(cursor: Cursor, job_id: int, slices: Iterable[Slice]) -> None:
    """Store that slices have been read. Raises AlreadyDone the second time."""
    _finish(cursor, job_id, [(slice_.fragment_id, slice_.id, slice_.row_count) for slice_ in slices])


def _finish(cursor: Cursor, job_id: int, read: Sequence[tuple[int, int, int]]) -> None:
    """Store finished steps or slices, as (fragment, step, rows)."""
    finished = system_table("finished_slices")
    ids = ", ".join(f"({fragment_id}, {step})" for fragment_id, step, _ in read)
    done = f"SELECT 1 FROM {finished} WHERE job_id = {job_id} AND (fragment_id, slice_id) IN ({ids}) LIMIT 1"
    if cursor.execute(done).fetchone():
        raise AlreadyDone
    rows = (f"({job_id}, {fragment_id}, {step}, {count}, now())" for fragment_id, step, count in read)
    cursor.execute(f"INSERT INTO {finished} VALUES {', '.join(rows)}")


def move_job_epoch(cursor: Cursor, job_id: int, old: Epoch, new: Epoch) -> None:
    """Store the epoch up to which a creating job has applied its upstreams.

    Raises AlreadyDone unless it was at `old`.
    """
    row = cursor.execute(
        f"UPDATE {system_table('jobs')} SET snapshot = ?, time_us = ?, views_at = if(views_at IS NULL, NULL, ?) "
        "WHERE id = ? AND snapshot = ? AND time_us = ?",
        [new.snapshot, new.time_us, new.snapshot, job_id, old.snapshot, old.time_us],
    ).fetchone()
    if row != (1,):
        raise AlreadyDone


def move_delivery(cursor: Cursor, job: Job, upto: int | None) -> None:
    """Store that a creating sink has delivered its rows before a row id, or for None all its rows.

    Raises AlreadyDone when the stored position is not that of `job`.
    """
    row = cursor.execute(
        f"UPDATE {system_table('jobs')} SET deliver_from = ?, delivered = ? "
        "WHERE id = ? AND delivered IS NULL AND deliver_from IS NOT DISTINCT FROM ?",
        [upto, job.epoch.snapshot if upto is None else None, job.id, job.deliver_from],
    ).fetchone()
    if row != (1,):
        raise AlreadyDone


def finish_job(cursor: Cursor, job_id: int, group: str) -> None:
    """Mark the relation as created, and moves its job to its permanent resource group."""
    cursor.execute(
        f"UPDATE {system_table('jobs')} SET status = '{CREATED}', snapshot = NULL, views_at = NULL, waiting = NULL, "
        "waiting_since = NULL, resource_group = ? WHERE id = ?",
        [group, job_id],
    )
    cursor.execute(f"UPDATE {system_table('relations')} SET created = true, created_at = now() WHERE id = ?", [job_id])


# The tables with the progress of creating jobs; their rows of created or dropped jobs mean nothing.
STEPS = ("slices", "finished_slices", "positions")


def leave_behind(cursor: Cursor, job_id: int, position: Position | None, reason: str, has_failed: bool) -> None:
    """Store that a created job stays at a position while the others go on; no query may read it if `has_failed`.

    `position` None: the position is unknown.
    """
    epoch = position and position.epoch
    cursor.execute(
        f"UPDATE {system_table('jobs')} SET status = ?, error = ?, snapshot = ?, time_us = ?, views_at = ?, "
        "waiting = NULL, waiting_since = coalesce(waiting_since, now()) WHERE id = ?",
        [
            FAILED if has_failed else CREATED,
            redact(reason),
            epoch and epoch.snapshot,
            epoch and epoch.time_us,
            position and position.views,
            job_id,
        ],
    )


def catch_up(cursor: Cursor, job: Job) -> None:
    """Store that a job that was behind has caught up. Raises AlreadyDone when it is not at its stored position."""
    row = cursor.execute(
        f"UPDATE {system_table('jobs')} SET status = '{CREATED}', error = NULL, snapshot = NULL, views_at = NULL, "
        "waiting_since = NULL WHERE id = ? AND status = ? AND snapshot IS NOT DISTINCT FROM ? "
        "AND views_at IS NOT DISTINCT FROM ?",
        [job.id, job.status, job.snapshot, job.views_at],
    ).fetchone()
    if row != (1,):
        raise AlreadyDone


def load_slices(cursor: Cursor, job_id: int) -> tuple[list[Slice], set[tuple[int, int]]]:
    """Return all slices of a job, and (fragment, slice) of the finished ones."""
    rows = cursor.execute(
        "SELECT fragment_id, slice_id, upstream_id, input, row_id_from, row_id_to, row_count "
        f"FROM {system_table('slices')} WHERE job_id = ? ORDER BY fragment_id, slice_id",
        [job_id],
    ).fetchall()
    done = cursor.execute(
        f"SELECT fragment_id, slice_id FROM {system_table('finished_slices')} WHERE job_id = ?", [job_id]
    ).fetchall()
    return [Slice(*row) for row in rows], set(done)


def finished_rows(cursor: Cursor, job_id: int) -> dict[int, int]:
    """Return the rows that a job's finished steps have read, by fragment."""
    finished = system_table("finished_slices")
    rows = cursor.execute(
        f"SELECT fragment_id, sum(row_count)::BIGINT FROM {finished} WHERE job_id = ? GROUP BY 1", [job_id]
    ).fetchall()
    return dict(rows)
