"""Runs the steps of a job again when they fail."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress

from sparkwave.catalog.counters import STEP_RETRIES
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.stores.job_store import AlreadyDone
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill.controls import Controls, ControlsChanged
from sparkwave.executor.backfill.waiting import Waiting
from sparkwave.executor.faults import message_of
from sparkwave.executor.spark.spark_engine import SparkError

logger = logging.getLogger(__name__)

# A step that fails is tried this often in all; then the job fails with the last error.
ATTEMPTS = 3


class Retries:
    """The attempts at a job's steps, each on its own thread. `has_failed` tells whether any attempt has failed."""

    def __init__(self, store: Store, controls: Controls, waiting: Waiting) -> None:
        self._store = store
        self._controls = controls
        self._waiting = waiting
        # Of each thread: the attempt at its step, and the reason for which the last one failed.
        self._step = threading.local()
        self.has_failed = False

    def run(self, step: Callable[[], None], since: int | None = None) -> None:
        """Run a step until it succeeds, at most ATTEMPTS times. Raises the last failure.

        `since` are the controls under which the step was chosen; None means the present ones. Raises ControlsChanged
        when changed controls interrupted it.
        """
        since = self._controls.choose(since)
        for attempt in range(1, ATTEMPTS + 1):
            self._step.attempt = attempt
            try:
                self._controls.check_step()
                step()
            except AlreadyDone:
                self._store.reload()
                return
            except (DuckDBError, OSError, *SparkError) as error:
                self._controls.check()
                if self._controls.version != since:
                    raise ControlsChanged from error
                logger.warning("attempt %d: %s", attempt, message_of(error))
                STEP_RETRIES.inc()
                self.has_failed = True
                if attempt == ATTEMPTS:
                    raise
                self._step.failed = f"retrying after an error: {message_of(error)}"
                with suppress(DuckDBError):  # if nothing can be written, the reason is not stored either
                    self._waiting.because(self._step.failed)
                self._controls.pause(0.5 * attempt, since)
            else:
                self.goes_on()
                return

    def goes_on(self) -> None:
        """Remove the reason to wait after a failure of this thread's step, which runs again or has succeeded."""
        failed, self._step.failed = getattr(self._step, "failed", None), None
        if failed is not None:
            self._waiting.no_longer(failed)

    @property
    def is_again(self) -> bool:
        """Whether this thread tries its step again."""
        return self._step.attempt > 1
