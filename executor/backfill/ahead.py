"""A job's first step, begun before the job is stored."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.log_context import in_this_context
from sparkwave.executor.epochs.advance import Fill

# The rows that a step has computed to be added, and the cursor that has them.
Filled = tuple[Fill, Cursor]


class Ahead:
    """The step on a thread of its own, if it was begun and nobody has taken it."""

    def __init__(self) -> None:
        self._step: Future[Filled] | None = None

    def start(self, fill: Callable[[], Filled], name: str) -> None:
        """Begin the step. `name` is that of the thread."""
        pool = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._step = pool.submit(in_this_context(fill))
        pool.shutdown(wait=False)

    def within(self, seconds: float) -> Filled | None:
        """Return the rows of the step, if it succeeds so soon."""
        if self._step is None:
            return None
        wait([self._step], seconds)
        return self._step.result() if self._step.done() and self._step.exception() is None else None

    def take(self) -> Future[Filled] | None:
        """Return the step, to the first caller only."""
        step, self._step = self._step, None
        return step

    def wait(self) -> bool:
        """Wait until the step has ended, in whatever way. Returns whether there is one."""
        if self._step is not None:
            wait([self._step])
        return self._step is not None
