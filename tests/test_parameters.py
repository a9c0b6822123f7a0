"""The types of parameters that a client leaves open. Answers are PostgreSQL 15.18's, with varchar and name as text."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg.pq import ExecStatus
from servers import Server

Connection = psycopg.Connection[Any]

TABLES = """
CREATE TABLE pt (id int PRIMARY KEY, name varchar, amt numeric(10,2), ts timestamp, tz timestamptz, d date, b boolean,
                 j jsonb, arr int[], iv interval, tm time, f8 float8, i8 bigint, s2 smallint);
CREATE TABLE pc (id int PRIMARY KEY, t_id bigint);
CREATE VIEW pv AS SELECT id AS k, name AS v FROM pt;
INSERT INTO pt (id, name, amt, arr, i8) VALUES (1, 'one', 1.5, ARRAY[1, 2], 10), (2, 'two', 2.5, NULL, 20);
"""

OIDS = {
    16: "bool", 20: "int8", 21: "int2", 23: "int4", 25: "text", 26: "oid", 701: "float8", 1007: "int4[]",
    1009: "text[]", 1043: "text", 1082: "date", 1114: "timestamp", 1186: "interval", 1700: "numeric", 3802: "jsonb",
}  # fmt: skip

CASES = [
    ("SELECT id FROM pt WHERE id < $1", "int4"),
    ("SELECT id FROM pt WHERE id<$1", "int4"),
    ("SELECT id FROM pt WHERE $1 = i8", "int8"),
    ("SELECT id FROM pt WHERE id = ANY($1)", "int4[]"),
    ("SELECT id FROM pt WHERE name = ANY ($1)", "text[]"),
    ("SELECT id FROM pt WHERE id <> ALL($1)", "int4[]"),
    ("SELECT id FROM pt WHERE $1 = ANY(arr)", "int4"),
    ("SELECT id FROM pt WHERE i8 IN ($1, $2)", "int8 int8"),
    ("SELECT id FROM pt WHERE $1 IN (SELECT f8 FROM pt)", "float8"),
    ("SELECT id FROM pt WHERE d BETWEEN $1 AND $2", "date date"),
    ("SELECT id FROM pt WHERE name LIKE $1 OR name ILIKE $2", "text text"),
    ("SELECT id + $1 FROM pt", "int4"),
    ("SELECT amt * $1, f8 / $2, -$3::int FROM pt", "numeric float8 int4"),
    ("SELECT d - $1, ts - $2, ts + $3, d + $4::int FROM pt", "date timestamp interval int4"),
    ("SELECT iv * $1, iv + $2 FROM pt", "float8 interval"),
    ("SELECT name || $1, arr || $2, j || $3 FROM pt", "text int4[] jsonb"),
    ("SELECT coalesce(amt, $1), nullif(i8, $2), greatest(d, $3) FROM pt", "numeric int8 date"),
    ("SELECT CASE WHEN $1 THEN id ELSE $2 END, CASE name WHEN $3 THEN 1 END FROM pt", "bool int4 text"),
    ("SELECT CASE WHEN b THEN $1 ELSE $2 END FROM pt", "text text"),
    ("SELECT id FROM pt LIMIT $1 OFFSET $2", "int8 int8"),
    ("SELECT $1", "text"),
    ("SELECT $1, $2::int, CAST($3 AS date), $4::text[]", "text int4 date text[]"),
    ("SELECT $1 + 1, 2.5 * $2, 1 = $3, 'x' = $4", "int4 numeric int4 text"),
    ("SELECT upper($1), left($2, $3), length($4), split_part($5, $6, $7)", "text text int4 text text text int4"),
    ("SELECT round(amt, $1), power(f8, $2), sqrt($3), mod(id, $4) FROM pt", "int4 float8 float8 int4"),
    (
        "SELECT array_position(arr, $1), array_to_string(arr, $2), array_append(arr, $3) FROM pt",
        "int4 text int4",
    ),
    ("SELECT * FROM generate_series(1, $1) AS g", "int4"),
    ("SELECT n FROM generate_series(1, 3) AS s(n) WHERE n = $1", "int4"),
    ("SELECT s FROM generate_series(1, 3::bigint) AS s WHERE s < $1", "int8"),
    ("SELECT n FROM pt, LATERAL generate_series(1, pt.id) AS s(n) WHERE n <> $1 AND pt.i8 = $2", "int4 int8"),
    ("SELECT o FROM generate_series(1, 3) WITH ORDINALITY AS s(n, o) WHERE o > $1", "int8"),
    (
        "SELECT day FROM generate_series(timestamp '2020-01-01', $1, '1 day') AS day WHERE day > $2",
        "timestamp timestamp",
    ),
    ("SELECT to_char(ts, $1), to_char(amt, $2::text), to_date($3, $4) FROM pt", "text text text text"),
    ("SELECT set_config($1, $2, false)", "text text"),
    ("INSERT INTO pt (id, name, d) VALUES ($1, $2, $3)", "int4 text date"),
    ("INSERT INTO pt (id, i8) VALUES ($1, $2), ($3, $4 + 1)", "int4 int8 int4 int4"),
    ("INSERT INTO pt (id, amt) SELECT $1, $2", "int4 numeric"),
    ("INSERT INTO pt (id, amt) SELECT id, $1 FROM pt WHERE id = $2", "numeric int4"),
    ("UPDATE pt SET name = $1 WHERE id < $2", "text int4"),
    ("UPDATE pt SET name = $1, amt = amt + $2, ts = $3 WHERE id<$4", "text numeric timestamp int4"),
    ("UPDATE pt SET amt = $1 FROM pc WHERE pc.t_id = pt.id AND pc.id = $2", "numeric int4"),
    ("DELETE FROM pt WHERE d = $1 AND b = $2", "date bool"),
    (
        "WITH x AS (SELECT id AS k, count(*) AS n FROM pt GROUP BY id) SELECT k FROM x WHERE n > $1 AND k = $2",
        "int8 int4",
    ),
    ("WITH x AS (SELECT $1::date AS day) SELECT day FROM x WHERE day > $2", "date date"),
    ("SELECT s.k FROM (SELECT id AS k, sum(amt) AS total FROM pt GROUP BY id) s WHERE s.total > $1", "numeric"),
    ("SELECT k FROM pv WHERE k = $1 AND v = $2", "int4 text"),
    ("SELECT a.id FROM pt a JOIN pc c ON a.id = c.t_id AND c.id = $1 WHERE a.ts >= $2", "int4 timestamp"),
    ("SELECT id FROM pt WHERE (id, name) = ($1, $2)", "int4 text"),
    ("SELECT id FROM pt WHERE (id, name) IN (($1, $2), ($3, $4))", "int4 text int4 text"),
    ("SELECT id FROM pt WHERE id IS NOT DISTINCT FROM $1", "int4"),
    ("SELECT id FROM pt WHERE $1 OR NOT $2", "bool bool"),
    ("SELECT count(*) FROM pt GROUP BY name HAVING count(*) > $1 AND max(amt) < $2", "int8 numeric"),
    ("SELECT id FROM pt WHERE id = (SELECT max(t_id) FROM pc WHERE pc.id = $1)", "int4"),
    ("SELECT id FROM pt WHERE EXISTS (SELECT 1 FROM pc WHERE pc.id = pt.id AND pc.t_id = $1)", "int8"),
    ("SELECT id FROM pt UNION ALL SELECT $1", "int4"),
    ("SELECT id FROM pt WHERE id = $1 AND i8 = $1", "int4"),
    ("SELECT ARRAY[1, $1], ARRAY[$2, $3]", "int4 text text"),
    ("SELECT extract(year FROM ts + $1) FROM pt", "interval"),
    ("SELECT attname FROM pg_attribute WHERE attnum > $1 AND attrelid = $2", "int2 oid"),
    ("SELECT table_name FROM information_schema.tables WHERE table_schema = $1", "text"),
    ("SELECT pg_catalog.format_type(23, $1), pg_get_userbyid($2), current_setting($3)", "int4 oid text"),
    ("VALUES ($1, 1), ($2, 2)", "text text"),
    ("SELECT sum(id) FILTER (WHERE name = $1) FROM pt", "text"),
    ("SELECT string_agg(name, $1) FROM pt", "text"),
    ("SELECT lag(id, $1) OVER (ORDER BY id) FROM pt", "int4"),
    ('SELECT name COLLATE "C" FROM pt WHERE lower(name) = $1', "text"),
    ("SELECT id FROM pt ORDER BY id = $1", "int4"),
    ("SELECT id FROM pt WHERE (id<$1)OR(i8<$2)", "int4 int8"),
    ("SELECT id FROM pt WHERE id<-$1 AND j->>$2 = 'x'", "int4 text"),
    ("UPDATE pt SET name = $1 WHERE id = $1", "int4"),
]


@pytest.fixture(scope="module")
def tables(module_server: Server) -> Iterator[Connection]:
    with module_server.connect() as connection:
        connection.execute(TABLES)
        yield connection


@pytest.mark.parametrize(("sql", "types"), CASES)
def test_types(tables: Connection, sql: str, types: str) -> None:
    """Described, and executed with NULLs, which take their places as values of these types."""
    raw = tables.pgconn
    assert raw.prepare(b"", sql.encode()).status == ExecStatus.COMMAND_OK
    described = raw.describe_prepared(b"")
    assert [OIDS[described.param_type(n)] for n in range(described.nparams)] == types.split()
    if not sql.startswith("INSERT"):  # of a key that is NULL
        assert not raw.exec_prepared(b"", [None] * described.nparams).error_message


@pytest.mark.parametrize(
    ("sql", "values", "rows"),
    [
        ("SELECT id FROM pt WHERE id = ANY($1) ORDER BY id", [b"{2,3,NULL}"], [b"2"]),
        ("SELECT id FROM pt WHERE name = ANY($1)", [b'{one,"x y"}'], [b"1"]),
        ("SELECT id FROM pt WHERE id <> ALL($1)", [b"{1}"], [b"2"]),
        ("SELECT id FROM pt WHERE id = ANY($1)", [b"{}"], []),
        ("SELECT id FROM pt WHERE $1 = ANY(arr)", [b"2"], [b"1"]),
        ("SELECT id FROM pt WHERE id<$1", [b"2"], [b"1"]),
        ("SELECT $1 || name FROM pt WHERE id = $2", [b"#", b"1"], [b"#one"]),
        ("SELECT f8 IS NULL, i8 * $1 FROM pt WHERE i8 = $2", [b"2", b"20"], [b"t"]),
        ("SELECT v FROM pv WHERE k IN ($1, $2) ORDER BY v", [b"1", b"2"], [b"one", b"two"]),
        ("SELECT DATE '2024-02-28' + $1", [b"1"], [b"2024-02-29"]),
        ("SELECT $1::int4, now(), current_timestamp, current_date", [b"5"], [b"5"]),
        ("SELECT typname FROM pg_type WHERE oid = $1", [b"23"], [b"int4"]),
        ("SELECT to_char(timestamp '2024-02-09 13:04:05', $1)", [b"DD.MM.YYYY HH24:MI"], [b"09.02.2024 13:04"]),
        ("SELECT to_char(1234.5::numeric, $1::varchar)", [b"FM9,990.00"], [b"1,234.50"]),
        ("SELECT to_date($1, $2)", [b"09/02/2024", b"DD/MM/YYYY"], [b"2024-02-09"]),
        ("SELECT to_timestamp($1, $2) AT TIME ZONE 'UTC'", [b"2024 02", b"YYYY MM"], [b"2024-02-01 00:00:00"]),
        ("SELECT to_date('2024', $1) IS NULL", [None], [b"t"]),
        ("SELECT id FROM pt WHERE to_char(id, $1) = $2", [b"FM00", b"02"], [b"2"]),
        ("SELECT n FROM generate_series(1, 3) AS s(n) WHERE n >= $1", [b"2"], [b"2", b"3"]),
        ("SELECT x || y FROM unnest($1::int[], $2::text[]) AS u(x, y)", [b"{1,2}", b"{a,b}"], [b"1a", b"2b"]),
    ],
)
def test_values(tables: Connection, sql: str, values: list[bytes | None], rows: list[bytes]) -> None:
    found = tables.pgconn.exec_params(sql.encode(), values)
    assert not found.error_message, found.error_message
    assert [found.get_value(row, 0) for row in range(found.ntuples)] == rows


def test_a_write_with_parameters(tables: Connection) -> None:
    raw = tables.pgconn
    assert raw.exec_params(b"INSERT INTO pt (id, name) VALUES ($1, $2)", [b"7", b"seven"]).command_tuples == 1
    assert raw.exec_params(b"update pt set name=$1 where id>$2 and id<$3", [b"new", b"6", b"8"]).command_tuples == 1
    assert tables.execute("SELECT name FROM pt WHERE id = 7").fetchone() == ("new",)
    assert raw.exec_params(b"DELETE FROM pt WHERE id = ANY($1)", [b"{7}"]).command_tuples == 1


def test_arithmetic_of_numerics(tables: Connection) -> None:
    one, expected = Decimal("1.25"), [(Decimal("2.25"), Decimal("3.125"), Decimal("1.3"), Decimal("-1.25"))]
    assert tables.execute("SELECT %s + 1, %s * 2.5, round(%s, 1), -%s", (one,) * 4).fetchall() == expected
    query = "SELECT %s::numeric + 1, %s::numeric * 2.5, round(%s::numeric, 1), -%s::numeric"
    for value, answer in ((one, expected), (None, [(None,) * 4]), (one, expected)):
        assert tables.execute(query, (value,) * 4).fetchall() == answer


def test_bad_values(tables: Connection) -> None:
    found = tables.pgconn.exec_params(b"SELECT id FROM pt WHERE id = ANY($1)", [b"{x}"])
    assert b'invalid input syntax for type integer: "x"' in found.error_message
    found = tables.pgconn.exec_params(b"SELECT id FROM pt WHERE d < $1", [b"soon"])
    assert b'invalid input syntax for type date: "soon"' in found.error_message


def test_patterns_of_one_statement_are_those_of_each_execution(tables: Connection) -> None:
    query = "SELECT to_char(d, %s), extract(year FROM d)::int FROM (SELECT date '2024-02-09' AS d) AS s"
    for pattern, text in (("YYYY", "2024"), ("MM/DD", "02/09"), ("TZ", "UTC"), ("YYYY", "2024")):
        assert tables.execute(query, (pattern,), prepare=True).fetchall() == [(text, 2024)]


@pytest.mark.parametrize("form", ["%s", "%b", "%t"])
def test_arrays_have_the_dimensions_of_their_values(tables: Connection, form: str) -> None:
    value = [[1, None], [3, 4]]
    sql = "SELECT a, array_dims(a), array_length(a, 2), a[2][1], 3 = ANY (a), a::text FROM (SELECT p::int[][]) AS s (a)"
    found = tables.execute(sql.replace("p", form, 1), [value], binary=form == "%b").fetchone()
    assert found == (value, "[1:2][1:2]", 2, 3, True, "{{1,NULL},{3,4}}")
    sql = (
        f"SELECT {form}::int[], array_dims({form}::text[]), ({form}::int[])[2][2], array(SELECT unnest({form}::int[]))"
    )
    texts = [["a"], ["b"]]
    assert tables.execute(sql, [value, texts, value, value]).fetchone() == (value, "[1:2][1:1]", 4, [1, None, 3, 4])
    sql = f"SELECT {form}::int[], {form}::int[], cardinality({form}::int[])"
    assert tables.execute(sql, [[], [1, None], [[[1, 2]], [[3, 4]]]]).fetchone() == ([], [1, None], 4)


def test_an_empty_binary_array_may_have_a_dimension(tables: Connection) -> None:
    header = b"".join(number.to_bytes(4, "big") for number in (1, 0, 23, 0, 1))  # as asyncpg sends []
    done = tables.pgconn.exec_params(b"SELECT $1::int[]", [header], None, [1])
    assert done.get_value(0, 0) == b"{}"


def test_a_write_of_arrays_of_arrays(tables: Connection) -> None:
    tables.execute("CREATE TABLE grids (id int PRIMARY KEY, cells int[][], names text[][])")
    tables.execute("INSERT INTO grids VALUES (1, %s, %s)", [[[1, 2]], [["a", None]]])
    tables.execute("UPDATE grids SET cells = %s WHERE id = 1", [[[3], [4]]])
    assert tables.execute("SELECT cells, names FROM grids").fetchall() == [([[3], [4]], [["a", None]])]
    tables.execute("DROP TABLE grids")
