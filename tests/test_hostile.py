"""Statements that are deep, long or wide: what they cost grows as they do, and other sessions do not wait for them.

What a statement costs is the processor time of the server, so that a busy machine changes nothing. Four times as much
of something may cost seven times as much, not sixteen.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import PATIENCE_SECONDS, Server

Connection = psycopg.Connection[Any]
MOST_TIMES = 7  # for four times as much
NOISE_SECONDS = 0.15  # what the server does besides
HEARTBEAT_SECONDS = 0.02
MOST_LATENCY_SECONDS = 20  # on a machine whose cores are all busy; a hang lasts for minutes

TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(server: Server) -> float:
    """The processor time that a server has taken."""
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextlib.contextmanager
def heartbeat(server: Server) -> Iterator[list[float]]:
    """Another session asks for something small all the time. Yields how long that took."""
    over, latencies = threading.Event(), [0.0]

    def beat() -> None:
        with server.connect() as own:
            while not over.wait(HEARTBEAT_SECONDS):
                started = time.monotonic()
                own.execute("SELECT 1")
                latencies.append(time.monotonic() - started)

    beating = threading.Thread(target=beat)
    beating.start()
    try:
        yield latencies
    finally:
        over.set()
        beating.join(PATIENCE_SECONDS)


@pytest.fixture(scope="module")
def target(module_server: Server) -> Server:
    with module_server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute("CREATE TABLE t (a int, b int, s varchar)")
        own.execute("INSERT INTO t VALUES (1, 2, 'x')")
    return module_server


def cost(server: Server, connection: Connection, sql: str, values: list[int] | None = None) -> tuple[float, str]:
    """The processor time of a statement, and with which SQLSTATE it ends."""
    started, sqlstate = processor_seconds(server), "00000"
    try:
        connection.execute(sql, values)
    except psycopg.Error as error:
        sqlstate = error.sqlstate or "?"
    return processor_seconds(server) - started, sqlstate


def check_linear(server: Server, make: Callable[[int], tuple[str, list[int] | None]], size: int) -> str:
    """Run a statement of a size and of four times that. Returns the SQLSTATE of the larger one."""
    with server.connect() as own, heartbeat(server) as latencies:
        own.prepare_threshold = None
        cost(server, own, *make(10))
        small, _ = cost(server, own, *make(size))
        large, sqlstate = cost(server, own, *make(4 * size))
    print(f"{small:.2f} s, four times as much {large:.2f} s ({sqlstate}), others waited {max(latencies):.2f} s")
    assert large < MOST_TIMES * max(small, NOISE_SECONDS)
    assert max(latencies) < MOST_LATENCY_SECONDS
    return sqlstate


def listed(item: str, count: int) -> str:
    return ", ".join([item] * count)


PARAMETERS: dict[str, Callable[[int], str]] = {
    "array": lambda n: f"SELECT ARRAY[{listed('%s', n)}]",
    "in": lambda n: f"SELECT a FROM t WHERE a IN ({listed('%s', n)})",
    "any": lambda n: f"SELECT a FROM t WHERE a = ANY(ARRAY[{listed('%s', n)}])",
    "values": lambda n: f"VALUES {listed('(%s)', n)}",
    "insert": lambda n: f"INSERT INTO t (a) VALUES {listed('(%s)', n)}",
    "select": lambda n: f"SELECT {listed('%s', min(n, 1500))}",
    "coalesce": lambda n: f"SELECT coalesce({listed('%s', n)})",
    "call": lambda n: f"SELECT concat({listed('%s::text', n)})",
    "rows": lambda n: f"SELECT a FROM t WHERE (a, b) IN ({listed('(%s, 1)', n)})",
    "case": lambda n: f"SELECT CASE a {' '.join(['WHEN %s THEN 1'] * n)} END FROM t",
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_parameters(target: Server, kind: str) -> None:
    def make(count: int) -> tuple[str, list[int]]:
        sql = PARAMETERS[kind](count)
        return sql, list(range(sql.count("%s")))

    assert check_linear(target, make, 1000) == "00000"
