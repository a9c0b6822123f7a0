"""Prepares statements that a cursor runs repeatedly: DuckDB needs longer to plan a step of an epoch than to run it.

Found by experiment, with 1.5.5 (asserted by tests/test_statements.py):

- a plan uses the statistics of the rows at the time of planning, and is not planned again when other rows come: it
  would return wrong rows. So plans are made without statistics;
- a prepared statement is planned again at each run once a table or view is created or dropped in a database that it
  reads: to create or drop a temporary one, callers use `define`, and for one in the `BUFFER`, `define_shared`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.locks import RankedLock

# The optimizers that no query may use.
DISABLED_OPTIMIZERS = ("common_subexpressions",)
# The optimizers that plan by the values of columns.
_BY_STATISTICS = ("statistics_propagation", "compressed_materialization")
# The most statements of a cursor, and the most seconds they are kept: tables of other databases change unnoticed.
_MOST, _MOST_S = 4000, 300.0


@dataclass
class _Prepared:
    """The names of a cursor's prepared statements by their text; None for a statement that has run once.

    `since` is the value of `_shared` when they were prepared.
    """

    since: object = None
    began: float = 0.0
    names: dict[str, str | None] = field(default_factory=dict)


_PREPARED: WeakKeyDictionary[Cursor, _Prepared] = WeakKeyDictionary()
# Replaced by a new object at each definition in any buffer.
_shared: object = None
_preparing = RankedLock()


def define(cursor: Cursor, statement: str) -> Cursor:
    """Create or drop temporary tables or views of the cursor."""
    _PREPARED.pop(cursor, None)
    return cursor.execute(statement)


def make_temporary(cursor: Cursor, name: str, query: str) -> int:
    """Create or replace a temporary table with the rows of a query. Returns their number."""
    [(count,)] = define(cursor, f"CREATE OR REPLACE TEMPORARY TABLE {name} AS {query}").fetchall()
    return count


def define_shared(cursor: Cursor, statement: str) -> Cursor:
    """Create or drop tables or views in the buffer."""
    global _shared
    try:
        return cursor.execute(statement)
    finally:
        _shared = object()


def run(cursor: Cursor, statement: str) -> Cursor:
    """Execute a statement, prepared from the second time on.

    It must have no parameters, since with parameters it would be planned each time.
    """
    prepared, now = _PREPARED.setdefault(cursor, _Prepared()), time.monotonic()
    if prepared.since is not _shared or len(prepared.names) > _MOST or now - prepared.began > _MOST_S:
        prepared.since, prepared.began, prepared.names = _shared, now, {}
    if statement not in prepared.names:
        prepared.names[statement] = None
        return cursor.execute(statement)
    name = prepared.names[statement]
    if name is None:
        name = f"statement_{list(prepared.names).index(statement)}"
        _prepare(cursor, name, statement)
        prepared.names[statement] = name
    return cursor.execute(f"EXECUTE {name}")


def _prepare(cursor: Cursor, name: str, statement: str) -> None:
    """Prepare a statement without statistics; meanwhile other threads plan without them too, which is only slower."""
    disabled = ",".join((*DISABLED_OPTIMIZERS, *_BY_STATISTICS))
    with _preparing:
        cursor.execute(f"SET GLOBAL disabled_optimizers = '{disabled}'")
        try:
            cursor.execute(f"PREPARE {name} AS {statement}")
        finally:
            cursor.execute(f"SET GLOBAL disabled_optimizers = '{','.join(DISABLED_OPTIMIZERS)}'")
