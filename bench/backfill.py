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
    strategy: str
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
    """Measure each view `runs` times by every strategy and plainly, in turn, after a run of each that does not count.

    The views are there afterwards.
    """
    for view in views:
        seconds: dict[str, list[float]] = {strategy: [] for strategy in (*view.aims, "plain")}
        for _ in range(runs + 1):
            for strategy in view.aims:
                connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS {view.name}")
                create = f"CREATE MATERIALIZED VIEW {view.name} WITH (backfill_strategy = '{strategy}') AS {view.query}"
                seconds[strategy].append(_seconds(connection.execute, create))
            seconds["plain"].append(_seconds(plain.run, view.query))
        for strategy in view.aims:
            yield Comparison(view, strategy, tuple(seconds[strategy][1:]), tuple(seconds["plain"][1:]))


def _seconds(run: Callable[[str], object], sql: str) -> float:
    start = time.perf_counter()
    run(sql)
    return time.perf_counter() - start
