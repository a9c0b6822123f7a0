"""Permits: how many CREATEs may work at once, in which order, and what ends a wait."""

from __future__ import annotations

import threading

import pytest
from servers import wait_until

from sparkwave.catalog.errors import Error
from sparkwave.executor.backfill.permits import Permits


class Waiter:
    """A job that asks for a permit on a thread of its own, and holds it until `done` is set."""

    def __init__(self, permits: Permits, job_id: int) -> None:
        self.done = threading.Event()
        self.has_permit = threading.Event()
        self.cancelled = threading.Event()
        self.told: list[int] = []
        self.error: Error | None = None
        self._thread = threading.Thread(target=self._run, args=(permits, job_id), daemon=True)
        self._thread.start()

    def _run(self, permits: Permits, job_id: int) -> None:
        try:
            permits.acquire(job_id, lambda: not self.done.is_set(), self.cancelled.is_set, self.told.append)
            self.has_permit.set()
        except Error as error:
            self.error = error

    def join(self) -> None:
        self._thread.join(5)
        assert not self._thread.is_alive()


def start(permits: Permits, *job_ids: int) -> list[Waiter]:
    """Jobs that ask one after the other; all but those that got a permit wait."""
    waiters = []
    for job_id in job_ids:
        waiter = Waiter(permits, job_id)
        assert wait_until(lambda w=waiter: w.told or w.has_permit.is_set(), 5)
        waiters.append(waiter)
    return waiters


def test_one_at_a_time_oldest_first() -> None:
    permits = Permits(lambda: 1)
    first, second, third = start(permits, 1, 2, 3)
    assert [w.has_permit.is_set() for w in (first, second, third)] == [True, False, False]
    assert (second.told, third.told) == ([1], [1])
    first.done.set()
    assert second.has_permit.wait(5)
    assert not third.has_permit.wait(0.2)
    second.done.set()
    assert third.has_permit.wait(5)


def test_a_free_permit_is_for_whom_nobody_waits() -> None:
    permits, limit, held = Permits(lambda: limit), 2, threading.Event()
    assert permits.acquire_free(lambda: not held.is_set())
    [first] = start(permits, 1)
    assert not permits.acquire_free(lambda: True)
    [waiting] = start(permits, 2)
    held.set()
    assert waiting.has_permit.wait(5)
    assert not permits.acquire_free(lambda: True)
    first.done.set()
    assert permits.acquire_free(lambda: True)
    limit = 0
    assert permits.acquire_free(lambda: True)


def test_zero_is_no_limit() -> None:
    assert all(w.has_permit.is_set() for w in start(Permits(lambda: 0), 1, 2, 3))


def test_the_limit_may_change_meanwhile() -> None:
    limit = [1]
    waiters = start(Permits(lambda: limit[0]), 1, 2, 3, 4)
    limit[0] = 2
    assert waiters[1].has_permit.wait(5)
    assert not waiters[2].has_permit.wait(0.2)
    assert waiters[2].told == [1, 2]
    limit[0] = 0
    assert waiters[2].has_permit.wait(5)
    assert waiters[3].has_permit.wait(5)


def test_a_smaller_limit_takes_no_permit_away() -> None:
    limit = [2]
    permits = Permits(lambda: limit[0])
    first, second, third = start(permits, 1, 2, 3)
    limit[0] = 1
    first.done.set()
    assert not third.has_permit.wait(0.2)
    second.done.set()
    assert third.has_permit.wait(5)


def test_a_cancelled_wait_leaves_the_line() -> None:
    permits = Permits(lambda: 1)
    first, second, third = start(permits, 1, 2, 3)
    second.cancelled.set()
    second.join()
    assert second.error is not None
    assert second.error.sqlstate == "57014"
    first.done.set()
    assert third.has_permit.wait(5)


def test_a_wait_that_cannot_be_told_leaves_the_line() -> None:
    permits = Permits(lambda: 1)
    (first,) = start(permits, 1)

    def fail(_limit: int) -> None:
        raise Error("the lake is full")

    with pytest.raises(Error, match="full"):
        permits.acquire(2, lambda: True, lambda: False, fail)
    first.done.set()
    (third,) = start(permits, 3)
    assert third.has_permit.wait(5)
