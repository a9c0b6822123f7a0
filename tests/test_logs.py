"""The log's two formats, the fields of its lines, and that secrets are in none of the places others may look."""

from __future__ import annotations

import json
import logging
import threading
from pathlib import Path

import pytest
from servers import Server, refused, rows

from sparkwave.catalog import log_context
from sparkwave.catalog.log_context import fields, in_this_context, logged, note
from sparkwave.catalog.redaction import redact
from sparkwave.server.operations.logs import JsonFormatter, TextFormatter, _WithFields


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CREATE USER bob PASSWORD 'hunter2'", "CREATE USER bob PASSWORD '***'"),
        ("ALTER USER bob WITH ENCRYPTED password\n 'it''s hunter2' VALID UNTIL 'x'",
         "ALTER USER bob WITH ENCRYPTED password\n '***' VALID UNTIL 'x'"),
        (r"ALTER USER bob PASSWORD E'a\'hunter2'", "ALTER USER bob PASSWORD '***'"),
        ("ALTER USER bob PASSWORD $x$hunter2$$y$x$, 1", "ALTER USER bob PASSWORD '***', 1"),
        ("ALTER USER bob PASSWORD /* 'no' */ -- 'nor this\n 'hunter2'", 
         "ALTER USER bob PASSWORD /* 'no' */ -- 'nor this\n '***'"),
        ("CREATE USER bob PASSWORD 'hunter2", "CREATE USER bob PASSWORD '***'"),
        ("ALTER USER bob PASSWORD NULL", "ALTER USER bob PASSWORD NULL"),
        ("WITH (connector = 'postgres-cdc', password = 'hunter2', port = '5432')",
         "WITH (connector = 'postgres-cdc', password = '***', port = '5432')"),
        ("WITH (properties.sasl.password='hunter2')", "WITH (properties.sasl.password='***')"),
        ("WITH (\"s3.credentials.secret\" = 'hunter2', a = 'b')", "WITH (\"s3.credentials.secret\" = '***', a = 'b')"),
        ("WITH (auth.token = 'hunter2') -- 'x'", "WITH (auth.token = '***') -- 'x'"),
        ("CREATE SECRET s WITH (backend = 'meta') AS 'hunter2'", "CREATE SECRET s WITH (backend = 'meta') AS '***'"),
        ("postgres://bob:hunter2@db:5432/x", "postgres://bob:***@db:5432/x"),
        ("connection to host=db password=hunter2 failed", "connection to host=db password=*** failed"),
        ('{"password": "hunter2", "a": 1}', '{"password": ***, "a": 1}'),
        ("SELECT token, password FROM users WHERE id = 'x'", "SELECT token, password FROM users WHERE id = 'x'"),
        ("SELECT 1 WHERE password = $1 AND token = (SELECT 2)", "SELECT 1 WHERE password = $1 AND token = (SELECT 2)"),
        ("SELECT 'https://example.org/a:b@c'", "SELECT 'https://example.org/a:b@c'"),
        ("SELECT 'password=''hunter2'' x'", "SELECT 'password='***' x'"),
        ("WITH (password = '', port = '5432')", "WITH (password = '***', port = '5432')"),
        ("", ""),
    ],
)  # fmt: skip
def test_redact(text: str, shown: str) -> None:
    assert redact(text) == shown
    assert "hunter2" not in shown
    assert redact(shown) == shown


def record(message: str, *arguments: object, error: Exception | None = None) -> logging.LogRecord:
    info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("executor.x", logging.WARNING, "x.py", 1, message, arguments, info)
    _WithFields().filter(made)
    return made


@pytest.fixture(autouse=True)
def nothing_noted() -> None:
    """Epochs of other tests have run on this thread, and noted theirs."""
    log_context._FIELDS.set({})


def test_fields_of_a_thread() -> None:
    seen = []
    with logged(session=7), logged(job_id=1004):
        assert fields() == {"session": 7, "job_id": 1004}
        threads = [threading.Thread(target=lambda: seen.append(dict(fields())))]
        threads += [threading.Thread(target=in_this_context(lambda: seen.append(dict(fields()))))]
        for thread in threads:
            thread.start()
            thread.join()
    assert fields() == {}
    assert seen == [{}, {"session": 7, "job_id": 1004}]


def test_a_noted_field_stays_with_its_thread() -> None:
    thread = threading.Thread(target=lambda: (note(epoch=1), note(epoch=2), seen.append(dict(fields()))))
    seen: list[dict[str, object]] = []
    thread.start()
    thread.join()
    assert seen == [{"epoch": 2}]
    assert fields() == {}


def test_json() -> None:
    with logged(job_id=1004, epoch=17):
        line = JsonFormatter().format(record("attempt %d: %s", 2, "PASSWORD 'hunter2'\nnext", error=ValueError("é")))
    assert "\n" not in line
    found = json.loads(line)
    assert found.pop("time").endswith("+00:00")
    assert found.pop("exception") == "ValueError: é"
    assert found == {
        "level": "WARNING",
        "logger": "executor.x",
        "message": "attempt 2: PASSWORD '***'\nnext",
        "job_id": 1004,
        "epoch": 17,
    }


def test_text() -> None:
    formatter = TextFormatter("%(levelname)s %(name)s%(place)s: %(message)s")
    with logged(job_id=1004, epoch=17):
        line = formatter.format(record("ALTER USER a PASSWORD 'hunter2'", error=ValueError("password=hunter2")))
    first, *rest = line.splitlines()
    assert first == "WARNING executor.x [job_id=1004 epoch=17]: ALTER USER a PASSWORD '***'"
    assert rest == ["ValueError: password=***"]
    assert formatter.format(record("plain")) == "WARNING executor.x: plain"


SECRET = "hunter2-never-shown"


def test_no_secret_is_shown(tmp_path: Path) -> None:
    """Whatever a statement with a secret does, it is neither in the log nor in what other sessions may ask for."""
    server = Server(tmp_path / "data", log_level="DEBUG", log_format="json")
    try:
        with server.connect() as session, server.connect() as other:
            session.execute("ALTER SYSTEM SET backfill_engine = auto")
            for statement in (
                f"CREATE USER bob PASSWORD '{SECRET}'",
                f"ALTER USER bob PASSWORD '{SECRET}'",
            ):
                session.execute(statement)
                [(query,)] = rows(other, "SELECT query FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
                assert query == statement.replace(SECRET, "***")
            options = (
                f"connector = 'postgres-cdc', hostname = '127.0.0.1', port = '1', username = 'x', password = '{SECRET}'"
            )
            refused(
                session,
                f"CREATE TABLE c (a int PRIMARY KEY) WITH ({options}, database.name = 'x', table.name = 'y')",
            )
            session.execute("CREATE TABLE t (a int PRIMARY KEY)")
            # Its definition is in the events of a job that is cancelled.
            session.execute("ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = 1")
            session.execute("SET background_ddl = true")
            session.execute("SET backfill_rate_limit = 0")
            session.execute("INSERT INTO t VALUES (1)")
            session.execute(f"CREATE MATERIALIZED VIEW v AS SELECT a FROM t WHERE 'password=''{SECRET}''' <> ''")
            session.execute("DROP MATERIALIZED VIEW v")
            events = str(rows(other, "SELECT event_type, info FROM rw_catalog.rw_event_logs"))
            activity = str(rows(other, "SELECT query FROM pg_stat_activity") + rows(other, "SHOW PROCESSLIST"))
        assert "CANCEL_STREAM_JOB" in events
        assert SECRET not in events
        assert SECRET not in activity
        lines = [json.loads(line) for line in server.log().splitlines() if not line.startswith("sparkwave ready")]
        assert SECRET not in server.log()
        created = [line for line in lines if line["message"].startswith("creating materialized view")]
        assert [sorted(line) for line in created] == [["job_id", "level", "logger", "message", "time"]]
    finally:
        server.kill()
