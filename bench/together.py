"""Eight views over one table that are created together, against one of them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import fmean

import psycopg

from bench.measuring import Settings, spread
from bench.results import Aim, Cell, Table
from bench.sql import scalar
from sparkwave.server.demo.local_server import local_server

MOST = 2.5
TABLE = (
    "CREATE TABLE sales (id bigint, customer int, region int, kind int, price decimal(18, 2), status varchar, "
    "at timestamp)"
)
FILL = """INSERT INTO sales SELECT i, i % 1000, i % 50, i % 20, (i % 100000) / 100.0, 'status ' || i % 8,
    timestamp '2024-01-01' + (i % 31536000) * interval '1 second' FROM generate_series(1, {}) AS g (i)"""
QUERIES = (
    "SELECT customer, count(*) AS n, sum(price) AS total FROM sales GROUP BY customer",
    "SELECT region, count(*) AS n, sum(price) AS total FROM sales GROUP BY region",
    "SELECT kind, avg(price) AS mean FROM sales GROUP BY kind",
    "SELECT status, max(price) AS most, min(price) AS least FROM sales GROUP BY status",
    "SELECT date_trunc('day', at) AS day, sum(price) AS total FROM sales GROUP BY date_trunc('day', at)",
    "SELECT kind, region, count(*) AS n FROM sales GROUP BY kind, region",
    "SELECT region, status, sum(price) AS total FROM sales GROUP BY region, status",
    "SELECT id, price FROM sales WHERE price > 990",
)


def measure(settings: Settings) -> Iterator[Table]:
    """Each view alone, then all of them in the background, in the default group and on serverless groups."""
    runs = 1 if settings.is_quick else settings.runs
    rows: list[tuple[Cell, ...]] = []
    aims: list[Aim] = []
    with local_server() as server, server.connect() as connection:
        connection.execute(TABLE)
        connection.execute(FILL.format(settings.rows))
        connection.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
        connection.execute("ALTER SYSTEM SET backfill_engine = spark")
        _create(connection, QUERIES[:1])  # the default group has started
        for place, is_serverless in (("default group", False), ("serverless", True)):
            connection.execute(f"SET enable_serverless_backfill = {is_serverless}")
            measured = [_run(connection, 1 if is_serverless else len(QUERIES)) for _ in range(runs)]
            one, eight = min(one for one, _ in measured), min(eight for _, eight in measured)
            ratio = eight / one
            rows.append((place, one, eight, ratio, spread([eight / one for one, eight in measured])))
            aims.append(Aim(f"eight views of one table, {place}", f"<= {MOST} x one", f"{ratio:.2f} x", ratio <= MOST))
    yield Table(
        "Eight views over one table, created together, s",
        f"Best of {runs}. One is the mean of each view alone (of the first alone where it is serverless, whose time is "
        "that of the group's start); eight are created in the background, one statement after the other, and all are "
        f"finished. The table has {settings.rows:,} rows.",
        ("backfill", "one", "eight", "eight to one", "spread"),
        rows,
        aims=tuple(aims),
    )


def _run(connection: psycopg.Connection, alone: int) -> tuple[float, float]:
    """Seconds of a view alone, and of all together."""
    return fmean(_create(connection, [query]) for query in QUERIES[:alone]), _create(connection, QUERIES)


def _create(connection: psycopg.Connection, queries: Sequence[str]) -> float:
    """Seconds until all views are there; they are dropped then."""
    connection.execute(f"SET background_ddl = {len(queries) > 1}")
    start = time.perf_counter()
    for number, query in enumerate(queries):
        connection.execute(f"CREATE MATERIALIZED VIEW v{number} AS {query}")
    connection.execute("WAIT")
    seconds = time.perf_counter() - start
    for number in range(len(queries)):
        assert scalar(connection, f"SELECT count(*) FROM v{number}")
        connection.execute(f"DROP MATERIALIZED VIEW v{number}")
    return seconds
