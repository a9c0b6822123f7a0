"""Long lists of constants mean what they do in PostgreSQL: in queries, writes and views, and in what EXPLAIN prints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from postgres import Postgres
from servers import refused, rows

from sparkwave.planner.batch.pg_compat import prepare_text
from sparkwave.planner.parse.constant_runs import LONG, ConstantRun, expanded
from sparkwave.planner.parse.parameter_runs import ParameterRun
from sparkwave.planner.parse.parameter_runs import expanded as with_each_parameter
from sparkwave.planner.parse.trees import parse_tree

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
    ("f NOT IN ({})", [*NUMBERS, "0.5", "-2.0000000000000000001", "2.0000000000000000001", "3.00000000000001"]),
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


MARKS = ", ".join(["%s"] * COUNT)
PAIRS = ", ".join(["(%s, %s)"] * (COUNT // 2))
TEXT_VALUES = [str(number) for number in range(COUNT)]
# Queries, and the values of their parameters: texts, whose types are left open, and numbers of several sizes.
WITH_PARAMETERS: list[tuple[str, list[Any]]] = [
    (f"SELECT k FROM listed WHERE k IN ({MARKS})", TEXT_VALUES),
    (f"SELECT k FROM listed WHERE k IN ({MARKS})", [*range(COUNT - 2), 70_000, 1 << 40]),
    (f"SELECT k FROM listed WHERE k NOT IN ({MARKS})", [*range(4, COUNT + 4)]),
    (f"SELECT k FROM listed WHERE k NOT IN ({MARKS})", [*range(COUNT - 1), None]),
    (f"SELECT k FROM listed WHERE k IN ({MARKS}) AND s <> '$1, $2'", TEXT_VALUES),
    (
        f"SELECT k FROM listed WHERE n IN (\n{MARKS.replace(',', chr(10) + ',')} )",
        [*map(str, range(COUNT - 1)), "1.50"],
    ),
    (f"SELECT k FROM listed WHERE s IN ({MARKS})", [*map(str, range(COUNT - 1)), "it's"]),
    (f"SELECT k FROM listed WHERE d IN ({MARKS})", [f"{1900 + n}-01-01" for n in range(COUNT - 1)] + ["2026-01-02"]),
    (f"SELECT k FROM listed WHERE i IN ({MARKS})", [f"{n} days" for n in range(COUNT - 1)] + ["24 hours"]),
    (f"SELECT k FROM listed WHERE f IN ({MARKS}, %s + 1)", [0.5] * COUNT + [1]),
    (f"SELECT k FROM listed WHERE (k, b) IN ({PAIRS})", [*TEXT_VALUES[: COUNT - 2], "3", "-7"]),
    (
        f"SELECT k FROM listed WHERE (k, s) NOT IN ({PAIRS})",
        [*(f"1{value}" for value in TEXT_VALUES[: COUNT - 2]), "1", "a"],
    ),
    (f"SELECT k FROM listed WHERE k = ANY(ARRAY[{MARKS}])", [*range(COUNT)]),
    (f"SELECT ARRAY[{MARKS}]", TEXT_VALUES),
    (f"SELECT ARRAY[{MARKS}]", [*range(COUNT - 1), 1 << 20]),
    (f"VALUES {', '.join(['(%s)'] * COUNT)}", TEXT_VALUES),
    (f"VALUES {PAIRS}", TEXT_VALUES),
    (f"VALUES {PAIRS}, (now()::text, 'b') LIMIT 70", TEXT_VALUES),
    (f"SELECT x, y FROM (VALUES {PAIRS}) AS v (x, y) WHERE x > '2'", TEXT_VALUES),
    (f"SELECT k, x FROM listed JOIN (VALUES {PAIRS}) AS v (x, y) ON x = s", TEXT_VALUES),
]


@pytest.mark.parametrize(("query", "values"), WITH_PARAMETERS, ids=lambda value: str(value)[:40].strip("['"))
def test_lists_of_parameters_mean_what_they_do_in_postgresql(
    original: Connection, listed: Connection, query: str, values: list[Any]
) -> None:
    expected = original.execute(query, values)
    found = listed.execute(query, values).fetchall()
    assert sorted(found, key=str) == sorted(expected.fetchall(), key=str)


def test_writes_of_parameters(listed: Connection) -> None:
    listed.execute("CREATE TABLE listed_pairs (k int PRIMARY KEY, s varchar, n numeric DEFAULT 3)")
    rows_ = [(str(number), f"s{number}") for number in range(COUNT)]
    values = [value for row in rows_ for value in row]
    insert = f"INSERT INTO listed_pairs (k, s) VALUES {', '.join(['(%s, %s)'] * COUNT)}"
    assert listed.execute(insert, values).rowcount == COUNT
    assert rows(listed, "SELECT count(*)::int, sum(k)::int, max(s), sum(n)::int FROM listed_pairs") == [
        (COUNT, sum(range(COUNT)), "s99", 3 * COUNT)
    ]
    returned = listed.execute(f"{insert.replace('%s, %s', '%s::int + 1000, %s')} RETURNING k", values).fetchall()
    assert len(returned) == COUNT
    assert listed.execute(f"DELETE FROM listed_pairs WHERE k IN ({MARKS})", range(COUNT)).rowcount == COUNT
    error = refused(listed, insert, *values[:-2], "x", "y")
    assert error.sqlstate == "22P02"
    listed.execute("DROP TABLE listed_pairs")


def test_a_list_of_parameters_is_one_node_if_they_are_in_order() -> None:
    numbers = [f"${number}" for number in range(3, COUNT + 3)]
    for text, count in (
        (f"SELECT a IN ({', '.join(numbers)})", 1),
        (f"SELECT a IN ({', '.join(numbers)}) AND b IN ({','.join(numbers)})", 2),
        (f"SELECT a IN ({', '.join(reversed(numbers))})", 0),
        (f"SELECT '{', '.join(numbers)}', 'a IN ({', '.join(numbers)})' /* a IN ({', '.join(numbers)}) */", 0),
        (f"SELECT {', '.join(numbers)}", 0),
        (f"VALUES ({'), ('.join(numbers)})", 1),
        (f"VALUES ({'), ('.join(numbers)}), (DEFAULT)", 0),
    ):
        read = prepare_text(text)
        assert len(read) == len(text)
        tree = parse_tree(read)
        assert len(list(tree.find_all(ParameterRun))) == count
        apart = with_each_parameter(tree.copy())
        assert apart.find(ParameterRun) is None
        assert not count or apart.sql(dialect="postgres") == parse_tree(text.replace("$", "@")).sql(dialect="postgres")


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
        shown = "{}:Int32" if "MATERIALIZED" in explained else "k = Int32({})"
        assert all(shown.format(number) in plan for number in ("1000", "1001", NUMBERS[-1]))


def test_a_list_is_a_node_for_each_kind() -> None:
    constants = [*NUMBERS, "-1", "3000000000", "1.5", "'it''s'", "NULL"]
    text = f"SELECT 1 WHERE a IN ({', '.join(constants)})"
    tree = parse_tree(text)
    assert len(list(tree.find_all(ConstantRun))) == 4
    assert sorted(tree.sql(dialect="duckdb").split(", ")[1:-1]) == sorted([*constants[1:-1]])
    expanded_tree = expanded(tree)
    assert expanded_tree.find(ConstantRun) is None
    assert expanded_tree.sql(dialect="postgres") == text
