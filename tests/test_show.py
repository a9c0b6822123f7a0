"""SHOW, DESCRIBE and KILL in RisingWave's shapes, and the catalogs of what sessions do."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest
from servers import Server, refused, wait_until

Connection = psycopg.Connection
SCHEMA = (
    "CREATE TABLE keyed (id INT PRIMARY KEY, name VARCHAR)",
    "CREATE TABLE plain (a NUMERIC(10,2))",
    "CREATE VIEW narrow AS SELECT id FROM keyed",
)


@pytest.fixture(scope="module")
def session(module_server: Server) -> Iterator[Connection]:
    with module_server.connect() as opened:
        for statement in SCHEMA:
            opened.execute(statement)
        yield opened


def shown(session: Connection, sql: str) -> tuple[list[str], list[tuple]]:
    cursor = session.execute(sql)
    assert cursor.description is not None
    return [column.name for column in cursor.description], cursor.fetchall()


TIMESTAMP = ("_rw_timestamp", "timestamp with time zone", "true", None)
KEYED = [("id", "integer", "false", None), ("name", "character varying", "false", None)]
KEYS = [("primary key", "id", None, None), ("distribution key", "id", None, None)]
COLUMN = ["Name", "Type", "Is Hidden", "Description"]


@pytest.mark.parametrize(
    ("sql", "names", "rows"),
    [
        ("SHOW TABLES", ["Name"], [("public.keyed",), ("public.plain",)]),
        ("SHOW TABLES LIKE 'k%'", ["Name"], [("public.keyed",)]),
        ("SHOW TABLES ILIKE 'K_YED'", ["Name"], [("public.keyed",)]),
        ("SHOW TABLES LIKE 'k.*'", ["Name"], []),
        ("SHOW TABLES FROM public LIKE 'p%'", ["Name"], [("public.plain",)]),
        ("SHOW VIEWS", ["Name"], [("public.narrow",)]),
        ("SHOW SOURCES", ["Name"], []),
        ("SHOW SUBSCRIPTIONS", ["Name", "Retention Seconds"], []),
        ("SHOW INDEXES FROM keyed", ["Name", "On", "Key", "Include", "Distributed By"], []),
        ("SHOW COLUMNS FROM keyed", COLUMN, [*KEYED, TIMESTAMP]),
        ("SHOW COLUMNS FROM public.keyed LIKE 'n%'", COLUMN, KEYED[1:]),
        ("DESCRIBE keyed", COLUMN, [*KEYED, TIMESTAMP, *KEYS, ("table description", "keyed", None, None)]),
        ("DESCRIBE narrow", COLUMN, [KEYED[0], ("table description", "narrow", None, None)]),
        ("SHOW COLUMNS FROM plain", COLUMN,
         [("a", "numeric(10,2)", "false", None), ("_row_id", "serial", "true", None), TIMESTAMP]),
        ("SHOW COLUMNS FROM pg_description", COLUMN,
         [("objoid", "oid", "false", None), ("classoid", "oid", "false", None),
          ("objsubid", "integer", "false", None), ("description", "character varying", "false", None)]),
        ("SHOW CREATE VIEW narrow", ["Name", "Create Sql"],
         [("public.narrow", "CREATE VIEW narrow AS SELECT id FROM keyed")]),
    ],
)  # fmt: skip
def test_lists(session: Connection, sql: str, names: list[str], rows: list[tuple]) -> None:
    assert shown(session, sql) == (names, rows)


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        ("SHOW INDEXES FROM nope", "42P01", 'table "nope" does not exist'),
        ("DESCRIBE nope", "42P01", 'relation "nope" does not exist'),
        ("SHOW CREATE SINK nope", "42704", 'sink "nope" does not exist'),
        ("SHOW TABLES WHERE true", "0A000", "WHERE clause in SHOW statement"),
        ("SHOW TABLES LIKE", "42601", "syntax error at end of input"),
        ("SHOW CREATE keyed", "42601", 'at or near "keyed"'),
        ("KILL 'nonsense'", "22023", "invalid process id"),
        ("KILL 123456", "42704", "process 123456 does not exist"),
    ],
)
def test_errors(session: Connection, sql: str, sqlstate: str, message: str) -> None:
    error = refused(session, sql)
    assert error.sqlstate == sqlstate
    assert message in str(error)


def test_outputs_of_the_clock_have_their_names(session: Connection) -> None:
    names, _ = shown(session, "SELECT now(), current_timestamp, current_date, localtimestamp, now()::date, 1::int")
    assert names == ["now", "current_timestamp", "current_date", "localtimestamp", "now", "int4"]
    assert refused(session, "SELECT nocol").sqlstate == "42703"


def test_sessions_are_listed_and_stopped(module_server: Server, session: Connection) -> None:
    """SHOW PROCESSLIST and pg_stat_activity show what runs; KILL stops it, and pg_terminate_backend the session."""
    with module_server.connect(application_name="sleeper") as other:
        pid = other.info.backend_pid
        caught: list[psycopg.Error] = []

        def sleep() -> None:
            try:
                other.execute("SELECT pg_sleep(60)")
            except psycopg.Error as error:
                caught.append(error)

        thread = threading.Thread(target=sleep)
        thread.start()
        running = f"SELECT state, query FROM pg_stat_activity WHERE pid = {pid}"
        assert wait_until(lambda: session.execute(running).fetchall() == [("active", "SELECT pg_sleep(60)")])
        names, rows = shown(session, "SHOW PROCESSLIST")
        assert names == ["Worker Id", "Id", "User", "Host", "Database", "Time", "Info"]
        [row] = [row for row in rows if row[1] == str(pid)]
        assert (row[2], row[4], row[6]) == ("root", "dev", "SELECT pg_sleep(60)")
        assert row[5].endswith("ms")
        session.execute(f"KILL '{pid}'")
        thread.join(30)
        assert [error.sqlstate for error in caught] == ["57014"]
        assert other.execute("SELECT pg_backend_pid()").fetchall() == [(pid,)]
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sleeper'"
        assert session.execute(ended).fetchall() == [(True,)]
        with pytest.raises(psycopg.OperationalError):
            for _ in range(3):  # what was sent at the same time is still answered
                other.execute("SELECT 1")
    with module_server.connect() as other:
        ended = f"SELECT pg_sleep(0.3), pg_terminate_backend({other.info.backend_pid})"
        thread = threading.Thread(target=lambda: session.execute(ended))
        thread.start()
        with pytest.raises(psycopg.errors.AdminShutdown):
            other.execute("SELECT pg_sleep(60)")
        thread.join(30)
    assert session.execute(f"SELECT pg_cancel_backend({pid})").fetchall() == [(False,)]


def test_others_sessions_are_their_own(module_server: Server, session: Connection) -> None:
    session.execute("CREATE USER peeping")
    with module_server.connect(user="peeping") as peeping:
        pid = session.info.backend_pid
        seen = f"SELECT query, client_addr FROM pg_stat_activity WHERE pid = {pid}"
        assert peeping.execute(seen).fetchall() == [("<insufficient privilege>", None)]
        assert {row[2] for row in shown(peeping, "SHOW PROCESSLIST")[1]} == {"peeping"}
        error = refused(peeping, f"SELECT pg_terminate_backend({pid})")
        assert (error.sqlstate, error.diag.message_primary) == (
            "42501",
            "must be a superuser to terminate superuser process",
        )
        assert shown(peeping, "SHOW TABLES")[1] == []
    session.execute("DROP USER peeping")


def test_own_statements_and_cursors(session: Connection) -> None:
    session.execute("PREPARE plan (int) AS SELECT $1 + 1")
    session.execute("DECLARE reader CURSOR WITH HOLD FOR SELECT 1")
    statements = "SELECT statement, parameter_types, from_sql FROM pg_prepared_statements WHERE name = 'plan'"
    assert session.execute(statements).fetchall() == [("PREPARE plan (int) AS SELECT $1 + 1", ["integer"], True)]
    cursors = "SELECT statement, is_holdable FROM pg_cursors WHERE name = 'reader'"
    assert session.execute(cursors).fetchall() == [("DECLARE reader CURSOR WITH HOLD FOR SELECT 1", True)]
    assert shown(session, "SHOW CURSORS")[1][0][4] == "reader"
    session.execute("DECLARE both SCROLL CURSOR FOR SELECT 1")
    scrolls = "SELECT name, is_scrollable FROM pg_cursors WHERE name IN ('both', 'reader') ORDER BY 1"
    assert session.execute(scrolls).fetchall() == [("both", True), ("reader", False)]
    session.execute("CREATE TABLE passing (a int)")
    session.execute("SELECT a FROM passing WHERE a = %s", (1,), prepare=True)
    prepared = "SELECT statement, from_sql FROM pg_prepared_statements WHERE name LIKE '\\_pg3%'"
    assert session.execute(prepared).fetchall() == [("SELECT a FROM passing WHERE a = $1", False)]
    session.execute("CLOSE reader; CLOSE both")
    session.execute("DEALLOCATE plan")
    assert session.execute(cursors).fetchall() == []
    session.execute("DROP TABLE passing")


def test_set_config_takes_effect(session: Connection) -> None:
    assert session.execute("SELECT set_config('application_name', 'renamed', false)").fetchall() == [("renamed",)]
    assert session.execute("SHOW application_name").fetchall() == [("renamed",)]


def test_set_config_counts_in_its_own_statement_from_its_place_on(session: Connection) -> None:
    session.execute("SET application_name = 'old'")
    query = """SELECT current_setting('application_name'), set_config('application_name', %s, false),
               current_setting('Application_Name')"""
    assert session.execute(query, ("new",)).fetchall() == [("old", "new", "new")]
    assert session.execute("SHOW application_name").fetchall() == [("new",)]


def test_set_config_for_a_block(session: Connection) -> None:
    query = "SELECT set_config('application_name', 'inside', true)"
    session.execute("SET application_name = 'outside'")
    session.execute(query)
    assert session.execute("SHOW application_name").fetchall() == [("outside",)]
    session.execute("BEGIN")
    session.execute(query)
    assert session.execute("SHOW application_name").fetchall() == [("inside",)]
    session.execute("COMMIT")
    assert session.execute("SHOW application_name").fetchall() == [("outside",)]


def test_another_database_has_catalogs_of_its_own(module_server: Server, session: Connection) -> None:
    session.execute("CREATE DATABASE apart")
    with module_server.connect(dbname="apart") as apart:
        apart.execute("CREATE TABLE mine (a INT)")
        assert apart.execute("SELECT relname FROM pg_class WHERE relname IN ('mine', 'keyed')").fetchall() == [
            ("mine",)
        ]
        assert shown(apart, "SHOW TABLES")[1] == [("public.mine",)]
        assert shown(apart, "DESCRIBE mine")[1][0] == ("a", "integer", "false", None)
        columns = "SELECT column_name FROM \"apart\".information_schema.columns WHERE table_name = 'mine'"
        assert apart.execute(columns).fetchall() == [("a",)]
        assert shown(session, "SHOW TABLES")[1] == [("public.keyed",), ("public.plain",)]
        apart.execute("DROP TABLE mine")
    session.execute("DROP DATABASE apart")


def test_privileges_of_tables(session: Connection) -> None:
    session.execute("CREATE USER reader")
    session.execute("GRANT SELECT ON keyed TO reader")
    rows = session.execute(
        "SELECT grantor, privilege_type, is_grantable FROM information_schema.role_table_grants "
        "WHERE grantee = 'reader' AND table_name = 'keyed'"
    ).fetchall()
    assert rows == [("root", "SELECT", "NO")]
    session.execute("REVOKE SELECT ON keyed FROM reader")
    session.execute("DROP USER reader")


def test_what_runs_is_shown_as_far_as_postgres_shows_it(session: Connection, module_server: Server) -> None:
    """A long text costs those that look nothing."""
    with module_server.connect() as other:
        long = f"SELECT '{'é' * 500_000}' = 'password'"
        other.execute(long)
        query = f"SELECT query FROM pg_stat_activity WHERE pid = {other.info.backend_pid}"
        assert shown(session, query)[1] == [(long.encode()[:1023].decode(errors="ignore"),)]
