"""Returns memory to the system after large statements.

Parse trees have reference cycles, so only the garbage collector frees them, and Python runs the collector late; then
the C library keeps the freed memory. About half of a statement's memory stays with the process and serves later ones:
CPython returns an arena of 1 MiB only when it is entirely empty.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from contextlib import suppress

LARGE_BYTES = 1 << 18  # the least size of a message that is large
DELAY_SECONDS = 5.0  # so that many messages share one release


class Memory:
    """Releases memory some time after a large message."""

    def __init__(self) -> None:
        self._is_due = threading.Event()

    def sent(self, size: int) -> None:
        """Note that a message of so many bytes has been handled."""
        if size >= LARGE_BYTES and not self._is_due.is_set():
            self._is_due.set()
            later = threading.Timer(DELAY_SECONDS, self._give_back)
            later.daemon = True
            later.start()

    def _give_back(self) -> None:
        self._is_due.clear()
        gc.collect()
        with suppress(OSError, AttributeError):  # C libraries other than glibc have no malloc_trim
            ctypes.CDLL(None).malloc_trim(0)


def keep_what_there_is() -> None:
    """Exclude all present objects from garbage collection, since they live as long as the process."""
    gc.collect()
    gc.freeze()


MEMORY = Memory()
