"""SQL of when the rows of tables were last written: the commit times of their snapshots.

DuckLake's scans have the snapshot that wrote a row, also after flushes and merges (`snapshot_id`; found by experiment,
with 1.5.5: tests/test_row_times.py). `catalog.lake.row_times` keeps what DuckLake forgets: the times of expired
snapshots, and the snapshots that wrote rows which compaction has updated to themselves.
"""

from __future__ import annotations

from sparkwave.catalog.names import METADATA, LakeTable, literal, quote, system_table

KEPT, MOVED = system_table("commit_times"), system_table("moved_rows")
# Snapshots that DuckLake made by itself have only DuckLake's time: see `catalog.lake.history`.
TIME_US = "coalesce(try_cast(c.commit_extra_info AS BIGINT), epoch_us(s.snapshot_time))"
TIMES = (
    f"SELECT s.snapshot_id, {TIME_US} AS time_us FROM {METADATA}.ducklake_snapshot s "
    f"LEFT JOIN {METADATA}.ducklake_snapshot_changes c USING (snapshot_id)"
)
# Columns that no table of a user has: a row's id, the snapshot that wrote it, and the microsecond of this commit.
ROW, WRITER, TIME = (quote(f"?{name}") for name in ("row", "writer", "time"))
_OWN, _SNAPSHOT, _FROM, _TO, _WRITTEN = (quote(f"?{name}") for name in ("own", "snapshot", "from", "to", "written"))


def rows_with_times(rows: str, table: LakeTable) -> str:
    """Return SQL of the rows of a table, written as in FROM, with their `rowid` and the TIME of each.

    The time is NULL for a row that is not committed, or whose snapshot is not known.
    """
    times = (
        f"SELECT snapshot_id AS {_SNAPSHOT}, time_us AS {TIME} FROM ({TIMES}) AS known "
        f"UNION ALL SELECT snapshot, time_us FROM {KEPT}"
    )
    return (
        f"SELECT stored.*, stored.{ROW} AS rowid, times.{TIME} FROM ({rows_with_writers(rows, table)}) AS stored "
        f"ASOF LEFT JOIN ({times}) AS times ON stored.{WRITER} >= times.{_SNAPSHOT}"
    )


def rows_with_writers(rows: str, table: LakeTable) -> str:
    """Return SQL of rows with the snapshot that last wrote each, but for compaction."""
    moved = (
        f"SELECT snapshot AS {_SNAPSHOT}, row_from AS {_FROM}, row_to AS {_TO}, written AS {_WRITTEN} FROM {MOVED} "
        f"WHERE table_schema = {literal(table.schema)} AND table_name = {literal(table.name)}"
    )
    return (
        f"SELECT stored.*, CASE WHEN stored.{ROW} <= moved.{_TO} THEN moved.{_WRITTEN} ELSE stored.{_OWN} END "
        f"AS {WRITER} FROM (SELECT rowid AS {ROW}, snapshot_id AS {_OWN}, * FROM {rows}) AS stored "
        f"ASOF LEFT JOIN ({moved}) AS moved "
        f"ON stored.{_OWN} = moved.{_SNAPSHOT} AND stored.{ROW} >= moved.{_FROM}"
    )
