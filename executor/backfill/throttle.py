"""The rate limit of a backfill: a token bucket over rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

# A step reads the rows of this many seconds: a longer step would make the limit coarse, a shorter one would be
# overhead.
STEP_S = 1.0
# Rows that a slow step leaves unread are made up for, up to this many seconds' worth.
MAX_ARREARS_S = 10.0


@dataclass
class Throttle:
    """Grants rows at a limit in rows a second, which may differ at every call."""

    clock: Callable[[], float] = time.monotonic
    _tokens: float = 0.0
    _last: float | None = field(default=None)

    def grant(self, limit: int | None, most: int) -> int:
        """Return how many rows may be read now, at most `most`; 0 when it is too early."""
        now = self.clock()
        elapsed = STEP_S if self._last is None else now - self._last
        self._last = now
        if limit is None:
            self._tokens = 0.0
            return most
        self._tokens = min(self._tokens + limit * elapsed, limit * MAX_ARREARS_S)
        rows = min(int(self._tokens), most)
        if rows < min(max(limit * STEP_S, 1), most):
            return 0
        self._tokens -= rows
        return rows

    def wait_s(self, limit: int) -> float:
        """Return the seconds until the next grant; a limit of 0 grants nothing."""
        return STEP_S if limit == 0 else max((max(limit * STEP_S, 1) - self._tokens) / limit, 0.01)
