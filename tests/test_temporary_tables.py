"""CREATE TEMPORARY TABLE: a session's own tables, first in its names, gone with it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows, wait_until

Connection = psycopg.Connection[Any]


def temporary_schemas(connection: Connection) -> int:
    ((schemas,),) = rows(connection, "SELECT count(*) FROM rw_catalog.rw_schemas WHERE name LIKE 'pg_temp%'")
    return schemas


def test_a_temporary_table_is_its_sessions_own(module_server: Server) -> None:
    with module_server.connect() as one, module_server.connect() as other:
        other.execute("CREATE TABLE own (id int)")
        other.execute("INSERT INTO own VALUES (1)")
        one.execute("CREATE TEMP TABLE own AS SELECT 10 AS id, 'mine' AS name")
        other.execute("CREATE TEMPORARY TABLE hidden (id int PRIMARY KEY, n int DEFAULT 7)")
        assert rows(one, "SELECT * FROM own") == [(10, "mine")]
        assert rows(one, "SELECT current_schema(), current_schemas(false)") == [("public", ["public"])]
        assert rows(one, "SELECT * FROM pg_temp.own") == [(10, "mine")]
        assert rows(one, "SELECT * FROM public.own") == [(1,)]
        assert rows(other, "SELECT * FROM own") == [(1,)]
        assert refused(one, "SELECT * FROM hidden").sqlstate == "42P01"
        assert refused(one, "SELECT * FROM pg_temp.hidden").sqlstate == "42P01"
        listed = "SELECT table_schema, table_type FROM information_schema.tables WHERE table_name = 'hidden'"
        ((schema, kind),) = rows(other, listed)
        assert kind == "LOCAL TEMPORARY"
        assert rows(one, listed) == []
        own = "SELECT pg_my_temp_schema()::regnamespace::text, pg_is_other_temp_schema(pg_my_temp_schema())"
        assert rows(other, own) == [(schema, False)]
        assert rows(one, f"SELECT pg_is_other_temp_schema('{schema}'::regnamespace)") == [(True,)]
        assert refused(one, f"SELECT * FROM {schema}.hidden").sqlstate == "42P01"
        assert refused(one, f"CREATE TABLE {schema}.intruder (id int)").sqlstate == "42P16"
        assert rows(other, f"INSERT INTO {schema}.hidden (id) VALUES (1) RETURNING *") == [(1, 7)]
        one.execute("UPDATE own SET name = p.id::varchar FROM public.own AS p")
        one.execute("INSERT INTO own VALUES (11, 'more')")
        assert rows(one, "DELETE FROM own RETURNING name") == [("1",), ("more",)]
        one.execute("DROP TABLE own")
        assert rows(one, "SELECT * FROM own") == [(1,)]
        with module_server.connect() as third:
            third.execute("DROP TABLE own")


def test_temporary_tables_go_with_their_session(module_server: Server) -> None:
    with module_server.connect() as watcher:
        assert wait_until(lambda: temporary_schemas(watcher) == 0)
        for ending in ("DISCARD ALL", "DISCARD TEMP", "DISCARD TEMPORARY", None):
            with module_server.connect() as session:
                session.execute("CREATE TEMP TABLE passing AS SELECT i FROM range(3) AS r(i)")
                session.execute("CREATE TEMP TABLE passing_too (i int)")
                assert temporary_schemas(watcher) == 1
                if ending is not None:
                    session.execute(ending)
                    assert temporary_schemas(watcher) == 0
                    assert refused(session, "SELECT * FROM passing").sqlstate == "42P01"
            assert wait_until(lambda: temporary_schemas(watcher) == 0)
            assert rows(watcher, "SELECT * FROM rw_catalog.rw_relations WHERE name LIKE 'passing%'") == []


def test_what_temporary_tables_cannot(connection: Connection) -> None:
    connection.execute("CREATE TEMP TABLE short (id int, n int)")
    for sql, sqlstate in (
        ("CREATE MATERIALIZED VIEW kept AS SELECT count(*) AS c FROM short", "0A000"),
        ("CREATE VIEW kept AS SELECT * FROM pg_temp.short", "0A000"),
        ("CREATE MATERIALIZED VIEW pg_temp.kept AS SELECT 1 AS c", "0A000"),
        ("CREATE TEMP MATERIALIZED VIEW kept AS SELECT 1 AS c", "0A000"),
        ("CREATE TEMP TABLE public.kept (id int)", "42P16"),
        ("CREATE TEMP TABLE short (id int)", "42P07"),
    ):
        assert refused(connection, sql).sqlstate == sqlstate, sql
    connection.execute("CREATE TEMP TABLE IF NOT EXISTS short (id int)")
    connection.execute("CREATE TABLE pg_temp.shorter (id int)")
    connection.execute("CREATE TEMP TABLE stays (id int) ON COMMIT PRESERVE ROWS")
    connection.execute("CREATE TABLE short (other int)")  # no clash: it is in public
    assert [c.name for c in connection.execute("SELECT * FROM short").description or ()] == ["id", "n"]
    connection.execute("DROP TABLE public.short")


@pytest.mark.long
def test_a_crash_leaves_no_temporary_table(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    try:
        with server.connect() as connection:
            connection.execute("CREATE TABLE stays AS SELECT 1 AS id")
            connection.execute("CREATE TEMP TABLE passing AS SELECT i FROM range(1000) AS r(i)")
            server.kill()
        server = Server(tmp_path / "data")
        with server.connect() as connection:
            assert temporary_schemas(connection) == 0
            assert rows(connection, "SELECT name FROM rw_catalog.rw_tables") == [("stays",)]
            connection.execute("CREATE TEMP TABLE passing AS SELECT 2 AS id")
            assert rows(connection, "SELECT * FROM passing, stays") == [(2, 1)]
    finally:
        server.kill()


def test_dbt_incremental(connection: Connection) -> None:
    """What dbt-postgres does for an incremental model: a temporary table, delete, insert."""
    connection.execute("CREATE TABLE events AS SELECT i AS id, i * 2 AS n FROM range(5) AS r(i)")
    connection.execute('create temporary table "events__dbt_tmp1" as ( select 3::bigint as id, 0::bigint as n )')
    deleted = connection.execute(
        'delete from "public"."events" as DBT_INTERNAL_DEST where (id) in '
        '( select distinct id from "events__dbt_tmp1" as DBT_INTERNAL_SOURCE )'
    )
    assert deleted.statusmessage == "DELETE 1"
    connection.execute('insert into "public"."events" ("id", "n") ( select "id", "n" from "events__dbt_tmp1" )')
    assert rows(connection, "SELECT n FROM events ORDER BY id") == [(0,), (2,), (4,), (0,), (8,)]


def test_temporary_views(module_server: Server) -> None:
    """As PostgreSQL's: a session's own, over any relation, first in its names, and gone with it."""
    with module_server.connect() as watcher, module_server.connect() as session:
        session.execute("CREATE TABLE lasting (i int)")
        session.execute("INSERT INTO lasting VALUES (1), (2)")
        session.execute("CREATE TEMP TABLE mine (i int)")
        session.execute("INSERT INTO mine VALUES (10)")
        assert session.execute("CREATE TEMPORARY VIEW both_ways (n) AS SELECT i FROM lasting UNION ALL TABLE mine")
        session.execute("CREATE TEMP VIEW over_it AS SELECT n + 1 AS m FROM both_ways")
        session.execute("CREATE VIEW pg_temp.lasting AS SELECT count(*) AS c FROM public.lasting")
        assert rows(session, "SELECT m FROM over_it ORDER BY 1") == [(2,), (3,), (11,)]
        assert rows(session, "SELECT * FROM lasting") == [(2,)]
        assert rows(watcher, "SELECT count(*) FROM lasting") == [(2,)]
        assert refused(watcher, "SELECT * FROM both_ways").sqlstate == "42P01"
        for sql in ("CREATE VIEW v AS SELECT * FROM both_ways", "CREATE MATERIALIZED VIEW v AS SELECT * FROM over_it"):
            assert refused(session, sql).sqlstate == "0A000"
        assert refused(session, "CREATE TEMP VIEW public.v AS SELECT 1 AS one").sqlstate == "42P16"
        assert refused(session, "CREATE MATERIALIZED VIEW pg_temp.v AS SELECT 1 AS one").sqlstate == "0A000"
        assert refused(session, "DROP TABLE mine").sqlstate == "2BP01"
        session.execute("DROP VIEW over_it")
        session.execute("DISCARD TEMP")
        assert rows(session, "SELECT * FROM lasting ORDER BY 1") == [(1,), (2,)]
        assert temporary_schemas(watcher) == 0
        session.execute("CREATE TEMP VIEW again AS SELECT i FROM lasting")
        session.close()
        assert wait_until(lambda: temporary_schemas(watcher) == 0)
        watcher.execute("DROP TABLE lasting")
