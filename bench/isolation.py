"""What running views feel of a backfill: in their own Spark application, and in one of its own (serverless)."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psutil
import psycopg

from bench.measuring import Settings, percentile, seconds
from bench.results import Cell, Table
from bench.workload import TABLES, VIEWS, View, fill
from sparkwave.server.demo.local_server import local_server

# A backfill that works for a while: ten groups of an order each.
HEAVY = """SELECT customer_id, product, quantity, count(*) AS orders, sum(price) AS revenue, min(note) AS first_note,
       max(note) AS last_note FROM orders GROUP BY customer_id, product, quantity"""
_SERVERLESS = "cloud.serverless_backfill_enabled = true"
CASES = {
    "no backfill": None,
    "in the same application": "cloud.serverless_backfill_enabled = false",
    "serverless": _SERVERLESS,
}
# The server has half of the processors then, and a serverless group the others.
APART = {"no backfill, half of the cores": None, "serverless, on the other cores": _SERVERLESS}
_LOOK_S = 0.02
INSERT = "INSERT INTO orders (id, customer_id, product, quantity, price) VALUES ({id}, 1, 1, 1, 60)"
QUERY = "SELECT region, sum(orders), max(top) FROM by_region GROUP BY region"


@dataclass(frozen=True)
class Isolation:
    """Seconds of each barrier (a FLUSH after one INSERT) and of each query of a view, sorted; and of the backfill.

    `engine` is the one that maintains the views.
    """

    case: str
    engine: str
    barriers: tuple[float, ...]
    queries: tuple[float, ...]
    backfill_s: float


def measure(settings: Settings) -> Iterator[Table]:
    """Every case in turn, with the same views running."""
    with local_server("--spark-memory-mib", str(settings.memory_mib)) as server, server.connect() as connection:
        for create in TABLES:
            connection.execute(create)
        fill(connection, settings.rows)
        found = _all_cases(server.connect, VIEWS[:2], settings.samples / 3, CASES, ("duckdb", "spark"))
        if hasattr(os, "sched_setaffinity"):
            with _apart(server.process_id):
                found += _all_cases(server.connect, VIEWS[:2], settings.samples / 3, APART, ("duckdb",))
    rows: list[Sequence[Cell]] = []
    for case in found:
        times = [1000 * percentile(of, percent) for of in (case.barriers, case.queries) for percent in (50, 99)]
        rows.append((case.case, case.engine, len(case.barriers), *times, case.backfill_s))
    yield Table(
        "What running views feel of a backfill, ms",
        f"FLUSH after an INSERT, and a query of a view, over {settings.rows:,} rows with two views, while a view with "
        "a wide GROUP BY is filled. The last column is how long that took, in s. In the last two rows the server has "
        "half of the cores, and a serverless group the others.",
        ("backfill", "engine of the epochs", "samples", "FLUSH p50", "p99", "query p50", "p99", "backfill, s"),
        rows,
    )


@contextmanager
def _apart(server: int) -> Iterator[None]:
    """A context in which the server has half of the processors, and the processes that it starts have the others."""
    cores = sorted(os.sched_getaffinity(0))
    own, others = set(cores[: len(cores) // 2]), set(cores[len(cores) // 2 :])
    is_over = threading.Event()

    def place() -> None:
        while not is_over.wait(_LOOK_S):
            for process in psutil.Process(server).children(recursive=True):
                _place(process.pid, others)

    _place(server, own)
    placing = threading.Thread(target=place)
    placing.start()
    try:
        yield
    finally:
        is_over.set()
        placing.join()
        _place(server, set(cores))


def _place(process: int, cores: set[int]) -> None:
    """Let all threads of a process run on these processors only; threads and processes to come inherit that."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            if os.sched_getaffinity(int(thread)) != cores:
                os.sched_setaffinity(int(thread), cores)


def _all_cases(
    connect: Callable[[], psycopg.Connection],
    views: tuple[View, ...],
    rest_s: float,
    cases: Mapping[str, str | None],
    engines: Sequence[str],
) -> list[Isolation]:
    """Every case on some engines; at rest for so many seconds."""
    with connect() as own, connect() as other:
        own.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
        for view in views:
            own.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {view.name} AS {view.query}")
        found: list[Isolation] = []
        for engine in engines:
            own.execute(f"ALTER SYSTEM SET streaming_engine = {engine}")
            found += [_measure(own, other, engine, case, option, rest_s) for case, option in cases.items()]
        own.execute("ALTER SYSTEM SET streaming_engine = DEFAULT")
        own.execute("ALTER SYSTEM SET serverless_backfill_enabled = DEFAULT")
    return found


def _measure(
    own: psycopg.Connection, other: psycopg.Connection, engine: str, case: str, option: str | None, rest_s: float
) -> Isolation:
    create = f"CREATE MATERIALIZED VIEW heavy WITH ({option}) AS {HEAVY}"
    work = (lambda: time.sleep(rest_s)) if option is None else (lambda: other.execute(create))
    thread = threading.Thread(target=work)
    barriers, queries = [], []
    start = time.perf_counter()
    thread.start()
    while thread.is_alive():
        own.execute(INSERT.format(id=time.time_ns()))
        barriers.append(seconds(own.execute, "FLUSH"))
        queries.append(seconds(own.execute, QUERY))
    backfill_s = time.perf_counter() - start
    own.execute("DROP MATERIALIZED VIEW IF EXISTS heavy")
    return Isolation(case, engine, tuple(sorted(barriers)), tuple(sorted(queries)), backfill_s)
