"""The scales and designs that are compared, and where each has its first wall."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from bench.scale.model import GB, TB, Backfill, Cluster, Costs, Design, Load, backfill, epoch

NODES = (1, 3, 10, 30, 100, 300, 1000)
BYTES = (1 * GB, 10 * GB, 100 * GB, 1 * TB, 10 * TB, 100 * TB)
VIEWS = (10, 100, 1_000, 10_000)
A_NODE = 10 * GB  # 1,000 nodes have 10 TB

# A backfill this many times as long as one plain Spark job is bound by the coordinator and not by what it drives.
WALL = 2.0

T = TypeVar("T")

AS_IS = Design()
KNOWN = Design("no footers read", knows_files=True)
DESIGNS = (AS_IS, KNOWN)


def backfills(costs: Costs, design: Design, nodes: Iterable[int] = NODES, get_s: float = 0.0) -> list[Backfill]:
    """One by number of nodes, with 10 GB of data for each."""
    return [backfill(Cluster(n, get_s=get_s), Load(n * A_NODE), design, costs) for n in nodes]


def wall(scales: Sequence[T], is_over: Callable[[T], bool]) -> T | None:
    """The first scale from which on, up to the last, the coordinator is what is short; None if there is none."""
    found = None
    for scale in reversed(scales):
        if not is_over(scale):
            break
        found = scale
    return found


def backfill_wall(costs: Costs, design: Design, nodes: Sequence[int] = NODES, get_s: float = 0.0) -> int | None:
    """The least number of nodes with which a backfill takes twice as long as a plain job."""
    times = dict(zip(nodes, backfills(costs, design, nodes, get_s), strict=True))
    return wall(nodes, lambda n: times[n].factor > WALL)


def epoch_wall(costs: Costs, design: Design, loads: Sequence[tuple[T, Load]], get_s: float = 0.0) -> T | None:
    """The least of some loads whose epochs take longer than their interval, by its name."""
    cluster = Cluster(1000, get_s=get_s)
    found = wall(loads, lambda pair: epoch(cluster, pair[1], design, costs).busy > 1)
    return found[0] if found is not None else None


def most_changed_views(costs: Costs, load: Load, design: Design = AS_IS) -> int:
    """How many views may change in an epoch that is over in time."""
    over = (
        n for n in range(1, 100_000) if epoch(Cluster(1000), replace(load, changed_views=n), design, costs).busy > 1
    )
    return next(over) - 1
