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
from marking import long_but
from servers import PATIENCE_SECONDS, Server, refused, rows

from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.intervals import interval_text
from sparkwave.planner.parse.statement import parse_statement

Connection = psycopg.Connection[Any]
MOST_TIMES = 7  # for four times as much
NOISE_SECONDS = 0.4  # what the server does besides
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
        own.execute("CREATE TABLE many (a int)")  # apart: what a statement over `t` costs is its text's, not its rows'
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


def chain(item: str, operator: str, count: int) -> str:
    return operator.join([item] * count)


PARAMETERS: dict[str, Callable[[int], str]] = {
    "array": lambda n: f"SELECT ARRAY[{listed('%s', n)}]",
    "in": lambda n: f"SELECT a FROM t WHERE a IN ({listed('%s', n)})",
    "values": lambda n: f"VALUES {listed('(%s)', n)}",
    "insert": lambda n: f"INSERT INTO many (a) VALUES {listed('(%s)', n)}",
    "table": lambda n: f"SELECT * FROM (VALUES {listed('(%s, %s)', n // 2)}) AS v (x, y)",
    "pairs": lambda n: f"SELECT a FROM t WHERE (a, b) IN ({listed('(%s, %s)', n // 2)})",
    "rows": lambda n: f"SELECT a FROM t WHERE (a, b) IN ({listed('(%s, 1)', n // 2)})",
    "case": lambda n: f"SELECT CASE a {' '.join(['WHEN %s THEN 1'] * (n // 2))} END FROM t",
}
# Statements of a size, and how those end that are as large as here.
STATEMENTS: dict[str, tuple[int, str, Callable[[int], str]]] = {
    "parentheses": (5_000, "54001", lambda n: f"SELECT {'(' * n}1{')' * n}"),
    "not": (5_000, "54001", lambda n: f"SELECT {'NOT ' * n}true"),
    "minus": (5_000, "54001", lambda n: f"SELECT {'- ' * n}1"),
    "calls": (5_000, "54001", lambda n: f"SELECT {'abs(' * n}1{')' * n}"),
    "casts": (5_000, "54001", lambda n: f"SELECT 1{'::int' * n}"),
    "nested case": (2_000, "54001", lambda n: f"SELECT {'CASE WHEN true THEN ' * n}1{' END' * n}"),
    "subqueries": (2_000, "54001", lambda n: f"{'SELECT * FROM (' * n}SELECT 1{') q' * n}"),
    "terms": (4_000, "54001", lambda n: f"SELECT {chain('a', ' + ', n)} FROM t"),
    "joined text": (4_000, "54001", lambda n: f"SELECT {chain('s', ' || ', n)} FROM t"),
    "and": (500, "00000", lambda n: f"SELECT a FROM t WHERE {chain('a = 1', ' AND ', n)}"),
    "or": (500, "00000", lambda n: f"SELECT a FROM t WHERE {chain('a = 1', ' OR ', n)}"),
    "case": (500, "00000", lambda n: f"SELECT CASE {chain('WHEN a = 1 THEN 2', ' ', n)} END FROM t"),
    "constants": (2_000, "00000", lambda n: f"SELECT a FROM t WHERE a IN ({', '.join(map(str, range(n)))}, 1 + 1)"),
    "array of constants": (2_000, "00000", lambda n: f"SELECT ARRAY[{', '.join(map(str, range(n)))}]"),
    "table of constants": (2_000, "00000", lambda n: f"SELECT * FROM (VALUES {chain('(1)', ', ', n)}) AS v (x)"),
    "coalesce": (1_000, "00000", lambda n: f"SELECT coalesce({chain('a', ', ', n)}) FROM t"),
    "view of a list": (
        1_500, "00000", lambda n: f"CREATE VIEW v{n} AS SELECT a FROM t WHERE a IN ({', '.join(map(str, range(n)))})"
    ),
    "union": (100, "00000", lambda n: chain("SELECT 1", " UNION ALL ", n)),
    "columns": (300, "00000", lambda n: f"SELECT {chain('a', ', ', n)} FROM t"),
    "joins": (300, "54001", lambda n: f"SELECT 1 FROM t {chain('JOIN t AS u ON true', ' ', n)}"),
    "arguments": (1_000, "54023", lambda n: f"SELECT concat({chain('s', ', ', n)}) FROM t"),
    "common tables": (100, "00000", lambda n: f"WITH {', '.join(f'c{i} AS (SELECT 1)' for i in range(n))} SELECT 1"),
    "statements": (100, "00000", lambda n: chain("SELECT 1", ";", n)),
    "rows": (5_000, "00000", lambda n: f"INSERT INTO many (a) VALUES {chain('(1)', ', ', n)}"),
    "computed rows": (500, "00000", lambda n: f"INSERT INTO many (a) VALUES {chain('(1 + 1)', ', ', n)}"),
    "literal": (500_000, "00000", lambda n: f"SELECT length('{'x' * n}')"),
    "dollars": (20_000, "00000", lambda n: f"SELECT length($a${'$b$' * n}$a$)"),
    "secret": (5_000, "42601", lambda n: f"SELECT {'password ' * n}"),
    "name": (50_000, "42703", lambda n: f'SELECT "{"x" * n}" FROM t'),
    "comment": (20_000, "00000", lambda n: f"SELECT 1 /* {'-- ' * n} */"),
    "line": (100_000, "00000", lambda n: f"SELECT 1 -- {'/* ' * n}"),
    "quotes": (100_000, "42601", lambda n: f"SELECT {chr(39) * (2 * n + 1)}"),
    "array": (5_000, "54000", lambda n: f"SELECT '{'{' * n}1{'}' * n}'::int[]"),
    "json": (5_000, "54001", lambda n: f"SELECT '{'[' * n}1'::jsonb"),
    "view": (4_000, "54001", lambda n: f"CREATE VIEW v AS SELECT {chain('a', ' + ', n)} AS a FROM t"),
    "materialized view": (
        4_000, "54001", lambda n: f"CREATE MATERIALIZED VIEW v AS SELECT {chain('a', ' + ', n)} AS a FROM t"
    ),
    "explain": (4_000, "54001", lambda n: f"EXPLAIN SELECT {chain('a', ' + ', n)} FROM t"),
    "prepare": (250, "00000", lambda n: f"PREPARE p{n} AS SELECT a FROM t WHERE {chain('a = $1', ' AND ', n)}"),
}  # fmt: skip


@pytest.mark.parametrize("kind", PARAMETERS)
def test_parameters(target: Server, kind: str) -> None:
    def make(count: int) -> tuple[str, list[int]]:
        sql = PARAMETERS[kind](count)
        return sql, list(range(sql.count("%s")))

    assert check_linear(target, make, 500) == "00000"


MOST_PARAMETERS = 32_767  # whose count libpq can send


@pytest.mark.parametrize("kind", ["array", "in", "values", "insert", "table", "pairs"])
def test_lists_of_as_many_parameters_as_there_may_be(target: Server, kind: str) -> None:
    """About a second, nearly all of it the engine's; this machine may have other work."""
    sql = PARAMETERS[kind](MOST_PARAMETERS)
    with target.connect() as own, heartbeat(target) as latencies:
        taken, sqlstate = cost(target, own, sql, list(range(sql.count("%s"))))
    print(f"{taken:.2f} s, others waited {max(latencies):.2f} s")
    assert sqlstate == "00000" and taken < 4 and max(latencies) < MOST_LATENCY_SECONDS


@pytest.mark.long
@pytest.mark.parametrize("kind", ["rows", "case"])
def test_as_many_parameters_as_there_may_be(target: Server, kind: str) -> None:
    def make(count: int) -> tuple[str, list[int]]:
        sql = PARAMETERS[kind](count)
        return sql, list(range(sql.count("%s")))

    assert check_linear(target, make, 8_191) == "00000"


@pytest.mark.parametrize("kind", STATEMENTS)
def test_statements(target: Server, kind: str) -> None:
    size, expected, make = STATEMENTS[kind]
    assert check_linear(target, lambda count: (make(count), None), size) == expected


CONSTANTS = 100_000
LISTS = {
    "integers": f"a IN ({', '.join(map(str, range(CONSTANTS)))})",
    "negative": f"a NOT IN ({', '.join(str(-i) for i in range(CONSTANTS))})",
    "texts": f"s IN ({', '.join(map(repr, map(str, range(CONSTANTS))))}, NULL)",
    "any": f"a = ANY('{{{', '.join(map(str, range(CONSTANTS)))}}}')",
}


@pytest.mark.parametrize("kind", long_but(["integers"], LISTS))
def test_long_lists_of_constants_take_a_few_seconds(target: Server, kind: str) -> None:
    with target.connect() as own, heartbeat(target) as latencies:
        taken, sqlstate = cost(target, own, f"SELECT a FROM t WHERE {LISTS[kind]}")
    print(f"{taken:.2f} s, others waited {max(latencies):.2f} s")
    assert sqlstate == "00000" and taken < 15 and max(latencies) < MOST_LATENCY_SECONDS


def test_what_is_too_deep_is_told_by_the_name_of_the_limit(connection: Connection) -> None:
    """Nobody is advised to set what only the engine has."""
    for sql, hint in (
        (f"SELECT {chain('1', ' + ', 501)}", "500 deep"),
        (f"SELECT 1 FROM {', '.join(f'(SELECT 1) t{i}' for i in range(101))}", "may join 100 relations"),
    ):
        error = refused(connection, sql)
        assert error.sqlstate == "54001" and hint in (error.diag.message_hint or "")
    error = refused(connection, f"WITH {', '.join(f'c{i} AS (SELECT 1)' for i in range(1200))} SELECT 1")
    assert (error.sqlstate, str(error)) == ("54001", "stack depth limit exceeded")
    assert rows(connection, f"SELECT {chain('1', ' + ', 400)}") == [(400,)]
    error = refused(connection, f"SELECT length('a'), concat({listed('1', 101)})")
    assert (error.sqlstate, error.diag.statement_position) == ("54023", "21")


def test_texts_of_types_and_intervals_are_read_once() -> None:
    started = time.thread_time()
    for text in (
        "1" * 50_000 + "." + "1" * 50_000 + "x",
        ".1234567" + " " * 50_000 + "x",
        "1 day" + " " * 50_000 + "x",
    ):
        with pytest.raises(Error):
            interval_text(text)
    for text in ("PREPARE q (enum('a'{0}'b'{0}x", "SELECT 1::enum('a'{0}'b'{0}x)", "PREPARE q (enum({1}x"):
        with pytest.raises(Error):
            parse_statement(text.format(" " * 50_000, "'" * 50_000))
    assert time.thread_time() - started < 2
