"""How soon a server answers, and how soon a serverless group has done its first slice."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from bench.measuring import Settings, spread
from bench.plain_spark import PlainSpark
from bench.results import Aim, Table
from bench.sql import scalar
from sparkwave.server.demo.local_server import LocalServer, local_server

ROWS, SLICE_ROWS = 3_000_000, 500_000
READY_S, SLICE_S = 3.0, 4.0
GROUP = "SELECT count(*) FROM rw_catalog.rw_worker_nodes WHERE host LIKE '%backfill%' AND state = 'RUNNING'"
SLICES = "SELECT count(*) FROM rw_catalog.rw_ddl_progress WHERE progress NOT LIKE '%[0.00%' AND progress LIKE '%(%/%)%'"
VIEW = """CREATE MATERIALIZED VIEW by_kind WITH (cloud.serverless_backfill_enabled = true) AS
    SELECT kind, count(*) AS n, max(value) AS highest FROM events GROUP BY kind"""


def measure(settings: Settings) -> Iterator[Table]:
    """Starts of a server, then serverless backfills on the last one."""
    runs = 1 if settings.is_quick else settings.runs
    ready: list[float] = []
    for run in range(max(runs, 2)):
        start = time.perf_counter()
        with local_server("--spark-start", "on_demand") as server:
            with server.connect() as connection:
                scalar(connection, "SELECT 1")
            ready.append(time.perf_counter() - start)
            if run == max(runs, 2) - 1:
                group, first, done = zip(*_serverless(server, runs), strict=True)
    with tempfile.TemporaryDirectory(prefix="bench-start-") as folder:
        plain = [_plain(settings.memory_mib, Path(folder) / str(run)) for run in range(runs)]
    rows = [
        (what, min(values), spread(values))
        for what, values in {
            "server: start to the first answer": ready,
            "serverless: CREATE to a running group": group,
            "serverless: CREATE to the first slice": first,
            "serverless: CREATE to the finished view": done,
            "plain Spark: start to the first row through Python": plain,
        }.items()
    ]
    yield Table(
        "Starts, s",
        f"Best of {runs}. The server is started by the command line over an empty directory, with Spark on demand; the "
        f"view is an aggregation of {ROWS:,} rows in slices of {SLICE_ROWS:,}. Plain Spark is an application of its "
        "own, started by spark-submit.",
        ("what", "best", "spread"),
        rows,
        aims=(
            Aim("server ready", f"<= {READY_S:g} s", f"{min(ready):.2f} s", min(ready) <= READY_S),
            Aim("first serverless slice", f"<= {SLICE_S:g} s", f"{min(first):.2f} s", min(first) <= SLICE_S),
        ),
    )


def _plain(memory_mib: int, directory: Path) -> float:
    """Seconds from the start of plain Spark until a row has passed through Python."""
    start = time.perf_counter()
    with PlainSpark(memory_mib, {}, directory) as plain:
        plain.run_in_python()
        return time.perf_counter() - start


def _serverless(server: LocalServer, runs: int) -> Iterator[tuple[float, float, float]]:
    """Seconds from CREATE to a running group, its first slice and the whole view, of each run."""
    with server.connect() as connection:
        connection.execute("CREATE TABLE events (id bigint, kind int, value double precision)")
        connection.execute(f"INSERT INTO events SELECT i, i % 100, i / 7.0 FROM range({ROWS}) AS r(i)")
        connection.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
        connection.execute(f"ALTER SYSTEM SET backfill_slice_rows = {SLICE_ROWS}")
        connection.execute("SET background_ddl = true")
        for _ in range(runs):
            start = time.perf_counter()
            connection.execute(VIEW)
            yield _moment(connection, GROUP, start), _moment(connection, SLICES, start), _finished(connection, start)
            connection.execute("DROP MATERIALIZED VIEW by_kind")


def _moment(connection: psycopg.Connection, condition: str, start: float, timeout: float = 60) -> float:
    """When it becomes more than zero; the moment the job ends if it has not been seen."""
    while not scalar(connection, condition) and time.perf_counter() - start < timeout:
        if not scalar(connection, "SELECT count(*) FROM rw_catalog.rw_ddl_progress"):
            break
        time.sleep(0.02)
    return time.perf_counter() - start


def _finished(connection: psycopg.Connection, start: float) -> float:
    with contextlib.suppress(psycopg.errors.UndefinedTable):
        connection.execute("WAIT")
    assert scalar(connection, "SELECT sum(n) FROM by_kind") == ROWS
    return time.perf_counter() - start
