"""Short statements, large results, idle and slow clients over the wire, next to a real PostgreSQL on this machine.

Everything is measured in turns, and the best turn counts: the machine may be busy with something else.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg

from bench.measuring import Settings, digits, spread
from bench.pgbench import rate
from bench.postgres import Target, postgres
from bench.results import Aim, Bars, Table
from bench.sql import scalar
from sparkwave.server.demo.local_server import LocalServer, local_server

LOOKUP_ROWS, ROWS, IDLE = 10_000, 1_000_000, 500
TURN_S = 2
CLIENTS = (1, 16)
STATEMENTS = {
    "SELECT 1": "SELECT 1;",
    "point lookup": f"\\set k random(1, {LOOKUP_ROWS})\nSELECT k, v FROM wire_view WHERE k = :k;",
}
FETCH = "SELECT k, k * 2 AS twice, v, d, t FROM wire_rows"
SLOWEST_LOOKUP, SLOWEST_FETCH = 1 / 3, 1.0


def measure(settings: Settings) -> Iterator[Table]:
    """Rates of statements and of rows, then what clients that do little cost."""
    turns = 1 if settings.is_quick else 3
    with local_server("--spark-start", "on_demand") as server, postgres() as other:
        targets = {"Sparkwave": Target(server.port, "root", "dev")}
        if other is not None:
            targets["PostgreSQL"] = other
        for name, target in targets.items():
            with target.connect() as connection:
                _prepare(connection, is_postgres=name == "PostgreSQL")
        yield _rates(targets, turns)
        yield _clients(server)


def _prepare(connection: psycopg.Connection[Any], is_postgres: bool) -> None:
    """The relations that are read, on either server; PostgreSQL's view gets an index."""
    if not is_postgres:
        connection.execute("ALTER SYSTEM SET backfill_engine = auto")
    stored = "(k int PRIMARY KEY, v varchar, d double precision, t timestamp)"
    moment = "TIMESTAMP '2024-01-01 00:00:00' + n * INTERVAL '1 second'"
    for table, rows in (("wire_rows", ROWS), ("wire_keys", LOOKUP_ROWS)):
        connection.execute(f"CREATE TABLE {table} {stored}")
        connection.execute(
            f"INSERT INTO {table} SELECT n, 'value ' || n, n / 7.0, {moment} FROM generate_series(1, {rows}) AS s(n)"
        )
    connection.execute("CREATE MATERIALIZED VIEW wire_view AS SELECT k, v FROM wire_keys")
    if is_postgres:
        connection.execute("CREATE UNIQUE INDEX ON wire_view (k)")
        connection.execute("ANALYZE")


def _rates(targets: dict[str, Target], turns: int) -> Table:
    rows: list[tuple[str | float | None, ...]] = []
    labels: list[str] = []
    best: dict[str, list[float]] = {name: [] for name in targets}
    aims, losses = [], []

    def add(what: str, how: str, found: dict[str, list[float]], least: float | None) -> None:
        ratio = max(found["Sparkwave"]) / max(found["PostgreSQL"]) if "PostgreSQL" in found else None
        rows.append((what, how, *(max(values) for values in found.values()), ratio, spread(found["Sparkwave"])))
        labels.append(f"{what}, {how}")
        for name, values in found.items():
            best[name].append(max(values))
        if least is not None and ratio is not None:
            aim = f">= {digits(least)} of PostgreSQL's rate"
            aims.append(Aim(f"{what}, {how}", aim, digits(ratio), ratio >= least))
        if ratio is not None and ratio < 1:
            losses.append(f"{what}, {how}: {digits(ratio)} of PostgreSQL's rate.")

    for what, script in STATEMENTS.items() if shutil.which("pgbench") else ():
        for clients in CLIENTS:
            for how in ("simple", "prepared"):
                found: dict[str, list[float]] = {name: [] for name in targets}
                for _ in range(turns):
                    for name, target in targets.items():
                        found[name].append(rate(target, script, how, clients, TURN_S))
                least = SLOWEST_LOOKUP if what == "point lookup" else None
                add(what, f"{how}, {clients} client{'s' * (clients > 1)}", found, least)
    for how in ("text", "binary"):
        fetched: dict[str, list[float]] = {name: [] for name in targets}
        for _ in range(turns):
            for name, target in targets.items():
                fetched[name].append(_fetched(target, is_binary=how == "binary"))
        add(f"{ROWS:,} rows x 5", how, fetched, SLOWEST_FETCH)
    return Table(
        "Statements and rows a second over the wire",
        f"pgbench for {TURN_S} s, and libpq reading {ROWS:,} rows of five columns; best of {turns} turns. A lookup is "
        f"by the key of a view of {LOOKUP_ROWS:,} rows, which has an index in PostgreSQL.",
        ("what", "how", *targets, "ratio", "Sparkwave's spread"),
        rows,
        Bars("reads", "a second", labels, best),
        aims,
        losses,
    )


def _fetched(target: Target, is_binary: bool) -> float:
    with target.connect() as connection:
        began = time.perf_counter()
        result = connection.pgconn.exec_params(FETCH.encode(), [], result_format=int(is_binary))
        assert result.ntuples == ROWS, result.error_message
        return ROWS / (time.perf_counter() - began)


def _clients(server: LocalServer) -> Table:
    """What idle clients cost, and whether one that does not read disturbs another."""
    with contextlib.ExitStack() as open_:
        before = _memory_kib(server.process_id)
        for _ in range(IDLE):
            scalar(open_.enter_context(server.connect()), "SELECT 1")
        idle = (_memory_kib(server.process_id) - before) / IDLE
    with server.connect() as slow, server.connect() as other:
        slow.pgconn.send_query(FETCH.encode())
        time.sleep(1.0)  # its buffers are full now, and nobody reads
        slowest = 0.0
        for _ in range(50):
            began = time.perf_counter()
            scalar(other, "SELECT k FROM wire_view WHERE k = 7")
            slowest = max(slowest, time.perf_counter() - began)
        slow.close()
    return Table(
        "Clients that do little",
        f"{IDLE} idle connections; and 50 lookups beside a client that has asked for {ROWS:,} rows and reads none.",
        ("memory of an idle connection, KiB", "slowest lookup beside a client that does not read, ms"),
        ((idle, 1000 * slowest),),
    )


def _memory_kib(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
