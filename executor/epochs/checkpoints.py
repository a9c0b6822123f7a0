"""Checkpoints: one transaction of the lake stores the changes that epochs made to views, together with the epoch.

A checkpoint follows a number of barrier intervals with changes, or a request. Barriers and other commits go on
meanwhile. A checkpoint that nobody waits for gives way to barriers and takes a small part of the time. After a crash
views start at the stored epoch and catch up by the tables' change feeds.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from sparkwave.catalog.counters import BARRIER_FAILURES
from sparkwave.catalog.lake.translation import DuckDBError, is_conflict, is_missing_table
from sparkwave.catalog.locks import Rank, RankedRLock
from sparkwave.catalog.names import LakeTable
from sparkwave.catalog.stores.epoch_store import store_epoch
from sparkwave.catalog.stores.job_store import finish_job
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.memory.shared_buffer import Frozen, SharedBuffer

logger = logging.getLogger(__name__)

# A thread that waits for the next checkpoint looks for a changed parameter at this interval.
LOOK_S = 1.0
# A checkpoint that conflicts with another commit, or writes to a table that was dropped, is tried this often.
MOST_CONFLICTS = 6
# The wait before the second try, in which the buffer forgets a dropped view; each further wait is twice as long.
DROP_S = 0.02
# After a checkpoint of t seconds none follows for REST * t seconds, to leave the processor to others.
REST = 9
# Before each statement, a checkpoint that nobody waits for waits this long for a barrier to end.
PATIENCE_S = 0.2


class Checkpoints:
    """Stores the shared buffer in the lake. Any thread may call the methods."""

    def __init__(self, store: Store, buffer: SharedBuffer, interval_ms: Callable[[], int]) -> None:
        self._store, self._buffer, self._interval_ms = store, buffer, interval_ms
        self._cursor = store.lake.cursor()
        self.stored = buffer.epoch  # the newest epoch that is known to be stored in the lake
        self._lock = RankedRLock(Rank.CHECKPOINT)
        self._waiting: list[None] = []  # one entry for each thread that waits for the lock or holds it
        self._is_due, self._stopping = threading.Event(), threading.Event()
        self._no_barrier = threading.Event()  # set while no barrier runs
        self._no_barrier.set()
        self._thread = threading.Thread(target=self._run, name="checkpoints", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread, and store the remaining changes."""
        self._stopping.set()
        self._is_due.set()
        if self._thread.is_alive():
            self._thread.join(30)
        self.attempt()

    def notify(self) -> None:
        """Tell the thread that there are changes to store."""
        self._is_due.set()

    @contextmanager
    def between(self) -> Iterator[None]:
        """While entered, no other thread runs a checkpoint.

        A checkpoint in progress stops giving way and finishes first.
        """
        self._waiting.append(None)
        try:
            with self._lock:
                yield
        finally:
            self._waiting.pop()

    @contextmanager
    def beside_a_barrier(self) -> Iterator[None]:
        """While entered, a checkpoint that nobody waits for pauses as far as it can."""
        self._no_barrier.clear()
        try:
            yield
        finally:
            self._no_barrier.set()

    def run(self, gives_way: bool = False) -> None:
        """Store all present changes; `gives_way` as a checkpoint that nobody waits for.

        Raises Error, or DuckDB's errors; then a later checkpoint stores them.
        """
        with self._lock if gives_way else self.between():
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
                if not (is_conflict(error) or is_missing_table(error)) or attempt == MOST_CONFLICTS - 1:
                    raise
                self._stopping.wait(DROP_S * 2**attempt)  # a table was dropped, and the buffer will know in a moment

    def attempt(self) -> None:
        """Store all present changes; a failure is only logged."""
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

        with self._store.lake.late_transaction(self._cursor, tables) as is_alone:
            [frozen] = found
            give_way = (lambda: None) if is_alone else self._give_way  # others wait for it already
            with self._store.lake.threads.during(lambda: frozen.changes):
                frozen.store(self._cursor, give_way)
            give_way()
            catalog = self._store.catalog
            for job in (job for job in catalog.jobs if job.id in frozen.creations):
                finish_job(self._cursor, job.id, catalog.steady_group(job))
            store_epoch(self._cursor, frozen.epoch)
        if frozen.creations:
            self._store.reload()  # first, so that each barrier finds the views among the created ones or the creations
        self._buffer.stored(frozen)
        self.stored = frozen.epoch

    def _give_way(self) -> None:
        """Wait up to PATIENCE_S for a barrier to end, unless somebody waits for the checkpoint."""
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
        """Wait for an interval, and at least `least_s` seconds. Returns False if the server stops meanwhile."""
        began = time.monotonic()
        while (left_s := began + max(self._interval_ms() / 1000, least_s) - time.monotonic()) > 0:
            if self._stopping.wait(min(left_s, LOOK_S)):
                return False
        return not self._stopping.is_set()
