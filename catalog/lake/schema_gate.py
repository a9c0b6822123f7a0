"""Lets one thread alone read DuckLake's schema of a new version, while all other queries wait.

DuckLake caches a schema by its version. Of two threads that read the same version, the second replaces what the first
has cached, which is freed. A transaction that creates or alters a table refers to the cached schema, and reads it again
at COMMIT: then the process crashes, or a name is garbled (DuckLake in DuckDB 1.5.3 to 1.5.5,
https://github.com/duckdb/ducklake/issues/1248). Beside twelve threads that read, one CREATE TABLE in about 200 did so.
"""

from __future__ import annotations

import re
import threading
from typing import Any, Self

from sparkwave.catalog.lake.direct_calls import Direct
from sparkwave.catalog.lake.direct_calls import execute as execute_directly
from sparkwave.catalog.lake.translation import Cursor

_CHANGE = re.compile(r"\s*(CREATE|ALTER|DROP)\b(?!\s+(OR\s+REPLACE\s+)?(TEMP|MACRO|FUNCTION|TYPE))", re.IGNORECASE)
# A query that waits longer goes on, so that a COMMIT that hangs does not stop readers.
_PATIENCE_S = 10


class SchemaGate:
    """Is closed from the COMMIT of a change of the schema until a thread has read the new schema."""

    def __init__(self) -> None:
        self._is_open = threading.Event()
        self._is_open.set()

    def close(self) -> None:
        self._is_open.clear()

    def open(self) -> None:
        self._is_open.set()

    def pass_through(self) -> None:
        """Wait until the gate is open."""
        if not self._is_open.is_set():
            self._is_open.wait(_PATIENCE_S)


class GatedCursor:
    """A cursor of DuckDB whose statements pass through a gate; `commit` and `rollback` do not.

    `changes_schema` tells whether it has changed the schema since it was last set to False.
    """

    def __init__(self, cursor: Cursor, gate: SchemaGate) -> None:
        self.changes_schema = False
        self._cursor = cursor
        self._gate = gate

    def execute(self, query: Any, parameters: object = None) -> Cursor:
        self._gate.pass_through()
        if isinstance(query, str) and _CHANGE.match(query):
            self.changes_schema = True
        return self._cursor.execute(query, parameters)

    def execute_directly(self, statements: str) -> Cursor | Direct:
        """As `catalog.lake.direct_calls.execute`. The statements do not change the lake's schema."""
        self._gate.pass_through()
        return execute_directly(self._cursor, statements)

    def query(self, query: Any, **options: Any) -> Any:
        self._gate.pass_through()
        return self._cursor.query(query, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._cursor.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)
