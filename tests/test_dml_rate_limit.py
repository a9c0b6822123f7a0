"""dml_rate_limit: how fast statements write into a table, and that a paused one can be let go or stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from servers import Server, refused, rows, wait_until

from sparkwave.server.writes.dml_pace import DmlPace

Connection = psycopg.Connection[Any]


@pytest.fixture
def session(in_process_server: Server) -> Any:
    with in_process_server.connect() as opened:
        yield opened


def seconds(run: Callable[[], object]) -> float:
    began = time.monotonic()
    run()
    return time.monotonic() - began


def test_statements_wait_for_their_rows(session: Connection) -> None:
    session.execute("CREATE TABLE paced_rows (id int PRIMARY KEY, v int)")
    session.execute("ALTER TABLE paced_rows SET DML_RATE_LIMIT = 1000")
    many = "INSERT INTO paced_rows SELECT i, 0 FROM generate_series({}, {}) AS g(i)"
    values = ", ".join(f"({i}, 1)" for i in range(2000, 2400))

    def copy() -> None:
        with session.cursor().copy("COPY paced_rows FROM STDIN") as copied:
            copied.write("".join(f"{i}\t1\n" for i in range(3000, 3400)).encode())

    def upsert() -> None:
        session.execute(f"INSERT INTO paced_rows VALUES {values} ON CONFLICT (id) DO UPDATE SET v = 3")

    for write in (
        lambda: session.execute(many.format(1, 400)),
        lambda: session.execute(f"INSERT INTO paced_rows VALUES {values}"),
        copy,
        upsert,
    ):
        assert 0.3 <= seconds(write) <= 5
    update = lambda: session.execute("UPDATE paced_rows SET v = 5 WHERE id <= 400")  # noqa: E731
    update()
    assert seconds(lambda: session.execute("DELETE FROM paced_rows WHERE id = 1")) >= 0.3  # for the UPDATE's rows
    assert rows(session, "SELECT count(*), count(*) FILTER (WHERE v = 5) FROM paced_rows") == [(1199, 399)]
    session.execute("ALTER TABLE paced_rows SET DML_RATE_LIMIT TO DEFAULT")
    assert seconds(lambda: session.execute(many.format(10_000, 40_000))) < 10


def test_a_pause(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE TABLE paused_rows (id int PRIMARY KEY, v int)")
    session.execute("INSERT INTO paused_rows VALUES (0, 0)")
    session.execute("ALTER TABLE paused_rows SET DML_RATE_LIMIT = 0")
    done: list[str] = []

    def write(sql: str) -> None:
        with in_process_server.connect() as own:
            own.execute(sql)
            done.append(sql)

    statements = [
        "INSERT INTO paused_rows VALUES (1, 0)",
        "INSERT INTO paused_rows SELECT 2, 0",
        "UPDATE paused_rows SET v = 9 WHERE id = 0",
    ]
    threads = [threading.Thread(target=write, args=(sql,)) for sql in statements]
    for thread in threads:
        thread.start()
    session.execute("SET statement_timeout = 400")
    for sql in ("INSERT INTO paused_rows VALUES (3, 0)", "DELETE FROM paused_rows", "TRUNCATE paused_rows"):
        assert refused(session, sql).sqlstate == "57014"
    session.execute("RESET statement_timeout")
    assert done == []
    assert rows(session, "SELECT id FROM paused_rows") == [(0,)]
    session.execute("ALTER TABLE paused_rows SET DML_RATE_LIMIT = 100")
    assert wait_until(lambda: len(done) == 3, 20)
    for thread in threads:
        thread.join()
    assert rows(session, "SELECT id, v FROM paused_rows ORDER BY id") == [(0, 9), (1, 0), (2, 0)]


def test_a_dropped_table_lets_go(session: Connection, in_process_server: Server) -> None:
    session.execute("CREATE TABLE doomed_rows (id int)")
    session.execute("ALTER TABLE doomed_rows SET DML_RATE_LIMIT = 0")
    raised: list[psycopg.Error] = []

    def write() -> None:
        with in_process_server.connect() as own:
            raised.append(refused(own, "INSERT INTO doomed_rows VALUES (1)"))

    thread = threading.Thread(target=write)
    thread.start()
    time.sleep(0.3)
    session.execute("DROP TABLE doomed_rows")
    thread.join(20)
    assert [error.sqlstate for error in raised] == ["42P01"]


def test_a_limit_that_changes() -> None:
    """What has been covered stays covered; what was not written is not owed."""
    limit: list[int | None] = [0]
    pace = DmlPace(lambda _: limit[0])
    checks: list[None] = []

    def check() -> None:
        checks.append(None)
        if len(checks) == 3:
            limit[0] = 10_000
        if len(checks) > 100:
            raise TimeoutError

    assert seconds(lambda: pace.wait(1, 1000, check)) >= 0.1
    limit[0], checks = 1, [None] * 4
    with pytest.raises(TimeoutError):
        pace.wait(1, 1_000_000, check)
    limit[0], checks = 1000, [None] * 4
    assert seconds(lambda: pace.wait(1, 1, check)) < 1
