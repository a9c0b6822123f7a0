"""Statements by DuckDB's C interface have the results and errors of the Python client."""

from __future__ import annotations

import threading
from unittest import mock

import duckdb
import pytest

from sparkwave.catalog.lake import direct_calls
from sparkwave.catalog.lake.direct_calls import Direct, execute, is_direct

RESULTS = (
    "SELECT 1",
    "SELECT i, (-i % 100)::TINYINT AS tiny, i::UBIGINT AS u, i / 3 AS third, i > 2000 AS is FROM range(5000) AS t (i)",
    "SELECT nullif(i % 3, 0) AS i, if(i > 2500, i, NULL) AS large, NULL::INTEGER AS none FROM range(5000) AS t (i)",
    "SELECT NULL::BIGINT AS i",
    "SELECT i::HUGEINT::BIGINT AS i FROM range(0) AS t (i)",
    "BEGIN; CREATE OR REPLACE TABLE made AS FROM range(10); DELETE FROM made WHERE range < 4; COMMIT; FROM made",
    "INSERT INTO r SELECT range FROM range(7)",
    "INSERT INTO r SELECT range FROM range(3) RETURNING k, hash(k) AS h",
    "SELECT twice(k) AS k FROM r",
)
ERRORS = (
    "INSERT INTO keyed VALUES (1), (1)", "INSERT INTO keyed VALUES (NULL)", "SELECT nowhere FROM r", "FROM nowhere",
    "SELECT 1; SELECT FROM WHERE", "SELECT 'a'::INT", "SELECT 300::TINYINT", "SELECT error('mine')", "COMMIT",
    "SELECT fails(1)", "FROM 'nowhere.parquet'", "SELECT no_function(1)", "DROP TABLE r; SELECT 1 / 'x'",
)  # fmt: skip


@pytest.fixture
def cursors() -> tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]:
    """Cursors of two databases with the same tables and functions."""

    def fails(_value: int) -> int:
        raise ValueError("it fails")

    made = []
    for _ in range(2):
        cursor = duckdb.connect().cursor()
        cursor.execute("CREATE TABLE keyed (k INTEGER PRIMARY KEY); CREATE TABLE r (k BIGINT)")
        cursor.create_function("twice", lambda value: 2 * value, ["BIGINT"], "BIGINT")
        cursor.create_function("fails", fails, ["INTEGER"], "INTEGER")
        made.append(cursor)
    return made[0], made[1]


def test_results(cursors: tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection]) -> None:
    """Also of several statements, of which the last one's result counts, and with functions in Python."""
    direct, usual = cursors
    assert is_direct(direct), "no address of the connection: has the layout of the Python client changed?"
    for statement in RESULTS:
        found, expected = execute(direct, statement), usual.execute(statement)
        assert isinstance(found, Direct)
        columns = expected.fetchnumpy()
        assert {name: values.tolist() for name, values in found.fetchnumpy().items()} == {
            name: values.tolist() for name, values in columns.items()
        }
        assert found.fetchall() == [*zip(*(values.tolist() for values in columns.values()), strict=True)]
        assert found.fetchone() == next(iter(found.fetchall()), None)


@pytest.mark.parametrize("statement", ERRORS)
def test_errors(cursors: tuple[duckdb.DuckDBPyConnection, duckdb.DuckDBPyConnection], statement: str) -> None:
    """Of the same class, with the same text; the statements before it have run."""
    direct, usual = cursors
    with pytest.raises(duckdb.Error) as expected:
        usual.execute(statement)
    with pytest.raises(duckdb.Error) as found:
        execute(direct, statement)
    assert type(found.value) is type(expected.value)
    assert _text(found.value) == _text(expected.value)
    tables = "SELECT count(*) FROM duckdb_tables()"
    assert direct.execute(tables).fetchall() == usual.execute(tables).fetchall()


def _text(error: duckdb.Error) -> str:
    """Return the text of an error without the calls that led to it in Python."""
    return str(error).partition("\n\nAt:\n")[0]


def test_an_interruption() -> None:
    """By another thread, which runs meanwhile."""
    cursor = duckdb.connect().cursor()
    timer = threading.Timer(0.2, cursor.interrupt)
    timer.start()
    with pytest.raises(duckdb.InterruptException):
        execute(cursor, "SELECT count(*) FROM range(1000000000000)")
    assert isinstance(execute(cursor, "SELECT 1"), Direct)


def test_a_closed_cursor() -> None:
    """Its connection is gone, and the client says so."""
    cursor = duckdb.connect().cursor()
    execute(cursor, "SELECT 1")
    cursor.close()
    assert not is_direct(cursor)
    with pytest.raises(duckdb.ConnectionException):
        execute(cursor, "SELECT 1")


def test_without_an_address() -> None:
    """The client runs the statements, with the same interface: with another version, or an unexpected layout."""
    for changed in (mock.patch.object(duckdb, "__version__", "1.6.0"), mock.patch.object(direct_calls, "_VALUE", 8)):
        with changed:
            cursor = duckdb.connect().cursor()
            assert not is_direct(cursor)
            assert execute(cursor, "SELECT 1; SELECT 2").fetchall() == [(2,)]
