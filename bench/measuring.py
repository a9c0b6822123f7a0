"""Taking times, and saying in short what several of them are."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """What the command line asks for. `rows` is of the table of orders; `scale` is TPC-H's and `events` Nexmark's
    where views are made, with "refresh" where they are refreshed; `runs` are those of a backfill that count.
    """

    is_quick: bool
    is_large: bool
    rows: int
    scale: float
    refresh_scale: float
    events: int
    refresh_events: int
    runs: int
    samples: int
    memory_mib: int


def seconds(run: Callable[..., object], *arguments: object) -> float:
    """How long a call takes."""
    start = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - start


def in_turn(
    runs: int, what: Mapping[str, Callable[[], object]], before: Callable[[], object] = lambda: None
) -> dict[str, list[float]]:
    """Seconds of each of so many calls of everything, one after the other, so that a busy moment meets them all.

    `before` is called before each of them, and does not count.
    """
    found: dict[str, list[float]] = {name: [] for name in what}
    for _ in range(runs):
        for name, run in what.items():
            before()
            found[name].append(seconds(run))
    return found


def percentile(values: Iterable[float], percent: float) -> float:
    """The nearest-rank percentile."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def spread(values: Sequence[float], scale: float = 1) -> str:
    """Smallest and largest; of a single value that it is one."""
    if len(values) == 1:
        return "one run"
    return f"{digits(scale * min(values))} - {digits(scale * max(values))}"


def geometric_mean(values: Sequence[float]) -> float:
    return statistics.geometric_mean(values) if values else math.nan


def digits(value: float) -> str:
    """A number with three digits that count, and all of those before the point."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    places = max(2 - math.floor(math.log10(abs(value))), 0)
    return f"{value:,.{places}f}"
