"""What an epoch costs as tables, views and connections grow: FLUSH after some changes."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from typing import Any

import psycopg

from bench.measuring import Settings, digits, percentile, seconds, spread
from bench.results import Aim, Lines, Table
from bench.sql import scalar
from sparkwave.server.demo.local_server import LocalServer, local_server

Connection = psycopg.Connection[Any]
CHANGES = (1, 100, 10_000)
SAMPLES = 3
VIEWS = (1, 10, 50, 200)
AFFECTED = 5
CONNECTIONS = (1, 100, 500)
LOOKUP = "SELECT name FROM customers WHERE id = 7"
# The most that an epoch may cost more where only what it does not touch has grown; noise is within it.
MOST_GROWTH = 1.5

# Views by operator; {table} is a table of orders.
OPERATORS: dict[str, str] = {
    "join": "SELECT o.id, o.price, c.name, c.region FROM {table} AS o JOIN customers AS c ON c.id = o.customer_id",
    "aggregation": """SELECT product, count(*) AS orders, sum(quantity) AS pieces, max(price) AS top
                      FROM {table} GROUP BY product""",
    "top-n": "SELECT id, price, customer_id FROM {table} ORDER BY price DESC, id LIMIT 100",
}
_CUSTOMERS = (
    "CREATE TABLE customers (id INT PRIMARY KEY, name VARCHAR, region VARCHAR)",
    "INSERT INTO customers SELECT i, 'customer ' || i, 'region ' || i % 20 FROM range(1000) r(i)",
)
_CREATE = """CREATE TABLE {table} (
    id BIGINT PRIMARY KEY, customer_id INT, product INT, quantity INT, price DOUBLE PRECISION, ordered_at TIMESTAMP)"""
_FILL = """INSERT INTO {table}
    SELECT i, (i * 7919) % 1000, (i * 104729) % 200000, 1 + i % 9, ((i * 31) % 10007) / 100.0,
           TIMESTAMP '2024-01-01 00:00:00' + (i % 31536000) * INTERVAL '1 second' FROM range({rows}) r(i)"""
_INSERT = """INSERT INTO {table} SELECT {first} + i, i % 1000, i % 200000, 1, 50.25, TIMESTAMP '2025-01-01 00:00:00'
    FROM range({count}) r(i)"""
# Half of the changes are new orders; the others give orders all over the table another price.
_UPDATE = """UPDATE {table} SET price = {price}
    WHERE id IN (SELECT (i * {stride} + {start}) % {rows} FROM range({count}) r(i))"""


def measure(settings: Settings) -> Iterator[Table]:
    """Epochs by rows, by views and by connections."""
    sizes = tuple(rows for rows in (settings.rows // 10, settings.rows))
    with (
        local_server("--spark-start", "on_demand", "--spark-memory-mib", str(settings.memory_mib)) as server,
        server.connect() as connection,
    ):
        connection.execute("ALTER SYSTEM SET barrier_interval_ms = 3600000")
        connection.execute("ALTER SYSTEM SET backfill_engine = auto")
        connection.execute("ALTER SYSTEM SET streaming_duckdb_max_rows = 1000000000")
        connection.execute("ALTER SYSTEM SET streaming_engine = duckdb")
        for statement in _CUSTOMERS:
            connection.execute(statement)
        yield _by_rows(connection, sizes)
        yield _by_views(connection, VIEWS[:2] if settings.is_quick else VIEWS)
        yield _by_connections(server, connection, CONNECTIONS)


def _by_rows(connection: Connection, sizes: tuple[int, ...]) -> Table:
    for size in sizes:
        connection.execute(_CREATE.format(table=f"orders_{size}"))
        connection.execute(_FILL.format(table=f"orders_{size}", rows=size))
    found: dict[tuple[str, int], dict[int, list[float]]] = {}
    for operator, query in OPERATORS.items():
        for size in sizes:
            table = f"orders_{size}"
            connection.execute(f"CREATE MATERIALIZED VIEW measured AS {query.format(table=table)}")
            for changes in CHANGES:
                # The first epoch of a size compiles its program.
                times = [_epoch(connection, table, size, changes, sample) for sample in range(SAMPLES + 1)][1:]
                found.setdefault((operator, changes), {})[size] = times
            connection.execute("DROP MATERIALIZED VIEW measured")
    rows, growth = [], {}
    for (operator, changes), of in found.items():
        first, last = statistics.median(of[sizes[0]]), statistics.median(of[sizes[-1]])
        growth[f"{operator}, {changes:,} changes"] = last / first
        rows.append((operator, changes, first, last, last / first, spread(of[sizes[-1]])))
    worst = max(growth, key=lambda name: growth[name])
    return Table(
        "FLUSH after some changes, by rows of the table, ms",
        f"Half of the changes are inserts, half updates all over the table; median of {SAMPLES}, on DuckDB. Ten times "
        "the rows should cost the same.",
        ("operator", "changes", *(f"{size:,} rows" for size in sizes), "growth", "spread of the last"),
        rows,
        aims=(
            Aim("an epoch over ten times the rows", f"<= {MOST_GROWTH} x",
                f"{digits(growth[worst])} x at most ({worst})", growth[worst] <= MOST_GROWTH),
        ),
    )  # fmt: skip


def _epoch(connection: Connection, table: str, rows: int, changes: int, sample: int) -> float:
    first, moment = time.time_ns() // 1000, 60 + sample
    inserted, updated = changes - changes // 2, changes // 2
    connection.execute(_INSERT.format(table=table, first=first, count=inserted))
    if updated:
        stride = max(rows // updated, 1)
        connection.execute(
            _UPDATE.format(table=table, price=moment, stride=stride, start=sample, rows=rows, count=updated)
        )
    return 1000 * seconds(connection.execute, "FLUSH")


def _by_views(connection: Connection, counts: tuple[int, ...]) -> Table:
    """Views over two tables: few over one, which changes first, and ever more over the other."""
    for table in ("few", "many"):
        connection.execute(_CREATE.format(table=table))
        connection.execute(_FILL.format(table=table, rows=10_000))
    for view in range(AFFECTED):
        connection.execute(f"CREATE MATERIALIZED VIEW few_{view} AS {OPERATORS['aggregation'].format(table='few')}")
    made, rows = 0, []
    lines: dict[str, list[tuple[float, float]]] = {f"{AFFECTED} of them change": [], "all change": []}
    for count in counts:
        for view in range(made, count):
            query = (
                f"SELECT customer_id, count(*) AS orders, sum(price) + {view} AS total FROM many GROUP BY customer_id"
            )
            connection.execute(f"CREATE MATERIALIZED VIEW many_{view} AS {query}")
        made = count
        of_few = [_epoch(connection, "few", 10_000, 1, sample) for sample in range(SAMPLES + 1)][1:]
        of_many = [_epoch(connection, "many", 10_000, 1, sample) for sample in range(SAMPLES + 1)][1:]
        few, many = statistics.median(of_few), statistics.median(of_many)
        rows.append((count, few, spread(of_few), many, spread(of_many), many / count))
        lines[f"{AFFECTED} of them change"].append((count + AFFECTED, few))
        lines["all change"].append((count, many))
    growth = rows[-1][1] / rows[0][1]
    return Table(
        "FLUSH after one INSERT, by number of views, ms",
        f"{AFFECTED} aggregations over one table and ever more over another, of 10,000 rows; median of {SAMPLES}.",
        ("views", f"{AFFECTED} others change", "spread", "all of them change", "spread", "of that a view"),
        rows,
        Lines("views", "views", "ms", lines),
        (
            Aim(f"an epoch of {AFFECTED} views beside {counts[-1]} idle ones, to beside {counts[0]}",
                f"<= {MOST_GROWTH} x", f"{digits(growth)} x", growth <= MOST_GROWTH),
        ),
    )  # fmt: skip


def _by_connections(server: LocalServer, connection: Connection, counts: tuple[int, ...]) -> Table:
    rows = []
    with contextlib.ExitStack() as open_:
        opened = 0
        for count in counts:
            started = time.perf_counter()
            for _ in range(count - opened):
                scalar(open_.enter_context(server.connect()), "SELECT 1")
            each_ms = 1000 * (time.perf_counter() - started) / max(count - opened, 1)
            opened = count
            queries = [1000 * seconds(scalar, connection, LOOKUP) for _ in range(220)][20:]
            epochs = [_epoch(connection, "few", 10_000, 1, sample) for sample in range(SAMPLES)]
            rows.append((count, each_ms, percentile(queries, 50), percentile(queries, 99), statistics.median(epochs)))
    growth = rows[-1][2] / rows[0][2]
    return Table(
        "By number of open connections, ms",
        f"A lookup, 200 times, and FLUSH after one INSERT, median of {SAMPLES}, while so many others are idle.",
        ("connections", "to open one", "lookup p50", "p99", "FLUSH"),
        rows,
        aims=(
            Aim(f"a lookup beside {counts[-1]} connections, to beside {counts[0]}", f"<= {MOST_GROWTH} x",
                f"{digits(growth)} x", growth <= MOST_GROWTH),
        ),
    )  # fmt: skip
