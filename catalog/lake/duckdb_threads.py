"""How many threads DuckDB's queries have: one until there is large work, and from then on all.

To wake another thread for each step of a small query costs more than that thread gives: with two threads on two cores,
an INSERT and the epoch of ten views took 1.3 times as long as with one, and 1.5 times the processor time (DuckDB
1.5.5). The number is one for the whole database, and never falls while queries run: DuckDB ends a thread after its
present task, and waits for ever if that task queries DuckLake's catalog.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.locks import RankedLock

# Work that reads or writes more rows is large: DuckDB divides work by row groups of 122,880 rows.
LARGE_ROWS = 250_000


class Threads:
    """Sets the number of threads of a database, which nothing else uses yet."""

    def __init__(self, cursor: Cursor) -> None:
        """The cursor is for this object alone; its database has the most threads that there may be."""
        self._cursor = cursor
        [(self.most,)] = cursor.execute("SELECT current_setting('threads')").fetchall()
        self._lock = RankedLock()
        self._has_all = self.most == 1
        cursor.execute("SET threads = 1")

    def provide(self, rows: Callable[[], int]) -> None:
        """Start all threads if work over so many rows is large. The rows are counted only as long as it matters."""
        if not self._has_all and rows() > LARGE_ROWS:
            with self._lock:
                self._cursor.execute(f"SET threads = {self.most}")
                self._has_all = True
