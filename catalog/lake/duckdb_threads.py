"""How many threads DuckDB's queries have: one until there is large work, and from then on all.

To wake another thread for each step of a small query costs more than that thread gives: with two threads on two cores,
an INSERT and the epoch of ten views took 1.3 times as long as with one, and 1.5 times the processor time (DuckDB
1.5.5). The number is one for the whole database, and never falls while queries run: DuckDB ends a thread after its
present task, and waits for ever if that task queries DuckLake's catalog.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.locks import RankedLock

# Work that reads or writes more rows is large: DuckDB divides work by row groups of 122,880 rows.
LARGE_ROWS = 250_000


@dataclass(frozen=True)
class Room:
    """Where threads run: on which cores, and with which niceness."""

    cores: frozenset[int]
    niceness: int


# That of this process; without cores where threads cannot be confined to some.
ALL_ROOM = Room(frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset(), os.nice(0))


class Threads:
    """Sets the number of threads of a database, which nothing else uses yet."""

    def __init__(self, cursor: Cursor) -> None:
        """The cursor is for this object alone; its database has the most threads that there may be."""
        self._cursor = cursor
        [(self.most,)] = cursor.execute("SELECT current_setting('threads')").fetchall()
        self._lock = RankedLock()
        self._has_all = self.most == 1
        cursor.execute("SET threads = 1")
        self._started: frozenset[int] = frozenset()
        self._confined: dict[int, Room] = {}

    def provide(self, rows: Callable[[], int]) -> None:
        """Start all threads if work over so many rows is large. The rows are counted only as long as it matters."""
        if not self._has_all and rows() > LARGE_ROWS:
            with self._lock:
                before = _threads()
                self._cursor.execute(f"SET threads = {self.most}")
                self._started = _threads() - before
                self._has_all = True
                self._place_own()

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
