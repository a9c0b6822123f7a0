"""Turns of backfill steps in a resource group."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from servers import wait_until

from sparkwave.executor.spark.turns import Turns


class Step:
    """A step that asks for a turn on a thread of its own and keeps it until `end`."""

    def __init__(self, turns: Turns, check: Callable[[], None] = lambda: None) -> None:
        self.has_begun, self._may_end = threading.Event(), threading.Event()
        self.error: BaseException | None = None
        self._turns, self._check = turns, check
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            with self._turns.turn(self._check):
                self.has_begun.set()
                self._may_end.wait(10)
        except ValueError as error:
            self.error = error

    def end(self) -> None:
        self._may_end.set()
        self._thread.join(10)
        assert not self._thread.is_alive()


def waiting(turns: Turns, steps: int) -> None:
    assert wait_until(lambda: len(turns._waiting) == steps, 10, 0.001)


def test_so_many_at_a_time_in_order() -> None:
    turns, steps = Turns(2), list[Step]()
    for number in range(5):
        steps.append(Step(turns))
        waiting(turns, max(number - 1, 0))
    assert [step.has_begun.wait(0.05) for step in steps] == [True, True, False, False, False]
    steps[1].end()
    assert steps[2].has_begun.wait(10)
    assert not steps[3].has_begun.wait(0.05)
    steps[0].end()
    assert steps[3].has_begun.wait(10)
    for step in (steps[2], steps[3], steps[4]):
        step.end()
    assert turns._running == 0


def test_giving_up() -> None:
    is_over = threading.Event()

    def check() -> None:
        if is_over.is_set():
            raise ValueError

    turns = Turns(1)
    first, second = Step(turns), None
    assert first.has_begun.wait(10)
    second = Step(turns, check)
    waiting(turns, 1)
    third = Step(turns)
    waiting(turns, 2)
    is_over.set()
    second.end()
    assert isinstance(second.error, ValueError)
    first.end()
    assert third.has_begun.wait(10)
    third.end()


def test_a_step_that_fails_gives_its_turn_back() -> None:
    turns = Turns(1)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError), turns.turn(lambda: None):
            1 / 0  # noqa: B018
