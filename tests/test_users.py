"""Users: passwords, TLS and privileges, with psycopg and psql against real servers."""

from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors
from servers import Server, free_port

from sparkwave.catalog.errors import Error
from sparkwave.catalog.users import User
from sparkwave.server.wire.authentication import authenticate, challenge, make_verifier, read_verifier, saslprep

# The exchange of RFC 7677, section 3.
CLIENT_FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = bytes.fromhex("5b6d99689d12358eec a04b141236fa81".replace(" ", ""))
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def exchange(password: str) -> str | None:
    return challenge(CLIENT_FIRST, make_verifier(password, SALT), NONCE).answer(CLIENT_FINAL)


def test_the_exchange_of_the_rfc() -> None:
    first = challenge(CLIENT_FIRST, make_verifier("pencil", SALT), NONCE)
    assert first.server_first == f"r=rOprNGfwEbeRWgbNEkqO{NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert first.answer(CLIENT_FINAL) == SERVER_FINAL
    assert exchange("pen") is None


@pytest.mark.parametrize(
    ("first", "final"),
    [
        (b"p=tls-server-end-point,,n=,r=abc", b""),
        (b"n,,n=", b""),
        (b"n,,r=abc,n=", b""),
        (b"n,,n=,r=a\xff", b""),
        (b"", b""),
        (CLIENT_FIRST, CLIENT_FINAL.replace(b"c=biws", b"c=eSws")),
        (CLIENT_FIRST, CLIENT_FINAL.replace(b"r=r", b"r=R")),
        (CLIENT_FIRST, CLIENT_FINAL.replace(b"p=dH", b"p=")),
        (CLIENT_FIRST, CLIENT_FINAL.rpartition(b",")[0]),
        (CLIENT_FIRST, b""),
    ],
)
def test_malformed_exchanges(first: bytes, final: bytes) -> None:
    with pytest.raises(Error) as caught:
        challenge(first, make_verifier("pencil", SALT), NONCE).answer(final)
    assert caught.value.sqlstate == "08P01"


def test_a_verifier_is_what_postgres_stores() -> None:
    verifier = make_verifier("pencil", SALT)
    text = str(verifier)
    assert re.fullmatch(r"SCRAM-SHA-256\$4096:W22ZaJ0SNY7soEsUEjb6gQ==\$[\w+/=]{44}:[\w+/=]{44}", text)
    assert read_verifier(text) == verifier
    assert "pencil" not in text and make_verifier("pencil") != make_verifier("pencil")
    for other in ("", "pencil", "a$b:c$d:e", "SCRAM-SHA-256$4096:$$", text[:-4], text.replace("4096", "-1")):
        assert read_verifier(other) is None


def test_passwords_are_prepared() -> None:
    # RFC 4013, section 3; what it prohibits stays.
    assert [saslprep(text) for text in ("I\u00adX", "user", "USER", "\u00aa", "\u2168")] == [
        "IX",
        "user",
        "USER",
        "a",
        "IX",
    ]
    assert saslprep("\u0007") == "\u0007"
    assert saslprep("\u0627\u0031") == "\u0627\u0031"
    assert saslprep("a\u00a0b") == "a b"


class Nobody:
    """A channel on which nothing may be said."""

    def read_message(self) -> tuple[bytes, bytes]:
        raise AssertionError

    write = flush = read_message


@pytest.mark.parametrize(
    ("name", "is_local", "message"),
    [
        ("root", True, None),
        ("root", False, "connections from other machines are not allowed before a user has a password"),
        ("stranger", True, 'role "stranger" does not exist'),
        ("role", True, 'role "role" is not permitted to log in'),
    ],
)
def test_without_any_password(name: str, is_local: bool, message: str | None) -> None:
    users = {"root": User(1, "root", True), "role": User(2, "role", can_login=False)}
    if message is None:
        authenticate(Nobody(), name, users, is_local)  # type: ignore[arg-type]
        return
    with pytest.raises(Error, match=re.escape(message)) as caught:
        authenticate(Nobody(), name, users, is_local)  # type: ignore[arg-type]
    assert caught.value.sqlstate == "28000"


class Client:
    """A channel whose client knows a name but sends a useless proof; what it was told is kept."""

    def __init__(self) -> None:
        self.told: list[bytes] = []

    def write(self, data: bytes | memoryview) -> None:
        self.told.append(bytes(data))

    def flush(self) -> None: ...

    def read_message(self) -> tuple[bytes, bytes]:
        if len(self.told) == 1:
            first = b"n,,n=,r=abc"
            return b"p", b"SCRAM-SHA-256\0" + len(first).to_bytes(4, "big") + first
        nonce = self.told[-1][9:].split(b",")[0]
        return b"p", b"c=biws," + nonce + b",p=" + b"A" * 43 + b"="


def test_nobody_can_tell_who_exists() -> None:
    """Neither an unknown user nor one without a password, from another machine."""
    users = {"root": User(1, "root", True), "alice": User(3, "alice", verifier=str(make_verifier("x")))}
    salts = {}
    for name in ("root", "stranger", "alice", "stranger"):
        client = Client()
        with pytest.raises(Error) as caught:
            authenticate(client, name, users, is_local=False)
        assert (caught.value.sqlstate, caught.value.message) == (
            "28P01",
            f'password authentication failed for user "{name}"',
        )
        parts = client.told[-1][9:].decode().split(",")
        assert re.fullmatch(r"s=[\w+/]{22}==", parts[1]) and parts[2] == "i=4096"
        assert salts.setdefault(name, parts[1]) == parts[1]
    assert len(set(salts.values())) == 3


def refused(server: Server, **options: Any) -> str:
    """What is said to a client that may not connect."""
    with pytest.raises(psycopg.OperationalError) as caught:
        server.connect(**options)
    return str(caught.value).partition("FATAL:")[2].strip()


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with users: alice has a password."""
    started = Server(tmp_path_factory.mktemp("users") / "data")
    with started.connect() as root:
        root.execute("CREATE USER alice WITH CREATEDB PASSWORD 'wonder \u2168'")
    yield started
    started.kill()


def test_passwords(users: Server) -> None:
    with users.connect(user="alice", password="wonder IX") as alice:
        assert alice.execute("SELECT current_user, session_user").fetchone() == ("alice", "alice")
    assert refused(users, user="alice", password="wonder") == 'password authentication failed for user "alice"'
    assert refused(users, user="bob", password="wonder") == 'password authentication failed for user "bob"'
    with users.connect(user="root") as root:
        root.execute("CREATE ROLE readers; CREATE USER bob PASSWORD 'x' NOLOGIN")
        assert refused(users, user="readers") == 'role "readers" is not permitted to log in'
        assert refused(users, user="bob", password="x") == 'role "bob" is not permitted to log in'
        assert refused(users, user="bob", password="y") == 'password authentication failed for user "bob"'
        root.execute("ALTER USER bob LOGIN PASSWORD NULL")
        users.connect(user="bob").close()
        root.execute("ALTER USER bob RENAME TO rob; ALTER USER rob PASSWORD 'z'")
        users.connect(user="rob", password="z").close()
        root.execute("DROP USER rob, readers")
        assert root.execute("SELECT rolname FROM pg_roles ORDER BY 1").fetchall() == [
            ("alice",),
            ("postgres",),
            ("root",),
        ]


def test_a_verifier_instead_of_a_password(users: Server) -> None:
    with users.connect() as root:
        root.execute(f"CREATE USER carol PASSWORD '{make_verifier('sesame')}'")
        users.connect(user="carol", password="sesame").close()
        root.execute("DROP USER carol")


def test_a_password_that_never_leaves_the_client(users: Server) -> None:
    """What psql's \\password does."""
    with users.connect() as root:
        root.execute("CREATE USER erin")
        verifier = root.pgconn.encrypt_password(b"sesame", b"erin")
        assert read_verifier(verifier.decode())
        root.execute(f"ALTER USER erin PASSWORD '{verifier.decode()}'")
        users.connect(user="erin", password="sesame").close()
        root.execute("DROP USER erin")


def test_psql(users: Server) -> None:
    listed = users.psql("-c", r"\du").stdout
    assert re.search(r"alice +\| Create DB", listed) and re.search(r"root +\| Superuser", listed)
    command = users.psql_command("-At", "-c", "SELECT current_user")
    command[command.index("-U") + 1] = "alice"
    done = subprocess.run(
        command, env={"PGPASSWORD": "wonder IX", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "alice\n"


def test_passwords_are_not_shown(users: Server) -> None:
    with users.connect() as root:
        shown = [
            root.execute(f"SELECT {column} FROM {view} WHERE {name} = 'alice'").fetchone()
            for view, name, column in (
                ("pg_authid", "rolname", "rolpassword"),
                ("pg_roles", "rolname", "rolpassword"),
                ("pg_shadow", "usename", "passwd"),
                ("pg_user", "usename", "passwd"),
            )
        ]
        assert shown == [("********",)] * 4
        with pytest.raises(psycopg.Error):
            root.execute("SELECT * FROM lake.sparkwave.users")


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        ("CREATE USER alice", "42710", 'role "alice" already exists'),
        ("CREATE USER public", "42939", 'role name "public" is reserved'),
        ("ALTER USER nobody LOGIN", "42704", 'role "nobody" does not exist'),
        ("ALTER USER alice RENAME TO root", "42710", 'role "root" already exists'),
        ("ALTER USER root RENAME TO boss", "0A000", "session user cannot be renamed"),
        ("ALTER USER root NOSUPERUSER", "42501", "root must stay a superuser who can log in"),
        ("DROP USER nobody", "42704", 'role "nobody" does not exist'),
        ("DROP USER root", "55006", "current user cannot be dropped"),
        ("DROP USER postgres", "2BP01", "cannot drop role postgres because it is required by the database system"),
    ],
)
def test_wrong_statements(users: Server, sql: str, sqlstate: str, message: str) -> None:
    with users.connect() as root, pytest.raises(psycopg.Error) as caught:
        root.execute(sql)
    assert (caught.value.sqlstate, caught.value.diag.message_primary) == (sqlstate, message)


def test_what_users_survive(tmp_path: Path) -> None:
    """A restart, and their verifiers with it; the session of a dropped user ends."""
    server = Server(tmp_path / "data")
    with server.connect() as root:
        root.execute("CREATE USER dora SUPERUSER PASSWORD 'x'")
    server.stop()
    server = Server(tmp_path / "data")
    try:
        with server.connect(user="dora", password="x") as dora, server.connect() as root:
            root.execute("DROP USER dora")
            with pytest.raises(errors.InvalidAuthorizationSpecification):
                dora.execute("SELECT 1")
    finally:
        server.kill()


# Privileges


@pytest.fixture(scope="module")
def granted(users: Server) -> Server:
    """On the file's server: tables, a view and a materialized view of root's; reader and writer are users."""
    with users.connect() as root:
        root.execute(
            "CREATE USER reader; CREATE USER writer; CREATE USER owner; GRANT CREATE ON SCHEMA public TO owner"
        )
        root.execute("CREATE TABLE t (a INT); CREATE TABLE hidden (a INT); INSERT INTO t VALUES (1); FLUSH")
        root.execute("CREATE VIEW v AS SELECT a FROM t; CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
    return users


def denied(server: Server, user: str, sql: str) -> str:
    """The message of a statement that lacks a privilege."""
    with server.connect(user=user) as own, pytest.raises(errors.InsufficientPrivilege) as caught:
        own.execute(sql)
    return str(caught.value.diag.message_primary)


@pytest.mark.parametrize(
    ("sql", "what"),
    [
        ("SELECT * FROM t", "table t"),
        ("TABLE t", "table t"),
        ("SELECT * FROM v", "view v"),
        ("SELECT * FROM m", "materialized view m"),
        ("SELECT (SELECT max(a) FROM public.t)", "table t"),
        ("WITH x AS (SELECT * FROM t) SELECT * FROM x", "table t"),
        ("SELECT 1 UNION SELECT a FROM t", "table t"),
        ("SELECT 1 WHERE EXISTS (SELECT FROM t)", "table t"),
        ("EXPLAIN SELECT * FROM t", "table t"),
        ("EXPLAIN CREATE MATERIALIZED VIEW n AS SELECT * FROM t", "table t"),
        ("COPY t TO STDOUT", "table t"),
        ("COPY (SELECT * FROM t) TO STDOUT", "table t"),
        ("COPY t FROM STDIN", "table t"),
        ("INSERT INTO t VALUES (1)", "table t"),
        ("UPDATE t SET a = 2", "table t"),
        ("DELETE FROM t", "table t"),
        ("CREATE TABLE n (a INT)", "schema public"),
        ("CREATE VIEW n AS SELECT 1", "schema public"),
        ("CREATE MATERIALIZED VIEW n AS SELECT a FROM t", "schema public"),
        ("GRANT SELECT ON t TO reader", "table t"),
        ("REVOKE SELECT ON t FROM writer", "table t"),
        ("SELECT * FROM read_text('/etc/hostname')", "function read_text"),
        ("SELECT 1 FROM generate_series(1, 2), LATERAL query('SELECT 1')", "function query"),
    ],
)
def test_what_has_to_be_granted(granted: Server, sql: str, what: str) -> None:
    assert denied(granted, "reader", sql) == f"permission denied for {what}"


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DROP TABLE t", "must be owner of table t"),
        ("DROP DATABASE dev", "must be owner of database dev"),
        ("ALTER MATERIALIZED VIEW m SET PARALLELISM = 1", "must be owner of materialized view m"),
        ("ALTER SYSTEM SET barrier_interval_ms = 100", "must be superuser to execute ALTER SYSTEM"),
        ("RECOVER", "only superusers can trigger adhoc recovery"),
        ("BACKUP TO '/nowhere'", "only superusers can back up"),
        ("CREATE DATABASE d", "permission denied to create database"),
        ("CREATE USER x", "permission denied to create user"),
        ("DROP USER writer", "permission denied to drop user"),
        ("ALTER USER writer PASSWORD 'x'", "permission denied to alter user"),
        ("ALTER USER writer RENAME TO x", "must be superuser to rename users"),
        (
            "ALTER USER reader SUPERUSER",
            "must be superuser to alter superuser roles or change superuser attribute",
        ),
    ],
)
def test_what_needs_more(granted: Server, sql: str, message: str) -> None:
    assert denied(granted, "reader", sql) == message


def test_what_is_granted(granted: Server) -> None:
    with granted.connect() as root, granted.connect(user="writer") as writer:
        prepared = "SELECT a FROM t WHERE a = %s"
        root.execute("GRANT INSERT, UPDATE ON t TO writer; GRANT SELECT ON v TO PUBLIC")
        writer.execute("INSERT INTO t VALUES (5)")
        writer.execute("UPDATE t SET a = 1")
        assert denied(granted, "writer", "UPDATE t SET a = 2 WHERE a = 1") == "permission denied for table t"
        assert denied(granted, "writer", "INSERT INTO t SELECT a FROM hidden") == "permission denied for table hidden"
        assert writer.execute("SELECT * FROM v ORDER BY 1").fetchall() == [(1,), (1,)]  # as its owner may
        root.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO writer")
        assert writer.execute(prepared, (1,), prepare=True).fetchall() == [(1,), (1,)]
        root.execute("REVOKE SELECT ON t FROM writer; REVOKE ALL ON hidden FROM writer")
        with pytest.raises(errors.InsufficientPrivilege):
            writer.execute(prepared, (1,), prepare=True)
        root.execute("REVOKE ALL ON t FROM writer; REVOKE SELECT ON v FROM public")
        assert denied(granted, "writer", "SELECT * FROM v") == "permission denied for view v"


def test_who_makes_it_owns_it(granted: Server) -> None:
    with granted.connect(user="owner") as owner, granted.connect() as root:
        owner.execute("CREATE TABLE own (a INT); INSERT INTO own VALUES (7)")
        owner.execute("CREATE MATERIALIZED VIEW own_m AS SELECT a FROM own; CREATE VIEW own_v AS SELECT a FROM own")
        assert owner.execute("SELECT a FROM own_m UNION ALL SELECT a FROM own_v").fetchall() == [(7,), (7,)]
        assert owner.execute("SELECT tableowner FROM pg_tables WHERE tablename = 'own'").fetchone() == ("owner",)
        # A view over what its owner may not read shows nobody else that either.
        root.execute("GRANT SELECT ON t TO owner")
        owner.execute("CREATE VIEW peek AS SELECT a FROM t; GRANT SELECT ON peek TO reader")
        with granted.connect(user="reader") as reader:
            assert reader.execute("SELECT count(*) > 0 FROM peek").fetchone() == (True,)
            root.execute("REVOKE SELECT ON t FROM owner")
        assert denied(granted, "reader", "SELECT * FROM peek") == "permission denied for table t"
        with pytest.raises(errors.DependentObjectsStillExist) as caught:
            root.execute("DROP USER owner")
        assert "owner of table own" in str(caught.value.diag.message_detail)
        root.execute("ALTER USER owner RENAME TO proprietor")
        assert owner.execute("SELECT current_user, count(*) FROM own GROUP BY 1").fetchone() == ("proprietor", 1)
        owner.execute("DROP VIEW peek; DROP TABLE own CASCADE")
        root.execute("ALTER USER proprietor RENAME TO owner")


def test_granting_on(granted: Server) -> None:
    with granted.connect() as root, granted.connect(user="owner") as owner:
        root.execute("CREATE TABLE chain (a INT); GRANT SELECT ON chain TO owner WITH GRANT OPTION")
        owner.execute("GRANT SELECT ON chain TO reader")
        with granted.connect(user="reader") as reader:
            reader.execute("SELECT * FROM chain")
        acl = "SELECT relacl FROM pg_class WHERE relname = 'chain'"
        assert root.execute(acl).fetchone() == (["root=arwd/root", "owner=r*/root", "reader=r/owner"],)
        with pytest.raises(errors.DependentObjectsStillExist, match="dependent privileges exist"):
            root.execute("REVOKE SELECT ON chain FROM owner")
        root.execute("REVOKE GRANT OPTION FOR SELECT ON chain FROM owner CASCADE")
        assert root.execute(acl).fetchone() == (["root=arwd/root", "owner=r/root"],)
        notices: list[str] = []
        owner.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        with pytest.raises(errors.InsufficientPrivilege):
            owner.execute("GRANT SELECT ON chain TO reader")
        root.execute("GRANT SELECT ON chain TO owner WITH GRANT OPTION")
        owner.execute("GRANT SELECT, INSERT ON chain TO reader")
        assert notices == ['not all privileges were granted for "chain"']
        root.execute("DROP TABLE chain")


@pytest.mark.parametrize(
    ("sql", "sqlstate", "message"),
    [
        ("GRANT SELECT ON t TO nobody", "42704", 'role "nobody" does not exist'),
        ("GRANT USAGE ON t TO reader", "0LP01", "invalid privilege type USAGE for table"),
        ("GRANT INSERT ON ALL SOURCES IN SCHEMA public TO reader", "0LP01", "invalid privilege type INSERT for source"),
        ("GRANT SELECT ON nothing TO reader", "42P01", None),
        ("GRANT USAGE ON SCHEMA nothing TO reader", "3F000", 'schema "nothing" does not exist'),
        ("GRANT CONNECT ON DATABASE nothing TO reader", "3D000", 'database "nothing" does not exist'),
        ("GRANT SELECT ON t TO PUBLIC WITH GRANT OPTION", "0LP01", "grant options can only be granted to roles"),
        ("GRANT SELECT ON t TO reader GRANTED BY writer", "0A000", "grantor must be current user"),
    ],
)
def test_wrong_grants(granted: Server, sql: str, sqlstate: str, message: str | None) -> None:
    with granted.connect() as root, pytest.raises(psycopg.Error) as caught:
        root.execute(sql)
    assert caught.value.sqlstate == sqlstate
    assert message in (None, caught.value.diag.message_primary)


def test_privileges_on_what_is_to_come(granted: Server) -> None:
    """The kinds of RisingWave's relations are apart, and the privileges follow a role's new name."""
    readable = (
        "SELECT relname FROM pg_class WHERE relname LIKE 'come\\_%' AND has_table_privilege('later', oid, 'SELECT')"
    )
    with granted.connect() as root:
        root.execute("CREATE USER early")
        for kind in ("TABLES", "VIEWS", "MATERIALIZED VIEWS", "SOURCES", "SUBSCRIPTIONS", "SINKS"):
            root.execute(f"ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT ON {kind} TO early")
        root.execute("ALTER USER early RENAME TO later")
        root.execute("CREATE TABLE come_t (a int); CREATE VIEW come_v AS SELECT a FROM come_t")
        root.execute("CREATE MATERIALIZED VIEW come_m AS SELECT a FROM come_t")
        root.execute("CREATE SOURCE come_o (a int) WITH (connector = 'datagen', source_rate_limit = 0)")
        root.execute("CREATE SUBSCRIPTION come_s FROM come_t WITH (retention = '1D')")
        assert sorted(name for (name,) in root.execute(readable)) == ["come_m", "come_o", "come_t", "come_v"]
        assert root.execute("SELECT acl FROM rw_catalog.rw_subscriptions WHERE name = 'come_s'").fetchone() == (
            ["root=r/root", "later=r/root"],
        )
        root.execute("ALTER DEFAULT PRIVILEGES IN SCHEMA public REVOKE ALL ON MATERIALIZED VIEWS FROM later")
        root.execute("CREATE MATERIALIZED VIEW come_m2 AS SELECT a FROM come_t; CREATE TABLE come_t2 (a int)")
        assert sorted(name for (name,) in root.execute(readable))[-2:] == ["come_t2", "come_v"]
        root.execute("ALTER MATERIALIZED VIEW come_m AS SELECT a + 1 AS a FROM come_t")  # its privileges stay
        with granted.connect(user="later") as later:
            assert later.execute("SELECT * FROM come_m").fetchall() == []
            assert (
                denied(granted, "later", "SELECT * FROM come_m2") == "permission denied for materialized view come_m2"
            )
        with granted.connect(user="owner") as owner:  # only what root makes
            owner.execute("CREATE TABLE come_other (a int)")
        assert ("come_other",) not in root.execute(readable).fetchall()
        root.execute("DROP OWNED BY later; DROP USER later; DROP TABLE come_t CASCADE; DROP TABLE come_t2, come_other")
        root.execute("DROP SOURCE come_o")


def test_calls_of_functions_need_a_privilege(granted: Server) -> None:
    with granted.connect() as root:
        root.execute("CREATE FUNCTION inner_one(int) RETURNS int LANGUAGE sql AS 'SELECT $1 + 1'")
        root.execute("CREATE FUNCTION outer_one(int) RETURNS int LANGUAGE sql AS 'SELECT inner_one($1)'")
        root.execute("CREATE VIEW calling AS SELECT inner_one(a) AS a FROM t; GRANT SELECT ON calling, t TO reader")
        root.execute("REVOKE EXECUTE ON FUNCTION inner_one FROM PUBLIC")
        for sql in (
            "SELECT inner_one(1)",
            "SELECT outer_one(1)",
            "SELECT a FROM t WHERE a IN (SELECT inner_one(1))",
            "SELECT a FROM t ORDER BY inner_one(a)",
        ):
            assert denied(granted, "reader", sql) == "permission denied for function inner_one", sql
        with granted.connect(user="reader") as reader:
            assert reader.execute("SELECT a FROM calling").fetchall() != []  # as its owner may
            root.execute("GRANT EXECUTE ON FUNCTION inner_one(int) TO reader")
            assert reader.execute("SELECT outer_one(1)").fetchall() == [(2,)]
        root.execute(
            "DROP VIEW calling; REVOKE SELECT ON t FROM reader; DROP FUNCTION outer_one; DROP FUNCTION inner_one"
        )


def test_the_right_to_connect(granted: Server) -> None:
    with granted.connect() as root:
        root.execute("CREATE DATABASE closed WITH OWNER = owner")
        root.execute("REVOKE CONNECT ON DATABASE closed FROM PUBLIC")
        assert refused(granted, user="reader", dbname="closed") == 'permission denied for database "closed"'
        granted.connect(user="owner", dbname="closed").close()
        root.execute("GRANT CONNECT ON DATABASE closed TO reader")
        with granted.connect(user="reader", dbname="closed") as reader:
            tried = "SELECT has_database_privilege('closed', 'connect'), has_schema_privilege('public', 'create')"
            assert reader.execute(tried).fetchone() == (True, False)
        root.execute("DROP DATABASE closed")


def test_privileges_can_be_asked_for(granted: Server) -> None:
    with granted.connect() as root:
        root.execute("GRANT SELECT ON v TO reader")
        asked = "SELECT relname, has_table_privilege('reader', oid, 'SELECT') FROM pg_class WHERE relname IN ('t', 'v')"
        assert sorted(root.execute(asked).fetchall()) == [("t", False), ("v", True)]
        asked = "SELECT has_table_privilege('t', 'delete'), has_table_privilege('reader', 'v', 'SELECT, INSERT')"
        assert root.execute(asked).fetchone() == (True, True)
        root.execute("REVOKE SELECT ON v FROM reader")
        assert root.execute("SELECT has_table_privilege('reader', 'v', 'SELECT')").fetchone() == (False,)


def test_who_may_create_users(granted: Server) -> None:
    with granted.connect() as root:
        root.execute("CREATE USER maker WITH CREATEUSER")
        with granted.connect(user="maker") as maker:
            maker.execute("CREATE USER made PASSWORD 'x'; ALTER USER made PASSWORD NULL")
            for sql in ("CREATE USER boss SUPERUSER", "ALTER USER root PASSWORD 'x'", "DROP USER postgres"):
                with pytest.raises(errors.InsufficientPrivilege):
                    maker.execute(sql)
            maker.execute("ALTER USER maker PASSWORD 'own'; DROP USER made")
        granted.connect(user="maker", password="own").close()
        root.execute("DROP USER maker")


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A self-signed certificate for localhost, and its key."""
    directory = tmp_path_factory.mktemp("tls")
    certificate, key = directory / "server.crt", directory / "server.key"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command, *names, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    return certificate, key


@pytest.fixture
def encrypted(tmp_path: Path, certificate: tuple[Path, Path]) -> Iterator[Callable[[str], Server]]:
    """Starts a server with TLS."""
    started: list[Server] = []

    def start(tls: str) -> Server:
        started.append(Server(tmp_path / "data", tls=tls, tls_certificate=certificate[0], tls_key=certificate[1]))
        return started[-1]

    yield start
    for server in started:
        server.kill()


def test_tls(encrypted: Callable[[str], Server], certificate: tuple[Path, Path]) -> None:
    server = encrypted("required")
    trusted = {"sslmode": "verify-full", "sslrootcert": certificate[0], "host": "localhost"}
    with server.connect(**trusted) as root:
        assert root.pgconn.ssl_in_use
        root.execute("CREATE USER alice PASSWORD 'x'; CREATE TABLE t (a INT)")
        rows = root.execute("SELECT repeat('x', 1000) FROM generate_series(1, 20000)").fetchall()
        assert len(rows) == 20_000
        with root.cursor().copy("COPY t FROM STDIN") as copy:
            for number in range(50_000):
                copy.write_row((number,))
        assert root.execute("SELECT count(*) FROM t").fetchone() == (50_000,)
        root.pgconn.get_cancel().cancel()  # of nothing: plain, as libpq's old function is, and still taken
    with server.connect(user="alice", password="x", sslmode="require") as alice:
        assert alice.execute("SELECT 1").fetchone() == (1,)
    assert refused(server, sslmode="disable").startswith("connections without TLS are not allowed")
    if psycopg.pq.version() >= 170000:
        with server.connect(sslmode="require", sslnegotiation="direct") as direct:
            assert direct.execute("SELECT 1").fetchone() == (1,)
    with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
        server.connect(sslmode="verify-full", sslrootcert="system", host="localhost")
    assert "Traceback" not in server.log()


def test_a_cancel_over_tls(encrypted: Callable[[str], Server]) -> None:
    server = encrypted("required")
    with server.connect(sslmode="require") as own:
        own.execute("SET statement_timeout = '60s'")
        threading.Timer(1, own.cancel_safe).start()
        with pytest.raises(errors.QueryCanceled):
            own.execute("SELECT count(*) FROM generate_series(1, 10000000) a, generate_series(1, 1000000) b")


def test_tls_is_optional(encrypted: Callable[[str], Server]) -> None:
    server = encrypted("optional")
    for mode, is_encrypted in (("disable", False), ("prefer", True), ("require", True)):
        with server.connect(sslmode=mode, gssencmode="prefer") as own:
            assert bool(own.pgconn.ssl_in_use) is is_encrypted
    server.process.terminate()
    assert server.stop() == 0


def test_what_came_before_tls_is_not_obeyed(encrypted: Callable[[str], Server]) -> None:
    """A message sent in clear right behind the request for TLS."""
    server = encrypted("optional")
    with socket.create_connection(("127.0.0.1", server.port), 10) as raw:
        raw.sendall(bytes.fromhex("0000000804d2162f") + b"\0\0\0\x16\0\3\0\0user\0root\0\0\0")
        assert raw.recv(1) == b"S"
        with contextlib.suppress(ConnectionError):
            assert raw.recv(100)[:1] != b"R"


def test_a_closed_connection_says_so_over_tls(encrypted: Callable[[str], Server]) -> None:
    server = encrypted("required")
    with server.connect(sslmode="require") as own:
        assert server.stop() == 0
        with pytest.raises(errors.AdminShutdown):
            own.execute("SELECT 1")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tls": "required"}, "tls = required needs a certificate"),
        ({"tls_certificate": "nowhere.crt"}, "cannot use nowhere.crt for TLS"),
        ({"tls": "maybe"}, 'invalid value "maybe" for --tls'),
    ],
)
def test_unfit_settings(tmp_path: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(message)):
        Server(tmp_path / "data", **options)


def test_only_this_machine_without_passwords(tmp_path: Path) -> None:
    address = machine_address()
    if address is None:
        pytest.skip("this machine has no address but loopback")
    server = Server(tmp_path / "data", listen=f"0.0.0.0:{free_port()}")
    try:
        message = refused(server, host=address)
        assert message.startswith("connections from other machines are not allowed before a user has a password")
        assert "only this machine can connect before a user has a password" in server.log()
        with server.connect() as root:
            root.execute("ALTER USER root PASSWORD 'x'")
        server.connect(host=address, password="x").close()
        assert refused(server, host=address, user="postgres", password="x").startswith("password authentication failed")
    finally:
        server.kill()


def machine_address() -> str | None:
    """An address of this machine that is not loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") else address


def test_the_password_of_root_may_come_from_the_environment(tmp_path: Path) -> None:
    """It is for a user without a password: one that ALTER USER has set stays."""
    environment = {"SPARKWAVE_ROOT_PASSWORD": "first"}
    with contextlib.ExitStack() as stack:
        server = Server(tmp_path / "data", environment, spark_start="on_demand")
        stack.callback(server.kill)
        with pytest.raises(psycopg.OperationalError, match="password"):
            server.connect()
        with server.connect(password="first") as connection:
            assert "first" not in str(connection.execute("SHOW ALL").fetchall())
            connection.execute("ALTER USER root PASSWORD 'second'")
        server.stop()
        again = Server(tmp_path / "data", environment, spark_start="on_demand")
        stack.callback(again.kill)
        again.connect(password="second").close()
