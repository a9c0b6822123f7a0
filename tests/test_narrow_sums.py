"""Sums of numerics as the first attempt at filling a view computes them: as the other query does, or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from decimal import Context, Decimal
from functools import partial

import duckdb
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from postgres import Postgres
from servers import Server
from test_golden import plan_over
from view_functions import view_database

from sparkwave.executor.epochs.delta_programs import whole
from sparkwave.executor.spark.kernel import unless_raised

COLUMNS = {
    "a": (15, 2), "b": (15, 2), "c": (9, 4), "d": (18, 6), "e": (18, 10), "i": (10, 0), "s": (5, 0), "g": (19, 0),
    "w": (38, 10),
}  # fmt: skip
_NAMES = {"i": "int", "s": "smallint", "g": "bigint", "w": "numeric"}
TABLE = ", ".join(f"{name} {_NAMES.get(name, f'numeric({p},{s})')}" for name, (p, s) in COLUMNS.items())
LARGEST = {"i": 2**31 - 1, "s": 2**15 - 1, "g": 2**63 - 1}


def value(name: str, most: int) -> st.SearchStrategy[Decimal | None]:
    """Values of a column of up to so many units of its last digit, or the largest ones."""
    width, scale = COLUMNS[name]
    largest = min(LARGEST.get(name, 10**width - 1), most)
    units = st.one_of(st.integers(-largest, largest), st.sampled_from((largest, -largest)))
    return st.one_of(st.none(), *[units.map(lambda unit: Decimal(unit).scaleb(-scale, _EXACT))] * 9)


_EXACT = Context(prec=50)
_SHORT = st.sampled_from((*"abcdesi", "1", "100", "12345", "0.5", "1.05", "a::numeric(9,1)"))
LEAVES = st.one_of(_SHORT, _SHORT, _SHORT, _SHORT, st.sampled_from((*COLUMNS, "9999999999", "i::numeric")))
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("*+-"), inner).map(lambda x: f"({x[0]} {x[1]} {x[2]})"),
        inner.map(lambda x: f"-({x})"),
        st.tuples(inner, inner).map(lambda x: f"CASE WHEN s > 0 THEN {x[0]} ELSE {x[1]} END"),
        st.tuples(inner, inner).map(lambda x: f"coalesce({x[0]}, {x[1]})"),
        inner.map(lambda x: f"CASE WHEN i > 0 THEN {x} END"),
    ),
    max_leaves=3,
)
EXPRESSIONS = st.one_of(VALUES, st.tuples(VALUES, VALUES).map(lambda x: f"{x[0]} * {x[1]}"))
AGGREGATES = st.sampled_from(("sum({0}) AS x", "sum({0}) AS x, avg({0}) AS y, count({0}) AS z", "sum({0}), max({0})"))
ROWS = st.sampled_from((10**3, 10**6, 10**40)).flatmap(
    lambda most: st.lists(st.tuples(*(value(name, most) for name in COLUMNS)), min_size=1, max_size=4)
)


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    with view_database() as opened:
        yield opened


def test_sums_are_those_of_the_other_query_or_it_raises(duck: duckdb.DuckDBPyConnection) -> None:
    seen: Counter[tuple[bool, bool]] = Counter()

    @settings(max_examples=40, deadline=None, phases=[Phase.explicit, Phase.generate])
    @example("a * b", "sum({0}) AS x", [(Decimal(10**12), Decimal(10**6), *[None] * 7)])
    @example("a * b", "sum({0}) AS x", [(Decimal("10.25"), Decimal("-3.50"), *[None] * 7)])
    @given(EXPRESSIONS, AGGREGATES, ROWS)
    def check(expression: str, aggregates: str, rows: list[tuple[Decimal | None, ...]]) -> None:
        plan = plan_over((f"CREATE TABLE t ({TABLE})",), f"SELECT {aggregates.format(expression)} FROM t")
        [made] = whole(plan)
        duck.execute(f"CREATE OR REPLACE TABLE i0_new ({TABLE.replace('w numeric', 'w DECIMAL(38,10)')})")
        duck.executemany(f"INSERT INTO i0_new VALUES ({', '.join('?' * len(COLUMNS))})", rows)
        first = unless_raised(partial(_filled, duck, made.raising))
        if first is not None:
            assert first == _filled(duck, made.query)
        seen["SUM(CAST(" in made.raising, first is None] += 1

    check()
    # There were narrow sums of what fits (the second example at least) and of what does not (the first).
    assert seen[False, False] and seen[False, True], seen


def _filled(duck: duckdb.DuckDBPyConnection, query: str) -> list[tuple[object, ...]]:
    """The names and types of the columns of a query, and its rows."""
    found = duck.execute(query)
    return [tuple(str(column[:2]) for column in found.description), *found.fetchall()]


def test_products_of_prices_are_computed_in_64_bits(duck: duckdb.DuckDBPyConnection) -> None:
    products = "sum(a * (1 - b)) AS x, sum(a * (1 - b) * (1 + b)) AS y, avg(CASE WHEN i > 0 THEN a * b ELSE 0 END) AS z"
    [made] = whole(plan_over((f"CREATE TABLE t ({TABLE})",), f"SELECT i, {products} FROM t GROUP BY i"))
    summed = [query.split("FROM (SELECT")[-2] for query in (made.query, made.raising)]
    assert ["DECIMAL(38" in items for items in summed] == [True, False]


def test_what_does_not_fit_64_bits_is_postgresqls_too(in_process_server: Server) -> None:
    setup = "CREATE TABLE prices (k int, p numeric(15,2), d numeric(15,2))"
    rows = "INSERT INTO prices VALUES (1, 9999999999999.99, 9999.99), (1, 2.50, 0.05), (2, 3.10, 0.10)"
    query = "SELECT k, sum(p * d) AS x, sum(p * (1 - d) * (1 + d)) AS y, count(p * d) AS n, avg(p * d) AS m FROM prices"
    started = Postgres()
    with started.connect() as postgres, in_process_server.connect() as connection:
        for each in (postgres, connection):
            each.execute(setup)
            each.execute(rows)
        connection.execute(f"CREATE MATERIALIZED VIEW totals AS {query} GROUP BY k")
        expected = postgres.execute(f"{query} GROUP BY k ORDER BY k").fetchall()
        found = connection.execute("SELECT * FROM totals ORDER BY k").fetchall()
    started.stop()
    assert [row[:4] for row in found] == [row[:4] for row in expected]
    assert [float(row[4]) for row in found] == pytest.approx([float(row[4]) for row in expected])
