"""Making the lake forget: old snapshots, what only they saw, and the files of that.

DuckLake 1.0 (ducklake.select/docs, "Maintenance"): `ducklake_expire_snapshots` removes snapshots and schedules for
deletion the files that no other one has; `ducklake_cleanup_old_files` deletes them. Found by trying, with 1.5.5:
- a snapshot that is left stays readable, and so does the change feed between two of them, as `table_changes` reads it:
  it needs the snapshots after its start, not what was there before;
- of inlined tables, whole dropped ones go; the dead rows of living ones stay, and a table of one row that every barrier
  updates has one more after each. `delete_dead_rows` removes them;
- a transaction that began before reads on what it read, as the catalog is versioned itself; only files are gone when
  they are deleted. But a transaction looks for conflicts in the list of snapshots, so those since its start must stay.
"""

from __future__ import annotations

import time

from sparkwave.catalog.lake.ducklake import METADATA, Cursor
from sparkwave.catalog.lake.history import snapshot_at
from sparkwave.catalog.names import quote


def last_snapshot_before(cursor: Cursor, seconds_ago: float) -> int | None:
    """The snapshot that was current so long ago; None if there was none."""
    return snapshot_at(cursor, time.time_ns() // 1000 - int(seconds_ago * 1_000_000))


def expire(cursor: Cursor, before: int, most: int) -> int:
    """Forget the snapshots before one, the oldest first and at most so many. Returns how many."""
    rows = cursor.execute(
        f"SELECT snapshot_id FROM {METADATA}.ducklake_snapshot WHERE snapshot_id < ? ORDER BY snapshot_id LIMIT ?",
        [before, most],
    ).fetchall()
    if rows:
        versions = ", ".join(str(snapshot) for (snapshot,) in rows)
        cursor.execute(f"CALL ducklake_expire_snapshots('lake', versions => [{versions}])")
    return len(rows)


def delete_dead_rows(cursor: Cursor) -> int:
    """Remove inlined rows that no snapshot sees: those that ended at or before the oldest. Returns how many."""
    tables = cursor.execute(f"SELECT table_name FROM {METADATA}.ducklake_inlined_data_tables").fetchall()
    oldest = f"(SELECT min(snapshot_id) FROM {METADATA}.ducklake_snapshot)"
    deleted = 0
    for (table,) in tables:
        row = cursor.execute(f"DELETE FROM {METADATA}.{quote(table)} WHERE end_snapshot <= {oldest}").fetchone()
        deleted += row[0] if row else 0
    return deleted


def delete_files(cursor: Cursor, scheduled_seconds_ago: float) -> int:
    """Delete the files that were scheduled for it so long ago. Returns how many."""
    rows = cursor.execute(
        "CALL ducklake_cleanup_old_files('lake', "
        f"older_than => now() - to_microseconds({int(scheduled_seconds_ago * 1_000_000)}))"
    ).fetchall()
    return len(rows)
