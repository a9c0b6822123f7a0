"""What large statements have taken of memory goes back to the system.

Their trees refer to themselves, so only the collector frees them, which Python runs when as much again has been made;
and the C library keeps what is freed for later. About half of what they have taken stays with the process, and serves
the next ones: CPython gives an arena of 1 MiB back only when nothing at all is left in it.
"""

from __future__ import annotations

import ctypes
import gc
import threading
from contextlib import suppress

LARGE_BYTES = 1 << 18  # of a message
DELAY_SECONDS = 5.0  # for many at once


class Memory:
    """Gives memory back a while after somebody has sent something large."""

    def __init__(self) -> None:
        self._is_due = threading.Event()

    def sent(self, size: int) -> None:
        """A message of so many bytes has been dealt with."""
        if size >= LARGE_BYTES and not self._is_due.is_set():
            self._is_due.set()
            later = threading.Timer(DELAY_SECONDS, self._give_back)
            later.daemon = True
            later.start()

    def _give_back(self) -> None:
        self._is_due.clear()
        gc.collect()
        with suppress(OSError, AttributeError):  # of other C libraries than glibc
            ctypes.CDLL(None).malloc_trim(0)


def keep_what_there_is() -> None:
    """What has been made so far is there for good: the collector need not look at it."""
    gc.collect()
    gc.freeze()


MEMORY = Memory()
