"""How a creating job is stopped, paused and interrupted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sparkwave.catalog.errors import canceled
from sparkwave.executor.spark.spark_engine import SparkError

logger = logging.getLogger(__name__)


class ControlsChanged(Exception):
    """The rate limit or the parallelism was changed while a step ran."""


class Controls:
    """The controls of one creating job, for its thread, those of its slices, and sessions that alter or cancel it.

    `is_limited` tells whether the job has a rate limit now.
    """

    def __init__(self, is_limited: Callable[[], bool]) -> None:
        self.is_cancelled = threading.Event()
        self.is_shut_down = threading.Event()
        self._is_limited = is_limited
        self._version = 0
        self._condition = threading.Condition()
        self._step = threading.local()  # of each thread: the version under which its step was chosen
        self._interrupts: set[Callable[[], None]] = set()
        self._interrupting = 0  # how many threads call interrupts

    @property
    def version(self) -> int:
        """A number that grows with each change of the controls, and with a stop. Read it before the controls."""
        return self._version

    @property
    def is_stopping(self) -> bool:
        return self.is_cancelled.is_set() or self.is_shut_down.is_set()

    def stop(self, event: threading.Event) -> None:
        """Set `is_cancelled` or `is_shut_down`, and interrupt the engines."""
        event.set()
        self._notify()
        self.interrupt()

    def changed(self) -> None:
        """Tell the job that its rate limit or parallelism has changed; with a limit, running steps are interrupted."""
        self._notify()
        if self._is_limited():
            self.interrupt()

    def _notify(self) -> None:
        with self._condition:
            self._version += 1
            self._condition.notify_all()

    def check(self) -> None:
        """Raise Error 57014 when the job is to stop."""
        if self.is_stopping:
            raise canceled()

    def choose(self, since: int | None) -> int:
        """Record the version under which this thread's step was chosen, None for the present one. Returns it."""
        self._step.since = self._version if since is None else since
        return self._step.since

    def check_step(self) -> None:
        """Check as `check` does; also raise ControlsChanged when a limit was set after this thread's step was chosen.

        Call it before each call of an engine: an interrupt stops only what runs already.
        """
        self.check()
        since = getattr(self._step, "since", self._version)
        if since != self._version and self._is_limited():
            raise ControlsChanged

    def interrupt(self) -> None:
        """Make the running calls of the engines fail."""
        with self._condition:
            self._interrupting += 1
        try:
            for interrupt in list(self._interrupts):
                try:
                    interrupt()
                except SparkError:
                    logger.debug("a job cannot be interrupted", exc_info=True)
        finally:
            with self._condition:
                self._interrupting -= 1
                self._condition.notify_all()

    @contextmanager
    def interruptible(self, interrupt: Callable[[], None]) -> Iterator[None]:
        """While entered, `interrupt` is called when the job is stopped or its controls have changed.

        No call of it lasts longer: the next job may have what it interrupts.
        """
        self._interrupts.add(interrupt)
        try:
            yield
        finally:
            self._interrupts.discard(interrupt)
            with self._condition:
                self._condition.wait_for(lambda: not self._interrupting)

    def pause(self, seconds: float, since: int) -> None:
        """Sleep, but less when the job is stopped or its controls are not those of `since`. Raises Error 57014."""
        with self._condition:
            self._condition.wait_for(lambda: self._version != since, seconds)
        self.check()
