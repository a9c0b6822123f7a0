"""Keeps what DuckLake forgets of the times when rows were written: see `catalog.commit_times`."""

from __future__ import annotations

import re

from sparkwave.catalog.commit_times import KEPT, MOVED, ROW, TIMES, WRITER, rows_with_writers
from sparkwave.catalog.lake.snapshot_changes import ROW_CHANGES
from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.names import METADATA, SYSTEM_SCHEMA, LakeTable, literal

# The most rows that a compaction leaves in MOVED: where rows were written one by one there would be as many as rows.
MOST_RUNS = 100
_KEPT_US = 60_000_000  # one time is kept for each so many microseconds


def times_to_keep(cursor: Cursor, snapshots: list[int]) -> list[tuple[int, int]]:
    """Return the snapshots with their times, one a minute, that have changed rows of users' tables."""
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
            kept.setdefault(time_us // _KEPT_US, (snapshot, time_us))
    return list(kept.values())


def keep_times(cursor: Cursor, times: list[tuple[int, int]]) -> None:
    """Keep the times of snapshots that are about to expire, in the cursor's transaction."""
    cursor.execute(f"INSERT INTO {KEPT} VALUES {', '.join(f'({snapshot}, {time_us})' for snapshot, time_us in times)}")


def keep_writers(cursor: Cursor, table: LakeTable, condition: str, append_only: bool) -> None:
    """Keep the snapshots that wrote the rows with a condition, which the cursor's transaction updates to themselves.

    If that takes more than MOST_RUNS rows, neighbours of an append-only table get the last of their snapshots, which
    are near each other; rows of other tables have an unknown one. No other transaction may commit before.
    """
    rows = rows_with_writers(f"{table.sql} WHERE {condition}", table)
    runs = (
        f"SELECT min({ROW}) AS row_from, max({ROW}) AS row_to, {WRITER} AS writer FROM (SELECT *, "
        f"row_number() OVER (ORDER BY {ROW}) - row_number() OVER (PARTITION BY {WRITER} ORDER BY {ROW}) AS run "
        f"FROM ({rows})) GROUP BY {WRITER}, run"
    )
    part = f"if(count(*) OVER () <= {MOST_RUNS}, row_from, ntile({MOST_RUNS}) OVER (ORDER BY row_from))"
    of_many = "max(writer)" if append_only else f"if(any_value(runs) <= {MOST_RUNS}, max(writer), NULL)"
    cursor.execute(
        f"INSERT INTO {MOVED} SELECT {literal(table.schema)}, {literal(table.name)}, "
        f"(SELECT max(snapshot_id) + 1 FROM {METADATA}.ducklake_snapshot), min(row_from), max(row_to), {of_many} "
        f"FROM (SELECT *, count(*) OVER () AS runs, {part} AS part FROM ({runs})) GROUP BY part"
    )
