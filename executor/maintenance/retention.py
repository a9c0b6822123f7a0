"""Forgets old snapshots of the lake and deletes their files, in the background.

Needed snapshots stay: a creating job's snapshot and all later ones, which are its change log; those that created views
have applied, for a day also those of views left behind; those that clients read, and all later ones; those that
subscriptions keep; and all younger than `time_travel_retention_ms` (RisingWave's parameter).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sparkwave.catalog.lake import expiry
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.row_times import keep_times, times_to_keep
from sparkwave.catalog.model import CREATING
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores.epoch_store import stored_epoch
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.subscription_store import kept_by
from sparkwave.executor.epochs.coordinator import Coordinator

# A view that has been behind for longer is computed anew later, so that the lake need not keep all changes.
LONGEST_BEHIND_S = 24 * 3600


@dataclass(frozen=True)
class Pace:
    """The intervals and safety margins, in seconds.

    Snapshots younger than `settle_s` stay whatever the parameter says: a planning job or a binding query knows a
    snapshot before others can see this. Files stay `files_s` longer than the last snapshot that has them, for running
    readers. `batch` snapshots at a time keep others from waiting long; a thousand take 0.15 s.
    """

    period_s: float = 30.0
    settle_s: float = 300.0
    files_s: float = 3600.0
    batch: int = 1000


class Retention:
    """Forgets snapshots that are not needed."""

    def __init__(
        self, store: Store, coordinator: Coordinator, retention_ms: Callable[[], int], pace: Pace | None = None
    ) -> None:
        self._store = store
        self._lake: Lake = store.lake
        self._coordinator = coordinator
        self._retention_ms = retention_ms
        self._pace = pace or Pace()

    @property
    def period_s(self) -> float:
        return self._pace.period_s

    def run_once(self) -> bool:
        """Forget a batch of snapshots. Returns whether there may be more."""
        cursor = self._lake.cursor()
        try:
            before = expiry.last_snapshot_before(cursor, self._age_s())
            if before is None:
                return False
            read = self._coordinator.store_epoch(before)
            # Nobody can pin a snapshot meanwhile; whoever is about to has a snapshot that is younger than `before`.
            with self._lake.exclusive():
                before = min(before, read, *self._pins(cursor))
                snapshots = expiry.oldest_before(cursor, before, self._pace.batch)
                if times := times_to_keep(cursor, snapshots) if snapshots else []:
                    with self._lake.transaction(cursor):
                        keep_times(cursor, times)
                count = expiry.expire(cursor, before, self._pace.batch)
                if count:
                    expiry.delete_dead_rows(cursor)
                if not self._lake.keeps_files:
                    expiry.delete_files(cursor, self._pace.files_s)
            return count == self._pace.batch
        finally:
            cursor.close()

    def _age_s(self) -> float:
        """Return the age in seconds up to which snapshots stay in any case."""
        age = max(self._retention_ms() / 1000, self._pace.settle_s)
        return max(age, self._lake.oldest_write_s())

    def _pins(self, cursor: Cursor) -> list[int]:
        """Return the snapshots that views, creating jobs, clients and subscriptions need."""
        rows = cursor.execute(
            f"SELECT least(snapshot, views_at) FROM {system_table('jobs')} WHERE snapshot IS NOT NULL "
            f"AND (status = '{CREATING}' OR views_at IS NOT NULL AND waiting_since > now() - to_seconds(?))",
            [LONGEST_BEHIND_S],
        ).fetchall()
        subscriptions = self._store.catalog.subscriptions.values()
        kept = kept_by(cursor, subscriptions, time.time_ns() // 1000)
        return [stored_epoch(cursor).snapshot, *(snapshot for (snapshot,) in rows), *self._lake.pinned, *kept]
