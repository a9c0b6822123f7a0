"""RETURNING, MERGE, TRUNCATE, and writes that read other tables, over a real server; the views follow."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import pq
from servers import Server, refused, rows

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def made(module_server: Server) -> None:
    """A table with a key, one without, each with a view over it, and one to read from."""
    with module_server.connect() as connection:
        connection.execute("ALTER SYSTEM SET backfill_engine = auto")
        connection.execute("ALTER SYSTEM SET barrier_interval_ms = 50")
        connection.execute("CREATE TABLE stock (id int PRIMARY KEY, name varchar, n int)")
        connection.execute("CREATE TABLE bare (id int, name varchar, n int)")
        connection.execute("CREATE TABLE news (id int, n int)")
        for table in ("stock", "bare"):
            connection.execute(f"CREATE MATERIALIZED VIEW by_{table} AS {VIEW.format(table)}")


@pytest.fixture
def tables(made: None, connection: Connection) -> Connection:
    """The tables with rows in them."""
    for table in ("stock", "bare"):
        connection.execute(f"DELETE FROM {table}")
        connection.execute(f"INSERT INTO {table} VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)")
    connection.execute("DELETE FROM news")
    connection.execute("INSERT INTO news VALUES (2, 200), (3, 300), (4, 400)")
    return connection


VIEW = "SELECT n, count(*) AS c, sum(id) AS ids, min(name) AS first FROM {} GROUP BY n"


def check_views(connection: Connection) -> None:
    connection.execute("FLUSH")
    for table in ("stock", "bare"):
        view, query = f"SELECT n, c, ids, first FROM by_{table}", VIEW.format(table)
        assert rows(connection, f"({view} EXCEPT ALL {query}) UNION ALL ({query} EXCEPT ALL {view})") == []


WRITES: tuple[tuple[str, str, list[tuple[Any, ...]]], ...] = (
    ("INSERT INTO {} VALUES (7, 'x', 1), (8, 'y', NULL) RETURNING *", "INSERT 0 2", [(7, "x", 1), (8, "y", None)]),
    ("INSERT INTO {} AS t (id) VALUES (7) RETURNING t.id + 1 AS next, name", "INSERT 0 1", [(8, None)]),
    ("INSERT INTO {} SELECT id + 10, 'n', n FROM news RETURNING id", "INSERT 0 3", [(12,), (13,), (14,)]),
    ("WITH x AS (SELECT 9 AS id) INSERT INTO {} (id) SELECT id FROM x RETURNING id", "INSERT 0 1", [(9,)]),
    ("UPDATE {} SET n = n + 1 WHERE id > 1 RETURNING id, n", "UPDATE 2", [(2, 21), (3, 31)]),
    ("UPDATE {} SET n = n + 1 WHERE id > 100 RETURNING id, n", "UPDATE 0", []),
    ("UPDATE {} AS t SET n = news.n FROM news WHERE news.id = t.id", "UPDATE 2", []),
    ("UPDATE {} AS t SET n = s.n, name = t.name || '!' FROM news AS s WHERE s.id = t.id RETURNING t.*, s.id AS other",
     "UPDATE 2", [(2, "b!", 200, 2), (3, "c!", 300, 3)]),
    ("UPDATE {} AS t SET n = s.n FROM news s LEFT JOIN news r ON r.id = s.id + 1 WHERE s.id = t.id RETURNING r.*",
     "UPDATE 2", [(3, 300), (4, 400)]),
    ("UPDATE {} AS t SET n = v.k FROM (VALUES (1, 5)) AS v(id, k) WHERE v.id = t.id RETURNING *",
     "UPDATE 1", [(1, "a", 5, 1, 5)]),
    ("WITH s AS (SELECT * FROM news) UPDATE {} AS t SET n = s.n FROM s WHERE s.id = t.id RETURNING t.n",
     "UPDATE 2", [(200,), (300,)]),
    ("UPDATE {} SET (n, name) = (5, 'z') WHERE id = 1 RETURNING *", "UPDATE 1", [(1, "z", 5)]),
    ("UPDATE {0} SET (n, name) = (SELECT max(n), 'top' FROM news) WHERE id = 1 RETURNING *",
     "UPDATE 1", [(1, "top", 400)]),
    ("UPDATE {} SET n = DEFAULT WHERE id = 1 RETURNING *", "UPDATE 1", [(1, "a", None)]),
    ("DELETE FROM {} WHERE id < 3 RETURNING name, n * 2", "DELETE 2", [("a", 20), ("b", 40)]),
    ("DELETE FROM {} AS t USING news WHERE news.id = t.id", "DELETE 2", []),
    ("DELETE FROM {} AS t USING news s WHERE s.id = t.id RETURNING s.n, t.id", "DELETE 2", [(200, 2), (300, 3)]),
    ("DELETE FROM {0} AS t WHERE (id, n) IN (SELECT id, n FROM {0} WHERE n > 10)", "DELETE 2", []),
    ("DELETE FROM {} AS t WHERE (id) IN (SELECT DISTINCT id FROM news AS s) RETURNING id", "DELETE 2", [(2,), (3,)]),
    ("TRUNCATE {}", "TRUNCATE TABLE", []),
    ("TRUNCATE TABLE ONLY {} RESTART IDENTITY CASCADE", "TRUNCATE TABLE", []),
    ("MERGE INTO {} AS t USING news AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n "
     "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (id, n)", "MERGE 3", []),
    ("MERGE INTO {} AS t USING (SELECT id, n FROM news) AS s ON (t.id = s.id) WHEN MATCHED AND s.n > 250 THEN DELETE "
     "WHEN MATCHED THEN UPDATE SET name = 'm' WHEN NOT MATCHED AND n > 1000 THEN INSERT VALUES (1, 'no', 1)",
     "MERGE 2", []),
    ("MERGE INTO {} AS t USING news AS s ON t.id = s.id WHEN MATCHED THEN DO NOTHING "
     "WHEN NOT MATCHED THEN INSERT VALUES (s.id, 'new', DEFAULT)", "MERGE 1", []),
)  # fmt: skip

# What the tables have after those writes that return nothing, by the statement's place.
AFTER = {
    6: [(1, "a", 10), (2, "b", 200), (3, "c", 300)],
    15: [(1, "a", 10)],
    17: [(1, "a", 10)],
    19: [],
    20: [],
    21: [(1, "a", 10), (2, "b", 200), (3, "c", 300), (4, None, 400)],
    22: [(1, "a", 10), (2, "m", 20)],
    23: [(1, "a", 10), (2, "b", 20), (3, "c", 30), (4, "new", None)],
}


@pytest.mark.long
@pytest.mark.parametrize("table", ["stock", "bare"])
def test_what_writes_return_and_leave(tables: Connection, table: str) -> None:
    stored = rows(tables, f"SELECT * FROM {table} ORDER BY id")
    for place, (sql, tag, returned) in enumerate(WRITES):
        done = tables.execute(sql.format(table))
        assert done.statusmessage == tag, sql
        assert sorted(done.fetchall() if done.description else [], key=str) == sorted(returned, key=str), sql
        if place in AFTER:
            assert rows(tables, f"SELECT * FROM {table} ORDER BY id") == AFTER[place], sql
        if place % 5 == 0 or place > 18:
            check_views(tables)
        tables.execute(f"TRUNCATE {table}")
        tables.execute(f"INSERT INTO {table} VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)")
    assert rows(tables, f"SELECT * FROM {table} ORDER BY id") == stored
    check_views(tables)


def test_a_row_that_meets_several_is_updated_once(tables: Connection) -> None:
    tables.execute("INSERT INTO news VALUES (2, 201), (2, 202)")
    done = tables.execute("UPDATE bare SET n = news.n FROM news WHERE news.id = bare.id AND bare.id = 2 RETURNING *")
    assert done.statusmessage == "UPDATE 1"
    ((id_, name, n, _, other),) = done.fetchall()
    assert (id_, name) == (2, "b") and n == other in (200, 201, 202)
    assert tables.execute("DELETE FROM bare USING news WHERE news.id = bare.id").statusmessage == "DELETE 2"
    check_views(tables)


@pytest.mark.parametrize("write", ["UPDATE", "DELETE"])
def test_conditions_of_writes_are_those_of_queries(connection: Connection, write: str) -> None:
    """A real beside a numeric is compared as a double, and floats and bytes have PostgreSQL's texts."""
    connection.execute(f"CREATE TABLE by_{write} (r real, f float8, b bytea)")
    connection.execute(f"INSERT INTO by_{write} VALUES (0.1, 1e20, '\\x00'), (0.5, 0.5, 'b')")
    change = f"UPDATE by_{write} SET r = 1" if write == "UPDATE" else f"DELETE FROM by_{write}"
    counts = {
        "r = 0.1": 0,
        "r < 0.1 OR r + 0.1 = 0.2": 0,
        "f::text = '100000000000000000000' OR b::text = '\\0'": 0,
        "f::text = '1e+20' AND b::text = '\\x00' AND r > 0.1": 1,
        "r = 0.5": 1,
    }
    for condition, count in counts.items():
        done = connection.execute(f"{change} WHERE {condition}")
        assert done.statusmessage == f"{write} {count}", condition


REFUSED = (
    ("INSERT INTO stock VALUES (9) RETURNING count(*)", "42803"),
    ("INSERT INTO stock VALUES (9) RETURNING row_number() OVER ()", "42P20"),
    ("INSERT INTO stock VALUES (9) RETURNING 1 / 0", "22012"),
    ("INSERT INTO stock VALUES (9) RETURNING nothing", "42703"),
    ("INSERT INTO stock AS s VALUES (9) RETURNING stock.id", "42P01"),
    ("UPDATE stock SET n = 1 RETURNING 1 / (n - 1)", "22012"),
    ("UPDATE stock SET n = 'x' FROM news", "22P02"),
    ("UPDATE stock SET n = 1, n = 2", "42601"),
    ("UPDATE stock SET (n, name) = (1, 'a', 2)", "42601"),
    ("UPDATE stock SET nothing = 1", "42703"),
    ("UPDATE stock SET id = news.id FROM news", "0A000"),
    ("UPDATE stock SET n = id FROM news WHERE news.id = stock.id", "42702"),
    ("UPDATE stock SET n = 1 FROM nowhere", "42P01"),
    ("UPDATE by_stock SET n = 1 RETURNING *", "42809"),
    ("DELETE FROM stock USING nowhere", "42P01"),
    ("TRUNCATE stock, nowhere", "42P01"),
    ("TRUNCATE by_stock", "42809"),
    ("TRUNCATE stock nonsense", "42601"),
    ("WITH d AS (DELETE FROM stock RETURNING *) SELECT count(*) FROM stock", "0A000"),
    ("WITH d AS (DELETE FROM stock RETURNING *) SELECT 1 / (id - id) FROM d", "22012"),
    ("MERGE INTO stock USING news ON true WHEN MATCHED THEN UPDATE SET n = 1", "21000"),
    ("MERGE INTO stock USING news ON true WHEN MATCHED THEN DELETE", "21000"),
    ("MERGE INTO stock USING news ON false WHEN MATCHED THEN INSERT VALUES (1)", "42601"),
    ("MERGE INTO stock USING news ON false WHEN NOT MATCHED THEN DELETE", "42601"),
    ("MERGE INTO stock USING news ON false WHEN NOT MATCHED THEN INSERT (id) VALUES (1, 2)", "42601"),
    ("MERGE INTO stock USING news ON false WHEN NOT MATCHED THEN INSERT (id, id) VALUES (1, 2)", "42701"),
    ("MERGE INTO stock USING news ON false WHEN NOT MATCHED THEN INSERT (nothing) VALUES (1)", "42703"),
    ("MERGE INTO stock USING news ON false WHEN NOT MATCHED THEN INSERT (n) VALUES (1)", "23502"),
    ("MERGE INTO stock USING news ON stock.id = news.id WHEN MATCHED THEN UPDATE SET id = 1", "0A000"),
    ("MERGE INTO stock USING news ON false WHEN NOT MATCHED BY SOURCE THEN DELETE", "0A000"),
    ("MERGE INTO stock USING news ON false WHEN NOT MATCHED THEN DO NOTHING RETURNING *", "0A000"),
)


def test_what_is_refused_changes_nothing(tables: Connection) -> None:
    before = rows(tables, "SELECT * FROM stock ORDER BY id")
    for sql, sqlstate in REFUSED:
        assert refused(tables, sql).sqlstate == sqlstate, sql
    assert rows(tables, "SELECT * FROM stock ORDER BY id") == before


def test_an_append_only_table_only_grows(connection: Connection) -> None:
    connection.execute("CREATE TABLE log (id int, n int) APPEND ONLY")
    assert rows(connection, "INSERT INTO log VALUES (1, 2) RETURNING n") == [(2,)]
    for sql in ("TRUNCATE log", "DELETE FROM log RETURNING *", "UPDATE log SET n = 1 FROM log AS other",
                "MERGE INTO log USING log AS s ON s.id = log.id WHEN MATCHED THEN DELETE"):  # fmt: skip
        assert refused(connection, sql).sqlstate == "0A000"
    grown = connection.execute(
        "MERGE INTO log USING (SELECT 2 AS id) AS s ON s.id = log.id WHEN NOT MATCHED THEN INSERT (id) VALUES (id)"
    )
    assert grown.statusmessage == "MERGE 1"
    assert rows(connection, "SELECT * FROM log ORDER BY id") == [(1, 2), (2, None)]


def test_several_tables_are_truncated_at_once(tables: Connection) -> None:
    tables.execute("TRUNCATE TABLE stock, bare, stock")
    assert rows(tables, "SELECT * FROM stock UNION ALL SELECT * FROM bare") == []
    check_views(tables)


def test_returning_is_described_without_running(tables: Connection) -> None:
    tables.pgconn.prepare(
        b"described", b"UPDATE stock SET n = $1 WHERE id = $2 RETURNING id, n / 2.0 AS half, $3::date"
    )
    described = tables.pgconn.describe_prepared(b"described")
    assert described.status == pq.ExecStatus.COMMAND_OK
    assert [described.param_type(number) for number in range(3)] == [23, 23, 1082]
    assert [(described.fname(n), described.ftype(n)) for n in range(2)] == [(b"id", 23), (b"half", described.ftype(1))]
    assert rows(tables, "SELECT n FROM stock WHERE id = 1") == [(10,)]
    assert rows(tables, "UPDATE stock SET n = %s WHERE id = %s RETURNING n, %s::text", (5, 1, "t")) == [(5, "t")]
    check_views(tables)


def test_parameters_of_what_returns_take_their_columns_types(tables: Connection) -> None:
    for sql, types in (
        (b"INSERT INTO stock VALUES ($1, $2, $3) RETURNING id, $4::date", [23, 1043, 23, 1082]),
        (b"INSERT INTO stock (name, id) SELECT $1, $2::bigint RETURNING n = $3", [1043, 20, 23]),
        (b"DELETE FROM stock WHERE n > $1 RETURNING name = $2", [23, 25]),
        (b"MERGE INTO stock USING news AS s ON s.id = stock.id AND s.n < $1 WHEN MATCHED THEN UPDATE SET name = $2",
         [23, 25]),
    ):  # fmt: skip
        tables.pgconn.prepare(b"typed", sql)
        described = tables.pgconn.describe_prepared(b"typed")
        assert described.status == pq.ExecStatus.COMMAND_OK, sql
        assert [described.param_type(number) for number in range(described.nparams)] == types, sql
        tables.execute("DEALLOCATE typed")


def test_names_of_what_is_returned(tables: Connection) -> None:
    done = tables.execute("UPDATE bare SET n = 1 FROM news WHERE news.id = bare.id RETURNING *, upper(name), 1, id = 2"
                          .replace("id = 2", "bare.id = 2"))  # fmt: skip
    assert done.description is not None
    assert [c.name for c in done.description] == ["id", "name", "n", "id", "n", "upper", "?column?", "?column?"]


def test_prepared_writes_return_rows(tables: Connection) -> None:
    tables.execute("PREPARE put AS INSERT INTO stock VALUES ($1, $2, $3) RETURNING id, $3 + 1 AS more")
    assert rows(tables, "EXECUTE put(50, 'p', 4)") == [(50, 5)]
    many = tables.cursor()
    many.executemany("INSERT INTO stock VALUES (%s, 'm') RETURNING id", [(60,), (61,)], returning=True)
    assert many.fetchall() == [(60,)] and many.nextset() and many.fetchall() == [(61,)]
    check_views(tables)


def test_dbt_merge(tables: Connection) -> None:
    """The statement of dbt-postgres for an incremental model."""
    merged = tables.execute(
        'merge into "public"."bare" as DBT_INTERNAL_DEST using "news" as DBT_INTERNAL_SOURCE '
        "on ((DBT_INTERNAL_SOURCE.id = DBT_INTERNAL_DEST.id)) when matched then update set "
        '"id" = DBT_INTERNAL_SOURCE."id","n" = DBT_INTERNAL_SOURCE."n" '
        'when not matched then insert ("id", "n") values ("id", "n")'
    )
    assert merged.statusmessage == "MERGE 3"
    assert rows(tables, "SELECT * FROM bare ORDER BY id") == [
        (1, "a", 10), (2, "b", 200), (3, "c", 300), (4, None, 400)
    ]  # fmt: skip
    check_views(tables)


def test_privileges_of_writes_that_return(module_server: Server, tables: Connection) -> None:
    tables.execute("CREATE USER writer")
    tables.execute("GRANT INSERT, UPDATE, DELETE ON stock TO writer")
    with module_server.connect(user="writer") as writer:
        writer.execute("INSERT INTO stock VALUES (70, 'w', 1)")
        for sql in ("INSERT INTO stock VALUES (71) RETURNING id", "UPDATE stock SET n = 1 RETURNING 1",
                    "DELETE FROM stock RETURNING *", "UPDATE stock SET n = 1 FROM news",
                    "MERGE INTO stock USING (SELECT 1) AS s ON false WHEN NOT MATCHED THEN DO NOTHING"):  # fmt: skip
            assert refused(writer, sql).sqlstate == "42501", sql
        tables.execute("GRANT SELECT ON stock TO writer")
        assert rows(writer, "DELETE FROM stock WHERE id = 70 RETURNING id") == [(70,)]
        assert refused(writer, "TRUNCATE news").sqlstate == "42501"


def test_writes_read_the_system_catalogs_as_they_are_now(connection: psycopg.Connection[Any]) -> None:
    """Also the parts that show the running server, and the expressions stored with tables."""
    connection.execute("CREATE TABLE seen (id bigint PRIMARY KEY, name varchar)")
    connection.execute("CREATE TABLE new_one (a int)")
    connection.execute("INSERT INTO seen SELECT oid::bigint, relname FROM pg_class WHERE relname = 'new_one'")
    assert rows(connection, "SELECT name FROM seen WHERE id = 'new_one'::regclass::bigint") == [("new_one",)]
    connection.execute("CREATE TABLE new_two (a int)")
    connection.execute("INSERT INTO seen VALUES ('new_two'::regclass::bigint, 'two')")
    connection.execute("CREATE TABLE new_three (a int)")
    connection.execute("UPDATE seen SET name = 'new_three'::regclass::text WHERE name = 'two'")
    assert rows(connection, "SELECT name FROM seen ORDER BY 1") == [("new_one",), ("new_three",)]
    connection.execute("ALTER TABLE new_three RENAME TO new_four")
    connection.execute("DELETE FROM seen WHERE EXISTS (SELECT 1 FROM pg_class WHERE relname = 'new_four')")
    connection.execute("INSERT INTO seen SELECT pid, datname FROM pg_stat_activity WHERE pid = pg_backend_pid()")
    assert rows(connection, "SELECT id, name FROM seen") == [(connection.info.backend_pid, "dev")]
    connection.execute("CREATE TABLE new_five (a int)")
    connection.execute(
        "CREATE TABLE kept (a int, b int DEFAULT 'new_five'::regclass::int, CHECK (a <> 'kept'::regclass::int))"
    )
    connection.execute("CREATE TABLE new_six (a int)")
    connection.execute(
        "MERGE INTO seen USING (SELECT 'new_six'::regclass::bigint AS o) AS s ON seen.id = s.o "
        "WHEN NOT MATCHED THEN INSERT VALUES (s.o, 'six')"
    )
    assert rows(connection, "SELECT count(*) FROM seen WHERE id = 'new_six'::regclass::bigint") == [(1,)]
