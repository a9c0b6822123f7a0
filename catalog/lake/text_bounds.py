"""Keeps DuckLake from skipping rows by bounds of texts and bytes that it does not know, or reads wrongly.

DuckLake (1.5.5, asserted by tests/test_text_bounds.py) skips rows by the least and the greatest value of each column,
which its catalog has of files and of tables:

- a file has no bounds if one of them is a text of more than 256 bytes with other characters than ASCII. The table has
  none then, and takes those of the next file for its own: the rows of the first file are found no more. So such
  columns get bounds that hold for every text;
- bounds of bytes are compared with constants as texts of another form. So files get none.

DuckLake remembers a table's bounds by the number of the next file, so new bounds come with a snapshot of their own.
"""

from __future__ import annotations

import logging

from sparkwave.catalog.lake.memory_transactions import in_transaction
from sparkwave.catalog.lake.translation import Cursor, DuckDBError
from sparkwave.catalog.names import METADATA, literal

logger = logging.getLogger(__name__)

# Of all texts. DuckDB compares the first eight bytes.
LEAST, GREATEST = "", "\U0010ffff" * 2
_TEXTS, _BYTES = "('varchar', 'json')", "blob"


class TextBounds:
    """Mends the bounds in the catalog of a lake. The caller lets no other transaction commit meanwhile."""

    def __init__(self, cursor: Cursor) -> None:
        """The cursor is for this object alone."""
        self._cursor, self._newest_file = cursor, -1

    def mend(self, time_us: int) -> bool:
        """Mend the bounds of files that are new since the last call, and of their tables.

        Returns whether this has made a snapshot, with the commit time `time_us`. What fails is tried again by the next
        call.
        """
        try:
            newest, texts, has_bytes = self._found()
            if texts or has_bytes:
                with in_transaction(self._cursor):
                    if has_bytes:
                        self._forget_bytes()
                    if texts:
                        self._widen(texts, time_us)
            self._newest_file = newest
        except DuckDBError:
            logger.warning("rows may not be found by conditions about texts until the next commit", exc_info=True)
            return False
        return bool(texts)

    def _found(self) -> tuple[int, list[tuple[int, int]], bool]:
        """Return the newest file, columns (table, column) of texts without bounds, and whether any bytes have some."""
        unknown = f"c.column_type IN {_TEXTS} AND f.min_value IS NULL AND coalesce(f.value_count, 1) > 0"
        query = (
            f"SELECT f.table_id, f.column_id, max(f.data_file_id), coalesce(bool_or({unknown}), false), "
            f"coalesce(bool_or(c.column_type = '{_BYTES}' AND f.min_value IS NOT NULL), false) "
            f"FROM {METADATA}.ducklake_file_column_stats AS f LEFT JOIN {METADATA}.ducklake_column AS c "
            "ON f.table_id = c.table_id AND f.column_id = c.column_id AND c.end_snapshot IS NULL "
            f"WHERE f.data_file_id > {self._newest_file} GROUP BY ALL"
        )
        rows = self._cursor.execute(query).fetchall()
        newest = max((file for _, _, file, *_ in rows), default=self._newest_file)
        return newest, [row[:2] for row in rows if row[3]], any(row[4] for row in rows)

    def _forget_bytes(self) -> None:
        columns = (
            f"SELECT table_id, column_id FROM {METADATA}.ducklake_column "
            f"WHERE column_type = '{_BYTES}' AND end_snapshot IS NULL"
        )
        for table, column in self._cursor.execute(columns).fetchall():
            self._cursor.execute(
                f"UPDATE {METADATA}.ducklake_file_column_stats SET min_value = NULL, max_value = NULL "
                f"WHERE table_id = {table} AND column_id = {column} AND data_file_id > {self._newest_file}"
            )

    def _widen(self, columns: list[tuple[int, int]], time_us: int) -> None:
        for table, column in columns:
            self._cursor.execute(
                f"UPDATE {METADATA}.ducklake_table_column_stats "
                f"SET min_value = {literal(LEAST)}, max_value = {literal(GREATEST)} "
                f"WHERE table_id = {table} AND column_id = {column}"
            )
        [(snapshot, version, catalog_id, file_id)] = self._cursor.execute(
            f"SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM {METADATA}.ducklake_snapshot "
            "ORDER BY snapshot_id DESC LIMIT 1"
        ).fetchall()
        self._cursor.execute(
            f"INSERT INTO {METADATA}.ducklake_snapshot "
            f"VALUES ({snapshot + 1}, now(), {version}, {catalog_id}, {file_id + 1});"
            f"INSERT INTO {METADATA}.ducklake_snapshot_changes "
            f"VALUES ({snapshot + 1}, '', NULL, NULL, '{time_us}')"
        )
