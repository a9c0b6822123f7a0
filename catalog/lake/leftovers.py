"""What is left in Sparkwave's own relations that nobody reads any more, and goes in the background.

A DELETE in the lake takes longer than any other statement, and most for a table without rows. So what ends a job or
drops a relation leaves rows that only say something of it; ids are never given again.
"""

from __future__ import annotations

from sparkwave.catalog.lake.ducklake import Cursor, first_row
from sparkwave.catalog.model import CREATING
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores.compute_errors import COMPUTE_ERRORS, add_up
from sparkwave.catalog.stores.job_store import STEPS


def forget_leftovers(cursor: Cursor) -> None:
    """Delete them, in the cursor's transaction: all epochs and ids but the newest among them."""
    for table in STEPS:
        _keep(cursor, table, "job_id", f"SELECT id FROM {system_table('jobs')} WHERE status = '{CREATING}'")
    _keep(cursor, COMPUTE_ERRORS.name, "relation_id", f"SELECT id FROM {system_table('relations')}")
    add_up(cursor)
    for table, column in (("epoch", "snapshot"), ("epoch", "time_us"), ("identifiers", "next_id")):
        _keep_newest(cursor, table, column)


def _keep(cursor: Cursor, table: str, column: str, kept: str) -> None:
    """Delete the rows of a table but those of the ids that a query has."""
    others = f"FROM {system_table(table)} WHERE {column} NOT IN ({kept})"
    if cursor.execute(f"SELECT 1 {others} LIMIT 1").fetchone():
        cursor.execute(f"DELETE {others}")


def _keep_newest(cursor: Cursor, table: str, column: str) -> None:
    row = first_row(cursor.execute(f"SELECT min({column}), max({column}) FROM {system_table(table)}"))
    if row is not None and row[0] != row[1]:
        cursor.execute(f"DELETE FROM {system_table(table)} WHERE {column} < {row[1]}")
