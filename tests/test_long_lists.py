"""Long lists of constants mean what they do in PostgreSQL: in queries, writes and views, and in what EXPLAIN prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import Postgres
from servers import refused, rows

from planner.parse.constant_runs import LONG, ConstantRun, expanded
from planner.parse.trees import parse_tree

Connection = psycopg.Connection[Any]
COUNT = LONG + 50

TABLES = (
    "CREATE TABLE listed (k int PRIMARY KEY, b bigint, n numeric, f double precision, s varchar, d date, i interval)",
    "INSERT INTO listed VALUES (1, 5, 1.5, 0.5, 'a', '2026-01-01', '1 day'),"
    " (2, 3000000000, 2, 2, 'it''s', '2026-01-02', '24 hours'), (3, -7, 0.25, 3, 'b\\c', '2026-01-03', '3 days'),"
    " (4, NULL, NULL, NULL, NULL, NULL, NULL), (5, 0, 7, 7, '7', '2026-01-05', '7 days')",
)


NUMBERS = list(map(str, range(1000, 1000 + COUNT)))
TEXTS = [f"'{number}'" for number in NUMBERS]
DAYS = [f"'{number}-01-01'" for number in NUMBERS]
LENGTHS = [f"'{number} days'" for number in NUMBERS]
# Conditions, with the constants in their list.
CONDITIONS: list[tuple[str, list[str]]] = [
    ("k IN ({})", [*NUMBERS, "1", "3"]),
    ("k NOT IN ({})", [*NUMBERS, "1", "3"]),
    ("k NOT IN ({})", [*NUMBERS, "NULL"]),
    ("(k IN ({})) IS NULL", [*NUMBERS, "NULL"]),
    ("b IN ({})", ["3000000000", "-7", "- 5", *NUMBERS]),
    ("k IN ({})", [*NUMBERS, "3000000000", "2"]),
    ("n IN ({})", [*NUMBERS, "1.5", "-0.25", "0.25", "9999999999999999"]),
    ("f IN ({})", [*NUMBERS, "0.5", "2"]),
    ("b IN ({})", ["1.5", *NUMBERS, "5"]),
    ("s IN ({})", [*TEXTS, "'it''s'", "'b\\c'", "'7'"]),
    ("s NOT IN ({})", [*TEXTS, "'a'", "'7'"]),
    ("k IN ({})", [*TEXTS, "'1'", "2"]),
    ("n IN ({})", [*TEXTS, "'1.50'"]),
    ("d IN ({})", [*DAYS, "'2026-01-03'"]),
    ("i IN ({})", [*LENGTHS, "'1 day'"]),
    ("k IN ({})", [*NUMBERS, "1 + 1"]),
    ("k IN ({})", [*NUMBERS, "(SELECT 3)"]),
    ("k + 1 IN ({})", [*NUMBERS, "3 /* three */", "  4"]),
    ("CASE WHEN k IN ({}) THEN s = 'a' ELSE k = 5 END", [*NUMBERS, "1"]),
    ("k = ANY('{{{}}}')", [*NUMBERS, "1", "NULL"]),
    ("s = ANY('{{{}}}')", [*NUMBERS, "7", "\"it''s\""]),
    ("k <> ALL('{{{}}}')", [*NUMBERS, "5"]),
]


def filled(condition: str, constants: list[str]) -> str:
    return condition.format(", ".join(constants))


@pytest.fixture(scope="module")
def original() -> Iterator[Connection]:
    started = Postgres()
    with started.connect() as own:
        for sql in TABLES:
            own.execute(sql)
        yield own
    started.stop()


@pytest.fixture(scope="module")
def listed(in_process_server: Any) -> Iterator[Connection]:
    with in_process_server.connect() as own:
        for sql in TABLES:
            own.execute(sql)
        yield own


def ids(value: object) -> str | None:
    return value if isinstance(value, str) else str(len(value)) if isinstance(value, list) else None


@pytest.mark.parametrize(("condition", "constants"), CONDITIONS, ids=ids)
def test_lists_mean_what_they_do_in_postgresql(
    original: Connection, listed: Connection, condition: str, constants: list[str]
) -> None:
    query = f"SELECT k FROM listed WHERE {filled(condition, constants)}"
    expected = original.execute(f"{query} ORDER BY k").fetchall()
    assert rows(listed, f"{query} ORDER BY k") == expected
    listed.execute(f"CREATE VIEW listed_view AS {query}")
    assert rows(listed, "SELECT k FROM listed_view ORDER BY k") == expected
    listed.execute("DROP VIEW listed_view")


def test_what_is_no_value_of_the_columns_type_is_refused(listed: Connection) -> None:
    error = refused(listed, f"SELECT k FROM listed WHERE {filled('k IN ({})', [*TEXTS, chr(39) + 'x' + chr(39)])}")
    assert error.sqlstate == "22P02" and "x" in str(error)


def test_parameters_beside_a_list_have_its_type(listed: Connection) -> None:
    sql = f"SELECT k FROM listed WHERE {filled('%s IN ({})', NUMBERS)}"
    assert listed.execute(sql, (1000,), prepare=True).fetchall() == [(1,), (2,), (3,), (4,), (5,)]


def test_materialized_views_and_writes(listed: Connection) -> None:
    listed.execute("CREATE TABLE listed_rows (k int PRIMARY KEY, s varchar)")
    listed.execute("INSERT INTO listed_rows VALUES (1, 'a'), (2, 'b'), (1000, '1000')")
    for name, condition, constants in (("i", "k IN ({})", [*NUMBERS, "2"]), ("s", "s IN ({})", [*TEXTS, "'a'"])):
        query = f"SELECT k FROM listed_rows WHERE {filled(condition, constants)}"
        listed.execute(f"CREATE MATERIALIZED VIEW listed_{name} AS {query}")
    listed.execute("INSERT INTO listed_rows VALUES (1001, 'a'), (3, '1001')")
    listed.execute("FLUSH")
    assert rows(listed, "SELECT k FROM listed_i ORDER BY k") == [(2,), (1000,), (1001,)]
    assert rows(listed, "SELECT k FROM listed_s ORDER BY k") == [(1,), (3,), (1000,), (1001,)]
    listed.execute(f"UPDATE listed_rows SET s = 'c' WHERE {filled('k IN ({})', NUMBERS)}")
    listed.execute(f"DELETE FROM listed_rows WHERE {filled('s IN ({})', [*TEXTS, chr(39) + 'b' + chr(39)])}")
    assert rows(listed, "SELECT k, s FROM listed_rows ORDER BY k") == [(1, "a"), (1000, "c"), (1001, "c")]
    listed.execute("DROP TABLE listed_rows CASCADE")


def test_explain_prints_each_constant(listed: Connection) -> None:
    sql = f"SELECT k FROM listed WHERE {filled('k IN ({})', [*NUMBERS, '-5'])}"
    for explained in (sql, f"CREATE MATERIALIZED VIEW explained AS {sql}"):
        plan = "\n".join(line for (line,) in rows(listed, f"EXPLAIN {explained}"))
        assert "1000:Int32, 1001:Int32" in plan and f"{NUMBERS[-1]}:Int32" in plan


def test_a_list_is_a_node_for_each_kind() -> None:
    constants = [*NUMBERS, "-1", "3000000000", "1.5", "'it''s'", "NULL"]
    text = f"SELECT 1 WHERE a IN ({', '.join(constants)})"
    tree = parse_tree(text)
    assert len(list(tree.find_all(ConstantRun))) == 4
    assert sorted(tree.sql(dialect="duckdb").split(", ")[1:-1]) == sorted([*constants[1:-1]])
    expanded_tree = expanded(tree)
    assert expanded_tree.find(ConstantRun) is None
    assert expanded_tree.sql(dialect="postgres") == text
