"""The present rows of system tables, read in the tables of the lake's catalog in which DuckLake keeps few rows.

DuckDB plans a query of such a table in a tenth of the time of a query through DuckLake, which first reads the lake's
schema and the table's files and statistics. Found by experiment, with 1.5.5 (asserted by tests/test_system_rows.py): in
a catalog file the columns have the types of the table's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import OWN_COLUMNS, has_file
from sparkwave.catalog.lake.snapshot_changes import Change
from sparkwave.catalog.names import METADATA, SYSTEM_SCHEMA, literal, quote, system_table

# The changes that leave all their rows in the catalog.
_INLINED = ("inlined_insert", "inlined_delete")


class SystemRows:
    """Returns relations with the present rows of some system tables, by name."""

    def __init__(self, tables: Collection[str]) -> None:
        self._tables = tables
        # By name the number of a table that has all its rows in one table of the catalog, and that table's name.
        self._inlined: dict[str, tuple[int, str]] | None = None

    def follow(self, changes: Iterable[Change]) -> None:
        """Look up again where rows are, if a change may have moved some."""
        numbers = {number for number, _ in (self._inlined or {}).values()}
        if any(change.table_id in numbers and change.kind not in _INLINED for change in changes):
            self.forget()

    def forget(self) -> None:
        """Look up again where rows are."""
        self._inlined = None

    def relation(self, cursor: Cursor, table: str) -> str:
        """Return SQL of a relation with a table's present rows, to be read in the cursor's transaction."""
        if self._inlined is None:
            self._inlined = _inlined(cursor, self._tables) if has_file(cursor) else {}
        if table not in self._inlined:
            return system_table(table)
        name = f"{METADATA}.{quote(self._inlined[table][1])}"
        return f"(SELECT {OWN_COLUMNS} FROM {name} WHERE end_snapshot IS NULL)"


def _inlined(cursor: Cursor, tables: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Return the tables without files whose inlined rows all have the table's present shape."""
    rows = cursor.execute(
        f"SELECT t.table_name, table_id, any_value(i.table_name) FROM {METADATA}.ducklake_table t "
        f"JOIN {METADATA}.ducklake_schema s USING (schema_id) "
        f"JOIN {METADATA}.ducklake_inlined_data_tables i USING (table_id) "
        f"JOIN {METADATA}.ducklake_schema_versions v USING (table_id) "
        f"WHERE s.schema_name = {literal(SYSTEM_SCHEMA)} AND t.end_snapshot IS NULL "
        f"AND t.table_name IN ({', '.join(map(literal, tables))}) AND table_id NOT IN "
        f"(SELECT table_id FROM {METADATA}.ducklake_data_file WHERE end_snapshot IS NULL) "
        "GROUP BY ALL HAVING min(i.schema_version) = max(v.schema_version)"
    ).fetchall()
    return {table: (number, name) for table, number, name in rows}
