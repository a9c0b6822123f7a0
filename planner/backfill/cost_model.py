"""Quotes the time of a backfill: a model of its work, corrected by the backfills that this installation has finished.

The model is `fixed + work / cores`, where the work is a sum over `estimates.Work` with the costs below. They were
fitted on TPC-H and Nexmark (bench/quotes.py). A machine differs from that one, so the model is corrected by the median
of measured / modelled time, and the band is where most of these ratios were.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sparkwave.planner.backfill.estimates import Work

# The kinds of engines: the server itself, a resource group that is there, and one that is provisioned for the job.
IN_PROCESS, STEADY, SERVERLESS = "in process", "resource group", "serverless"

# Seconds of each backfill besides its work: to plan, to begin tasks and to commit.
FIXED_S: Mapping[str, float] = {IN_PROCESS: 0.15, STEADY: 0.6, SERVERLESS: 0.9}
# Seconds of one core for a million of each.
COSTS: Mapping[str, float] = {
    "read_rows": 0.05,
    "read_values": 0.01,
    "computed": 0.03,
    "built": 0.2,
    "probed": 0.1,
    "joined": 0.1,
    "grouped": 0.08,
    "groups": 0.4,
    "sorted": 0.8,
    "written_rows": 0.3,
    "written_values": 0.1,
}
# Cores speed work up by this power of their number: some of it has one thread.
_SPEEDUP = 0.8
# Fewer finished backfills than this correct nothing. So many of the newest do: a machine is not always as busy.
LEAST_FINISHED, _MOST_FINISHED = 5, 20
# The band around the middle, as factors: without finished backfills, and the narrowest with some.
_BAND, _NARROWEST = 2.5, 1.25


@dataclass(frozen=True)
class Engine:
    """What can fill a view: of a `kind`, with cores that really compute at a time.

    `start_s` is the time until it is there. `memory_bytes` is what queries of one task may use before they spill.
    """

    kind: str
    name: str
    cores: float
    memory_bytes: int
    start_s: float = 0.0
    paid_cores: int = 0


@dataclass(frozen=True)
class Finished:
    """A finished backfill, which took `seconds` without the start of its group, and the work estimated for it."""

    kind: str
    cores: float
    seconds: float
    work: Work


@dataclass(frozen=True)
class Quote:
    """Seconds within which 10 %, half and 90 % of such backfills end, by `finished` backfills of the kind."""

    engine: Engine
    low: float
    middle: float
    high: float
    finished: int

    def money(self, price: float) -> tuple[float, float, float]:
        """Return the cost of the cores of a group of its own, at a price of a core for an hour."""
        hourly = price * self.engine.paid_cores / 3600
        return self.low * hourly, self.middle * hourly, self.high * hourly


def modelled_s(work: Work, kind: str, cores: float) -> float:
    """Return the seconds of a backfill by the model alone."""
    load = sum(getattr(work, name) * cost for name, cost in COSTS.items()) / 1e6
    return FIXED_S[kind] + load / max(cores, 1.0) ** _SPEEDUP


def quote(work: Work, engine: Engine, finished: Sequence[Finished]) -> Quote:
    """Return the quote of a backfill. `finished` are the newest first."""
    ratios, used = _ratios(engine.kind, finished)
    model = modelled_s(work, engine.kind, engine.cores)
    if used < LEAST_FINISHED:
        low, middle, high = 1 / _BAND, 1.0, _BAND
    else:
        middle = median(ratios)
        low = min(_percentile(ratios, 0.1), middle / _NARROWEST)
        high = max(_percentile(ratios, 0.9), middle * _NARROWEST)
    start = engine.start_s
    return Quote(engine, start + model * low, start + model * middle, start + model * high, used)


def _ratios(kind: str, finished: Sequence[Finished]) -> tuple[list[float], int]:
    """Return measured / modelled time of the finished backfills of a kind, or on Spark of both kinds."""
    own = [each for each in finished if each.kind == kind]
    if len(own) < LEAST_FINISHED and kind != IN_PROCESS:
        own = [each for each in finished if each.kind != IN_PROCESS]
    ratios = [each.seconds / modelled_s(each.work, each.kind, each.cores) for each in own[:_MOST_FINISHED]]
    return ratios, len(ratios)


def _percentile(values: Sequence[float], part: float) -> float:
    """Return a percentile of the values from which these are drawn: of few, it is near their extremes."""
    ordered = sorted(values)
    place = min(max(part * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
