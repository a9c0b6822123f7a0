"""How long after an INSERT began does a SELECT on another connection see it in a view."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass

import psycopg

from bench.sql import scalar
from bench.workload import View

# Long enough that every sample finds the server at rest: barriers are a second apart by default.
PAUSE_S = (1.0, 1.3)
POLL_S = 0.002
TIMEOUT_S = 30


@dataclass(frozen=True)
class Freshness:
    """Seconds until one view showed each row."""

    view: View
    seconds: tuple[float, ...]

    def percentile(self, percent: float) -> float:
        """The nearest-rank percentile."""
        ordered = sorted(self.seconds)
        return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def measure(
    writer: psycopg.Connection, reader: psycopg.Connection, views: tuple[View, ...], samples: int
) -> list[Freshness]:
    """Insert one order at a time and poll the views in turn until each shows it."""
    found: dict[str, list[float]] = {view.name: [] for view in views}
    choice = random.Random(13)
    for sample in range(samples):
        time.sleep(choice.uniform(*PAUSE_S))
        seen = _sample(writer, reader, views, sample)
        for view in views:
            found[view.name].append(seen[view.name])
    return [Freshness(view, tuple(found[view.name])) for view in views]


def _sample(
    writer: psycopg.Connection, reader: psycopg.Connection, views: tuple[View, ...], sample: int
) -> dict[str, float]:
    """Seconds from the start of one INSERT until each view shows it."""
    id_ = -1 - sample
    insert = f"INSERT INTO orders VALUES ({id_}, 1, 1, 1, 1.0, 'new', TIMESTAMP '2025-01-01 00:00:00')"
    probes = {view.name: view.probe.format(id=id_) for view in views}
    before = {name: scalar(reader, probe) for name, probe in probes.items()}
    start = time.perf_counter()
    writer.execute(insert)
    seen: dict[str, float] = {}
    while len(seen) < len(views):
        for name, probe in probes.items():
            if name not in seen and scalar(reader, probe) != before[name]:
                seen[name] = time.perf_counter() - start
        if time.perf_counter() - start > TIMEOUT_S:
            raise TimeoutError(f"a view has not shown a row within {TIMEOUT_S} s")
        time.sleep(POLL_S)
    return seen
