"""Where a NoShuffle or Arrangement backfill stands in its upstreams.

An input's row ids are cut into ranges, its vnodes, each of which is read in order (RisingWave:
src/stream/src/executor/backfill, where the primary key is the position and a hash of it the vnode; here the row id is
both, so that a vnode is a contiguous part of the upstream's files). The last vnode is open: rows inserted since the
start have higher row ids than all others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from catalog.row_ids import ALL, RowIds, union


@dataclass(frozen=True)
class Vnode:
    """A range of row ids `first <= id < stop` (`stop` None is open) of which those below `position` are read.

    `row_total` is the number of rows it had when the job started.
    """

    number: int
    first: int
    stop: int | None
    position: int
    row_total: int

    def end(self, last: int) -> int:
        """Where its reading ends, when the relation's row ids end before `last`."""
        return max(last, self.first) if self.stop is None else self.stop

    def rows_to(self, position: int) -> int:
        """About how many rows there are from where it stands to a position."""
        width = self.stop - self.first if self.stop is not None else 0
        ids = position - self.position
        if not width:
            return ids
        return (
            self.row_total * (position - self.first) // width - self.row_total * (self.position - self.first) // width
        )


@dataclass(frozen=True)
class Positions:
    """The vnodes of one scanned input, ascending. Fragments of these strategies are the inputs' scans."""

    input: str
    fragment_id: int
    upstream_id: int
    vnodes: tuple[Vnode, ...]

    @property
    def is_finished(self) -> bool:
        """Everything that was there at some snapshot is read; whatever comes later is a change."""
        return all(v.stop is not None and v.position >= v.stop for v in self.vnodes)

    @property
    def rows(self) -> RowIds:
        """The row ids that the view reflects."""
        return ALL if self.is_finished else union([(v.first, v.position) for v in self.vnodes])

    def remaining(self, last: int) -> int:
        """About how many rows are left to read below the row id `last`."""
        return sum(v.rows_to(v.end(last)) for v in self.vnodes)

    def extended(self, last: int, rows: int, actors: int) -> Positions:
        """Read on by about `rows` rows, shared by actors that read neighbouring vnodes in order.

        `last` is one more than the highest row id there is. When all is read the last vnode is closed.
        """
        open_ = [v for v in self.vnodes if v.position < v.end(last)]
        moved: dict[int, Vnode] = {}
        for part in _parts(open_, actors):
            budget = -(-rows // actors)
            for vnode in part:
                target = vnode.end(last)
                if vnode.rows_to(target) > budget:
                    target = _position_after(vnode, target, budget)
                moved[vnode.number] = replace(vnode, position=target)
                budget -= vnode.rows_to(target)
                if budget <= 0:
                    break
        vnodes = tuple(moved.get(v.number, v) for v in self.vnodes)
        if all(v.position >= v.end(last) for v in vnodes):
            vnodes = (*vnodes[:-1], replace(vnodes[-1], stop=vnodes[-1].position))
        return replace(self, vnodes=vnodes)

    def rows_since(self, earlier: Positions) -> int:
        """About how many rows were read since."""
        pairs = zip(earlier.vnodes, self.vnodes, strict=True)
        return sum(before.rows_to(now.position) for before, now in pairs)

    def moved_since(self, earlier: Positions) -> tuple[Vnode, ...]:
        """The vnodes that are not as they were."""
        return tuple(now for before, now in zip(earlier.vnodes, self.vnodes, strict=True) if now != before)


def _position_after(vnode: Vnode, target: int, rows: int) -> int:
    """The position about `rows` rows further on: at least one row id, at most `target`."""
    width = vnode.stop - vnode.first if vnode.stop is not None else 0
    ids = rows if not width else -(-rows * width // max(vnode.row_total, 1))
    return min(target, vnode.position + max(ids, 1))


def _parts(vnodes: list[Vnode], count: int) -> Iterable[list[Vnode]]:
    """Neighbouring vnodes in at most `count` parts of about the same length."""
    size = -(-len(vnodes) // max(count, 1))
    return (vnodes[start : start + size] for start in range(0, len(vnodes), size)) if size else ()


def cut(first: int, last: int, row_count: int, count: int) -> tuple[Vnode, ...]:
    """Cut the row ids `first <= id < last`, which `row_count` rows have, into `count` vnodes; the last is open."""
    width = max(-(-(last - first) // count), 1)
    starts = [first + width * number for number in range(count) if number == 0 or first + width * number < last]
    vnodes = []
    for number, start in enumerate(starts):
        stop = start + width if number < len(starts) - 1 else None
        ids = (stop if stop is not None else last) - start
        total = row_count * (start - first + ids) // max(last - first, 1) - row_count * (start - first) // max(
            last - first, 1
        )
        vnodes.append(Vnode(number, start if number else 0, stop, start if number else 0, total))
    return tuple(vnodes)
