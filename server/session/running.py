"""A session's running statement: its cursors, its cancel and its time limit."""

from __future__ import annotations

import threading
from typing import Protocol

from sparkwave.catalog.errors import QUERY_CANCELED, Error
from sparkwave.catalog.locks import RankedLock
from sparkwave.server.session.alarm import ALARMS

_AGAIN_S = 0.02


class Interruptible(Protocol):
    """Running work that another thread can stop."""

    def interrupt(self) -> None: ...


class Running:
    """The cursors of a session's statement, and whether the statement was cancelled.

    DuckDB drops an interrupt that comes before its query has begun, so a cancel interrupts repeatedly until no cursor
    is left.
    """

    def __init__(self) -> None:
        self._cursors: set[Interruptible] = set()
        self._cancelled = threading.Event()
        self._reason = ""
        self._lock = RankedLock()  # held to interrupt and to clear a cancel: no late interrupt hits the next statement

    def add(self, cursor: Interruptible) -> None:
        """Raise Error 57014 if the statement has been cancelled."""
        self._cursors.add(cursor)
        try:
            self.check()
        except Error:
            self._cursors.discard(cursor)
            raise

    def remove(self, cursor: Interruptible) -> None:
        self._cursors.discard(cursor)

    def cancel(self, reason: str = "user request") -> None:
        """Stop the statement. Called from another thread."""
        self._reason = reason
        self._cancelled.set()
        self._interrupt()

    def _interrupt(self) -> None:
        with self._lock:
            cursors = list(self._cursors) if self._cancelled.is_set() else []
            for cursor in cursors:
                cursor.interrupt()
        if cursors:
            ALARMS.set(_AGAIN_S, self._interrupt)

    def forget_cancel(self) -> None:
        """Clear the cancel of the previous statement, when the next one starts."""
        if self._cancelled.is_set():
            with self._lock:
                self._cancelled.clear()

    def check(self) -> None:
        """Raise Error 57014 if the statement has been cancelled."""
        if self._cancelled.is_set():
            raise Error(f"canceling statement due to {self._reason}", QUERY_CANCELED)

    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()


class RunningStatement:
    """While entered, one statement runs: a cancel stops it, or a limit in milliseconds (0: no limit)."""

    def __init__(self, running: Running, limit_ms: int) -> None:
        self._running, self._limit_ms = running, limit_ms
        self._alarm: int | None = None

    def __enter__(self) -> None:
        self._running.forget_cancel()
        if self._limit_ms:
            self._alarm = ALARMS.set(self._limit_ms / 1000, lambda: self._running.cancel("statement timeout"))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._alarm is not None:
            ALARMS.call_off(self._alarm)
        if isinstance(error, Error) and error.sqlstate == QUERY_CANCELED:
            self._running.check()  # raises the same error with its reason


class RunningCursor:
    """While entered, a cancel interrupts the cursor."""

    def __init__(self, running: Running, cursor: Interruptible) -> None:
        self._running, self._cursor = running, cursor

    def __enter__(self) -> None:
        self._running.add(self._cursor)

    def __exit__(self, *_: object) -> None:
        self._running.remove(self._cursor)
