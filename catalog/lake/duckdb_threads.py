"""How many threads DuckDB's queries have: one as long as all work is small, and all of them while any is large.

To wake another thread for each step of a small query costs more than that thread gives: with two threads on two cores,
an INSERT and the epoch of ten views took 1.3 times as long as with one, and 1.5 times the processor time (DuckDB
1.5.5). The number is one for the whole database. DuckDB ends a thread only after its present task, and no query of any
client can end meanwhile; so the number falls only when no work is left that began while there was large work.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TypeVar

from sparkwave.catalog.lake.translation import Cursor, DuckDBError
from sparkwave.catalog.locks import RankedLock

# Work that reads or writes more rows is large: DuckDB divides work by row groups of 122,880 rows.
LARGE_ROWS = 250_000
# To start and to end threads takes some milliseconds, so they stay for as long after large work.
_REST_S = 1.0

Value = TypeVar("Value")


@dataclass(eq=False)
class Share:
    """Running work. `era` counts the ends of large work before it began."""

    is_large: bool
    era: int
    has_ended: bool = False


class Parallelism:
    """Counts the running work and sets the number of threads."""

    def __init__(self, cursor: Cursor) -> None:
        """The cursor is for this object alone; its database has the most threads that there may be."""
        self._cursor = cursor
        [(self.most,)] = cursor.execute("SELECT current_setting('threads')").fetchall()
        self._lock = RankedLock()
        self._large = 0
        self._era = 0
        self._ended_at = 0.0  # when large work ended last
        self._running: Counter[int] = Counter()  # by era
        self._threads = self.most
        self._set(1)

    def begin(self, is_large: bool) -> Share:
        """Count work as running until `end`."""
        with self._lock:
            share = Share(is_large, self._era)
            self._running[share.era] += 1
            self._large += is_large
            if is_large:
                self._set(self.most)
            return share

    def end(self, share: Share) -> None:
        """End work; a second end of the same work changes nothing."""
        with self._lock:
            if share.has_ended:
                return
            share.has_ended = True
            self._running[share.era] -= 1
            self._large -= share.is_large
            if share.is_large and not self._large:
                self._era += 1
                self._ended_at = time.monotonic()
            if self._threads > 1 and not self._large and time.monotonic() - self._ended_at > _REST_S:
                self._running = +self._running  # without the eras that nothing is left of
                if all(era == self._era for era in self._running):
                    self._set(1)

    @contextmanager
    def work(self, is_large: bool) -> Iterator[None]:
        """While entered, work runs."""
        share = self.begin(is_large)
        try:
            yield
        finally:
            self.end(share)

    def counting(self, function: Callable[[], Value]) -> Callable[[], Value]:
        """Return a function whose calls count as small work."""

        def counted() -> Value:
            with self.work(is_large=False):
                return function()

        return counted

    def _set(self, threads: int) -> None:
        if threads != self._threads:
            with suppress(DuckDBError):  # it stays as it is, which is slower but not wrong
                self._cursor.execute(f"SET threads = {threads}")
                self._threads = threads
