"""Sets of row ids of a relation: the ids that a slice reads, and those that a creating job has read so far."""

from __future__ import annotations

from dataclasses import dataclass

# Columns of the lake's files besides the table's, for rows that were moved after their insertion.
ROW_ID_COLUMN = "_ducklake_internal_row_id"
SNAPSHOT_COLUMN = "_ducklake_internal_snapshot_id"


@dataclass(frozen=True)
class RowIds:
    """Ascending ranges `start <= row id < stop` that do not touch; a `stop` of None is open."""

    ranges: tuple[tuple[int, int | None], ...]

    def condition(self, column: str) -> str:
        """Return SQL, for both engines, that tests whether a column's row id is in the set."""
        if self == ALL:
            return "TRUE"
        parts = (f"({column} >= {start}" + (f" AND {column} < {stop})" if stop is not None else ")")
                 for start, stop in self.ranges)  # fmt: skip
        return "(" + " OR ".join(parts) + ")" if self.ranges else "FALSE"

    def overlaps(self, start: int, stop: int) -> bool:
        """Return whether any row id `start <= id < stop` may be in the set."""
        return any(first < stop and (last is None or last > start) for first, last in self.ranges)

    def covers(self, start: int, stop: int) -> bool:
        """Return whether all row ids `start <= id < stop` are in the set."""
        return any(first <= start and (last is None or stop <= last) for first, last in self.ranges)

    def minus(self, other: RowIds) -> RowIds:
        """Return the ids of this set that are not in the other."""
        left: list[tuple[int, int | None]] = []
        for start, stop in self.ranges:
            at = start
            for gone, back in other.ranges:
                if (back is not None and back <= at) or (stop is not None and gone >= stop):
                    continue
                if gone > at:
                    left.append((at, gone))
                if back is None:
                    break
                at = back
            else:
                if stop is None or at < stop:
                    left.append((at, stop))
        return RowIds(tuple(left))


def union(ranges: list[tuple[int, int | None]]) -> RowIds:
    """Return the set of ascending, disjoint ranges; empty ones are dropped and touching ones merged."""
    merged: list[tuple[int, int | None]] = []
    for start, stop in ranges:
        if start == stop:
            continue
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], stop)
        else:
            merged.append((start, stop))
    return RowIds(tuple(merged))


ALL = RowIds(((0, None),))
NONE = RowIds(())
