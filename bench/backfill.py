"""Backfill against plain Spark: the same query over the same files with the same cores and memory, in turn."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import psycopg

from bench.latency import Latency
from bench.latency import measure as latencies
from bench.measuring import Settings, in_turn, percentile, seconds, spread
from bench.plain_spark import PlainSpark, table_files
from bench.results import Aim, Bars, Table
from bench.sql import scalar
from bench.workload import CUSTOMERS, TABLES, VIEWS, WARM_UP, View, fill
from sparkwave.server.demo.local_server import local_server

SERVERLESS = "serverless"
# What a CREATE over a small table may take.
MOST_FIXED_S, MOST_SMALL_S = 0.2, 0.25


def measure(settings: Settings) -> Iterator[Table]:
    """The three views by every strategy, then what INSERTs feel of a backfill."""
    with (
        local_server("--spark-memory-mib", str(settings.memory_mib)) as server,
        server.connect() as connection,
    ):
        for create in TABLES:
            connection.execute(create)
        fill_s = seconds(fill, connection, settings.rows)
        connection.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
        connection.execute("ALTER SYSTEM SET backfill_engine = spark")
        connection.execute(f"CREATE MATERIALIZED VIEW warm_up AS {WARM_UP}")
        files = {table: table_files(server.data, table) for table in ("orders", "customers")}
        with PlainSpark(settings.memory_mib, files, server.directory / "plain") as plain:
            found = [(view, _compare(connection, plain, view, settings.runs)) for view in VIEWS]
            yield _comparisons(found, settings, fill_s)
            yield _fixed(connection, plain, settings.samples)
        yield _latencies(latencies(connection, VIEWS[0], settings.samples))


def _compare(connection: psycopg.Connection[Any], plain: PlainSpark, view: View, runs: int) -> dict[str, list[float]]:
    """Seconds of each run by strategy and plainly, after one of each that does not count. The view stays."""

    def create(strategy: str) -> None:
        options = f"backfill_strategy = '{'snapshot' if strategy == SERVERLESS else strategy}'"
        if strategy == SERVERLESS:
            options += ", cloud.serverless_backfill_enabled = true"
        connection.execute(f"CREATE MATERIALIZED VIEW {view.name} WITH ({options}) AS {view.query}")

    def clear() -> None:
        connection.execute(f"DROP MATERIALIZED VIEW IF EXISTS {view.name}")
        plain.clear()

    creating = {strategy: partial(create, strategy) for strategy in view.aims}
    times = in_turn(runs + 1, {**creating, "plain": partial(plain.run, view.query)}, clear)
    found = {name: values[1:] for name, values in times.items()}
    plain_rows = plain.rows()
    # Its Spark application is a new one each time, so there is nothing to warm up.
    found |= in_turn(max(runs - 1, 1), {SERVERLESS: partial(create, SERVERLESS)}, clear)
    rows = scalar(connection, f"SELECT count(*) FROM {view.name}")
    assert rows == plain_rows, f"{view.name} has {rows} rows, plain Spark's result {plain_rows}"
    return found


def _comparisons(found: list[tuple[View, dict[str, list[float]]]], settings: Settings, fill_s: float) -> Table:
    rows, aims = [], []
    for view, times in found:
        plain_s = min(times["plain"])
        for strategy in (*view.aims, SERVERLESS):
            ratio = min(times[strategy]) / plain_s
            ratios = [ours / plain for ours, plain in zip(times[strategy], times["plain"], strict=False)]
            ends = spread(ratios)
            rows.append((view.title, strategy, min(times[strategy]), plain_s, ratio, ends))
            if strategy in view.aims:
                most = view.aims[strategy]
                aims.append(
                    Aim(f"{view.title}, {strategy}", f"<= {most} x plain Spark", f"{ratio:.2f} x", ratio <= most)
                )
    strategies = dict.fromkeys(strategy for _, times in found for strategy in times)
    series = {name: [min(times[name]) if name in times else None for _, times in found] for name in strategies}
    return Table(
        f"CREATE MATERIALIZED VIEW over {settings.rows:,} orders against one plain Spark job, s",
        f"Best of {settings.runs} in turn, after one that does not count; inserted in {fill_s:.0f} s. Plain Spark "
        "writes the same rows to Parquet in an application of its own, with the same cores and all memory as its "
        "heap. Serverless starts a Spark application of its own each time, that start included.",
        ("view", "strategy", "backfill", "plain", "ratio", "spread"),
        rows,
        Bars("backfill", "s", [view.title for view, _ in found], series),
        aims,
    )


def _fixed(connection: psycopg.Connection[Any], plain: PlainSpark, samples: int) -> Table:
    """What a CREATE takes whose table is small, beside one job of plain Spark; both applications have been running."""

    def clear() -> None:
        connection.execute("DROP MATERIALIZED VIEW IF EXISTS small")
        plain.clear()

    create = partial(connection.execute, f"CREATE MATERIALIZED VIEW small AS {WARM_UP}")
    aimed = {"in the server": ("auto", MOST_SMALL_S), "on Spark": ("spark", MOST_FIXED_S)}
    times: dict[str, list[float]] = {}
    for where, (engine, _) in aimed.items():
        connection.execute(f"ALTER SYSTEM SET backfill_engine = {engine}")
        times |= in_turn(samples, {where: create, "plain Spark": partial(plain.run, WARM_UP)}, clear)
        clear()
    p50 = {where: percentile(found, 50) for where, found in times.items()}
    return Table(
        f"CREATE MATERIALIZED VIEW over {CUSTOMERS:,} rows, s",
        "A count by a column, on a Spark application that runs and in the server, in turn with a job of plain Spark "
        "that writes the same rows to Parquet and stores nothing else.",
        ("filled", "samples", "p50", "p90"),
        [(where, samples, p50[where], percentile(found, 90)) for where, found in times.items()],
        None,
        [
            Aim(f"CREATE over {CUSTOMERS:,} rows {where}", f"<= {most} s", f"{p50[where]:.2f} s", p50[where] <= most)
            for where, (_, most) in aimed.items()
        ],
    )


def _latencies(found: list[Latency]) -> Table:
    return Table(
        "An INSERT of one row into the upstream of a backfill, ms",
        f"While `{VIEWS[0].title}` is filled.",
        ("while filled by", "samples", "p50", "p99"),
        [
            (of.while_, len(of.seconds), 1000 * percentile(of.seconds, 50), 1000 * percentile(of.seconds, 99))
            for of in found
        ],
    )
