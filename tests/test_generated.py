"""Generated columns: computed at every write, refused where they are given, shown in the catalogs; views read them."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows

Connection = psycopg.Connection[Any]

TABLE = (
    "CREATE TABLE t (k int PRIMARY KEY, v int, w int AS v + 1, s varchar, "
    "u varchar GENERATED ALWAYS AS (upper(s)) STORED)"
)


@pytest.fixture
def session(in_process_server: Server) -> Any:
    with in_process_server.connect() as own:
        own.execute(TABLE)
        own.execute("CREATE MATERIALIZED VIEW m AS SELECT w, u, count(*) AS n FROM t GROUP BY w, u")
        yield own
        made = "SELECT t.name FROM rw_tables AS t JOIN rw_schemas AS s ON s.id = t.schema_id WHERE s.name = 'public'"
        for (table,) in rows(own, made):
            own.execute(f"DROP TABLE {table} CASCADE")


@pytest.fixture(scope="module")
def unchanged(in_process_server: Server) -> Any:
    """A session of a schema of its own, for statements that change nothing."""
    with in_process_server.connect() as own:
        own.execute("CREATE SCHEMA unchanged")
        own.execute("SET search_path = unchanged")
        own.execute(TABLE)
        yield own


WRITES = (
    "INSERT INTO t VALUES (1, 10, 'a'), (2, NULL, 'b')",
    "INSERT INTO t (k, s) VALUES (3, 'c')",
    "INSERT INTO t (k, w, v, u) VALUES (4, DEFAULT, 40, DEFAULT)",
    "INSERT INTO t SELECT i, i, 'x' FROM generate_series(5, 7) AS g(i)",
    "INSERT INTO t VALUES (1, 11, 'aa')",
    "UPDATE t SET v = v * 2 WHERE k < 3",
    "UPDATE t SET v = (random() * 1000)::int, w = DEFAULT WHERE k = 5",
    "UPDATE t SET w = DEFAULT",
    "UPDATE t SET s = r.s FROM (VALUES (6, 'six')) AS r(k, s) WHERE r.k = t.k",
    "MERGE INTO t USING (VALUES (7, 70), (8, 80)) AS r(k, v) ON t.k = r.k WHEN MATCHED THEN UPDATE SET v = r.v "
    "WHEN NOT MATCHED THEN INSERT (k, v) VALUES (r.k, r.v)",
    "MERGE INTO t USING (VALUES (9, 90)) AS r(k, v) ON t.k = r.k "
    "WHEN NOT MATCHED THEN INSERT VALUES (r.k, r.v, 'nine')",
    "DELETE FROM t WHERE w > 80",
)  # fmt: skip


@pytest.mark.parametrize("atomic", [False, True])
def test_every_write_computes_them(session: Connection, atomic: bool) -> None:
    session.execute(f"SET atomic_transactions = {atomic}")
    for sql in WRITES:
        if atomic:
            session.execute("BEGIN")
        session.execute(sql)
        wrong = "SELECT * FROM t WHERE w IS DISTINCT FROM v + 1 OR u IS DISTINCT FROM upper(s)"
        assert rows(session, wrong) == [], sql
        if atomic:
            session.execute("COMMIT")
            assert rows(session, wrong) == [], sql
    session.execute("SET atomic_transactions = off")
    with session.cursor() as cursor, cursor.copy("COPY t (s, k, v) FROM STDIN") as copy:
        copy.write_row(("copied", 20, 200))
    assert rows(session, "SELECT * FROM t WHERE k IN (4, 6, 20) ORDER BY k") == [
        (4, 40, 41, None, None), (6, 6, 7, "six", "SIX"), (20, 200, 201, "copied", "COPIED"),
    ]  # fmt: skip
    session.execute("FLUSH")
    query = "SELECT w, u, count(*) AS n FROM t GROUP BY w, u"
    assert rows(session, f"(SELECT * FROM m EXCEPT ALL {query}) UNION ALL ({query} EXCEPT ALL SELECT * FROM m)") == []


def test_returning_has_them(session: Connection) -> None:
    assert rows(session, "INSERT INTO t VALUES (1, 1, 'a') RETURNING w, u") == [(2, "A")]
    assert rows(session, "UPDATE t SET v = 5 RETURNING w, u") == [(6, "A")]


def test_a_generated_key(session: Connection) -> None:
    session.execute("CREATE TABLE g (a int, b int, k int AS a / 10 PRIMARY KEY)")
    session.execute("INSERT INTO g VALUES (10, 1), (20, 2), (15, 3)")
    session.execute("INSERT INTO g VALUES (29, 4)")
    assert rows(session, "SELECT * FROM g ORDER BY k") == [(15, 3, 1), (29, 4, 2)]
    error = refused(session, "UPDATE g SET a = 1")
    assert error.sqlstate == "0A000"
    assert error.diag.message_primary == (
        "update modifying the column referenced by generated columns that are part of the primary key is not allowed"
    )
    assert session.execute("UPDATE g SET b = 0").statusmessage == "UPDATE 2"


ERRORS = (
    ("INSERT INTO t (k, w) VALUES (1, 2)", "428C9", 'cannot insert a non-DEFAULT value into column "w"'),
    ("INSERT INTO t (k, w) SELECT 1, 2", "428C9", 'cannot insert a non-DEFAULT value into column "w"'),
    ("INSERT INTO t VALUES (1, 2, 'a', 'A')", "42601", "INSERT has more expressions than target columns"),
    ("UPDATE t SET w = 1", "428C9", "update modifying the generated column is unsupported"),
    ("COPY t (k, w) FROM STDIN", "42P10", 'column "w" is a generated column'),
    ("CREATE TABLE x (a int, b int AS c + 1)", "42703", 'column "c" does not exist'),
    ("CREATE TABLE x (a int, b int AS a + 1, c int AS b + 1)", "42P17",
     'cannot use generated column "b" in column generation expression'),
    ("CREATE TABLE x (a int, b timestamptz AS now())", "42P17", "generation expression is not immutable"),
    ("CREATE TABLE x (a int, b double precision AS random() + a)", "42P17", "generation expression is not immutable"),
    ("CREATE TABLE x (a int, b int AS sum(a))", "42803",
     "aggregate functions are not allowed in column generation expressions"),
    ("CREATE TABLE x (a int, b int GENERATED ALWAYS AS ((SELECT 1)) STORED)", "0A000", None),
    ("CREATE TABLE x (a int, b int DEFAULT 1 GENERATED ALWAYS AS (a) STORED)", "42601",
     'both default and generation expression specified for column "b" of table "x"'),
    ("CREATE TABLE x (a int, b int AS nothing(a))", "42883", None),
    ("ALTER TABLE t ADD COLUMN x int AS v + 1", "0A000", "alter table add generated columns is not supported"),
    ("ALTER TABLE t ALTER COLUMN w SET DEFAULT 1", "42601", 'column "w" of relation "t" is a generated column'),
    ("ALTER TABLE t ALTER COLUMN v TYPE bigint", "0A000",
     "cannot alter type of a column used by a generated column"),
)  # fmt: skip


@pytest.mark.parametrize(("sql", "sqlstate", "message"), ERRORS)
def test_what_is_refused(unchanged: Connection, sql: str, sqlstate: str, message: str | None) -> None:
    error = refused(unchanged, sql)
    assert error.sqlstate == sqlstate
    assert message is None or error.diag.message_primary == message


def test_catalogs_show_them(session: Connection, in_process_server: Server) -> None:
    session.execute("ALTER TABLE t ALTER COLUMN v SET DEFAULT 5")
    attributes = "SELECT attname, attgenerated FROM pg_attribute"
    query = (
        "SELECT column_name, column_default, is_generated, generation_expression FROM information_schema.columns "
        "WHERE table_name = 't' AND table_schema = 'public' ORDER BY ordinal_position"
    )
    assert rows(session, query) == [
        ("k", None, "NEVER", None), ("v", "5", "NEVER", None), ("w", None, "ALWAYS", "v + 1"),
        ("s", None, "NEVER", None), ("u", None, "ALWAYS", "upper(s)"),
    ]  # fmt: skip
    assert rows(session, f"{attributes} WHERE attrelid = 't'::regclass AND atthasdef ORDER BY attnum") == [
        ("v", ""), ("w", "s"), ("u", "s"),
    ]  # fmt: skip
    query = (
        "SELECT c.name, is_generated, generation_expression FROM rw_columns c JOIN rw_tables t ON t.id = relation_id "
        "JOIN rw_schemas s ON s.id = t.schema_id WHERE t.name = 't' AND s.name = 'public' AND is_generated "
        "ORDER BY position"
    )
    assert rows(session, query) == [("w", True, "v + 1"), ("u", True, "upper(s)")]
    shown = in_process_server.psql("-c", "\\d t").stdout
    assert "generated always as (v + 1) stored" in shown and "(upper(s))" in shown
    ((_, definition),) = rows(session, "SHOW CREATE TABLE t")
    session.execute(definition.replace("TABLE t", "TABLE copied"))
    session.execute("INSERT INTO copied VALUES (1, 2, 'a')")
    assert rows(session, "SELECT * FROM copied") == [(1, 2, 3, "a", "A")]
