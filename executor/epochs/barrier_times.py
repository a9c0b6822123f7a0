"""The times that barriers of created views take, by which backfills give way to barriers."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

# The number of barriers that are remembered: those of about ten seconds, at 20 barriers a second.
MOST = 256


class BarrierTimes:
    """The times of recent barriers. The coordinator's thread writes them without a lock, and any thread reads them.

    Only barriers that compute changes of created views count: neither idle barriers nor barriers that end a creation.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began: float | None = None
        self._ended: deque[tuple[float, float]] = deque(maxlen=MOST)  # the end, and the seconds

    def begin(self) -> None:
        self._began = self._clock()

    def leave_out(self) -> None:
        """Do not count the running barrier."""
        self._began = None

    def end(self, has_computed: bool) -> None:
        """End the running barrier, which counts if it had something to compute."""
        began, self._began = self._began, None
        if began is not None and has_computed:
            now = self._clock()
            self._ended.append((now, now - began))

    def since(self, moment: float) -> tuple[int, float]:
        """Return how many barriers have ended after a moment, and the longest time (s), the running one's included."""
        began = self._began
        running = [self._clock() - began] if began is not None else []
        ended = [seconds for end, seconds in list(self._ended) if end > moment]
        return len(ended), max([*ended, *running], default=0.0)

    def quiet_s(self) -> float:
        """Return the seconds since the last barrier; infinite before the first."""
        ended = list(self._ended)[-1:]
        return self._clock() - ended[0][0] if ended else float("inf")
