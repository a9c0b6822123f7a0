"""avg() of integers and numerics is PostgreSQL's numeric, in queries and in views whatever is added and taken back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import ROUND_DOWN, ROUND_HALF_UP, Context, Decimal
from typing import Any

import duckdb
import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from postgres import beside
from servers import Server
from view_functions import create_functions

from sparkwave.catalog.lake.ducklake import SETTINGS

Connection = psycopg.Connection[Any]
NUMERIC, TEXT, VARCHAR = 1700, 25, 1043
WIDE = Context(100)
COLUMNS = {
    "s": "smallint", "i": "int", "l": "bigint", "p": "numeric(10,2)", "w": "numeric(30,12)", "q": "numeric",
    "d": "double precision",
}  # fmt: skip
AVERAGES = (
    *(f"avg({name})" for name in COLUMNS), "avg(DISTINCT i)", "avg(p) FILTER (WHERE i > 0)", "avg(p * i)", "avg(i + l)",
    "avg(CASE WHEN i > 0 THEN 1 ELSE 0 END)", "avg(i) * 2", "avg(p) - avg(i)", "avg(i) + 0.5", "avg(q) * avg(i)",
    "-avg(i)", "abs(avg(p))", "round(avg(p), 3)", "trunc(avg(p), 3)", "round(avg(i))", "floor(avg(p))", "ceil(avg(q))",
    "avg(i)::int", "avg(q)::numeric", "avg(i)::numeric(16,4)", "avg(p)::float8", "avg(p) > 2", "avg(i) = avg(q)",
    "avg(i) % 7", "coalesce(avg(i), 0.5)", "greatest(avg(i), sum(p))", "sign(avg(q))", "to_char(avg(p), '9999999D99')",
    "(CASE WHEN avg(i) > 0 THEN avg(i) ELSE sum(q) END)", "sum(i) * avg(p)", "div(avg(p), 3)", "nullif(avg(i), 2)",
)  # fmt: skip
WINDOWS = (
    "avg(i) OVER (PARTITION BY g)", "avg(p) OVER (PARTITION BY g ORDER BY k)", "avg(q) FILTER (WHERE i > 0) OVER ()",
    "avg(l) OVER (ORDER BY k ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)", "round(avg(i) OVER (PARTITION BY g), 2)",
)  # fmt: skip
QUERIES = {
    "grouped_": f"SELECT g, {', '.join(f'{call} AS x{n}' for n, call in enumerate(AVERAGES))} FROM t GROUP BY g",
    "over_": f"SELECT k, {', '.join(f'{call} AS x{n}' for n, call in enumerate(WINDOWS))} FROM t",
    "overall_": "SELECT avg(i) AS x, avg(q) AS y FROM t",
    "sets_": "SELECT g, s, avg(i) AS x, grouping(g, s)::int AS n FROM t GROUP BY ROLLUP (g, s)",
    "having_": "SELECT g FROM t GROUP BY g HAVING avg(i) > 3.3333333333333333",
    "above_": "SELECT k FROM t WHERE i > (SELECT avg(i) FROM t)",
    "of_group_": "SELECT k, (SELECT avg(u.i) FROM t AS u WHERE u.g = t.g) AS x FROM t",
    "of_averages_": "SELECT avg(x) AS x, sum(x) AS y, max(x) AS z FROM (SELECT avg(i) AS x FROM t GROUP BY g) AS a",
    "united_": "SELECT avg(i) AS x FROM t GROUP BY g UNION ALL SELECT q FROM t",
    "joined_": "SELECT t.k FROM t JOIN (SELECT g, avg(i) AS m FROM t GROUP BY g) AS a ON t.g = a.g AND t.q > a.m",
}  # fmt: skip


@pytest.fixture(scope="module")
def both(in_process_server: Server) -> Iterator[tuple[Connection, Connection]]:
    with beside(in_process_server) as clients:
        columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
        for client in clients:
            client.execute(f"CREATE TABLE t (k int PRIMARY KEY, g int, {columns})".encode())
        yield clients


def row(k: int, chosen: random.Random) -> str:
    """Values around zero and at the limits; in some groups all are large."""
    group = chosen.randrange(6)
    bits = chosen.choice((3, 10, 15)) if group < 4 else 15
    integers = (chosen.randrange(-(2**b), 2**b) for b in (bits, 2 * bits, 4 * bits))
    scaled = (
        Decimal(chosen.randrange(-(10**n), 10**n)).scaleb(-scale)
        for n, scale in ((chosen.choice((3, 9)), 2), (chosen.choice((8, 20)), 12), (chosen.choice((4, 17)), 7))
    )
    values = [*integers, *scaled, chosen.uniform(-9, 9)]
    return f"({k}, {group}, {', '.join('NULL' if chosen.random() < 0.1 else str(value) for value in values)})"


def comparable(value: object) -> object:
    """Without zeros at the end and what is behind the 18th place: of small ones PostgreSQL has more than 19."""
    if isinstance(value, float):
        return f"{value:.9g}"
    if isinstance(value, Decimal):
        return value.quantize(Decimal("1e-18"), ROUND_DOWN, WIDE).normalize(WIDE)
    return value


def bag(client: Connection, query: str) -> tuple[list[tuple[object, ...]], list[int]]:
    cursor = client.execute(query.encode())
    found = [tuple(map(comparable, row)) for row in cursor.fetchall()]
    types = [column.type_code for column in cursor.description or ()]
    return sorted(found, key=repr), [TEXT if type_ == VARCHAR else type_ for type_ in types]


@pytest.mark.long
def test_queries_and_views_have_postgresqls_averages(both: tuple[Connection, Connection]) -> None:
    own, postgres = both
    chosen = random.Random(7)
    for name, query in QUERIES.items():
        own.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}".encode())
    for epoch in range(5):
        changes = [f"INSERT INTO t VALUES {', '.join(row(k, chosen) for k in range(100 * epoch, 100 * epoch + 60))}"]
        changes += [f"DELETE FROM t WHERE k % 7 = {epoch}", f"UPDATE t SET i = i / 2, g = 5 WHERE k % 11 = {epoch}"]
        for change in changes if epoch < 4 else ["DELETE FROM t WHERE g <> 2"]:
            own.execute(change.encode())
            postgres.execute(change.encode())
        own.execute("FLUSH")
        for name, query in QUERIES.items():
            expected = bag(postgres, query)
            assert bag(own, query) == expected, (epoch, query)
            assert bag(own, f"SELECT * FROM {name}") == expected, (epoch, name)
    for name in QUERIES:
        own.execute(f"DROP MATERIALIZED VIEW {name}".encode())


# Here a number is computed by floats, or has more digits than are kept: close to PostgreSQL's.
CLOSE = ("sqrt(avg(i * i))", "avg(p) / 7", "10 / avg(s * s + 1)", "power(avg(s * s), 0.5)", "avg(q) * 0.123456789123")


@pytest.mark.parametrize("call", CLOSE)
def test_what_is_computed_of_averages_is_close(both: tuple[Connection, Connection], call: str) -> None:
    own, postgres = both
    for client in (own, postgres):
        client.execute("DELETE FROM t")
        client.execute(
            "INSERT INTO t SELECT i, i % 3, i, i * 7, i, i / 7.0, 0, i / 4.0 FROM generate_series(1, 50) AS r(i)"
        )
    query = f"SELECT g, {call} AS x FROM t GROUP BY g ORDER BY g"
    own.execute(f"CREATE MATERIALIZED VIEW near AS {query}".encode())
    try:
        for of in (query, "SELECT * FROM near ORDER BY g"):
            cursor = own.execute(of.encode())
            assert [column.type_code for column in cursor.description or ()][1] == NUMERIC
            right = [value for _, value in postgres.execute(query.encode()).fetchall()]
            assert [float(value) for _, value in cursor.fetchall()] == pytest.approx([*map(float, right)], rel=1e-15)
    finally:
        own.execute("DROP MATERIALIZED VIEW near")


def test_what_does_not_fit_is_an_error(both: tuple[Connection, Connection]) -> None:
    own, _ = both
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        own.execute("SELECT avg(x) FROM (VALUES (30000000000000000000.5), (30000000000000000000.5)) AS v (x)")
    with pytest.raises(psycopg.errors.DivisionByZero):
        own.execute("SELECT avg(x) / 0 FROM (VALUES (1), (2)) AS v (x)")


def test_averages_are_numeric_to_clients(both: tuple[Connection, Connection]) -> None:
    """Without a precision, and without the zeros of the column that they are stored in."""
    own, _ = both
    own.execute("CREATE MATERIALIZED VIEW shown AS SELECT avg(x) AS x FROM (VALUES (1), (2)) AS v (x)")
    for query in ("SELECT avg(x) FROM (VALUES (1), (2)) AS v (x)", "SELECT x FROM shown"):
        cursor = own.execute(query.encode())
        assert cursor.description is not None
        assert (cursor.description[0].type_code, cursor.description[0].precision) == (NUMERIC, None)
        assert str(cursor.fetchall()[0][0]) == "1.5"
    described = "SELECT data_type, numeric_precision FROM information_schema.columns WHERE table_name = 'shown'"
    assert own.execute(described).fetchall() == [("numeric", None)]


# The macro alone, beside PostgreSQL's rule.


@pytest.fixture(scope="module")
def macros() -> duckdb.DuckDBPyConnection:
    database = duckdb.connect()
    database.execute(SETTINGS)
    create_functions(database)
    return database


def first_digit(value: Decimal) -> tuple[int, int]:
    """Where the first base-10000 digit stands, and what it is."""
    weight = (value.adjusted() // 4) if value else 0
    return weight, int(value.scaleb(-4 * weight, WIDE))


def average(total: Decimal, count: int, scale: int) -> Decimal:
    """As select_div_scale of PostgreSQL's numeric.c wants it, but for more than 19 digits after the point."""
    (weight, digit), (by_weight, by_digit) = first_digit(abs(total)), first_digit(Decimal(count))
    places = 16 - 4 * (weight - by_weight - (digit <= by_digit))
    exact = WIDE.divide(total, Decimal(count))
    return exact.quantize(Decimal(1).scaleb(-min(19, max(places, scale, 0))), ROUND_HALF_UP, WIDE)


COUNTS = st.one_of(st.integers(1, 20_000), st.integers(1, 2**33), st.sampled_from((2**31 - 1, 2**31, 10**18)))


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 37), st.integers(-(10**37), 10**37), st.sampled_from((0, 2, 4, 9, 10, 11, 19)), COUNTS)
@example(0, 10**15 - 1, 0, 1)
@example(0, 10**15, 0, 3)
@example(0, -5, 1, 10)
@example(0, 99_999_999_999_999_999, 2, 7)
def test_an_average_is_exact(macros: duckdb.DuckDBPyConnection, less: int, number: int, scale: int, count: int) -> None:
    total = Decimal(int(number / 10**less)).scaleb(-scale, WIDE)
    expected = average(total, count, scale)
    if abs(expected) < 10**19:
        query = f"SELECT memory.pg._avg(CAST('{total:f}' AS DECIMAL(38,{scale})), {count}, {scale})"
        assert macros.execute(query).fetchone() == (expected,)


@settings(max_examples=400, deadline=None)
@given(st.integers(-(10**37), 10**37), st.integers(0, 37), st.integers(1, 10**37), st.integers(0, 37))
@example(10**37, 0, 3, 0)
@example(3 * 10**36 - 1, 0, 3, 0)
@example(-1, 0, 10**37, 0)
def test_a_division_of_128_bits_is_exact(
    macros: duckdb.DuckDBPyConnection, number: int, less: int, divisor: int, divisor_less: int
) -> None:
    """As standard deviations and variances need it."""
    number, divisor = number // 10**less, max(divisor // 10**divisor_less, 1)
    for value in (number, number // divisor * divisor, number // divisor * divisor - 1):
        expected = {"q": value // divisor, "r": value % divisor}
        assert macros.execute(f"SELECT memory.pg._divided({value}, {divisor})").fetchone() == (expected,)
