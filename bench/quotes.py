"""How good quotes of backfills are: EXPLAIN (BACKFILL, COST) of a view, and then what its CREATE took.

Views of TPC-H and Nexmark over two scales are drawn. The first ten are only created; each of the others is quoted and
then created, twice. In process and on Spark.
"""

from __future__ import annotations

import json
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from bench import datasets
from bench.measuring import Settings, seconds
from bench.results import Aim, Cell, Table
from sparkwave.server.demo.local_server import local_server

FIRST, QUOTED, SEED = 10, 25, 4
WITHIN, ERROR, LONGEST_S = 0.8, 0.25, 1.0
ENGINES = {"in process": ("auto", 10**9), "on Spark": ("spark", 0)}


def measure(settings: Settings) -> Iterator[Table]:
    """Quotes and times of all views."""
    scales = ((0.01, 20_000), (0.05, 100_000)) if settings.is_quick else ((0.1, 100_000), (0.5, 500_000))
    with (
        tempfile.TemporaryDirectory(prefix="bench-quotes-") as folder,
        local_server() as server,
        server.connect() as connection,
    ):
        data = {}
        for scale, events in scales:
            for workload, size in ((datasets.TPCH, scale), (datasets.NEXMARK, events)):
                schema = f"{workload.name}_{size}".replace(".", "_")
                (Path(folder) / schema).mkdir()
                data[schema] = workload.make(Path(folder) / schema, size)
                connection.execute(f"CREATE SCHEMA {schema}")
                connection.execute(f"SET search_path = {schema}")
                data[schema].load(connection)
        for engine, (name, rows) in ENGINES.items():
            connection.execute(f"ALTER SYSTEM SET backfill_engine = {name}")
            connection.execute(f"ALTER SYSTEM SET backfill_in_process_rows = {rows}")
            _create(connection, next(iter(data)), "warm_up", datasets.TPCH.warm_up)
            yield _measure(engine, connection, data)


def _measure(engine: str, connection: psycopg.Connection, data: dict[str, datasets.Dataset]) -> Table:
    views = [(schema, name) for schema, dataset in data.items() for name in dataset.queries]
    random.Random(SEED).shuffle(views)
    for schema, name in views[:FIRST]:
        _create(connection, schema, name, data[schema].queries[name])
    rows: list[tuple[Cell, ...]] = []
    errors, noise, quoting, within = [], [], [], 0
    for schema, name in views[FIRST : FIRST + QUOTED]:
        query = data[schema].queries[name]
        started = time.perf_counter()
        low, middle, high = _quote(connection, schema, query)
        quoting.append(time.perf_counter() - started)
        took = _create(connection, schema, name, query)
        again = _create(connection, schema, name, query)
        errors.append(abs(took - middle) / took)
        noise.append(abs(took - again) / took)
        is_within = low <= took <= high
        within += is_within
        rows.append((f"{schema} {name}", low, middle, high, took, again, "yes" if is_within else "no"))
        print(f"  {schema} {name}: {low:.2f} {middle:.2f} {high:.2f}, took {took:.2f}, {again:.2f}", flush=True)
    part, error, slowest = within / len(rows), statistics.median(errors), max(quoting)
    return Table(
        f"Quotes of backfills {engine}, s",
        f"After {FIRST} finished backfills, each of {QUOTED} views was quoted and then created, twice: the second time "
        f"differed by {statistics.median(noise):.0%} (median), which no quote can know. "
        f"A quote took {statistics.median(quoting):.2f} s (median).",
        ("view", "10 %", "middle", "90 %", "took", "again", "within"),
        rows,
        aims=(
            Aim(f"within the band, {engine}", f">= {WITHIN:.0%}", f"{part:.0%}", part >= WITHIN),
            Aim(f"error of the middle, {engine}", f"<= {ERROR:.0%}", f"{error:.0%}", error <= ERROR),
            Aim(f"slowest quote, {engine}", f"<= {LONGEST_S:g} s", f"{slowest:.2f} s", slowest <= LONGEST_S),
        ),
    )


def _create(connection: psycopg.Connection, schema: str, name: str, query: str) -> float:
    connection.execute(f"SET search_path = {schema}")
    took = seconds(connection.execute, f"CREATE MATERIALIZED VIEW {name} AS {query}")
    connection.execute(f"DROP MATERIALIZED VIEW {name}")
    return took


def _quote(connection: psycopg.Connection, schema: str, query: str) -> tuple[float, float, float]:
    connection.execute(f"SET search_path = {schema}")
    rows = connection.execute(f"EXPLAIN (BACKFILL, COST, FORMAT JSON) CREATE MATERIALIZED VIEW v AS {query}").fetchall()
    found = json.loads("\n".join(line for (line,) in rows))
    [seconds_] = [engine["seconds"] for engine in found["engines"] if engine["taken"]]
    return seconds_["p10"], seconds_["p50"], seconds_["p90"]
