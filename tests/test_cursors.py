"""Cursors and read-only transactions. Answers agree with PostgreSQL 15.18 where a test does not say otherwise."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from raw_client import SYNC, Raw, bind, execute, message, parse, query, row
from servers import Server, refused

Connection = psycopg.Connection[Any]
COUNTED = "SELECT n FROM generate_series(1, {}) AS s(n)"


@pytest.fixture
def table(connection: Connection) -> Iterator[str]:
    connection.execute("CREATE TABLE fetched (k int PRIMARY KEY, v varchar)")
    connection.execute("INSERT INTO fetched SELECT n, 'row ' || n FROM generate_series(1, 10) AS s(n)")
    yield "fetched"
    connection.execute("DROP TABLE fetched")


def numbers(connection: Connection, sql: str) -> tuple[list[int], str | None]:
    found = connection.execute(sql)
    return [row[0] for row in found], found.statusmessage


def test_fetch_and_move(connection: Connection) -> None:
    assert connection.execute(f"DECLARE c CURSOR FOR {COUNTED.format(20)}").statusmessage == "DECLARE CURSOR"
    assert numbers(connection, "FETCH c") == ([1], "FETCH 1")
    assert numbers(connection, "FETCH 2 FROM c") == ([2, 3], "FETCH 2")
    assert numbers(connection, "FETCH NEXT IN c") == ([4], "FETCH 1")
    assert connection.execute("MOVE FORWARD 3 FROM c").statusmessage == "MOVE 3"
    assert numbers(connection, "FETCH RELATIVE 2 FROM c") == ([9], "FETCH 1")
    assert numbers(connection, "FETCH ABSOLUTE 12 FROM c") == ([12], "FETCH 1")
    assert numbers(connection, "FETCH FORWARD 3 c") == ([13, 14, 15], "FETCH 3")
    assert numbers(connection, "FETCH ALL FROM c") == ([16, 17, 18, 19, 20], "FETCH 5")
    assert numbers(connection, "FETCH c") == ([], "FETCH 0")
    assert connection.execute("MOVE ALL c").statusmessage == "MOVE 0"
    assert connection.execute("CLOSE c").statusmessage == "CLOSE CURSOR"


@pytest.mark.parametrize(
    "direction", ["PRIOR", "BACKWARD", "BACKWARD ALL", "-1", "LAST", "ABSOLUTE 1", "RELATIVE -1", "0", "FIRST"]
)
def test_only_forward(connection: Connection, direction: str) -> None:
    connection.execute(f"DECLARE c CURSOR FOR {COUNTED.format(3)}")
    connection.execute("FETCH c")
    error = refused(connection, f"FETCH {direction} FROM c")
    assert error.sqlstate == "55000"
    assert error.diag.message_primary == "cursor can only scan forward"
    assert numbers(connection, "FETCH c") == ([2], "FETCH 1")
    connection.execute("CLOSE c")


def test_scroll(connection: Connection) -> None:
    """Each answer was compared with PostgreSQL's."""
    connection.execute(f"DECLARE c SCROLL CURSOR FOR {COUNTED.format(5)}")
    for direction, found in (
        ("NEXT", [1]), ("2", [2, 3]), ("PRIOR", [2]), ("0", [2]), ("RELATIVE -1", [1]), ("PRIOR", []), ("NEXT", [1]),
        ("LAST", [5]), ("NEXT", []), ("PRIOR", [5]), ("BACKWARD 2", [4, 3]), ("-1", [2]), ("FIRST", [1]),
        ("ABSOLUTE 4", [4]), ("ABSOLUTE -2", [4]), ("ABSOLUTE 9", []), ("BACKWARD ALL", [5, 4, 3, 2, 1]), ("0", []),
        ("ALL", [1, 2, 3, 4, 5]), ("RELATIVE 0", []), ("RELATIVE -2", [4]), ("ABSOLUTE 0", []),
        ("FORWARD 9", [1, 2, 3, 4, 5]),
        ("BACKWARD 9", [5, 4, 3, 2, 1]), ("RELATIVE 3", [3]), ("BACKWARD 0", [3]), ("ABSOLUTE -9", []), ("NEXT", [1]),
    ):  # fmt: skip
        assert numbers(connection, f"FETCH {direction} FROM c") == (found, f"FETCH {len(found)}"), direction
    assert connection.execute("MOVE LAST c").statusmessage == "MOVE 1"
    assert connection.execute("MOVE BACKWARD ALL c").statusmessage == "MOVE 4"
    connection.execute("CLOSE c")


def test_scroll_over_many_batches(connection: Connection) -> None:
    connection.execute(f"DECLARE c SCROLL CURSOR FOR {COUNTED.format(100_000)}")
    assert numbers(connection, "FETCH ABSOLUTE 70000 c")[0] == [70_000]
    assert numbers(connection, "FETCH BACKWARD 60000 c")[0] == list(range(69_999, 9_999, -1))
    assert numbers(connection, "FETCH 50000 c")[0] == list(range(10_001, 60_001))
    assert numbers(connection, "FETCH LAST c")[0] == [100_000]
    connection.execute("CLOSE c")


def test_a_held_cursor_holds_no_snapshot(module_server: Server, connection: Connection, table: str) -> None:
    """Its rows are in a file without a name, which is gone with it."""

    def files() -> int:
        links = Path(f"/proc/{module_server.process.pid}/fd").iterdir()
        return sum("spill" in os.readlink(link) for link in links if link.is_symlink())

    before = files()
    connection.execute("BEGIN")
    connection.execute("DECLARE h CURSOR WITH HOLD FOR SELECT k FROM fetched ORDER BY k")
    assert numbers(connection, "FETCH 2 h")[0] == [1, 2]
    connection.execute("COMMIT")
    connection.execute("DELETE FROM fetched")
    assert files() == before + 1
    assert numbers(connection, "FETCH ALL h")[0] == list(range(3, 11))
    connection.execute("CLOSE h")
    assert files() == before
    connection.execute("BEGIN")
    connection.execute(
        "DECLARE h CURSOR WITH HOLD FOR SELECT 1 / (900000 - n) FROM generate_series(1, 1000000) AS s(n)"
    )
    assert refused(connection, "COMMIT").sqlstate == "22012"
    assert connection.info.transaction_status == TransactionStatus.IDLE
    assert refused(connection, "FETCH h").sqlstate == "34000"


def test_names(connection: Connection) -> None:
    assert refused(connection, "FETCH c").sqlstate == "34000"
    assert refused(connection, "MOVE c").diag.message_primary == 'cursor "c" does not exist'
    assert refused(connection, "CLOSE c").sqlstate == "34000"
    connection.execute("DECLARE c CURSOR FOR SELECT 1")
    assert refused(connection, "DECLARE c CURSOR FOR SELECT 1").sqlstate == "42P03"
    connection.execute('DECLARE "C" CURSOR FOR SELECT 2')
    assert numbers(connection, 'FETCH "C"') == ([2], "FETCH 1")
    assert connection.execute("CLOSE ALL").statusmessage == "CLOSE CURSOR ALL"
    assert refused(connection, "FETCH c").sqlstate == "34000"


def test_errors(connection: Connection) -> None:
    error = refused(connection, "DECLARE c CURSOR FOR SELECT nothing FROM pg_class")
    assert (error.sqlstate, error.diag.statement_position) == ("42703", "29")
    connection.execute("DECLARE c CURSOR FOR SELECT 1 / (900000 - n) AS q FROM generate_series(1, 1000000) AS s(n)")
    assert refused(connection, "FETCH ALL c").sqlstate == "22012"
    assert refused(connection, "FETCH c").sqlstate == "55000"
    connection.execute("CLOSE c")


def test_how_long_they_live(connection: Connection) -> None:
    """Here BEGIN starts nothing, and a cursor without a block lives until it is closed."""

    def declare() -> None:
        connection.execute("DECLARE c CURSOR FOR SELECT 1")
        connection.execute("DECLARE h CURSOR WITH HOLD FOR SELECT 2")

    connection.execute("BEGIN")
    declare()
    connection.execute("SAVEPOINT s")
    connection.execute("ROLLBACK TO s")
    assert connection.info.transaction_status == TransactionStatus.INTRANS
    connection.execute("COMMIT")
    assert connection.info.transaction_status == TransactionStatus.IDLE
    assert refused(connection, "FETCH c").sqlstate == "34000"
    assert numbers(connection, "FETCH h") == ([2], "FETCH 1")
    connection.execute("BEGIN")
    connection.execute("ROLLBACK")
    assert numbers(connection, "FETCH h") == ([], "FETCH 0")
    connection.execute("CLOSE h")

    connection.execute("BEGIN")
    declare()
    connection.execute("ROLLBACK")
    assert refused(connection, "FETCH h").sqlstate == "34000"

    declare()
    assert numbers(connection, "FETCH c") == ([1], "FETCH 1")
    connection.execute("DISCARD ALL")
    assert refused(connection, "FETCH h").sqlstate == "34000"


def test_one_snapshot(connection: Connection, table: str) -> None:
    connection.execute("DECLARE c CURSOR FOR SELECT count(*) FROM fetched UNION ALL SELECT max(k) FROM fetched")
    connection.execute("DELETE FROM fetched WHERE k > 2")
    assert numbers(connection, "FETCH ALL c") == ([10, 10], "FETCH 2")
    connection.execute("CLOSE c")


def test_a_large_result_is_not_made_at_once(connection: Connection) -> None:
    """Far more rows than fit into memory, and than could be made in the time of a test."""
    connection.execute(f"DECLARE c CURSOR FOR {COUNTED.format(10**12)}")
    assert numbers(connection, "FETCH 3 c") == ([1, 2, 3], "FETCH 3")
    assert connection.execute("MOVE 1000000 c").statusmessage == "MOVE 1000000"
    assert numbers(connection, "FETCH c") == ([1_000_004], "FETCH 1")
    connection.execute("CLOSE c")


def test_binary_cursors(connection: Connection) -> None:
    connection.execute("DECLARE c BINARY CURSOR FOR SELECT 258 AS n")
    result = connection.pgconn.exec_(b"FETCH c")
    assert (result.fformat(0), result.get_value(0, 0)) == (1, b"\0\0\1\2")
    connection.execute("CLOSE c")


def test_describe_does_not_fetch(connection: Connection) -> None:
    raw = connection.pgconn
    connection.execute("DECLARE c CURSOR FOR SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, 'y'")
    portal = raw.describe_portal(b"c")
    assert [portal.fname(i) for i in range(portal.nfields)] == [b"a", b"b"]
    raw.prepare(b"next", b"FETCH c")
    assert raw.describe_prepared(b"next").nfields == 2
    assert raw.exec_prepared(b"next", []).get_value(0, 1) == b"x"
    assert raw.exec_prepared(b"next", []).get_value(0, 0) == b"2"
    connection.execute("CLOSE c")
    assert raw.describe_prepared(b"next").nfields == 0


def test_parameters(connection: Connection, table: str) -> None:
    connection.execute("DECLARE c CURSOR FOR SELECT k FROM fetched WHERE k > %s ORDER BY k", (7,))
    assert numbers(connection, "FETCH ALL c") == ([8, 9, 10], "FETCH 3")
    connection.execute("CLOSE c")
    assert refused(connection, "DECLARE c CURSOR FOR SELECT $1::int").sqlstate == "42P02"


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("withhold", [False, True])
def test_psycopg_named_cursors(module_server: Server, autocommit: bool, withhold: bool) -> None:
    with module_server.connect(autocommit=autocommit) as connection:
        for _ in range(2):
            with connection.cursor("named", withhold=withhold) as cursor:
                cursor.itersize = 7
                cursor.execute("SELECT n, n::varchar FROM generate_series(1, %s) AS s(n)", (20,))
                assert [column.name for column in cursor.description or ()] == ["n", "n"]
                assert cursor.fetchone() == (1, "1")
                connection.execute("SELECT 'something else'")
                cursor.scroll(2)
                assert cursor.fetchmany(2) == [(4, "4"), (5, "5")]
                assert [n for n, _ in cursor] == list(range(6, 21))
        connection.commit()
        assert connection.info.transaction_status == TransactionStatus.IDLE


def test_psql_fetch_count(module_server: Server) -> None:
    shown = module_server.psql("-At", "-v", "FETCH_COUNT=3", "-c", COUNTED.format(8))
    assert (shown.stdout.split(), shown.stderr) == ([str(n) for n in range(1, 9)], "")
    script = (
        f"\\set FETCH_COUNT 3\n{COUNTED.format(8)};\nBEGIN;\n{COUNTED.format(4)};\nCOMMIT;\nSELECT 1/0;\nSELECT 5;\n"
    )
    shown = module_server.psql("-At", stdin=script)
    lines = [*(str(n) for n in range(1, 9)), "BEGIN", *"1234", "COMMIT", "5"]
    assert shown.stdout.split() == lines
    assert "division by zero" in shown.stderr


# Read-only transactions


def test_read_only_pins_a_snapshot(module_server: Server, connection: Connection, table: str) -> None:
    with module_server.connect() as other:
        connection.execute("BEGIN READ ONLY")
        assert connection.info.transaction_status == TransactionStatus.INTRANS
        assert connection.execute("SHOW transaction_read_only").fetchone() == ("on",)
        other.execute("DELETE FROM fetched WHERE k > 3")
        other.execute("CREATE TABLE fetched_later (k int)")
        for _ in range(2):
            assert connection.execute("SELECT count(*), max(v) FROM fetched AS f").fetchone() == (10, "row 9")
            assert connection.execute("SELECT count(*) FROM fetched WHERE k = %s", (10,)).fetchone() == (1,)
        assert refused(connection, "SELECT * FROM fetched_later").sqlstate == "42P01"
        with connection.cursor() as cursor, cursor.copy("COPY fetched TO STDOUT") as copy:
            assert len(list(copy.rows())) == 10
        connection.execute("COMMIT")
        assert connection.info.transaction_status == TransactionStatus.IDLE
        assert connection.execute("SELECT count(*) FROM fetched").fetchone() == (3,)
        other.execute("DROP TABLE fetched_later")


def test_read_only_keeps_what_is_dropped(module_server: Server, connection: Connection) -> None:
    connection.execute("CREATE TABLE fetched_once (k int)")
    connection.execute("INSERT INTO fetched_once VALUES (1)")
    with module_server.connect() as other:
        other.execute("START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        connection.execute("DROP TABLE fetched_once")
        connection.execute("CREATE TABLE fetched_once (other varchar)")
        assert other.execute("SELECT k FROM fetched_once").fetchall() == [(1,)]
        other.execute("ROLLBACK")
        assert other.execute("SELECT * FROM fetched_once").fetchall() == []
    connection.execute("DROP TABLE fetched_once")


@pytest.mark.parametrize(
    ("sql", "command"),
    [
        ("INSERT INTO fetched VALUES (11, 'x')", "INSERT"),
        ("DELETE FROM fetched", "DELETE"),
        ("CREATE TABLE more (k int)", "CREATE TABLE"),
        ("DROP TABLE fetched", "DROP TABLE"),
        ("COPY fetched FROM STDIN", "COPY FROM"),
        ("CREATE USER reader", "CREATE ROLE"),
        ("GRANT SELECT ON fetched TO public", "GRANT"),
        ("EXECUTE writes", "INSERT"),
    ],
)
def test_read_only_refuses_writes(connection: Connection, table: str, sql: str, command: str) -> None:
    connection.execute("PREPARE writes AS INSERT INTO fetched VALUES (12, 'y')")
    connection.execute("BEGIN")
    connection.execute("SET TRANSACTION READ ONLY")
    error = refused(connection, sql)
    assert (error.sqlstate, error.diag.message_primary) == (
        "25006",
        f"cannot execute {command} in a read-only transaction",
    )
    assert connection.execute("SELECT count(*) FROM fetched").fetchone() == (10,)
    connection.execute("ROLLBACK")
    connection.execute("INSERT INTO fetched VALUES (11, 'x')")


def test_plain_begin_starts_nothing(module_server: Server, connection: Connection, table: str) -> None:
    connection.execute("BEGIN")
    assert connection.info.transaction_status == TransactionStatus.IDLE
    connection.execute("INSERT INTO fetched VALUES (11, 'x')")
    with module_server.connect() as other:
        assert other.execute("SELECT count(*) FROM fetched").fetchone() == (11,)
    connection.execute("ROLLBACK")
    assert connection.execute("SELECT count(*) FROM fetched").fetchone() == (11,)


def test_notifications_are_refused(connection: Connection) -> None:
    for sql in ("LISTEN x", "NOTIFY x, 'y'"):
        error = refused(connection, sql)
        assert error.sqlstate == "0A000"
        assert error.diag.message_hint
    assert connection.execute("UNLISTEN *").statusmessage == "UNLISTEN"


def test_fetch_and_move_of_a_portal_that_was_only_bound(module_server: Server) -> None:
    raw = Raw(module_server.port)
    bound = [parse(COUNTED.format("$1"), "s"), bind("p", "s", (b"9",))]

    def ask(sql: str, *before: bytes) -> list[tuple[str, bytes | str]]:
        answers = raw.ask(*before, parse(sql), bind(), execute(), SYNC)
        return [answer for answer in answers if answer[0] not in "12"]

    raw.ask(query("BEGIN"))
    assert ask("MOVE 2 FROM p", *bound) == [("C", b"MOVE 2\0")]
    assert ask("FETCH 2 FROM p") == [row(b"3"), row(b"4"), ("C", b"FETCH 2\0")]
    assert raw.ask(execute("p", 1), SYNC) == [row(b"5"), ("s", b"")]
    assert raw.ask(execute("p"), SYNC)[-1] == ("C", b"SELECT 4\0")
    raw.ask(query("ROLLBACK"))
    raw.send(message(b"X"))
