"""Every function, operator, cast and aggregate that a view accepts lives through extreme values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import extreme_values as extremes
import psycopg
import pytest
from postgres import Postgres
from servers import Server
from test_golden import plan_over

from catalog import system_views
from catalog.errors import Error
from executor.program import whole

Connection = psycopg.Connection[Any]


@dataclass(frozen=True)
class Kind:
    """The calls of a kind, and the query of a view of many."""

    calls: Callable[[Connection], list[str]]
    query: str


KINDS = {
    "scalars": Kind(extremes.scalars, "SELECT n, {} FROM {}"),
    "aggregates": Kind(extremes.aggregates, "SELECT a0, {} FROM {} GROUP BY a0"),
    "windows": Kind(extremes.windows, "SELECT n, {} FROM {}"),
}
# Calls that set a view apart, and why; nothing else may.
KNOWN = {
    "sum(a6)": "a total of more than 28 digits before the point raises within DuckDB's aggregate",
    "avg(a6)": "so does the total of which it is the average",
}
# Each argument has all of its values.
ROWS = extremes.rows(13)[::6]
_TOGETHER = 30


@pytest.fixture(scope="module")
def postgres() -> Iterator[Connection]:
    started = Postgres()
    with started.connect() as connection:
        yield connection
    started.stop()


@pytest.fixture(scope="module")
def binder() -> duckdb.DuckDBPyConnection:
    """A DuckDB with the table's columns and the functions that views use."""
    opened = duckdb.connect()
    opened.execute("SET integer_division = true; CREATE SCHEMA memory.pg; ATTACH ':memory:' AS lake")
    opened.execute(system_views._OURS.sub(r"memory.\1.", system_views._SCRIPTS["scalar"]))
    columns = extremes.TABLE.replace(" numeric", " DECIMAL(38, 10)").replace(" jsonb", " JSON")
    opened.execute(f"CREATE TABLE i0_new {columns}")
    return opened


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_error_escapes(
    in_process_server: Server, postgres: Connection, binder: duckdb.DuckDBPyConnection, kind: Kind
) -> None:
    calls = extremes.one_of_each(kind.calls(postgres))
    accepted = [call for call in calls if _is_accepted(binder, kind, call)]
    assert len(accepted) > len(calls) / 2
    with in_process_server.connect() as connection:
        assert _faults(connection, kind, accepted) == []


def _is_accepted(binder: duckdb.DuckDBPyConnection, kind: Kind, call: str) -> bool:
    """Whether a view may have a call, by the planner and by DuckDB's binder."""
    try:
        plan = plan_over((f"CREATE TABLE t {extremes.TABLE}",), kind.query.format(f"{call} AS x", "t"))
        for item in whole(plan, "duckdb"):
            binder.execute(f"EXPLAIN {item.query}")
            if item.state:
                binder.execute(f"CREATE OR REPLACE TEMP TABLE {item.state}_state AS {item.query}")
    except (Error, duckdb.Error):
        return False
    return not call.startswith(tuple(KNOWN))


def _faults(connection: Connection, kind: Kind, calls: list[str]) -> list[object]:
    """The calls whose views are refused, or do not live through the rows and the deletion of some."""
    connection.execute("DROP TABLE IF EXISTS t CASCADE")
    connection.execute(f"CREATE TABLE t {extremes.TABLE}".encode())
    views = [calls[first : first + _TOGETHER] for first in range(0, len(calls), _TOGETHER)]
    for number, view in enumerate(views):
        _create(connection, f"v{number}", kind, view)
    _insert(connection)
    connection.execute("DELETE FROM t WHERE n % 5 = 0")
    connection.execute("FLUSH")
    apart = dict(
        connection.execute("SELECT job_name, state || ': ' || reason FROM rw_catalog.rw_job_status").fetchall()
    )
    return [
        (_alone(connection, kind, view), apart[f"v{number}"])
        for number, view in enumerate(views)
        if apart[f"v{number}"] is not None
    ]


def _create(connection: Connection, name: str, kind: Kind, calls: list[str]) -> None:
    query = kind.query.format(", ".join(f"{call} AS x{number}" for number, call in enumerate(calls)), "t")
    connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}".encode())


def _insert(connection: Connection) -> None:
    values = ", ".join(f"({', '.join(map(_literal, row))})" for row in ROWS)
    connection.execute(f"INSERT INTO t VALUES {values}".encode())


def _literal(value: object) -> str:
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


def _alone(connection: Connection, kind: Kind, calls: list[str]) -> list[str]:
    """Of a failed view's calls those that fail alone."""
    failing = []
    for call in calls:
        try:
            _create(connection, "alone", kind, [call])
        except psycopg.Error:
            failing.append(call)
        else:
            connection.execute("DROP MATERIALIZED VIEW alone")
    return failing
