"""Expires old snapshots of the lake, and deletes the rows and files that only they had.

DuckLake 1.0 (ducklake.select/docs, "Maintenance"): `ducklake_expire_snapshots` removes snapshots and schedules for
deletion the files that no other snapshot has; `ducklake_cleanup_old_files` deletes them. Found by experiment, with
1.5.5:

- a remaining snapshot stays readable, and so does the change feed between two of them, as `table_changes` reads it: it
  needs the snapshots after its start, no earlier ones;
- inlined tables are removed only as a whole, when they are dropped. The dead rows of existing ones stay, so that a
  table of one row which every barrier updates grows by one row each time. `delete_dead_rows` removes them;
- an open transaction goes on reading its rows, as the catalog is versioned itself; only deleted files are gone. But a
  transaction checks for conflicts in the list of snapshots, so those since its start must stay.
"""

from __future__ import annotations

import time

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.history import snapshot_at
from sparkwave.catalog.names import METADATA, quote


def last_snapshot_before(cursor: Cursor, seconds_ago: float) -> int | None:
    """Return the snapshot that was current so many seconds ago; None if there was none."""
    return snapshot_at(cursor, time.time_ns() // 1000 - int(seconds_ago * 1_000_000))


def oldest_before(cursor: Cursor, before: int, most: int) -> list[int]:
    """Return at most `most` snapshots before `before`, the oldest first."""
    rows = cursor.execute(
        f"SELECT snapshot_id FROM {METADATA}.ducklake_snapshot WHERE snapshot_id < ? ORDER BY snapshot_id LIMIT ?",
        [before, most],
    ).fetchall()
    return [snapshot for (snapshot,) in rows]


def expire(cursor: Cursor, before: int, most: int) -> int:
    """Expire the snapshots that `oldest_before` returns. Returns their number."""
    snapshots = oldest_before(cursor, before, most)
    if snapshots:
        cursor.execute(f"CALL ducklake_expire_snapshots('lake', versions => [{', '.join(map(str, snapshots))}])")
    return len(snapshots)


def delete_dead_rows(cursor: Cursor) -> int:
    """Delete inlined rows that no snapshot sees: those that ended at or before the oldest. Returns their number.

    Options of tables that no snapshot has go, too (`catalog.lake.inlining`).
    """
    present = f"SELECT table_id FROM {METADATA}.ducklake_table"
    cursor.execute(f"DELETE FROM {METADATA}.ducklake_metadata WHERE scope = 'table' AND scope_id NOT IN ({present})")
    tables = cursor.execute(f"SELECT table_name FROM {METADATA}.ducklake_inlined_data_tables").fetchall()
    oldest = f"(SELECT min(snapshot_id) FROM {METADATA}.ducklake_snapshot)"
    deleted = 0
    for (table,) in tables:
        row = cursor.execute(f"DELETE FROM {METADATA}.{quote(table)} WHERE end_snapshot <= {oldest}").fetchone()
        deleted += row[0] if row else 0
    return deleted


def delete_files(cursor: Cursor, scheduled_seconds_ago: float) -> int:
    """Delete the files that were scheduled for deletion so many seconds ago. Returns their number."""
    rows = cursor.execute(
        "CALL ducklake_cleanup_old_files('lake', "
        f"older_than => now() - to_microseconds({int(scheduled_seconds_ago * 1_000_000)}))"
    ).fetchall()
    return len(rows)
