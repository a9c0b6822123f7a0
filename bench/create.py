"""Queries computed once: a Snapshot backfill, plain Spark, PostgreSQL's CREATE MATERIALIZED VIEW, DuckDB."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import duckdb
import psycopg

from bench import datasets
from bench.answers import are_same
from bench.datasets import Dataset, Workload
from bench.measuring import Settings, digits, geometric_mean, seconds, spread
from bench.plain_spark import PlainSpark
from bench.postgres import NOTE, postgres
from bench.results import Aim, Bars, Table
from bench.sql import DEFAULT_GROUP_PORT, has_join, is_portable, scalar, to_duckdb
from examples.local_server import local_server

MOST_WITH_JOIN, MOST_WITHOUT = 1.5, 1.1
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
        port = int(scalar(connection, DEFAULT_GROUP_PORT))
        connection.execute(f"CREATE MATERIALIZED VIEW warm_up AS {workload.warm_up}")
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        found, same, engine = {}, {}, {}
        with PlainSpark(port, files, server.directory / "plain") as plain:
            plain.run(workload.warm_up)
            for number, (view, query) in enumerate(data.queries.items()):
                notices.clear()
                found[view], same[view] = _query(view, query, connection, plain, beside, duck, turns, number % 2 == 0)
                engine[view] = "DuckDB" if any("DuckDB" in notice for notice in notices) else "Spark"
                print(f"  {view}: " + ", ".join(f"{system} {s:.2f}" for system, s in found[view].items()), flush=True)
        rows = [_row(view, engine[view], found[view], same[view]) for view in found]
    return _table(workload.title(size), workload.name, data, found, engine, rows, load_s, turns)


def _query(
    name: str, query: str, connection: psycopg.Connection, plain: PlainSpark, other: psycopg.Connection | None,
    duck: duckdb.DuckDBPyConnection, turns: int, is_first: bool,
) -> tuple[dict[str, float], str]:  # fmt: skip
    """Seconds of each system that has all the query's functions, the best of its turns; and whether the answers are
    the same. In the first turn Sparkwave is before plain Spark if `is_first`, in the next after it."""
    create = f"CREATE MATERIALIZED VIEW {name} WITH (backfill_strategy = 'snapshot') AS {query}"
    times: dict[str, list[float]] = {}
    counts = set()

    def with_sparkwave() -> None:
        times.setdefault("Sparkwave", []).append(_made_again(connection, name, create))
        counts.add(scalar(connection, f"SELECT count(*) FROM {name}"))

    def with_plain_spark() -> None:
        if is_portable(query):
            plain.clear()
            times.setdefault("plain Spark", []).append(seconds(plain.run, query))
            counts.add(plain.rows())

    for turn in range(turns):
        on_spark = (with_sparkwave, with_plain_spark)
        for run in on_spark if is_first == (turn % 2 == 0) else on_spark[::-1]:
            run()
        if is_portable(query):
            table = f"CREATE TABLE {name} AS {to_duckdb(query)}"
            times.setdefault("DuckDB", []).append(seconds(duck.execute, table))
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
    return {system: min(found) for system, found in times.items()}, "; ".join(differences) or "same"


def _made_again(connection: psycopg.Connection, name: str, create: str) -> float:
    """Seconds to make a view, which may be there from the turn before."""
    connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS {name}")
    return seconds(connection.execute, create)


def _row(name: str, engine: str, times: dict[str, float], same: str) -> tuple[str | float | None, ...]:
    ours, plain, theirs = times["Sparkwave"], times.get("plain Spark"), times.get("PostgreSQL")
    return (
        name,
        engine,
        ours,
        plain,
        plain and ours / plain,
        theirs,
        theirs and theirs / ours,
        times.get("DuckDB"),
        same,
    )


def _table(
    title: str,
    name: str,
    data: Dataset,
    found: dict[str, dict[str, float]],
    engine: dict[str, str],
    rows: list[tuple[str | float | None, ...]],
    load_s: float,
    turns: int,
) -> Table:
    aims = []
    joins = {view for view, query in data.queries.items() if has_join(query)}
    for what, most, views in (("with", MOST_WITH_JOIN, joins), ("without", MOST_WITHOUT, found.keys() - joins)):
        ratios = [
            times["Sparkwave"] / times["plain Spark"]
            for view, times in found.items()
            if engine[view] == "Spark" and view in views and "plain Spark" in times
        ]
        if ratios:
            mean = geometric_mean(ratios)
            measured = f"{mean:.2f} x ({len(ratios)} views, {spread(ratios)})"
            aims.append(
                Aim(f"{title}, Snapshot backfills on Spark {what} joins", f"<= {most} x plain Spark", measured,
                    mean <= most)
            )  # fmt: skip
    against = [
        times["PostgreSQL"] / times["Sparkwave"]
        for view, times in found.items()
        if "PostgreSQL" in times and view in joins
    ]
    if against:
        ahead = sum(ratio > 1 for ratio in against)
        aims.append(
            Aim(f"{title}, joins, PostgreSQL's CREATE to a backfill", "> 1 x",
                f"{digits(geometric_mean(against))} x; ahead in {ahead} of {len(against)}", geometric_mean(against) > 1)
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
        "backfills, durable and from then on maintained; those with expressions not proven equal on both engines run "
        "in process on DuckDB. Plain Spark runs in the same application over "
        f"Parquet files and writes such; DuckDB has its own tables and as many threads. {NOTE} Its foreign keys have "
        "indexes. The last column says whether all have as many rows and PostgreSQL the same ones.",
        (
            "query",
            "filled on",
            "Sparkwave",
            "plain Spark",
            "to plain",
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
