"""Secrets: nobody is shown them, and neither has the data directory them in clear."""

from __future__ import annotations

import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from buckets import SECRET, Bucket
from servers import Server, refused, rows, wait_until
from test_sources import wait_for

from sparkwave.catalog.errors import Error
from sparkwave.catalog.redaction import redact
from sparkwave.catalog.sealing import KEY_FILE, open_cipher
from sparkwave.planner.parse.source import parse_connector
from sparkwave.planner.parse.tokens import TokenReader

Connection = psycopg.Connection[Any]


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    made = Bucket()
    yield made
    made.stop()


@pytest.fixture
def session(in_process_server: Server) -> Iterator[Connection]:
    with in_process_server.connect() as opened:
        yield opened


def test_statements(session: Connection) -> None:
    create = "CREATE SECRET hush WITH (backend = 'meta') AS 'very hidden'"
    assert session.execute(create).statusmessage == "CREATE SECRET"
    assert refused(session, create).sqlstate == "42710"
    notices: list[str] = []
    session.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    session.execute(create.replace("SECRET", "SECRET IF NOT EXISTS"))
    assert rows(session, "SHOW SECRETS") == [("public.hush",)]
    assert rows(session, "SELECT name, schema_id > 0, owner FROM rw_catalog.rw_secrets") == [("hush", True, 1)]
    session.execute("CREATE SCHEMA apart")
    session.execute("CREATE SECRET apart.hush WITH (backend = meta) AS $$x$$")
    assert refused(session, "DROP SCHEMA apart").sqlstate == "2BP01"
    session.execute("DROP SCHEMA apart CASCADE")
    assert session.execute("DROP SECRET hush").statusmessage == "DROP SECRET"
    session.execute("DROP SECRET IF EXISTS hush")
    exists, cascades = 'secret "hush" already exists, skipping', "drop cascades to secret hush"
    assert notices == [exists, cascades, 'secret "hush" does not exist, skipping']
    assert rows(session, "SELECT name FROM rw_catalog.rw_secrets") == []
    for sql, sqlstate in (
        ("DROP SECRET hush", "42704"),
        ("ALTER SECRET hush AS 'x'", "42704"),
        ("ALTER SECRET hush", "42601"),
        ("ALTER SECRET hush WITH (backend = 'vault') AS 'x'", "22023"),
        ("CREATE SECRET s WITH (backend = 'hashicorp_vault') AS 'x'", "22023"),
        ("CREATE SECRET s AS 'x'", "42601"),
        ("CREATE SOURCE s (a int) WITH (connector = 'datagen', fields.a.max = secret s)", "22023"),
        ("CREATE SOURCE s (a int) WITH (connector = 's3', s3.region_name = 'r', s3.bucket_name = SECRET none) "
         "FORMAT PLAIN ENCODE CSV", "42704"),
    ):  # fmt: skip
        error = refused(session, sql)
        assert error.sqlstate == sqlstate, error
        assert error.diag.statement_position is not None


def test_wrong_options_of_a_secret(session: Connection) -> None:
    for options, message in (
        ("backend = 'hashicorp_vault'", 'secret backend "hashicorp_vault" is not supported'),
        ("backend = 'meta', path = 'p'", 'unrecognized option of a secret: "path"'),
    ):
        assert refused(session, f"CREATE SECRET s WITH ({options}) AS 'x'").diag.message_primary == message


def test_a_source_and_a_sink_with_secrets(session: Connection, bucket: Bucket) -> None:
    """A secret is what it stands for, also after a restart of the reader, and stays while something uses it."""
    session.execute("CREATE SECRET which WITH (backend = 'meta') AS 'data'")
    bucket.put("by_secret/a.csv", b"id\n1\n")
    given = bucket.options("match_pattern = 'by_secret/*.csv'").replace("'data'", "secret which")
    session.execute(f"CREATE SOURCE by_secret (id int) WITH ({given}) FORMAT PLAIN ENCODE CSV")
    wait_for(session, "SELECT id FROM by_secret", [(1,)])
    session.execute("CREATE TABLE t (k int) APPEND ONLY")
    into = bucket.options("s3.path = 'from_secret'").replace("'data'", "secret which")
    session.execute(f"CREATE SINK s FROM t WITH ({into})")
    session.execute("INSERT INTO t VALUES (1)")
    assert wait_until(lambda: len(bucket.names("from_secret")) == 1)
    session.execute("ALTER SECRET which AS 'another'")
    bucket.put("by_secret/b.csv", b"id\n2\n")
    session.execute("INSERT INTO t VALUES (2)")
    failures = "SELECT DISTINCT event_type FROM rw_catalog.rw_event_logs WHERE info->>'error' LIKE '%another%'"
    wait_for(session, failures, [("SINK_FAIL",)])
    session.execute("ALTER SECRET IF EXISTS which WITH (backend = 'meta') AS 'data'")
    wait_for(session, "SELECT id FROM by_secret ORDER BY id", [(1,), (2,)])
    assert wait_until(lambda: len(bucket.names("from_secret")) == 2, 5)
    for kind, name in (("SOURCE", "by_secret"), ("SINK", "s")):
        [(_, shown)] = rows(session, f"SHOW CREATE {kind} {name}")
        assert "secret which" in shown.lower()
        assert SECRET not in shown
        assert "'***'" in shown
    error = refused(session, "DROP SECRET which")
    assert (error.sqlstate, error.diag.message_detail) == (
        "2BP01", "source public.by_secret depends on it\nsink public.s depends on it"
    )  # fmt: skip
    session.execute("DROP SINK s")
    session.execute("DROP SECRET which CASCADE")
    assert (
        rows(session, "SELECT name FROM rw_catalog.rw_sources UNION ALL SELECT name FROM rw_catalog.rw_secrets") == []
    )


def test_another_owner(session: Connection) -> None:
    session.execute("CREATE SECRET given WITH (backend = 'meta') AS 'x'")
    session.execute("CREATE USER keeper")
    assert refused(session, "ALTER SECRET given OWNER TO nobody_there").sqlstate == "42704"
    assert refused(session, "ALTER SECRET missing OWNER TO keeper").sqlstate == "42704"
    session.execute("ALTER SECRET given OWNER TO keeper")
    owner = (
        "SELECT u.name FROM rw_catalog.rw_secrets s JOIN rw_catalog.rw_users u ON u.id = s.owner WHERE s.name = 'given'"
    )
    assert rows(session, owner) == [("keeper",)]
    session.execute("SET ROLE keeper")
    session.execute("DROP SECRET given")
    session.execute("RESET ROLE")
    session.execute("DROP USER keeper")


def test_nobody_sees_them(session: Connection, in_process_server: Server, bucket: Bucket) -> None:
    given = bucket.options("match_pattern = 'none/*'")
    session.execute(f"CREATE SOURCE silent (id int) WITH ({given}) FORMAT PLAIN ENCODE CSV")
    with in_process_server.connect() as other:
        shown = rows(other, "SELECT query FROM pg_stat_activity WHERE query LIKE 'CREATE SOURCE silent%'")
        shown += rows(other, "SHOW PROCESSLIST")
        shown += rows(other, "SELECT * FROM rw_catalog.rw_sources WHERE name = 'silent'")
        shown += rows(other, "SELECT definition FROM rw_catalog.rw_relations WHERE name = 'silent'")
        shown += rows(other, "SHOW CREATE SOURCE silent")
        assert "***" in str(shown)
        assert SECRET not in str(shown)
    session.execute("CREATE SECRET deep WITH (backend = 'meta') AS 'a value for nobody'")
    with in_process_server.connect() as other:
        found = rows(other, "SELECT query FROM pg_stat_activity WHERE query LIKE 'CREATE SECRET%'")
        assert found == [("CREATE SECRET deep WITH (backend = 'meta') AS '***'",)]
    data = in_process_server.data
    files = [file.read_bytes() for file in data.rglob("*") if file.is_file()]
    assert any(b"sealed:" in content for content in files)
    for text in (SECRET, "a value for nobody"):
        assert not any(text.encode() in content for content in files)
        assert text not in in_process_server.log()
    assert stat.S_IMODE((data / KEY_FILE).stat().st_mode) == 0o600


def test_another_users_secret(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE SECRET own WITH (backend = 'meta') AS 'x'")
    session.execute("CREATE USER nosy PASSWORD 'p'")
    session.execute("GRANT CREATE ON SCHEMA public TO nosy")
    with in_process_server.connect(user="nosy", password="p") as other:
        given = "connector = 's3', s3.region_name = 'r', s3.bucket_name = secret own"
        error = refused(other, f"CREATE SOURCE s (a int) WITH ({given}) FORMAT PLAIN ENCODE CSV")
        assert (error.sqlstate, error.diag.message_primary) == ("42501", "permission denied for secret own")
        for statement in ("DROP SECRET own", "ALTER SECRET own AS 'y'"):
            assert refused(other, statement).sqlstate == "42501"


def test_the_key_of_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group may read root's file, if the server is not root; others may not."""
    file = tmp_path / KEY_FILE
    open_cipher(file)
    if file.stat().st_uid != 0:
        pytest.skip("only root's files are root's")
    monkeypatch.setattr("sparkwave.catalog.sealing.os.geteuid", lambda: 1000)
    file.chmod(0o440)
    open_cipher(file)
    for mode in (0o444, 0o460):
        file.chmod(mode)
        with pytest.raises(Error, match="may be read by others"):
            open_cipher(file)


def test_the_key(tmp_path: Path) -> None:
    """It is made once; a file that others may read, or another key, is refused."""
    file = tmp_path / KEY_FILE
    sealed = open_cipher(file).seal("x")
    assert open_cipher(file).open(sealed) == "x"
    other = tmp_path / "other"
    with pytest.raises(Error, match="another key"):
        open_cipher(other).open(sealed)
    file.chmod(0o640)
    with pytest.raises(Error, match="may be read by others"):
        open_cipher(file)
    other.write_text("no key\n")
    with pytest.raises(Error, match="is no key"):
        open_cipher(other)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a (s3.credentials.secret = 'x''y', b = 'c')", "a (s3.credentials.secret = '***', b = 'c')"),
        ("a ('Password'='x')", "a ('Password'='***')"),
        ('a ("my.secret.key" =\n$$x$$)', "a (\"my.secret.key\" =\n'***')"),
        ("a (password = secret name)", "a (password = secret name)"),
        ("a (properties.sasl.password = E'x')", "a (properties.sasl.password = '***')"),
        ("ALTER USER a PASSWORD--why\n'x'", "ALTER USER a PASSWORD--why\n'***'"),
        ("a (password /* 'of' */ = /**/ 'x'; b)", "a (password /* 'of' */ = /**/ '***'; b)"),
        ("a (password /* a /* 'b' */ c */ = /*/**/*/ 'x')", "a (password /* a /* 'b' */ c */ = /*/**/*/ '***')"),
        (
            "ALTER USER a PASSWORD /* not /* 'this' */ one */ 'x'",
            "ALTER USER a PASSWORD /* not /* 'this' */ one */ '***'",
        ),
        ("password = /*x", "password = ***"),
        (
            "CREATE SECRET s WITH (a = 'b;c') AS 'x'; SELECT 'y' AS 'z'",
            "CREATE SECRET s WITH (a = 'b;c') AS '***'; SELECT 'y' AS 'z'",
        ),
        ("at postgres://a:b@c:1/d?pwd=e", "at postgres://a:***@c:1/d?pwd=***"),
    ],
)
def test_redaction(sql: str, expected: str) -> None:
    assert redact(sql) == expected


def test_options_that_are_secrets() -> None:
    options = parse_connector(TokenReader("WITH (password = SECRET a.b, secret = 'x', c = secret)")).options
    assert [(o.name, o.value, str(o.secret)) for o in options] == [
        ("password", "", "a.b"), ("secret", "x", "None"), ("c", "secret", "None")
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "'{}'", "password ", "password/*", "/*password ", "password --", "password /**/ ", "password /*/**/",
        "/* password */ ", "secret ", "secret (",
        "a.a.", "secret as ", "a://", "a://b:", "$a$", "passwordpassword", "password $a$ ", "''a", "password = ''a",
        '"password"', "password = ",
    ],
)  # fmt: skip
def test_redaction_goes_through_a_text_once(text: str) -> None:
    """However long it is and whatever it is made of: all sessions wait meanwhile."""

    def seconds(length: int) -> float:
        repeated = text.format("a" * length) if "{}" in text else text * (length // len(text))
        started = time.thread_time()
        redact(repeated)
        return time.thread_time() - started

    short, long = seconds(100_000), seconds(400_000)
    assert long < 4
    assert long < 10 * max(short, 0.005)
