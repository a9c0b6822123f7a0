"""Checkpoints: what epochs have made of views is stored, with the epoch, by one transaction of the lake.

One comes after so many barrier intervals with changes, and whenever somebody needs it. Barriers go on meanwhile, and so
do other commits. After a crash views start at the epoch that is stored, and catch up by the tables' change feeds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from catalog.locks import Rank, RankedRLock
from catalog.metrics import BARRIER_FAILURES
from catalog.names import LakeTable
from catalog.store import Store
from catalog.translation import DuckDBError, is_conflict
from executor.shared_buffer import Frozen, SharedBuffer

logger = logging.getLogger(__name__)

# How often a change of the parameters is looked for by who waits for the next checkpoint.
LOOK_S = 1.0
# One that a commit of somebody else's is in the way of is tried again at once, so often.
MOST_CONFLICTS = 3


class Checkpoints:
    """Stores the shared buffer, from any thread."""

    def __init__(self, store: Store, buffer: SharedBuffer, interval_ms: Callable[[], int]) -> None:
        self._store, self._buffer, self._interval_ms = store, buffer, interval_ms
        self._cursor = store.lake.cursor()
        self.stored = buffer.epoch  # the newest of which it is known that the lake has what it has made of views
        self.lock = RankedRLock(Rank.CHECKPOINT)  # held while one runs, and by who must be between two of them
        self._is_due, self._stopping = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and store what there is."""
        self._stopping.set()
        self._is_due.set()
        if self._thread.is_alive():
            self._thread.join(30)
        self.attempt()

    def notify(self) -> None:
        """There is something to store."""
        self._is_due.set()

    def run(self) -> None:
        """Store what there is now. Raises Error, or DuckDB's, and then all of it is tried again later."""
        with self.lock:
            for attempt in range(MOST_CONFLICTS):
                epoch = self._buffer.epoch
                if not self._buffer.has_changes:
                    self.stored = epoch
                    return
                try:
                    self._write()
                except DuckDBError as error:
                    if not is_conflict(error) or attempt == MOST_CONFLICTS - 1:
                        raise

    def attempt(self) -> None:
        """The same for who goes on without it."""
        try:
            self.run()
        except Exception:
            logger.warning("a checkpoint failed; another one is tried later", exc_info=True)
            BARRIER_FAILURES.inc()

    def _write(self) -> None:
        found: list[Frozen] = []

        def tables() -> list[LakeTable]:
            found.append(self._buffer.freeze(self._cursor))
            return found[0].tables

        with self._store.lake.late_transaction(self._cursor, tables):
            [frozen] = found
            frozen.store(self._cursor)
            self._store.set_epoch(self._cursor, frozen.epoch)
        self._buffer.stored(frozen)
        self.stored = frozen.epoch

    def _run(self) -> None:
        while True:
            self._is_due.wait()
            self._is_due.clear()
            if not self._waited():
                return
            self.attempt()
            if self._buffer.has_changes:
                self._is_due.set()

    def _waited(self) -> bool:
        """Wait for an interval. Returns whether none is over because of the end."""
        began = time.monotonic()
        while (left_s := began + self._interval_ms() / 1000 - time.monotonic()) > 0:
            if self._stopping.wait(min(left_s, LOOK_S)):
                return False
        return not self._stopping.is_set()
