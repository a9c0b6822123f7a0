"""How good quotes of backfills are: EXPLAIN (BACKFILL, COST) of a view, and then what its CREATE took.

Views of TPC-H and Nexmark over two scales are drawn. The first ten are only created; each of the others is quoted and
then created. In process and on Spark, each on a server of its own.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from bench import datasets
from bench.measuring import Settings, seconds
from bench.results import Aim, Table
from sparkwave.server.demo.local_server import local_server

FIRST, QUOTED, SEED = 10, 40, int(os.environ.get("QUOTES_SEED", 4))
WITHIN, ERROR = 0.8, 0.25
ENGINES = {"in process": ("backfill_in_process_rows", str(10**9)), "on Spark": ("backfill_engine", "spark")}
# Finished backfills are stored a moment later.
LONGEST_QUOTE_S = 1.0


def measure(settings: Settings) -> Iterator[Table]:
    """Quotes and times of all views."""
    scales = ((0.01, 20_000), (0.05, 100_000)) if settings.is_quick else ((0.1, 100_000), (0.5, 500_000))
    with tempfile.TemporaryDirectory(prefix="bench-quotes-") as folder:
        made = {}
        for scale, events in scales:
            for workload, size in ((datasets.TPCH, scale), (datasets.NEXMARK, events)):
                directory = Path(folder) / f"{workload.name}_{size}"
                directory.mkdir()
                made[f"{workload.name}_{size}".replace(".", "_")] = workload.make(directory, size)
        for engine, parameter in ENGINES.items():
            yield _measure(engine, parameter, made)


def _measure(engine: str, parameter: tuple[str, str], data: dict[str, datasets.Dataset]) -> Table:
    with local_server() as server, server.connect() as connection:
        for schema, dataset in data.items():
            connection.execute(f"CREATE SCHEMA {schema}")
            connection.execute(f"SET search_path = {schema}")
            dataset.load(connection)
        connection.execute(f"ALTER SYSTEM SET {parameter[0]} = {parameter[1]}")
        connection.execute("CREATE MATERIALIZED VIEW warm_up AS SELECT count(*) AS n FROM bid")
        views = [(schema, name) for schema, dataset in data.items() for name in dataset.queries]
        random.Random(SEED).shuffle(views)
        for schema, name in views[:FIRST]:
            _create(connection, schema, name, data[schema].queries[name])
        rows, errors, quoting, within = [], [], [], 0
        for schema, name in views[FIRST : FIRST + QUOTED]:
            query = data[schema].queries[name]
            started = time.perf_counter()
            quote = _quote(connection, schema, query)
            quoting.append(time.perf_counter() - started)
            took = _create(connection, schema, name, query)
            low, middle, high = (quote["seconds"][part] for part in ("p10", "p50", "p90"))
            errors.append(abs(took - middle) / took)
            within += low <= took <= high
            rows.append((f"{schema} {name}", low, middle, high, took, "yes" if low <= took <= high else "no"))
            print(f"  {schema} {name}: {low:.2f} {middle:.2f} {high:.2f}, took {took:.2f}", flush=True)
            if "QUOTES" in os.environ:
                with open(os.environ["QUOTES"], "a") as file:
                    print(json.dumps({"engine": engine, "view": f"{schema} {name}", "took": took, **quote}), file=file)
    part, error = within / len(rows), statistics.median(errors)
    slowest = max(quoting)
    return Table(
        f"Quotes of backfills {engine}, s",
        f"After {FIRST} finished backfills, {len(rows)} views were quoted, and then created. A quote took "
        f"{statistics.median(quoting):.2f} s, at most {slowest:.2f} s.",
        ("view", "10 %", "middle", "90 %", "took", "within"),
        rows,
        aims=(
            Aim(f"within the band {engine}", f">= {WITHIN:.0%}", f"{part:.0%}", part >= WITHIN),
            Aim(f"error of the middle {engine}", f"<= {ERROR:.0%}", f"{error:.0%}", error <= ERROR),
            Aim(f"slowest quote {engine}", f"<= {LONGEST_QUOTE_S:g} s", f"{slowest:.2f} s", slowest <= LONGEST_QUOTE_S),
        ),
    )


def _create(connection: psycopg.Connection, schema: str, name: str, query: str) -> float:
    connection.execute(f"SET search_path = {schema}")
    took = seconds(connection.execute, f"CREATE MATERIALIZED VIEW {name} AS {query}")
    connection.execute(f"DROP MATERIALIZED VIEW {name}")
    return took


def _quote(connection: psycopg.Connection, schema: str, query: str) -> dict[str, Any]:
    connection.execute(f"SET search_path = {schema}")
    rows = connection.execute(f"EXPLAIN (BACKFILL, COST, FORMAT JSON) CREATE MATERIALIZED VIEW v AS {query}").fetchall()
    found = json.loads("\n".join(line for (line,) in rows))
    return {"work": found["work"], **next(engine for engine in found["engines"] if engine["taken"])}
