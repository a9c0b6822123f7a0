"""Every function, operator, cast and aggregate that a view accepts lives through extreme values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import duckdb
import extreme_values as extremes
import psycopg
import pytest
from extreme_differences import explained
from servers import Server, refused
from test_functions import same_value
from test_golden import plan_over
from view_functions import view_database

from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type, parse_type
from sparkwave.executor.epochs.delta_programs import whole
from sparkwave.planner.parse.text_values import decode_text
from sparkwave.server.wire.text_format import text_array

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
    "sum(a6)": "a total of more than 19 digits before the point sets the view apart",
    "avg(a6)": "a total of more than 19 digits before the point sets the view apart",
    "sum(DISTINCT a6)": "a total of more than 19 digits before the point sets the view apart",
}
# Each argument has all of its values.
ALL_ROWS = extremes.rows(13)
ROWS = ALL_ROWS[::6]
_TOGETHER = 30


@pytest.fixture(scope="module")
def binder() -> duckdb.DuckDBPyConnection:
    """A DuckDB with the table's columns and the functions that views use."""
    opened = view_database()
    columns = extremes.TABLE.replace(" numeric", " DECIMAL(38, 19)").replace(" jsonb", " JSON")
    opened.execute(f"CREATE TABLE i0_new {columns}")
    return opened


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, id=name, marks=() if name != "scalars" else pytest.mark.long) for name, kind in KINDS.items()],
)
def test_no_error_escapes(
    in_process_server: Server, postgres: Connection, binder: duckdb.DuckDBPyConnection, kind: Kind
) -> None:
    calls = extremes.one_of_each(kind.calls(postgres))
    accepted = [call for call in calls if _is_accepted(binder, kind, call)]
    assert len(accepted) > len(calls) / 2
    with in_process_server.connect() as connection:
        assert _faults(connection, kind, accepted) == []


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_error_escapes_whatever_the_types(
    in_process_server: Server, postgres: Connection, binder: duckdb.DuckDBPyConnection, kind: Kind
) -> None:
    accepted = [call for call in kind.calls(postgres) if _is_accepted(binder, kind, call)]
    with in_process_server.connect() as connection:
        assert _faults(connection, kind, accepted) == []


def test_values_are_postgresqls(postgres: Connection, binder: duckdb.DuckDBPyConnection) -> None:
    """One call of each shape; where PostgreSQL raises for a row a view has NULL."""
    wrong, compared = _wrong(postgres, binder, extremes.one_of_each(extremes.scalars(postgres)), ROWS)
    assert wrong == []
    assert compared > 150


# Of queries outside of views, which raise.
ERRORS = (
    "SELECT ln(x) FROM (VALUES (0.0::float8)) v (x)", "SELECT ln(x) FROM (VALUES (-1.0::float8)) v (x)",
    "SELECT sqrt(x) FROM (VALUES (-1.0::float8)) v (x)", "SELECT 'a' LIKE x FROM (VALUES ('\\')) v (x)",
    "SELECT 'a' ~ x FROM (VALUES ('a[')) v (x)", "SELECT 'a' ~ x FROM (VALUES ('(a')) v (x)",
    "SELECT 'a' ~ x FROM (VALUES ('*')) v (x)", "SELECT 'a' ~ x FROM (VALUES ('a\\')) v (x)",
    "SELECT sin(x) FROM (VALUES ('Infinity'::float8)) v (x)", "SELECT acosh(x) FROM (VALUES (0.5::float8)) v (x)",
    "SELECT abs(x) FROM (VALUES ((-2147483648)::int)) v (x)",
    "SELECT abs(x) FROM (VALUES (-9223372036854775808)) v (x)",
    "SELECT make_time(25, x, 0) FROM (VALUES (0)) v (x)", "SELECT make_date(0, x, 1) FROM (VALUES (1)) v (x)",
    "SELECT power(x, 0.5) FROM (VALUES (-1.0::float8)) v (x)", "SELECT chr(x) FROM (VALUES (0)) v (x)",
    "SELECT substring('abc', 1, x) FROM (VALUES (-1)) v (x)", "SELECT split_part('a', ',', x) FROM (VALUES (0)) v (x)",
    "SELECT overlay('abc' placing 'x' from x) FROM (VALUES (0)) v (x)",
    "SELECT trim_array(ARRAY[1, 2], x) FROM (VALUES (3)) v (x)",
    "SELECT regexp_count('abc', 'b', x) FROM (VALUES (0)) v (x)",
    "SELECT jsonb_array_length(x) FROM (VALUES ('{}'::jsonb), ('1'::jsonb)) v (x)",
)  # fmt: skip


@pytest.mark.parametrize("query", ERRORS)
def test_errors_are_postgresqls(in_process_server: Server, postgres: Connection, query: str) -> None:
    with in_process_server.connect() as connection:
        ours, theirs = refused(connection, query), refused(postgres, query)
    assert (ours.sqlstate, ours.diag.message_primary) == (theirs.sqlstate, theirs.diag.message_primary)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_values_are_postgresqls_whatever_the_types(postgres: Connection, binder: duckdb.DuckDBPyConnection) -> None:
    wrong, compared = _wrong(postgres, binder, extremes.scalars(postgres), ALL_ROWS)
    assert wrong == []
    assert compared > 700


def _wrong(
    postgres: Connection, binder: duckdb.DuckDBPyConnection, calls: list[str], made: list[tuple[object, ...]]
) -> tuple[list[tuple[str, object, str | None, str | None]], int]:
    """The calls with the first row in which a view's value is wrong, and how many were compared."""
    extremes.prepare(postgres, made)
    binder.execute("DELETE FROM i0_new")
    marks = ", ".join("?" for _ in made[0])
    binder.executemany(
        f"INSERT INTO i0_new VALUES ({marks})", [(row[0], *map(read_value, row[1:], _TYPES)) for row in made]
    )
    wrong, compared = [], 0
    for call in calls:
        found = _values(binder, call)
        expected = extremes.ask(postgres, call, [int(str(row[0])) for row in made]) if found is not None else None
        if found is None or expected is None:
            continue
        compared += 1
        type_, values = found
        pairs = zip((row[0] for row in made), expected, values, strict=True)
        wrong += [(call, n, theirs, ours) for n, theirs, ours in pairs if not _is_right(call, theirs, ours, type_)][:1]
    return wrong, compared


_TYPES = [type_ for _, type_ in extremes.COLUMNS]


def read_value(value: object, type_: str) -> object:
    """A value as DuckDB's client takes it."""
    text = str(value)
    if value is None or type_.startswith(("time", "interval", "json", "numeric", "date")):
        return value if value is None or not text.endswith("BC") else f"{text[:10]} (BC){text[10:-3]}"
    return decode_text(text, parse_type(type_))


def _values(binder: duckdb.DuckDBPyConnection, call: str) -> tuple[Type, list[str | None]] | None:
    """The type and the values that a view has of a call, as a client reads them; None if it may have no such call."""
    try:
        plan = plan_over((f"CREATE TABLE t {extremes.TABLE}",), f"SELECT n, {call} AS x FROM t")
        query = whole(plan)[-1].query
        binder.execute(f"EXPLAIN {query}")
    except (Error, duckdb.BinderException, duckdb.ParserException, duckdb.InvalidInputException):
        return None
    except duckdb.NotImplementedException:
        return None
    found = binder.execute(f"SELECT x FROM ({query}) ORDER BY n").to_arrow_table().column(0).combine_chunks()
    type_ = plan.root.fields[-1].type
    return type_, text_array(found, type_).to_pylist()


def _is_right(call: str, postgres: str | None, ours: str | None, type_: Type) -> bool:
    if postgres is not None and postgres.startswith("!"):
        return ours is None or explained(call, postgres, ours)
    if type_.name == "boolean" and not type_.dimensions:
        postgres = postgres and postgres[0]
    return same_value(ours, postgres, type_.shown) or explained(call, postgres, ours)


def _is_accepted(binder: duckdb.DuckDBPyConnection, kind: Kind, call: str) -> bool:
    return is_accepted(binder, kind, call) and not call.startswith(tuple(KNOWN))


def is_accepted(binder: duckdb.DuckDBPyConnection, kind: Kind, call: str) -> bool:
    """Whether a view may have a call, by the planner and by DuckDB's binder."""
    try:
        plan = plan_over((f"CREATE TABLE t {extremes.TABLE}",), kind.query.format(f"{call} AS x", "t"))
        for item in whole(plan):
            binder.execute(f"EXPLAIN {item.query}")
            if item.state:
                binder.execute(f"CREATE OR REPLACE TEMP TABLE {item.state}_state AS {item.query}")
    except (Error, duckdb.Error):
        return False
    return True


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
