"""What a cast of a parameter, an array or an outer query's column gives, as PostgreSQL."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from postgres import beside
from psycopg.types.json import Jsonb
from servers import Server

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def both(module_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(module_server) as (ours, theirs):
        for connection in (ours, theirs):
            connection.execute(
                "CREATE TABLE t (f float8, r real, b bytea, n numeric, i interval, k int, s text, a float8[], d date)"
            )
            connection.execute(
                "INSERT INTO t VALUES (1, 1.5, '\\x6162', 1.5, '1 day', 3, '2020-01-02 03:04:05', '{1,2.5}', "
                "'2020-01-02'), (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
            )
            connection.execute("CREATE TABLE u (s text, x int)")
            connection.execute("INSERT INTO u VALUES ('1', 1), ('\\x6162', 2), ('1.5', 3), ('1 day', 4)")
        ours.execute("FLUSH")
        yield ours, theirs


VALUES = [
    1.0, 1e20, -0.5, 12345678901234567.0, b"ab", b"", b"\x00\xff\\", True, Decimal("1.50"), Decimal("-0.001"),
    datetime.timedelta(days=1, seconds=3), datetime.timedelta(days=-1, microseconds=5), datetime.date(2020, 1, 2),
    datetime.datetime(2020, 1, 2, 3, 4, 5, 6), datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC), datetime.time(1, 2),
    Jsonb({"a": [1, 2.5, None]}), [1, 2], [1.0, 2.5], [b"ab", None], ["a b", 'q"', "", None], [True, False],
    [datetime.date(2020, 1, 2)], [datetime.timedelta(days=1)], [Jsonb({"a": 1})], 5, 2**40, "text",
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_parameters(both: tuple[Connection, Connection], value: object) -> None:
    for form in ("s", "b", "t"):
        queries = [f"SELECT %{form}::text", f"SELECT %{form}::varchar || 'x'", f"SELECT length(%{form}::text)"]
        for query in queries:
            ours, theirs = (connection.execute(query.encode(), (value,)).fetchall() for connection in both)
            assert ours == theirs, query


@pytest.mark.parametrize(
    "literal",
    [
        "ARRAY[1.0, 1e20, NULL]::float8[]", "ARRAY[1.5]::real[]", "'{\"\\\\x6162\",ab,NULL}'::bytea[]",
        "ARRAY['\\x6162']::bytea[]", "ARRAY['1 day', '-1 hour']::interval[]", "ARRAY[1, NULL]", "ARRAY['a b', '']",
        "'{{\"\\\\x61\"},{\"\\\\x62\"}}'::bytea[]", "'{}'::bytea[]", "'{}'::float8[]",
    ],
)  # fmt: skip
def test_arrays(both: tuple[Connection, Connection], literal: str) -> None:
    for query in (f"SELECT {literal}", f"SELECT ({literal})::text"):
        ours, theirs = (connection.execute(query.encode()).fetchall() for connection in both)
        assert ours == theirs, query


CORRELATED = [
    "SELECT (SELECT count(*) FROM u WHERE u.s = t.f::text) FROM t ORDER BY k",
    "SELECT (SELECT count(*) FROM u WHERE u.s = t.b::text), (SELECT t.b::text) FROM t ORDER BY k",
    "SELECT (SELECT max(u.s || t.i::text) FROM u), (SELECT t.i::text || 'x') FROM t ORDER BY k",
    "SELECT (SELECT (SELECT t.f::text)), (SELECT f::text), (SELECT t.r::text) FROM t ORDER BY k",
    "SELECT (SELECT t.s::timestamp), (SELECT t.s::timestamp + interval '1 day' FROM u LIMIT 1) FROM t ORDER BY k",
    "SELECT (SELECT t.k / 2 FROM u LIMIT 1), (SELECT t.k % 2), (SELECT -t.k) FROM t ORDER BY k",
    "SELECT (SELECT coalesce(max(u.x), t.k * 2) FROM u WHERE u.x > 100) FROM t ORDER BY k",
    "SELECT (SELECT string_agg(u.s || t.f::text, ',' ORDER BY u.x) FROM u WHERE u.x <= t.k) FROM t ORDER BY k",
    "SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.s = t.f::text AND u.x < t.k + 1)",
    "SELECT k FROM t WHERE k IN (SELECT x FROM u WHERE length(u.s) > length(t.f::text) - 1)",
    "SELECT k FROM t WHERE t.k > ALL (SELECT u.x - t.k FROM u)",
    "SELECT (SELECT count(*) FROM u GROUP BY t.f::text) FROM t ORDER BY k",
    "SELECT (SELECT t.d + 1), (SELECT t.d - interval '1 hour'), (SELECT extract(year FROM t.d)) FROM t ORDER BY k",
    "SELECT (SELECT t.a::text), (SELECT t.a[1] + u.x FROM u WHERE u.x = 1) FROM t ORDER BY k",
    "SELECT l.* FROM t, LATERAL (SELECT t.f::text || 'x', t.b::text, t.i::text) AS l (a, b, c) ORDER BY t.k",
    "SELECT k, (SELECT sum(CASE WHEN u.x > t.k / 2 THEN t.k ELSE 0 END) FROM u) FROM t ORDER BY k",
    "UPDATE t SET k = k WHERE EXISTS (SELECT 1 FROM u WHERE u.s = t.f::text) RETURNING k",
]


@pytest.mark.parametrize("query", CORRELATED)
def test_outer_columns(both: tuple[Connection, Connection], query: str) -> None:
    ours, theirs = (connection.execute(query.encode()).fetchall() for connection in both)
    assert ours == theirs


def test_names_of_relations_as_arguments(both: tuple[Connection, Connection]) -> None:
    for connection in both:
        connection.execute('CREATE TABLE "od d" (id serial, v int)')
    for query in (
        "SELECT pg_get_serial_sequence(attrelid::regclass::text, attname) FROM pg_attribute "
        "WHERE attrelid = '\"od d\"'::regclass AND attnum > 0 ORDER BY attnum",
        "SELECT pg_get_serial_sequence('\"od d\"', 'id')::regclass::oid > 0",
        "SELECT pg_get_serial_sequence('\"od d\"', 'id')::regclass::text",
        "SELECT pg_typeof(1)::regtype = 'int4'::regtype, pg_typeof('a'::text)::regtype = 'int4'::regtype",
    ):
        ours, theirs = (connection.execute(query.encode()).fetchall() for connection in both)
        assert ours == theirs, query


@pytest.mark.parametrize(
    "text",
    [
        "+0 day +1 second",
        "P1Y2M3DT4H5M6.7S",
        "PT0S",
        "1-2",
        "1 day ago",
        "-1 mon +2 days",
        "1 year 00:00:01",
        "4:05:06",
    ],
)
def test_interval_parameters(both: tuple[Connection, Connection], text: str) -> None:
    ours, theirs = (connection.execute("SELECT %s::interval::text", (text,)).fetchall() for connection in both)
    assert ours == theirs


def test_nested_calls(both: tuple[Connection, Connection]) -> None:
    """DuckDB took a minute to plan three levels."""
    query = "SELECT concat_ws('-', initcap(s), concat(n, (concat_ws('+', f, concat(d, lower(s)))))) FROM t ORDER BY k"
    ours, theirs = both
    assert ours.execute(query).fetchall() == theirs.execute(query).fetchall()
    ours.execute(
        f"CREATE MATERIALIZED VIEW nested AS {query.replace(' FROM', ' AS text, k FROM').partition(' ORDER')[0]}"
    )
    assert ours.execute("SELECT text FROM nested ORDER BY k").fetchall() == theirs.execute(query).fetchall()
    ours.execute("DROP MATERIALIZED VIEW nested")
