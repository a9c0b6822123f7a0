"""Schemas, search_path, and what relations are called: RENAME, SET SCHEMA, SWAP, OWNER. Without Spark."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import pytest
from marking import long_but
from servers import Server, refused, rows, wait_until

Connection = psycopg.Connection[Any]
_numbers = count(1)


@pytest.fixture
def session(in_process_server: Server) -> Iterator[Connection]:
    """A session whose search path is the schema `app` alone, which has a table t and nothing else."""
    with in_process_server.connect() as own:
        own.execute("CREATE SCHEMA app")
        own.execute("SET search_path = app")
        own.execute("CREATE TABLE t (k int PRIMARY KEY, v varchar, n int)")
        own.execute("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'a', 5)")
        yield own
        for (name,) in own.execute("SELECT nspname FROM pg_namespace WHERE oid BETWEEN 1001 AND 10000000").fetchall():
            if name not in ("pg_catalog", "information_schema", "rw_catalog"):
                own.execute(f'DROP SCHEMA "{name}" CASCADE')


def definition(connection: Connection, kind: str, name: str) -> str:
    [(_, text)] = rows(connection, f"SHOW CREATE {kind} {name}")
    return str(text)


def check_views(connection: Connection) -> int:
    """Every materialized view has the rows of its own query, as it is stored. Returns how many there are."""
    connection.execute("FLUSH")
    views = rows(connection, "SELECT schemaname, matviewname, definition FROM pg_matviews")
    path = rows(connection, "SHOW search_path")[0][0]
    for schema, name, query in views:
        maintained = Counter(rows(connection, f'SELECT * FROM "{schema}"."{name}"'))
        connection.execute(f'SET search_path = "{schema}"')
        assert maintained == Counter(rows(connection, query)), f"{schema}.{name}: {query}"
        connection.execute(f"SET search_path = {path}")
    return len(views)


# Schemas.


def test_a_schema_comes_and_goes(session: Connection) -> None:
    assert session.execute("CREATE SCHEMA IF NOT EXISTS dev.other").statusmessage == "CREATE SCHEMA"
    notices: list[Any] = []
    session.add_notice_handler(lambda notice: notices.append((notice.sqlstate, notice.message_primary)))
    session.execute("CREATE SCHEMA IF NOT EXISTS other")
    session.execute("DROP SCHEMA IF EXISTS nowhere")
    assert notices == [
        ("42P06", 'schema "other" already exists, skipping'),
        ("00000", 'schema "nowhere" does not exist, skipping'),
    ]
    session.execute("CREATE TABLE other.t (k int)")
    session.execute("CREATE VIEW v AS SELECT k FROM other.t")
    error = refused(session, "DROP SCHEMA other RESTRICT")
    assert (error.diag.sqlstate, error.diag.message_primary) == ("2BP01", "schema is not empty")
    assert error.diag.message_detail == "table other.t is in it"
    session.execute("ALTER SCHEMA other RENAME TO another")
    assert definition(session, "VIEW", "v") == "CREATE VIEW v AS SELECT k FROM another.t"
    session.execute("DROP SCHEMA another CASCADE")
    assert rows(session, "SHOW VIEWS") == []
    session.execute("CREATE SCHEMA another")
    session.execute("CREATE TABLE another.t (x varchar)")
    session.execute("INSERT INTO another.t VALUES ('new')")
    assert rows(session, "SELECT * FROM another.t") == [("new",)]


def test_a_schema_with_a_creating_view_stays(session: Connection) -> None:
    session.execute("SET background_ddl = true")
    session.execute("CREATE MATERIALIZED VIEW m WITH (backfill_rate_limit = 0) AS SELECT v FROM t")
    session.execute("CREATE SCHEMA other")
    error = refused(session, "DROP SCHEMA app CASCADE")
    assert (error.diag.sqlstate, error.diag.message_hint) == ("55006", f"CANCEL JOBS {job_of(session)}")
    assert rows(session, "SELECT count(*) FROM t") == [(3,)]
    session.execute(f"CANCEL JOBS {job_of(session)}")


def job_of(session: Connection) -> int:
    [(job,)] = rows(session, "SELECT ddl_id FROM rw_catalog.rw_ddl_progress")
    return int(job)


# search_path.


def test_names_are_looked_up_along_the_path(session: Connection) -> None:
    session.execute("CREATE SCHEMA other")
    session.execute("SET search_path TO other, \"No such\", 'app'")
    assert rows(session, "SHOW search_path") == [('other, "No such", app',)]
    assert rows(session, "SELECT current_schema(), current_schemas(false), current_schemas(true)") == [
        ("other", ["other", "app"], ["pg_catalog", "other", "app"])
    ]
    assert rows(session, "SELECT count(*) FROM t") == [(3,)]
    session.execute("CREATE TABLE t (x int)")
    assert rows(session, "SELECT count(*) FROM t") == [(0,)]
    assert rows(session, "SELECT 't'::regclass = 'other.t'::regclass, 't'::regclass = 'app.t'::regclass") == [
        (True, False)
    ]
    assert rows(session, "SHOW TABLES") == [("other.t",), ("app.t",)]
    session.execute("DROP TABLE t")
    session.execute("UPDATE t SET n = 1 WHERE k = 1")
    assert rows(session, "SELECT n FROM app.t WHERE k = 1") == [(1,)]
    session.execute("SET SCHEMA 'other'")
    assert refused(session, "SELECT * FROM t").diag.sqlstate == "42P01"
    session.execute("SET search_path = information_schema, app")
    assert ("t",) in rows(session, "SELECT table_name FROM tables WHERE table_schema = 'app'")
    assert refused(session, "CREATE TABLE x (a int)").diag.sqlstate == "42501"
    session.execute("SET search_path = ''")
    error = refused(session, "CREATE TABLE x (a int)")
    assert (error.diag.sqlstate, error.diag.message_primary) == ("3F000", "no schema has been selected to create in")
    assert rows(session, "SELECT current_schema()") == [(None,)]
    session.execute('SET search_path = "$user", public')
    assert rows(session, "SHOW search_path") == [('"$user", public',)]


def test_the_path_may_come_with_the_connection_and_name_the_user(
    in_process_server: Server, session: Connection
) -> None:
    session.execute("CREATE USER ann")
    session.execute("CREATE SCHEMA AUTHORIZATION ann")
    with in_process_server.connect(user="ann") as own:
        assert rows(own, "SELECT current_schema()") == [("ann",)]
        own.execute("CREATE TABLE mine (a int)")
        assert rows(own, "SELECT tableowner, schemaname FROM pg_tables WHERE tablename = 'mine'") == [("ann", "ann")]
    with in_process_server.connect(options="-c search_path=app,public") as own:
        assert rows(own, "SELECT count(*) FROM t") == [(3,)]
    with in_process_server.connect(user="ann", options="-c search_path=app,ann") as own:
        # A schema that the user may not look into does not count.
        assert rows(own, "SELECT current_schemas(false)") == [(["ann"],)]
    session.execute("DROP SCHEMA ann CASCADE")
    session.execute("DROP USER ann")


def test_a_view_keeps_what_its_names_meant(session: Connection) -> None:
    session.execute("CREATE SCHEMA other")
    session.execute("SET search_path = other, app")
    session.execute("CREATE VIEW v AS SELECT k FROM t")
    session.execute("CREATE MATERIALIZED VIEW m AS SELECT v, count(*) AS c FROM t GROUP BY v")
    assert definition(session, "VIEW", "v") == "CREATE VIEW v AS SELECT k FROM app.t"
    session.execute("CREATE TABLE t (nothing int)")
    assert rows(session, "SELECT * FROM v ORDER BY k") == [(1,), (2,), (3,)]
    session.execute("INSERT INTO app.t VALUES (4, 'c', 1)")
    assert check_views(session) == 1


def test_the_sessions_database_may_be_in_front(session: Connection) -> None:
    session.execute('CREATE TABLE "dev"."app"."u" (k int PRIMARY KEY, n int)')
    session.execute('INSERT INTO "dev"."app"."u" SELECT k, n FROM "dev"."app"."t"')
    session.execute('UPDATE "dev"."app"."u" SET n = n + 1 WHERE "dev"."app"."u".k = 1')
    session.execute("DELETE FROM dev.app.u WHERE app.u.k = 2")
    with session.cursor().copy('COPY "dev"."app"."u" (k, n) FROM STDIN') as copy:
        copy.write_row((7, 70))
    assert rows(session, 'SELECT dev.app.u.* FROM "dev"."app"."u" ORDER BY "dev"."app"."u".k') == [
        (1, 11), (3, 5), (7, 70),
    ]  # fmt: skip
    session.execute("CREATE MATERIALIZED VIEW dev.app.m AS SELECT dev.app.u.n FROM dev.app.u WHERE dev.app.u.k > 1")
    session.execute("CREATE VIEW dev.app.w AS SELECT dev.app.m.n FROM dev.app.m")
    session.execute("GRANT SELECT ON dev.app.m TO public")
    session.execute("COMMENT ON COLUMN dev.app.m.n IS 'x'")
    assert rows(session, "SELECT n FROM dev.app.w ORDER BY 1") == [(5,), (70,)]
    assert check_views(session) == 1
    session.execute("DROP VIEW IF EXISTS dev.app.w CASCADE")
    session.execute("DROP MATERIALIZED VIEW dev.app.m")
    session.execute('DROP TABLE "dev"."app"."u"')


# Other names.

# A view's query, and what it is after t was renamed to "T 2" and u to q.
FOLLOWING = [
    ("SELECT t.v, count(*) AS c FROM t GROUP BY t.v", 'SELECT t.v, count(*) AS c FROM "T 2" AS t GROUP BY t.v'),
    ("SELECT app.t.v FROM app.t, u WHERE u.k = t.k", 'SELECT t.v FROM app."T 2" AS t, q AS u WHERE u.k = t.k'),
    ("SELECT x.k, t.n FROM t x JOIN t USING (k)", 'SELECT x.k, t.n FROM "T 2" x JOIN "T 2" AS t USING (k)'),
    ("WITH t AS (SELECT k FROM t), q AS (SELECT k FROM u) SELECT t.k FROM t JOIN q USING (k)",
     'WITH t AS (SELECT k FROM "T 2" AS t), q AS (SELECT k FROM app.q AS u) SELECT t.k FROM t JOIN q USING (k)'),
    ("SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
     'SELECT k FROM "T 2" AS t WHERE EXISTS (SELECT 1 FROM q AS u WHERE u.k = t.k)'),
    ("SELECT window_start, u.k FROM TUMBLE(u, at, INTERVAL '1 minute')",
     "SELECT window_start, u.k FROM TUMBLE(q, at, INTERVAL '1 minute') AS u"),
    ("SELECT log.k, u.at FROM log LEFT JOIN u FOR SYSTEM_TIME AS OF PROCTIME() ON log.k = u.k",
     "SELECT log.k, u.at FROM log LEFT JOIN q FOR SYSTEM_TIME AS OF PROCTIME() AS u ON log.k = u.k"),
    ("SELECT s.k, 't' AS \"u\" FROM (SELECT k FROM u) AS s -- t\n",
     "SELECT s.k, 't' AS \"u\" FROM (SELECT k FROM q AS u) AS s"),
    ("TABLE u", "TABLE q"),
]  # fmt: skip


@pytest.mark.long
def test_views_follow_a_rename(session: Connection) -> None:
    session.execute("CREATE TABLE u (k int PRIMARY KEY, at timestamp)")
    session.execute("INSERT INTO u SELECT k, '2024-01-01 00:00:30'::timestamp FROM t")
    session.execute("CREATE TABLE log (k int) APPEND ONLY")
    for number, (query, _) in enumerate(FOLLOWING):
        kind = "VIEW" if query.startswith("TABLE") else "MATERIALIZED VIEW"
        session.execute(f"CREATE {kind} v{number} AS {query}")
    assert session.execute('ALTER TABLE t RENAME TO "T 2"').statusmessage == "ALTER TABLE"
    session.execute("ALTER TABLE u RENAME TO q")
    for number, (_, expected) in enumerate(FOLLOWING):
        kind = "VIEW" if expected.startswith("TABLE") else "MATERIALIZED VIEW"
        assert definition(session, kind, f"v{number}") == f"CREATE {kind} v{number} AS {expected}"
    session.execute('INSERT INTO "T 2" VALUES (4, NULL, 1)')
    session.execute("INSERT INTO q VALUES (4, '2024-01-01 00:01:00')")
    session.execute("""DELETE FROM "T 2" WHERE v = 'b'""")
    session.execute("DROP MATERIALIZED VIEW v6")  # no batch query reads as of PROCTIME()
    assert check_views(session) == len(FOLLOWING) - 2
    # The old names are free, for anything.
    session.execute("CREATE TABLE t (other varchar)")
    session.execute("CREATE VIEW u AS SELECT other FROM t")
    session.execute("INSERT INTO t VALUES ('x')")
    assert rows(session, "SELECT * FROM u") == [("x",)]
    assert check_views(session) == len(FOLLOWING) - 2


@pytest.mark.long
def test_dbt_puts_a_new_table_in_an_old_ones_place(session: Connection) -> None:
    session.execute("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS s FROM t")
    for number in range(3):
        session.execute("CREATE TABLE tmp (k int PRIMARY KEY, v varchar, n int)")
        session.execute(f"INSERT INTO tmp SELECT k, v, n + {number} FROM t")
        session.execute('ALTER TABLE "dev"."app"."t" RENAME TO "backup"')
        session.execute('ALTER TABLE "dev"."app"."tmp" RENAME TO "t"')
        assert definition(session, "TABLE", "t") == "CREATE TABLE t (k INT PRIMARY KEY, v VARCHAR, n INT)"
        session.execute("DROP TABLE backup CASCADE")
        session.execute("CREATE MATERIALIZED VIEW total AS SELECT sum(n) AS s FROM t")
        session.execute(f"INSERT INTO t VALUES ({10 + number}, 'x', 1)")
        assert check_views(session) == 1
    assert rows(session, "SELECT pg_table_size('t') >= 0, count(*) FROM t") == [(True, 6)]


def test_names_that_differ_in_case_alone(session: Connection) -> None:
    session.execute('CREATE SCHEMA "APP"')
    for name in ('"T"', '"APP".t', '"APP"."T"'):
        session.execute(f"CREATE TABLE {name} (k int)")
        session.execute(f"INSERT INTO {name} SELECT {len(name)}")
    session.execute('CREATE MATERIALIZED VIEW m AS SELECT a.k, b.k AS k2, c.k AS k3 FROM t a, "T" b, "APP"."T" c')
    session.execute('DELETE FROM "T"')
    session.execute('INSERT INTO "T" VALUES (8)')
    assert check_views(session) == 1
    session.execute('DROP SCHEMA "APP" CASCADE')
    assert rows(session, 'SELECT * FROM "T"') == [(8,)]


def test_swap(session: Connection) -> None:
    session.execute("CREATE MATERIALIZED VIEW a AS SELECT v, count(*) AS x FROM t GROUP BY v")
    session.execute("CREATE MATERIALIZED VIEW b AS SELECT v, sum(n) AS x FROM t GROUP BY v")
    session.execute("CREATE MATERIALIZED VIEW of_a AS SELECT max(x) AS m FROM a")
    session.execute("CREATE VIEW both_ AS SELECT a.v, a.x AS ax, b.x AS bx FROM a JOIN b USING (v)")
    session.execute("CREATE TABLE u (z int)")
    session.execute("CREATE MATERIALIZED VIEW c AS SELECT v FROM b")
    before = rows(session, "SELECT * FROM both_ ORDER BY v")
    assert session.execute("ALTER MATERIALIZED VIEW a SWAP WITH dev.app.b").statusmessage == "ALTER MATERIALIZED VIEW"
    assert definition(session, "MATERIALIZED VIEW", "a") == (
        "CREATE MATERIALIZED VIEW a AS SELECT v, sum(n) AS x FROM t GROUP BY v"
    )
    assert definition(session, "MATERIALIZED VIEW", "of_a") == (
        "CREATE MATERIALIZED VIEW of_a AS SELECT max(x) AS m FROM b AS a"
    )
    assert rows(session, "SELECT * FROM both_ ORDER BY v") == before
    session.execute("ALTER TABLE t SWAP WITH u")
    session.execute("INSERT INTO u VALUES (9, 'c', 100)")
    session.execute("ALTER MATERIALIZED VIEW c SWAP WITH b")  # what it reads gets its name
    assert check_views(session) == 4
    session.execute("INSERT INTO u VALUES (10, 'd', 200)")
    assert check_views(session) == 4
    assert refused(session, "ALTER TABLE t SWAP WITH a").diag.sqlstate == "42809"


@pytest.mark.parametrize(("seed", "rounds"), long_but([(0, 1)], [(0, 1), (1, 6), (2, 6)]))
def test_the_law_of_names(session: Connection, seed: int, rounds: int) -> None:
    """Whatever is called how and wherever, a view has the rows of its query, and goes on having them."""
    choose = random.Random(seed)
    for schema in ("one", "two"):
        session.execute(f"CREATE SCHEMA {schema}")
    session.execute("CREATE TABLE one.s (k int PRIMARY KEY, v varchar, n int)")
    session.execute("SET search_path = one, app, two")
    views = [
        "SELECT v, count(*) AS n, min(k) AS k FROM t GROUP BY v",
        "SELECT t.k, t.v, s.n FROM t JOIN s ON t.v = s.v",
        "SELECT k, v, n FROM v0 WHERE n > 0 UNION ALL SELECT * FROM app.t",
        "SELECT max(v1.k) AS k, v0.v, count(*) AS n FROM v0 LEFT JOIN v1 USING (v) GROUP BY v0.v",
    ]
    for number, query in enumerate(views):
        schema = choose.choice(("app", "one", "two"))
        session.execute(f"CREATE MATERIALIZED VIEW {schema}.v{number} AS {query}")
    session.execute("CREATE VIEW two.plain AS SELECT v, sum(n) AS n FROM v2 GROUP BY v")
    session.execute("CREATE MATERIALIZED VIEW two.last AS SELECT p.v, p.n FROM plain AS p WHERE p.n > 1")
    for _ in range(rounds):
        for _ in range(3):
            change_a_name(session, choose)
        for schema, name in rows(session, "SELECT schemaname, tablename FROM pg_tables WHERE schemaname <> 'public'"):
            if schema not in ("pg_catalog", "information_schema"):
                table, key = f'"{schema}"."{name}"', choose.randrange(20)
                session.execute(f"INSERT INTO {table} VALUES ({key}, '{choose.choice('abcd')}', {key * 3})")
                session.execute(f"DELETE FROM {table} WHERE k = {choose.randrange(20)}")
        assert check_views(session) == len(views) + 1


def change_a_name(session: Connection, choose: random.Random) -> None:
    schemas = [name for (name,) in rows(session, "SHOW SCHEMAS") if not name.startswith(("pg_", "rw_", "info", "pub"))]
    found = rows(
        session,
        "SELECT CASE relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE 'MATERIALIZED VIEW' END, "
        "nspname, relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
        f"WHERE relkind IN ('r', 'v', 'm') AND nspname = ANY(ARRAY{schemas})",
    )
    kind, schema, name = choose.choice(found)
    match choose.randrange(4):
        case 0:
            session.execute(f'ALTER {kind} "{schema}"."{name}" RENAME TO "{choose.choice("tsvX")}{next(_numbers)}"')
        case 1:
            wanted = choose.choice(schemas)
            if not any(other[1:] == (wanted, name) for other in found):
                session.execute(f'ALTER {kind} "{schema}"."{name}" SET SCHEMA {wanted}')
        case 2:
            _, schema2, name2 = choose.choice([other for other in found if other[0] == kind])
            if (schema, name) != (schema2, name2):
                session.execute(f'ALTER {kind} "{schema}"."{name}" SWAP WITH "{schema2}"."{name2}"')
        case 3:
            session.execute(f"ALTER SCHEMA {schema} RENAME TO s{next(_numbers)}")


@pytest.mark.long
def test_a_rename_while_a_view_is_created_and_a_crash(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    try:
        with server.connect() as own:
            own.execute("ALTER SYSTEM SET backfill_engine = auto")
            own.execute("CREATE TABLE t (k int PRIMARY KEY, g int)")
            own.execute("INSERT INTO t SELECT i, i % 7 FROM range(20000) AS r(i)")
            own.execute("CREATE MATERIALIZED VIEW done AS SELECT g, count(DISTINCT k) AS c FROM t GROUP BY g")
            own.execute("SET background_ddl = true")
            own.execute(
                "CREATE MATERIALIZED VIEW m WITH (backfill_rate_limit = 2000) AS "
                "SELECT t.g, count(DISTINCT t.k) AS c FROM t JOIN done USING (g) GROUP BY t.g"
            )
            own.execute("CREATE SCHEMA app")
            own.execute("ALTER TABLE t RENAME TO renamed")
            own.execute("ALTER MATERIALIZED VIEW m RENAME TO n")
            own.execute("ALTER MATERIALIZED VIEW n SET SCHEMA app")
            own.execute("ALTER MATERIALIZED VIEW done SET SCHEMA app")
            own.execute("CREATE TABLE t (x varchar)")
            error = refused(own, "ALTER MATERIALIZED VIEW app.done SWAP WITH app.n")
            assert error.diag.sqlstate == "55000"
            own.execute("INSERT INTO renamed VALUES (100000, 3)")
            assert job_of(own)
        server.kill()
        server = Server(tmp_path / "data")
        with server.connect() as own:
            query = "SELECT t.g, count(DISTINCT t.k) AS c FROM public.renamed AS t JOIN app.done USING (g) GROUP BY t.g"
            [(text,)] = rows(own, "SELECT ddl_statement FROM rw_catalog.rw_ddl_progress")
            assert text == f"CREATE MATERIALIZED VIEW n WITH (backfill_rate_limit = 2000) AS {query}"
            own.execute("ALTER SCHEMA app RENAME TO renamed")
            own.execute("ALTER MATERIALIZED VIEW renamed.n SET BACKFILL_RATE_LIMIT = DEFAULT")
            own.execute("WAIT MATERIALIZED VIEW renamed.n")
            own.execute("INSERT INTO renamed VALUES (100001, 3), (100002, 6)")
            assert check_views(own) == 2
            own.execute("DROP SCHEMA renamed CASCADE")
            own.execute("DROP TABLE renamed, t")
            assert wait_until(lambda: rows(own, "SHOW TABLES") == [])
    finally:
        server.kill()


@pytest.mark.long
def test_a_finished_rename_survives_a_crash(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    try:
        with server.connect() as own:
            own.execute("ALTER SYSTEM SET backfill_engine = auto")
            own.execute("CREATE TABLE t (k int, v int)")
            own.execute("CREATE MATERIALIZED VIEW m AS SELECT k, sum(v) AS s FROM t GROUP BY k")
            own.execute("CREATE MATERIALIZED VIEW m2 AS SELECT k, max(v) AS s FROM t GROUP BY k")
            own.execute("INSERT INTO t VALUES (1, 1), (1, 2)")
            own.execute("ALTER TABLE t RENAME TO u")
            own.execute("CREATE SCHEMA app")
            own.execute("ALTER TABLE u SET SCHEMA app")
            own.execute("ALTER MATERIALIZED VIEW m SWAP WITH m2")
        server.kill()
        server = Server(tmp_path / "data")
        with server.connect() as own:
            own.execute("INSERT INTO app.u VALUES (1, 5), (2, 3)")
            assert check_views(own) == 2
            assert rows(own, "SELECT * FROM m ORDER BY k") == [(1, 5), (2, 3)]
            own.execute("DELETE FROM app.u WHERE v = 5")
            assert check_views(own) == 2
    finally:
        server.kill()


# Owners.


def test_an_owner_is_followed_by_what_was_granted(in_process_server: Server, session: Connection) -> None:
    for user in ("ann", "bob", "cyd"):
        session.execute(f"CREATE USER {user}")
    session.execute("CREATE VIEW v AS SELECT count(*) AS n FROM t")
    session.execute("GRANT USAGE ON SCHEMA app TO ann, bob, cyd")
    session.execute("ALTER TABLE t OWNER TO ann")
    with in_process_server.connect(user="ann", options="-c search_path=app") as own:
        own.execute("GRANT SELECT ON t TO bob WITH GRANT OPTION")
        own.execute("GRANT INSERT ON t TO bob")
        assert refused(own, "ALTER TABLE t OWNER TO bob").diag.message_primary == 'must be member of role "bob"'
        assert refused(own, "ALTER VIEW v OWNER TO ann").diag.message_primary == "must be owner of view v"
        assert refused(own, "ALTER TABLE t RENAME TO x").diag.message_primary == "permission denied for schema app"
    with in_process_server.connect(user="bob", options="-c search_path=app") as own:
        own.execute("GRANT SELECT ON t TO cyd")
    session.execute("ALTER TABLE t OWNER TO bob")
    assert rows(session, "SELECT relacl FROM pg_class WHERE relname = 't'") == [(["bob=arwd/bob", "cyd=r/bob"],)]
    session.execute("DROP VIEW v")
    session.execute("ALTER SCHEMA app OWNER TO bob")
    with in_process_server.connect(user="bob", options="-c search_path=app") as own:
        own.execute("ALTER TABLE t RENAME TO x")
        own.execute("ALTER TABLE IF EXISTS x RENAME TO t")
        refused_to_create = refused(own, "CREATE SCHEMA more")
        assert refused_to_create.diag.message_primary == "permission denied for database dev"
        assert refused(own, "ALTER SCHEMA app RENAME TO more").diag.sqlstate == "42501"
    with in_process_server.connect(user="cyd") as own:
        for statement in ("DROP SCHEMA app CASCADE", "COMMENT ON TABLE app.t IS 'x'", "ALTER SCHEMA app OWNER TO cyd"):
            assert refused(own, statement).diag.sqlstate == "42501"
    session.execute("DROP SCHEMA app CASCADE")
    session.execute("DROP USER ann, bob, cyd")


# Refused, with the place «marked».
REFUSED = [
    ("CREATE SCHEMA «app»", "42P06", 'schema "app" already exists'),
    ("CREATE SCHEMA «pg_catalog»", "42P06", 'schema "pg_catalog" already exists'),
    ("CREATE SCHEMA «pg_mine»", "42939", 'unacceptable schema name "pg_mine"'),
    ("CREATE SCHEMA s AUTHORIZATION «nobody»", "42704", 'role "nobody" does not exist'),
    ("CREATE SCHEMA «other».s", "0A000", 'cross-database references are not implemented: "other.s"'),
    ("CREATE SCHEMA s «CREATE» TABLE x (a int)", "0A000", "CREATE SCHEMA with the things in it is not supported"),
    ("CREATE SCHEMA", "42601", "syntax error at end of input"),
    ("DROP SCHEMA «nowhere»", "3F000", 'schema "nowhere" does not exist'),
    ("DROP SCHEMA «pg_catalog»", "2BP01", "schema pg_catalog is required by the database system"),
    ("DROP SCHEMA «app»", "2BP01", "schema is not empty"),
    ("ALTER SCHEMA app RENAME TO «public»", "42P06", 'schema "public" already exists'),
    ("ALTER SCHEMA «nowhere» RENAME TO x", "3F000", 'schema "nowhere" does not exist'),
    ("ALTER SCHEMA app OWNER TO «nobody»", "42704", 'role "nobody" does not exist'),
    ("ALTER TABLE «nowhere» RENAME TO x", "42P01", 'relation "nowhere" does not exist'),
    ("ALTER TABLE t RENAME TO «v»", "42P07", 'relation "v" already exists'),
    ("ALTER TABLE t RENAME TO a«.»b", "42601", 'syntax error at or near "."'),
    ("ALTER TABLE t RENAME TO «pg_class»", "42939", 'relation name "pg_class" is reserved'),
    ("ALTER VIEW «t» RENAME TO x", "42809", '"t" is not a view'),
    ("ALTER MATERIALIZED VIEW «v» SET SCHEMA public", "42809", '"v" is not a materialized view'),
    ("ALTER TABLE t SET SCHEMA «nowhere»", "3F000", 'schema "nowhere" does not exist'),
    ("ALTER TABLE t SWAP WITH «v»", "42809", "cannot swap between t and v: type mismatch"),
    ("ALTER TABLE t SWAP WITH «t»", "22023", "cannot swap t with itself"),
    ("ALTER TABLE t OWNER TO «nobody»", "42704", 'role "nobody" does not exist'),
    ("ALTER TABLE «other».app.t RENAME TO x", "0A000", 'cross-database references are not implemented: "other.app.t"'),
    ("CREATE TABLE «other».app.x (a int)", "0A000", 'cross-database references are not implemented: "other.app.x"'),
    ("SELECT * FROM «other».pg_catalog.pg_class", "0A000", "cross-database references are not implemented"),
    ("CREATE VIEW «rw_tables» AS SELECT 1 AS a", "42939", 'relation name "rw_tables" is reserved'),
    ("CREATE TABLE «pg_catalog».x (a int)", "42501", 'permission denied to create "pg_catalog.x"'),
    ("COMMENT ON TABLE «nowhere» IS 'x'", "42P01", 'relation "nowhere" does not exist'),
    ("COMMENT ON VIEW «t» IS 'x'", "42809", '"t" is not a view'),
    ("COMMENT ON COLUMN t.«x» IS 'x'", "42703", 'column "x" of relation "t" does not exist'),
    ("COMMENT ON COLUMN «k» IS 'x'", "42601", "column name must be qualified"),
    ("COMMENT ON DATABASE «nowhere» IS 'x'", "3D000", 'database "nowhere" does not exist'),
    ("COMMENT ON «FUNCTION» f IS 'x'", "0A000", "COMMENT ON FUNCTION is not supported"),
    ("COMMENT ON TABLE t IS «x»", "42601", 'syntax error at or near "x"'),
    ("COMMENT ON TABLE t", "42601", "syntax error at end of input"),
]


def test_refusals(session: Connection) -> None:
    session.execute("CREATE VIEW v AS SELECT k FROM t")
    for marked, sqlstate, message in REFUSED:
        error = refused(session, marked.replace("«", "").replace("»", "")).diag
        assert (error.sqlstate, message in str(error.message_primary)) == (sqlstate, True), (marked, error)
        if "«" in marked:
            assert int(str(error.statement_position)) == marked.index("«") + 1, marked


def test_nothing_is_renamed_in_a_read_only_transaction(session: Connection) -> None:
    session.execute("BEGIN READ ONLY")
    for statement in ("CREATE SCHEMA x", "ALTER TABLE t RENAME TO u", "COMMENT ON TABLE t IS 'x'", "DROP SCHEMA app"):
        assert refused(session, statement).diag.sqlstate == "25006"
    session.execute("COMMIT")


# Comments.


def test_comments_are_shown_by_psql(in_process_server: Server, session: Connection) -> None:
    session.execute("CREATE MATERIALIZED VIEW m AS SELECT v FROM t")
    for statement in (
        "COMMENT ON TABLE t IS $a$it's 'mine'$a$",
        """COMMENT ON COLUMN "app"."t".v IS 'what it''s worth'""",
        "COMMENT ON TABLE m IS 'a view'",
        "COMMENT ON SCHEMA app IS 'of the app'",
        "COMMENT ON DATABASE dev IS 'for us'",
    ):
        assert session.execute(statement).statusmessage == "COMMENT"
    session.execute("ALTER TABLE t RENAME TO u")

    def shown(command: str) -> str:
        found = in_process_server.psql("-At", "-c", "SET search_path = app", "-c", command)
        assert not found.stderr
        return found.stdout

    assert "v|character varying||||extended||what it's worth" in shown("\\d+ u")
    assert "it's 'mine'" in shown("\\dt+")
    assert "a view" in shown("\\dm+")
    assert "of the app" in shown("\\dn+")
    assert "for us" in shown("\\l+")
    described = "SELECT objsubid, description FROM pg_description WHERE objoid = 'u'::regclass ORDER BY 1"
    assert rows(session, described) == [(0, "it's 'mine'"), (2, "what it's worth")]
    assert rows(session, described.replace("pg_description", "rw_catalog.rw_description")) == rows(session, described)
    session.execute("COMMENT ON TABLE u IS NULL")
    session.execute("COMMENT ON COLUMN u.v IS ''")
    session.execute("COMMENT ON DATABASE dev IS NULL")
    assert rows(session, described) == []
    session.execute("COMMENT ON TABLE u IS 'again'")
    session.execute("COMMENT ON TABLE u IS 'and again'")
    assert rows(session, "SELECT obj_description('u'::regclass, 'pg_class'), col_description('u'::regclass, 1)") == [
        ("and again", None)
    ]
    session.execute("DROP TABLE u CASCADE")
    assert [text for (text,) in rows(session, "SELECT description FROM pg_description")] == ["of the app"]
