"""Time limits of statements: one thread serves all, since to start a thread takes longer than most statements."""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable


class Alarms:
    """Calls functions after a time, unless the call is cancelled. The functions must not block."""

    def __init__(self) -> None:
        self._pending: list[tuple[float, int, Callable[[], None]]] = []
        self._off: set[int] = set()
        self._numbers = itertools.count()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def set(self, seconds: float, ring: Callable[[], None]) -> int:
        """Call `ring` after so many `seconds`, on the thread of alarms. Returns a number for `call_off`."""
        with self._changed:
            number = next(self._numbers)
            heapq.heappush(self._pending, (time.monotonic() + seconds, number, ring))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="alarms", daemon=True)
                self._thread.start()
            if self._pending[0][1] == number:
                self._changed.notify()
            return number

    def call_off(self, number: int) -> None:
        """Cancel an alarm: once this has returned, its function is not called. Call it at most once for each alarm."""
        with self._changed:
            if any(pending[1] == number for pending in self._pending):
                self._off.add(number)

    def _run(self) -> None:
        with self._changed:
            while True:
                while self._pending and self._pending[0][1] in self._off:
                    self._off.discard(heapq.heappop(self._pending)[1])
                if not self._pending:
                    self._changed.wait()
                    continue
                due, _, ring = self._pending[0]
                if due > time.monotonic():
                    self._changed.wait(due - time.monotonic())
                    continue
                heapq.heappop(self._pending)
                ring()


ALARMS = Alarms()
