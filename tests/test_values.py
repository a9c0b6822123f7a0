"""Where DuckDB's own answer is another than PostgreSQL's: a query and a view, beside a real PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import Postgres
from psycopg import sql
from servers import Server

EXPRESSIONS = (
    "interval '1 day' - interval '12 hours' = interval '12 hours'", "iv = interval '12 hours'",
    "iv < interval '13 hours'",
    "iv IN (interval '12 hours')", "iv BETWEEN '11 hours' AND '12 hours'", "interval '1 mon' = interval '30 days'",
    "iv = ANY (ARRAY[interval '12 hours'])", "iv <> iu", "iv IS DISTINCT FROM iu",
    "t NOT LIKE ANY (ARRAY['a', NULL])", "t LIKE ANY (ARRAY['a', NULL])", "t NOT LIKE ALL (ARRAY['a', NULL])",
    "t LIKE ALL (ARRAY['a', NULL])", "t NOT LIKE ANY ('{}'::text[])", "t NOT LIKE ALL ('{}'::text[])",
    "t NOT ILIKE ANY (ARRAY['A', 'b'])", "t ILIKE ALL (ARRAY['A'])", "t LIKE SOME (ARRAY['b', 'a'])",
    "t ~ ANY (ARRAY['^a', NULL])", "t !~ ANY (ARRAY['^a', NULL])", "t ~* ALL (ARRAY['^A', NULL])",
    "NOT t LIKE ANY (ARRAY['a'])",
    "substr('hello', i)", "substr('hello', 2, i)", "substr('hello', i, 2)", "lpad(t, i)", "rpad(t, i, 'x')",
    "left(t, i)", "repeat(t, i)", "split_part(t, ',', i)", "overlay(t placing 'x' from i)",
    "date '0044-03-15 BC'", "timestamp '0044-03-15 10:00:00 BC'", "'2020-01-01 00:00:00.1234567'::timestamp",
    "'2020-12-31 23:59:59.9999999'::timestamp", "'2020-01-01 00:00:00.1234565'::timestamp",
)  # fmt: skip
ERRORS = ("1 / 0.0", "1 / 0", "1 % 0", "1.5 % 0.0", "div(1, 0)", "power(0, -1)", "i / 0::float8",
          "interval '1 day' / 0", "d / 0.00")  # fmt: skip

_TABLE = (
    "CREATE TABLE hard (n int PRIMARY KEY, i int, t varchar, iv interval, iu interval, d numeric)",
    "INSERT INTO hard VALUES (1, NULL, 'a', '1 day -12:00:00', '12:00:00', 1), (2, 2, 'bcd', '30 days', '1 mon', 1),"
    " (3, NULL, NULL, NULL, NULL, NULL)",
)


@pytest.fixture(scope="module")
def expected() -> Iterator[psycopg.Connection[Any]]:
    postgres = Postgres()
    with postgres.connect() as connection:
        for statement in _TABLE:
            connection.execute(statement.encode())
        yield connection
    postgres.stop()


def _ask(connection: psycopg.Connection[Any], query: str) -> list[object]:
    return [row[0] for row in connection.execute(query.encode())]


def test_values_are_those_of_postgres(in_process_server: Server, expected: psycopg.Connection[Any]) -> None:
    listed = ", ".join(f"{expression} AS x{number}" for number, expression in enumerate(EXPRESSIONS))
    with in_process_server.connect() as connection:
        for statement in _TABLE:
            connection.execute(statement.encode())
        connection.execute(f"CREATE MATERIALIZED VIEW hard_view AS SELECT n, {listed} FROM hard".encode())
        differing = []
        for number, expression in enumerate(EXPRESSIONS):
            right = _ask(expected, f"SELECT ({expression})::text FROM hard ORDER BY n")
            for found in (
                _ask(connection, f"SELECT ({expression})::text FROM hard ORDER BY n"),
                _ask(connection, f"SELECT x{number}::text FROM hard_view ORDER BY n"),
            ):
                if found != right:
                    differing.append((expression, found, right))
    assert differing == []


def test_intervals_meet_and_are_ordered_by_their_length(
    in_process_server: Server, expected: psycopg.Connection[Any]
) -> None:
    joined = "SELECT a.n, b.n FROM hard a JOIN hard b ON a.iv = b.iu ORDER BY 1, 2"
    with in_process_server.connect() as connection:
        for statement in _TABLE:
            connection.execute(statement.replace("hard", "lengths").encode())
        connection.execute(
            "CREATE MATERIALIZED VIEW met AS SELECT a.n AS a, b.n AS b FROM lengths a JOIN lengths b ON a.iv = b.iu"
        )
        ours = joined.replace("hard", "lengths")
        assert connection.execute(ours.encode()).fetchall() == expected.execute(joined.encode()).fetchall()
        assert connection.execute("SELECT a, b FROM met ORDER BY 1, 2").fetchall() == [(1, 1), (2, 2)]
        connection.execute("INSERT INTO lengths VALUES (4, 1, 'x', '13:00:00', NULL, 1)")
        order = connection.execute("SELECT n FROM lengths WHERE iv IS NOT NULL ORDER BY iv").fetchall()
    assert order == [(1,), (4,), (2,)]


@pytest.mark.parametrize("expression", ERRORS)
def test_errors_are_those_of_postgres(
    in_process_server: Server, expected: psycopg.Connection[Any], expression: str
) -> None:
    query = sql.SQL(f"SELECT {expression} FROM (VALUES (1, 1.5)) v(i, d)")  # type: ignore[arg-type]
    with pytest.raises(psycopg.Error) as right:
        expected.execute(query)
    with in_process_server.connect() as connection, pytest.raises(psycopg.Error) as found:
        connection.execute(query)
    assert found.value.sqlstate == right.value.sqlstate
    assert found.value.diag.message_primary == right.value.diag.message_primary
