"""Why a job waits or is slowed, as the catalog tells it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sparkwave.catalog.stores.event_store import add_event
from sparkwave.catalog.stores.job_store import set_job_waiting
from sparkwave.catalog.stores.store import Store


class Waiting:
    """The reason why a job waits. It is stored when it changes; `job_id` returns the job's id."""

    def __init__(self, store: Store, job_id: Callable[[], int], stored: str | None) -> None:
        self._store = store
        self._job_id = job_id
        self._shown = stored
        self._slowed: str | None = None  # shown while nothing else holds the job up

    def because(self, reason: str | None) -> None:
        """Store why the job waits; None when it does not."""
        shown = reason or self._slowed
        if shown != self._shown:
            with self._store.change() as cursor:
                set_job_waiting(cursor, self._job_id(), shown)
            self._shown = shown

    def no_longer(self, reason: str) -> None:
        """Remove a reason, if it is still the newest."""
        if self._shown == reason:
            self.because(None)

    def slowed_because(self, reason: str | None, event: tuple[str, Mapping[str, object]] | None) -> None:
        """Store why the job is slowed, None when it is not, and an event if one is given."""
        before, self._slowed = self._slowed, reason
        with self._store.change() as cursor:
            if event is not None:
                add_event(cursor, event[0], self._job_id(), event[1])
            if self._shown == before:  # else another reason stands, which says more
                set_job_waiting(cursor, self._job_id(), reason)
                self._shown = reason
