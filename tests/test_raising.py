"""A query of a view in its two spellings: where one has NULL for what fails the other raises; else both are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import duckdb
import extreme_values as extremes
import psycopg
import pytest
from sqlglot import exp
from test_extreme_values import KINDS, read_value
from test_golden import plan_over
from view_functions import view_database

from sparkwave.catalog.errors import Error
from sparkwave.executor.spark.kernel import unless_raised
from sparkwave.planner.backfill.fragments import first_rows
from sparkwave.planner.delta.checks import fill_checks
from sparkwave.planner.functions.emit import to_sql
from sparkwave.planner.functions.raising import or_raise, raised
from sparkwave.planner.plan.stream_plan import StreamPlan

Rows = list[tuple[object, ...]]

# One row is a group of its own, and its number is there when the row is looked through.
QUERIES = {
    "scalars": "SELECT {} FROM {}", "aggregates": "SELECT {} FROM {} GROUP BY n", "windows": "SELECT {} FROM {}",
}  # fmt: skip
ROWS = extremes.rows(13)[::4]
# Where DuckDB could see that it need not compute an expression, or could compute another one in its place.
TEMPTING = {
    "scalars": (
        "a1 + a1 > 5", "a2 + 1 > 4", "a2 - 1 <> 7", "a2 * 2 = 4", "5 < a3 + 1", "NOT a2 + 1 > 5", "a2 + 1 IS NULL",
        "a2 + 1 IS NOT NULL", "a3::int = 5", "a3::int IS NOT NULL", "a2::smallint <> 5", "a2::smallint IN (1, 2)",
        "a7::int IS NULL", "a7::int IS NOT DISTINCT FROM NULL", "coalesce(a7::int, 0)", "coalesce(a7::int, a2 + 1)",
        "a7::date = '2024-01-01'", "(a9 + a12)::date = '2024-01-01'", "a9::date < '2024-01-01'", "a2 / a1 IS NULL",
        "a2 / b2 * 0", "a2 % b2", "a6 / b6", "a6 * b6 * c6", "a5 / b5", "a12 / b5", "abs(a2) > 1", "-a2 > 1",
        "CASE WHEN b2 > 0 THEN a2 / b2 END", "CASE WHEN a2 + 1 > 0 THEN 1 ELSE 2 END", "nullif(a2 + 1, 5)",
        "greatest(a2 + 1, 5)", "a7::int BETWEEN 1 AND 5", "(a2 + 1) + (a2 + 1)", "a2 / (b2 / c2)", "a2 / nullif(b2, 0)",
        "a7::jsonb IS NULL", "(a13 ->> 0)::int", "ARRAY[a7::int]", "a2 / 0", "(a7 || 'x')::int", "a2 + 1 = ANY (a15)",
        "a5::numeric", "a8::timestamptz IS NULL", "format('%s-%I', a7, a7)",
        "b2 <> 0 AND a2 / b2 > 0", "b2 = 0 OR a2 / b2 > 0", "a8 <= date '2024-01-01' - interval '1 day'",
    ),
    "aggregates": (
        "count(a7::int)", "sum(a2 + 1)", "count(a2 + 1)", "max(a2 + 1)", "min(a2 / b2)", "count(DISTINCT a7::int)",
        "avg(a2 / b2)", "count(*) FILTER (WHERE a2 + 1 > 5)", "bool_and(a7::int IS NULL)", "sum(a2) / count(b2)",
        "stddev(a2 / b2)", "array_agg(a2 ORDER BY a2 / b2)", "sum(a6 * b6)", "sum(a2 + 1) FILTER (WHERE a7::int > 0)",
    ),
    "windows": ("sum(a2 + 1) OVER (PARTITION BY a1)", "lag(a2 / b2) OVER (ORDER BY n)", "count(a7::int) OVER ()"),
}  # fmt: skip


@pytest.fixture(scope="module")
def duck() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the rows `chosen` of a table, and the functions that views use."""
    with view_database() as opened:
        columns = extremes.TABLE.replace(" numeric", " DECIMAL(38, 19)").replace(" jsonb", " JSON")
        opened.execute(f"CREATE TABLE every {columns}")
        values = [(row[0], *map(read_value, row[1:], (type_ for _, type_ in extremes.COLUMNS))) for row in ROWS]
        opened.executemany(f"INSERT INTO every VALUES ({', '.join('?' for _ in ROWS[0])})", values)
        opened.execute("CREATE VIEW i0_new AS FROM every WHERE list_contains(getvariable('chosen'), n)")
        yield opened


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_has_the_rows_or_raises(duck: duckdb.DuckDBPyConnection, kind: str) -> None:
    wrong, raising = _wrong(duck, QUERIES[kind], [*TEMPTING[kind]])
    assert wrong == []
    assert raising > len(TEMPTING[kind]) / 2


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_a_query_of_any_function_has_the_rows_or_raises(
    postgres: psycopg.Connection[object], duck: duckdb.DuckDBPyConnection, kind: str
) -> None:
    assert _wrong(duck, QUERIES[kind], extremes.one_of_each(KINDS[kind].calls(postgres)))[0] == []


def _wrong(duck: duckdb.DuckDBPyConnection, query: str, calls: list[str]) -> tuple[list[tuple[str, str]], int]:
    """What is wrong with which calls, and of how many some row fails."""
    wrong, raising = [], 0
    for call in calls:
        try:
            plan = plan_over((f"CREATE TABLE t {extremes.TABLE}",), query.format(f"n, {call} AS x", "t"))
            lenient, strict = (_queries(plan, spelling) for spelling in (to_sql, or_raise))
            _filled(duck, lenient, [])
        except (Error, duckdb.Error):  # no view has it
            continue
        everything = [int(str(row[0])) for row in ROWS]
        _filled(duck, lenient, everything)
        failing = _failing(duck, plan)
        raising += bool(failing)
        fine = [n for n in everything if n not in failing]
        if unless_raised(partial(_filled, duck, strict, fine)) != _filled(duck, lenient, fine):
            wrong.append((call, "the rows are others where none fails"))
        tables = [everything, *([n] for n in failing[::9])]
        unnoticed = [chosen for chosen in tables if _is_unnoticed(duck, plan, chosen)]
        if unnoticed:
            wrong.append((call, f"of the rows {unnoticed[0]} some fail and nothing raises"))
    return wrong, raising


def _is_unnoticed(duck: duckdb.DuckDBPyConnection, plan: StreamPlan, chosen: list[int]) -> bool:
    """Return whether an expression fails for some rows of a table with the `chosen` rows, and nothing raises.

    What fails for a row with others may not fail for the row alone: the variance of large floats.
    """
    _filled(duck, _queries(plan, to_sql), chosen)
    fails = bool(_failing(duck, plan))
    return fails and unless_raised(partial(_filled, duck, _queries(plan, or_raise), chosen)) is not None


def _queries(plan: StreamPlan, spelling: Callable[[exp.Expr], str]) -> list[tuple[str, str]]:
    """What fills the states and the view, by the name under which it is read."""
    named = [(next((s.name for s in plan.states_in(part.target)), "view"), part.query) for part in first_rows(plan)]
    return [(f"{name}_state", spelling(query)) for name, query in named]


def _failing(duck: duckdb.DuckDBPyConnection, plan: StreamPlan) -> list[int]:
    """The rows for which an expression fails, as they are counted."""
    failing = set()
    for check in fill_checks(plan):
        for condition in filter(None, map(raised, check.parts)):
            rows = duck.execute(f'SELECT "t.n" FROM ({to_sql(check.rows)}) AS s WHERE {condition}').fetchall()
            failing |= {int(n) for (n,) in rows}
    return sorted(failing)


def _filled(duck: duckdb.DuckDBPyConnection, queries: list[tuple[str, str]], chosen: list[int]) -> list[Rows]:
    """The rows of a view's states and of the view over some rows of the table, sorted."""
    duck.execute("SET VARIABLE chosen = ?", [chosen])
    found = []
    for name, query in queries:
        duck.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")
        found.append(duck.execute(f"SELECT s::VARCHAR FROM {name} AS s ORDER BY 1").fetchall())
    return found
