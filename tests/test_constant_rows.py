"""INSERTs of constants that are known by their form store what those that are parsed do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows

from sparkwave.planner.parse.constant_rows import constant_rows
from sparkwave.server.session.plan_cache import LONGEST_TEXT

COLUMNS = """a int, b bigint, c smallint, n numeric, m numeric(10, 2), r real, d double precision, s varchar, t text,
    f boolean, day date, at timestamp, zoned timestamptz, j jsonb, u uuid, i interval, l int[]"""
# Of some of each kind one that the engines read as PostgreSQL does, and one that they do not.
ROWS = (
    "1, -2, 3, 1.5, 1.005, .5, 1e3, 'it''s (one), ; --', 'é', true, '2024-02-29', '2024-01-01 12:00:00.5', "
    "'2024-01-01T12:00:00+02', NULL, NULL, NULL, NULL",
    "NULL, 9223372036854775807, null, 1234567890123456789.5, -7, 2, 0.1, '', NULL, FALSE, NULL, NULL, NULL, NULL, "
    "NULL, NULL, NULL",
    "1.5, 2, 3, 4, 5, 6, 7, 'x', 'y', True, '2024-01-02'::date, '2024-01-02'::timestamp, '2024-01-02'::timestamptz, "
    "NULL, NULL, NULL, NULL",
)
UNLIKE = {
    "text of a number": ("s, a", "'x', '12'"),
    "text of a truth": ("s, f", "'x', 'yes'"),
    "a number as text": ("s, t", "'x', 12"),
    "a short day": ("s, day", "'x', '20240102'"),
    "a document": ("s, j", """'x', '{"a": [1, 2]}'"""),
    "an id": ("s, u", "'x', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"),
    "an interval": ("s, i", "'x', 'P1D'"),
    "an array": ("s, l", "'x', '{1,2}'"),
    "a sum": ("s, a", "'x', 1 + 1"),
    "a function": ("s, t", "'x', upper('y')"),
    "a default": ("s, a", "'x', DEFAULT"),
    "a comment": ("s, a", "'x', /* one */ 1"),
}


@pytest.fixture
def connection(module_server: Server) -> Iterator[psycopg.Connection[Any]]:
    """A session of a server with two empty tables."""
    with module_server.connect() as connection:
        for table in ("one", "many"):
            connection.execute(f"CREATE TABLE IF NOT EXISTS {table} ({COLUMNS})")
            connection.execute(f"DELETE FROM {table}")
        yield connection


def parsed(values: str) -> str:
    """A row of a text that is not of the form."""
    return f"(/* */ {values})"


def many(values: str) -> str:
    """So many rows that the text is a long one."""
    return ",\n".join([f"({values})"] * (2 + LONGEST_TEXT // len(values)))


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_every_type(connection: psycopg.Connection[Any], zone: str) -> None:
    connection.execute(f"SET timezone = '{zone}'")
    for values in ROWS:
        for sql in (f"INSERT INTO many VALUES {many(values)};", f"INSERT INTO many VALUES ({values})"):
            assert constant_rows(sql) is not None
            connection.execute(sql)
        connection.execute(f"INSERT INTO one VALUES {parsed(values)}")
    connection.execute("SET timezone = 'UTC'")
    assert rows(connection, "SELECT DISTINCT * FROM many ORDER BY s") == rows(
        connection, "SELECT * FROM one ORDER BY s"
    )
    assert rows(connection, "SELECT s FROM many WHERE d > 500 LIMIT 1") == [("it's (one), ; --",)]


@pytest.mark.parametrize("name", UNLIKE)
def test_what_needs_more(connection: psycopg.Connection[Any], name: str) -> None:
    columns, values = UNLIKE[name]
    connection.execute(f"INSERT INTO many ({columns}) VALUES ({values})", prepare=True)
    connection.execute(f"INSERT INTO many ({columns}) VALUES {many(values)}")
    connection.execute(f"INSERT INTO one ({columns}) VALUES {parsed(values)}")
    assert rows(connection, "SELECT DISTINCT * FROM many") == rows(connection, "SELECT * FROM one")


def test_rows_that_differ(connection: psycopg.Connection[Any]) -> None:
    """A column's kind is that of all its rows."""
    connection.execute(f"INSERT INTO many (a, s) VALUES {many('1, NULL')}, ('12', 'x')")
    assert rows(connection, "SELECT a, s FROM many WHERE a <> 1") == [(12, "x")]
    connection.execute(f"INSERT INTO many (n) VALUES {many('1')}, (0.123456789)")
    assert rows(connection, "SELECT n::varchar FROM many WHERE n < 1") == [("0.123456789",)]


@pytest.mark.parametrize(
    ("sql", "sqlstate"),
    [
        ("INSERT INTO many (a, s) VALUES {}, (1)", "42601"),
        ("INSERT INTO many (a) VALUES {}", "42601"),
        ("INSERT INTO many (a, c) VALUES {}, (1, 100000)", "22003"),
        ("INSERT INTO many (a, at) VALUES {}, (1, '2024-02-30')", "22008"),
        ("INSERT INTO none VALUES {}", "42P01"),
        ("INSERT INTO many (a, none) VALUES {}", "42703"),
        ("INSERT INTO many (a, s) VALUES {}, (1, 'x'", "42601"),
    ],
)
def test_errors(connection: psycopg.Connection[Any], sql: str, sqlstate: str) -> None:
    assert refused(connection, sql.format(many("1, NULL"))).sqlstate == sqlstate
    assert rows(connection, "SELECT count(*) FROM many") == [(0,)]


def test_in_a_transaction_and_beside_other_statements(module_server: Server) -> None:
    values = many("1, 'x'")
    count = values.count("(")
    with module_server.connect() as own:
        own.execute("CREATE TABLE beside (a int, s varchar)")
        own.execute("SET atomic_transactions = true")
        own.execute("BEGIN")
        own.execute(f"INSERT INTO beside VALUES {values}")
        assert rows(own, "SELECT count(*) FROM beside") == [(count,)]
        own.execute("ROLLBACK")
        assert rows(own, "SELECT count(*) FROM beside") == [(0,)]
        own.execute(f"INSERT INTO beside VALUES {values}; INSERT INTO beside VALUES {values}")
        assert rows(own, "SELECT count(*) FROM beside") == [(2 * count,)]
        assert own.execute(f"INSERT INTO beside VALUES {values} RETURNING a").fetchall() == [(1,)] * count


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO t VALUES (1), (2) RETURNING a",
        "INSERT INTO t VALUES (1), (2); SELECT 1",
        "INSERT INTO t VALUES (1), (2, 3)",
        "INSERT INTO t VALUES (E'\\n'), ('x')",
        "INSERT INTO t VALUES ('a' 'b'), ('x')",
        "INSERT INTO t VALUES ($1), ($2)",
        "INSERT INTO t SELECT 1",
        "INSERT INTO t VALUES (1.), (2)",
        "INSERT INTO t VALUES ()",
        "SELECT 1",
        "",
    ],
)
def test_other_forms(sql: str) -> None:
    assert constant_rows(sql) is None


def test_its_parts() -> None:
    found = constant_rows("insert into a.\"B\" (\"x\", y) values (-2.5, ')'), (NULL, '') ; ")
    assert found is not None
    assert found.form == 'insert into a."B" ("x", y) values (1, \'\')'
    assert found.constants == ["-2.5", "')'", "NULL", "''"] and found.width == 2
    found = constant_rows("INSERT INTO t VALUES ('2024-02-29'::date, TRUE)")
    assert found is not None and found.form == "INSERT INTO t VALUES ('2000-01-01'::date, true)"
