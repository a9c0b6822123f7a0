"""Cuts a backfill into slices: contiguous ranges of row ids of the inputs that drive it."""

from __future__ import annotations

from catalog.job_store import Slice
from catalog.lake import Cursor, first_row
from catalog.model import Relation
from planner.backfill import Fragment, fragments
from planner.stream import StreamPlan

# A slice has up to so many times the rows that are asked for: what is lost with one is to stay little.
MOST_TIMES = 10
# Nodes share a fragment in slices of so many rows at least: fewer are read before another task would have started.
LEAST_ROWS = 1_000_000


def plan_slices(cursor: Cursor, plan: StreamPlan, snapshot: int, slice_rows: int, shares: int = 1) -> list[Slice]:
    """The slices of every fragment of a plan over its inputs at a snapshot, of `slice_rows` rows or more.

    Of fewer where several nodes share the work: a large fragment has `shares` slices or more. A fragment that is not
    worth two is one slice over all its inputs. One that ends in an aggregate and has several gets one more, which
    merges their partial results.
    """
    counts = {scan.input: row_count(cursor, scan.relation, snapshot) for scan in plan.scans}
    found: list[Slice] = []
    for fragment in fragments(plan, counts):
        found += _fragment_slices(cursor, plan, fragment, snapshot, counts, slice_rows, shares)
    return found


def _fragment_slices(
    cursor: Cursor,
    plan: StreamPlan,
    fragment: Fragment,
    snapshot: int,
    counts: dict[str, int],
    slice_rows: int,
    shares: int,
) -> list[Slice]:
    scans = {scan.input: scan for scan in plan.scans}
    total = sum(counts[driver] for driver in fragment.drivers)
    # Each slice reads the other inputs whole: as many rows of its own, and all of them read no more than twice as much.
    slice_rows = min(max(sum(counts.values()) - total, slice_rows), slice_rows * MOST_TIMES)
    if shares > 1:  # each driver is cut on its own, and may have one slice fewer than its part of them
        slice_rows = min(slice_rows, max(total // (shares + len(fragment.drivers) - 1), LEAST_ROWS))
    if total < 2 * slice_rows:
        driver = max(fragment.drivers, key=counts.__getitem__, default=None)
        largest = driver or max(fragment.inputs, key=counts.__getitem__, default=None)
        upstream = scans[largest].relation.id if largest else None
        rows = total if driver else sum(counts[name] for name in fragment.inputs)
        return [Slice(fragment.id, 1, upstream, driver, None, None, rows)]
    found: list[Slice] = []
    for driver in fragment.drivers:
        relation = scans[driver].relation
        for start, stop, rows in cut(row_ids(cursor, relation, snapshot), counts[driver], slice_rows):
            found.append(Slice(fragment.id, len(found) + 1, relation.id, driver, start, stop, rows))
    if fragment.end is not None:
        found.append(Slice(fragment.id, len(found) + 1, None, None, None, None, 0))
    return found


def cut(row_ids: tuple[int, int], count: int, slice_rows: int) -> list[tuple[int, int | None, int]]:
    """Cut `count` rows with ids in `first <= id <= last` into ranges (start, stop, expected rows); the last is open.

    They have `slice_rows` rows or more, up to twice as many.
    """
    first, last = row_ids
    number = max(count // slice_rows, 1)
    width = -(-(last - first + 1) // number)
    ranges: list[tuple[int, int | None, int]] = []
    for index in range(number):
        start = first + index * width
        rows = count // number + (1 if index < count % number else 0)
        ranges.append((start if index else 0, start + width if index < number - 1 else None, rows))
    return ranges


def row_count(cursor: Cursor, relation: Relation, snapshot: int) -> int:
    """Rows of a relation at a snapshot."""
    row = first_row(cursor.execute(f"SELECT count(*) FROM {relation.lake_name} AT (VERSION => {snapshot})"))
    return row[0] if row else 0


def row_ids(cursor: Cursor, relation: Relation, snapshot: int) -> tuple[int, int]:
    """The lowest and highest row id at a snapshot, from the files' metadata where they tell it; (0, -1) of no rows."""
    row = cursor.execute(
        f"SELECT min(rowid), max(rowid) FROM {relation.lake_name} AT (VERSION => {snapshot})"
    ).fetchone()
    assert row is not None
    return row if row[0] is not None else (0, -1)
