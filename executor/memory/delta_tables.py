"""The temporary tables of a cursor with what the steps of an epoch compute.

Small ones stay for the next epochs, which fill them again: to make or to drop a table throws the plans of all others
away (`catalog.lake.prepared_statements`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy

from sparkwave.catalog.lake.ducklake import Cursor, first_row
from sparkwave.catalog.lake.prepared_statements import define, make_temporary, run

# A table with more rows goes with its epoch.
MOST_ROWS = 1000
# One is made anew after so many rows: DuckDB keeps deleted ones.
WORN_ROWS = 50_000


@dataclass(frozen=True)
class _Table:
    """`form` tells the columns of a table that may stay, from which so many rows have gone."""

    form: object
    rows: int
    gone: int = 0


_TABLES: WeakKeyDictionary[Cursor, dict[str, _Table]] = WeakKeyDictionary()


def make_table(cursor: Cursor, name: str, query: str, form: object = None) -> int:
    """Leave the rows of a query in a temporary table of the cursor, for this epoch. Returns how many there are."""
    count = make_temporary(cursor, name, query)
    _TABLES.setdefault(cursor, {})[name] = _Table(form, count)
    return count


def fill_table(
    cursor: Cursor, name: str, query: str, form: object, execute: Callable[[Cursor, str], Cursor] = run
) -> int:
    """The same for a table that may stay: it has the same columns as long as `form` is equal.

    The query is run by `execute`: from text to text, if it is another one each time.
    """
    table = _emptied(cursor, name, form)
    if table is None:
        return make_table(cursor, name, query, form)
    row = first_row(execute(cursor, f"INSERT INTO {name} {query}"))
    assert row is not None
    _TABLES[cursor][name] = replace(table, rows=row[0])
    return row[0]


def fill_changes(cursor: Cursor, name: str, query: str, form: object) -> tuple[int, int]:
    """The same for changes of rows. Returns how many take a row away, and bring one."""
    table = _emptied(cursor, name, form)
    if table is None:
        make_table(cursor, name, query, form)
        return count_signs(cursor, name)
    weights = run(cursor, f"INSERT INTO {name} {query} RETURNING _weight").fetchnumpy()["_weight"]
    _TABLES[cursor][name] = replace(table, rows=len(weights))
    removed = int(numpy.count_nonzero(weights < 0))
    return removed, len(weights) - removed


def count_signs(cursor: Cursor, changes: str) -> tuple[int, int]:
    """The changes that take a row away, and those that bring one."""
    row = first_row(run(cursor, f"SELECT count(*) FILTER (_weight < 0), count(*) FILTER (_weight > 0) FROM {changes}"))
    assert row is not None
    return row[0], row[1]


def _emptied(cursor: Cursor, name: str, form: object) -> _Table | None:
    """A table without rows, if there is one that is as good as new. One that is not filled then is made anew."""
    table = _TABLES.get(cursor, {}).pop(name, None)
    if table is None or table.form != form or table.gone > WORN_ROWS:
        return None
    run(cursor, f"DELETE FROM {name}")
    return replace(table, rows=0, gone=table.gone + table.rows)


def forget_table(cursor: Cursor, name: str) -> None:
    """Have a table made anew that may not be what it was said to be: its transaction has failed."""
    _TABLES.get(cursor, {}).pop(name, None)


def drop_tables(cursor: Cursor, may_stay: bool = False) -> None:
    """Drop what has been left in the cursor, but for small tables that may stay."""
    tables = _TABLES.get(cursor, {})
    names = [
        name
        for name, table in tables.items()
        if not may_stay or table.form is None or table.rows > MOST_ROWS or table.gone > WORN_ROWS
    ]
    if names:
        define(cursor, "; ".join(f"DROP TABLE IF EXISTS {name}" for name in names))
    for name in names:
        del tables[name]
