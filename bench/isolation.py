"""What running views feel of a backfill: in their own Spark application, and in one of its own (serverless)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg

from bench.workload import View

# A backfill that works for a while: ten groups of an order each.
HEAVY = """SELECT customer_id, product, quantity, count(*) AS orders, sum(price) AS revenue, min(note) AS first_note,
       max(note) AS last_note FROM orders GROUP BY customer_id, product, quantity"""
CASES = {
    "no backfill": None,
    "in the same application": "cloud.serverless_backfill_enabled = false",
    "serverless": "cloud.serverless_backfill_enabled = true",
}
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


def percentile(ordered: tuple[float, ...], percent: float) -> float:
    """The nearest-rank percentile."""
    return ordered[min(int(len(ordered) * percent / 100), len(ordered) - 1)]


def measure(connect: Callable[[], psycopg.Connection], views: tuple[View, ...], rest_s: float) -> list[Isolation]:
    """Every case in turn, with the same views running; at rest for so many seconds."""
    with connect() as own, connect() as other:
        own.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
        for view in views:
            own.execute(f"CREATE MATERIALIZED VIEW IF NOT EXISTS {view.name} AS {view.query}")
        found: list[Isolation] = []
        for engine in ("duckdb", "spark"):
            own.execute(f"ALTER SYSTEM SET streaming_engine = {engine}")
            found += [_measure(own, other, engine, case, rest_s) for case in CASES]
        own.execute("ALTER SYSTEM SET streaming_engine = DEFAULT")
        own.execute("ALTER SYSTEM SET serverless_backfill_enabled = DEFAULT")
    return found


def _measure(own: psycopg.Connection, other: psycopg.Connection, engine: str, case: str, rest_s: float) -> Isolation:
    option = CASES[case]
    create = f"CREATE MATERIALIZED VIEW heavy WITH ({option}) AS {HEAVY}"
    work = (lambda: time.sleep(rest_s)) if option is None else (lambda: other.execute(create))
    thread = threading.Thread(target=work)
    barriers, queries = [], []
    start = time.perf_counter()
    thread.start()
    while thread.is_alive():
        own.execute(INSERT.format(id=time.time_ns()))
        barriers.append(_seconds(own, "FLUSH"))
        queries.append(_seconds(own, QUERY))
    backfill_s = time.perf_counter() - start
    own.execute("DROP MATERIALIZED VIEW IF EXISTS heavy")
    return Isolation(case, engine, tuple(sorted(barriers)), tuple(sorted(queries)), backfill_s)


def _seconds(connection: psycopg.Connection, sql: str) -> float:
    start = time.perf_counter()
    connection.execute(sql)
    return time.perf_counter() - start
