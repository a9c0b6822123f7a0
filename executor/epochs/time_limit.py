"""Time limits for computations by a cursor, so that one view does not hold up all others."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.locks import RankedLock

_POLL_S = 0.1


@contextmanager
def interrupted_after(cursor: Cursor, seconds: float) -> Iterator[None]:
    """While entered, the cursor is interrupted once after `seconds`; its query then raises DuckDB's error."""
    timer = threading.Timer(seconds, cursor.interrupt)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


class TimeLimit:
    """Interrupts a cursor when its time is over. From the first use on, a thread watches the time."""

    def __init__(self) -> None:
        self._lock = RankedLock()
        self._watched: Cursor | None = None
        self._until = 0.0
        self._is_over = False
        self._begun = threading.Event()
        self._thread: threading.Thread | None = None

    @contextmanager
    def of(self, cursor: Cursor, seconds: float) -> Iterator[None]:
        """While entered, the computation may take `seconds`; raises Error 57014 after that. 0 is no limit."""
        if not seconds:
            yield
            return
        self._watch(cursor, seconds)
        try:
            yield
        except DuckDBError as error:
            if not self._is_over:
                raise
            raise Error(
                f"an epoch of it took longer than {seconds:g} s",
                errors.QUERY_CANCELED,
                hint="The system parameter view_time_limit_ms allows more.",
            ) from error
        finally:
            with self._lock:
                self._watched = None

    def _watch(self, cursor: Cursor, seconds: float) -> None:
        with self._lock:
            self._watched, self._until, self._is_over = cursor, time.monotonic() + seconds, False
        self._begun.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="time limit", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while self._begun.wait():
            time.sleep(_POLL_S)
            with self._lock:
                if self._watched is None:
                    self._begun.clear()
                elif time.monotonic() > self._until:
                    self._is_over = True
                    self._watched.interrupt()  # repeated, because an interrupt between two statements has no effect
