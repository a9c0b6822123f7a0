"""Lets DuckDB's further threads rest, so that small queries do not wake them, without ending them.

The tasks of a query are done by the thread that asks and by whichever of DuckDB's own threads are free. So a thread of
this module asks again and again for a query with as many tasks as there are threads, and each task waits until the
threads are needed. Threads that are busy come to rest after their present task.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field

from sparkwave.catalog.lake.translation import Cursor, DuckDBError
from sparkwave.catalog.locks import RankedLock

logger = logging.getLogger(__name__)

# No user's function has this name.
_WAIT = "?wait"
# A rest takes at most so many seconds, because its transaction keeps DuckDB from forgetting deleted rows in memory.
_LONGEST_S = 5.0
# Seconds that the end of the process waits for the threads.
_PATIENCE_S = 5.0


@dataclass(eq=False)
class _Rests:
    """Whether a rest `is_over`, how many threads are `resting`, and how many rests there were, the last included."""

    lock: RankedLock = field(default_factory=RankedLock)
    is_over: threading.Event = field(default_factory=threading.Event)
    is_closing: threading.Event = field(default_factory=threading.Event)
    resting: int = 0
    count: int = 0

    def wait(self, task: int) -> int:
        """Let a thread of DuckDB wait for the end of a rest."""
        with self.lock:
            self.resting += 1
        self.is_over.wait(_LONGEST_S)
        with self.lock:
            self.resting -= 1
        return task


class Rest:
    """Lets the threads of a database rest while they are not needed, until `close`."""

    def __init__(self, cursor: Cursor, threads: int, busy_s: Callable[[], float]) -> None:
        """The cursor is for this object alone. `busy_s` returns for how many seconds the threads are needed, or 0."""
        self._cursor, self._busy_s, self._rests = cursor, busy_s, _Rests()
        cursor.create_function(_WAIT, self._rests.wait, ["INTEGER"], "INTEGER", side_effects=True)
        tasks = " UNION ALL ".join(f'SELECT "{_WAIT}"({task}) AS task' for task in range(threads))
        self._query = f"SELECT count(task) FROM ({tasks})"
        self._thread = threading.Thread(target=self._run, name="resting threads", daemon=True)
        # A process that ends without `close` waits for DuckDB's threads, too.
        self._finalizer = weakref.finalize(self, _end, self._rests, self._thread)
        self._thread.start()

    @property
    def resting(self) -> int:
        """The number of threads that rest now, the asking one among them."""
        return self._rests.resting

    @property
    def count(self) -> int:
        """The number of rests, with the present one."""
        return self._rests.count

    def end(self) -> None:
        """Let the threads work, for `busy_s` tells so."""
        with self._rests.lock:
            self._rests.is_over.set()

    def close(self) -> None:
        """Let the threads work, and wait until none rests. Call it before the database is closed."""
        self._finalizer()

    def _run(self) -> None:
        rests = self._rests
        while not rests.is_closing.is_set():
            with rests.lock:
                busy_s = self._busy_s()
                if busy_s <= 0 and not rests.is_closing.is_set():
                    rests.is_over.clear()
                    rests.count += 1
            if busy_s > 0:
                rests.is_closing.wait(busy_s)
                continue
            try:
                self._cursor.execute(self._query).fetchall()
            except DuckDBError:  # for want of memory; tried again after the next large work
                logger.warning("DuckDB's threads do not rest", exc_info=True)
                rests.is_over.wait()


def _end(rests: _Rests, thread: threading.Thread) -> None:
    with rests.lock:
        rests.is_closing.set()
        rests.is_over.set()
    thread.join(_PATIENCE_S)
