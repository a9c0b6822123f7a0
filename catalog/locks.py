"""Locks with a fixed order, so that no two threads wait for each other.

A thread that holds a lock may take only locks of a higher rank. Any other attempt is an error, even if no other thread
holds the lock at that moment: it is an error wherever a deadlock is possible.
"""

from __future__ import annotations

import threading
from enum import IntEnum
from types import TracebackType

from sparkwave.catalog.errors import Error


class Rank(IntEnum):
    """The order of the locks. A thread that holds a LEAF lock takes no other lock."""

    AUDITS = 0  # a view is compared with its query
    JOBS = 1  # jobs are replaced by other jobs with the same ids
    BARRIER = 2  # an epoch runs, or work that must be between two epochs
    CHECKPOINT = 3  # the views' changes of epochs are stored
    JOB_GROUP = 4  # a job takes or returns its resource group
    GROUPS = 5
    TABLE = 6  # a table's rows are written; several tables in the order of names
    SEQUENCE = 7  # a statement draws from a sequence; several in the order of ids
    COMMIT = 8  # transactions of the catalog, and every commit
    SYSTEM_VIEWS = 9
    BUFFER = 10  # the views of epochs change in memory
    SERVING = 11  # the copies in memory change
    END = 12  # a COMMIT runs
    LEAF = 13


_Place = tuple[int, str]


class _Held(threading.local):
    def __init__(self) -> None:
        self.locks: list[RankedLock] = []  # by rank; a lock taken twice is in it twice


_held = _Held()


class RankedLock:
    """A lock with a rank. Locks of one rank are taken in the order of their `name`."""

    _is_reentrant = False

    def __init__(self, rank: Rank = Rank.LEAF, name: str = "") -> None:
        self._place: _Place = (rank, name)
        self._lock = threading.RLock() if self._is_reentrant else threading.Lock()

    def __repr__(self) -> str:
        rank, name = self._place
        return f"{Rank(rank).name} {name}".rstrip()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Work as `threading.Lock.acquire`. Raises Error XX000 for a lock out of order."""
        locks = _held.locks
        place = len(locks)
        if locks and locks[-1]._place >= self._place:
            place = self._place_among(locks)
        if not self._lock.acquire(blocking, timeout):
            return False
        locks.insert(place, self)
        return True

    def _place_among(self, locks: list[RankedLock]) -> int:
        if self._is_reentrant and self in locks:
            return locks.index(self)
        raise Error(f"the lock {self!r} must not be taken while {locks[-1]!r} is held")

    def release(self) -> None:
        _held.locks.remove(self)
        self._lock.release()

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class RankedRLock(RankedLock):
    """A lock that its holding thread may take again."""

    _is_reentrant = True


def is_free() -> bool:
    """Return whether this thread holds no lock."""
    return not _held.locks


def check_free() -> None:
    """Raise Error XX000 if this thread holds a lock, before it waits for other threads, which may need that lock."""
    if not is_free():
        raise Error(f"nobody may wait for others while the lock {_held.locks[-1]!r} is held")
