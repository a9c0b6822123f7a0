"""Locks that know their place in one order, so that no two threads can wait for each other.

A thread that holds a lock takes only those of higher ranks. One that would not is told so, whether or not somebody else
would have waited for it just then: an error where a deadlock may be.
"""

from __future__ import annotations

import threading
from enum import IntEnum
from types import TracebackType

from sparkwave.catalog.errors import Error


class Rank(IntEnum):
    """The order in which locks are taken. What has LEAF takes no other."""

    JOBS = 1  # jobs are replaced by others with their ids
    BARRIER = 2  # an epoch, or what must be between two of them
    CHECKPOINT = 3  # what epochs have made of views is stored
    JOB_GROUP = 4  # a job takes or gives back its resource group
    GROUPS = 5
    TABLE = 6  # a table's rows are written; several tables by name
    SEQUENCE = 7  # a statement takes numbers of a sequence; of several by id
    COMMIT = 8  # the catalog's transactions, and every commit
    SYSTEM_VIEWS = 9
    BUFFER = 10  # what epochs have made of views is changed in memory
    SERVING = 11  # copies in memory
    END = 12  # a COMMIT runs
    LEAF = 13


_Place = tuple[int, str]


class _Held(threading.local):
    def __init__(self) -> None:
        self.locks: list[RankedLock] = []  # by rank; as often as they were taken


_held = _Held()


class RankedLock:
    """A lock of a rank. `name` tells several of one rank apart, which are taken in the order of their names."""

    _is_reentrant = False

    def __init__(self, rank: Rank = Rank.LEAF, name: str = "") -> None:
        self._place: _Place = (rank, name)
        self._lock = threading.RLock() if self._is_reentrant else threading.Lock()

    def __repr__(self) -> str:
        rank, name = self._place
        return f"{Rank(rank).name} {name}".rstrip()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As that of `threading`. Raises Error XX000 for one that is out of order."""
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
    """One that the thread that holds it may take again."""

    _is_reentrant = True


def is_free() -> bool:
    """Whether this thread holds no lock."""
    return not _held.locks


def check_free() -> None:
    """Raise Error XX000 if this thread holds a lock: it is about to wait for what others do, who may need that."""
    if not is_free():
        raise Error(f"nobody may wait for others while the lock {_held.locks[-1]!r} is held")
