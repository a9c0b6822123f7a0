"""Short statements, large results, idle and slow clients over the wire, next to a real PostgreSQL on this machine.

Everything is measured in turns, and the best turn counts: the machine may be busy with something else.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from bench.sql import scalar
from examples.local_server import LocalServer, free_port

LOOKUP_ROWS, ROWS, IDLE = 10_000, 1_000_000, 500
TURNS, TURN_S = 3, 2
CLIENTS = (1, 16)
STATEMENTS = {
    "SELECT 1": "SELECT 1;",
    "point lookup": f"\\set k random(1, {LOOKUP_ROWS})\nSELECT k, v FROM wire_view WHERE k = :k;",
}
FETCH = "SELECT k, k * 2 AS twice, v, d, t FROM wire_rows"


@dataclass(frozen=True)
class Target:
    """A server to measure."""

    port: int
    user: str
    database: str

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(host="127.0.0.1", port=self.port, user=self.user, dbname=self.database, autocommit=True)


@dataclass(frozen=True)
class Rate:
    """Statements or rows a second of each server, by its name."""

    what: str
    how: str
    per_second: dict[str, float]


@dataclass(frozen=True)
class Clients:
    """Memory of an idle client in KiB, and the slowest query while another client does not read its rows, in s."""

    idle_kib: float
    beside_slow_reader_s: float


@contextlib.contextmanager
def postgres() -> Iterator[Target | None]:
    """A PostgreSQL of Debian's packages with its own settings; None where it is not installed."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        yield None
        return
    directory, port = Path(tempfile.mkdtemp(prefix="bench-postgres-")), free_port()
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    data = directory / "data"
    try:
        if as_user:
            shutil.chown(directory, "postgres")
        initdb = [*as_user, str(programs[-1]), "-D", str(data), "-A", "trust", "-U", "postgres"]
        subprocess.run(initdb, check=True, capture_output=True)
        options = ["-p", str(port), "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={directory}"]
        server = subprocess.Popen(
            [*as_user, str(programs[-1].with_name("postgres")), "-D", str(data), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield _when_ready(Target(port, "postgres", "postgres"))
        finally:
            server.terminate()
            server.wait(30)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _when_ready(target: Target, seconds: float = 30) -> Target:
    deadline = time.monotonic() + seconds
    while True:
        try:
            target.connect().close()
            return target
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def prepare(connection: psycopg.Connection[Any], is_postgres: bool) -> None:
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


def rates(servers: dict[str, Target]) -> Iterator[Rate]:
    """Statements a second, by pgbench where it is installed, then rows a second."""
    for what, script in STATEMENTS.items() if shutil.which("pgbench") else ():
        for clients in CLIENTS:
            for how in ("simple", "prepared"):
                best = dict.fromkeys(servers, 0.0)
                for _ in range(TURNS):
                    for name, target in servers.items():
                        best[name] = max(best[name], _statements(target, script, how, clients))
                yield Rate(what, f"{how}, {clients} client{'s' * (clients > 1)}", best)
    for how in ("text", "binary"):
        best = dict.fromkeys(servers, 0.0)
        for _ in range(TURNS):
            for name, target in servers.items():
                best[name] = max(best[name], _fetched(target, is_binary=how == "binary"))
        yield Rate(f"{ROWS:,} rows x 5", how, best)


def _statements(target: Target, script: str, how: str, clients: int) -> float:
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as file:
        file.write(script)
        file.flush()
        command = ["pgbench", "-n", "-M", how, "-c", str(clients), "-j", "2", "-T", str(TURN_S), "-f", file.name]
        address = ["-h", "127.0.0.1", "-p", str(target.port), "-U", target.user, target.database]
        done = subprocess.run([*command, *address], check=True, capture_output=True, text=True)
    found = re.search(r"tps = ([\d.]+) \(without", done.stdout)
    assert found is not None, done.stdout
    return float(found[1])


def _fetched(target: Target, is_binary: bool) -> float:
    with target.connect() as connection:
        began = time.perf_counter()
        result = connection.pgconn.exec_params(FETCH.encode(), [], result_format=int(is_binary))
        assert result.ntuples == ROWS, result.error_message
        return ROWS / (time.perf_counter() - began)


def clients(server: LocalServer) -> Clients:
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
    return Clients(idle, slowest)


def _memory_kib(process: int) -> int:
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS"))
