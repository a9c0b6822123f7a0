"""Which tables have their few new rows in the lake's catalog instead of files (DuckLake 1.0, "Data Inlining").

DuckLake writes such rows as literals into the catalog. In a catalog file DuckDB (1.5.5) reads a literal of more than 15
digits as a decimal and rounds it a second time to a float, so that some 3 % of the doubles and of the reals differ in
the last digit (asserted by tests/test_inlined_floats.py). So tables with floats have their rows in files, except those
that Sparkwave writes into the catalog itself, as they are (`catalog.lake.inlined_writes`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from sparkwave.catalog.lake.translation import Cursor, DuckDBError
from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.names import METADATA, SYSTEM_SCHEMA, literal

logger = logging.getLogger(__name__)

# Up to so many rows are as fast to write into the catalog, as an INSERT, as to a file, and faster to read.
INLINED_ROWS = 32
_LIMIT = "data_inlining_row_limit"
# Tables that have floats, also within other types, and no limit of their own.
_NEW_WITH_FLOATS = f"""
    SELECT DISTINCT schema_name, table_name FROM {METADATA}.ducklake_table AS t
    JOIN {METADATA}.ducklake_schema AS s USING (schema_id)
    JOIN {METADATA}.ducklake_column AS c USING (table_id)
    WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL AND c.end_snapshot IS NULL
    AND c.column_type IN ('float32', 'float64') AND schema_name <> {literal(SYSTEM_SCHEMA)} AND NOT EXISTS (
        FROM {METADATA}.ducklake_metadata AS m
        WHERE m.key = {literal(_LIMIT)} AND m.scope = 'table' AND m.scope_id = t.table_id
    )
"""


class Inlining:
    """The limits of a lake."""

    def __init__(self, catalog: Cursor, lake: Cursor, is_exact: bool) -> None:
        """`catalog` reads the catalog alone, `lake` waits where the schema is changed.

        `is_exact` tells that the catalog reads literals as they are, as PostgreSQL does.
        """
        self._catalog, self._lake, self._is_exact = catalog, lake, is_exact
        self._lock, self._pauses = RankedLock(), 0

    def start(self) -> None:
        """Set the limits of all tables of a lake that has just been opened."""
        self._set(INLINED_ROWS)
        self._set(INLINED_ROWS, f"schema => {literal(SYSTEM_SCHEMA)}")
        self.keep_floats_out()

    def keep_floats_out(self) -> None:
        """Have the rows of new tables with floats in files. Call this after each commit that makes or alters tables.

        The commit has succeeded, whatever happens here: what cannot be set is set after the next one.
        """
        if self._is_exact:
            return
        try:
            with self._lock:
                for schema, table in self._catalog.execute(_NEW_WITH_FLOATS).fetchall():
                    self._set(0, f"schema => {literal(schema)}", f"table_name => {literal(table)}")
        except DuckDBError:
            logger.warning("new tables with floats may store them rounded until the schema changes", exc_info=True)

    @contextmanager
    def off(self, has_floats: bool) -> Iterator[None]:
        """While entered, tables without a limit of their own have their rows in files.

        For the first rows of a table with floats, in the transaction that makes it: a limit cannot be set before its
        commit. The commit itself must come later, because what an ALTER TABLE commits without a limit makes DuckLake
        (1.5.5) fail to inline rows afterwards; so the caller holds the commit lock.
        """
        if self._is_exact or not has_floats:
            yield
            return
        self._pause(1)
        try:
            yield
        finally:
            self._pause(-1)

    def _pause(self, change: int) -> None:
        with self._lock:
            before, self._pauses = self._pauses, self._pauses + change
            if not before or not self._pauses:
                self._set(0 if self._pauses else INLINED_ROWS)

    def _set(self, rows: int, *scope: str) -> None:
        self._lake.execute(f"CALL lake.set_option({', '.join([literal(_LIMIT), literal(str(rows)), *scope])})")
