"""Quotes the time of a backfill: a model of its work, corrected by the backfills that this installation has finished.

The model is `fixed + work / cores`, where the work is a sum over `estimates.Estimate` with the costs below. They were
fitted to the processor time of TPC-H's and Nexmark's views. A machine differs from that one, and is not always as
busy, so the model is corrected by the median of measured / modelled time of the newest finished backfills. The band is
how wrong such quotes of the finished backfills would have been, each by those before it. A backfill that does the same
as an earlier one tells nothing about quotes of others, which have no such example.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from sparkwave.planner.backfill.estimates import Estimate

# The kinds of engines: the server itself, a resource group that is there, and one that is provisioned for the job.
IN_PROCESS, STEADY, SERVERLESS = "in process", "resource group", "serverless"

# Seconds of each backfill besides its work: to begin and to commit; and of one thread to plan each operator.
FIXED_S: Mapping[str, float] = {IN_PROCESS: 0.2, STEADY: 0.5, SERVERLESS: 0.8}
OPERATOR_S = 0.01
# Seconds of one core for a million of each.
COSTS: Mapping[str, float] = {
    "read_values": 0.0125,
    "computed": 0.01,
    "matched": 0.16,
    "built": 0.05,
    "probed": 0.02,
    "joined": 0.03,
    "grouped": 0.075,
    "groups": 0.1,
    "sorted": 0.5,
    "written_rows": 0.05,
    "written_values": 0.13,
}
# Cores speed work up by this power of their number: some of it has one thread.
_SPEEDUP = 0.8
# Fewer finished backfills than this correct nothing. So many of the newest are the correction.
LEAST_FINISHED, _NEWEST = 5, 6
# The most finished backfills that the band rests on, and how many earlier ones each of them needs.
_MOST_FINISHED, _EARLIER = 30, 3
# The band around the middle, as a factor: without finished backfills, and the narrowest with few and with many.
_BAND, _NARROW, _NARROWEST, _MANY = 2.5, 1.6, 1.25, 8


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
    work: Estimate


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


def modelled_s(work: Estimate, kind: str, cores: float) -> float:
    """Return the seconds of a backfill by the model alone."""
    load = sum(getattr(work, name) * cost for name, cost in COSTS.items()) / 1e6
    return FIXED_S[kind] + OPERATOR_S * work.operators + load / max(cores, 1.0) ** _SPEEDUP


def quote(work: Estimate, engine: Engine, finished: Sequence[Finished]) -> Quote:
    """Return the quote of a backfill. `finished` are the newest first."""
    of_kind = _of_kind(engine.kind, finished)
    ratios = [each.seconds / modelled_s(each.work, each.kind, each.cores) for each in of_kind]
    low, middle, high = 1 / _BAND, 1.0, _BAND
    if len(ratios) >= LEAST_FINISHED:
        first = {each.work: place for place, each in enumerate(of_kind)}
        is_known = Estimate.load(work.dump()) in first  # as it is kept
        middle = median(ratios[:_NEWEST])
        errors = [
            ratio / median(ratios[place + 1 : place + 1 + _NEWEST])
            for place, ratio in enumerate(ratios[: len(ratios) - _EARLIER])
            if is_known or first[of_kind[place].work] == place
        ][:_MOST_FINISHED] or [1.0]
        narrowest = _NARROWEST if len(errors) >= _MANY else _NARROW
        low = middle * min(_percentile(errors, 0.1), 1 / narrowest)
        high = middle * max(_percentile(errors, 0.9), narrowest)
    model, start = modelled_s(work, engine.kind, engine.cores), engine.start_s
    return Quote(engine, start + model * low, start + model * middle, start + model * high, len(ratios))


def _of_kind(kind: str, finished: Sequence[Finished]) -> list[Finished]:
    """Return the finished backfills of a kind, on Spark of both kinds if there are few."""
    own = [each for each in finished if each.kind == kind]
    if len(own) < LEAST_FINISHED and kind != IN_PROCESS:
        own = [each for each in finished if each.kind != IN_PROCESS]
    return own


def _percentile(values: Sequence[float], part: float) -> float:
    """Return a percentile of the values from which these are drawn: of few, it is near their extremes."""
    ordered = sorted(values)
    place = min(max(part * (len(ordered) + 1) - 1, 0.0), len(ordered) - 1.0)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
