"""Atomic transactions. Answers agree with PostgreSQL 15.18 where a test does not say otherwise."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.pq import DiagnosticField, ExecStatus, TransactionStatus
from servers import Server, refused

Connection = psycopg.Connection[Any]
ON = "-c atomic_transactions=on"


@pytest.fixture(scope="module")
def table_server(module_server: Server) -> Server:
    with module_server.connect() as own:
        own.execute("ALTER SYSTEM SET backfill_engine = auto")
        own.execute("CREATE TABLE kept (k int PRIMARY KEY, v int)")
    return module_server


@pytest.fixture
def atomic(table_server: Server) -> Iterator[Connection]:
    """An autocommit connection whose blocks are atomic, and a table `kept` with rows 1 to 3."""
    opened = table_server.connect(options=ON)
    opened.execute("DELETE FROM kept; INSERT INTO kept VALUES (1, 10), (2, 20), (3, 30)")
    yield opened
    opened.close()


@pytest.fixture
def other(module_server: Server) -> Iterator[Connection]:
    """A connection with RisingWave's rule: each statement commits."""
    with module_server.connect() as opened:
        yield opened


def rows(connection: Connection, table: str = "kept") -> list[tuple[Any, ...]]:
    return connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()


def status(connection: Connection) -> TransactionStatus:
    return connection.info.transaction_status


def test_what_is_written_is_there_for_others_at_commit(atomic: Connection, other: Connection) -> None:
    before = rows(other)
    atomic.execute("BEGIN")
    assert status(atomic) == TransactionStatus.INTRANS
    assert atomic.execute("INSERT INTO kept VALUES (4, 40), (1, 11)").statusmessage == "INSERT 0 2"
    assert rows(atomic) == [(1, 11), (2, 20), (3, 30), (4, 40)]
    assert atomic.execute("UPDATE kept SET v = v + 1 WHERE k >= 3").statusmessage == "UPDATE 2"
    assert atomic.execute("DELETE FROM kept WHERE v = 20").statusmessage == "DELETE 1"
    assert rows(atomic) == [(1, 11), (3, 31), (4, 41)]
    assert rows(other) == before
    assert atomic.execute("COMMIT").statusmessage == "COMMIT"
    assert status(atomic) == TransactionStatus.IDLE
    assert rows(other) == [(1, 11), (3, 31), (4, 41)]


def test_rows_are_read_in_the_order_of_their_writes(atomic: Connection) -> None:
    atomic.execute("BEGIN")
    for k in (13, 12, 11):
        atomic.execute(f"INSERT INTO kept VALUES ({k}, 0), ({k - 5}, 0)")
    atomic.execute("UPDATE kept SET v = 1 WHERE k = 12")
    new = "SELECT k FROM kept WHERE k > 3"
    assert atomic.execute(new).fetchall() == [(13,), (8,), (7,), (11,), (6,), (12,)]
    atomic.execute("ROLLBACK")


def test_rollback_leaves_nothing(atomic: Connection) -> None:
    before = rows(atomic)
    atomic.execute("BEGIN")
    atomic.execute("SET statement_timeout = '5min'")
    atomic.execute("TRUNCATE kept")
    assert rows(atomic) == []
    atomic.execute("INSERT INTO kept VALUES (9, 9)")
    assert rows(atomic) == [(9, 9)]
    assert atomic.execute("ROLLBACK").statusmessage == "ROLLBACK"
    assert rows(atomic) == before
    assert atomic.execute("SHOW statement_timeout").fetchone() == ("0ms",)


def test_without_the_variable_each_statement_commits(atomic: Connection, other: Connection) -> None:
    other.execute("BEGIN")
    other.execute("INSERT INTO kept VALUES (4, 40)")
    assert status(other) == TransactionStatus.IDLE
    assert (4, 40) in rows(atomic)
    error = refused(other, "SET atomic_transactions = on")
    assert (error.sqlstate, error.diag.message_hint) == ("25001", "Set it by itself, before BEGIN.")
    other.execute("ROLLBACK")
    assert (4, 40) in rows(atomic)
    other.execute("SET atomic_transactions = on")
    other.execute("BEGIN")
    assert status(other) == TransactionStatus.INTRANS


def test_a_failed_block_refuses_all_but_its_end(atomic: Connection) -> None:
    atomic.execute("BEGIN")
    atomic.execute("INSERT INTO kept VALUES (4, 40)")
    assert refused(atomic, "SELECT 1 / 0").sqlstate == "22012"
    assert status(atomic) == TransactionStatus.INERROR
    for sql in ("SELECT 1", "INSERT INTO kept VALUES (5, 50)", "SHOW timezone", "SAVEPOINT s", "BEGIN"):
        assert refused(atomic, sql).sqlstate == "25P02"
    assert status(atomic) == TransactionStatus.INERROR
    assert atomic.execute("COMMIT").statusmessage == "ROLLBACK"
    assert status(atomic) == TransactionStatus.IDLE
    assert rows(atomic) == [(1, 10), (2, 20), (3, 30)]


@pytest.mark.parametrize("sql", ["SELEC 1", "SELECT * FROM nothing_here", "INSERT INTO kept VALUES (NULL, 1)"])
def test_every_kind_of_error_fails_the_block(atomic: Connection, sql: str) -> None:
    atomic.execute("BEGIN")
    assert refused(atomic, sql).sqlstate in ("42601", "42P01", "23502")
    assert status(atomic) == TransactionStatus.INERROR
    atomic.execute("ROLLBACK")
    assert status(atomic) == TransactionStatus.IDLE


@pytest.mark.parametrize(
    "sql", ["ALTER SYSTEM SET barrier_interval_ms = 500", "CREATE DATABASE d", "DROP DATABASE d", "DISCARD ALL"]
)
def test_what_no_block_may_have(atomic: Connection, sql: str) -> None:
    atomic.execute("BEGIN")
    error = refused(atomic, sql)
    command = " ".join(sql.split()[:2])
    assert (error.sqlstate, str(error)) == ("25001", f"{command} cannot run inside a transaction block")
    assert status(atomic) == TransactionStatus.INERROR
    atomic.execute("ROLLBACK")


def test_a_definition_commits_itself_and_what_came_before(atomic: Connection, other: Connection) -> None:
    """As in MySQL and Oracle. Whoever may not expect it is told."""
    told: list[str | None] = []
    atomic.add_notice_handler(lambda notice: told.append(notice.message_primary))
    atomic.execute("BEGIN")
    atomic.execute("CREATE TABLE made (k int)")
    assert told == [] and status(atomic) == TransactionStatus.INTRANS
    atomic.execute("INSERT INTO made VALUES (1)")
    atomic.execute("SAVEPOINT a")
    atomic.execute("INSERT INTO kept VALUES (4, 40)")
    assert (4, 40) not in rows(other)
    atomic.execute("CREATE MATERIALIZED VIEW of_made AS SELECT count(*) AS n FROM made")
    assert told == ["CREATE MATERIALIZED VIEW has committed the changes that the transaction had made before it"]
    assert (4, 40) in rows(other) and other.execute("SELECT n FROM of_made").fetchall() == [(1,)]
    atomic.execute("INSERT INTO kept VALUES (5, 50)")
    atomic.execute("ROLLBACK TO a")  # as far back as it can
    assert (4, 40) in rows(atomic) and (5, 50) not in rows(atomic)
    atomic.execute("INSERT INTO kept VALUES (6, 60)")
    assert atomic.execute("ROLLBACK").statusmessage == "ROLLBACK"
    assert told[1:] == [
        "CREATE TABLE, CREATE MATERIALIZED VIEW cannot be rolled back: committed already, with all that came before"
    ]
    assert rows(atomic) == [(1, 10), (2, 20), (3, 30), (4, 40)]
    atomic.execute("DROP MATERIALIZED VIEW of_made")
    atomic.execute("DROP TABLE made")


def test_a_definition_that_fails_fails_the_block(atomic: Connection, other: Connection) -> None:
    atomic.execute("BEGIN")
    atomic.execute("INSERT INTO kept VALUES (4, 40)")
    assert refused(atomic, "CREATE TABLE kept (k int)").sqlstate == "42P07"
    assert status(atomic) == TransactionStatus.INERROR
    assert refused(atomic, "SELECT 1").sqlstate == "25P02"
    atomic.execute("ROLLBACK")
    assert (4, 40) in rows(other)


def test_savepoints(atomic: Connection) -> None:
    atomic.execute("BEGIN")
    atomic.execute("UPDATE kept SET v = 0 WHERE k = 1")
    atomic.execute("SAVEPOINT s")
    atomic.execute("UPDATE kept SET v = 1 WHERE k = 1")
    atomic.execute("DELETE FROM kept WHERE k = 2")
    assert refused(atomic, "SELECT 1 / 0").sqlstate == "22012"
    assert refused(atomic, "RELEASE s").sqlstate == "25P02"
    assert atomic.execute("ROLLBACK TO SAVEPOINT s").statusmessage == "ROLLBACK"
    assert status(atomic) == TransactionStatus.INTRANS
    assert rows(atomic) == [(1, 0), (2, 20), (3, 30)]
    atomic.execute("INSERT INTO kept VALUES (2, 22)")
    atomic.execute("ROLLBACK TO s")
    atomic.execute("INSERT INTO kept VALUES (5, 50)")
    assert atomic.execute("RELEASE s").statusmessage == "RELEASE"
    assert refused(atomic, "ROLLBACK TO s").sqlstate == "3B001"
    assert atomic.execute("COMMIT").statusmessage == "ROLLBACK"
    with atomic.transaction():
        atomic.execute("INSERT INTO kept VALUES (4, 40)")
        with pytest.raises(psycopg.errors.DivisionByZero), atomic.transaction():
            atomic.execute("INSERT INTO kept VALUES (6, 60)")
            atomic.execute("SELECT 1 / 0")
        with atomic.transaction():
            atomic.execute("INSERT INTO kept VALUES (7, 70)")
    assert rows(atomic) == [(1, 10), (2, 20), (3, 30), (4, 40), (7, 70)]
    assert refused(atomic, "SAVEPOINT s").sqlstate == "25P01"


def test_warnings_of_begin_and_commit(atomic: Connection) -> None:
    notices: list[tuple[str | None, str | None]] = []
    atomic.add_notice_handler(lambda notice: notices.append((notice.severity, notice.sqlstate)))
    atomic.execute("BEGIN")
    atomic.execute("BEGIN")
    atomic.execute("COMMIT AND CHAIN")
    assert status(atomic) == TransactionStatus.INTRANS
    atomic.execute("ROLLBACK")
    atomic.execute("COMMIT")
    assert notices == [("WARNING", "25001"), ("WARNING", "25P01")]


def test_several_statements_of_a_simple_query_are_one_transaction(atomic: Connection, other: Connection) -> None:
    assert refused(atomic, "INSERT INTO kept VALUES (4, 40); SELECT 1 / 0").sqlstate == "22012"
    assert status(atomic) == TransactionStatus.IDLE
    assert rows(other) == [(1, 10), (2, 20), (3, 30)]
    atomic.execute("INSERT INTO kept VALUES (4, 40); UPDATE kept SET v = v + 1 WHERE k = 4")
    assert (4, 41) in rows(other)
    atomic.execute("DELETE FROM kept WHERE k = 4; BEGIN; INSERT INTO kept VALUES (5, 50)")
    assert status(atomic) == TransactionStatus.INTRANS
    atomic.execute("ROLLBACK")
    assert (4, 41) in rows(other)
    # What was committed in between stays.
    with pytest.raises(psycopg.errors.DivisionByZero):
        atomic.execute("BEGIN; DELETE FROM kept WHERE k = 4; COMMIT; DELETE FROM kept; SELECT 1 / 0")
    assert rows(other) == [(1, 10), (2, 20), (3, 30)]


def test_messages_up_to_a_sync_are_one_transaction(atomic: Connection, other: Connection) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero), atomic.pipeline():
        atomic.execute("SET application_name = 'within'")
        atomic.execute("INSERT INTO kept VALUES (4, 40)")
        atomic.execute("SELECT 1 / 0")
        atomic.execute("INSERT INTO kept VALUES (5, 50)")
    assert status(atomic) == TransactionStatus.IDLE
    assert rows(other) == [(1, 10), (2, 20), (3, 30)]
    assert atomic.execute("SHOW application_name").fetchone() == ("",)
    with atomic.pipeline() as pipeline:
        atomic.execute("INSERT INTO kept VALUES (4, 40)")
        changed = atomic.execute("UPDATE kept SET v = v + 1 WHERE k >= 3")
        pipeline.sync()
        atomic.execute("DELETE FROM kept WHERE k = 1")
    assert changed.statusmessage == "UPDATE 2"
    assert rows(other) == [(2, 20), (3, 31), (4, 41)]


def test_a_sync_commits(atomic: Connection, other: Connection) -> None:
    raw = Pipeline(atomic)
    assert raw.run("INSERT INTO kept VALUES (4, 40)") == "INSERT 0 1"
    assert raw.run("SELECT v FROM kept WHERE k = 4") == "SELECT 1"
    assert rows(other) == [(1, 10), (2, 20), (3, 30)]
    assert raw.sync() is None
    assert (4, 40) in rows(other)
    # Who commits second finds out there.
    assert raw.run("UPDATE kept SET v = 0 WHERE k = 4") == "UPDATE 1"
    other.execute("UPDATE kept SET v = 1 WHERE k = 4")
    assert raw.sync() == "40001"
    assert raw.run("SELECT v FROM kept WHERE k = 4 AND v = 1") == "SELECT 1"
    assert raw.sync() is None
    raw.leave()
    assert status(atomic) == TransactionStatus.IDLE


def test_blocks_that_begin_and_end_between_syncs(atomic: Connection, other: Connection) -> None:
    raw = Pipeline(atomic)
    raw.run("INSERT INTO kept VALUES (4, 40)")
    assert raw.run("BEGIN") == "BEGIN"  # the block has what came before too
    assert raw.sync() is None
    assert (4, 40) not in rows(other)
    assert raw.run("ROLLBACK") == "ROLLBACK"
    raw.run("INSERT INTO kept VALUES (5, 50)")
    assert raw.run("COMMIT") == "COMMIT"
    assert (5, 50) in rows(other)
    raw.run("DELETE FROM kept")
    assert raw.run("SELECT 1 / 0") == "22012"
    assert raw.sync() is None
    raw.leave()
    assert rows(other) == [(1, 10), (2, 20), (3, 30), (5, 50)]


def test_definitions_in_a_pipeline_stand_in_front(atomic: Connection, other: Connection) -> None:
    """As what PostgreSQL cannot have in a block: it is committed by itself, behind others with what came before."""
    with atomic.pipeline():
        atomic.execute("CREATE TABLE front (k int)")
        atomic.execute("CREATE TABLE front_2 (k int)")
        atomic.execute("INSERT INTO front VALUES (1)")
    with pytest.raises(psycopg.errors.DivisionByZero), atomic.pipeline():
        atomic.execute("INSERT INTO front VALUES (2)")
        atomic.execute("DROP TABLE front_2")
        atomic.execute("INSERT INTO front VALUES (3)")
        atomic.execute("SELECT 1 / 0")
    assert other.execute("SELECT * FROM front").fetchall() == [(1,), (2,)]
    atomic.execute("DROP TABLE front")


def test_without_the_variable_messages_commit_one_by_one(atomic: Connection, other: Connection) -> None:
    with pytest.raises(psycopg.errors.DivisionByZero), other.pipeline():
        other.execute("INSERT INTO kept VALUES (4, 40)")
        other.execute("SELECT 1 / 0")
        other.execute("INSERT INTO kept VALUES (5, 50)")
    assert rows(atomic) == [(1, 10), (2, 20), (3, 30), (4, 40)]


class Pipeline:
    """A connection's messages one at a time, each with Flush behind it; Sync only where `sync` is called."""

    def __init__(self, connection: Connection) -> None:
        self._raw = connection.pgconn
        self._raw.enter_pipeline_mode()

    def run(self, sql: str) -> str:
        """The tag, or the SQLSTATE of an error."""
        self._raw.send_query_params(sql.encode(), None)
        self._raw.send_flush_request()
        self._raw.flush()
        result = self._raw.get_result()
        assert result is not None and self._raw.get_result() is None
        return ((result.error_field(DiagnosticField.SQLSTATE) or result.command_status) or b"").decode()

    def sync(self) -> str | None:
        """The SQLSTATE of an error of the commit."""
        self._raw.pipeline_sync()
        self._raw.flush()
        found = None
        while (result := self._raw.get_result()) is None or result.status != ExecStatus.PIPELINE_SYNC:
            if result is not None:
                found = (result.error_field(DiagnosticField.SQLSTATE) or b"").decode()
        return found

    def leave(self) -> None:
        self._raw.exit_pipeline_mode()


def test_copy_returning_and_cursors_see_the_block(atomic: Connection, other: Connection) -> None:
    with atomic.transaction():
        with atomic.cursor().copy("COPY kept FROM STDIN") as copy:
            copy.write("3\t33\n4\t40\n")
        changed = atomic.execute("UPDATE kept SET v = v * 2 WHERE k IN (3, 4) RETURNING k, v").fetchall()
        assert sorted(changed) == [(3, 66), (4, 80)]
        assert atomic.execute("DELETE FROM kept WHERE k = 1 RETURNING v").fetchall() == [(10,)]
        atomic.execute("DECLARE c CURSOR FOR SELECT k FROM kept ORDER BY k")
        atomic.execute("DECLARE held CURSOR WITH HOLD FOR SELECT k FROM kept ORDER BY k")
        atomic.execute("DELETE FROM kept WHERE k = 2")
        assert atomic.execute("FETCH 2 FROM c").fetchall() == [(2,), (3,)]
        with atomic.cursor().copy("COPY (SELECT * FROM kept ORDER BY k) TO STDOUT") as copy:
            assert b"".join(copy) == b"3\t66\n4\t80\n"
        assert rows(other) == [(1, 10), (2, 20), (3, 30)]
    assert atomic.execute("FETCH ALL FROM held").fetchall() == [(2,), (3,), (4,)]
    assert refused(atomic, "FETCH c").sqlstate == "34000"
    atomic.execute("CLOSE held")
    assert rows(other) == [(3, 66), (4, 80)]
    atomic.execute("BEGIN")
    with pytest.raises(psycopg.errors.InvalidTextRepresentation), atomic.cursor().copy("COPY kept FROM STDIN") as copy:
        copy.write("5\tfive\n")
    assert status(atomic) == TransactionStatus.INERROR


def test_merge_and_update_from_see_the_block(atomic: Connection) -> None:
    with atomic.transaction():
        atomic.execute("INSERT INTO kept VALUES (4, 40)")
        atomic.execute(
            "MERGE INTO kept USING (VALUES (1, 0), (4, 44), (5, 55)) AS s(k, v) ON kept.k = s.k "
            "WHEN MATCHED AND s.v = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = s.v "
            "WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)"
        )
        atomic.execute("UPDATE kept SET v = kept.v + o.v FROM kept AS o WHERE o.k = 5 AND kept.k = 4")
        assert rows(atomic) == [(2, 20), (3, 30), (4, 99), (5, 55)]
    assert rows(atomic) == [(2, 20), (3, 30), (4, 99), (5, 55)]


def test_a_block_reads_one_snapshot(atomic: Connection, other: Connection) -> None:
    with atomic.transaction():
        atomic.execute("INSERT INTO kept VALUES (4, 40)")
        other.execute("INSERT INTO kept VALUES (5, 50)")
        assert rows(atomic) == [(1, 10), (2, 20), (3, 30), (4, 40)]
    assert rows(atomic) == [(1, 10), (2, 20), (3, 30), (4, 40), (5, 50)]


@pytest.mark.parametrize(
    ("own", "others"),
    [
        ("UPDATE kept SET v = 1 WHERE k = 1", "UPDATE kept SET v = 2 WHERE k = 1"),
        ("UPDATE kept SET v = 1 WHERE k = 1", "DELETE FROM kept WHERE k = 1"),
        ("DELETE FROM kept WHERE k = 1", "UPDATE kept SET v = 2 WHERE k = 1"),
        ("INSERT INTO kept VALUES (7, 1)", "INSERT INTO kept VALUES (7, 2)"),
        ("INSERT INTO kept VALUES (1, 1)", "INSERT INTO kept VALUES (1, 2)"),
    ],
)
def test_the_first_committer_wins(atomic: Connection, other: Connection, own: str, others: str) -> None:
    atomic.execute("BEGIN")
    atomic.execute(own)
    other.execute(others)
    after = rows(other)
    error = refused(atomic, "COMMIT")
    assert error.sqlstate == "40001"
    assert "could not serialize access due to concurrent update" in str(error)
    assert status(atomic) == TransactionStatus.IDLE
    assert rows(other) == after


def test_blocks_that_write_other_rows_of_a_table_both_commit(atomic: Connection, other: Connection) -> None:
    other.execute("SET atomic_transactions = on")
    for connection, key in ((atomic, 1), (other, 2)):
        connection.execute("BEGIN")
        connection.execute(f"UPDATE kept SET v = 0 WHERE k = {key}")
        connection.execute(f"INSERT INTO kept VALUES ({key + 10}, 1)")
    atomic.execute("COMMIT")
    other.execute("COMMIT")
    assert rows(atomic) == [(1, 0), (2, 0), (3, 30), (11, 1), (12, 1)]


def test_blocks_in_opposite_order_do_not_wait_for_each_other(atomic: Connection, other: Connection) -> None:
    other.execute("CREATE TABLE second (k int PRIMARY KEY, v int)")
    other.execute("INSERT INTO second VALUES (1, 1)")
    other.execute("SET atomic_transactions = on")
    atomic.execute("BEGIN")
    other.execute("BEGIN")
    atomic.execute("UPDATE kept SET v = 1 WHERE k = 1")
    other.execute("UPDATE second SET v = 2 WHERE k = 1")
    atomic.execute("UPDATE second SET v = 1 WHERE k = 1")
    other.execute("UPDATE kept SET v = 2 WHERE k = 1")
    atomic.execute("COMMIT")
    assert refused(other, "COMMIT").sqlstate == "40001"
    assert rows(other)[0] == (1, 1)
    assert rows(other, "second") == [(1, 1)]
    other.execute("DROP TABLE second")


def test_a_table_that_is_dropped_meanwhile(atomic: Connection, other: Connection) -> None:
    other.execute("CREATE TABLE brief (k int)")
    atomic.execute("BEGIN")
    atomic.execute("INSERT INTO brief VALUES (1)")
    atomic.execute("INSERT INTO kept VALUES (4, 40)")
    other.execute("DROP TABLE brief")
    assert refused(atomic, "COMMIT").sqlstate == "40001"
    assert (4, 40) not in rows(other)


def test_a_column_with_the_name_of_the_row_ids(atomic: Connection) -> None:
    """It is like any other."""
    atomic.execute("CREATE TABLE numbered (rowid int, v int)")
    with atomic.transaction():
        atomic.execute("INSERT INTO numbered VALUES (7, 1), (8, 2)")
        atomic.execute("UPDATE numbered SET rowid = rowid + 1 WHERE rowid = 8")
    assert rows(atomic, "numbered") == [(7, 1), (9, 2)]
    atomic.execute("DROP TABLE numbered")


def test_watermarks_and_nested_types_in_a_block(atomic: Connection) -> None:
    atomic.execute("CREATE TABLE late (t timestamp, v int, WATERMARK FOR t AS t - INTERVAL '5' SECOND) APPEND ONLY")
    atomic.execute("CREATE TABLE nested (k int PRIMARY KEY, a int[], s struct<x int, y varchar>, n numeric(9, 2))")
    with atomic.transaction():
        atomic.execute("INSERT INTO late VALUES ('2024-01-01 00:01:00', 1)")
        atomic.execute("INSERT INTO late VALUES ('2024-01-01 00:00:00', 2), ('2024-01-01 00:00:56', 3)")
        atomic.execute("INSERT INTO nested VALUES (1, ARRAY[1, 2], ROW(1, 'a'), 1.25)")
        atomic.execute("UPDATE nested SET a = ARRAY[3], s = ROW(2, 'b'), n = n * 2")
    assert [v for _, v in rows(atomic, "late")] == [3, 1]
    assert atomic.execute("SELECT a, (s).y, n::varchar FROM nested").fetchone() == ([3], "b", "2.50")
    atomic.execute("DROP TABLE late")
    atomic.execute("DROP TABLE nested")


def test_views_follow_at_commit_and_only_then(atomic: Connection, other: Connection) -> None:
    other.execute("CREATE MATERIALIZED VIEW summed AS SELECT count(*) AS n, sum(v) AS total FROM kept")
    atomic.execute("BEGIN")
    atomic.execute("INSERT INTO kept VALUES (4, 40)")
    atomic.execute("UPDATE kept SET v = 0 WHERE k = 1")
    other.execute("CREATE TABLE elsewhere (k int)")
    other.execute("INSERT INTO elsewhere VALUES (1)")
    other.execute("FLUSH")  # an idle block holds up nobody
    assert rows(other, "summed") == [(3, 60)]
    assert rows(atomic, "summed") == [(3, 60)]
    atomic.execute("COMMIT")
    other.execute("FLUSH")
    assert rows(other, "summed") == [(4, 90)]
    other.execute("DROP TABLE elsewhere")
    other.execute("DROP MATERIALIZED VIEW summed")


def test_read_only_blocks(atomic: Connection) -> None:
    atomic.execute("BEGIN READ ONLY")
    assert rows(atomic) == [(1, 10), (2, 20), (3, 30)]
    assert refused(atomic, "DELETE FROM kept").sqlstate == "25006"
    assert status(atomic) == TransactionStatus.INERROR
    atomic.execute("ROLLBACK")
    atomic.execute("DELETE FROM kept WHERE k = 1")
    assert len(rows(atomic)) == 2


def test_who_leaves_rolls_back(module_server: Server, atomic: Connection) -> None:
    leaving = module_server.connect(options=ON)
    leaving.execute("BEGIN")
    leaving.execute("DELETE FROM kept")
    leaving.close()
    assert len(rows(atomic)) == 3
    idle = module_server.connect(options=ON)
    idle.execute("SET idle_in_transaction_session_timeout = '200ms'")
    idle.execute("BEGIN")
    idle.execute("DELETE FROM kept")
    time.sleep(0.5)
    assert refused(idle, "COMMIT").sqlstate == "25P03"
    assert len(rows(atomic)) == 3


def test_a_driver_without_autocommit(module_server: Server, atomic: Connection) -> None:
    """As SQLAlchemy and Django work: BEGIN goes with the first statement, parameters apart, executemany."""
    with module_server.connect(options=ON, autocommit=False) as driven:
        driven.cursor().executemany("INSERT INTO kept VALUES (%s, %s)", [(n, n) for n in range(10, 15)])
        assert driven.execute("SELECT count(*) FROM kept WHERE k = ANY(%s)", [[10, 14, 99]]).fetchone() == (2,)
        with driven.cursor("named") as named:
            named.itersize = 2
            named.execute("SELECT k FROM kept WHERE k >= %s ORDER BY k", [10])
            for (key,) in named:
                driven.execute("UPDATE kept SET v = v + 1 WHERE k = %s", [key])
        assert len(rows(atomic)) == 3
        driven.commit()
        assert rows(atomic)[3:] == [(n, n + 1) for n in range(10, 15)]
        driven.execute("DELETE FROM kept")
        driven.rollback()
        assert len(rows(driven)) == 8


def test_writers_that_retry_lose_no_update(module_server: Server, atomic: Connection) -> None:
    failures: list[str] = []

    def count() -> None:
        with module_server.connect(options=ON) as own:
            for _ in range(2):
                for _ in range(200):
                    try:
                        with own.transaction():
                            row = own.execute("SELECT v FROM kept WHERE k = 1").fetchone()
                            assert row is not None
                            own.execute("UPDATE kept SET v = %s WHERE k = 1", [row[0] + 1])
                        break
                    except psycopg.errors.SerializationFailure:
                        continue
                else:
                    failures.append("gave up")

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert rows(atomic)[0] == (1, 16)


@pytest.mark.parametrize("seed", range(2))
def test_random_blocks_do_what_they_would_in_a_dictionary(table_server: Server, seed: int) -> None:
    """Without and with a key, inlined rows and files, commits, rollbacks and savepoints; a view that follows."""
    key = " PRIMARY KEY" if seed else ""
    chance = random.Random(seed)
    with table_server.connect(options=ON) as own:
        own.execute(f"CREATE TABLE tried (k int{key}, v int)")
        own.execute("CREATE MATERIALIZED VIEW copied AS SELECT k, v, v + 1 AS w FROM tried WHERE v % 2 = 0")
        committed: dict[int, int] = {}
        for _ in range(5):
            own.execute("BEGIN")
            model = dict(committed)
            saved: dict[int, int] | None = None
            for _ in range(chance.randint(1, 5)):
                match chance.choice(["insert", "update", "delete", "savepoint", "back"]):
                    case "insert":
                        keys = {chance.randrange(100) for _ in range(chance.choice([3, 30]))}
                        added = {k: chance.randrange(100) for k in keys if seed or k not in model}
                        for_sql = ", ".join(f"({k}, {v})" for k, v in added.items())
                        if added:
                            own.execute(f"INSERT INTO tried VALUES {for_sql}")
                        model |= added
                    case "update":
                        part = chance.randint(2, 6)
                        own.execute(f"UPDATE tried SET v = v + 1 WHERE k % {part} = 0")
                        model = {k: v + (k % part == 0) for k, v in model.items()}
                    case "delete":
                        part = chance.randint(2, 6)
                        own.execute(f"DELETE FROM tried WHERE k % {part} = 1")
                        model = {k: v for k, v in model.items() if k % part != 1}
                    case "savepoint":
                        own.execute("SAVEPOINT s")
                        saved = dict(model)
                    case _ if saved is not None:
                        own.execute("ROLLBACK TO s")
                        model = dict(saved)
                assert rows(own, "tried") == sorted(model.items())
            if chance.random() < 0.25:
                own.execute("ROLLBACK")
            else:
                own.execute("COMMIT")
                committed = model
            own.execute("FLUSH")
            assert rows(own, "tried") == sorted(committed.items())
            assert rows(own, "copied") == [(k, v, v + 1) for k, v in sorted(committed.items()) if v % 2 == 0]
        own.execute("DROP TABLE tried CASCADE")


@pytest.mark.long
def test_a_crash_before_commit_leaves_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    try:
        own = server.connect()
        own.execute("CREATE TABLE t (k int)")
        own.execute("SET atomic_transactions = on")
        own.execute("BEGIN; INSERT INTO t VALUES (1); COMMIT")
        own.execute("BEGIN")
        own.execute("INSERT INTO t SELECT * FROM generate_series(1, 100000) AS s(n)")
        server.kill()
        server = Server(tmp_path / "data")
        with server.connect() as own:
            assert own.execute("SELECT * FROM t").fetchall() == [(1,)]
    finally:
        server.kill()
