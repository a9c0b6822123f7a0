"""Periodic work on a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sparkwave.executor.faults import message_of

logger = logging.getLogger(__name__)


class Periodic:
    """Calls `run_once` every `period_s` seconds, and again at once while it returns True."""

    def __init__(self, name: str, period_s: Callable[[], float], run_once: Callable[[], bool]) -> None:
        self._name = name
        self._period_s = period_s
        self._run_once = run_once
        self._stopping = threading.Event()
        self._last_error: str | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the work in progress."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(30)

    def _run(self) -> None:
        while not self._stopping.wait(self._period_s()):
            try:
                while self._run_once() and not self._stopping.is_set():
                    pass
                self._last_error = None
            except Exception as error:
                # The next round tries again; the same message is not logged again.
                if message_of(error) != self._last_error:
                    logger.exception("%s failed", self._name)
                self._last_error = message_of(error)
