"""CREATE TABLE … AS, and defaults of columns, over a real server."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import psycopg
from servers import refused, rows

Connection = psycopg.Connection[Any]


def columns(connection: Connection, table: str) -> list[tuple[Any, ...]]:
    return rows(
        connection,
        "SELECT column_name, data_type FROM information_schema.columns "
        f"WHERE table_name = '{table}' ORDER BY ordinal_position",
    )


def test_a_table_has_the_rows_and_types_of_its_query(connection: Connection) -> None:
    connection.execute("CREATE TABLE source (id int PRIMARY KEY, v varchar, n numeric(10,2), ts timestamptz, a int[])")
    connection.execute(
        "INSERT INTO source VALUES (1, 'a', 1.5, '2020-01-01 00:00:00+00', '{1,2}'), (2, NULL, 2, NULL, NULL)"
    )
    made = connection.execute("CREATE TABLE made AS SELECT *, id > 1 AS big, n::float8 AS f FROM source")
    assert made.statusmessage == "SELECT 2"
    assert columns(connection, "made") == [
        ("id", "integer"), ("v", "character varying"), ("n", "numeric"), ("ts", "timestamp with time zone"),
        ("a", "ARRAY"), ("big", "boolean"), ("f", "double precision"),
    ]  # fmt: skip
    assert rows(connection, "SELECT * FROM made ORDER BY id") == [
        (1, "a", Decimal("1.50"), datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC), [1, 2], False, 1.5),
        (2, None, Decimal("2.00"), None, None, True, 2.0),
    ]
    ((definition,),) = rows(connection, "SELECT definition FROM rw_catalog.rw_tables WHERE name = 'made'")
    assert definition.startswith("CREATE TABLE made (id INT, v CHARACTER VARYING, n NUMERIC(10,2)")


def test_forms(connection: Connection) -> None:
    connection.execute("CREATE TABLE whole (i bigint, k bigint)")
    connection.execute("INSERT INTO whole SELECT i, i % 3 FROM range(100) AS r(i)")
    for sql, tag, read, found in (
        ("CREATE TABLE f1 (x) AS SELECT i, k FROM whole", "SELECT 100", "SELECT max(x), max(k) FROM f1", [(99, 2)]),
        ("CREATE TABLE f2 AS (SELECT k, count(*) AS c FROM whole GROUP BY k)", "SELECT 3",
         "SELECT * FROM f2 ORDER BY 1", [(0, 34), (1, 33), (2, 33)]),
        ("CREATE TABLE f3 AS WITH w AS (SELECT 5 AS five) SELECT * FROM w", "SELECT 1", "TABLE f3", [(5,)]),
        ("CREATE TABLE f4 AS VALUES (1, 'x'), (2, 'y')", "SELECT 2", "SELECT column2 FROM f4", [("x",), ("y",)]),
        ("CREATE TABLE f5 AS SELECT * FROM whole WHERE false", "SELECT 0", "TABLE f5", []),
        ("CREATE TABLE f6 AS SELECT * FROM whole WITH NO DATA", "CREATE TABLE AS", "TABLE f6", []),
        ("CREATE TABLE f7 AS SELECT i FROM whole LIMIT 1 WITH DATA", "SELECT 1", "SELECT count(*) FROM f7", [(1,)]),
        ("CREATE TABLE f8 AS TABLE f3 UNION ALL SELECT 6", "SELECT 2", "SELECT sum(five) FROM f8", [(11,)]),
        ("CREATE TABLE f9 AS SELECT relname FROM pg_class WHERE relname = 'f8'", "SELECT 1", "TABLE f9", [("f8",)]),
        ("CREATE TABLE IF NOT EXISTS f3 AS SELECT 6 AS six", "CREATE TABLE AS", "TABLE f3", [(5,)]),
        ("CREATE TABLE fa APPEND ONLY AS SELECT now() AS ts, current_date AS d", "SELECT 1",
         "SELECT count(*) FROM fa WHERE ts >= d", [(1,)]),
    ):  # fmt: skip
        assert connection.execute(sql).statusmessage == tag, sql
        assert rows(connection, read) == found, sql
    connection.execute("CREATE TABLE fb AS SELECT relname, relkind, relfrozenxid, 'x' AS c, NULL AS n FROM pg_class")
    assert dict(columns(connection, "fb")) == {
        "relname": "text",
        "relkind": "text",
        "relfrozenxid": "oid",
        "c": "text",
        "n": "text",
    }
    assert refused(connection, "DELETE FROM fa").sqlstate == "0A000"


def test_what_is_refused_makes_nothing(connection: Connection) -> None:
    connection.execute("CREATE TABLE there (id int)")
    for sql, sqlstate in (
        ("CREATE TABLE refused AS SELECT 1 / id AS x FROM (SELECT 0 AS id) AS z", "22012"),
        ("CREATE TABLE refused AS SELECT nothing FROM there", "42703"),
        ("CREATE TABLE refused AS SELECT 1 AS a, 2 AS a", "42701"),
        ("CREATE TABLE refused (a, b) AS SELECT 1 AS x", "42601"),
        ("CREATE TABLE refused (a int) AS SELECT 1 AS x", "42601"),
        ("CREATE TABLE refused AS SELECT 1 AS _row_id", "42611"),
        ("CREATE TABLE refused AS DELETE FROM there", "42601"),
        ("CREATE TABLE refused WITH (connector = 'kafka') AS SELECT 1 AS a", "42601"),
        ("CREATE TABLE nowhere.refused AS SELECT 1 AS a", "3F000"),
        ("CREATE TABLE there AS SELECT 1 AS a", "42P07"),
    ):
        assert refused(connection, sql).sqlstate == sqlstate, sql
    assert rows(connection, "SELECT * FROM rw_catalog.rw_tables WHERE name = 'refused'") == []


def test_a_view_follows_a_made_table(connection: Connection) -> None:
    connection.execute("ALTER SYSTEM SET backfill_engine = auto")
    connection.execute("CREATE TABLE followed AS SELECT i % 3 AS k, i AS n FROM range(10) AS r(i)")
    connection.execute("CREATE MATERIALIZED VIEW follower AS SELECT k, sum(n) AS s FROM followed GROUP BY k")
    connection.execute("INSERT INTO followed VALUES (0, 1000)")
    connection.execute("DELETE FROM followed WHERE k = 1")
    connection.execute("FLUSH")
    assert rows(connection, "SELECT * FROM follower ORDER BY k") == [(0, 1018), (2, 15)]


def test_defaults(connection: Connection) -> None:
    connection.execute(
        "CREATE TABLE filled (id int PRIMARY KEY, n int DEFAULT 5 NOT NULL, v varchar DEFAULT 'x' || 'y', "
        "ts timestamptz DEFAULT now(), d date DEFAULT '2020-01-01', b boolean DEFAULT true, plain int)"
    )
    read = "id, n, v, ts > '2020-01-01', d, b, plain"
    new_year = datetime.date(2020, 1, 1)
    for sql, found in (
        ("INSERT INTO filled (id) VALUES (1)", (1, 5, "xy", True, new_year, True, None)),
        ("INSERT INTO filled VALUES (2, DEFAULT, 'v', DEFAULT, DEFAULT, false, DEFAULT)",
         (2, 5, "v", True, new_year, False, None)),
        ("INSERT INTO filled (plain, id) SELECT 6, 3", (3, 5, "xy", True, new_year, True, 6)),
        ("INSERT INTO filled VALUES (4, 6)", (4, 6, "xy", True, new_year, True, None)),
        ("INSERT INTO filled (id, v) VALUES (5, NULL)", (5, 5, None, True, new_year, True, None)),
        ("UPDATE filled SET n = 9, v = DEFAULT WHERE id = 5", (5, 9, "xy", True, new_year, True, None)),
        ("UPDATE filled SET (n, v) = (DEFAULT, 'z') WHERE id = 5", (5, 5, "z", True, new_year, True, None)),
    ):  # fmt: skip
        assert rows(connection, f"{sql} RETURNING {read}") == [found], sql
    connection.execute(
        "MERGE INTO filled USING (SELECT 7 AS id) AS s ON s.id = filled.id "
        "WHEN NOT MATCHED THEN INSERT (id) VALUES (id)"
    )
    with connection.cursor().copy("COPY filled (id, v) FROM STDIN") as copy:
        copy.write("8\tc\n")
    assert rows(connection, f"SELECT {read} FROM filled WHERE id > 6 ORDER BY id") == [
        (7, 5, "xy", True, new_year, True, None), (8, 5, "c", True, new_year, True, None)
    ]  # fmt: skip
    assert refused(connection, "INSERT INTO filled (id, n) VALUES (9, NULL)").sqlstate == "23502"
    assert refused(connection, "INSERT INTO filled DEFAULT VALUES").sqlstate == "23502"
    connection.execute("CREATE TABLE loose (n int DEFAULT 3, v varchar)")
    assert rows(connection, "INSERT INTO loose DEFAULT VALUES RETURNING *") == [(3, None)]


def test_defaults_that_are_refused(connection: Connection) -> None:
    for default, sqlstate in (("'abc'", "22P02"), ("n", "0A000"), ("(SELECT 1)", "0A000"), ("count(*)", "42803")):
        assert refused(connection, f"CREATE TABLE wrong (n int DEFAULT {default})").sqlstate == sqlstate, default
