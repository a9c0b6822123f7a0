"""Backfill against plain Spark: the same query over the same files in the same Spark application, in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psycopg

from bench.plain_spark import PlainSpark
from bench.workload import View


@dataclass(frozen=True)
class Comparison:
    """Seconds of each run."""

    view: View
    backfill_s: tuple[float, ...]
    plain_s: tuple[float, ...]

    @property
    def ratio(self) -> float:
        """Best against best."""
        return min(self.backfill_s) / min(self.plain_s)

    @property
    def spread(self) -> tuple[float, float]:
        """Smallest and largest ratio of neighbouring runs."""
        ratios = [ours / plain for ours, plain in zip(self.backfill_s, self.plain_s, strict=True)]
        return min(ratios), max(ratios)


def compare(
    connection: psycopg.Connection, plain: PlainSpark, views: tuple[View, ...], runs: int
) -> Iterator[Comparison]:
    """Measure each view `runs` times both ways, in turn, after a run of each that does not count."""
    for view in views:
        create = f"CREATE MATERIALIZED VIEW {view.name} AS {view.query}"
        backfill_s, plain_s = [], []
        for run in range(runs + 1):
            if run:
                connection.execute(f"DROP MATERIALIZED VIEW {view.name}")
            seconds = _seconds(connection.execute, create), _seconds(plain.run, view.query)
            if run:
                backfill_s.append(seconds[0])
                plain_s.append(seconds[1])
        yield Comparison(view, tuple(backfill_s), tuple(plain_s))


def _seconds(run: Callable[[str], object], sql: str) -> float:
    start = time.perf_counter()
    run(sql)
    return time.perf_counter() - start
