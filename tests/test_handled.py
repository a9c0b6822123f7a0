"""What sqlglot reads and a plan does not have is refused, and what means something in a query means it in a view."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from servers import Server, rows, wait_until
from sqlglot import exp
from test_golden import plan_over

from sparkwave.catalog.errors import FEATURE_NOT_SUPPORTED, SYNTAX_ERROR, WINDOWING_ERROR, Error
from sparkwave.planner.batch.accepted import QUERY_SYNTAX, check_statement
from sparkwave.planner.build.handled import SYNTAX
from sparkwave.planner.functions.operators import CALLS
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.statements import Delete, Merge, Query, Update

TABLES = tuple(
    f"CREATE TABLE {name} (id int PRIMARY KEY, a int, b int, c varchar, x timestamp, arr int[])" for name in "tu"
)

# A view's query with the place of the error, and what is refused.
REFUSED = [
    ("SELECT «a FROM t FOR UPDATE", "FOR UPDATE"),
    ("SELECT a FROM t WHERE a IN (SELECT «b FROM u FOR SHARE)", "FOR UPDATE"),
    ("SELECT a FROM t FOR SHARE OF «t NOWAIT", "FOR UPDATE"),
    ("SELECT a FROM t TABLESAMPLE BERNOULLI («10)", "TABLESAMPLE"),
    ("SELECT a FROM (SELECT a FROM t) s TABLESAMPLE SYSTEM («1) REPEATABLE (3)", "TABLESAMPLE"),
    ("SELECT a INTO «n FROM t", "SELECT INTO"),
    ("SELECT a FROM t GROUP BY «a WITH ROLLUP", "WITH ROLLUP"),
    ("SELECT a FROM t GROUP BY «a WITH TOTALS", "WITH TOTALS"),
    ("SELECT AS STRUCT «a FROM t", "SELECT AS"),
    ("SELECT a FROM t ORDER BY «a WITH FILL", "WITH FILL"),
    ("SELECT «sum(a) WITHIN GROUP (ORDER BY b) AS s FROM t", "WITHIN GROUP of sum"),
    ("SELECT lpad(c, VARIADIC «arr) AS z FROM t", "VARIADIC"),
    ("SELECT left(c, «n := 2) AS z FROM t", "an argument by name"),
    ("SELECT lpad(string => c, length => a) AS z FROM t", "an argument by name"),
    ("SELECT CAST(c AS int DEFAULT 3 ON CONVERSION ERROR) AS z FROM t", "CAST with DEFAULT"),
    ("SELECT a FROM t WHERE «a OPERATOR(pg_catalog.=) 1", "OPERATOR()"),
    ("SELECT a FROM t WHERE x < current_timestamp(3)", "a precision of current_timestamp"),
    ("SELECT a FROM t WHERE x < localtimestamp(3)", "a precision of localtimestamp"),
    ("VALUES (1), (2) ORDER BY 1 LIMIT 1", "VALUES with ORDER BY"),
    ("SELECT t.c FROM t JOIN (u JOIN t AS w ON u.a = w.b) USING (x)",
     "USING or NATURAL with a join in parentheses without an alias"),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "what"), REFUSED, ids=[what for _, what in REFUSED])
def test_what_no_plan_has_is_refused(marked: str, what: str) -> None:
    query = marked.replace("«", "")
    with pytest.raises(Error) as raised:
        plan_over(TABLES, query)
    assert raised.value.message == f"{what} is not supported in a materialized view"
    assert raised.value.sqlstate == FEATURE_NOT_SUPPORTED
    if "«" in marked:
        assert raised.value.position == len("CREATE MATERIALIZED VIEW v AS ") + marked.index("«") + 1


# What sqlglot reads and PostgreSQL does not, with the place of the word at which PostgreSQL stops.
FOREIGN = [
    "«FROM t",
    "«FROM t SELECT a",
    "SELECT a FROM t WHERE a = («FROM t)",
    "SELECT a FROM t ORDER BY a LIMIT 50 «PERCENT",
    "SELECT a FROM t ORDER BY a LIMIT 1 «WITH TIES",
    "SELECT a FROM t ORDER BY a FETCH FIRST 34 «PERCENT ROWS ONLY",
    "SELECT a FROM t ORDER BY a FETCH FIRST 3 ROWS«",
    "SELECT a FROM t «LIMIT 1, 2",
    "SELECT a FROM t LIMIT 1 «BY a",
    "SELECT a, «FROM t",
    "SELECT a FROM t WHERE a IN (1, «)",
    "SELECT a FROM t QUALIFY «row_number() OVER (ORDER BY a) = 1",
    "SELECT a FROM t CLUSTER «BY a",
    "SELECT a FROM t SORT «BY a",
    "SELECT a FROM t DISTRIBUTE «BY a",
    "SELECT a FROM t CONNECT «BY a = 1",
    "SELECT * FROM t UNPIVOT (x «FOR y IN (a, b))",
    "SELECT * FROM t PIVOT (sum«(a) FOR b IN (5))",
    "SELECT a FROM t «WITH (NOLOCK)",
    "SELECT a FROM t USE «INDEX (x)",
    "SELECT a FROM t CHANGES (INFORMATION «=> DEFAULT) AT (OFFSET => 1)",
    "SELECT a FROM t «OUTER APPLY unnest(arr) y",
    "SELECT a FROM t «LATERAL VIEW explode(arr) z AS q",
    "SELECT a FROM t «USING SAMPLE 1",
    "SELECT any_value(b «HAVING MAX a) AS z FROM t",
    "SELECT a FROM t WHERE c «GLOB 'a*'",
    "SELECT a FROM t WHERE c «RLIKE 'a'",
]


@pytest.mark.parametrize("marked", FOREIGN)
def test_what_postgres_does_not_read_is_a_syntax_error(marked: str) -> None:
    query = marked.replace("«", "")
    for head in ("", "CREATE MATERIALIZED VIEW v AS ", "INSERT INTO t "):
        with pytest.raises(Error) as raised:
            parse_statement(head + query)
        assert (raised.value.sqlstate, raised.value.position) == (SYNTAX_ERROR, len(head) + marked.index("«") + 1)


def test_words_of_other_engines_are_names() -> None:
    for word in ("qualify", "pivot", "glob", "settings", "final", "partition", "changes"):
        assert isinstance(parse_statement(f"SELECT {word}.id FROM t {word}"), Query)


# What a statement that is no view would lose on its way to DuckDB, with the place of the error.
LOST = [
    ("SELECT lpad(c, VARIADIC «arr) FROM t", "VARIADIC", FEATURE_NOT_SUPPORTED),
    ("SELECT left(c, «n := 2) FROM t", "an argument by name", FEATURE_NOT_SUPPORTED),
    ("SELECT «sum(a) WITHIN GROUP (ORDER BY b) FROM t", "WITHIN GROUP of sum", FEATURE_NOT_SUPPORTED),
    ("SELECT AS STRUCT «a FROM t", "SELECT AS", SYNTAX_ERROR),
    ("SELECT a FROM t WHERE a IN UNNEST(«arr)", "IN UNNEST", SYNTAX_ERROR),
    ("SELECT «arr[1:2:1] FROM t", "the step of a slice", SYNTAX_ERROR),
    ("SELECT a FROM t GROUP BY «a WITH ROLLUP", "WITH ROLLUP", SYNTAX_ERROR),
    ("DELETE FROM t WHERE a = 1 LIMIT «b", "LIMIT", SYNTAX_ERROR),
    ("UPDATE t SET a = 1 ORDER BY «b", "ORDER BY", SYNTAX_ERROR),
    ("UPDATE t JOIN «u ON t.id = u.id SET a = 5", "a join with the table to change", SYNTAX_ERROR),
    ("INSERT INTO «t BY NAME SELECT 1 AS b", "BY NAME of INSERT", SYNTAX_ERROR),
    ("DELETE FROM t RETURNING id INTO «x", "RETURNING INTO", SYNTAX_ERROR),
]  # fmt: skip


@pytest.mark.parametrize(("marked", "what", "code"), LOST)
def test_what_a_statement_would_lose_is_refused(marked: str, what: str, code: str) -> None:
    with pytest.raises(Error) as raised:
        statement = parse_statement(marked.replace("«", ""))
        assert isinstance(statement, Query | Update | Delete)
        check_statement(statement.tree)
    assert (raised.value.message, raised.value.sqlstate) == (f"{what} is not supported", code)
    if not what.startswith(("ESCAPE", "the step")):
        assert raised.value.position == marked.index("«") + 1


# Of what only a statement that is no view has.
READ = (
    "SELECT a FROM t TABLESAMPLE BERNOULLI (10) REPEATABLE (3) FOR UPDATE OF t SKIP LOCKED",
    "SELECT * FROM generate_series(1, 3) WITH ORDINALITY AS s (g, n), LATERAL unnest(ARRAY[g]) WITH ORDINALITY",
    "VALUES (1), (2) ORDER BY 1 LIMIT 1 OFFSET 1",
    'SELECT c COLLATE "C", current_timestamp(3) FROM ONLY t WHERE a OPERATOR(pg_catalog.=) 1',
    "UPDATE t SET (a, b) = (1, DEFAULT) FROM u JOIN u AS v ON v.id = u.id WHERE t.id = u.id",
    "WITH x AS (SELECT 1 AS id) DELETE FROM t USING x WHERE x.id = t.id",
    "MERGE INTO t USING u ON t.id = u.id WHEN MATCHED AND u.a > 1 THEN DELETE WHEN MATCHED THEN DO NOTHING "
    "WHEN NOT MATCHED THEN INSERT (id, a) VALUES (u.id, DEFAULT)",
)


@pytest.mark.parametrize("query", READ)
def test_what_a_statement_has_is_read(query: str) -> None:
    statement = parse_statement(query)
    assert isinstance(statement, Query | Update | Delete | Merge)
    check_statement(statement.tree)


def test_times_have_the_precision_that_is_asked_for(connection: psycopg.Connection[Any]) -> None:
    for call in ("current_timestamp", "localtimestamp", "localtime"):
        for digits, fraction in ((0, ""), (2, r"(\.\d{1,2})?"), (6, r"(\.\d{1,6})?")):
            (text,) = rows(connection, f"SELECT {call}({digits})::text")[0]
            assert re.fullmatch(rf"(\d+-\d+-\d+ )?\d+:\d+:\d+{fraction}([+]00)?", text)
    found = rows(connection, "SELECT abs(extract(epoch FROM current_timestamp(0) - now())) <= 0.5, "
                 "abs(extract(epoch FROM localtimestamp(1) - localtimestamp)) <= 0.05")  # fmt: skip
    assert found == [(True, True)]


# Queries whose rows a view has had otherwise, with those of PostgreSQL.
SAME = [
    ("SELECT id FROM t WHERE a IN ((SELECT a FROM u ORDER BY a) LIMIT 1)", [(1,)]),
    ("SELECT id FROM t WHERE a NOT IN ((SELECT a FROM u ORDER BY a) LIMIT 1)", [(2,), (3,)]),
    ("SELECT ((SELECT a FROM u ORDER BY a DESC) LIMIT 1) AS z FROM t", [(3,), (3,), (3,)]),
    ("SELECT a FROM ((SELECT a FROM u ORDER BY a DESC) LIMIT 1 OFFSET 1) AS z", [(2,)]),
    ("SELECT id, sum(b) OVER w AS s FROM t WINDOW v AS (PARTITION BY a), w AS (v ORDER BY b)",
     [(1, 5), (2, 6), (3, 13)]),
    ("SELECT id, sum(b) OVER (w ROWS 1 PRECEDING) AS s FROM t WINDOW v AS (PARTITION BY a), w AS (v ORDER BY b)",
     [(1, 5), (2, 6), (3, 13)]),
    ("SELECT id, first_value(b) RESPECT NULLS OVER (ORDER BY id) AS s FROM t", [(1, 5), (2, 5), (3, 5)]),
    ("SELECT x.k, x.l, x.b FROM t AS x (k, l)", [(1, 1, 5), (2, 2, 6), (3, 2, 7)]),
    ("SELECT x.a FROM u AS x (b, a, k)", [(1,), (2,), (3,)]),
    ("SELECT x.b FROM t AS x (b, a, k)", [(1,), (2,), (3,)]),
    ("SELECT x.k, x.b, y.a AS z FROM t AS x (k) JOIN u AS y (n) ON y.n = x.k AND x.a < 3",
     [(1, 5, 1), (2, 6, 2), (3, 7, 3)]),
    ("SELECT a FROM ONLY u", [(1,), (2,), (3,)]),
    ("WITH k AS MATERIALIZED (SELECT a FROM u), l AS NOT MATERIALIZED (SELECT a FROM k) SELECT a FROM l",
     [(1,), (2,), (3,)]),
    ("SELECT a FROM u ORDER BY a FETCH FIRST ROW WITH TIES", [(1,)]),
    ("SELECT id FROM t WHERE a BETWEEN SYMMETRIC 3 AND 2", [(2,), (3,)]),
]  # fmt: skip


@pytest.fixture(scope="module")
def tables(module_server: Server) -> None:
    with module_server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute("CREATE TABLE t (id int PRIMARY KEY, a int, b int)")
        own.execute("INSERT INTO t VALUES (1, 1, 5), (2, 2, 6), (3, 2, 7)")
        own.execute("CREATE TABLE u (id int PRIMARY KEY, a int, b int)")
        own.execute("INSERT INTO u VALUES (1, 1, 1), (2, 2, 2), (3, 3, 3)")


@pytest.mark.parametrize(("query", "expected"), SAME)
@pytest.mark.usefixtures("tables")
def test_a_view_has_what_its_query_has(
    connection: psycopg.Connection[Any], query: str, expected: list[tuple[int, ...]]
) -> None:
    connection.execute(f"CREATE MATERIALIZED VIEW handled AS {query}")
    try:
        assert sorted(rows(connection, "SELECT * FROM handled")) == expected
        assert sorted(rows(connection, query)) == expected
    finally:
        connection.execute("DROP MATERIALIZED VIEW handled")


@pytest.mark.usefixtures("tables")
def test_time_passes_a_bound_in_either_order(connection: psycopg.Connection[Any]) -> None:
    connection.execute("CREATE TABLE s (at timestamptz, other timestamptz)")
    connection.execute("CREATE MATERIALIZED VIEW soon AS SELECT at FROM s WHERE at BETWEEN SYMMETRIC now() AND other")
    connection.execute("INSERT INTO s VALUES (now() + interval '1 second', now() - interval '1 day')")
    connection.execute("FLUSH")
    assert rows(connection, "SELECT count(*) FROM soon") == [(0,)]
    assert wait_until(lambda: rows(connection, "SELECT count(*) FROM soon") == [(1,)])


@pytest.mark.parametrize(
    ("over", "message"),
    [
        ("(w PARTITION BY a)", 'cannot override PARTITION BY clause of window "w"'),
        ("(w ORDER BY a)", 'cannot override ORDER BY clause of window "w"'),
        ("(f ORDER BY a)", 'cannot copy window "f" because it has a frame clause'),
    ],
)
def test_a_named_window_is_only_added_to(over: str, message: str) -> None:
    with pytest.raises(Error) as raised:
        windows = "w AS (ORDER BY b), f AS (ROWS 1 PRECEDING)"
        plan_over(TABLES, f"SELECT id, sum(b) OVER {over} AS s FROM t WINDOW {windows}")
    assert (raised.value.sqlstate, raised.value.message) == (WINDOWING_ERROR, message)


@pytest.mark.parametrize("kind", [kind for kind in QUERY_SYNTAX if kind not in CALLS], ids=lambda kind: kind.__name__)
def test_every_argument_is_known(kind: type[exp.Expr]) -> None:
    """What another version of sqlglot reads has to be looked at here; a call has its own arguments and no others."""
    syntax = QUERY_SYNTAX[kind]
    assert {*syntax.handled, *syntax.harmless, *syntax.refused} == kind.arg_types.keys()
    if kind in SYNTAX:  # of which a view has each in one way
        listed = [*SYNTAX[kind].handled, *SYNTAX[kind].harmless, *SYNTAX[kind].refused]
        assert sorted(listed) == sorted(kind.arg_types)
