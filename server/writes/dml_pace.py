"""The rate limit of a table: how many rows a second statements may write into it.

A statement waits until its rows are covered, and then writes them at once; statements of one table wait one after the
other. The rows that an UPDATE, DELETE or MERGE changes are known only when it has run, so such a statement starts
once earlier rows are covered, and the next statement waits for its rows.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkwave.catalog.locks import check_free

# The time for which rows of the limit may be saved up, and after which a waiting statement looks at the limit again.
_TICK_S = 0.05


@dataclass(eq=False)
class _Turn:
    """The rows of a table that are not covered yet; below zero if more may be written at once.

    The waiting statement of the table holds the lock.
    """

    at: float
    owed: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def cover(self, limit: int, now: float) -> None:
        """Cover the rows of the time since the last call."""
        self.owed = max(self.owed - limit * (now - self.at), -limit * _TICK_S)
        self.at = now


class DmlPace:
    """The paces of all tables with a limit, shared by all sessions."""

    def __init__(self, limit_of: Callable[[int], int | None]) -> None:
        """`limit_of` returns a table's present limit by its id; None without a limit, 0 to pause."""
        self._limit_of = limit_of
        self._turns: dict[int, _Turn] = {}

    def wait(self, table_id: int, rows: int, check: Callable[[], None]) -> None:
        """Wait until so many rows may be written. `check` is called meanwhile; its error ends the wait."""
        limit = self._limit_of(table_id)
        if limit is None:
            self._turns.pop(table_id, None)
            return
        check_free()
        turn = self._turn(table_id)
        while not turn.lock.acquire(timeout=_TICK_S):
            check()
        try:
            turn.cover(limit, time.monotonic())
            turn.owed += rows
            while (limit := self._limit_of(table_id)) is not None and (limit == 0 or turn.owed > 0):
                check()
                time.sleep(min(turn.owed / limit, _TICK_S) if limit else _TICK_S)
                turn.cover(limit, time.monotonic())
        except BaseException:
            turn.owed = max(turn.owed - rows, 0.0)
            raise
        finally:
            turn.lock.release()

    def spend(self, table_id: int, rows: int) -> None:
        """Note rows that a statement has written without waiting for them."""
        if self._limit_of(table_id) is not None:
            turn = self._turn(table_id)
            with turn.lock:
                turn.owed += rows

    def _turn(self, table_id: int) -> _Turn:
        return self._turns.setdefault(table_id, _Turn(time.monotonic()))
