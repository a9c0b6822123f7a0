"""Limits how many CREATEs run at once: RisingWave's semaphore of `max_concurrent_creating_streaming_jobs`.

As in RisingWave a permit is held by a foreground job until it has finished, by a background job until it is CREATING.
So foreground CREATEs run one after the other, and background jobs side by side. (RisingWave:
src/meta/src/stream/stream_manager.rs and the reference's §3.7.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from sparkwave.catalog.errors import canceled

POLL_SECONDS = 0.05


class Permits:
    """The permits of one server. `limit` is called at each use, so that ALTER SYSTEM resizes the pool; 0 is no limit.

    A permit needs no release, which could be forgotten: it lapses when the job's `is_held` returns False.
    """

    def __init__(self, limit: Callable[[], int]) -> None:
        self._limit = limit
        self._changed = threading.Condition()
        self._holders: dict[object, Callable[[], bool]] = {}
        self._waiting: set[int] = set()

    def acquire_free(self, is_held: Callable[[], bool]) -> bool:
        """Take a permit without waiting, for a job that has no id yet. Returns whether a permit was free."""
        with self._changed:
            limit = self._prune()
            if limit and (self._waiting or len(self._holders) >= limit):
                return False
            self._holders[object()] = is_held
            return True

    @property
    def are_held(self) -> bool:
        """Whether any job has a permit."""
        with self._changed:
            self._prune()
            return bool(self._holders)

    def _prune(self) -> int:
        """Forget the permits that have lapsed. Returns the limit."""
        self._holders = {id_: holds for id_, holds in self._holders.items() if holds()}
        return self._limit()

    def acquire(
        self,
        job_id: int,
        is_held: Callable[[], bool],
        is_cancelled: Callable[[], bool],
        on_wait: Callable[[int], None],
    ) -> None:
        """Wait for a permit, which lasts while `is_held` returns True; the oldest job is next.

        `on_wait` is called with the limit when the job has to wait, and again when the limit changes. Raises Error
        57014 when cancelled.
        """
        told: int | None = None
        with self._changed:
            self._waiting.add(job_id)
        try:
            while not self._take(job_id, is_held):
                if is_cancelled():
                    raise canceled()
                if told != (limit := self._limit()):
                    on_wait(limit)
                    told = limit
                with self._changed:
                    self._changed.wait(POLL_SECONDS)
        finally:
            with self._changed:
                self._waiting.discard(job_id)
                self._changed.notify_all()

    def _take(self, job_id: int, is_held: Callable[[], bool]) -> bool:
        with self._changed:
            limit = self._prune()
            # Ids grow, so the lowest has waited longest.
            if limit and (len(self._holders) >= limit or job_id != min(self._waiting)):
                return False
            self._holders[job_id] = is_held
            return True
