"""Computes views that do not read one another side by side, on several cursors.

DuckDB runs the small statements of an epoch on the thread that asks, so each cursor but the coordinator's own has a
thread, which uses another core. The coordinator hands the computations in, and helps when it needs their results. A
view stays with the cursor that has prepared its statements, until another cursor has nothing to do (work stealing:
Blumofe and Leiserson, "Scheduling multithreaded computations by work stealing", 1999).
"""

from __future__ import annotations

import contextvars
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Collection
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeVar

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.prepared_statements import prepare_due
from sparkwave.catalog.lake.translation import Cursor
from sparkwave.executor.epochs.time_limit import TimeLimit
from sparkwave.executor.memory.listed_keys import list_keys_always
from sparkwave.executor.spark.capacity import of_this_machine

T = TypeVar("T")
# A computation by a cursor, which sets the time limit of the cursor.
Compute = Callable[[Cursor, TimeLimit], T]
# More cursors have not been measured; Python's lock lets them wait for one another.
_MOST = 4
# How much nicer the other threads are than the process.
_NICENESS = 10
# The number of the coordinator's own cursor.
_OWN = 0
# A cursor plans the statements of a view in so many computations of the view, and takes so many times as long. It may
# have left as many epochs' computations to a cursor that is done later until it has to plan them after all.
_UNPREPARED, _PLANNING = 2, 3
# A cursor looks at so many tasks of another one before it waits.
_MOST_LOOKED_AT = 8


@dataclass(eq=False)
class Task(Generic[T]):
    """A computation that a cursor will run, once what it `needs` is done.

    Only the coordinator's own cursor runs it unless it `is_movable`. `view_id` is None for what several views need,
    which cursors run first. `place` is the number of the cursor that runs it if no other takes it over, in about
    `expected_us` microseconds once its statements are planned; None if it is for no cursor more than for another.
    `began` is the monotonic time when it began.
    """

    compute: Compute[T]
    view_id: int | None
    is_movable: bool
    needs: Collection[Future[Any]]
    place: int | None = None
    expected_us: int = 0
    context: contextvars.Context = field(default_factory=contextvars.copy_context)
    future: Future[T] = field(default_factory=Future)
    began: float = 0.0

    @property
    def is_ready(self) -> bool:
        return all(each.done() for each in self.needs)

    def run(self, cursor: Cursor, limit: TimeLimit) -> None:
        """Set the future's result, or its error."""
        self.began = time.monotonic()
        try:
            self.future.set_result(self.context.run(self.compute, cursor, limit))
        except BaseException as error:
            self.future.set_exception(error)


class Sides:
    """The cursors, and the tasks that none of them has begun. Only the coordinator's thread calls its methods."""

    def __init__(self, lake: Lake, cursors: int | None = None) -> None:
        """`cursors` is the number of cursors, with the coordinator's own; None for one a core, up to four."""
        self._lake = lake
        cores = _cores()
        self._cursors = min(cores, _MOST) if cursors is None else cursors
        self.take_all_cores = self._cursors >= cores  # so that DuckDB's own threads have none
        self._sides: dict[int, _Side] = {}
        self._changed = threading.Condition()  # guards the fields below
        self._shared: deque[Task[Any]] = deque()  # what several views need
        self._fixed: deque[Task[Any]] = deque()  # what only the coordinator's own cursor may run
        self._queues: dict[int, deque[Task[Any]]] = {number: deque() for number in range(self._cursors)}
        self._queued_us = dict.fromkeys(self._queues, 0)  # about how long the tasks of the queues take
        self._busy: set[int] = set()  # the cursors that run a task
        self._places: dict[int, int] = {}
        self._took_us: dict[int, int] = {}  # the last times of views in microseconds, whose sums are exact
        # By cursor and view: how often it has computed the view, and in how many epochs it would have planned too much.
        self._runs: Counter[tuple[int, int]] = Counter()
        self._left: Counter[tuple[int, int]] = Counter()
        self._left_now: set[tuple[int, int]] = set()

    def submit(
        self, compute: Compute[T], view_id: int | None, is_movable: bool, needs: Collection[Future[Any]] = ()
    ) -> Task[T]:
        """Let a cursor compute, with the log context of the caller; only the coordinator's own unless `is_movable`.

        The other arguments are as in `Task`.
        """
        task = Task(compute, view_id, is_movable, needs)
        if is_movable:
            self._begin_sides()
        with self._changed:
            if is_movable and view_id is not None:
                task.place, task.expected_us = self._place(view_id), self._took_us.get(view_id, 0)
                self._queued_us[task.place] += task.expected_us
            self._queue(task).append(task)
            self._changed.notify_all()
        return task

    def complete(self, task: Task[Any], cursor: Cursor, limit: TimeLimit) -> None:
        """Run tasks by the coordinator's own cursor until this one is done, by whichever cursor."""
        while (other := self._taken(_OWN, task.future.done)) is not None:
            self._run(other, _OWN, cursor, limit)

    def clear(self) -> None:
        """Forget tasks that no cursor has begun, and wait for the others."""
        with self._changed:
            self._forget()
            self._changed.wait_for(lambda: not self._busy)
            self._left.update(self._left_now)
            self._left_now.clear()

    def keep(self, view_ids: Collection[int]) -> None:
        """Forget all other views."""
        self._places = {id_: place for id_, place in self._places.items() if id_ in view_ids}
        self._took_us = {id_: took_us for id_, took_us in self._took_us.items() if id_ in view_ids}
        for counts in (self._runs, self._left):
            for key in [key for key in counts if key[1] not in view_ids]:
                del counts[key]

    def prepare_due(self) -> None:
        """Prepare the due statements of all cursors but the coordinator's own, none of which may be computing."""
        for side in self._sides.values():
            prepare_due(side.cursor)

    def close(self) -> None:
        """Close all cursors but the coordinator's own; what they still compute is interrupted."""
        for side in self._sides.values():
            side.cursor.interrupt()
        with self._changed:
            self._forget()
            for side in self._sides.values():
                side.is_closing = True
            self._changed.notify_all()
        for side in self._sides.values():
            side.thread.join()
            side.cursor.close()
        self._sides = {}

    def _begin_sides(self) -> None:
        for number in range(_OWN + 1, self._cursors):
            if number not in self._sides:
                side = self._sides[number] = _Side(self._lake)
                side.thread = threading.Thread(target=partial(self._work, number, side), name=f"epoch {number}")
                side.thread.daemon = True
                side.thread.start()

    def _work(self, number: int, side: _Side) -> None:
        """Run tasks by the cursor of a side until it is closing."""
        _be_nice()
        while (task := self._taken(number, lambda: side.is_closing)) is not None:
            self._run(task, number, side.cursor, side.limit)

    def _taken(self, number: int, is_over: Callable[[], bool]) -> Task[Any] | None:
        """Wait for a task for a cursor and remove it from its queue. None as soon as waiting `is_over`."""
        with self._changed:
            while not is_over():
                task = self._next(number)
                if task is not None:
                    self._busy.add(number)
                    self._queue(task).remove(task)
                    if task.place is not None:
                        self._queued_us[task.place] -= task.expected_us
                        self._places[task.view_id or 0] = number
                    return task
                self._changed.wait()
        return None

    def _run(self, task: Task[Any], number: int, cursor: Cursor, limit: TimeLimit) -> None:
        try:
            task.run(cursor, limit)
        finally:
            with self._changed:
                self._busy.discard(number)
                if task.view_id is not None:
                    self._took_us[task.view_id] = round((time.monotonic() - task.began) * 1_000_000)
                    self._runs[number, task.view_id] += 1
                self._changed.notify_all()

    # While the condition is held

    def _forget(self) -> None:
        for queue in (self._shared, self._fixed, *self._queues.values()):
            queue.clear()
        self._queued_us = dict.fromkeys(self._queues, 0)

    def _place(self, view_id: int) -> int:
        """Return the cursor on which a view is; at first the one whose views take the least time."""
        if view_id not in self._places:
            busy_us = dict.fromkeys(self._queues, 0)
            for other, place in self._places.items():
                busy_us[place] += self._took_us.get(other, 0)
            self._places[view_id] = min(busy_us, key=busy_us.__getitem__)
        return self._places[view_id]

    def _queue(self, task: Task[Any]) -> deque[Task[Any]]:
        """Return the queue in which a task waits."""
        if not task.is_movable:
            return self._fixed
        return self._shared if task.place is None else self._queues[task.place]

    def _next(self, number: int) -> Task[Any] | None:
        """Return the task that a cursor runs next; None if it should wait.

        What only the cursor may run comes before what others can take over.
        """
        own = [self._shared, *([self._fixed] if number == _OWN else []), self._queues[number]]
        ready = next((task for queue in own for task in queue if task.is_ready), None)
        return ready or self._stolen(number)

    def _stolen(self, number: int) -> Task[Any] | None:
        """Return a task of another cursor that is done sooner by this one, from the end of the longest queue."""
        place = max(self._queues, key=lambda place: -1 if place == number else self._queued_us[place])
        queue = self._queues[place]
        if place == number or (len(queue) == 1 and place not in self._busy):  # the other runs it at once
            return None
        for task in islice(reversed(queue), _MOST_LOOKED_AT):
            if not task.is_ready:
                continue
            key = number, task.view_id or 0
            is_planned = self._runs[key] >= _UNPREPARED
            factor = 1 if is_planned else max(_PLANNING - self._left[key], 1)
            if task.expected_us * factor <= self._queued_us[place]:
                return task
            self._left_now.add(key)
        return None


class _Side:
    """A cursor with a thread."""

    def __init__(self, lake: Lake) -> None:
        self.cursor, self.limit = lake.cursor(), TimeLimit()
        list_keys_always(self.cursor)
        self.thread = threading.current_thread()  # until it has one
        self.is_closing = False


def _be_nice() -> None:
    """Let clients go first on a busy machine: else a fifth fewer writes were done beside epochs."""
    if sys.platform == "linux":  # where threads have a niceness of their own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(os.nice(0) + _NICENESS, 19))


def _cores() -> int:
    return max(int(of_this_machine().cores), 1)
