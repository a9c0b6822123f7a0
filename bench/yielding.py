"""What running views feel of a backfill with and without `barrier_latency_target_ms`, and what that costs it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import psycopg

from bench.isolation import HEAVY, INSERT
from bench.measuring import Settings, digits, percentile, seconds
from bench.results import Aim, Cell, Table
from bench.workload import TABLES, VIEWS, fill
from sparkwave.server.demo.local_server import local_server

NONE, OFF, ON, ALONE = "no backfill", "target off", "target on", "no views"
# The system parameters that decide where a view is filled.
PLACES = {
    "default group": {"backfill_engine": "spark"},
    "in process": {"backfill_engine": "auto", "backfill_in_process_rows": "1000000000"},
}
READING = "SELECT 1 FROM rw_catalog.rw_ddl_progress WHERE progress LIKE 'Snapshot [%'"
# Seconds between two changes of the views' table.
REST_S = 0.05
# The target is so many times the middle of the FLUSHes without a backfill.
TARGET = 1.3


@dataclass
class Felt:
    """Seconds of the FLUSHes after an INSERT, and of the backfills, of all runs of a case.

    `reading` are those of the FLUSHes that lie within the reading of the snapshot, from its start to its last commit.
    """

    barriers: list[float] = field(default_factory=list)
    reading: list[float] = field(default_factory=list)
    backfills: list[float] = field(default_factory=list)


def measure(settings: Settings) -> Iterator[Table]:
    """All cases in turn, so often as there are runs, with the same views running."""
    with (
        local_server("--spark-memory-mib", str(settings.memory_mib)) as server,
        server.connect() as own,
        server.connect() as other,
    ):
        for create in TABLES:
            own.execute(create)
        fill(own, settings.rows)
        for view in VIEWS[:2]:
            own.execute(f"CREATE MATERIALIZED VIEW {view.name} AS {view.query}")
        for place, parameters in PLACES.items():
            for name, value in parameters.items():
                own.execute(f"ALTER SYSTEM SET {name} = {value}")
            yield _table(settings, place, *_measured(own, other, settings))


def _measured(own: psycopg.Connection, other: psycopg.Connection, settings: Settings) -> tuple[dict[str, Felt], int]:
    """Return what every case felt, and the target in ms."""
    found = {case: Felt() for case in (NONE, ALONE, OFF, ON)}
    _run(own, other, ALONE, Felt(), 0)  # Spark's start
    _run(own, other, NONE, found[NONE], settings.samples / 5)
    target_ms = round(TARGET * 1000 * percentile(found[NONE].barriers, 50))
    for _ in range(settings.runs):
        for case, felt in found.items():
            own.execute(f"ALTER SYSTEM SET barrier_latency_target_ms = {target_ms if case == ON else 0}")
            _run(own, other, case, felt, settings.samples / 5)
    own.execute("ALTER SYSTEM SET barrier_latency_target_ms = DEFAULT")
    return found, target_ms


def _run(own: psycopg.Connection, other: psycopg.Connection, case: str, felt: Felt, rest_s: float) -> None:
    """Run one case once; without a backfill for so many seconds."""

    def backfill() -> None:
        felt.backfills.append(seconds(other.execute, f"CREATE MATERIALIZED VIEW heavy AS {HEAVY}"))

    work = threading.Thread(target=backfill if case != NONE else lambda: time.sleep(rest_s))
    work.start()
    was_reading = False
    while work.is_alive() and case != ALONE:
        own.execute(INSERT.format(id=time.time_ns()))
        felt.barriers.append(seconds(own.execute, "FLUSH"))
        is_reading = case == NONE or bool(own.execute(READING).fetchall())
        if was_reading and is_reading:
            felt.reading.append(felt.barriers[-1])
        was_reading = is_reading
        time.sleep(REST_S)
    work.join()
    own.execute("DROP MATERIALIZED VIEW IF EXISTS heavy")


def _table(settings: Settings, place: str, found: dict[str, Felt], target_ms: int) -> Table:
    rows: list[Sequence[Cell]] = []
    for case, felt in found.items():
        flushes = [1000 * percentile(felt.barriers, p) if felt.barriers else None for p in (50, 90, 99)]
        reading = [1000 * percentile(felt.reading, p) if felt.reading else None for p in (50, 90, 99)]
        middle = percentile(felt.backfills, 50) if felt.backfills else None
        rows.append((case, len(felt.barriers), *flushes, len(felt.reading), *reading, len(felt.backfills), middle))
    quiet, on = (percentile(found[case].barriers, 99) for case in (NONE, ON))
    usual, slowed = (percentile(found[case].backfills, 50) for case in (OFF, ON))
    aims = [
        Aim(f"{place}: FLUSH p99 beside a backfill", "<= 1.3 x without", f"{digits(on / quiet)} x", on <= 1.3 * quiet),
        Aim(
            f"{place}: a backfill that gives way",
            "<= 2 x without a target",
            f"{digits(slowed / usual)} x",
            slowed <= 2 * usual,
        ),
    ]
    if found[NONE].reading and found[ON].reading:  # a short backfill may have none
        quiet, on = (percentile(found[case].reading, 99) for case in (NONE, ON))
        reading = f"{place}: the same while it reads"
        aims.insert(1, Aim(reading, "<= 1.3 x without", f"{digits(on / quiet)} x", on <= 1.3 * quiet))
    return Table(
        f"A backfill that gives way: {place}",
        f"FLUSH after an INSERT every {1000 * REST_S:.0f} ms, ms, over {settings.rows:,} rows with two views, while a "
        f"view with a wide GROUP BY is filled; barrier_latency_target_ms is {target_ms}, {TARGET} times the middle "
        "FLUSH without a backfill. The cases take turns; the load average of the machine was "
        f"{digits(os.getloadavg()[2])} in the last quarter of an hour. The FLUSHes while it reads are without "
        "those at its start and its end. The last column is the middle time of the backfills, in s.",
        ("case", "samples", "FLUSH p50", "p90", "p99", "reading", "p50", "p90", "p99", "backfills", "backfill, s"),
        rows,
        aims=aims,
    )
