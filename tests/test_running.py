"""A cancel reaches a statement whenever it comes, and never the next one."""

from __future__ import annotations

import threading
import time

import duckdb
import pytest

from sparkwave.catalog.errors import Error
from sparkwave.server.session.running import Running, RunningCursor


class Deaf:
    """As a DuckDB connection before its query has begun: the first interrupts are forgotten."""

    def __init__(self, deaf_for: int) -> None:
        self.heard = threading.Event()
        self._left = deaf_for

    def interrupt(self) -> None:
        self._left -= 1
        if self._left < 0:
            self.heard.set()


def test_a_forgotten_interrupt_comes_again() -> None:
    running, cursor = Running(), Deaf(3)
    with RunningCursor(running, cursor):
        running.cancel("user request")
        assert cursor.heard.wait(10)


def test_a_cancelled_statement_begins_nothing_more() -> None:
    running = Running()
    running.cancel("user request")
    with pytest.raises(Error, match="canceling statement due to user request"), RunningCursor(running, Deaf(0)):
        pass
    running.forget_cancel()
    with RunningCursor(running, Deaf(0)) as entered:
        assert entered is None


def test_the_next_statement_is_left_alone() -> None:
    running, first, second = Running(), Deaf(0), Deaf(0)
    with RunningCursor(running, first):
        running.cancel("user request")
    running.forget_cancel()
    with RunningCursor(running, second):
        assert not second.heard.wait(0.2)


@pytest.mark.parametrize("after_ms", [0, 0.05, 0.1, 0.2, 0.5, 1, 2, 5])
def test_queries_of_duckdb_end(after_ms: float) -> None:
    """However long after the cursor is there the cancel comes."""
    connection = duckdb.connect()
    running = Running()

    def cancel() -> None:
        time.sleep(after_ms / 1000)
        running.cancel("user request")

    for _ in range(10):
        running.forget_cancel()
        thread = threading.Thread(target=cancel)
        thread.start()
        started = time.monotonic()
        try:
            with RunningCursor(running, connection), pytest.raises(duckdb.InterruptException):
                connection.execute("SELECT sum(a.range * b.range) FROM range(1000000) AS a, range(1000000) AS b")
        except Error as error:  # before the cursor was there
            assert error.sqlstate == "57014"
        thread.join()
        assert time.monotonic() - started < 10
