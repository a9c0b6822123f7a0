"""The history of a lake table's rows, for keeping a copy of the table up to date.

DuckLake 1.0 (ducklake.select/docs, "Data Change Feed"): the feed's functions have the virtual columns `rowid` and
`snapshot_id`. Found by experiment, with 1.5.5: an update is a deletion and an insertion of the same row id in one
snapshot.
"""

from __future__ import annotations

from sparkwave.catalog.lake.change_feed import changed_rows
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import LakeTable

# Columns of `row_history` besides the table's.
ROW, SNAPSHOT, IS_THERE = '"?rowid"', '"?snapshot"', '"?is_there"'


def row_history(cursor: Cursor, table: LakeTable, columns: str, after: int, upto: int, has_deletes: bool) -> str:
    """Return SQL of the changes of rows in snapshots `after < s <= upto`, with `columns` as they were then.

    The last entry of a row counts: the newest snapshot's, and in that snapshot the insertion. The SQL may be run in the
    cursor's transaction.
    """
    came, went = changed_rows(cursor, table, after, upto, has_deletes)
    return " UNION ALL ".join(
        f"SELECT rowid AS {ROW}, snapshot_id AS {SNAPSHOT}, {is_there} AS {IS_THERE}, {columns} FROM {rows}"
        for rows, is_there in ((came, "true"), (went, "false"))
        if rows is not None
    )


def last_entries(history: str, columns: str) -> str:
    """Return SQL of the row ids and columns of the rows that exist at the end of a history."""
    return (
        f"SELECT {ROW}, {columns} FROM {history} QUALIFY {IS_THERE} AND "
        f"row_number() OVER (PARTITION BY {ROW} ORDER BY {SNAPSHOT} DESC, {IS_THERE} DESC) = 1"
    )
