"""What an epoch costs: how long FLUSH takes after some changes, over tables of several sizes, on each engine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg

ENGINES = ("duckdb", "spark")
CHANGES = (1, 100, 10_000)
SAMPLES = 3

# Views by operator; {table} is a table of orders, joined to the customers of the other measurements.
OPERATORS: dict[str, str] = {
    "join": "SELECT o.id, o.price, c.name, c.region FROM {table} AS o JOIN customers AS c ON c.id = o.customer_id",
    "aggregation": """SELECT product, count(*) AS orders, sum(quantity) AS pieces, max(price) AS top
                      FROM {table} GROUP BY product""",
    "top-n": "SELECT id, price, customer_id FROM {table} ORDER BY price DESC, id LIMIT 100",
}
# Half of the changes are new orders; the others give orders all over the table another price.
_CREATE = """CREATE TABLE {table} (
    id BIGINT PRIMARY KEY, customer_id INT, product INT, quantity INT, price DOUBLE PRECISION, ordered_at TIMESTAMP)"""
_FILL = """INSERT INTO {table}
    SELECT i, (i * 7919) % 1000, (i * 104729) % 200000, 1 + i % 9, ((i * 31) % 10007) / 100.0,
           TIMESTAMP '2024-01-01 00:00:00' + (i % 31536000) * INTERVAL '1 second' FROM range({rows}) r(i)"""
_INSERT = """INSERT INTO {table} SELECT {first} + i, i % 1000, i % 200000, 1, 50.25, TIMESTAMP '2025-01-01 00:00:00'
    FROM range({count}) r(i)"""
_UPDATE = """UPDATE {table} SET price = {price}
    WHERE id IN (SELECT (i * {stride} + {start}) % {rows} FROM range({count}) r(i))"""


@dataclass(frozen=True)
class Epochs:
    """The median time of an epoch, in ms, by number of rows in the table."""

    operator: str
    engine: str
    changes: int
    ms: dict[int, float]


def measure(connection: psycopg.Connection, sizes: tuple[int, ...]) -> Iterator[Epochs]:
    """Epochs of every operator, engine and number of changes; with one view at a time and no barrier but FLUSH's."""
    connection.execute("ALTER SYSTEM SET barrier_interval_ms = 3600000")
    try:
        for rows in sizes:
            connection.execute(_CREATE.format(table=f"orders_{rows}"))
            connection.execute(_FILL.format(table=f"orders_{rows}", rows=rows))
        for operator, query in OPERATORS.items():
            found: dict[tuple[str, int], dict[int, float]] = {}
            for rows in sizes:
                for key, ms in _of_view(connection, query, rows):
                    found.setdefault(key, {})[rows] = ms
            for (engine, changes), times in found.items():
                yield Epochs(operator, engine, changes, times)
    finally:
        connection.execute("ALTER SYSTEM SET barrier_interval_ms = DEFAULT")
        connection.execute("ALTER SYSTEM SET streaming_engine = DEFAULT")


def _of_view(connection: psycopg.Connection, query: str, rows: int) -> Iterator[tuple[tuple[str, int], float]]:
    table = f"orders_{rows}"
    connection.execute(f"CREATE MATERIALIZED VIEW measured AS {query.format(table=table)}")
    for engine in ENGINES:
        connection.execute(f"ALTER SYSTEM SET streaming_engine = '{engine}'")
        for changes in CHANGES:
            # The first epoch of a size compiles its program.
            times = [_epoch(connection, table, rows, changes, sample) for sample in range(SAMPLES + 1)][1:]
            yield (engine, changes), statistics.median(times)
    connection.execute("DROP MATERIALIZED VIEW measured")


def _epoch(connection: psycopg.Connection, table: str, rows: int, changes: int, sample: int) -> float:
    first, moment = time.time_ns() // 1000, 60 + sample
    inserted, updated = changes - changes // 2, changes // 2
    connection.execute(_INSERT.format(table=table, first=first, count=inserted))
    if updated:
        stride = max(rows // updated, 1)
        connection.execute(
            _UPDATE.format(table=table, price=moment, stride=stride, start=sample, rows=rows, count=updated)
        )
    start = time.perf_counter()
    connection.execute("FLUSH")
    return 1000 * (time.perf_counter() - start)
