"""INSERTs of many sessions at once: each has its own answer, and they share transactions."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows, wait_until

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.server.writes.group_commit import Fill, GroupCommit, refusing, together

CLIENTS, EACH = 8, 25


@pytest.fixture
def server(in_process_server: Server) -> Iterator[Server]:
    """The file's server; a test's relations are dropped after it."""
    yield in_process_server
    with in_process_server.connect() as connection:
        connection.execute("DROP TABLE t CASCADE")


@pytest.mark.parametrize("key", ["", " PRIMARY KEY"])
def test_nothing_is_lost(server: Server, key: str) -> None:
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE t (k int{key}, at timestamptz, s varchar DEFAULT 'none', d numeric)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT s, count(*) AS n, sum(d) AS d FROM t GROUP BY s")
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(lambda client: _insert(server, client), range(CLIENTS)))
        connection.execute("FLUSH")
        expected = [(client * EACH + i, "none") for client in range(CLIENTS) for i in range(EACH)]
        assert rows(connection, "SELECT k, s FROM t ORDER BY k") == expected
        assert rows(connection, "SELECT s, n, d FROM v") == [("none", len(expected), len(expected) * 1.5)]
        hours = f"extract(hour FROM at AT TIME ZONE 'UTC') = k / {2 * EACH}"
        assert rows(connection, f"SELECT DISTINCT {hours} FROM t") == [(True,)]


def _insert(server: Server, client: int) -> None:
    with server.connect() as own:
        own.execute(f"SET timezone = 'Etc/GMT+{client // 2}'")
        for number in range(EACH):
            tag = own.execute(
                "INSERT INTO t (k, at, d) VALUES (%s, '2024-01-01 00:00:00', 1.5)", (client * EACH + number,)
            ).statusmessage
            assert tag == "INSERT 0 1"


def test_each_has_its_own_error(server: Server) -> None:
    """A row that is refused is no other session's loss."""
    with server.connect() as connection:
        connection.execute("CREATE TABLE t (k int PRIMARY KEY, s varchar NOT NULL)")

        def insert(client: int) -> int:
            done = 0
            with server.connect() as own:
                for number in range(EACH):
                    if client % 2 and number % 2:
                        assert refused(own, f"INSERT INTO t VALUES ({number}, NULL)").sqlstate == "23502"
                    elif client % 2:
                        assert refused(own, f"INSERT INTO t VALUES ({2**31 + number}, 's')").sqlstate == "22003"
                    else:
                        done += own.execute(f"INSERT INTO t VALUES ({client * EACH + number}, 's')").rowcount
            return done

        with ThreadPoolExecutor(CLIENTS) as pool:
            done = sum(pool.map(insert, range(CLIENTS)))
        assert done == CLIENTS // 2 * EACH
        assert rows(connection, "SELECT count(*), count(DISTINCT k) FROM t") == [(done, done)]


def test_of_one_key_the_last_counts(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE t (k int PRIMARY KEY, n int)")

        def insert(client: int) -> None:
            with server.connect() as own:
                for number in range(EACH):
                    own.execute(f"INSERT INTO t VALUES (1, {number}), ({2 + client}, {number})")

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(insert, range(CLIENTS)))
        last: list[tuple[Any, ...]] = [(k, EACH - 1) for k in range(1, 2 + CLIENTS)]
        assert rows(connection, "SELECT k, n FROM t ORDER BY k") == last


@pytest.mark.parametrize("many", [1, 200])
@pytest.mark.parametrize("default", ["", " DEFAULT 'none'", " DEFAULT upper('none')"])
def test_each_value_takes_its_columns_type(server: Server, default: str, many: int) -> None:
    """Not one type that all rows of a statement have in common, which may be less exact."""
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE t (n numeric, s varchar, at timestamp, u uuid, d varchar{default})")
        id_ = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        values = [f"(1e3, 1, 'infinity', '{id_}')", f"(1234567890123456789.5, 2.50, '-infinity', '{id_}')"]
        connection.execute(f"INSERT INTO t VALUES {', '.join(values * many)}")
        found = rows(
            connection, "SELECT n::varchar, s, at::varchar, u::varchar, count(*) FROM t GROUP BY ALL ORDER BY s"
        )
        assert found == [
            ("1000", "1", "infinity", id_, many),
            ("1234567890123456789.5", "2.50", "-infinity", id_, many),
        ]
        connection.execute(f"INSERT INTO t (n) VALUES {', '.join(['(1e3)', '(1234567890123456789.5)'] * many)}")
        found = rows(connection, "SELECT n::varchar, count(*) FROM t WHERE s IS NULL GROUP BY ALL ORDER BY 1")
        assert found == [("1000", many), ("1234567890123456789.5", many)]
        found = rows(connection, "SELECT DISTINCT lower(d) FROM t")
        assert found == [("none" if default else None,)]


def test_each_parameter_takes_its_columns_type(server: Server) -> None:
    """Of statements that share one too: no value is what all of them have in common."""
    with server.connect() as connection:
        connection.execute("CREATE TABLE t (n numeric, d double precision, s varchar, at timestamp, b bytea, i int[])")
        samples: list[tuple[Any, ...]] = [
            (Decimal("1234567890123456789.5"), 1.5, "1", datetime(2024, 1, 1), b"1", [1]),
            (1, None, "é $1", None, None, None),
            (None, 1e300, None, datetime(1999, 12, 31, 23), b"", []),
        ]

        def insert(client: int) -> None:
            with server.connect() as own:
                for _ in range(EACH):
                    own.execute("INSERT INTO t VALUES (%s, %s, %s, %s, %s, %s)", samples[client % len(samples)])

        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(insert, range(CLIENTS)))
        found = rows(connection, "SELECT *, count(*) FROM t GROUP BY ALL ORDER BY n NULLS LAST")
        counts = [len(range(place, CLIENTS, len(samples))) * EACH for place in range(len(samples))]
        expected = [(*sample, count) for sample, count in zip(samples, counts, strict=True)]
        assert found == [expected[1], expected[0], expected[2]]


def test_a_table_that_is_altered_meanwhile(server: Server) -> None:
    with server.connect() as connection, ThreadPoolExecutor(CLIENTS) as pool:
        connection.execute("CREATE TABLE t (k int)")

        def insert(client: int) -> int:
            done = 0
            with server.connect() as own:
                for _ in range(EACH):
                    with contextlib.suppress(psycopg.errors.SerializationFailure):
                        done += own.execute("INSERT INTO t (k) VALUES (1)").rowcount
            return done

        inserting = [pool.submit(insert, client) for client in range(CLIENTS - 1)]
        for number in range(5):
            connection.execute(f"ALTER TABLE t ADD COLUMN c{number} int DEFAULT {number}")
        done = sum(future.result(60) for future in inserting)
        assert rows(connection, "SELECT count(*), sum(k) FROM t") == [(done, done)]


@pytest.mark.parametrize("is_wrong", [False, True])
def test_a_group_is_stored_at_once(is_wrong: bool) -> None:
    """Those that came while rows were stored are stored together, unless some are refused: then one by one."""
    commits, target = GroupCommit(), Relation(1, "dev", "public", "t", "table", (), (), "", True)
    stored, is_led, is_full = [], threading.Event(), threading.Event()
    queue = commits._queues[target.lake_table]

    def store(fills: Sequence[Fill]) -> None:
        is_led.set()
        assert is_full.wait(30)
        keys = [fill.rows for fill in fills]
        with refusing():
            if "wrong" in keys:
                raise Error("a NULL", errors.NOT_NULL_VIOLATION)
        stored.append(keys)

    def insert(key: str, zone: str) -> str | None:
        try:
            commits.store(target, Fill((), key, None, zone), store)
        except Error as error:
            return error.message
        return None

    inserts = {"a": "UTC", "bb": "UTC", "wrong" if is_wrong else "ccc": "UTC", "dddd": "Asia/Tokyo", "eeeee": "UTC"}
    with ThreadPoolExecutor(len(inserts)) as pool:
        futures = []
        for number, (key, zone) in enumerate(inserts.items()):
            futures.append(pool.submit(insert, key, zone))
            assert wait_until(lambda queued=number: is_led.is_set() and len(queue.waiting) == queued)
        is_full.set()
        assert [future.result(10) for future in futures] == [None, None, "a NULL" if is_wrong else None, None, None]
    if is_wrong:
        assert stored == [["a"], ["bb"], ["eeeee"], ["dddd"]]
    else:
        assert stored == [["a"], ["bb", "ccc", "eeeee"], ["dddd"]]


def test_parameters_of_many_statements() -> None:
    """Each statement's own values, whatever else in its text looks like a parameter."""
    fills = [Fill((), "($1, '$1 ''$2', $2), ($1, \"$1\", NULL)", {"1": 7, "2": "a"}, "UTC"), Fill((), "(1)", None, "")]
    query, values = together([*fills, fills[0]])
    first = "($s0_1, '$1 ''$2', $s0_2), ($s0_1, \"$1\", NULL)"
    assert query == f"VALUES {first}, (1), {first.replace('s0', 's2')}"
    assert values == {"s0_1": 7, "s0_2": "a", "s2_1": 7, "s2_2": "a"}
