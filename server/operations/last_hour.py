"""The last hour of the server: barriers, rows, lags and statements, sampled from its counters.

The counters are read every ten seconds; nothing is counted for that, so that barriers and statements do not pay for it.
"""

from __future__ import annotations

import math
import time
from array import array
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sparkwave.catalog.counters import (
    BARRIER_FAILURES,
    BARRIER_SECONDS,
    LAKE_COMMITS,
    STATEMENT_SECONDS,
    VIEW_ROWS,
    total,
    totals,
)
from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.model import CREATED, FAILED
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill.jobs import Jobs
from sparkwave.executor.epochs.coordinator import Coordinator

INTERVAL_SECONDS = 10.0
KEPT_SECONDS = 3600.0
# A point of a job's curves is the average of so many samples: a thousand jobs have their curves in 6 MB.
SAMPLES_A_POINT = 3
POINT_SECONDS = INTERVAL_SECONDS * SAMPLES_A_POINT
POINTS = round(KEPT_SECONDS / POINT_SECONDS)


@dataclass(frozen=True)
class JobCounts:
    """The rows that a job has changed and that its backfill has read so far, and its lag in ms, None without one."""

    changed: float = 0.0
    read: float = 0.0
    lag_ms: float | None = None


@dataclass(frozen=True)
class Counts:
    """The counters at one time. `changed_barriers` and `barrier_s` are those of barriers that changed a view."""

    barriers: float = 0.0
    changed_barriers: float = 0.0
    barrier_s: float = 0.0
    failures: float = 0.0
    commits: float = 0.0
    statements: float = 0.0
    statement_s: float = 0.0
    jobs: Mapping[int, JobCounts] = field(default_factory=dict)


@dataclass(frozen=True)
class Moment:
    """What happened between a sample and the sample before it, which was taken at the Unix time `at` in seconds.

    Rates are per second. `barrier_ms` and `statement_ms` are averages, None where there was none; `lag_ms` is the
    largest lag of a created job.
    """

    at: float
    barriers: float
    barrier_ms: float | None
    failed_barriers: float
    changed_rows: float
    read_rows: float
    commits: float
    statements: float
    statement_ms: float | None
    lag_ms: float | None


@dataclass(frozen=True)
class Curves:
    """A job's last hour, one number for each `POINT_SECONDS`, the oldest first; NaN where nothing is known."""

    changed_rows: list[float]
    read_rows: list[float]
    lag_ms: list[float]


class _Ring:
    """The newest POINTS values."""

    def __init__(self) -> None:
        self._values = array("f", [math.nan] * POINTS)

    def put(self, place: int, value: float) -> None:
        self._values[place % POINTS] = value

    def ordered(self, newest: int) -> list[float]:
        first = (newest + 1) % POINTS
        values = [*self._values[first:], *self._values[:first]]
        known = next((place for place, value in enumerate(values) if not math.isnan(value)), len(values))
        return values[known:]


@dataclass
class _Job:
    """The rings of a job, the counts at the last point, and the lags since then."""

    last: JobCounts
    changed: _Ring = field(default_factory=_Ring)
    read: _Ring = field(default_factory=_Ring)
    lag: _Ring = field(default_factory=_Ring)
    worst_ms: float = math.nan


class History:
    """Keeps samples of `read()`, one for each INTERVAL_SECONDS. Any thread may look."""

    def __init__(self, read: Callable[[], Counts]) -> None:
        self._read = read
        self._moments: deque[Moment] = deque(maxlen=round(KEPT_SECONDS / INTERVAL_SECONDS))
        self._jobs: dict[int, _Job] = {}
        self._rates: dict[int, float] = {}
        self._last: tuple[float, Counts] | None = None
        self._samples = 0
        self._point_at = 0.0
        self._lock = RankedLock()

    def run_once(self) -> bool:
        """Take a sample now. Returns False: there is nothing more to do in this period."""
        self.sample(time.time())
        return False

    def moments(self) -> list[Moment]:
        """Return the last hour of the server, the oldest first."""
        with self._lock:
            return list(self._moments)

    def rates(self) -> Mapping[int, float]:
        """Return the rows a second that each job has changed between the last two samples, by its id."""
        with self._lock:
            return self._rates

    def curves(self) -> tuple[float, dict[int, Curves]]:
        """Return the Unix time of the newest point in seconds, and the curves of all jobs by their ids."""
        with self._lock:
            newest = self._samples // SAMPLES_A_POINT - 1
            return self._point_at, {
                id_: Curves(job.changed.ordered(newest), job.read.ordered(newest), job.lag.ordered(newest))
                for id_, job in self._jobs.items()
            }

    def sample(self, at: float) -> None:
        """Take a sample, at a Unix time in seconds."""
        now = self._read()
        with self._lock:
            if self._last is not None and at > self._last[0]:
                self._moments.append(_moment(at, *self._last, now))
                seconds = at - self._last[0]
                self._rates = {
                    id_: (counts.changed - before.changed) / seconds
                    for id_, counts in now.jobs.items()
                    if (before := self._last[1].jobs.get(id_)) is not None
                }
            self._last = at, now
            self._samples += 1
            self._add_to_curves(at, now.jobs)

    def _add_to_curves(self, at: float, jobs: Mapping[int, JobCounts]) -> None:
        self._jobs = {id_: self._jobs.get(id_) or _Job(counts) for id_, counts in jobs.items()}
        for id_, counts in jobs.items():
            if counts.lag_ms is not None:
                self._jobs[id_].worst_ms = max(
                    counts.lag_ms, self._jobs[id_].worst_ms
                )  # the first number wins over NaN
        if self._samples % SAMPLES_A_POINT:
            return
        place = self._samples // SAMPLES_A_POINT - 1
        for id_, job in self._jobs.items():
            job.changed.put(place, max(jobs[id_].changed - job.last.changed, 0) / POINT_SECONDS)
            job.read.put(place, max(jobs[id_].read - job.last.read, 0) / POINT_SECONDS)
            job.lag.put(place, job.worst_ms)
            job.last, job.worst_ms = jobs[id_], math.nan
        self._point_at = at


def _moment(at: float, before_at: float, before: Counts, now: Counts) -> Moment:
    seconds = at - before_at
    changed_barriers, statements = now.changed_barriers - before.changed_barriers, now.statements - before.statements
    pairs = [(counts, before.jobs[id_]) for id_, counts in now.jobs.items() if id_ in before.jobs]
    lags = [counts.lag_ms for counts in now.jobs.values() if counts.lag_ms is not None]
    return Moment(
        at=at,
        barriers=(now.barriers - before.barriers) / seconds,
        barrier_ms=(now.barrier_s - before.barrier_s) * 1000 / changed_barriers if changed_barriers else None,
        failed_barriers=now.failures - before.failures,
        changed_rows=sum(one.changed - other.changed for one, other in pairs) / seconds,
        # a backfill that has ended has no count any more
        read_rows=sum(max(one.read - other.read, 0) for one, other in pairs) / seconds,
        commits=(now.commits - before.commits) / seconds,
        statements=statements / seconds,
        statement_ms=(now.statement_s - before.statement_s) * 1000 / statements if statements else None,
        lag_ms=max(lags, default=None),
    )


def read_counts(store: Store, coordinator: Coordinator, jobs: Jobs) -> Counts:
    """Return the counters now."""
    catalog, applied, now_us = store.catalog, coordinator.epoch, time.time_ns() // 1000
    changed = VIEW_ROWS.of({job.id for job in catalog.jobs})
    read = {id_: sum(fragments.values()) for id_, fragments in jobs.rows_read().items()}

    def lag_ms(position_us: int | None) -> float | None:
        return None if position_us is None else max(now_us - position_us, 0) / 1000

    found = {}
    for job in catalog.jobs:
        position_us = None
        if job.status in (CREATED, FAILED) and not (job.is_behind and job.position is None):
            position_us = (job.position.epoch if job.position is not None else applied).time_us
        found[job.id] = JobCounts(changed.get((job.id, 0), 0.0), read.get(job.id, 0), lag_ms(position_us))
    barriers = totals(BARRIER_SECONDS, "kind")
    changed_barriers, barrier_s = barriers.get("changed", (0.0, 0.0))
    statements = totals(STATEMENT_SECONDS, "kind").values()
    return Counts(
        sum(count for count, _ in barriers.values()), changed_barriers, barrier_s, total(BARRIER_FAILURES),
        total(LAKE_COMMITS), sum(count for count, _ in statements), sum(seconds for _, seconds in statements), found,
    )  # fmt: skip
