"""Members of roles, privileges on columns, and passwords that expire. Answers agree with PostgreSQL 15.18."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors
from servers import Server, refused

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def roles(module_server: Server) -> Iterator[Server]:
    """Tables `t` (a, b, c) and `u` (a) of root's and users ann, bob and cyd, who hold nothing."""
    with module_server.connect() as root:
        root.execute("CREATE USER ann; CREATE USER bob; CREATE USER cyd; CREATE ROLE readers; CREATE ROLE staff")
        root.execute("CREATE TABLE t (a int PRIMARY KEY, b int, c varchar DEFAULT 'x'); CREATE TABLE u (a int)")
        root.execute("INSERT INTO t VALUES (1, 10, 'one'), (2, 20, 'two'); INSERT INTO u VALUES (1); FLUSH")
        root.execute("CREATE VIEW v AS SELECT a, b FROM t; CREATE MATERIALIZED VIEW m AS SELECT a, b FROM t")
    yield module_server


@pytest.fixture
def root(roles: Server) -> Iterator[Connection]:
    with roles.connect() as opened:
        yield opened


def denied(server: Server, user: str, sql: str) -> str | None:
    with server.connect(user=user) as own, pytest.raises(errors.InsufficientPrivilege) as caught:
        own.execute(sql)
    return caught.value.diag.message_primary


def notices_of(connection: Connection, sql: str) -> list[tuple[str | None, str | None, str | None]]:
    found: list[tuple[str | None, str | None, str | None]] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        found.append((notice.severity, notice.sqlstate, notice.message_primary))

    connection.add_notice_handler(note)
    connection.execute(sql)
    connection.remove_notice_handler(note)
    return found


@pytest.mark.long
def test_members_hold_what_their_roles_hold(roles: Server, root: Connection) -> None:
    root.execute("GRANT SELECT ON t TO readers")
    assert denied(roles, "ann", "SELECT * FROM t") == "permission denied for table t"
    assert root.execute("GRANT readers TO staff").statusmessage == "GRANT ROLE"
    root.execute("GRANT staff TO ann")
    with roles.connect(user="ann") as ann:
        query = "SELECT count(*) FROM t"
        assert ann.execute(query, prepare=True).fetchone() == (2,)
        asked = (
            "SELECT has_table_privilege('t', 'SELECT'), pg_has_role('readers', 'USAGE'), pg_has_role('bob', 'MEMBER')"
        )
        assert ann.execute(asked).fetchone() == (True, True, False)
        assert root.execute("REVOKE readers FROM staff").statusmessage == "REVOKE ROLE"
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute(query, prepare=True)
    root.execute("REVOKE staff FROM ann; REVOKE SELECT ON t FROM readers")


def test_members_of_the_owner_own(roles: Server, root: Connection) -> None:
    root.execute("GRANT bob TO ann; GRANT CREATE ON SCHEMA public TO bob")
    with roles.connect(user="bob") as bob, roles.connect(user="ann") as ann:
        bob.execute("CREATE TABLE bobs (a int)")
        ann.execute("INSERT INTO bobs VALUES (1); COMMENT ON TABLE bobs IS 'ours'; GRANT SELECT ON bobs TO cyd")
        assert root.execute("SELECT relacl FROM pg_class WHERE relname = 'bobs'").fetchone() == (
            ["bob=arwd/bob", "cyd=r/bob"],
        )
        ann.execute("ALTER TABLE bobs OWNER TO ann")
        with pytest.raises(errors.InsufficientPrivilege, match="must be owner of table bobs"):
            bob.execute("DROP TABLE bobs")
        ann.execute("DROP TABLE bobs")
    root.execute("REVOKE bob FROM ann; REVOKE CREATE ON SCHEMA public FROM bob")


def test_who_may_make_members(roles: Server, root: Connection) -> None:
    assert denied(roles, "ann", "GRANT readers TO bob") == 'must have admin option on role "readers"'
    assert denied(roles, "ann", "GRANT root TO ann") == "must be superuser to alter superusers"
    root.execute("GRANT readers TO ann WITH ADMIN OPTION")
    with roles.connect(user="ann") as ann:
        ann.execute("GRANT readers TO bob")
        listed = """SELECT r.rolname, m.rolname, g.rolname, admin_option
                    FROM pg_auth_members JOIN pg_roles r ON r.oid = roleid
                    JOIN pg_roles m ON m.oid = member JOIN pg_roles g ON g.oid = grantor ORDER BY 2"""
        assert ann.execute(listed).fetchall() == [("readers", "ann", "root", True), ("readers", "bob", "ann", False)]
        root.execute("REVOKE ADMIN OPTION FOR readers FROM ann")
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute("REVOKE readers FROM bob")
    root.execute("ALTER USER bob RENAME TO rob")
    assert root.execute(
        "SELECT grantee, is_grantable FROM information_schema.applicable_roles ORDER BY 1"
    ).fetchall() == [
        ("ann", "NO"),
        ("rob", "NO"),
    ]
    root.execute("ALTER USER rob RENAME TO bob; REVOKE readers FROM ann, bob")


def test_wrong_memberships(root: Connection) -> None:
    root.execute("GRANT staff TO ann")
    assert notices_of(root, "GRANT staff TO ann") == [
        ("NOTICE", "42710", 'role "ann" is already a member of role "staff"')
    ]
    assert notices_of(root, "REVOKE staff FROM bob") == [
        ("WARNING", "01000", 'role "bob" is not a member of role "staff"')
    ]
    for sql, sqlstate, message in (
        ("GRANT ann TO staff", "0LP01", 'role "ann" is a member of role "staff"'),
        ("GRANT ann TO ann", "0LP01", 'role "ann" is a member of role "ann"'),
        ("GRANT nobody TO ann", "42704", 'role "nobody" does not exist'),
        ("GRANT staff TO nobody", "42704", 'role "nobody" does not exist'),
        ("GRANT staff (a) TO ann", "42601", 'syntax error at or near "TO"'),
        ("GRANT ALL TO ann", "42601", 'syntax error at or near "TO"'),
    ):
        error = refused(root, sql)
        assert (error.sqlstate, error.diag.message_primary) == (sqlstate, message), sql
    root.execute("REVOKE staff FROM ann")


def test_a_dropped_role_has_no_members(root: Connection) -> None:
    root.execute("CREATE ROLE passing; GRANT passing TO ann; DROP ROLE passing")
    assert root.execute("SELECT count(*) FROM pg_auth_members").fetchone() == (0,)


READ = [
    ("SELECT a, b FROM t", True),
    ("SELECT t.a FROM public.t WHERE b = 10 ORDER BY b", True),
    ("SELECT count(*) FROM t", True),
    ("SELECT a AS k FROM t ORDER BY k", True),
    ("SELECT x.a FROM t x JOIN u USING (a)", False),  # nothing of u
    ("SELECT x.a FROM t x JOIN t y USING (a)", True),
    ("SELECT (SELECT max(b) FROM t s WHERE s.a = t.a) FROM t", True),
    ("SELECT (SELECT max(c) FROM t s WHERE s.a = t.a) FROM t", False),
    ("WITH w AS (SELECT a FROM t) SELECT * FROM w", True),
    ("WITH w AS (SELECT * FROM t) SELECT a FROM w", False),
    ("SELECT * FROM t", False),
    ("SELECT t FROM t", False),
    ("SELECT a FROM t WHERE c = 'one'", False),
    ("SELECT a FROM t GROUP BY a HAVING max(c) > ''", False),
    ("SELECT a FROM t ORDER BY c", False),
    ("SELECT x.a FROM t x NATURAL JOIN t y", False),
    ("SELECT rowid FROM t", False),
    ("COPY t (a, b) TO STDOUT", True),
    ("COPY t TO STDOUT", False),
    ("SELECT a FROM v", True),
    ("SELECT b FROM v", False),
    ("SELECT b FROM m", True),
    ("SELECT a FROM m", False),
    ("DECLARE k CURSOR FOR SELECT c FROM t", False),
    ("EXPLAIN SELECT c FROM t", False),
]


@pytest.fixture(scope="module")
def columns(roles: Server) -> Server:
    with roles.connect() as root:
        root.execute("GRANT SELECT (a, b), INSERT (a, b), UPDATE (b) ON t TO cyd; GRANT SELECT (a) ON v TO cyd")
        root.execute("GRANT SELECT (b) ON m TO PUBLIC")
    return roles


@pytest.mark.parametrize(("sql", "is_allowed"), READ)
def test_reading_columns(columns: Server, sql: str, is_allowed: bool) -> None:
    if not is_allowed:
        assert (denied(columns, "cyd", sql) or "").startswith("permission denied for ")
        return
    with columns.connect(user="cyd") as cyd:
        if sql.startswith("COPY"):
            with cyd.cursor().copy(sql) as copy:
                assert len(list(copy)) == 2
        else:
            assert cyd.execute(sql).fetchall()


def test_writing_columns(columns: Server, root: Connection) -> None:
    with columns.connect(user="cyd") as cyd:
        cyd.execute("INSERT INTO t (a, b) VALUES (3, 30)")
        assert cyd.execute("UPDATE t SET b = b + 1 WHERE a = 3").statusmessage == "UPDATE 1"
        with cyd.cursor().copy("COPY t (a, b) FROM STDIN") as copy:
            copy.write_row((4, 40))
    for sql in (
        "INSERT INTO t VALUES (5, 50, 'x')",
        "INSERT INTO t (a, c) VALUES (5, 'x')",
        "UPDATE t SET c = 'x'",
        "UPDATE t SET b = length(c)",
        "UPDATE t SET b = 0 WHERE c = 'one'",
        "UPDATE t SET b = 0 RETURNING c",
        "DELETE FROM t WHERE a = 1",
        "COPY t FROM STDIN",
        "GRANT SELECT (a) ON t TO ann",
    ):
        assert denied(columns, "cyd", sql) == "permission denied for table t", sql
    assert root.execute("SELECT a, b, c FROM t WHERE a > 2 ORDER BY a").fetchall() == [(3, 31, "x"), (4, 40, "x")]
    root.execute("DELETE FROM t WHERE a > 2")


def test_privileges_go_with_their_column(roles: Server, root: Connection) -> None:
    root.execute("CREATE TABLE moved (k int PRIMARY KEY, a int, b int)")
    root.execute("GRANT SELECT (a), SELECT (b) ON moved TO cyd")
    root.execute("ALTER TABLE moved RENAME COLUMN a TO z")
    root.execute("ALTER TABLE moved DROP COLUMN b")
    root.execute("ALTER TABLE moved ADD COLUMN a int, ADD COLUMN b int")
    with roles.connect(user="cyd") as cyd:
        assert cyd.execute("SELECT z FROM moved").fetchall() == []
    for column in ("a", "b"):
        assert denied(roles, "cyd", f"SELECT {column} FROM moved") == "permission denied for table moved"
    root.execute("DROP TABLE moved")


def test_column_privileges_in_the_catalogs(columns: Server, root: Connection) -> None:
    acl = (
        "SELECT attname, attacl FROM pg_attribute WHERE attrelid = 't'::regclass AND attacl IS NOT NULL ORDER BY attnum"
    )
    assert root.execute(acl).fetchall() == [("a", ["cyd=ar/root"]), ("b", ["cyd=arw/root"])]
    listed = """SELECT column_name, privilege_type FROM information_schema.column_privileges
                WHERE table_name = 't' AND grantee = 'cyd' ORDER BY 1, 2"""
    privileges = [("a", "INSERT"), ("a", "SELECT"), ("b", "INSERT"), ("b", "SELECT"), ("b", "UPDATE")]
    assert root.execute(listed).fetchall() == privileges
    asked = """SELECT has_column_privilege('cyd', 't', 'a', 'SELECT'),
               has_column_privilege('cyd', 't', 3::smallint, 'SELECT'),
               has_any_column_privilege('cyd', 't', 'UPDATE'), has_table_privilege('cyd', 't', 'SELECT')"""
    assert root.execute(asked).fetchone() == (True, False, True, False)
    shown = columns.psql("-c", r"\dp t").stdout
    assert "cyd=ar/root" in shown and "cyd=arw/root" in shown
    with columns.connect(user="cyd") as cyd:
        assert ("public.t",) in cyd.execute("SHOW TABLES").fetchall()


def test_revoking_columns(columns: Server, root: Connection) -> None:
    root.execute("GRANT SELECT (a, c) ON t TO ann WITH GRANT OPTION")
    with columns.connect(user="ann") as ann:
        ann.execute("GRANT SELECT (a) ON t TO bob")
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute("GRANT SELECT (b) ON t TO bob")
        assert refused(root, "REVOKE SELECT (a) ON t FROM ann").sqlstate == "2BP01"
        root.execute("REVOKE SELECT (a) ON t FROM ann CASCADE")
        assert ann.execute("SELECT c FROM t WHERE c = 'one'").fetchall() == [("one",)]
        root.execute("REVOKE SELECT ON t FROM ann")  # those on columns too
        with pytest.raises(errors.InsufficientPrivilege):
            ann.execute("SELECT c FROM t")
    assert denied(columns, "bob", "SELECT a FROM t") == "permission denied for table t"


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        ("GRANT DELETE (a) ON t TO ann", "0LP01", "invalid privilege type DELETE for column"),
        ("GRANT SELECT (x) ON t TO ann", "42703", 'column "x" of relation "t" does not exist'),
        ("GRANT CREATE (a) ON SCHEMA public TO ann", "0LP01", "invalid privilege type CREATE for column"),
        ("GRANT SELECT (a) ON SCHEMA public TO ann", "0LP01", "column privileges are only valid for relations"),
    ],
)
def test_wrong_column_privileges(root: Connection, sql: str, sqlstate: str, message: str) -> None:
    error = refused(root, sql)
    assert (error.sqlstate, error.diag.message_primary) == (sqlstate, message)


def test_passwords_expire(roles: Server, root: Connection) -> None:
    root.execute("CREATE USER dan PASSWORD 'x' VALID UNTIL '2020-01-01'")
    with pytest.raises(psycopg.OperationalError, match='password authentication failed for user "dan"'):
        roles.connect(user="dan", password="x")
    shown = "SELECT rolvaliduntil::text FROM pg_roles WHERE rolname = 'dan'"
    assert root.execute(shown).fetchone() == ("2020-01-01 00:00:00+00",)
    root.execute("SET timezone = 'Europe/Berlin'; ALTER USER dan VALID UNTIL '2999-07-01 12:00'; SET timezone = 'UTC'")
    assert root.execute(shown).fetchone() == ("2999-07-01 10:00:00+00",)
    roles.connect(user="dan", password="x").close()
    root.execute("ALTER USER dan VALID UNTIL 'infinity'")
    assert root.execute(shown).fetchone() == (None,)
    roles.connect(user="dan", password="x").close()
    error = refused(root, "ALTER USER dan VALID UNTIL 'tomorrows'")
    assert (error.sqlstate, error.diag.statement_position) == ("22007", "16")
    root.execute("DROP USER dan")
