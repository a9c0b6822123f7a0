"""Keeps DuckLake from skipping rows by bounds of texts that it does not know.

DuckLake (1.5.5, asserted by tests/test_text_bounds.py) skips rows by the least and the greatest value of each column,
which its catalog has of files and of tables. A file has no bounds if one of them is a text of more than 256 bytes with
other characters than ASCII. The table has none then, and takes those of the next file for its own: the rows of the
first file are found no more. So such columns get bounds that hold for every text. DuckLake remembers a table's bounds
by the number of the next file, so they come with a snapshot of their own.
"""

from __future__ import annotations

import logging

from sparkwave.catalog.lake.memory_transactions import in_transaction
from sparkwave.catalog.lake.translation import Cursor, DuckDBError
from sparkwave.catalog.names import METADATA, literal

logger = logging.getLogger(__name__)

# Of all texts. DuckDB compares the first eight bytes.
LEAST, GREATEST = "", "\U0010ffff" * 2
_TYPES = ("varchar", "json")


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
            newest, columns = self._without_bounds()
            texts = self._of_texts(columns) if columns else []
            if texts:
                with in_transaction(self._cursor):
                    self._widen(texts, time_us)
            self._newest_file = newest
        except DuckDBError:
            logger.warning("rows may not be found by conditions about texts until the next commit", exc_info=True)
            return False
        return bool(texts)

    def _without_bounds(self) -> tuple[int, list[tuple[int, int]]]:
        """Return the newest file, and the columns (table, column) with values in new files that have no bounds."""
        [(newest, columns)] = self._cursor.execute(
            "SELECT max(data_file_id), list((table_id, column_id)) FILTER "
            "(min_value IS NULL AND coalesce(value_count, 1) > 0) "
            f"FROM {METADATA}.ducklake_file_column_stats WHERE data_file_id > {self._newest_file}"
        ).fetchall()
        return self._newest_file if newest is None else newest, [*dict.fromkeys(columns or ())]

    def _of_texts(self, columns: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """Return the columns that have texts; other types have bounds in all files or in none."""
        return self._cursor.execute(
            f"SELECT table_id, column_id FROM {METADATA}.ducklake_column WHERE column_type IN {_TYPES} "
            f"AND end_snapshot IS NULL AND (table_id, column_id) IN ({', '.join(map(str, columns))})"
        ).fetchall()

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
