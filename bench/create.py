"""Queries computed once: a Snapshot backfill, plain Spark, PostgreSQL's CREATE MATERIALIZED VIEW, DuckDB."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import psycopg

from bench import datasets
from bench.answers import are_same
from bench.datasets import Dataset, Workload
from bench.measuring import Settings, digits, geometric_mean, seconds, spread
from bench.plain_spark import PlainSpark
from bench.postgres import NOTE, postgres
from bench.processor import cpu_seconds
from bench.results import Aim, Bars, Table
from bench.sql import has_join, is_portable, scalar, to_duckdb
from sparkwave.server.demo.local_server import local_server

# Of plain Spark's time, the geometric mean, and of its processor time; larger data leave the fixed cost behind.
MOST, MOST_LARGE, MOST_CPU = 0.35, {"tpch": 0.2, "nexmark": 0.3}, 0.2
LEAST_OF_POSTGRES = 1.5
LONGEST_S = 60
RUNS = {1: "One run", 2: "The better of two runs"}


def measure_tpch(settings: Settings) -> Iterator[Table]:
    """The 22 queries."""
    yield _measure(datasets.TPCH, settings.scale, settings)


def measure_nexmark(settings: Settings) -> Iterator[Table]:
    """Nexmark's queries that other databases have too."""
    yield _measure(datasets.NEXMARK, settings.events, settings)


def _measure(workload: Workload, size: float, settings: Settings) -> Table:
    """Every query on all systems in turn."""
    turns = 2 if settings.is_large else 1
    with (
        tempfile.TemporaryDirectory(prefix="bench-create-") as folder,
        local_server("--spark-memory-mib", str(settings.memory_mib)) as server,
        postgres() as other,
        duckdb.connect(str(Path(folder) / "beside.duckdb"), config={"threads": os.cpu_count() or 1}) as duck,
        server.connect() as connection,
    ):
        data = workload.make(Path(folder), size)
        load_s = seconds(data.load, connection)
        for table, file in data.parquet.items():
            duck.execute(f"CREATE TABLE {table} AS FROM '{file}'")
        beside = other.connect() if other else None
        if beside is not None:
            data.load(beside, is_postgres=True)
            beside.execute(f"SET statement_timeout = '{LONGEST_S}s'")
        files = {table: [str(file)] for table, file in data.parquet.items()}
        connection.execute("ALTER SYSTEM SET backfill_engine = spark")
        connection.execute(f"CREATE MATERIALIZED VIEW warm_up AS {workload.warm_up}")
        found, cpu, same = {}, {}, {}
        with PlainSpark(settings.memory_mib, files, Path(folder) / "plain") as plain:
            plain.run(workload.warm_up)
            systems = _Systems(connection, server.process_id, plain, beside, duck)
            for number, (view, query) in enumerate(data.queries.items()):
                found[view], cpu[view], same[view] = _query(view, query, systems, turns, number % 2 == 0)
                print(f"  {view}: {_told(found[view])}; CPU {_told(cpu[view])}", flush=True)
        rows = [_row(view, found[view], cpu[view], same[view]) for view in found]
    most = MOST_LARGE[workload.name] if settings.is_large else MOST
    return _table(workload.title(size), workload.name, data, found, cpu, rows, load_s, turns, most)


@dataclass(frozen=True)
class _Systems:
    """What is compared; `process_id` is of Sparkwave's server."""

    connection: psycopg.Connection
    process_id: int
    plain: PlainSpark
    other: psycopg.Connection | None
    duck: duckdb.DuckDBPyConnection


def _query(
    name: str, query: str, systems: _Systems, turns: int, is_first: bool
) -> tuple[dict[str, float], dict[str, float], str]:
    """Seconds of each system that has all the query's functions, the best of its turns; of processor time for those
    but PostgreSQL; and whether the answers are the same. In the first turn Sparkwave is before plain Spark if
    `is_first`, in the next after it."""
    create = f"CREATE MATERIALIZED VIEW {name} WITH (backfill_strategy = 'snapshot') AS {query}"
    connection, plain, other, duck = systems.connection, systems.plain, systems.other, systems.duck
    times: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    counts = set()

    def with_sparkwave() -> None:
        connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS {name}")
        before = cpu_seconds(systems.process_id)
        times.setdefault("Sparkwave", []).append(seconds(connection.execute, create))
        cpu.setdefault("Sparkwave", []).append(cpu_seconds(systems.process_id) - before)
        counts.add(scalar(connection, f"SELECT count(*) FROM {name}"))

    def with_plain_spark() -> None:
        if is_portable(query):
            plain.clear()
            before = cpu_seconds(plain.process_id)
            times.setdefault("plain Spark", []).append(seconds(plain.run, query))
            cpu.setdefault("plain Spark", []).append(cpu_seconds(plain.process_id) - before)
            counts.add(plain.rows())

    for turn in range(turns):
        on_spark = (with_sparkwave, with_plain_spark)
        for run in on_spark if is_first == (turn % 2 == 0) else on_spark[::-1]:
            run()
        if is_portable(query):
            table, before = f"CREATE TABLE {name} AS {to_duckdb(query)}", time.process_time()
            times.setdefault("DuckDB", []).append(seconds(duck.execute, table))
            cpu.setdefault("DuckDB", []).append(time.process_time() - before)
            counts |= set(duck.table(name).count("*").fetchall()[0])
            duck.execute(f"DROP TABLE {name}")
    differences = [f"rows: {sorted(counts)}"] if len(counts) > 1 else []
    if other is not None:
        view = f"CREATE MATERIALIZED VIEW {name} AS {query}"
        try:
            times["PostgreSQL"] = [_made_again(other, name, view) for _ in range(turns)]
        except psycopg.errors.QueryCanceled:
            times["PostgreSQL"] = [LONGEST_S]
            differences.append(f"PostgreSQL was stopped after {LONGEST_S} s")
        else:
            differences += [] if are_same(connection, other, name) else ["PostgreSQL's rows differ"]
            other.execute(f"DROP MATERIALIZED VIEW {name}")
    connection.execute(f"DROP MATERIALIZED VIEW {name}")
    best, least = ({system: min(found) for system, found in of.items()} for of in (times, cpu))
    return best, least, "; ".join(differences) or "same"


def _told(seconds_of: dict[str, float]) -> str:
    return ", ".join(f"{system} {s:.2f}" for system, s in seconds_of.items())


def _made_again(connection: psycopg.Connection, name: str, create: str) -> float:
    """Seconds to make a view, which may be there from the turn before."""
    connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS {name}")
    return seconds(connection.execute, create)


def _row(name: str, times: dict[str, float], cpu: dict[str, float], same: str) -> tuple[str | float | None, ...]:
    ours, plain, theirs = times["Sparkwave"], times.get("plain Spark"), times.get("PostgreSQL")
    plain_cpu = cpu.get("plain Spark")
    return (
        name,
        ours,
        plain,
        plain and ours / plain,
        cpu["Sparkwave"],
        plain_cpu,
        theirs,
        theirs and theirs / ours,
        times.get("DuckDB"),
        same,
    )


def _alone(found: dict[str, dict[str, float]], cpu: dict[str, dict[str, float]]) -> str:
    """What DuckDB takes alone, which no backfill with it can fall below."""
    time_ratio, cpu_ratio = (
        geometric_mean([of["DuckDB"] / of["plain Spark"] for of in each.values() if "plain Spark" in of])
        for each in (found, cpu)
    )
    if math.isnan(time_ratio):
        return ""
    return (
        f"DuckDB alone takes {digits(time_ratio)} x plain Spark's time and {digits(cpu_ratio)} x its processor time. "
    )


def _table(
    title: str,
    name: str,
    data: Dataset,
    found: dict[str, dict[str, float]],
    cpu: dict[str, dict[str, float]],
    rows: list[tuple[str | float | None, ...]],
    load_s: float,
    turns: int,
    most: float,
) -> Table:
    aims = []
    joins = {view for view, query in data.queries.items() if has_join(query)}
    for what, each, limit in (("to plain Spark", found, most), ("processor time to plain Spark's", cpu, MOST_CPU)):
        ratios = [of["Sparkwave"] / of["plain Spark"] for of in each.values() if of.get("plain Spark")]
        if ratios:
            mean = geometric_mean(ratios)
            measured = f"{mean:.2f} x ({len(ratios)} views, {spread(ratios)})"
            aims.append(Aim(f"{title}, backfills {what}", f"<= {limit} x", measured, mean <= limit))
    against = [
        times["PostgreSQL"] / times["Sparkwave"]
        for view, times in found.items()
        if "PostgreSQL" in times and view in joins
    ]
    if against:
        ahead, mean = sum(ratio > 1 for ratio in against), geometric_mean(against)
        aims.append(
            Aim(f"{title}, joins, PostgreSQL's CREATE to a backfill", f">= {LEAST_OF_POSTGRES} x",
                f"{digits(mean)} x; ahead in {ahead} of {len(against)}", mean >= LEAST_OF_POSTGRES)
        )  # fmt: skip
    systems = ("Sparkwave", "plain Spark", "PostgreSQL", "DuckDB")
    losses = []
    for system in systems[1:]:
        sooner = [view for view, times in found.items() if times.get(system, math.inf) < times["Sparkwave"]]
        if sooner:
            losses.append(
                f"{title}, making the views: {system} is sooner in {len(sooner)} of {len(found)} ({', '.join(sooner)})."
            )
    series = {system: [times.get(system) for times in found.values()] for system in systems}
    return Table(
        f"{title}: each view made once, s",
        f"{data.rows:,} {data.counted}, loaded by COPY in {load_s:.0f} s. {RUNS[turns]} of each, in turn, after a "
        "small one that does not count, with Sparkwave and plain Spark taking turns in going first; means are "
        "geometric and the spread is over the queries. Sparkwave's are Snapshot "
        "backfills on Spark, durable and from then on maintained. Plain Spark runs in an application of its own, with "
        "the same cores and all of the memory as its heap, over Parquet files and writes such; DuckDB has its own "
        f"tables and as many threads. {NOTE} Its foreign keys have indexes. Processor time, in CPU s, is that of the "
        f"server with its Spark, and of plain Spark's application. {_alone(found, cpu)}"
        "The last column says whether all have as many rows and PostgreSQL the same ones.",
        (
            "query",
            "Sparkwave",
            "plain Spark",
            "to plain",
            "CPU s",
            "plain's CPU s",
            "PostgreSQL",
            "times faster than it",
            "DuckDB",
            "answers",
        ),
        rows,
        Bars(f"create_{name}", "s", list(found), series),
        aims,
        losses,
    )
