"""The server's counters and histograms for Prometheus.

To count takes a few microseconds, so it can be done for every statement. Values that a scrape can read from the catalog
are not counted here: see server/operations/metrics.py.
"""

from __future__ import annotations

import functools
from collections.abc import Collection
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from sparkwave.catalog.errors import Error
from sparkwave.catalog.locks import RankedLock

disable_created_metrics()

REGISTRY = CollectorRegistry()

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
_ROWS = tuple(10.0**power for power in range(9))


def _counter(name: str, help_: str, *labels: str) -> Counter:
    return Counter(name, help_, labels, registry=REGISTRY)


def _histogram(name: str, help_: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
    return Histogram(name, help_, labels, buckets=buckets, registry=REGISTRY)


EngineName = Literal["duckdb", "spark"]

BARRIER_SECONDS = _histogram(
    "sparkwave_barrier_duration_seconds",
    "How long barriers took; `kind` is `changed` where a view did, else `idle`",
    _SECONDS,
    "kind",
)
BARRIER_INTERVAL_SECONDS = _histogram(
    "sparkwave_barrier_interval_seconds", "Time from the start of a barrier to that of the next", _SECONDS
)
BARRIER_FAILURES = _counter("sparkwave_barrier_failures_total", "Barriers that failed and are tried again")
EPOCH_ROWS = _histogram(
    "sparkwave_epoch_changed_rows",
    "Changed input rows of a view in an epoch, by the engine that ran it",
    _ROWS,
    "engine",
)
ADVANCE_SECONDS = _histogram(
    "sparkwave_epoch_advance_duration_seconds", "Time to compute a view's change in an epoch", _SECONDS, "engine"
)
REFRESHES = _counter(
    "sparkwave_view_refreshes_total",
    "Times that DuckDB brought a view up to date in an epoch, by `mode`: `incremental` or `full`",
    "mode",
)
AUDITS = _counter(
    "sparkwave_view_audits_total",
    "Comparisons of views with their queries, by `result`: `proven`, `different` or `skipped`",
    "result",
)
STEP_RETRIES = _counter(
    "sparkwave_backfill_step_retries_total", "Slices and other steps of backfills that failed and are tried again"
)
SLOW_SPARK_CALLS = Gauge(
    "sparkwave_spark_slow_calls", "Calls to Spark that run longer than slow_spark_call_secs", registry=REGISTRY
)
EPOCH_CACHE_BYTES = Gauge(
    "sparkwave_epoch_cache_bytes", "Memory that copies of what epochs look rows up in take", registry=REGISTRY
)
LAKE_COMMITS = _counter("sparkwave_lake_commits_total", "Transactions of the lake that were committed")
LAKE_CONFLICTS = _counter(
    "sparkwave_lake_conflicts_total", "Transactions of the lake that failed because of what others had committed"
)
COMMIT_SECONDS = _histogram("sparkwave_lake_commit_duration_seconds", "How long COMMIT took in the lake", _SECONDS)
CONNECTIONS = _counter("sparkwave_connections_total", "Clients that have been let in")
STATEMENT_SECONDS = _histogram(
    "sparkwave_statement_duration_seconds",
    "Time from the start of a statement until its last row was sent, failed ones included",
    _SECONDS,
    "kind",
)
ERRORS = _counter("sparkwave_errors_total", "Errors sent to clients, by the class of their SQLSTATE", "sqlstate_class")
SERVING_HITS = _counter("sparkwave_serving_cache_hits_total", "Queries that ran over copies in memory")
SERVING_MISSES = _counter(
    "sparkwave_serving_cache_misses_total", "Queries that copies could serve, and that read the lake"
)


@functools.cache
def statement_seconds(kind: str) -> Histogram:
    """Return the histogram of the seconds of a kind of statements."""
    return STATEMENT_SECONDS.labels(kind)


def count_error(error: Error) -> None:
    """Count an error that is sent to a client."""
    ERRORS.labels(error.sqlstate[:2]).inc()


def total(counter: Counter) -> float:
    """Return the value of a counter, over all its labels."""
    return sum(sample.value for family in counter.collect() for sample in family.samples)


def totals(histogram: Histogram, label: str) -> dict[str, tuple[float, float]]:
    """Return the count and the sum of a histogram's observations, by the value of its label."""
    found: dict[str, dict[str, float]] = {}
    for family in histogram.collect():
        for sample in family.samples:
            found.setdefault(sample.labels[label], {})[sample.name.rpartition("_")[2]] = sample.value
    return {value: (numbers["count"], numbers["sum"]) for value, numbers in found.items()}


class PerJob:
    """Counts by job and fragment (0 without fragments), as long as the job exists."""

    def __init__(self) -> None:
        self._counts: dict[tuple[int, int], float] = {}
        self._lock = RankedLock()

    def add(self, job_id: int, amount: float, fragment_id: int = 0) -> None:
        with self._lock:
            key = job_id, fragment_id
            self._counts[key] = self._counts.get(key, 0.0) + amount

    def of(self, jobs: Collection[int]) -> dict[tuple[int, int], float]:
        """Return the counts of these jobs; the counts of all other jobs are dropped."""
        with self._lock:
            self._counts = {key: count for key, count in self._counts.items() if key[0] in jobs}
            return dict(self._counts)


VIEW_ROWS = PerJob()  # rows that barriers have removed from or added to created views
BACKFILL_BYTES = PerJob()  # bytes of the files that Spark wrote, by fragment
