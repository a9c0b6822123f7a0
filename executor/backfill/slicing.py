"""Cuts a backfill into slices: ranges of row ids of the inputs that drive it, or buckets of keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from sparkwave.catalog.lake.ducklake import Cursor, at_one_moment
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.model import Position, Relation
from sparkwave.catalog.stores.job_store import BUCKET, Slice
from sparkwave.planner.backfill.fragments import Fragment, fragments
from sparkwave.planner.plan.nodes import Scan
from sparkwave.planner.plan.stream_plan import StreamPlan

# A slice has up to this many times the wanted rows, because little work is to be lost with one slice.
MOST_TIMES = 10
# Nodes share a fragment in slices of at least this many rows: fewer are read before another task would have started.
LEAST_ROWS = 1_000_000
# Each slice writes one file for each bucket in which it has rows: more buckets would mean small files.
MOST_BUCKETS = 256
# The most buckets of partial results, which have few rows.
MOST_MERGES = 16


def row_count(cursor: Cursor, relation: Relation, snapshot: int) -> int:
    """Return the rows of a relation at a snapshot."""
    row = first_row(cursor.execute(f"SELECT count(*) FROM {relation.lake_name} AT (VERSION => {snapshot})"))
    return row[0] if row else 0


# A function like `row_count`; it may know a number already.
RowCount = Callable[[Cursor, Relation, int], int]


@dataclass(frozen=True)
class _Limits:
    """How many rows a slice is to have; a single task may read ten times as many.

    `shares` are the slots of all nodes.
    """

    slice_rows: int
    shares: int

    def of_one_task(self, rows: int) -> int:
        """Return how many of `rows` rows one task reads."""
        most = self.slice_rows * MOST_TIMES
        return min(most, max(rows // self.shares, LEAST_ROWS)) if self.shares > 1 else most

    def of_a_slice(self, fragment: Fragment, driven: int, others: int) -> int:
        """Return the rows of a range.

        `driven` rows drive the fragment, and each slice reads all of `others` rows of the other inputs.
        """
        if fragment.end is not None and not fragment.merges:  # without need, partial results would be written as rows
            return self.of_one_task(driven)
        # All slices together read at most twice their own rows.
        rows = min(max(others, self.slice_rows), self.slice_rows * MOST_TIMES)
        if self.shares > 1:  # each driver is cut on its own and may have one slice fewer than its share
            rows = min(rows, max(driven // (self.shares + len(fragment.drivers) - 1), LEAST_ROWS))
        return rows

    def buckets(self, rows: int) -> int:
        """Return the number of buckets for `rows` rows that an exchange moves."""
        return min(max(self.shares, -(-rows // self.of_one_task(rows))), MOST_BUCKETS)


def plan_slices(
    cursor: Cursor, plan: StreamPlan, position: Position, slice_rows: int, shares: int = 1, count: RowCount = row_count
) -> list[Slice]:
    """Return the slices of every fragment of a plan over its inputs at a position, of `slice_rows` rows or more.

    Slices are smaller where several nodes share the work: a large fragment has `shares` slices or more. A fragment too
    small for two slices is one slice over all its inputs. A fragment that ends in an aggregate and has several slices
    gets further ones, which merge the partial results.
    """
    scans, limits = {scan.input: scan for scan in plan.scans}, _Limits(slice_rows, shares)
    with at_one_moment(cursor):  # else each query reads the lake's catalog anew
        counts = input_rows(cursor, plan, position, count)
        cutter = _Cutter(cursor, scans, position, counts, limits)
        return [slice_ for fragment in fragments(plan, counts) for slice_ in cutter.counted_once(fragment)]


def input_rows(cursor: Cursor, plan: StreamPlan, position: Position, count: RowCount = row_count) -> dict[str, int]:
    """Return the rows of every input of a plan at a position, by input name."""
    return {scan.input: count(cursor, scan.relation, position.of(scan.relation)) for scan in plan.scans}


@dataclass(frozen=True)
class _Cutter:
    """Cuts fragments into slices. `counts` has the rows of the inputs at the position."""

    cursor: Cursor
    scans: Mapping[str, Scan]
    position: Position
    counts: Mapping[str, int]
    limits: _Limits

    def counted_once(self, fragment: Fragment) -> list[Slice]:
        """Return the slices of a fragment and of all exchanges below it.

        Their row counts add up to the rows of the inputs. A row that several slices read, such as one that moves to a
        bucket, counts for a part in each of them.
        """
        found = self.slices(fragment)
        is_by_key = any(s.input == BUCKET for s in found)
        if not is_by_key and len(found) == 1:
            return found
        rows = [self.counts[name] for name in fragment.inputs if is_by_key or name in fragment.drivers]
        return spread(found, sum(rows))

    def slices(self, fragment: Fragment) -> list[Slice]:
        """Return the slices, with the rows that each reads. Slices of the fragment's exchanges come first."""
        driven = sum(self.counts[driver] for driver in fragment.drivers)
        read = sum(self.counts[name] for name in fragment.inputs)
        slice_rows = self.limits.of_a_slice(fragment, driven, read - driven)
        ranges = driven // slice_rows if driven >= 2 * slice_rows else 1
        if fragment.exchanges and self._moves(ranges, driven, read):
            return self._by_key(fragment, read)
        return self._by_ranges(fragment, slice_rows) if ranges > 1 else [self._whole(fragment, driven, read)]

    def _moves(self, ranges: int, driven: int, read: int) -> bool:
        """Return whether an exchange, which writes rows into buckets and reads them again, is less work than none."""
        if not driven:
            return read >= 2 * self.limits.of_one_task(read)
        return (ranges - 1) * (read - driven) > 2 * read

    def _by_key(self, fragment: Fragment, read: int) -> list[Slice]:
        moved = [slice_ for exchange in fragment.exchanges for slice_ in self.slices(exchange)]
        buckets = max(self.limits.buckets(read), 2)
        parts = [
            Slice(fragment.id, bucket + 1, None, BUCKET, bucket, bucket + 1, read // buckets)
            for bucket in range(buckets)
        ]
        return [*moved, *parts, *self._merges(fragment, buckets, read)]

    def _by_ranges(self, fragment: Fragment, slice_rows: int) -> list[Slice]:
        found: list[Slice] = []
        for driver in fragment.drivers:
            relation = self.scans[driver].relation
            ids = row_ids(self.cursor, relation, self.position.of(relation))
            for start, stop, rows in cut(ids, self.counts[driver], slice_rows):
                found.append(Slice(fragment.id, len(found) + 1, relation.id, driver, start, stop, rows))
        driven = sum(self.counts[driver] for driver in fragment.drivers)
        return [*found, *self._merges(fragment, len(found), driven)]

    def _merges(self, fragment: Fragment, parts: int, rows: int) -> list[Slice]:
        """Return the slices that merge the partial results of `parts` slices of a fragment, if it has any."""
        if fragment.end is None:
            return []
        buckets = min(self.limits.shares, MOST_MERGES) if fragment.merges else self.limits.buckets(rows)
        if not fragment.keys or buckets == 1:
            return [Slice(fragment.id, parts + 1, None, None, None, None, 0)]
        moved = 0 if fragment.merges else rows // buckets
        return [Slice(fragment.id, parts + 1 + b, None, None, b, b + 1, moved) for b in range(buckets)]

    def _whole(self, fragment: Fragment, driven: int, read: int) -> Slice:
        driver = max(fragment.drivers, key=self.counts.__getitem__, default=None)
        largest = driver or max(fragment.inputs, key=self.counts.__getitem__, default=None)
        upstream = self.scans[largest].relation.id if largest else None
        return Slice(fragment.id, 1, upstream, driver, None, None, driven if driver else read)


def spread(slices: Sequence[Slice], rows: int) -> list[Slice]:
    """Return the slices with `rows` rows in all, in proportion to the rows that they read."""
    read = list(accumulate(slice_.row_count for slice_ in slices))
    upto = [rows * count // read[-1] if read[-1] else 0 for count in read]
    return [replace(s, row_count=to - start) for s, start, to in zip(slices, [0, *upto], upto, strict=False)]


def cut(row_ids: tuple[int, int], count: int, slice_rows: int) -> list[tuple[int, int | None, int]]:
    """Cut `count` rows with ids in `first <= id <= last` into ranges (start, stop, expected rows); the last is open.

    A range has `slice_rows` rows or more, up to twice as many.
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


def row_ids(cursor: Cursor, relation: Relation, snapshot: int) -> tuple[int, int]:
    """Return the lowest and highest row id at a snapshot, (0, -1) without rows.

    The files' metadata answer where they can.
    """
    row = cursor.execute(
        f"SELECT min(rowid), max(rowid) FROM {relation.lake_name} AT (VERSION => {snapshot})"
    ).fetchone()
    assert row is not None
    return row if row[0] is not None else (0, -1)
