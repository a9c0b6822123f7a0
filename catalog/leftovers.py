"""What is left in Sparkwave's own relations that nobody reads any more, and goes in the background.

A DELETE in the lake takes longer than any other statement, and most for a table without rows. So what ends a job or
drops a relation leaves rows that only say something of it; ids are never given again.
"""

from __future__ import annotations

from collections.abc import Collection

from catalog.compute_errors import COMPUTE_ERRORS, add_up
from catalog.job_store import STEPS
from catalog.lake import Cursor, first_row
from catalog.model import CREATING
from catalog.names import system_table
from catalog.store import Store


def forget_leftovers(store: Store, cursor: Cursor) -> None:
    """Delete them, in the cursor's transaction: all epochs and ids but the newest among them."""
    for table in STEPS:
        _keep(cursor, table, "job_id", [job.id for job in store.catalog.jobs if job.status == CREATING])
    _keep(cursor, COMPUTE_ERRORS.name, "relation_id", store.catalog.by_id)
    add_up(cursor)
    for table, column in (("epoch", "snapshot"), ("epoch", "time_us"), ("identifiers", "next_id")):
        _keep_newest(cursor, table, column)


def _keep(cursor: Cursor, table: str, column: str, kept: Collection[int]) -> None:
    stored = cursor.execute(f"SELECT DISTINCT {column} FROM {system_table(table)}").fetchall()
    gone = {id_ for (id_,) in stored}.difference(kept)
    if gone:
        cursor.execute(f"DELETE FROM {system_table(table)} WHERE {column} IN ({', '.join(map(str, gone))})")


def _keep_newest(cursor: Cursor, table: str, column: str) -> None:
    row = first_row(cursor.execute(f"SELECT min({column}), max({column}) FROM {system_table(table)}"))
    if row is not None and row[0] != row[1]:
        cursor.execute(f"DELETE FROM {system_table(table)} WHERE {column} < {row[1]}")
