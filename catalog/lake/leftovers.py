"""Deletes in the background those rows of Sparkwave's own relations that no query reads any more.

A DELETE in the lake is its slowest statement, above all for a table without rows. So the end of a job or of a relation
leaves rows that only describe it; ids are never used again.
"""

from __future__ import annotations

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.model import CREATING
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores import compute_errors, view_checksums
from sparkwave.catalog.stores.compute_errors import COMPUTE_ERRORS
from sparkwave.catalog.stores.job_store import STEPS
from sparkwave.catalog.stores.view_audits import VIEW_AUDITS, keep_newest
from sparkwave.catalog.stores.view_checksums import VIEW_CHECKSUMS


def forget_leftovers(cursor: Cursor) -> None:
    """Delete such rows, in the cursor's transaction, and all epochs and ids except the newest."""
    for table in STEPS:
        _keep(cursor, table, "job_id", f"SELECT id FROM {system_table('jobs')} WHERE status = '{CREATING}'")
    for described in (COMPUTE_ERRORS, VIEW_CHECKSUMS, VIEW_AUDITS):
        _keep(cursor, described.name, "relation_id", f"SELECT id FROM {system_table('relations')}")
    compute_errors.add_up(cursor)
    view_checksums.add_up(cursor)
    keep_newest(cursor)
    for table, column in (("epoch", "snapshot"), ("epoch", "time_us"), ("identifiers", "next_id")):
        _keep_newest(cursor, table, column)


def _keep(cursor: Cursor, table: str, column: str, kept: str) -> None:
    """Delete the rows of a table except those with the ids of a query."""
    others = f"FROM {system_table(table)} WHERE {column} NOT IN ({kept})"
    if cursor.execute(f"SELECT 1 {others} LIMIT 1").fetchone():
        cursor.execute(f"DELETE {others}")


def _keep_newest(cursor: Cursor, table: str, column: str) -> None:
    row = first_row(cursor.execute(f"SELECT min({column}), max({column}) FROM {system_table(table)}"))
    if row is not None and row[0] != row[1]:
        cursor.execute(f"DELETE FROM {system_table(table)} WHERE {column} < {row[1]}")
