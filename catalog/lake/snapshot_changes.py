"""The changes that snapshots of the lake have made, as DuckLake's catalog lists them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.names import METADATA

# From (lake schema, table) to whether rows were deleted or updated, not only inserted.
ChangedTables = dict[tuple[str, str], bool]


# DuckLake's names of row changes in `changes_made`, and whether they remove rows.
ROW_CHANGES = {
    "inserted_into_table": False,
    "inlined_insert": False,
    "deleted_from_table": True,
    "inlined_delete": True,
}


@dataclass(frozen=True)
class Change:
    """A change of a table in a snapshot: DuckLake's name of the change, and the lake's number of the table."""

    snapshot: int
    kind: str
    table_id: int


def is_kept(cursor: Cursor, after: int, upto: int) -> bool:
    """Return whether no snapshot `after < s <= upto` has expired, so that all changes are known. Ids have no gaps."""
    cursor.execute(
        f"SELECT count(*) FROM {METADATA}.ducklake_snapshot WHERE snapshot_id > ? AND snapshot_id <= ?", [after, upto]
    )
    return first_row(cursor) == (upto - after,)


def changes_made(cursor: Cursor, after: int, upto: int) -> list[Change]:
    """Return the changes of tables in snapshots `after < s <= upto` that have not expired."""
    rows = cursor.execute(
        f"SELECT snapshot_id, changes_made FROM {METADATA}.ducklake_snapshot_changes "
        "WHERE snapshot_id > ? AND snapshot_id <= ?",
        [after, upto],
    ).fetchall()
    return _parsed(rows)


def newest_changes(cursor: Cursor, after: int) -> tuple[list[Change], int]:
    """Return the changes of tables in all snapshots after one, and the newest snapshot's schema version.

    The version grows with each change of the schema. It is -1 if there are no such snapshots.
    """
    rows = cursor.execute(
        f"SELECT c.snapshot_id, c.changes_made, s.schema_version FROM {METADATA}.ducklake_snapshot_changes c "
        f"JOIN {METADATA}.ducklake_snapshot s USING (snapshot_id) WHERE c.snapshot_id > {after}"
    ).fetchall()
    return _parsed((snapshot, changes) for snapshot, changes, _ in rows), max((row[2] for row in rows), default=-1)


def _parsed(rows: Iterable[tuple[int, str | None]]) -> list[Change]:
    return [
        Change(snapshot, kind, int(table_id))
        for snapshot, changes in rows
        for kind, table_id in re.findall(r"(\w+):(\d+)", changes or "")
    ]
