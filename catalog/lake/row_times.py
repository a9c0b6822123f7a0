"""Keeps what DuckLake forgets of the times when rows were written: see `catalog.commit_times`."""

from __future__ import annotations

import re

from sparkwave.catalog.commit_times import KEPT, MOVED, ROW, TIMES, WRITER, rows_with_writers
from sparkwave.catalog.lake.lake_tables import locate
from sparkwave.catalog.lake.snapshot_changes import ROW_CHANGES
from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.names import METADATA, SYSTEM_SCHEMA, LakeTable, literal


def times_to_keep(cursor: Cursor, snapshots: list[int]) -> list[tuple[int, int]]:
    """Return the snapshots with their times, one a second, that have changed rows of users' tables."""
    own = {
        id_
        for (id_,) in cursor.execute(
            f"SELECT table_id FROM {METADATA}.ducklake_table t JOIN {METADATA}.ducklake_schema s USING (schema_id) "
            f"WHERE s.schema_name <> {literal(SYSTEM_SCHEMA)} AND t.end_snapshot IS NULL"
        ).fetchall()
    }
    rows = cursor.execute(
        f"SELECT t.snapshot_id, t.time_us, c.changes_made FROM ({TIMES}) t "
        f"JOIN {METADATA}.ducklake_snapshot_changes c USING (snapshot_id) "
        "WHERE t.snapshot_id BETWEEN ? AND ? ORDER BY t.snapshot_id",
        [min(snapshots), max(snapshots)],
    ).fetchall()
    kept: dict[int, tuple[int, int]] = {}
    for snapshot, time_us, changes in rows:
        tables = {int(id_) for kind, id_ in re.findall(r"(\w+):(\d+)", changes or "") if kind in ROW_CHANGES}
        if tables & own:
            kept.setdefault(time_us // 1_000_000, (snapshot, time_us))
    return list(kept.values())


def keep_times(cursor: Cursor, times: list[tuple[int, int]]) -> None:
    """Keep the times of snapshots that are about to expire, in the cursor's transaction."""
    cursor.execute(f"INSERT INTO {KEPT} VALUES {', '.join(f'({snapshot}, {time_us})' for snapshot, time_us in times)}")


def keep_writers(cursor: Cursor, table: LakeTable, condition: str) -> None:
    """Keep the snapshots that wrote the rows with a condition, which the cursor's transaction updates to themselves.

    No other transaction may commit before this one.
    """
    if locate(cursor, LakeTable(SYSTEM_SCHEMA, "moved_rows")) is None:
        return
    rows = rows_with_writers(f"{table.sql} WHERE {condition}", table)
    cursor.execute(
        f"INSERT INTO {MOVED} SELECT {literal(table.schema)}, {literal(table.name)}, "
        f"(SELECT max(snapshot_id) + 1 FROM {METADATA}.ducklake_snapshot), min({ROW}), max({ROW}), {WRITER} "
        f"FROM (SELECT *, row_number() OVER (ORDER BY {ROW}) - row_number() OVER (PARTITION BY {WRITER} "
        f"ORDER BY {ROW}) AS run FROM ({rows})) GROUP BY {WRITER}, run"
    )
