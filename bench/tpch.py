"""TPC-H's queries computed once: a Snapshot backfill, plain Spark, PostgreSQL's CREATE MATERIALIZED VIEW, DuckDB."""

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
from bench.measuring import Settings, digits, geometric_mean, seconds, spread
from bench.plain_spark import PlainSpark
from bench.postgres import NOTE, postgres
from bench.results import Aim, Bars, Table
from bench.sql import DEFAULT_GROUP_PORT, scalar
from examples.local_server import local_server

WARM_UP = "SELECT o_orderpriority, count(*) AS n FROM orders GROUP BY o_orderpriority"
# The aim for views with a join, and nearly all of these have one.
MOST = 1.5
WITHOUT_JOIN, MOST_WITHOUT_JOIN = ("q01", "q06"), 1.1
LONGEST_S = 60


def measure(settings: Settings) -> Iterator[Table]:
    """Every query on all systems in turn."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-tpch-") as folder,
        local_server("--spark-memory-mib", str(settings.memory_mib)) as server,
        postgres() as other,
        duckdb.connect(str(Path(folder) / "tpch.duckdb"), config={"threads": os.cpu_count() or 1}) as duck,
        server.connect() as connection,
    ):
        data = datasets.tpch(Path(folder), settings.scale)
        load_s = seconds(data.load, connection)
        for table, file in data.parquet.items():
            duck.execute(f"CREATE TABLE {table} AS FROM '{file}'")
        beside = other.connect() if other else None
        if beside is not None:
            data.load(beside, is_postgres=True)
            beside.execute(f"SET statement_timeout = '{LONGEST_S}s'")
        files = {table: [str(file)] for table, file in data.parquet.items()}
        port = int(scalar(connection, DEFAULT_GROUP_PORT))
        connection.execute(f"CREATE MATERIALIZED VIEW warm_up AS {WARM_UP}")
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        found, same, engine = {}, {}, {}
        with PlainSpark(port, files, server.directory / "plain") as plain:
            plain.run(WARM_UP)
            for name, query in data.queries.items():
                notices.clear()
                found[name], same[name] = _query(name, query, connection, plain, beside, duck)
                engine[name] = "DuckDB" if any("DuckDB" in notice for notice in notices) else "Spark"
                print(f"  {name}: " + ", ".join(f"{system} {s:.2f}" for system, s in found[name].items()), flush=True)
        rows = [_row(name, engine[name], found[name], same[name]) for name in found]
    yield _table(found, engine, rows, settings.scale, data.rows, load_s)


def _query(
    name: str, query: str, connection: psycopg.Connection, plain: PlainSpark, other: psycopg.Connection | None,
    duck: duckdb.DuckDBPyConnection,
) -> tuple[dict[str, float], str]:  # fmt: skip
    """Seconds of each system, and whether the answers are the same."""
    what = {
        "Sparkwave": lambda: connection.execute(
            f"CREATE MATERIALIZED VIEW {name} WITH (backfill_strategy = 'snapshot') AS {query}"
        ),
        "plain Spark": lambda: plain.run(query),
        "DuckDB": lambda: duck.execute(f"CREATE TABLE {name} AS {query}"),
    }
    plain.clear()
    times = {system: seconds(make) for system, make in what.items()}
    ours = scalar(connection, f"SELECT count(*) FROM {name}")
    counts = {plain.rows(), duck.table(name).count("*").fetchall()[0][0]}
    differences = [] if counts == {ours} else [f"{ours} rows, others {counts}"]
    if other is not None:
        try:
            times["PostgreSQL"] = seconds(other.execute, f"CREATE MATERIALIZED VIEW {name} AS {query}")
            if not are_same(connection, other, name):
                differences.append("PostgreSQL's rows differ")
        except psycopg.errors.QueryCanceled:
            times["PostgreSQL"] = LONGEST_S
            differences.append(f"PostgreSQL was stopped after {LONGEST_S} s")
    connection.execute(f"DROP MATERIALIZED VIEW {name}")
    return times, "; ".join(differences) or "same"


def _row(name: str, engine: str, times: dict[str, float], same: str) -> tuple[str | float | None, ...]:
    ours, plain, theirs = times["Sparkwave"], times["plain Spark"], times.get("PostgreSQL")
    return name, engine, ours, plain, ours / plain, theirs, theirs / ours if theirs else None, times["DuckDB"], same


def _table(
    found: dict[str, dict[str, float]],
    engine: dict[str, str],
    rows: list[tuple[str | float | None, ...]],
    scale: float,
    size: int,
    load_s: float,
) -> Table:
    aims = []
    for what, most, has_join in (("with joins", MOST, True), ("without", MOST_WITHOUT_JOIN, False)):
        ratios = [
            times["Sparkwave"] / times["plain Spark"]
            for name, times in found.items()
            if engine[name] == "Spark" and (name not in WITHOUT_JOIN) == has_join
        ]
        if ratios:
            mean = geometric_mean(ratios)
            measured = f"{mean:.2f} x ({len(ratios)} views, {spread(ratios)})"
            aims.append(
                Aim(f"TPC-H Snapshot backfills on Spark {what}", f"<= {most} x plain Spark", measured, mean <= most)
            )
    against = [times["PostgreSQL"] / times["Sparkwave"] for name, times in found.items()
               if "PostgreSQL" in times and name not in WITHOUT_JOIN]  # fmt: skip
    if against:
        ahead = sum(ratio > 1 for ratio in against)
        aims.append(
            Aim("TPC-H joins, PostgreSQL's CREATE to a backfill", "> 1 x",
                f"{digits(geometric_mean(against))} x; ahead in {ahead} of {len(against)}", geometric_mean(against) > 1)
        )  # fmt: skip
    systems = ("Sparkwave", "plain Spark", "PostgreSQL", "DuckDB")
    losses = []
    for system in systems[1:]:
        sooner = [name for name, times in found.items() if times.get(system, math.inf) < times["Sparkwave"]]
        if sooner:
            losses.append(
                f"making TPC-H's views: {system} is sooner in {len(sooner)} of {len(found)} ({', '.join(sooner)})."
            )
    series = {system: [times.get(system) for times in found.values()] for system in systems}
    return Table(
        f"TPC-H at scale factor {scale:g}: each view made once, s",
        f"{size:,} orders and lines, loaded by COPY in {load_s:.0f} s. One run of each, in turn, after a small one "
        "that does not count; means are geometric and the spread is over the queries. Sparkwave's are Snapshot "
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
        Bars("tpch", "s", list(found), series),
        aims,
        losses,
    )
