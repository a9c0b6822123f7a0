"""Rows a second into a table: single rows on some connections, batches, and COPY, next to PostgreSQL."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from functools import partial

from bench.measuring import Settings, digits, spread
from bench.pgbench import rate
from bench.postgres import NOTE, Target, postgres
from bench.results import Aim, Bars, Table
from bench.sql import scalar
from sparkwave.server.demo.local_server import local_server

TABLE = "(k bigint PRIMARY KEY, a int, v varchar, d double precision, t timestamp)"
SINGLE = """\\set k random(1, 1000000000000)
INSERT INTO {table} VALUES (:k, 1, 'value', 1.5, '2024-01-01 00:00:00');"""
GENERATED = """SELECT n::bigint, (n % 1000)::int, 'value ' || n, n / 7.0::double precision,
    TIMESTAMP '2024-01-01 00:00:00' + n * INTERVAL '1 second' FROM generate_series(1, {rows}) AS s (n)"""
COPIED_ROWS, BATCH_ROWS, BATCHES, TURN_S = 1_000_000, 1_000, 5, 2
FORMATS = ("text", "csv", "binary")
LEAST_INSERTS, LEAST_COPIED = 2_000, 200_000


def measure(settings: Settings) -> Iterator[Table]:
    """Every way in turn on both servers."""
    copied = COPIED_ROWS // 10 if settings.is_quick else COPIED_ROWS
    turns = 1 if settings.is_quick else 3
    with local_server("--spark-start", "on_demand") as server, postgres() as other:
        targets = {"Sparkwave": Target(server.port, "root", "dev")}
        if other is not None:
            targets["PostgreSQL"] = other
        ways = _ways(other or targets["Sparkwave"], copied)
        found: dict[str, dict[str, list[float]]] = {way: {name: [] for name in targets} for way in ways}
        for way, run in ways.items():
            for turn in range(turns):
                for name, target in targets.items():
                    found[way][name].append(_into_new_table(target, f"ingest_{turn}", run))
    yield _table(found, copied, turns)


def _ways(source: Target, copied: int) -> dict[str, Callable[[Target, str], float]]:
    """What is measured: functions of a server and a table that return rows a second."""
    ways: dict[str, Callable[[Target, str], float]] = {}
    for clients in (1, 16) if shutil.which("pgbench") else ():
        ways[f"single rows, {clients} connection{'s' * (clients > 1)}"] = partial(_single_rows, clients)
    ways[f"INSERT of {BATCH_ROWS:,} rows"] = _batches
    for how in FORMATS:
        data = _generated(source, copied, how)
        ways[f"COPY, {how}"] = partial(_copied, how, data, copied)
    return ways


def _into_new_table(target: Target, table: str, run: Callable[[Target, str], float]) -> float:
    with target.connect() as connection:
        connection.execute(f"CREATE TABLE {table} {TABLE}")
        try:
            return run(target, table)
        finally:
            connection.execute(f"DROP TABLE {table}")


def _single_rows(clients: int, target: Target, table: str) -> float:
    return rate(target, SINGLE.format(table=table), "prepared", clients, TURN_S)


def _batches(target: Target, table: str) -> float:
    with target.connect() as connection:
        start = time.perf_counter()
        for batch in range(BATCHES):
            keys = range(batch * BATCH_ROWS, (batch + 1) * BATCH_ROWS)
            rows = ",".join(f"({key}, 1, 'value {key}', 1.5, '2024-01-01 00:00:00')" for key in keys)
            connection.execute(f"INSERT INTO {table} VALUES {rows}")
        return BATCHES * BATCH_ROWS / (time.perf_counter() - start)


def _generated(source: Target, rows: int, how: str) -> list[bytes]:
    with (
        source.connect() as connection,
        connection.cursor() as cursor,
        cursor.copy(f"COPY ({GENERATED.format(rows=rows)}) TO STDOUT (FORMAT {how})") as copy,
    ):
        data = b"".join(copy)
    return [data[start : start + 2**16] for start in range(0, len(data), 2**16)]


def _copied(how: str, data: list[bytes], rows: int, target: Target, table: str) -> float:
    with target.connect() as connection, connection.cursor() as cursor:
        start = time.perf_counter()
        with cursor.copy(f"COPY {table} FROM STDIN (FORMAT {how})") as copy:
            for part in data:
                copy.write(part)
        taken = time.perf_counter() - start
        assert scalar(connection, f"SELECT count(*) FROM {table}") == rows
        return rows / taken


def _table(found: dict[str, dict[str, list[float]]], copied: int, turns: int) -> Table:
    rows, aims, losses = [], [], []
    for way, of in found.items():
        ours = max(of["Sparkwave"])
        theirs = max(of["PostgreSQL"]) if "PostgreSQL" in of else None
        rows.append((way, ours, spread(of["Sparkwave"]), theirs, ours / theirs if theirs else None))
        least = LEAST_COPIED if way.startswith("COPY") else LEAST_INSERTS if "16" in way else None
        if least is not None:
            aims.append(Aim(way, f">= {least:,} rows/s", digits(ours), ours >= least))
        if theirs is not None and ours < theirs:
            losses.append(f"{way}: {digits(ours)} rows a second, PostgreSQL {digits(theirs)}.")
    series = {name: [max(of[name]) for of in found.values()] for name in next(iter(found.values()))}
    return Table(
        "Rows a second into a table with a primary key",
        f"Every INSERT is acknowledged when it is durable. COPY is of {copied:,} rows of five columns, sent in parts "
        f"of 64 KiB; single rows by pgbench with prepared statements for {TURN_S} s. Best of {turns} turns. {NOTE}",
        ("way", "Sparkwave", "spread", "PostgreSQL", "ratio"),
        rows,
        Bars("ingest", "rows/s", list(found), series),
        aims,
        losses,
    )
