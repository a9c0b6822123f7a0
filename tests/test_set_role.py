"""SET ROLE and SET SESSION AUTHORIZATION. Answers agree with PostgreSQL 15.18."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.errors import (
    CantChangeRuntimeParam,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidAuthorizationSpecification,
    InvalidParameterValue,
    ObjectInUse,
    SyntaxError,
)
from servers import Server, refused, rows

Connection = psycopg.Connection[Any]
WHO = "SELECT session_user, current_user, user, current_role, current_setting('role')"


@pytest.fixture(scope="module")
def people(module_server: Server) -> Iterator[Server]:
    """Ann is a member of writers and so of readers, who may read `shared`; bob is nothing."""
    with module_server.connect() as root:
        root.execute("CREATE USER ann; CREATE USER bob; CREATE ROLE readers; CREATE ROLE writers; CREATE ROLE others")
        root.execute("GRANT readers TO writers; GRANT writers TO ann; CREATE USER boss WITH SUPERUSER")
        root.execute("CREATE TABLE shared (a int PRIMARY KEY); INSERT INTO shared VALUES (1)")
        root.execute("CREATE TABLE anns (a int PRIMARY KEY); GRANT SELECT ON anns TO ann")
        root.execute("GRANT SELECT ON shared TO readers; GRANT INSERT ON shared TO writers")
        root.execute("GRANT CREATE ON SCHEMA public TO writers")
    yield module_server


@pytest.fixture
def ann(people: Server) -> Iterator[Connection]:
    with people.connect(user="ann") as opened:
        yield opened


@pytest.fixture
def root(people: Server) -> Iterator[Connection]:
    with people.connect() as opened:
        yield opened


def who(connection: Connection) -> tuple[Any, ...]:
    (row,) = rows(connection, WHO)
    return row


def shown(connection: Connection, name: str) -> str:
    return str(rows(connection, f"SHOW {name}")[0][0])


@pytest.mark.long
def test_the_role_is_who_counts(ann: Connection) -> None:
    assert who(ann) == ("ann", "ann", "ann", "ann", "none")
    assert ann.execute("SET ROLE readers").statusmessage == "SET"
    assert who(ann) == ("ann", "readers", "readers", "readers", "readers")
    assert rows(ann, "SELECT a FROM shared") == [(1,)]
    error = refused(ann, "SELECT a FROM anns")
    assert isinstance(error, InsufficientPrivilege)
    assert error.diag.message_primary == "permission denied for table anns"
    assert isinstance(refused(ann, "INSERT INTO shared VALUES (2)"), InsufficientPrivilege)
    ann.execute("SET ROLE writers")
    ann.execute("RESET ROLE")
    assert who(ann) == ("ann", "ann", "ann", "ann", "none")
    assert rows(ann, "SELECT a FROM anns") == []


@pytest.mark.parametrize(
    ("sql", "role"),
    [
        ("SET ROLE 'readers'", "readers"),
        ("SET SESSION ROLE readers", "readers"),
        ("SET role TO readers", "readers"),
        ("SET role = 'readers'", "readers"),
        ("SELECT set_config('role', 'readers', false)", "readers"),
        ("SET ROLE ann", "ann"),
        ("SET ROLE NONE", "none"),
    ],
)
def test_its_spellings(ann: Connection, sql: str, role: str) -> None:
    ann.execute("SET ROLE writers")
    ann.execute(sql)
    assert shown(ann, "role") == role
    assert who(ann)[1] == ("ann" if role == "none" else role)


def test_what_is_made_is_the_roles(ann: Connection, people: Server) -> None:
    ann.execute("SET ROLE writers; CREATE TABLE made (a int PRIMARY KEY)")
    assert rows(ann, "SELECT tableowner FROM pg_tables WHERE tablename = 'made'") == [("writers",)]
    ann.execute("CREATE TEMP TABLE own (a int); INSERT INTO own VALUES (1)")
    assert rows(ann, "SELECT a FROM own") == [(1,)]
    ann.execute("SET ROLE readers")
    error = refused(ann, "DROP TABLE made")
    assert error.diag.message_primary == "must be owner of table made"
    ann.execute("RESET ROLE; DROP TABLE made")


def test_who_may_take_which_role(people: Server, ann: Connection, root: Connection) -> None:
    for sql, kind, message in (
        ("SET ROLE others", InsufficientPrivilege, 'permission denied to set role "others"'),
        ("SET ROLE bob", InsufficientPrivilege, 'permission denied to set role "bob"'),
        ("SET ROLE nobody", InvalidParameterValue, 'role "nobody" does not exist'),
        (
            "SET SESSION AUTHORIZATION bob",
            InsufficientPrivilege,
            'permission denied to set session authorization "bob"',
        ),
        ("SET ROLE DEFAULT", SyntaxError, 'syntax error at or near "DEFAULT"'),
        ("SET SESSION AUTHORIZATION nobody", InvalidParameterValue, 'role "nobody" does not exist'),
    ):
        error = refused(ann, sql)
        assert (type(error), error.diag.message_primary) == (kind, message), sql
    # It is the session's user who is a member, not the role.
    ann.execute("SET ROLE readers; SET ROLE writers; SET SESSION AUTHORIZATION ann")
    assert who(ann) == ("ann", "ann", "ann", "ann", "none")
    root.execute("SET ROLE bob")
    assert isinstance(refused(root, "SELECT a FROM shared"), InsufficientPrivilege)
    assert isinstance(refused(root, "ALTER SYSTEM SET barrier_interval_ms = 1000"), InsufficientPrivilege)
    root.execute("SET ROLE others; RESET ROLE")


def test_being_somebody_else(root: Connection) -> None:
    root.execute("SET ROLE others; SET SESSION AUTHORIZATION ann")
    assert who(root) == ("ann", "ann", "ann", "ann", "none")
    assert isinstance(refused(root, "SET ROLE bob"), InsufficientPrivilege)
    root.execute("SET ROLE readers; RESET ALL")
    assert who(root)[:2] == ("ann", "readers")
    assert shown(root, "SESSION AUTHORIZATION") == "ann"
    root.execute("SET SESSION AUTHORIZATION 'bob'")  # who has connected may
    assert who(root)[:2] == ("bob", "bob")
    root.execute("RESET SESSION AUTHORIZATION")
    assert who(root)[:2] == ("root", "root")
    root.execute("SET SESSION SESSION AUTHORIZATION ann; DISCARD ALL")
    assert who(root)[:2] == ("root", "root")
    root.execute("SET SESSION AUTHORIZATION ann; SET SESSION AUTHORIZATION DEFAULT")
    assert shown(root, "session_authorization") == "root"


def test_transactions(people: Server) -> None:
    with people.connect(user="ann", options="-c atomic_transactions=on") as ann:
        ann.execute("BEGIN; SET ROLE readers")
        assert who(ann)[1] == "readers"
        ann.execute("ROLLBACK")
        assert who(ann)[1] == "ann"
        ann.execute("BEGIN; SET LOCAL ROLE readers")
        assert who(ann)[1] == "readers"
        ann.execute("COMMIT")
        assert who(ann)[1] == "ann"
        ann.execute("BEGIN; SET ROLE writers; SAVEPOINT s; SET ROLE readers; ROLLBACK TO s; COMMIT")
        assert who(ann)[1] == "writers"


def test_prepared_statements_follow(ann: Connection) -> None:
    query = "SELECT count(*) FROM anns"
    for _ in range(2):
        assert ann.execute(query, prepare=True).fetchone() == (0,)
    ann.execute("SET ROLE readers")
    with pytest.raises(InsufficientPrivilege):
        ann.execute(query, prepare=True)
    ann.execute("RESET ROLE")
    assert ann.execute(query, prepare=True).fetchone() == (0,)


def test_at_the_start(people: Server) -> None:
    with people.connect(user="ann", options="-c role=readers") as ann:
        assert who(ann)[:2] == ("ann", "readers")
    with pytest.raises(psycopg.OperationalError, match='permission denied to set role "others"'):
        people.connect(user="ann", options="-c role=others")


def test_what_others_see(people: Server, ann: Connection, root: Connection) -> None:
    ann.execute("SET ROLE readers")
    pid = ann.info.backend_pid
    assert rows(root, "SELECT usename FROM pg_stat_activity WHERE pid = %s", (pid,)) == [("ann",)]
    assert rows(ann, "SELECT rolname FROM pg_roles WHERE pg_has_role(oid, 'MEMBER') ORDER BY 1") == [("readers",)]


def test_roles_that_go_and_come_back(root: Connection, people: Server) -> None:
    root.execute("CREATE ROLE passing; GRANT passing TO ann")
    with people.connect(user="ann") as ann:
        ann.execute("SET ROLE passing")
        root.execute("ALTER USER passing RENAME TO passed")
        assert who(ann)[1] == "passed"
        root.execute("DROP ROLE passed")
        root.execute("CREATE ROLE passing SUPERUSER")
        assert isinstance(refused(ann, "SELECT a FROM anns"), InvalidAuthorizationSpecification)
        ann.execute("RESET ROLE")
        assert who(ann)[1] == "ann"
        assert isinstance(refused(ann, "SET ROLE passing"), InsufficientPrivilege)


def test_who_one_is_stays(people: Server, root: Connection) -> None:
    with people.connect(user="boss") as boss:
        boss.execute("SET ROLE postgres")
        error = refused(boss, "DROP USER boss")
        assert (type(error), error.diag.message_primary) == (ObjectInUse, "session user cannot be dropped")
        boss.execute("SET ROLE others; RESET ROLE; SET ROLE root; CREATE USER chief WITH SUPERUSER; SET ROLE chief")
        error = refused(boss, "DROP USER chief")
        assert error.diag.message_primary == "current user cannot be dropped"
        error = refused(boss, "ALTER USER chief RENAME TO boss2")
        assert (type(error), error.diag.message_primary) == (FeatureNotSupported, "current user cannot be renamed")
    for name in ("role", "session_authorization"):
        assert isinstance(refused(root, f"ALTER SYSTEM SET {name} = 'bob'"), CantChangeRuntimeParam)
