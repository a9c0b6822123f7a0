"""ALTER TABLE of columns: rows, catalogs, and the views that there are, which stay what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from servers import Server, refused, rows, wait_until
from test_law import check, opened, run

from sparkwave.executor.spark import spark_engine

Connection = psycopg.Connection[Any]


@pytest.fixture
def session(in_process_server: Server) -> Any:
    with in_process_server.connect() as own:
        yield own
        for (table,) in rows(own, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
            own.execute(f'DROP TABLE "{table}" CASCADE')


def differences(connection: Connection, view: str, query: str) -> list[Any]:
    """After a FLUSH."""
    return rows(connection, f"(FROM_ EXCEPT ALL {query}) UNION ALL ({query} EXCEPT ALL FROM_)".replace(
        "FROM_", f"SELECT * FROM {view}"
    ))  # fmt: skip


def columns_of(connection: Connection, table: str) -> list[Any]:
    return rows(
        connection,
        "SELECT column_name, data_type, column_default, is_nullable FROM information_schema.columns "
        "WHERE table_name = %s ORDER BY ordinal_position",
        (table,),
    )


# The law.

# Each view's query in the names that the table has in the end.
VIEWS = {
    "star": ("SELECT * FROM t", "SELECT k, a1, b FROM t"),
    "grouped": ("SELECT a, count(*) AS n, max(b) AS b FROM t GROUP BY a",
                "SELECT a1, count(*), max(b) FROM t GROUP BY a1"),
    "joined": ("SELECT l.k, r.b FROM t l JOIN t r ON l.a = r.a", "SELECT l.k, r.b FROM t l JOIN t r ON l.a1 = r.a1"),
    "using_": ("SELECT k, t.b, u.x FROM t JOIN u USING (k)", "SELECT k, t.b, u.x FROM t JOIN u USING (k)"),
    "through": ("SELECT a, b FROM plain WHERE b > 'b'", "SELECT a1, b FROM t WHERE b > 'b'"),
    "newest": ("SELECT DISTINCT ON (a) a, k, b FROM t ORDER BY a, b, k DESC", None),
}  # fmt: skip
ALTERATIONS = (
    "ALTER TABLE t ADD COLUMN c int, ADD x int DEFAULT 7, ADD COLUMN y varchar NOT NULL DEFAULT 'y'",
    "ALTER TABLE t RENAME COLUMN a TO a1",
    "ALTER TABLE t DROP COLUMN c",
    "ALTER TABLE t ADD COLUMN c double precision DEFAULT 0.5, ADD COLUMN a int DEFAULT -1",
    "ALTER TABLE t ALTER x TYPE bigint, ALTER x SET DEFAULT 10000000000, ALTER COLUMN b SET NOT NULL",
    "ALTER TABLE t RENAME k TO id",
    "ALTER TABLE t RENAME TO t2",
    "ALTER TABLE t2 RENAME id TO k",
    "ALTER TABLE t2 RENAME TO t",
)


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("k int PRIMARY KEY", ("star", "grouped", "through")),
        pytest.param("k int PRIMARY KEY", tuple(VIEWS), marks=pytest.mark.long),
        pytest.param("k int", tuple(VIEWS), marks=pytest.mark.long),
    ],
)
def test_views_stay_what_they_are(session: Connection, key: str, names: tuple[str, ...]) -> None:
    """Rows come, go and change between the alterations, which each end an epoch."""
    views = {name: VIEWS[name] for name in names}
    session.execute(f"CREATE TABLE t ({key}, a int, b varchar)")
    session.execute("CREATE TABLE u (k int, y int, x varchar)")
    session.execute("INSERT INTO u VALUES (1, 1, 'one'), (2, 2, 'two'), (3, 3, 'three')")
    session.execute("CREATE VIEW plain AS SELECT * FROM t")
    session.execute("INSERT INTO t SELECT i, i % 5, 'b' || i FROM generate_series(1, 300) AS g(i)")
    for name, (query, _) in views.items():
        session.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    labels = {name: [column for column, *_ in columns_of(session, name)] for name in (*views, "plain")}
    table, number = "t", 1000
    for alteration in ALTERATIONS:
        columns = [name for name, *_ in columns_of(session, table)]
        k, a = columns[0], "a1" if "a1" in columns else "a"
        number += 1
        session.execute(f"INSERT INTO {table} ({k}, {a}, b) VALUES ({number}, {number % 7}, 'c{number}')")
        session.execute(f"UPDATE {table} SET {a} = {a} + 1 WHERE {k} % 50 = {number % 50}")
        session.execute(f"DELETE FROM {table} WHERE {k} = {number - 990}")
        assert session.execute(alteration).statusmessage == "ALTER TABLE"
        table = "t2" if alteration.endswith("TO t2") else "t" if alteration.endswith("TO t") else table
    session.execute("FLUSH")
    for name, (_, query) in views.items():
        assert [column for column, *_ in columns_of(session, name)] == labels[name]
        if query is not None:
            assert differences(session, name, query) == [], name
    session.execute("UPDATE t SET a = k, a1 = a1 - 1 WHERE k % 3 = 0")
    session.execute("DELETE FROM t WHERE k % 7 = 0")
    session.execute("FLUSH")
    for name, (_, query) in views.items():
        if query is not None:
            assert differences(session, name, query) == [], name
    assert rows(session, "SELECT * FROM plain EXCEPT ALL SELECT k, a1, b FROM t") == []
    assert columns_of(session, "plain")[1][0] == "a"
    if "newest" in views:
        assert rows(session, "SELECT count(*) FROM newest") == rows(session, "SELECT count(DISTINCT a1) FROM t")
    session.execute("CREATE MATERIALIZED VIEW young AS SELECT * FROM t")
    assert differences(session, "young", "SELECT * FROM t") == []


def test_rows_and_catalogs(session: Connection) -> None:
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a smallint, b varchar DEFAULT 'b')")
    session.execute("COMMENT ON COLUMN t.a IS 'the first'")
    session.execute("INSERT INTO t VALUES (1, 10)")
    session.execute("ALTER TABLE t ADD COLUMN n numeric(8,2) NOT NULL DEFAULT 1.5")
    session.execute("ALTER TABLE t ADD COLUMN at timestamptz DEFAULT '2024-01-01 00:00:00+00'")
    session.execute("INSERT INTO t (k, a) VALUES (2, 20)")
    session.execute("ALTER TABLE t ALTER a SET DATA TYPE int, ALTER n TYPE numeric(12,2), ALTER b DROP DEFAULT")
    session.execute('ALTER TABLE t RENAME COLUMN a TO "First One"')
    session.execute('INSERT INTO t (k, "First One", n) VALUES (3, 100000, 1234567890.25)')
    day = rows(session, "SELECT '2024-01-01 00:00:00+00'::timestamptz")[0][0]
    assert [(k, a, b, str(n), at == day) for k, a, b, n, at in rows(session, "SELECT * FROM t ORDER BY k")] == [
        (1, 10, "b", "1.50", True), (2, 20, "b", "1.50", True), (3, 100000, None, "1234567890.25", True),
    ]  # fmt: skip
    assert rows(session, 'SELECT k FROM t WHERE "First One" > 15 AND n < 2') == [(2,)]
    assert rows(session, 'UPDATE t SET "First One" = "First One" + 1 WHERE k = 2 RETURNING *')[0][:2] == (2, 21)
    assert rows(session, 'DELETE FROM t WHERE "First One" = 21 RETURNING k') == [(2,)]
    assert columns_of(session, "t") == [
        ("k", "integer", None, "NO"), ("First One", "integer", None, "YES"), ("b", "character varying", None, "YES"),
        ("n", "numeric", "1.5", "NO"),
        ("at", "timestamp with time zone", "'2024-01-01 00:00:00+00'::timestamp with time zone", "YES"),
    ]  # fmt: skip
    assert rows(session, "SELECT col_description('t'::regclass, 2)") == [("the first",)]
    ((_, definition),) = rows(session, "SHOW CREATE TABLE t")
    assert definition == (
        'CREATE TABLE t (k INT PRIMARY KEY, "First One" INT, b CHARACTER VARYING, '
        "n NUMERIC(12,2) DEFAULT 1.5 NOT NULL, at TIMESTAMP WITH TIME ZONE DEFAULT '2024-01-01 00:00:00+00')"
    )
    session.execute(definition.replace("TABLE t", "TABLE u"))
    session.execute('ALTER TABLE t DROP COLUMN "First One", DROP IF EXISTS nothing, ADD COLUMN IF NOT EXISTS k int')
    assert rows(session, "SELECT k, b FROM t ORDER BY k") == [(1, "b"), (3, None)]
    assert rows(session, "SELECT col_description('t'::regclass, 2)") == [(None,)]


DEFAULTS = (
    ("bigint", "-5"), ("boolean", "true"), ("real", "1.25"), ("double precision", "'Infinity'"),
    ("date", "'2024-02-29'"),
    ("time", "'01:02:03'"), ("timestamp", "'2024-02-29 01:02:03.5'"), ("varchar", "'it''s'"), ("bytea", "'\\x00ff'"),
    ("interval", "'1 day 02:00:00'"), ("uuid", "'00000000-0000-0000-0000-000000000001'"), ("jsonb", "'{\"a\": 1}'"),
    ("varchar", "'NULL'"), ("int", "length('four') + 1"), ("int", "NULL"),
)  # fmt: skip


def test_stored_rows_get_defaults_of_every_type(session: Connection) -> None:
    session.execute("CREATE TABLE t (k int)")
    session.execute("INSERT INTO t SELECT i FROM generate_series(1, 50) AS g(i)")
    session.execute("INSERT INTO t VALUES (0)")
    for number, (type_, default) in enumerate(DEFAULTS):
        session.execute(f"ALTER TABLE t ADD COLUMN c{number} {type_} DEFAULT {default}")
        value = rows(session, f"SELECT DISTINCT c{number} FROM t")
        assert value == rows(session, f"SELECT CAST({default} AS {type_})"), (type_, default)
    session.execute("INSERT INTO t (k) VALUES (100)")
    for number in range(len(DEFAULTS)):
        assert len(rows(session, f"SELECT DISTINCT c{number} FROM t")) == 1
    assert refused(session, "ALTER TABLE t ADD COLUMN x int[] DEFAULT '{1}'").sqlstate == "0A000"
    assert refused(session, "ALTER TABLE t ADD COLUMN x double precision DEFAULT random()").sqlstate == "0A000"
    assert rows(session, "SELECT c11 FROM t LIMIT 1") in ([({"a": 1},)], [(Jsonb({"a": 1}),)])


def test_definitions_can_be_written_again(session: Connection) -> None:
    """What clients see of a view's definition makes the same view of the table as it is now."""
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int)")
    session.execute("CREATE MATERIALIZED VIEW m AS SELECT t.*, o.a AS other FROM t JOIN t AS o USING (k)")
    session.execute("CREATE VIEW v AS SELECT a FROM public.t WHERE t.a > 0")
    session.execute("INSERT INTO t VALUES (1, 1), (2, 2)")
    session.execute("ALTER TABLE t ADD COLUMN late int DEFAULT 5")
    session.execute("ALTER TABLE t RENAME a TO b")
    session.execute("ALTER TABLE t RENAME TO t2")
    for kind, name in (("MATERIALIZED VIEW", "m"), ("VIEW", "v")):
        ((_, definition),) = rows(session, f"SHOW CREATE {kind} {name}")
        assert "SELECT k, b AS a FROM" in definition and "t2" in definition
        session.execute(definition.replace(f"VIEW {name}", f"VIEW {name}2"))
        assert columns_of(session, f"{name}2") == columns_of(session, name)
        session.execute("FLUSH")
        assert rows(session, f"SELECT * FROM {name} EXCEPT ALL SELECT * FROM {name}2") == []
    assert "b AS a" in rows(session, "SELECT pg_get_viewdef('v'::regclass)")[0][0]


def test_views_follow_rows_with_null_once_a_column_may_have_it(session: Connection) -> None:
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int NOT NULL, b varchar(3) NOT NULL)")
    session.execute("CREATE TABLE u (a int NOT NULL, c int)")
    queries = {
        "grouped": "SELECT a, count(*) AS n, max(b) AS b FROM t GROUP BY a",
        "over": "SELECT a, sum(n) AS s FROM grouped GROUP BY a",
        "joined": "SELECT t.k, t.a, u.c FROM t LEFT JOIN u ON t.a = u.a",
        "once": "SELECT DISTINCT a, b FROM t",
        "first": "SELECT k, a FROM (SELECT k, a, rank() OVER (PARTITION BY a ORDER BY k) AS r FROM t) s WHERE r = 1",
        "semi": "SELECT c FROM u WHERE a IN (SELECT a FROM t)",
        "anti": "SELECT c FROM u WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.a = u.a)",
        "top": "SELECT k, a FROM t ORDER BY a DESC, k LIMIT 3",
    }
    for name, query in queries.items():
        session.execute(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    session.execute("CREATE INDEX by_a ON t (a)")
    session.execute("INSERT INTO t SELECT i, i % 5, 'b' || i % 3 FROM generate_series(1, 40) AS r(i)")
    session.execute("INSERT INTO u SELECT i % 7, i FROM generate_series(1, 20) AS r(i)")
    session.execute("ALTER TABLE t ADD COLUMN later int NOT NULL DEFAULT 1")
    session.execute("FLUSH")
    session.execute(
        "ALTER TABLE t ALTER later DROP NOT NULL, ALTER a DROP NOT NULL, ALTER b DROP NOT NULL, ALTER b TYPE varchar(9)"
    )
    session.execute("ALTER TABLE u ALTER a DROP NOT NULL")
    changes = (
        "INSERT INTO t SELECT i, NULLIF(i % 4, 1), NULLIF('b' || i % 3, 'b1') FROM generate_series(41, 80) AS r(i)",
        "INSERT INTO u VALUES (NULL, 100), (9, 101)",
        "UPDATE t SET a = NULL WHERE k % 3 = 0",
        "UPDATE t SET a = 9, b = 'longer' WHERE a IS NULL AND k % 2 = 0",
        "DELETE FROM t WHERE a IS NULL AND k > 20",
        "UPDATE u SET a = NULL WHERE a = 3",
        "DELETE FROM t WHERE a IS NULL",
    )
    for change in changes:
        session.execute(change)
        session.execute("FLUSH")
        for name, query in {**queries, "by_a": "SELECT a, k, b FROM t"}.items():
            listed = ", ".join(column for column, *_ in columns_of(session, name))
            both = (f"SELECT {listed} FROM {name}", f"SELECT {listed} FROM ({query}) AS q")
            for one, other in (both, both[::-1]):
                assert rows(session, f"{one} EXCEPT ALL {other}") == [], (change, name)
    nullable = "SELECT attnotnull FROM pg_attribute WHERE attrelid = 'grouped'::regclass AND attname = 'a'"
    assert rows(session, nullable) == [(False,)]


def test_what_a_view_reads_stays(session: Connection) -> None:
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int NOT NULL, b int, c int, d int)")
    session.execute("CREATE VIEW plain AS SELECT k, b FROM t")
    session.execute("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) AS n FROM t GROUP BY a")
    session.execute("CREATE MATERIALIZED VIEW n AS SELECT max(b) AS b FROM plain")
    session.execute("CREATE MATERIALIZED VIEW over AS SELECT sum(n) AS s FROM m")
    error = refused(session, "ALTER TABLE t DROP COLUMN a")
    assert (error.sqlstate, error.diag.message_primary, error.diag.message_detail) == (
        "2BP01",
        "cannot drop column a of table t because other objects depend on it",
        "materialized view public.m depends on column a of table t",
    )
    assert error.diag.message_hint == "Use DROP ... CASCADE to drop the dependent objects too."
    error = refused(session, "ALTER TABLE t ALTER b TYPE bigint")
    assert (error.sqlstate, error.diag.message_detail) == (
        "0A000",
        'view public.plain depends on column "b"\nmaterialized view public.n depends on column "b"',
    )
    session.execute("ALTER TABLE t DROP c, ALTER d TYPE bigint, ALTER d SET NOT NULL, ALTER d DROP NOT NULL")
    session.execute("INSERT INTO t VALUES (1, 1, 5, NULL)")
    session.execute("ALTER TABLE t DROP COLUMN a CASCADE")
    assert rows(session, "SELECT name FROM rw_relations WHERE name IN ('plain', 'm', 'n', 'over') ORDER BY 1") == [
        ("n",), ("plain",),
    ]  # fmt: skip
    session.execute("INSERT INTO t VALUES (2, 6, NULL)")
    session.execute("FLUSH")
    assert differences(session, "n", "SELECT max(b) FROM t") == []


def test_another_type_writes_the_table_anew(session: Connection) -> None:
    """By every way of writing, while views read the other columns; a prepared statement tells that it has changed."""
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b numeric(10,2), c timestamp, d json, e varchar)")
    session.execute("""INSERT INTO t VALUES (1, 5, 1.5, '2024-01-01 10:00', '{"x":   1}', 'e')""")
    session.execute("INSERT INTO t VALUES (2, NULL, NULL, NULL, NULL, NULL)")
    session.execute("CREATE MATERIALIZED VIEW seen AS SELECT k, e FROM t")
    session.pgconn.prepare(b"all", b"SELECT * FROM t")
    session.pgconn.describe_prepared(b"all")
    session.execute("ALTER TABLE t ALTER a TYPE text, ALTER b TYPE int, ALTER c SET DATA TYPE date, ALTER d TYPE jsonb")
    changed = session.pgconn.exec_prepared(b"all", [])
    assert changed.error_message.strip() == b"ERROR:  cached plan must not change result type"
    session.execute("ALTER TABLE t ALTER b TYPE varchar")
    session.execute("INSERT INTO t VALUES (3, 'x', 'y', '2024-01-03', '[3]', 'z')")
    session.execute("INSERT INTO t (k, a) VALUES (2, 'over')")
    session.execute("INSERT INTO t SELECT 4, 'four', '4', NULL, NULL, 'e4'")
    session.execute("MERGE INTO t USING (SELECT 5 AS n) q ON k = n WHEN NOT MATCHED THEN INSERT (k, a) VALUES (n, 'm')")
    session.execute("UPDATE t SET b = 'up' WHERE k = 5")
    session.execute("SET atomic_transactions = on")
    session.execute("BEGIN")
    session.execute("INSERT INTO t VALUES (6, 'six', '6', NULL, NULL, 'e6')")
    session.execute("COMMIT")
    query = "SELECT k, a, b, c::text, d::text, e FROM t ORDER BY k"
    assert rows(session, query) == [
        (1, "5", "2", "2024-01-01", '{"x": 1}', "e"), (2, "over", None, None, None, None),
        (3, "x", "y", "2024-01-03", "[3]", "z"), (4, "four", "4", None, None, "e4"), (5, "m", "up", None, None, None),
        (6, "six", "6", None, None, "e6"),
    ]  # fmt: skip
    session.execute("FLUSH")
    assert differences(session, "seen", "SELECT k, e FROM t") == []
    session.execute("CREATE MATERIALIZED VIEW later AS SELECT * FROM t")
    assert differences(session, "later", "SELECT * FROM t") == []
    assert refused(session, "ALTER TABLE t ALTER e TYPE int").sqlstate == "0A000"  # a view reads it


def test_what_came_later_goes_again(session: Connection) -> None:
    """An index has no column that its table got afterwards."""
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int)")
    session.execute("CREATE INDEX i ON t (a)")
    session.execute("ALTER TABLE t ADD COLUMN late int DEFAULT 5")
    session.execute("INSERT INTO t VALUES (1, 2, 3)")
    session.execute("ALTER TABLE t DROP COLUMN late")
    session.execute("INSERT INTO t VALUES (2, 2)")
    session.execute("FLUSH")
    assert sorted(rows(session, "SELECT k FROM t WHERE a = 2")) == [(1,), (2,)]
    assert sorted(rows(session, "SELECT a, k FROM i")) == [(2, 1), (2, 2)]
    session.execute("ALTER TABLE t ADD COLUMN late int")
    session.execute("CREATE INDEX j ON t (a)")
    session.execute("ALTER TABLE t DROP COLUMN late")
    assert [column.name for column in session.execute("SELECT * FROM j").description or ()] == ["a", "k"]
    session.execute("ALTER TABLE t ALTER a TYPE text USING 'a' || a, ALTER a SET NOT NULL, ALTER a DROP NOT NULL")
    session.execute("INSERT INTO t VALUES (3, NULL)")
    session.execute("FLUSH")
    for index in ("i", "j"):
        assert sorted(rows(session, f"SELECT k FROM {index} WHERE a = 'a2'")) == [(1,), (2,)]
    session.execute("ALTER TABLE t DROP COLUMN a")
    assert rows(session, "SELECT name FROM rw_indexes WHERE name IN ('i', 'j')") == []


ERRORS = (
    ("ALTER TABLE t ADD COLUMN «a» int", "42701", 'column "a" of relation "t" already exists'),
    ("ALTER TABLE t ADD COLUMN «\"A\"» int", "42701", 'column "A" of relation "t" already exists'),
    ("ALTER TABLE t ADD COLUMN _row_id int", "42611", 'column name "_row_id" conflicts with a system column name'),
    ("ALTER TABLE t ADD COLUMN «x» int NOT NULL", "23502", "alter table add NOT NULL columns must have default value"),
    ("ALTER TABLE t ADD COLUMN «x» int PRIMARY KEY", "0A000", "adding a column to the primary key is not supported"),
    ("ALTER TABLE t ADD COLUMN x nothing", "42704", 'type "nothing" does not exist'),
    ("ALTER TABLE t ADD COLUMN x int DEFAULT 'a'", "22P02", None),
    ("ALTER TABLE t ADD «CONSTRAINT» x PRIMARY KEY (a)", "0A000", "this ALTER TABLE is not supported"),
    ("ALTER TABLE t DROP COLUMN «x»", "42703", 'column "x" of relation "t" does not exist'),
    ("ALTER TABLE t DROP COLUMN «k»", "0A000", 'cannot drop column "k" of table "t": it is part of the primary key'),
    ("ALTER TABLE log DROP COLUMN «at»", "0A000",
     """cannot drop column "at" of table "log": the table's watermark is on it"""),
    ("ALTER TABLE t RENAME COLUMN «x» TO y", "42703", 'column "x" of relation "t" does not exist'),
    ("ALTER TABLE t RENAME COLUMN a TO «b»", "42701", 'column "b" of relation "t" already exists'),
    ("ALTER TABLE t ALTER COLUMN «a» TYPE date", "42804", 'column "a" cannot be cast automatically to type date'),
    ("ALTER TABLE t ALTER COLUMN a TYPE varchar USING «nope»", "42703", 'column "nope" does not exist'),
    ("ALTER TABLE t ALTER COLUMN «b» SET NOT NULL", "23502", 'column "b" of relation "t" contains null values'),
    ("ALTER TABLE t ALTER COLUMN «k» DROP NOT NULL", "42P16", 'column "k" is in a primary key'),
    ("ALTER TABLE t ALTER COLUMN a SET DEFAULT 'a'", "22P02", None),
    ("ALTER TABLE t ALTER COLUMN a «SET» STATISTICS 5", "0A000", "this ALTER TABLE is not supported"),
    ("ALTER TABLE t «ENABLE» ROW LEVEL SECURITY", "0A000", "this ALTER TABLE is not supported"),
    ("ALTER TABLE «v» ADD COLUMN x int", "42809", '"v" is not a table'),
    ("ALTER TABLE «nowhere» ADD COLUMN x int", "42P01", "relation \"nowhere\" does not exist"),
)  # fmt: skip


@pytest.fixture(scope="module")
def made(in_process_server: Server) -> Any:
    with in_process_server.connect() as own:
        own.execute("CREATE SCHEMA errors")
        own.execute("SET search_path = errors")
        own.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b int)")
        own.execute("CREATE TABLE log (at timestamp, v int, WATERMARK FOR at AS at) APPEND ONLY")
        own.execute("CREATE VIEW v AS SELECT k FROM t")
        own.execute("CREATE MATERIALIZED VIEW m AS SELECT k FROM t")
        own.execute("INSERT INTO t VALUES (1, 1, NULL)")
        yield own
        own.execute("DROP SCHEMA errors CASCADE")


@pytest.mark.parametrize(("sql", "sqlstate", "message"), ERRORS)
def test_what_is_refused(made: Connection, sql: str, sqlstate: str, message: str | None) -> None:
    error = refused(made, sql.replace("«", "").replace("»", ""))
    assert error.sqlstate == sqlstate
    assert message is None or error.diag.message_primary == message
    if "«" in sql:
        assert error.diag.statement_position == str(sql.index("«") + 1)
    assert rows(made, "SELECT * FROM t") == [(1, 1, None)]


def test_only_the_owner_may(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE TABLE t (a int)")
    session.execute("CREATE USER stranger")
    with in_process_server.connect(user="stranger") as own:
        assert refused(own, "ALTER TABLE t ADD COLUMN b int").sqlstate == "42501"
    session.execute("DROP USER stranger")
    assert session.execute("ALTER TABLE IF EXISTS nowhere ADD COLUMN b int").statusmessage == "ALTER TABLE"


def test_all_of_it_or_nothing(session: Connection) -> None:
    session.execute("CREATE TABLE t (a int, b int)")
    session.execute("INSERT INTO t VALUES (1, 2)")
    before = columns_of(session, "t")
    assert (
        refused(session, "ALTER TABLE t ADD COLUMN c int DEFAULT 3, DROP COLUMN a, DROP COLUMN nothing").sqlstate
        == "42703"
    )
    assert columns_of(session, "t") == before
    assert rows(session, "SELECT * FROM t") == [(1, 2)]


# Others at the same time.


def test_open_transactions(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b int)")
    session.execute("INSERT INTO t VALUES (1, 2, 3)")
    with in_process_server.connect() as reader, in_process_server.connect() as writer:
        reader.execute("BEGIN READ ONLY")
        assert rows(reader, "SELECT * FROM t") == [(1, 2, 3)]
        writer.execute("SET atomic_transactions = on")
        for alteration, fails in (
            ("ALTER TABLE t RENAME a TO z", False),
            ("ALTER TABLE t DROP COLUMN b", True),
            ("ALTER TABLE t ADD COLUMN c int DEFAULT 4", True),
        ):
            writer.execute("BEGIN")
            writer.execute("INSERT INTO t (k) VALUES (10)")
            session.execute(alteration)
            assert rows(writer, "SELECT k FROM t ORDER BY k") == [(1,), (10,)]
            if fails:
                error = refused(writer, "COMMIT")
                assert (error.sqlstate, "alteration" in str(error)) == ("40001", True)
            else:
                writer.execute("COMMIT")
                session.execute("DELETE FROM t WHERE k = 10")
        assert rows(reader, "SELECT k, a, b FROM t") == [(1, 2, 3)]
        reader.execute("COMMIT")
        assert rows(reader, "SELECT * FROM t") == [(1, 2, 4)]


@pytest.mark.long
def test_a_table_of_a_creating_view(stuck_server: Server) -> None:
    with stuck_server.connect() as own:
        own.execute("CREATE TABLE t (k int, a int)")
        own.execute("INSERT INTO t VALUES (1, 1)")
        own.execute("SET background_ddl = true")
        creator = stuck_server.connect()
        creator.pgconn.send_query(b"CREATE MATERIALIZED VIEW m AS SELECT k FROM t")
        assert wait_until(lambda: bool(rows(own, "SHOW JOBS")), 10)
        error = refused(own, "ALTER TABLE t ADD COLUMN b int")
        assert error.sqlstate == "55006"
        assert error.diag.message_detail == "materialized view public.m is still being created"
        own.execute("ALTER TABLE t RENAME a TO b")
        creator.pgconn.finish()


@pytest.mark.long
def test_after_a_crash(server: Server, tmp_path: Path) -> None:
    """What was acknowledged is there: the columns, and views that know them by their former names."""
    with server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute("CREATE TABLE t (k int PRIMARY KEY, a int)")
        own.execute("CREATE MATERIALIZED VIEW m AS SELECT * FROM t")
        own.execute("INSERT INTO t VALUES (1, 1)")
        own.execute("ALTER TABLE t ADD COLUMN b int DEFAULT 2")
        own.execute("ALTER TABLE t RENAME a TO c")
        own.execute("INSERT INTO t VALUES (2, 3, 4)")
    server.kill()
    again = Server(server.data)
    try:
        with again.connect() as own:
            assert rows(own, "SELECT k, c, b FROM t ORDER BY k") == [(1, 1, 2), (2, 3, 4)]
            own.execute("UPDATE t SET c = 5 WHERE k = 1")
            own.execute("FLUSH")
            assert rows(own, "SELECT k, a FROM m ORDER BY k") == [(1, 5), (2, 3)]
            own.execute("ALTER TABLE t ADD COLUMN a int DEFAULT 6")
            assert rows(own, "SELECT * FROM t WHERE k = 1") == [(1, 5, 2, 6)]
            assert rows(own, "SELECT * FROM m WHERE k = 1") == [(1, 5)]
    finally:
        again.kill()


# Spark.


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_spark_reads_files_of_every_age(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str) -> None:
    """Backfills on Spark over files and inlined rows from before and after each alteration; then epochs."""
    monkeypatch.setattr(spark_engine, "SMALL_INPUT_ROWS", 0)
    with opened(tmp_path / "lake", streaming_engine=engine, backfill_slice_rows="200") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, a int, s varchar, f real, d int)")
        run(client, "CREATE MATERIALIZED VIEW old AS SELECT k, a, f FROM t WHERE k % 2 = 0")
        alterations = (
            "ALTER TABLE t ADD COLUMN c int DEFAULT 7, ADD COLUMN n numeric(10,2) DEFAULT -1.5",
            "ALTER TABLE t RENAME a TO b",
            "ALTER TABLE t DROP COLUMN d",
            "ALTER TABLE t ADD COLUMN d varchar DEFAULT 'new d', ADD COLUMN a date DEFAULT '2024-02-29'",
            "ALTER TABLE t ALTER c TYPE bigint, ALTER n TYPE numeric(14,2)",
            "ALTER TABLE t ADD at timestamptz DEFAULT '2024-01-01 00:00:00+00', ADD ts timestamp DEFAULT '2024-01-01'",
            "ALTER TABLE t ADD COLUMN raw bytea DEFAULT '\\x00ff', ADD COLUMN empty int",
        )
        for number, alteration in enumerate(alterations):
            start = number * 1000
            series = f"generate_series({start}, {start + 60})"
            run(
                client,
                f"INSERT INTO t (k, s, f) SELECT i, 's' || i, i / 4 FROM {series} AS g(i)",
            )
            run(client, f"INSERT INTO t (k, s) VALUES ({start + 500}, 'inlined')")
            run(client, alteration)
            run(client, f"UPDATE t SET s = s || '!', f = 0.5 WHERE k IN ({start + 1}, {start + 500})")
            run(client, f"DELETE FROM t WHERE k = {start + 2}")
        run(client, "INSERT INTO t (k, b, c, n) VALUES (9000, 1, 10000000000, 123456789012.25)")
        queries = {
            "everything": "SELECT * FROM t",
            "grouped": "SELECT c, d, a, at, ts, raw, count(*) AS rows, sum(n) AS n, max(b) AS b "
            "FROM t GROUP BY c, d, a, at, ts, raw",
            "bare": "SELECT s, c FROM t WHERE d = 'new d'",
        }  # fmt: skip
        for name, query in queries.items():
            run(client, f"CREATE MATERIALIZED VIEW {name} AS {query}")
        queries["old"] = "SELECT k, b, f FROM t WHERE k % 2 = 0"
        context.coordinator.flush(lambda: False)
        check(client, queries, "filled")
        run(client, "UPDATE t SET c = c + 1, b = k WHERE k % 3 = 0")
        run(client, "ALTER TABLE t ADD COLUMN late int DEFAULT 1")
        run(client, "DELETE FROM t WHERE k % 5 = 0")
        context.coordinator.flush(lambda: False)
        queries["everything"] = "SELECT k, b, s, f, c, n, d, a, at, ts, raw, empty FROM t"
        check(client, queries, "an epoch")


def test_what_a_cancelled_view_has_read_may_go(session: Connection) -> None:
    session.execute("CREATE TABLE t (k int PRIMARY KEY, a int, b int)")
    session.execute("INSERT INTO t SELECT i, i % 3, i FROM generate_series(1, 9) AS g(i)")
    query = "SELECT a, count(*) AS n FROM t GROUP BY a"
    session.execute(f"CREATE MATERIALIZED VIEW kept AS {query}")
    session.execute("SET background_ddl = true; SET backfill_rate_limit = 0")
    session.execute("CREATE MATERIALIZED VIEW gone AS SELECT b FROM t")
    [[job, *_]] = rows(session, "SHOW JOBS")
    session.execute(f"CANCEL JOBS {job}")
    session.execute("ALTER TABLE t DROP COLUMN b")
    session.execute("INSERT INTO t VALUES (10, 1)")
    session.execute("FLUSH")
    assert differences(session, "kept", query) == []
