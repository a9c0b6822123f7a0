"""The lake does not only grow: old snapshots are forgotten and their files deleted, in the background.

What is needed stays: the snapshot of every creating job and all after it, which are its change log; what the created
views have applied, those too that are left behind, for a day; what clients go on reading, and all after it; what
subscriptions keep; everything younger than `time_travel_retention_ms` (RisingWave's parameter).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sparkwave.catalog.lake import expiry
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.model import CREATING
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.subscription_store import kept_by
from sparkwave.executor.epochs.coordinator import Coordinator

# A view that has been behind for longer is computed anew when it gets on, so that the lake need not keep all changes.
LONGEST_BEHIND_S = 24 * 3600


@dataclass(frozen=True)
class Pace:
    """How often, and how carefully, in seconds.

    Snapshots younger than `settle_s` stay whatever the parameter says: a job that plans, and a query that binds, know
    a snapshot before anybody can see it. Files stay `files_s` longer than the last snapshot that has them, for readers
    under way. `batch` snapshots at a time keep others from waiting long; a thousand take 0.15 s.
    """

    period_s: float = 30.0
    settle_s: float = 300.0
    files_s: float = 3600.0
    batch: int = 1000


class Retention:
    """Forgets what nobody needs."""

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
            # Nobody can pin a snapshot while this is held; whoever is about to has one that is younger than `before`.
            with self._lake.exclusive():
                count = expiry.expire(cursor, min(before, read, *self._pins(cursor)), self._pace.batch)
                if count:
                    expiry.delete_dead_rows(cursor)
                if not self._lake.keeps_files:
                    expiry.delete_files(cursor, self._pace.files_s)
            return count == self._pace.batch
        finally:
            cursor.close()

    def _age_s(self) -> float:
        """How long ago the oldest snapshot was current that is kept in any case."""
        age = max(self._retention_ms() / 1000, self._pace.settle_s)
        return max(age, self._lake.oldest_write_s())

    def _pins(self, cursor: Cursor) -> list[int]:
        """The snapshots from which views, created and creating ones, clients and subscriptions go on."""
        rows = cursor.execute(
            f"SELECT least(snapshot, views_at) FROM {system_table('jobs')} WHERE snapshot IS NOT NULL "
            f"AND (status = '{CREATING}' OR views_at IS NOT NULL AND waiting_since > now() - to_seconds(?))",
            [LONGEST_BEHIND_S],
        ).fetchall()
        subscriptions = self._store.catalog.subscriptions.values()
        kept = kept_by(cursor, subscriptions, time.time_ns() // 1000)
        return [self._store.epoch(cursor).snapshot, *(snapshot for (snapshot,) in rows), *self._lake.pinned, *kept]
