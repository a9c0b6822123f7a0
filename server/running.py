"""What a session runs, for as long as it does: others may cancel it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from catalog.errors import QUERY_CANCELED, Error
from server.alarm import ALARMS
from server.variable_kinds import milliseconds

if TYPE_CHECKING:
    from server.session import Session


class RunningStatement:
    """While entered, one statement runs: a cancel or `statement_timeout` stops it."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._alarm: int | None = None

    def __enter__(self) -> None:
        session = self._session
        session.forget_cancel()
        limit = milliseconds(session.get("statement_timeout"))
        if limit:
            self._alarm = ALARMS.set(limit / 1000, lambda: session.cancel("statement timeout"))

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._alarm is not None:
            ALARMS.call_off(self._alarm)
        if isinstance(error, Error) and error.sqlstate == QUERY_CANCELED:
            self._session.check_cancelled()  # which knows the reason


class Interruptible(Protocol):
    """What runs and can be stopped from another thread."""

    def interrupt(self) -> None: ...


class RunningCursor:
    """While entered, the cursor is one of the `running` things, which a cancel interrupts."""

    def __init__(self, running: set[Interruptible], cursor: Interruptible, check: Callable[[], None]) -> None:
        self._running, self._cursor, self._check = running, cursor, check

    def __enter__(self) -> None:
        self._check()
        self._running.add(self._cursor)

    def __exit__(self, *_: object) -> None:
        self._running.discard(self._cursor)
