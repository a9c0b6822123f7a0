"""The files of lake tables and the snapshots that the lake keeps, by DuckLake's counts."""

from __future__ import annotations

from typing import Any

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import METADATA

# The snapshots that `snapshots` returns.
SHOWN = 100

_FILES = f"""
    WITH data AS (
        SELECT table_id, count(*) AS data_files, sum(file_size_bytes)::BIGINT AS data_bytes,
               min(file_size_bytes) AS smallest_bytes, max(file_size_bytes) AS largest_bytes
        FROM {METADATA}.ducklake_data_file WHERE end_snapshot IS NULL GROUP BY table_id
    ), deletes AS (
        SELECT table_id, count(*) AS delete_files, sum(file_size_bytes)::BIGINT AS delete_bytes
        FROM {METADATA}.ducklake_delete_file WHERE end_snapshot IS NULL GROUP BY table_id
    )
    SELECT s.schema_name, t.table_name, coalesce(d.data_files, 0), coalesce(d.data_bytes, 0),
           coalesce(x.delete_files, 0), coalesce(x.delete_bytes, 0), d.smallest_bytes, d.largest_bytes
    FROM {METADATA}.ducklake_table t
    JOIN {METADATA}.ducklake_schema s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
    LEFT JOIN data d ON d.table_id = t.table_id
    LEFT JOIN deletes x ON x.table_id = t.table_id
    WHERE t.end_snapshot IS NULL"""

_SNAPSHOTS = f"""
    SELECT s.snapshot_id, s.snapshot_time,
           coalesce(len(list_distinct(regexp_extract_all(c.changes_made, ':\\s*"?(\\d+)', 1))), 0) AS changed_tables,
           k.kept, k.oldest_at
    FROM (FROM {METADATA}.ducklake_snapshot ORDER BY snapshot_id DESC LIMIT {SHOWN}) s
    LEFT JOIN {METADATA}.ducklake_snapshot_changes c USING (snapshot_id)
    CROSS JOIN (SELECT count(*) AS kept, min(snapshot_time) AS oldest_at FROM {METADATA}.ducklake_snapshot) k
    ORDER BY s.snapshot_id DESC"""


def relation_files(cursor: Cursor) -> dict[tuple[str, str], dict[str, int | None]]:
    """Return the number and bytes of data and delete files of each table, by its schema and name in the lake."""
    names = ("data_files", "data_bytes", "delete_files", "delete_bytes", "smallest_bytes", "largest_bytes")
    rows = cursor.execute(_FILES).fetchall()
    return {(schema, table): dict(zip(names, counts, strict=True)) for schema, table, *counts in rows}


def snapshots(cursor: Cursor) -> list[dict[str, Any]]:
    """Return the newest snapshots, the newest first; each has the number of all, and the oldest's time."""
    names = ("snapshot_id", "created_at", "changed_tables", "kept", "oldest_at")
    return [dict(zip(names, row, strict=True)) for row in cursor.execute(_SNAPSHOTS).fetchall()]
