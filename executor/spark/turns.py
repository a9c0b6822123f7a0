"""Turns of backfill steps in a resource group.

A node runs as many tasks at once as it has slots, and other tasks wait in Spark. But each step that waits there has a
session of its own, which starts worker processes with a database of their own (`executor.spark.kernel`): eight steps at
once on a node with one slot start eight. So steps wait here. Workers then serve one job after the other, and DuckDB's
cache of files serves all views that are created over the same tables.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_POLL_S = 0.1


class Turns:
    """Lets a number of steps run at a time, in the order in which they ask."""

    def __init__(self, most: int) -> None:
        self._most, self._running = most, 0
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, check: Callable[[], None]) -> Iterator[None]:
        """Wait for a turn, which lasts while the context is entered. `check` is called again and again to give up."""
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
        try:
            while not self._take(ticket):
                check()
        except BaseException:
            with self._changed:
                self._waiting.remove(ticket)
                self._changed.notify_all()
            raise
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def _take(self, ticket: object) -> bool:
        """Wait a moment for a turn. Returns whether the ticket has it."""

        def is_next() -> bool:
            return self._running < self._most and self._waiting[0] is ticket

        with self._changed:
            if not self._changed.wait_for(is_next, _POLL_S):
                return False
            self._waiting.popleft()
            self._running += 1
            self._changed.notify_all()
            return True
