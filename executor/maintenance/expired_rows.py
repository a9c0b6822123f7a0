"""Deletes the rows of append-only tables that are past their `retention_seconds`, in the background.

Queries do not see them before (`planner.batch.query`). As in RisingWave what has been computed from rows does not
change when they go, so they stay in the lake as long as a view, sink, index or subscription reads the table's changes.
"""

from __future__ import annotations

import time
from contextlib import closing

from sparkwave.catalog.commit_times import TIME, rows_with_times
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Relation
from sparkwave.catalog.stores.store import Store

EXPIRED_ROWS_PERIOD_S = 10.0


class ExpiredRows:
    """Deletes the rows that no query sees any more."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def run_once(self) -> bool:
        """Delete the rows of all tables that are past their time. Returns False: there is nothing more to do now."""
        if all(table.streaming.retention_s is None for table in self._store.catalog.relations):
            return False
        with closing(self._store.lake.cursor()) as cursor:
            for table in self._store.catalog.relations:
                if not self._is_done(table) and _has_expired(cursor, table):
                    self._delete(cursor, table)
        return False

    def _delete(self, cursor: Cursor, table: Relation) -> None:
        with self._store.lake.transaction(cursor, shared=[table.lake_table]):  # no view begins to read meanwhile
            if not self._is_done(self._store.catalog.by_id.get(table.id)):
                cursor.execute(f"DELETE FROM {table.lake_name} WHERE rowid IN (SELECT rowid FROM {_expired(table)})")

    def _is_done(self, table: Relation | None) -> bool:
        """Return whether no row of the table may be deleted, or the table is gone."""
        if table is None or table.streaming.retention_s is None:
            return True
        return any(table.id in other.upstreams and not other.is_view for other in self._store.catalog.relations)


def _has_expired(cursor: Cursor, table: Relation) -> bool:
    return bool(cursor.execute(f"SELECT 1 FROM {_expired(table)} LIMIT 1").fetchall())


def _expired(table: Relation) -> str:
    assert table.streaming.retention_s is not None
    oldest = time.time_ns() // 1000 - table.streaming.retention_s * 1_000_000
    return f"(SELECT rowid FROM ({rows_with_times(table.lake_name, table.lake_table)}) WHERE {TIME} < {oldest})"
