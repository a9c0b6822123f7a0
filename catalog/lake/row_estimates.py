"""How many rows a query may read, by DuckLake's counts of the tables that its text names."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress

from sparkwave.catalog.lake.translation import Cursor, DuckDBError
from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.names import BUFFER, VIEWS_SCHEMA, LakeTable, name_in_memory

# The counts are read again, when they are asked for, after so long.
_AGE_S = 1.0
_NAME = r'"(?:[^"]|"")*"'
_TABLE = re.compile(rf"\blake\.({_NAME}\.{_NAME})|\b{BUFFER}\.{VIEWS_SCHEMA}\.({_NAME})")
_MAKES_ROWS = re.compile(r"\b(?:range|generate_series)\(", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")


class RowEstimates:
    """Keeps the counts of all tables of a lake. Deleted rows count as long as DuckLake counts them."""

    def __init__(self, cursor: Cursor, metadata: str) -> None:
        """`metadata` names the database of DuckLake's catalog."""
        self._cursor = cursor
        self._query = (
            "SELECT schema_name, table_name, record_count "
            f"FROM {metadata}.ducklake_table_stats JOIN {metadata}.ducklake_table t USING (table_id) "
            f"JOIN {metadata}.ducklake_schema s USING (schema_id) "
            "WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL"
        )
        self._lock = RankedLock()
        self._read_at = -math.inf
        self._rows: Mapping[str, int] = {}

    def of(self, sql: str) -> int:
        """Return about how many rows the tables have that a query's text names, and series with numbers in it."""
        names = {stored or shown[1:-1].replace('""', '"') for stored, shown in _TABLE.findall(sql)}
        rows = self._present() if names else {}
        made = max(map(int, _NUMBER.findall(sql)), default=0) if _MAKES_ROWS.search(sql) else 0
        return made + sum(rows.get(name, 0) for name in names)

    def of_table(self, table: LakeTable) -> int:
        """Return about how many rows a table has."""
        return self._present().get(name_in_memory(table), 0)

    def _present(self) -> Mapping[str, int]:
        if time.monotonic() - self._read_at > _AGE_S:
            with self._lock:
                self._read_at = time.monotonic()
                with suppress(DuckDBError):  # the older counts are estimates, too
                    found = self._cursor.execute(self._query).fetchall()
                    self._rows = {name_in_memory(LakeTable(schema, name)): rows for schema, name, rows in found}
        return self._rows
