"""The position of a NoShuffle or Arrangement backfill in its upstreams.

The row ids that an input has at the start of the job are cut into ranges, its vnodes, each of which is read in order.
(RisingWave: src/stream/src/executor/backfill, where the primary key is the position and its hash the vnode. Here the
row id is both, so that a vnode is a contiguous part of the upstream's files.) Later rows have higher row ids. They are
not read but applied as changes, since the backfill of a fast-growing table would otherwise never end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sparkwave.catalog.lake.row_ids import RowIds, union


@dataclass(frozen=True)
class Vnode:
    """A range of row ids `first <= id < stop`, of which those below `position` are read.

    `row_total` is the number of its rows when the job started.
    """

    number: int
    first: int
    stop: int
    position: int
    row_total: int

    @property
    def remaining(self) -> int:
        """The approximate number of rows left to read."""
        return self.rows_to(self.stop)

    def rows_to(self, position: int) -> int:
        """Return the approximate number of rows from the vnode's position to another; exact for the whole vnode."""
        return self._rows_before(position) - self._rows_before(self.position)

    def _rows_before(self, position: int) -> int:
        return self.row_total * (position - self.first) // max(self.stop - self.first, 1)

    def moved(self, rows: int) -> Vnode:
        """Return the vnode after reading about `rows` more rows, at least one row id."""
        if rows >= self.remaining:
            return replace(self, position=self.stop)
        ids = -(-rows * (self.stop - self.first) // self.row_total)
        return replace(self, position=min(self.stop, self.position + max(ids, 1)))


@dataclass(frozen=True)
class Positions:
    """The vnodes of one scanned input, ascending. The scan is a fragment of the job."""

    input: str
    fragment_id: int
    upstream_id: int
    vnodes: tuple[Vnode, ...]

    @property
    def is_finished(self) -> bool:
        return all(v.position >= v.stop for v in self.vnodes)

    @property
    def rows(self) -> RowIds:
        """The row ids that the view reflects: those read, and all later than the start."""
        read = [(v.first, v.position) for v in self.vnodes]
        return union([*read, (self.vnodes[-1].stop, None)])

    @property
    def remaining(self) -> int:
        """The approximate number of rows left to read."""
        return sum(v.remaining for v in self.vnodes)

    def extended(self, rows: int, actors: int) -> Positions:
        """Return the positions after about `rows` more rows, shared by actors that read adjacent vnodes in order."""
        moved: dict[int, Vnode] = {}
        unread = [v for v in self.vnodes if v.position < v.stop]
        actors = max(min(actors, len(unread)), 1)
        for part in _parts(unread, actors):
            budget = -(-rows // actors)
            for vnode in part:
                if budget <= 0 and vnode.remaining:
                    break
                moved[vnode.number] = vnode.moved(budget)
                budget -= vnode.rows_to(moved[vnode.number].position)
        return replace(self, vnodes=tuple(moved.get(v.number, v) for v in self.vnodes))

    def rows_since(self, earlier: Positions) -> int:
        """Return the approximate number of rows read since earlier positions."""
        pairs = zip(earlier.vnodes, self.vnodes, strict=True)
        return sum(before.rows_to(now.position) for before, now in pairs)

    def moved_since(self, earlier: Positions) -> tuple[Vnode, ...]:
        """Return the vnodes that have changed since earlier positions."""
        return tuple(now for before, now in zip(earlier.vnodes, self.vnodes, strict=True) if now != before)


def _parts(vnodes: list[Vnode], count: int) -> Iterable[list[Vnode]]:
    """Adjacent vnodes in at most `count` parts of similar length."""
    size = -(-len(vnodes) // max(count, 1))
    return (vnodes[start : start + size] for start in range(0, len(vnodes), size)) if size else ()


def cut(stop: int, row_count: int, count: int) -> tuple[Vnode, ...]:
    """Cut the row ids below `stop`, with `row_count` rows, into at most `count` vnodes of equal width."""
    width = max(-(-stop // count), 1)
    starts = range(0, max(stop, 1), width)
    rows = [row_count * min(start, stop) // max(stop, 1) for start in (*starts, stop)]
    return tuple(
        Vnode(number, start, min(start + width, stop), start, rows[number + 1] - rows[number])
        for number, start in enumerate(starts)
    )
