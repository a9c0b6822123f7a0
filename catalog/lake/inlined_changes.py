"""The changes of a table that the lake's catalog holds itself.

DuckLake keeps a few changed rows in tables of its catalog: inserted rows in `ducklake_inlined_data_*`, with the
snapshots of their insertion and deletion, and rows deleted from files in `ducklake_inlined_delete_*` (DuckLake 1.0,
ducklake.select/docs, "Data Inlining"). Its functions of the change feed find them too, but with ten queries of the
catalog first. Found by experiment, with 1.5.5: in a catalog file the columns have the types of the table's.
"""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import NEWEST, has_file, inlined_deletes, inlined_tables, locate
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.snapshot_changes import changes_made
from sparkwave.catalog.names import METADATA, LakeTable, quote

# The changes that leave all their rows in the catalog. Any other change, also a later one, may move rows.
INLINED = ("inlined_insert", "inlined_delete")
# The columns of DuckLake's own in a table of inlined rows.
CATALOG_COLUMNS = "row_id", "begin_snapshot", "end_snapshot"


@dataclass(frozen=True)
class InlinedRows:
    """SQL of relations with the inserted and the deleted rows, with `rowid` and `snapshot_id`; None where unknown."""

    came: str | None = None
    went: str | None = None


def inlined_rows(cursor: Cursor, table: LakeTable, after: int, upto: int, has_deletes: bool) -> InlinedRows:
    """Return the inlined changes in snapshots `after < s <= upto`, to be read in the cursor's transaction."""
    if not has_file(cursor):
        return InlinedRows()
    located = locate(cursor, table, after)
    names = inlined_tables(cursor, located[0]) if located is not None else []
    if located is None or len(names) != 1:  # rows of other shapes have other columns
        return InlinedRows()
    number, [name] = located[0], names
    if any(c.table_id == number and c.kind not in INLINED for c in changes_made(cursor, after, NEWEST)):
        return InlinedRows()
    came = _relation(name, "begin_snapshot", after, upto)
    if not has_deletes or _has_lost_rows_of_files(cursor, number, after, upto):
        return InlinedRows(came)
    return InlinedRows(came, _relation(name, "end_snapshot", after, upto))


def _relation(name: str, column: str, after: int, upto: int) -> str:
    columns = ", ".join(CATALOG_COLUMNS)
    return (
        f"(SELECT * EXCLUDE ({columns}), row_id AS rowid, {column} AS snapshot_id FROM {METADATA}.{quote(name)} "
        f"WHERE {column} > {after} AND {column} <= {upto})"
    )


def _has_lost_rows_of_files(cursor: Cursor, number: int, after: int, upto: int) -> bool:
    name = inlined_deletes(cursor, number)
    if name is None:
        return False
    query = f"SELECT count(*) FROM {METADATA}.{name} WHERE begin_snapshot > {after} AND begin_snapshot <= {upto}"
    return first_row(cursor.execute(query)) != (0,)
