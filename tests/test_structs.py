"""Rows and struct columns through psycopg: as RisingWave has them, with its e2e tests of structs as the model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

Connection = psycopg.Connection[Any]
RECORD = 2249


@pytest.fixture(scope="module")
def tables(module_server: Any) -> Iterator[Connection]:
    with module_server.connect() as connection:
        connection.execute(
            'CREATE TABLE s (k int PRIMARY KEY, x STRUCT<a int, b STRUCT<c varchar, "D d" numeric(4,1)>>)'
        )
        connection.execute(
            "CREATE TABLE o (k int PRIMARY KEY, y STRUCT<u int, v varchar>, many STRUCT<u int, v varchar>[])"
        )
        connection.execute("""INSERT INTO s VALUES (1, (1, ('c', 1.5))), (2, ROW(2, ('x "y"', NULL))), (3, NULL),
            (4, '(4,"(,2.5)")'), (5, (NULL, NULL))""")
        connection.execute(
            """INSERT INTO o VALUES (1, (1, 'one'), ARRAY[ROW(1, 'a'), NULL]), (2, (NULL, ''), '{"(2,b)"}')"""
        )
        yield connection


def texts(connection: Connection, query: str) -> list[tuple[str | None, ...]]:
    """The values as the server writes them."""
    found = connection.execute(query).pgresult
    assert found is not None
    values = [[found.get_value(row, column) for column in range(found.nfields)] for row in range(found.ntuples)]
    return [tuple(None if value is None else value.decode() for value in row) for row in values]


def test_text(tables: Connection) -> None:
    cursor = tables.execute("SELECT x FROM s ORDER BY k")
    assert [column.type_code for column in cursor.description or ()] == [RECORD]
    assert texts(tables, "SELECT x FROM s ORDER BY k") == [
        ('(1,"(c,1.5)")',), ('(2,"(""x """"y"""""",)")',), (None,), ('(4,"(,2.5)")',), ("(,)",),
    ]  # fmt: skip
    assert texts(tables, "SELECT y, many FROM o ORDER BY k") == [("(1,one)", '{"(1,a)",NULL}'), ('(,"")', '{"(2,b)"}')]


def test_a_star_in_a_row_stands_for_the_columns_of_its_source(tables: Connection) -> None:
    query = "SELECT ROW(q.*, 5)::varchar AS r FROM (SELECT 1 AS one, k FROM s WHERE k < 3) AS q ORDER BY k"
    assert texts(tables, query) == [("(1,1,5)",), ("(1,2,5)",)]
    tables.execute(f"CREATE MATERIALIZED VIEW starred AS {query.removesuffix(' ORDER BY k')}")
    assert texts(tables, "SELECT r FROM starred ORDER BY r") == texts(tables, query)
    tables.execute("DROP MATERIALIZED VIEW starred")


def test_cast_to_text_is_what_prints(tables: Connection) -> None:
    for column, table in (("x", "s"), ("y", "o"), ("many", "o")):
        query = f"SELECT {column}, {column}::varchar FROM {table} ORDER BY k"
        assert all(printed == cast for printed, cast in texts(tables, query))


# RisingWave's e2e_test/batch/types/struct.
PRINTED = {
    "ROW('foo', 'bar', null)": "(foo,bar,)",
    "(ROW('foo', 'bar')).f2": "bar",
    "ROW('')": '("")',
    "ROW('\"')": '("""")',
    "ROW(' a ')": '(" a ")',
    "ROW('{}')": "({})",
    "ROW(',')": '(",")',
    "ROW(NULL)": "()",
    "ROW('null')": "(null)",
    "ROW(ARRAY[1,2])": '("{1,2}")',
    "ROW(ARRAY['\"']::varchar[])": r'("{""\\""""}")',
    "ROW(1,2)::STRUCT<i BIGINT, j VARCHAR>": "(1,2)",
    "NULL::STRUCT<i BIGINT, j VARCHAR>": None,
    "(1, (NULL, 3))::STRUCT<i BIGINT, j STRUCT<a BIGINT, b VARCHAR>>": '(1,"(,3)")',
    "((1, NULL)::STRUCT<i BIGINT, j STRUCT<a BIGINT, b VARCHAR>>).j.a": None,
    "CASE WHEN true THEN ROW('hello') ELSE ROW('world') END": "(hello)",
    "row(1, '1') = row('1', 1)": "t",
    "row(1, NULL) = row(1, NULL)": None,
    "row(1, 2) < row(1, NULL)": None,
    "(1, 2) IN ((1, 2), (3, 4))": "t",
    "('(1,\"a \\\\\"\"b\")'::STRUCT<i int, t varchar>).t": 'a \\"b',
    "to_jsonb(ROW(1, 'a'))": '{"f1": 1, "f2": "a"}',
    "to_jsonb((1, 'a')::STRUCT<i int, t varchar>)": '{"i": 1, "t": "a"}',
    "ARRAY[ROW(1, 'a')]::STRUCT<i int, t varchar>[]": '{"(1,a)"}',
    "(ARRAY[ROW(1, 'a'), ROW(2, 'b')]::STRUCT<i int, t varchar>[])[2]": "(2,b)",
}  # fmt: skip


@pytest.mark.parametrize("expression", PRINTED)
def test_expression(tables: Connection, expression: str) -> None:
    assert texts(tables, f"SELECT {expression} AS x") == [(PRINTED[expression],)]


def test_fields(tables: Connection) -> None:
    query = 'SELECT (x).a, (s.x).b.c, (x).b."D d", (x).* FROM s ORDER BY k'
    assert [column.name for column in tables.execute(query).description or ()] == ["a", "c", "D d", "a", "b"]
    assert texts(tables, query)[0] == ("1", "c", "1.5", "1", "(c,1.5)")
    assert texts(tables, "SELECT (x).b.* FROM s WHERE k = 1") == [("c", "1.5")]
    assert texts(tables, "SELECT (many[1]).v FROM o ORDER BY k") == [("a",), ("b",)]
    assert texts(tables, "SELECT (r).f2 FROM (SELECT ROW(k, y) AS r FROM o) AS i ORDER BY 1") == [
        ("(1,one)",),
        ('(,"")',),
    ]


def test_comparisons(tables: Connection) -> None:
    assert texts(tables, "SELECT k FROM s WHERE x = (1, ('c', 1.5))") == [("1",)]
    assert texts(tables, "SELECT k FROM s WHERE x < (4, ('a', 0)) ORDER BY k") == [("1",), ("2",)]
    # A row that is there is not NULL, whatever it holds; inside of rows NULLs are equal and come last.
    assert texts(tables, "SELECT k FROM s WHERE x IS NULL") == [("3",)]
    assert texts(tables, "SELECT k FROM s WHERE x IS NOT DISTINCT FROM ROW(NULL, NULL)") == [("5",)]
    assert texts(tables, "SELECT k FROM s ORDER BY x, k") == [("1",), ("2",), ("4",), ("5",), ("3",)]
    joined = "SELECT o.k FROM o JOIN s ON y = ROW((x).a, 'one')::STRUCT<u int, v varchar>"
    assert texts(tables, joined) == [("1",)]


def test_writes(tables: Connection) -> None:
    tables.execute("CREATE TABLE w (k int PRIMARY KEY, z STRUCT<first int, second varchar>)")
    # By place, whatever the fields are called.
    tables.execute("INSERT INTO w SELECT k, y FROM o")
    tables.execute("INSERT INTO w SELECT 3, ROW(3, 4)")
    tables.execute("INSERT INTO w (z, k) VALUES ((5, 'five'), 5), (NULL, 6), ('(7,\"x,y\")', 7)")
    tables.execute("UPDATE w SET z = (8, 'up') WHERE (z).first = 5")
    tables.execute("UPDATE w SET z = y FROM o WHERE w.k = 6 AND o.k = 1")
    tables.execute("DELETE FROM w WHERE (z).second = '4'")
    expected = [("1", "(1,one)"), ("2", '(,"")'), ("5", "(8,up)"), ("6", "(1,one)"), ("7", '(7,"x,y")')]
    assert texts(tables, "SELECT * FROM w ORDER BY k") == expected


def test_parameters_and_binary(tables: Connection) -> None:
    """psycopg sends tuples as text alone; `test_encoding` reads binary ones."""
    tables.execute("CREATE TABLE params (k int PRIMARY KEY, z STRUCT<a int, b varchar, c int[]>)")
    for k, value in enumerate([(1, 'q"\\,', [1, 2]), (None, "", None), None]):
        tables.execute(f"INSERT INTO params VALUES ({k}, %s)", (value,))
    found = tables.execute("SELECT z FROM params ORDER BY k", binary=True).fetchall()
    assert found == [((1, 'q"\\,', [1, 2]),), ((None, "", None),), (None,)]
    assert texts(tables, "SELECT many FROM o WHERE k = 1") == [('{"(1,a)",NULL}',)]
    assert tables.execute("SELECT many FROM o ORDER BY k", binary=True).fetchall() == [
        ([(1, "a"), None],),
        ([(2, "b")],),
    ]


def test_catalog(tables: Connection) -> None:
    struct = 'struct<a integer, b struct<c character varying, "D d" numeric(4,1)>>'
    named = "SELECT data_type FROM information_schema.columns WHERE table_name = 's' AND column_name = 'x'"
    assert texts(tables, named) == [(struct,)]
    described = """SELECT format_type(a.atttypid, a.atttypmod), a.atttypid, a.attndims FROM pg_attribute a
        JOIN pg_class c ON c.oid = a.attrelid WHERE c.relname = '{}' AND a.attnum = {}"""
    assert texts(tables, described.format("s", 2)) == [(struct, str(RECORD), "0")]
    assert texts(tables, described.format("o", 3)) == [("struct<u integer, v character varying>[]", "2287", "1")]
    [(_, definition)] = texts(tables, "SHOW CREATE TABLE s")
    assert definition == (
        'CREATE TABLE s (k INT PRIMARY KEY, x STRUCT<a INT, b STRUCT<c VARCHAR, "D d" DECIMAL(4, 1)>>)'
    )


ERRORS = [
    ("SELECT (x).nope FROM s", "42703", 'field "nope" not found in struct type'),
    ("SELECT (ROW(1, 2)).f3", "42703", 'field "f3" not found in struct type'),
    ("SELECT (k).a FROM s", "42809", "not a composite type"),
    ("SELECT (k).* FROM s", "42809", "not composite"),
    ("SELECT x = y FROM s, o", "42804", "cannot be matched"),
    ("SELECT x FROM s WHERE x = (1, 2, 3)", "42804", "cannot be matched"),
    ("SELECT ROW(1) < ROW(1, 1)", "42601", "unequal number of entries"),
    ("SELECT k FROM s WHERE x = '(1,)'", "42804", "cannot be matched"),
    ("SELECT x FROM s UNION SELECT y FROM o", "42804", "cannot be matched"),
    ("SELECT coalesce(x, y) FROM s, o", "42804", "cannot be matched"),
    ("SELECT lower(x) FROM s", "0A000", "lower of a value of type struct<"),
    ("SELECT max(upper(y)) FROM o", "0A000", "upper of a value of type struct<"),
    ("SELECT x || 'a' FROM s", "0A000", "|| of a value of type struct<"),
    ("SELECT k::STRUCT<a int> FROM s", "42846", "cannot cast type"),
    ("SELECT ROW(1, 2)::STRUCT<a int>", "42846", "cannot cast type record to struct<a integer>"),
    ("SELECT '(1,2'::STRUCT<a int, b int>", "22P02", "malformed record literal"),
    ("SELECT ROW()", "0A000", "a row without fields"),
    ("SELECT ROW(g.*) FROM generate_series(1, 2) AS g", "0A000", "g.* in a row is not supported here"),
    ("INSERT INTO s VALUES (9, (1, 2, 3))", "42846", "cannot cast type record"),
    ("INSERT INTO s SELECT 9, many FROM o", "42846", "cannot cast type"),
    ("CREATE TABLE bad (x STRUCT<a int, A int>)", "42701", 'struct field "a" specified more than once'),
    ("COPY s FROM STDIN", "0A000", 'COPY into column "x"'),
]


VIEWS = [
    (f"CREATE MATERIALIZED VIEW never (c) AS {error[0]}", *error[1:]) for error in ERRORS if "SELECT" in error[0][:6]
]


@pytest.mark.parametrize(("statement", "sqlstate", "message"), ERRORS + VIEWS, ids=[e[0] for e in ERRORS + VIEWS])
def test_error(tables: Connection, statement: str, sqlstate: str, message: str) -> None:
    """The same in batch queries and in views."""
    with pytest.raises(psycopg.Error) as raised:
        tables.execute(statement)
    assert raised.value.sqlstate == sqlstate
    assert message in (raised.value.diag.message_primary or "")


def test_rows_over_series_are_cast(tables: Connection) -> None:
    query = "SELECT ROW(i, 'x')::STRUCT<a int, b varchar> FROM generate_series(1, 2) AS i ORDER BY i"
    assert texts(tables, query) == [("(1,x)",), ("(2,x)",)]


def test_created_from_a_query_fields_keep_their_case(tables: Connection) -> None:
    value = """ROW(1, ROW(2, 'x'))::STRUCT<a bigint, "B" STRUCT<"C" int, D varchar>>"""
    tables.execute(f"CREATE TABLE cased AS SELECT {value} AS s, ARRAY[{value}] AS l")
    assert texts(tables, 'SELECT ((s)."B")."C", ((l[1])."B").d FROM cased') == [("2", "x")]
