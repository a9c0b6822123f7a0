"""A row for which PostgreSQL raises an error is NULL in a view, which stays alive: on a real server."""

from __future__ import annotations

import time
from typing import Any

import psycopg
import pytest
from servers import Server
from test_golden import plan_over

from sparkwave.catalog.errors import Error

# What PostgreSQL raises an error for, for the first row; the second row's value as text.
RAISING = {
    "d2 + a": "2020-01-06", "ts + interval '1 day' * a": "2020-01-06 00:00:00", "s::jsonb": "1", "s ~ p": "false",
    "regexp_replace(s, p, 'x')": "1", "s SIMILAR TO p": "false", "asin(f)": "0", "acos(f - 1)": "3.141592653589793",
    "atanh(f)": "0", "s::date": None, "s::int": "1", "a + 1": "6", "ts AT TIME ZONE p": None,
    "lpad(s, a)": "    1", "repeat(p, a)": "bbbbb", "q * q": "4", "sm * sm": "25", "chr(a)": "\x05",
    "date_bin(iv, ts, ts)": "2020-01-01 00:00:00", "round(q)::int": "2", "extract(epoch FROM iv * a * 2)": "864000",
    "b::bytea": "\\x31", "p LIKE b": "false",
}  # fmt: skip
# What PostgreSQL computes for both.
COMPUTED = {
    "a << 2": ("-4", "20"), "a >> 33": ("1073741823", "2"), "ar[2147483647]": (None, None), "sm << 1": ("-2", "10"),
    "j || j": ("[1, 1]", '{"a": 1}'),
}  # fmt: skip
AGGREGATES = {
    "stddev(f)": None, "var_pop(f)": None, "corr(f, f)": None, "regr_slope(f, f)": None, "sum(f)": "Infinity",
    "jsonb_object_agg(o, a)": None, "jsonb_agg(a ORDER BY id DESC)": "[2147483647, 2147483647]",
    "stddev(f) FILTER (WHERE a < 0)": None, "sum(r)": None,
}  # fmt: skip


def test_a_row_that_raises_is_null(in_process_server: Server) -> None:
    with in_process_server.connect() as connection:
        connection.execute(
            "CREATE TABLE h (id int PRIMARY KEY, a int, d date, ts timestamp, s varchar, p varchar, f float8,"
            " q numeric, sm smallint, ar int[], iv interval, j jsonb, d2 date, b varchar)"
        )
        values = {**{e: (None, v) for e, v in RAISING.items()}, **COMPUTED}
        listed = ", ".join(f"{expression} AS x{number}" for number, expression in enumerate(values))
        connection.execute(f"CREATE MATERIALIZED VIEW hv AS SELECT id, {listed} FROM h")
        connection.execute(
            "INSERT INTO h VALUES (1, 2147483647, 'infinity'::date, '9999-12-31', '(', '(', 1e300,"
            " 9999999999999999999, 32767, '{1}', '-1 day', '1', '9999-12-31', 'b\\'),"
            " (2, 5, '2020-01-01', '2020-01-01', '1', 'b', 0, 2, 5, '{1}', '1 day', '{\"a\": 1}', '2020-01-01', '1')"
        )
        _flush(connection)
        names = ", ".join(f"x{number}::text" for number in range(len(values)))
        rows = connection.execute(f"SELECT {names} FROM hv ORDER BY id").fetchall()
    found = {expression: tuple(row[number] for row in rows) for number, expression in enumerate(values)}
    assert found == values


# What DuckDB computes but cannot store, or PostgreSQL has not, for the first row; the second row's value as text.
UNSTORABLE = {
    "p + b": "5", "greatest(q, p)": "2",
    "coalesce(p, q)": "2", "CASE WHEN b > 0 THEN p ELSE q END": "2", "array_sum(ARRAY[q, q])": "-2",
    "q - 1": "-2", "p + p": "4", "q * 1.5": "-1.5", "-q - q - q": "3", "s * s": "1.5625", "(q - 1) * 0": "0",
    "d - n": "2019-12-29", "d + n": "2020-01-04", "d - 3000000": None, "ts - i": "2019-12-31 00:00:00",
    "ts + i": "2020-01-02 00:00:00", "tz - i": "2019-12-31 00:00:00+00", "d - i": "2019-12-31 00:00:00",
    "ts - interval '7000 years'": None, "(d + n)::timestamp": "2020-01-04 00:00:00", "make_date(n, 1, 1)": "0003-01-01",
}  # fmt: skip
STORABLE = {
    "s + s": (f"1{'9' * 28}.98", "2.50"), "s - e": (f"1{'9' * 28}.98", "-2.25"), "round(q, 0)": (f"-1{'0' * 19}", "-1"),
    "round(q, 1)": (f"-1{'0' * 19}.0", "-1.0"),
}  # fmt: skip


def test_what_cannot_be_stored_is_null(in_process_server: Server) -> None:
    with in_process_server.connect() as connection:
        connection.execute(
            "CREATE TABLE far (id int PRIMARY KEY, q numeric, p numeric(38, 0), s numeric(30, 2), e numeric(30, 2),"
            " b bigint, n int, d date, ts timestamp, tz timestamptz, i interval)"
        )
        expected = {expression: (None, value) for expression, value in UNSTORABLE.items()} | STORABLE
        listed = ", ".join(f"{expression} AS x{number}" for number, expression in enumerate(expected))
        connection.execute(f"CREATE MATERIALIZED VIEW fv AS SELECT id, {listed} FROM far")
        nines, most = "9" * 28, f"{'9' * 19}.{'9' * 19}"
        connection.execute(
            f"INSERT INTO far VALUES (1, -{most}, {nines}9999999999, {nines}.99, -{nines}.99, 5,"
            " 2147483647, '2020-01-01', '2020-01-01', '2020-01-01', '178000000 years'),"
            " (2, -1, 2, 1.25, 3.5, 3, 3, '2020-01-01', '2020-01-01', '2020-01-01', '1 day')"
        )
        # More rows than the lake's catalog keeps go into files.
        connection.execute(
            "INSERT INTO far SELECT g, q, p, s, e, b, n, d, ts, tz, i FROM far, generate_series(3, 42) AS r (g)"
            " WHERE id = 1"
        )
        connection.execute("UPDATE far SET q = NULL WHERE id > 20")
        _flush(connection)
        names = ", ".join(f"x{number}::text" for number in range(len(expected)))
        first, second, other = connection.execute(
            f"SELECT {names} FROM fv WHERE id IN (1, 2, 10) ORDER BY id"
        ).fetchall()
        reasons = connection.execute("SELECT reason FROM rw_catalog.rw_job_status WHERE job_name = 'fv'").fetchall()
    assert reasons == [(None,)]
    found = {expression: (first[number], second[number]) for number, expression in enumerate(expected)}
    assert found == expected
    assert other == first


@pytest.mark.parametrize(
    ("expression", "sqlstate", "message"),
    [
        ("date '2020-01-01' + 2147483647", "22008", "date out of range"),
        ("timestamp '2020-01-01' + interval '178000000 years'", "22008", "timestamp out of range"),
        ("timestamp '2020-01-01' - interval '300000 years'", "22008", "timestamp out of range"),
        ("timestamptz '2020-01-01' + interval '178000000 years'", "22008", "timestamp out of range"),
        ("make_date(2020, 13, 1)", "22008", "date field value out of range: 2020-13-01"),
        ("date '5874897-12-31'::timestamp", "22008", "date out of range for timestamp"),
        ("timestamp 'infinity' - timestamp '2020-01-01'", "22008", "cannot subtract infinite timestamps"),
        ("t::numeric(5, 2)", "22003", "numeric field overflow"),
    ],
)
def test_an_error_of_a_query_is_postgresqls(
    connection: psycopg.Connection[Any], expression: str, sqlstate: str, message: str
) -> None:
    with pytest.raises(psycopg.Error) as raised:
        connection.execute(f"SELECT {expression} FROM (SELECT '12345'::text) AS r(t)")
    assert (raised.value.diag.sqlstate, raised.value.diag.message_primary) == (sqlstate, message)


def test_what_raising_expressions_share_is_computed_in_each(in_process_server: Server) -> None:
    with in_process_server.connect() as connection:
        connection.execute("CREATE TABLE shared (id int PRIMARY KEY, f float8, a int, s varchar)")
        connection.execute(
            "CREATE MATERIALIZED VIEW sharing AS SELECT id, ln(f) AS x, log(f) AS y, log10(f) AS z,"
            " overlay(s placing s from a for a) AS o FROM shared"
        )
        connection.execute("INSERT INTO shared VALUES (1, 0, 2147483647, 'a'), (2, 1, 1, 'b')")
        _flush(connection)
        rows = connection.execute("SELECT x, y, z, o FROM sharing ORDER BY id").fetchall()
    assert rows == [(None, None, None, None), (0, 0, 0, "b")]


def test_an_aggregate_that_raises_is_null(in_process_server: Server) -> None:
    with in_process_server.connect() as connection:
        connection.execute("CREATE TABLE g (id int PRIMARY KEY, k int, a int, f float8, o varchar, r real)")
        listed = ", ".join(f"{expression} AS x{number}" for number, expression in enumerate(AGGREGATES))
        connection.execute(f"CREATE MATERIALIZED VIEW gv AS SELECT k, {listed} FROM g GROUP BY k")
        connection.execute(
            "CREATE MATERIALIZED VIEW gw AS SELECT id, ntile(a) OVER (ORDER BY id) AS n, lag(a, a) OVER (ORDER BY id)"
            " AS l, stddev(f) OVER (ORDER BY id) AS s, sum(r) OVER (ORDER BY id) AS r FROM g"
        )
        connection.execute(
            "INSERT INTO g VALUES (1, 1, 2147483647, 1e308, NULL, 3e38), (2, 1, 2147483647, 1e308, NULL, 3e38),"
            " (3, 2, 0, 1, 'a', 1), (4, 2, 0, 2, 'b', 1)"
        )
        _flush(connection)
        names = ", ".join(f"x{number}::text" for number in range(len(AGGREGATES)))
        rows = connection.execute(f"SELECT {names} FROM gv ORDER BY k").fetchall()
        windows = connection.execute("SELECT n, l, s FROM gw WHERE id > 2 ORDER BY id").fetchall()
    assert dict(zip(AGGREGATES, rows[0], strict=True)) == AGGREGATES
    assert rows[1][0] == "0.7071067811865476"
    assert windows == [(None, 0, None), (None, 0, None)]


def test_a_numeric_total_that_is_too_large_sets_the_view_apart(in_process_server: Server) -> None:
    with in_process_server.connect() as connection:
        connection.execute("CREATE TABLE large (id int PRIMARY KEY, q numeric)")
        connection.execute("CREATE MATERIALIZED VIEW total AS SELECT sum(q) AS s FROM large")
        connection.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM large")
        connection.execute("INSERT INTO large SELECT i, 9000000000000000000 FROM generate_series(1, 2) i")
        _flush(connection)
        reasons = connection.execute(
            "SELECT job_name, reason LIKE 'value overflows numeric format' FROM rw_catalog.rw_job_status"
            " WHERE job_name IN ('total', 'counted') ORDER BY 1"
        ).fetchall()
        assert reasons == [("counted", None), ("total", True)]
        assert connection.execute("SELECT n FROM counted").fetchall() == [(2,)]
        connection.execute("DROP MATERIALIZED VIEW total")


def _flush(connection: psycopg.Connection[Any]) -> None:
    connection.execute("FLUSH")


def test_what_cannot_run_is_refused_by_explain_and_create() -> None:
    call = "percentile_cont(k / 10.0) WITHIN GROUP (ORDER BY id)"
    with pytest.raises(Error) as refused:
        plan_over(("CREATE TABLE t (id int, k int)",), f"SELECT k, {call} AS x FROM t GROUP BY k")
    assert refused.value.sqlstate == "0A000"


# What DuckDB has not, or not with such arguments: by the expression, the SQLSTATE and the message.
_NO_LIST = ("0A000", "VARIADIC is not supported in a materialized view")
UNBOUND = {
    "abs(VARIADIC ar)": _NO_LIST,
    "abs(VARIADIC ar) + 1": _NO_LIST,
    "jsonb_build_object(s)": ("22023", "argument list must have even number of elements"),
    "current_database()": ("0A000", "current_database() is not supported in a materialized view"),
    "round(k) OVER ()": ("42809", "OVER specified, but round is not a window function nor an aggregate function"),
    "~q": ("42883", "operator does not exist: ~ numeric"),
    "~s IS NULL": ("42883", "operator does not exist: ~ character varying"),
    "max(abs(VARIADIC ar)) OVER (ORDER BY id)": _NO_LIST,
}  # fmt: skip
UNBOUND_AGGREGATES = {
    "max(abs(VARIADIC ar))": _NO_LIST,
    "string_agg(s, ',' ORDER BY abs(VARIADIC ar))": _NO_LIST,
    "mode() WITHIN GROUP (ORDER BY 'a')": (
        "42804",
        "could not determine polymorphic type because input has type unknown",
    ),
}
BOUND = {
    "mode": "SELECT k, mode() WITHIN GROUP (ORDER BY 1) AS x FROM n GROUP BY k",
    "series": "SELECT n.id, m.id AS mid, generate_series(n.k, 3) AS x FROM n JOIN n AS m USING (k)",
    "objects": "SELECT id, jsonb_build_object(s, ar, 'b', NULL) AS x FROM n",
}


@pytest.fixture(scope="module")
def narrow(in_process_server: Server) -> Server:
    with in_process_server.connect() as connection:
        connection.execute(
            "CREATE TABLE n (id int PRIMARY KEY, k int, f float8, q numeric, s varchar, p varchar, ar int[])"
        )
        connection.execute("INSERT INTO n VALUES (1, 2, 1.5, 1.5, 'a', 'g', '{1,2}')")
    return in_process_server


def _refused(connection: psycopg.Connection[Any], statement: str) -> tuple[str | None, str | None, str | None]:
    began = time.monotonic()
    with pytest.raises(psycopg.Error) as refused:
        connection.execute(statement)
    # A job that fails tries again for longer.
    assert time.monotonic() - began < 1.5
    diagnostics = refused.value.diag
    return diagnostics.sqlstate, diagnostics.message_primary, diagnostics.statement_position


@pytest.mark.parametrize("expression", [*UNBOUND, *UNBOUND_AGGREGATES])
def test_what_duckdb_cannot_run_is_refused_at_once(narrow: Server, expression: str) -> None:
    query = f"SELECT {'k' if expression in UNBOUND_AGGREGATES else 'id'}, {expression} AS x FROM n"
    query += " GROUP BY k" if expression in UNBOUND_AGGREGATES else ""
    create = f"CREATE MATERIALIZED VIEW unbound AS {query}"
    with narrow.connect() as connection:
        *error, position = _refused(connection, create)
        assert tuple(error) == (UNBOUND | UNBOUND_AGGREGATES)[expression]
        explained = _refused(connection, f"EXPLAIN {create}")
        assert explained[:2] == tuple(error)
        if position is not None:
            assert 0 <= int(position) - 1 - create.index(expression) < len(expression)
        assert connection.execute("SELECT count(*) FROM rw_catalog.rw_ddl_progress").fetchone() == (0,)


def test_sinks_indexes_and_other_definitions_are_refused_as_views_are(narrow: Server) -> None:
    with narrow.connect() as connection:
        connection.execute("CREATE MATERIALIZED VIEW nv AS SELECT id, q AS x FROM n")
        for statement in (
            "CREATE SINK unbound AS SELECT id, abs(VARIADIC ar) AS x FROM n WITH (connector = 'blackhole')",
            "CREATE INDEX unbound ON n (abs(VARIADIC ar))",
            "ALTER MATERIALIZED VIEW nv AS SELECT id, abs(VARIADIC ar) AS x FROM n",
        ):
            assert _refused(connection, statement)[:2] == _NO_LIST, statement


@pytest.mark.parametrize("name", BOUND)
def test_what_duckdb_can_run_is_explained_and_created(narrow: Server, name: str) -> None:
    with narrow.connect() as connection:
        connection.execute(f"EXPLAIN CREATE MATERIALIZED VIEW {name} AS {BOUND[name]}")
        connection.execute(f"CREATE MATERIALIZED VIEW {name} AS {BOUND[name]}")
        connection.execute(f"DROP MATERIALIZED VIEW {name}")


@pytest.mark.parametrize(
    "condition",
    ("d > 'today'", "d = 'Yesterday'::date", "CASE WHEN ts < timestamp ' now ' THEN true END", "d IN ('tomorrow')"),
)
def test_words_for_the_time_are_refused(narrow: Server, condition: str) -> None:
    """Their values change while the tables do not."""
    days = "SELECT DATE '2024-01-02' + id AS d, TIMESTAMP '2024-01-02' AS ts FROM n"
    query = f"SELECT d FROM ({days}) AS days WHERE {condition}"
    with narrow.connect() as connection:
        connection.execute(query)
        sqlstate, message, _ = _refused(connection, f"CREATE MATERIALIZED VIEW late AS {query}")
    word = condition[condition.index("'") :]
    assert sqlstate == "0A000"
    assert message == f"{word[: word.index(word[0], 1) + 1]} is not supported in a materialized view"


def test_other_words_are_texts(narrow: Server) -> None:
    with narrow.connect() as connection:
        query = "SELECT id FROM n WHERE DATE '2024-01-02' + id > 'someday'"
        assert _refused(connection, f"CREATE MATERIALIZED VIEW late AS {query}")[0] == "22007"
        connection.execute("CREATE MATERIALIZED VIEW named AS SELECT 'today' AS word FROM n WHERE 'now' = 'now'::text")
        connection.execute("DROP MATERIALIZED VIEW named")
