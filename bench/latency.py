"""What an INSERT into an upstream feels of a backfill that reads it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import psycopg

from bench.sql import scalar
from bench.workload import View

FIRST_ID = 2_000_000_000


@dataclass(frozen=True)
class Latency:
    """Seconds of each INSERT of one row, sorted."""

    while_: str
    seconds: tuple[float, ...]


def measure(connection: psycopg.Connection, view: View, samples: int) -> list[Latency]:
    """INSERTs at rest, then while the view is filled by each of its strategies, for as long as that takes."""
    found = [Latency("at rest", _inserts(connection, 0, samples))]
    connection.execute("SET background_ddl = true")
    for number, strategy in enumerate(view.aims, start=1):
        connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS {view.name}")
        connection.execute(
            f"CREATE MATERIALIZED VIEW {view.name} WITH (backfill_strategy = '{strategy}') AS {view.query}"
        )
        found.append(Latency(strategy, _inserts(connection, number, None)))
    connection.execute("SET background_ddl = false")
    return found


def _inserts(connection: psycopg.Connection, run: int, samples: int | None) -> tuple[float, ...]:
    """So many INSERTs, or as many as there is time for while a job runs."""
    seconds: list[float] = []
    while (
        len(seconds) < samples
        if samples is not None
        else scalar(connection, "SELECT count(*) FROM rw_catalog.rw_ddl_progress")
    ):
        row = FIRST_ID + run * 1_000_000 + len(seconds)
        start = time.perf_counter()
        connection.execute(
            f"INSERT INTO orders (id, customer_id, product, quantity, price) VALUES ({row}, 1, 1, 1, 60)"
        )
        seconds.append(time.perf_counter() - start)
    return tuple(sorted(seconds))
