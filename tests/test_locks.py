"""Locks are taken in one order, and what once stood still for good goes on."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from servers import Server, rows

from sparkwave.catalog.errors import Error
from sparkwave.catalog.locks import Rank, RankedLock, RankedRLock, check_free, is_free


def test_locks_are_taken_by_rank_and_name() -> None:
    barrier, commit = RankedRLock(Rank.BARRIER), RankedRLock(Rank.COMMIT)
    one, other = RankedRLock(Rank.TABLE, "a"), RankedRLock(Rank.TABLE, "b")
    with barrier, one, other, commit, barrier, RankedLock():
        pass
    assert is_free()
    for first, second in ((commit, barrier), (other, one), (commit, other)):
        with first:
            with pytest.raises(Error, match=f"the lock {second!r} must not be taken while {first!r} is held"):
                second.acquire()
            assert not is_free()
        assert is_free()


def test_a_lock_that_is_not_reentrant_is_not_taken_twice() -> None:
    leaf = RankedLock()
    with leaf, pytest.raises(Error, match="must not be taken while LEAF is held"):
        leaf.acquire()
    with RankedLock(), pytest.raises(Error, match="LEAF"):
        leaf.acquire()


def test_what_was_taken_again_still_counts() -> None:
    table, commit = RankedRLock(Rank.TABLE, "a"), RankedRLock(Rank.COMMIT)
    with table, commit:
        with table:
            pass
        with pytest.raises(Error, match="must not be taken while COMMIT"):
            RankedRLock(Rank.TABLE, "b").acquire()


def test_nobody_waits_while_he_holds_a_lock() -> None:
    check_free()
    with RankedLock(Rank.GROUPS), pytest.raises(Error, match="while the lock GROUPS is held"):
        check_free()


def test_a_lock_not_had_in_time_is_not_held() -> None:
    lock = RankedLock()
    taken, done = threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            taken.set()
            done.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    assert taken.wait(10)
    assert not lock.acquire(timeout=0.01)
    assert is_free()
    done.set()
    holder.join(10)


def _altered(server: Server, table: str, column: str) -> None:
    """Give a table a column while others write."""
    with server.connect(options="-c statement_timeout=120s") as own:
        own.execute(f"ALTER TABLE {table} ADD COLUMN {column} int DEFAULT 7")


def test_a_sinks_target_is_altered_while_it_is_written(
    in_process_server: Server, connection: psycopg.Connection[Any]
) -> None:
    """Whatever the other tables that an epoch writes are called, and whoever else writes them."""
    for table in ("origin", "low", "target", "zenith"):
        connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v int)")
    for table in ("low", "target", "zenith"):
        connection.execute(f"CREATE SINK into_{table} INTO {table} (id, v) FROM origin")
    connection.execute("CREATE MATERIALIZED VIEW counted AS SELECT count(*) AS n FROM target")
    over = threading.Event()

    def write(table: str, number: int) -> None:
        with in_process_server.connect() as own:
            while not over.is_set():
                own.execute(f"INSERT INTO {table} (id, v) VALUES ({number}, 1)")
                number += 1

    writers = [threading.Thread(target=write, args=given) for given in (("origin", 0), ("target", 1_000_000))]
    for writer in writers:
        writer.start()
    try:
        for number in range(2):
            _altered(in_process_server, "target", f"c{number}")
    finally:
        over.set()
        for writer in writers:
            writer.join(30)
    connection.execute("FLUSH")
    [(count,)] = rows(connection, "SELECT count(*) FROM target")
    assert rows(connection, "SELECT n FROM counted") == [(count,)]
    assert count > rows(connection, "SELECT count(*) FROM origin")[0][0] > 0
