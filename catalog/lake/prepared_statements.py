"""Statements that a cursor runs again and again, prepared: DuckDB plans a step of an epoch for longer than it runs it.

Found by trying, with 1.5.5 (asserted by tests/test_statements.py):
- a plan has what statistics said of the rows when it was made, and is not made anew when others come: it would give
  wrong rows, so that it is made without statistics;
- a prepared statement is planned again each time, once a table or view has come or gone in a database that it reads:
  whoever makes or drops a temporary one does it by `define`, and one in the `BUFFER` by `define_shared`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.locks import RankedLock

# No query may use these.
DISABLED_OPTIMIZERS = ("common_subexpressions",)
# What plans by the values that columns have.
_BY_STATISTICS = ("statistics_propagation", "compressed_materialization")
# A cursor keeps so many statements, for so many seconds: in other databases tables come and go that nobody tells of.
_MOST, _MOST_S = 4000, 300.0


@dataclass
class _Prepared:
    """The names of a cursor's statements by their text, None for one that has run once; `since` says since what."""

    since: object = None
    began: float = 0.0
    names: dict[str, str | None] = field(default_factory=dict)


_PREPARED: WeakKeyDictionary[Cursor, _Prepared] = WeakKeyDictionary()
# The last that has been defined in any buffer.
_shared: object = None
_preparing = RankedLock()


def define(cursor: Cursor, statement: str) -> Cursor:
    """Make or drop temporary tables or views of the cursor."""
    _PREPARED.pop(cursor, None)
    return cursor.execute(statement)


def make_temporary(cursor: Cursor, name: str, query: str) -> int:
    """Make a temporary table of the rows of a query, or make it anew. Returns how many there are."""
    [(count,)] = define(cursor, f"CREATE OR REPLACE TEMPORARY TABLE {name} AS {query}").fetchall()
    return count


def define_shared(cursor: Cursor, statement: str) -> Cursor:
    """Make or drop tables or views in the buffer."""
    global _shared
    try:
        return cursor.execute(statement)
    finally:
        _shared = object()


def run(cursor: Cursor, statement: str) -> Cursor:
    """Execute a statement, prepared from the second time on.

    It has no parameters: with those it would be planned each time.
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
    """What others plan meanwhile has a plain plan too, which is no wrong one."""
    disabled = ",".join((*DISABLED_OPTIMIZERS, *_BY_STATISTICS))
    with _preparing:
        cursor.execute(f"SET GLOBAL disabled_optimizers = '{disabled}'")
        try:
            cursor.execute(f"PREPARE {name} AS {statement}")
        finally:
            cursor.execute(f"SET GLOBAL disabled_optimizers = '{','.join(DISABLED_OPTIMIZERS)}'")
