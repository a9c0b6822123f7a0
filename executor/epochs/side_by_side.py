"""Computes views that do not read one another side by side, on several cursors.

DuckDB runs the small statements of an epoch on the thread that asks, so each further cursor has a thread, which uses
another core. A view stays with its cursor, which has prepared the view's statements.
"""

from __future__ import annotations

import contextvars
import os
import sys
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.prepared_statements import prepare_due
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.executor.epochs.time_limit import TimeLimit
from sparkwave.executor.memory.listed_keys import list_keys_always
from sparkwave.executor.spark.capacity import of_this_machine

T = TypeVar("T")
R = TypeVar("R")
# More cursors have not been measured; Python's lock lets them wait for one another.
_MOST = 4
# How much nicer the other threads are than the process.
_NICENESS = 10
# The number of the coordinator's own cursor.
_OWN = 0
# A view moves to another cursor where one takes longer than another by this share of its time, and by this many
# seconds, in so many epochs in a row. Its statements are planned anew there, so each move makes the next one rarer.
_UNEVEN, _UNEVEN_S = 0.2, 0.005
_PATIENCE, _MOST_PATIENCE = 3, 1000


@dataclass(frozen=True)
class Running(Generic[T, R]):
    """A computation on another cursor; `finish` makes the result of what it returns."""

    computation: Future[T]
    finish: Callable[[T], R]

    def result(self) -> R:
        """Wait for the computation. Raises its error."""
        return self.finish(self.computation.result())


class Side:
    """A cursor with a thread."""

    def __init__(self, lake: Lake, number: int) -> None:
        self.cursor, self.time_limit = lake.cursor(), TimeLimit()
        list_keys_always(self.cursor)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"epoch {number}", initializer=_be_nice)

    def submit(self, compute: Callable[[], T]) -> Future[T]:
        """Let the thread compute, with the log context of the caller."""
        return self._thread.submit(contextvars.copy_context().run, compute)

    def close(self) -> None:
        self.cursor.interrupt()
        self._thread.shutdown()
        self.cursor.close()


class Sides:
    """Gives each view a cursor, so that all cursors take about as long. Only the coordinator's thread uses it."""

    def __init__(self, lake: Lake, cursors: int | None = None) -> None:
        """`cursors` is the number of cursors, with the coordinator's own; None for one a core, up to four."""
        self._lake = lake
        self._cursors = min(_cores(), _MOST) if cursors is None else cursors
        self._sides: dict[int, Side] = {}
        self._places: dict[int, int] = {}
        self._seconds: dict[int, float] = {}  # the first times of views
        self._now: dict[int, float] = {}  # the times of this epoch
        self._uneven: tuple[int, int, int] = (0, 0, 0)  # the slowest cursor, the fastest, and in how many epochs
        self._patience, self._has_new = _PATIENCE, False

    @property
    def take_all_cores(self) -> bool:
        """Whether the cursors leave no core to DuckDB's own threads."""
        return self._cursors >= _cores()

    def of(self, view: Relation, catalog: Catalog) -> Side | None:
        """Return a view's cursor; None for the coordinator's own, on which each view begins.

        The views of the chosen cursor, which can be computed at the same time, take the least time in sum.
        """
        if view.id not in self._places and view.id in self._seconds:
            busy = dict.fromkeys(range(self._cursors), 0.0)
            related = catalog.closure([view.id]) | {reader.id for reader in catalog.readers(view.id)}
            for other in self._seconds.keys() - related:
                busy[self._places.get(other, _OWN)] += self._seconds[other]
            self._places[view.id] = min(busy, key=busy.__getitem__)
        place = self._places.get(view.id, _OWN)
        if place == _OWN:
            return None
        if place not in self._sides:
            self._sides[place] = Side(self._lake, place)
        return self._sides[place]

    def took(self, view_id: int, seconds: float) -> None:
        """Note how long a computation of a view took. A view's first computation decides its cursor."""
        self._has_new |= view_id not in self._seconds
        self._seconds.setdefault(view_id, seconds)
        self._now[view_id] = seconds

    def balance(self, own_s: float) -> None:
        """Move a view to another cursor, if that saves time.

        The coordinator's own cursor has worked `own_s` seconds in the last epoch.
        """
        now, self._now = self._now, {}
        if self._has_new:
            self._has_new = False  # the first epoch of a view says little
            return
        busy = dict.fromkeys(range(self._cursors), 0.0)
        for view_id, seconds in now.items():
            busy[self._places.get(view_id, _OWN)] += seconds
        busy[_OWN] = own_s
        slow, fast = max(busy, key=busy.__getitem__), min(busy, key=busy.__getitem__)
        gap_s = busy[slow] - busy[fast]
        *before, epochs = self._uneven
        if gap_s < max(_UNEVEN * busy[slow], _UNEVEN_S):
            self._uneven = slow, fast, 0
            return
        self._uneven = slow, fast, epochs + 1 if before == [slow, fast] else 1
        if self._uneven[-1] < self._patience:
            return
        self._uneven, self._patience = (slow, fast, 0), min(2 * self._patience, _MOST_PATIENCE)
        movable = [view_id for view_id, seconds in now.items() if self._places.get(view_id) == slow and seconds < gap_s]
        if movable:
            self._places[min(movable, key=lambda view_id: abs(now[view_id] - gap_s / 2))] = fast

    def keep(self, view_ids: Collection[int]) -> None:
        """Forget all other views."""
        self._patience = _PATIENCE
        self._places = {id_: place for id_, place in self._places.items() if id_ in view_ids}
        self._seconds = {id_: seconds for id_, seconds in self._seconds.items() if id_ in view_ids}

    def prepare_due(self) -> None:
        """Prepare the due statements of all cursors but the coordinator's own, none of which may be computing."""
        for side in self._sides.values():
            prepare_due(side.cursor)

    def close(self) -> None:
        """Close all cursors but the coordinator's own; what they still compute is interrupted."""
        for side in self._sides.values():
            side.close()
        self._sides = {}


def _be_nice() -> None:
    """Let clients go first on a busy machine: else a fifth fewer writes were done beside epochs."""
    if sys.platform == "linux":  # where threads have a niceness of their own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(os.nice(0) + _NICENESS, 19))


def _cores() -> int:
    return max(int(of_this_machine().cores), 1)
