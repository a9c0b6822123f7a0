"""PREPARE, EXECUTE and DEALLOCATE, whose names are those of the protocol too. Answers agree with PostgreSQL 15.18."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from servers import refused

Connection = psycopg.Connection[Any]


@pytest.fixture
def table(connection: Connection) -> Iterator[str]:
    connection.execute("CREATE TABLE prepared_rows (k int PRIMARY KEY, v varchar, d date)")
    connection.execute("INSERT INTO prepared_rows VALUES (1, 'a', '2024-02-29'), (2, 'b', NULL)")
    yield "prepared_rows"
    connection.execute("DROP TABLE prepared_rows")


def test_a_query(connection: Connection, table: str) -> None:
    assert (
        connection.execute("PREPARE q (int) AS SELECT v, d FROM prepared_rows WHERE k = $1").statusmessage == "PREPARE"
    )
    found = connection.execute("EXECUTE q (1)")
    assert found.statusmessage == "SELECT 1"
    assert [column.name for column in found.description or ()] == ["v", "d"]
    assert [str(value) for row in found for value in row] == ["a", "2024-02-29"]
    assert connection.execute("EXECUTE q ('2')").fetchall() == [("b", None)]
    assert connection.execute("EXECUTE q (1 + 1)").fetchall() == [("b", None)]
    assert connection.execute("EXECUTE q (NULL)").fetchall() == []
    assert connection.execute("DEALLOCATE q").statusmessage == "DEALLOCATE"
    assert refused(connection, "EXECUTE q (1)").sqlstate == "26000"


def test_writes(connection: Connection, table: str) -> None:
    connection.execute("PREPARE i AS INSERT INTO prepared_rows VALUES ($1, $2, $3)")
    assert connection.execute("EXECUTE i (3, 'it''s', '2020-01-01')").statusmessage == "INSERT 0 1"
    connection.execute("PREPARE u AS UPDATE prepared_rows SET v = $2 WHERE k = $1")
    assert connection.execute("EXECUTE u (3, upper('x'))").statusmessage == "UPDATE 1"
    connection.execute("PREPARE d AS DELETE FROM prepared_rows WHERE k > $1")
    assert connection.execute("SELECT v FROM prepared_rows WHERE k = 3").fetchall() == [("X",)]
    assert connection.execute("EXECUTE d (1)").statusmessage == "DELETE 2"
    assert connection.execute("DEALLOCATE ALL").statusmessage == "DEALLOCATE ALL"


@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("bytea", r"'\x00ff'"),
        ("interval", "INTERVAL '1 month 2 days 03:04:05'"),
        ("timestamp", "'2024-01-02 03:04:05.678'"),
        ("timestamptz", "'2024-01-02 03:04:05+02'"),
        ("numeric", "12.5"),
        ("jsonb", """'{"a": [1, 2]}'"""),
        ("uuid", "'00000000-0000-0000-0000-0000000000ff'"),
        ("double precision", "'NaN'"),
        ("time", "'03:04:05.678'"),
        ("int[]", "ARRAY[1, NULL, 3]"),
        ("varchar[]", "ARRAY['a', 'b,c', NULL]"),
        ("boolean", "true"),
    ],
)
def test_values_are_those_of_a_query(connection: Connection, type_: str, value: str) -> None:
    connection.execute(f"PREPARE typed ({type_}) AS SELECT $1 AS v")
    try:
        (found,) = connection.execute(f"EXECUTE typed ({value})").fetchall()
        assert repr(found) == repr(connection.execute(f"SELECT CAST({value} AS {type_}) AS v").fetchone())
    finally:
        connection.execute("DEALLOCATE typed")


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message", "position"),
    [
        ("PREPARE bad AS SELECT nothing FROM prepared_rows", "42703", "nothing", 23),
        ("PREPARE bad AS SELECT 1 FROM nowhere", "42P01", "nowhere", 30),
        ("PREPARE bad AS SELEC 1", "42601", 'syntax error at or near "SELEC"', 16),
        ("PREPARE bad (nonsense) AS SELECT 1", "42704", 'type "nonsense" does not exist', 14),
        ("PREPARE bad AS SHOW TABLES", "42601", "syntax error", 16),
        ("EXECUTE never", "26000", 'prepared statement "never" does not exist', None),
        ("DEALLOCATE never", "26000", 'prepared statement "never" does not exist', None),
        ("PREPARE TRANSACTION 'x'", "0A000", "PREPARE TRANSACTION", 9),
    ],
)
def test_errors(
    connection: Connection, table: str, sql: str, sqlstate: str, message: str, position: int | None
) -> None:
    error = refused(connection, sql)
    assert error.sqlstate == sqlstate
    assert message in str(error)
    assert error.diag.statement_position == (None if position is None else str(position))


def test_the_number_and_kind_of_values(connection: Connection) -> None:
    connection.execute("PREPARE two (int, text) AS SELECT $1, $2")
    assert refused(connection, "PREPARE two AS SELECT 1").sqlstate == "42P05"
    error = refused(connection, "EXECUTE two (1)")
    assert error.sqlstate == "42601"
    assert error.diag.message_primary == 'wrong number of parameters for prepared statement "two"'
    assert error.diag.message_detail == "Expected 2 parameters but got 1."
    assert refused(connection, "EXECUTE two ('x', 'y')").sqlstate == "22P02"
    assert connection.execute("EXECUTE two (1, 'y')").fetchall() == [(1, "y")]


def test_a_place_in_the_prepared_text_is_not_told(connection: Connection) -> None:
    connection.execute("CREATE TABLE prepared_once (k int)")
    connection.execute("PREPARE once AS SELECT k FROM prepared_once")
    connection.execute("DROP TABLE prepared_once")
    error = refused(connection, "EXECUTE once")
    assert (error.sqlstate, error.diag.statement_position) == ("42P01", None)
    connection.execute("DEALLOCATE once")


def test_names_are_those_of_the_protocol(connection: Connection) -> None:
    """psycopg's low level: a Parse of the name, and Execute of what SQL has prepared."""
    raw = connection.pgconn
    raw.prepare(b"mine", b"SELECT $1::int + 1 AS v")
    assert connection.execute("EXECUTE mine (41)").fetchall() == [(42,)]
    assert refused(connection, "PREPARE mine AS SELECT 1").sqlstate == "42P05"
    connection.execute("PREPARE yours (int) AS SELECT $1 * 2 AS v")
    assert raw.exec_prepared(b"yours", [b"21"]).get_value(0, 0) == b"42"
    described = raw.describe_prepared(b"yours")
    assert (described.param_type(0), described.fname(0)) == (23, b"v")
    connection.execute("DEALLOCATE mine")
    assert b"does not exist" in raw.exec_prepared(b"mine", [b"1"]).error_message


def test_execute_over_the_extended_protocol(connection: Connection) -> None:
    connection.execute("PREPARE e AS SELECT 1 AS one, 'x' AS x")
    found = connection.execute("EXECUTE e", binary=True, prepare=True)
    assert found.fetchall() == [(1, "x")]
    connection.pgconn.prepare(b"again", b"EXECUTE again")
    assert refused(connection, "EXECUTE again").sqlstate == "0A000"


@pytest.mark.parametrize(
    "statement",
    [
        "SHOW timezone;",
        "BEGIN ; ",
        "COMMIT;; -- done",
        "SELECT 1;",
        "CREATE TABLE ended (a int);",
        "DROP TABLE ended ;",
    ],
)
def test_semicolons_may_follow(connection: Connection, statement: str) -> None:
    """In the extended protocol too."""
    connection.execute(statement.encode(), binary=True)
