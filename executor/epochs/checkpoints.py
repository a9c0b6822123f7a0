"""Checkpoints: what epochs have made of views is stored, with the epoch, by one transaction of the lake.

One comes after so many barrier intervals with changes, and whenever somebody needs it. Barriers go on meanwhile, and so
do other commits: those that nobody waits for let barriers go first, and take a small part of the time. After a crash
views start at the epoch that is stored, and catch up by the tables' change feeds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from sparkwave.catalog.counters import BARRIER_FAILURES
from sparkwave.catalog.lake.translation import DuckDBError, is_conflict
from sparkwave.catalog.locks import Rank, RankedRLock
from sparkwave.catalog.names import LakeTable
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.memory.shared_buffer import Frozen, SharedBuffer

logger = logging.getLogger(__name__)

# How often a change of the parameters is looked for by who waits for the next checkpoint.
LOOK_S = 1.0
# One that a commit of somebody else's is in the way of is tried again at once, so often.
MOST_CONFLICTS = 3
# None comes for so many times the time of the last one: others want the processor.
REST = 9
# A statement of one that nobody waits for waits so long for a barrier to end.
PATIENCE_S = 0.2


class Checkpoints:
    """Stores the shared buffer, from any thread."""

    def __init__(self, store: Store, buffer: SharedBuffer, interval_ms: Callable[[], int]) -> None:
        self._store, self._buffer, self._interval_ms = store, buffer, interval_ms
        self._cursor = store.lake.cursor()
        self.stored = buffer.epoch  # the newest of which it is known that the lake has what it has made of views
        self._lock = RankedRLock(Rank.CHECKPOINT)
        self._waiting: list[None] = []  # one for each who waits for the lock, or holds it
        self._is_due, self._stopping = threading.Event(), threading.Event()
        self._no_barrier = threading.Event()  # set while none runs
        self._no_barrier.set()
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

    @contextmanager
    def between(self) -> Iterator[None]:
        """While entered, none runs but by this thread; one that does gets done with it."""
        self._waiting.append(None)
        try:
            with self._lock:
                yield
        finally:
            self._waiting.pop()

    @contextmanager
    def beside_a_barrier(self) -> Iterator[None]:
        """While entered, one that nobody waits for stands still, as far as it can."""
        self._no_barrier.clear()
        try:
            yield
        finally:
            self._no_barrier.set()

    def run(self) -> None:
        """Store what there is now. Raises Error, or DuckDB's, and then all of it is tried again later."""
        with self.between():
            self._store_all()

    def _store_all(self) -> None:
        for attempt in range(MOST_CONFLICTS):
            epoch = self._buffer.epoch
            if not self._buffer.has_changes:
                self.stored = epoch
                return
            try:
                self._write()
                return
            except DuckDBError as error:
                if not is_conflict(error) or attempt == MOST_CONFLICTS - 1:
                    raise

    def attempt(self) -> None:
        """The same for who goes on without it."""
        self._attempt(self.between())

    def _attempt(self, turn: AbstractContextManager[object]) -> None:
        try:
            with turn:
                self._store_all()
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
            frozen.store(self._cursor, self._give_way)
            self._give_way()
            self._store.set_epoch(self._cursor, frozen.epoch)
        self._buffer.stored(frozen)
        self.stored = frozen.epoch

    def _give_way(self) -> None:
        """Wait for a barrier to end, a little, unless somebody waits for the checkpoint."""
        until = time.monotonic() + PATIENCE_S
        while not self._waiting and time.monotonic() < until and not self._no_barrier.wait(0.01):
            pass

    def _run(self) -> None:
        took_s = 0.0
        while True:
            self._is_due.wait()
            self._is_due.clear()
            if not self._waited(REST * took_s):
                return
            began = time.thread_time()
            self._attempt(self._lock)
            took_s = time.thread_time() - began
            if self._buffer.has_changes:
                self._is_due.set()

    def _waited(self, least_s: float) -> bool:
        """Wait for an interval, and so long at least. Returns whether none is over because of the end."""
        began = time.monotonic()
        while (left_s := began + max(self._interval_ms() / 1000, least_s) - time.monotonic()) > 0:
            if self._stopping.wait(min(left_s, LOOK_S)):
                return False
        return not self._stopping.is_set()
