"""Which tables have their few new rows in the lake's catalog instead of files (DuckLake 1.0, "Data Inlining").

DuckLake writes such rows as literals into the catalog, and there are types whose values change by that:

- In a catalog file DuckDB (1.5.5) reads a literal of more than 15 digits as a decimal and rounds it a second time to a
  float, so that some 3 % of the doubles and of the reals differ in the last digit (asserted by
  tests/test_inlined_floats.py).
- In a PostgreSQL rows, maps and arrays are texts, which DuckDB reads differently from how DuckLake writes them: rows
  lose quotes and backslashes, and arrays within arrays cannot be read (asserted by tests/test_inlined_rows.py).

So tables with such types have their rows in files, except those that Sparkwave writes into the catalog itself, as they
are (`catalog.lake.inlined_writes`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sparkwave.catalog.lake.translation import Cursor, DuckDBError
from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.names import METADATA, SYSTEM_SCHEMA, literal
from sparkwave.catalog.types import Type

logger = logging.getLogger(__name__)

# Up to so many rows are as fast to write into the catalog, as an INSERT, as to a file, and faster to read.
INLINED_ROWS = 32
_LIMIT = "data_inlining_row_limit"
# DuckLake's columns, with those within others, whose values change: in a catalog file, in a PostgreSQL.
_FLOATS = "c.column_type IN ('float32', 'float64')"
_COMPOSED = "c.column_type IN ('struct', 'map') OR (c.column_type = 'list' AND c.parent_column IS NOT NULL)"
# Tables that have such columns, and no limit of their own.
_NEW_WITH = f"""
    SELECT DISTINCT schema_name, table_name FROM {METADATA}.ducklake_table AS t
    JOIN {METADATA}.ducklake_schema AS s USING (schema_id)
    JOIN {METADATA}.ducklake_column AS c USING (table_id)
    WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL AND c.end_snapshot IS NULL
    AND ({{}}) AND schema_name <> {literal(SYSTEM_SCHEMA)} AND NOT EXISTS (
        FROM {METADATA}.ducklake_metadata AS m
        WHERE m.key = {literal(_LIMIT)} AND m.scope = 'table' AND m.scope_id = t.table_id
    )
"""


class Inlining:
    """The limits of a lake."""

    def __init__(self, catalog: Cursor, lake: Cursor, is_in_postgres: bool) -> None:
        """`catalog` reads the catalog alone, `lake` waits where the schema is changed.

        `is_in_postgres` tells where the catalog is.
        """
        self._catalog, self._lake, self._is_in_postgres = catalog, lake, is_in_postgres
        self._lock, self._pauses = RankedLock(), 0

    def start(self) -> None:
        """Set the limits of all tables of a lake that has just been opened."""
        self._set(INLINED_ROWS)
        self._set(INLINED_ROWS, f"schema => {literal(SYSTEM_SCHEMA)}")
        self.limit_new_tables()

    def limit_new_tables(self) -> None:
        """Have the rows of new tables in files, if their values change otherwise.

        Call this after each commit that makes or alters tables. The commit has succeeded, whatever happens here: what
        cannot be set is set after the next one.
        """
        query = _NEW_WITH.format(_COMPOSED if self._is_in_postgres else _FLOATS)
        try:
            with self._lock:
                for schema, table in self._catalog.execute(query).fetchall():
                    self._set(0, f"schema => {literal(schema)}", f"table_name => {literal(table)}")
        except DuckDBError:
            logger.warning("new tables may store values changed until the schema changes", exc_info=True)

    @contextmanager
    def off(self, types: Iterable[Type]) -> Iterator[None]:
        """While entered, tables without a limit of their own have their rows in files, if values of `types` change.

        For the first rows of a table with such columns, in the transaction that makes it: a limit cannot be set before
        its commit. The commit itself must come later, because what an ALTER TABLE commits without a limit makes
        DuckLake (1.5.5) fail to inline rows afterwards; so the caller holds the commit lock.
        """
        if not any(self._changes(type_) for type_ in types):
            yield
            return
        self._pause(1)
        try:
            yield
        finally:
            self._pause(-1)

    def _changes(self, type_: Type) -> bool:
        """Whether values of a type change in the catalog."""
        return bool(type_.fields) or type_.dimensions > 1 if self._is_in_postgres else type_.has_floats

    def _pause(self, change: int) -> None:
        with self._lock:
            before, self._pauses = self._pauses, self._pauses + change
            if not before or not self._pauses:
                self._set(0 if self._pauses else INLINED_ROWS)

    def _set(self, rows: int, *scope: str) -> None:
        self._lake.execute(f"CALL lake.set_option({', '.join([literal(_LIMIT), literal(str(rows)), *scope])})")
