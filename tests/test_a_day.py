"""A day of epochs: when it is over the lake is as small and as fast as it was early in the morning.

Epochs run as fast as they go, and the clock of the upkeep is theirs. It needs no other clock than the lake's own for
that: "600 seconds ago" is the moment of the epoch that was made so many of the day's seconds before this one.
DAY_EPOCHS says in how many epochs the day goes by, DAY_HOURS how long it is, and DAY_LOG names a file for what was
measured, a line a hundredth of the day. One epoch a second, as busy servers make them, is DAY_EPOCHS=86400.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import TextIO

import duckdb
import pytest
from servers import sparkwave
from test_retention import check, opened, run

from sparkwave.catalog.lake.compaction import INLINED_ROWS
from sparkwave.executor.maintenance.compactor import compact_once
from sparkwave.executor.maintenance.retention import Pace, Retention
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client
from sparkwave.server.session.variables import SYSTEM

EPOCHS = int(os.environ.get("DAY_EPOCHS", "480"))
EPOCH_S = float(os.environ.get("DAY_HOURS", "24")) * 3600 / EPOCHS
LOG = os.environ.get("DAY_LOG", os.devnull)
PACE = Pace()
RETENTION_S = int(SYSTEM["time_travel_retention_ms"].default) / 1000
COMPACTION_S = int(SYSTEM["compaction_interval_ms"].default) / 1000
# How many times as much as in an early third of the day each number may be in the last one. What comes and goes, such
# as rows in the catalog until they are worth a file, does so within a third.
EARLY, LATE = slice(10, 43), slice(67, 100)
GROWTH = {"files": 1.5, "listed_files": 1.5, "catalog_rows": 1.5, "catalog_bytes": 1.5, "memory_bytes": 1.3,
          "p50_ms": 2.0, "p99_ms": 3.0}  # fmt: skip

SENSORS, AREAS = 20_000, 10
LOGGED_A_SECOND, KEPT_S = 8, 1800
TABLES = (
    "CREATE TABLE sensors (id int PRIMARY KEY, area int)",
    f"INSERT INTO sensors SELECT i, i % {AREAS} FROM range({SENSORS}) AS r (i)",
    "CREATE TABLE readings (sensor int PRIMARY KEY, value int)",
    f"INSERT INTO readings SELECT i, i FROM range({SENSORS}) AS r (i)",
    "CREATE TABLE log (at int, area int, note varchar)",
)
VIEWS = {
    "areas": "SELECT s.area, count(*) AS n, sum(r.value) AS total FROM readings r JOIN sensors s ON s.id = r.sensor "
    "GROUP BY s.area",
    "noted": "SELECT area, count(*) AS n, max(at) AS latest FROM log GROUP BY area",
}


def changes(epoch: int) -> list[str]:
    """What clients do in an epoch: readings of sensors, log lines that come and go; now and then a view too."""
    now, before = int(epoch * EPOCH_S), int((epoch - 1) * EPOCH_S)
    found = []
    if epoch % 2:
        readings = max(int(EPOCH_S), 1)
        rows = f"SELECT ({epoch} * 7919 + i * 104729) % {SENSORS}, {epoch} + i FROM range({readings}) AS r (i)"
        found.append(f"INSERT INTO readings {rows}")
    else:
        lines = max(int(LOGGED_A_SECOND * EPOCH_S), 1)
        found.append(f"INSERT INTO log SELECT {now}, i % {AREAS}, 'line ' || i FROM range({lines}) AS r (i)")
    if now // 60 > before // 60:
        found.append(f"DELETE FROM log WHERE at < {now - KEPT_S}")
    if now // 1800 > before // 1800:
        found.append(f"CREATE MATERIALIZED VIEW passing AS {VIEWS['areas']}")
        found.append("DROP MATERIALIZED VIEW passing")
    return found


# DuckLake's tables of rows, and of deletes from files, that it keeps in the catalog.
INLINED = ("ducklake_inlined_data_", "ducklake_inlined_delete_")


class Clock:
    """Seconds of the day, told by epochs, and the moments that they were."""

    def __init__(self) -> None:
        self._moments = deque([time.time()], maxlen=int(PACE.files_s / EPOCH_S) + 2)

    def tick(self) -> None:
        self._moments.append(time.time())

    def ago(self, seconds: float) -> float:
        """How long ago really it was so many seconds earlier in the day; for what was before the day, longer ago."""
        epochs = int(seconds / EPOCH_S)
        if epochs >= len(self._moments):
            return 2 * (time.time() - self._moments[0]) + 60
        return time.time() - self._moments[-1 - epochs]


class Upkeep:
    """What the server does in the background, at the times of the day that are its own."""

    def __init__(self, context: Context, clock: Clock) -> None:
        self._context = context
        self._clock = clock

    def between(self, before: int, epoch: int) -> None:
        if _passes(before, epoch, COMPACTION_S):
            compact_once(self._context.lake)
        if _passes(before, epoch, PACE.period_s):
            pace = replace(PACE, settle_s=self._clock.ago(PACE.settle_s), files_s=self._clock.ago(PACE.files_s))
            age = lambda: int(self._clock.ago(RETENTION_S) * 1000)  # noqa: E731
            while Retention(self._context.store, self._context.coordinator, age, pace).run_once():
                pass


def _passes(before: int, epoch: int, seconds: float) -> bool:
    return int(epoch * EPOCH_S / seconds) > int(before * EPOCH_S / seconds)


@dataclass(frozen=True)
class Sample:
    """How large the server is at a moment, and what the epochs took since the last one."""

    files: int  # on disk
    listed_files: int  # of data and of deletes, that the catalog names
    catalog_rows: int  # in all tables that DuckLake keeps, but for
    inlined_rows: int  # those that are not worth a file yet, and deletes
    catalog_bytes: int  # as they would be without its log
    memory_bytes: int
    times_ms: list[float]  # of the statements of a client, and the barrier that takes them to the views


def catalog_of(directory: Path) -> tuple[dict[str, int], int]:
    """How many rows each table of DuckLake's has, and the bytes of all: of a copy, which is deleted."""
    with closing(duckdb.connect(str(directory / "catalog.ducklake"))) as copy:
        names = copy.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        counts = {name: copy.execute(f'SELECT count(*) FROM "{name}"').fetchone() for (name,) in names}
    size = (directory / "catalog.ducklake").stat().st_size
    shutil.rmtree(directory)
    return {name: row[0] for name, row in counts.items() if row}, size


def sample(context: Context, scratch: Path, times_ms: list[float], log: TextIO) -> Sample:
    scratch.mkdir()
    for path in context.lake.directory.glob("catalog.ducklake*"):
        shutil.copy(path, scratch)
    # In a process of its own, whose memory is not counted.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        rows, catalog_bytes = pool.submit(catalog_of, scratch).result()
    inlined = sum(count for name, count in rows.items() if name.startswith(INLINED))
    taken = Sample(
        sum(1 for _ in context.lake.data_path.rglob("*.parquet")),
        rows["ducklake_data_file"] + rows["ducklake_delete_file"],
        sum(rows.values()) - inlined,
        inlined,
        catalog_bytes,
        int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE"),
        times_ms,
    )
    print(json.dumps(asdict(taken) | {"rows": rows}), file=log, flush=True)
    return taken


def summary(samples: Sequence[Sample]) -> dict[str, float]:
    """The most of each number, and what half of the epochs and all but a hundredth of them took."""
    times = [ms for taken in samples for ms in taken.times_ms]
    found = {name: max(getattr(s, name) for s in samples) for name in GROWTH if not name.endswith("ms")}
    return found | {"p50_ms": statistics.median(times), "p99_ms": statistics.quantiles(times, n=100)[-1]}


def epoch_ms(context: Context, client: Client, epoch: int) -> float:
    started = time.perf_counter()
    run(client, *changes(epoch))
    context.coordinator.barrier()
    return 1000 * (time.perf_counter() - started)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_a_day(tmp_path: Path) -> None:
    samples: list[Sample] = []
    with opened(tmp_path / "data") as (context, client), open(LOG, "a") as log:
        for work in context.background:
            work.stop()
        run(client, *TABLES, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()))
        clock, times = Clock(), []
        upkeep = Upkeep(context, clock)
        for epoch in range(1, EPOCHS + 1):
            times.append(epoch_ms(context, client, epoch))
            clock.tick()
            upkeep.between(epoch - 1, epoch)
            if epoch * 100 // EPOCHS > (epoch - 1) * 100 // EPOCHS:
                samples.append(sample(context, tmp_path / "copy", times, log))
                times = []
        for name, query in VIEWS.items():
            check(client, name, query)
    found = sparkwave("check", "--views", "--data", tmp_path / "data")
    assert found.returncode == 0, found.stdout
    early, late = summary(samples[EARLY]), summary(samples[LATE])
    print(early, late, sep="\n")
    grown = {name: (early[name], late[name]) for name, most in GROWTH.items() if late[name] > most * early[name]}
    assert not grown
    assert max(taken.inlined_rows for taken in samples) < 3 * INLINED_ROWS
