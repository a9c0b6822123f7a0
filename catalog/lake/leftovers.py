"""Deletes in the background those rows of Sparkwave's own relations that no query reads any more.

A DELETE in the lake is its slowest statement, above all for a table without rows. So the end of a job or of a relation
leaves rows that only describe it; ids are never used again.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.system_rows import SystemRows
from sparkwave.catalog.model import CREATING
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores import compute_errors, view_checksums
from sparkwave.catalog.stores.compute_errors import COMPUTE_ERRORS
from sparkwave.catalog.stores.job_store import STEPS
from sparkwave.catalog.stores.view_audits import VIEW_AUDITS, keep_newest
from sparkwave.catalog.stores.view_checksums import VIEW_CHECKSUMS


def forget_leftovers(cursor: Cursor) -> None:
    """Delete such rows, in the cursor's transaction, and all epochs and ids except the newest.

    The transaction may have stored an epoch before, and nothing else that this reads.
    """
    rows = SystemRows(_READ)

    def stored(table: str) -> str:
        """Return SQL of the table's rows before this transaction."""
        return rows.relation(cursor, table)

    for table in STEPS:
        _keep(cursor, stored, table, "job_id", lambda of: f"SELECT id FROM {of('jobs')} WHERE status = '{CREATING}'")
    for table in _DESCRIBING:
        _keep(cursor, stored, table, "relation_id", lambda of: f"SELECT id FROM {of('relations')}")
    compute_errors.add_up(cursor, stored(COMPUTE_ERRORS.name))
    view_checksums.add_up(cursor, stored(VIEW_CHECKSUMS.name))
    keep_newest(cursor, stored(VIEW_AUDITS.name))
    _keep_newest(cursor, "epoch", system_table("epoch"), "snapshot", "time_us")
    _keep_newest(cursor, "identifiers", stored("identifiers"), "next_id")


_DESCRIBING = ("columns", *(table.name for table in (COMPUTE_ERRORS, VIEW_CHECKSUMS, VIEW_AUDITS)))
_READ = (*STEPS, *_DESCRIBING, "jobs", "relations", "identifiers")


# Returns SQL of a table's rows.
_Rows = Callable[[str], str]


def _keep(cursor: Cursor, stored: _Rows, table: str, column: str, kept: Callable[[_Rows], str]) -> None:
    """Delete the rows of a table except those with the ids of a query.

    The quick relations tell only whether there is anything to delete. What goes is what DuckLake says.
    """

    def others(of: _Rows) -> str:
        return f"FROM {of(table)} WHERE {column} NOT IN ({kept(of)})"

    if cursor.execute(f"SELECT 1 {others(stored)} LIMIT 1").fetchone():
        cursor.execute(f"DELETE {others(system_table)}")


def _keep_newest(cursor: Cursor, table: str, stored: str, *columns: str) -> None:
    """Delete the rows of a table that have less in one of the columns than another row."""
    listed = ", ".join(f"[min({column}), max({column})]" for column in columns)
    [bounds] = cursor.execute(f"SELECT {listed} FROM {stored}").fetchall()
    for column, (least, most) in zip(columns, bounds, strict=True):
        if least != most:
            cursor.execute(f"DELETE FROM {system_table(table)} WHERE {column} < {most}")
