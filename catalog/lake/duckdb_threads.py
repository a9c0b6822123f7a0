"""How many threads work for DuckDB's queries: one, and all while there is large work.

To wake another thread for each step of a small query costs more than that thread gives: with two threads on two cores,
an INSERT and the epoch of ten views took 1.3 times as long as with one, and 1.5 times the processor time (DuckDB
1.5.5). The number is one for the whole database, and never falls while queries run: DuckDB ends a thread after its
present task, and waits for ever if that task queries DuckLake's catalog. So the further threads start with the first
large work and stay; afterwards they rest (`catalog.lake.resting_threads`) until the next large work.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from sparkwave.catalog.lake.resting_threads import Rest
from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.locks import RankedLock

# Work that reads or writes more rows is large: DuckDB divides work by row groups of 122,880 rows.
LARGE_ROWS = 250_000
# The further threads rest this many seconds after large work: more of it may follow.
LINGER_S = 0.05


@dataclass(frozen=True)
class Room:
    """Where threads run: on which cores, and with which niceness."""

    cores: frozenset[int]
    niceness: int


# That of this process; without cores where threads cannot be confined to some.
ALL_ROOM = Room(frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset(), os.nice(0))


class _Work:
    """Large work, as long as it is referenced."""


class Threads:
    """Sets the number of threads of a database, which nothing else uses yet."""

    def __init__(self, cursor: Cursor) -> None:
        """The cursor is for this object alone; its database has the most threads that there may be."""
        self._cursor = cursor
        [(self.most,)] = cursor.execute("SELECT current_setting('threads')").fetchall()
        self._lock = RankedLock()
        cursor.execute("SET threads = 1")
        self._started: frozenset[int] = frozenset()
        self._confined: dict[int, Room] = {}
        self._rest: Rest | None = None
        self._large: weakref.WeakSet[object] = weakref.WeakSet()
        self._large_at = 0.0

    def provide(self, rows: Callable[[], int], by: object = None) -> None:
        """Let all threads work if work over so many rows is large: while `by`, the work's cursor, is referenced.

        They work for LINGER_S seconds at least.
        """
        if self.most == 1 or rows() <= LARGE_ROWS:
            return
        with self._lock:
            if by is not None:
                self._large.add(by)
            self._large_at = time.monotonic()
            rest = self._rest = self._rest or self._start()
        rest.end()

    @contextlib.contextmanager
    def during(self, rows: Callable[[], int]) -> Iterator[None]:
        """Let all threads work while entered, if work over so many rows is large."""
        work = _Work()
        self.provide(rows, work)
        yield

    @property
    def resting(self) -> int:
        """The number of threads that rest now."""
        return self._rest.resting if self._rest is not None else 0

    def close(self) -> None:
        """Let no thread rest any more. Call it before the database is closed."""
        if self._rest is not None:
            self._rest.close()

    def _start(self) -> Rest:
        """Start the further threads, which rest whenever there is no large work."""
        before = _threads()
        self._cursor.execute(f"SET threads = {self.most}")
        self._started = _threads() - before
        self._place_own()
        return Rest(self._cursor, self.most, self._busy_s)

    def _busy_s(self) -> float:
        """Return for how many seconds all threads are needed at least; 0 or less if there is no large work."""
        return LINGER_S if self._large else self._large_at + LINGER_S - time.monotonic()

    @property
    def own(self) -> frozenset[int]:
        """The native ids of the threads that DuckDB has started, which work for all queries."""
        return self._started - {thread.native_id for thread in threading.enumerate() if thread.native_id is not None}

    def confine(self, thread: int, room: Room | None) -> None:
        """Give a thread, by its native id, less room, and DuckDB's own threads with it; None gives all back.

        While several threads are confined, DuckDB's own have the least room of all. No other query waits for that
        room: the thread that asks computes what DuckDB's own threads have not begun.
        """
        with self._lock:
            if self._confined.get(thread) == room:
                return
            self._confined.pop(thread, None)
            if room is not None:
                self._confined[thread] = room
            _place((thread,), room or ALL_ROOM)
            self._place_own()

    def _place_own(self) -> None:
        _place(self.own, min(self._confined.values(), key=lambda room: len(room.cores), default=ALL_ROOM))


def _threads() -> frozenset[int]:
    """Return the native ids of this process's threads; none where the system does not tell."""
    with contextlib.suppress(OSError):
        return frozenset(map(int, os.listdir("/proc/self/task")))
    return frozenset()


def _place(threads: Collection[int], room: Room) -> None:
    for thread in threads if ALL_ROOM.cores else ():
        with contextlib.suppress(OSError):  # it may have ended
            os.sched_setaffinity(thread, room.cores)
            if os.getpriority(os.PRIO_PROCESS, thread) != room.niceness:
                os.setpriority(os.PRIO_PROCESS, thread, room.niceness)
