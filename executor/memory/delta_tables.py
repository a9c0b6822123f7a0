"""The temporary tables of a cursor with the results of an epoch's steps.

Small tables stay and are filled again by the next epochs: making or dropping a table discards the plans of all prepared
statements (`catalog.lake.prepared_statements`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import numpy

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.prepared_statements import define, make_temporary, run

# A table with more rows is dropped with its epoch.
MOST_ROWS = 1000
# A table is made anew after this many deleted rows, because DuckDB keeps deleted rows.
WORN_ROWS = 50_000


@dataclass(frozen=True)
class _Table:
    """A table may stay while `form`, which identifies its columns, is equal. `gone` counts its deleted rows."""

    form: object
    rows: int
    gone: int = 0


_TABLES: WeakKeyDictionary[Cursor, dict[str, _Table]] = WeakKeyDictionary()


def make_table(cursor: Cursor, name: str, query: str, form: object = None) -> int:
    """Store the rows of a query in a temporary table of the cursor, for this epoch. Returns the number of rows."""
    count = make_temporary(cursor, name, query)
    _TABLES.setdefault(cursor, {})[name] = _Table(form, count)
    return count


def fill_table(cursor: Cursor, name: str, query: str, form: object, execute: Callable[..., Cursor] = run) -> int:
    """Store the rows of a query in a temporary table that may stay. Returns the number of rows.

    The table has the same columns as long as `form` is equal; with None it is made anew each time. `execute` runs the
    query; pass `run_once` for a query whose text differs each time.
    """
    table = _kept(cursor, name, form)
    if table is None:
        return make_table(cursor, name, query, form)
    row = first_row(execute(cursor, f"DELETE FROM {name}", f"INSERT INTO {name} {query}"))
    assert row is not None
    _TABLES[cursor][name] = replace(table, rows=row[0])
    return row[0]


def fill_changes(cursor: Cursor, name: str, query: str, form: object, hashed: str) -> tuple[tuple[int, int], int]:
    """Store changed rows in a temporary table that may stay.

    Returns the numbers of removals and additions, and the sum of the SQL `hashed` (unsigned, 64 bits), modulo 2**64,
    in which a removal is subtracted.
    """
    table = _kept(cursor, name, form)
    if table is None:
        make_table(cursor, name, query, form)
        return count_signs(cursor, name), sum_changes(cursor, name, hashed)
    filling = f'INSERT INTO {name} {query} RETURNING _weight, {hashed} AS "?hash"'
    found = run(cursor, f"DELETE FROM {name}", filling).fetchnumpy()
    weights, hashes = numpy.asarray(found["_weight"]), numpy.asarray(found["?hash"])
    _TABLES[cursor][name] = replace(table, rows=len(weights))
    removed = int(numpy.count_nonzero(weights < 0))
    return (removed, len(weights) - removed), int((hashes * weights.astype(numpy.uint64)).sum())


def count_signs(cursor: Cursor, changes: str) -> tuple[int, int]:
    """Return the numbers of removals and additions among the changed rows of a relation."""
    row = first_row(run(cursor, f"SELECT count(*) FILTER (_weight < 0), count(*) FILTER (_weight > 0) FROM {changes}"))
    assert row is not None
    return row[0], row[1]


def sum_changes(cursor: Cursor, changes: str, hashed: str) -> int:
    """Return the sum of the SQL `hashed` (unsigned, 64 bits) over changed rows, as `fill_changes` does."""
    row = first_row(run(cursor, f"SELECT sum({hashed}::HUGEINT * _weight) FROM {changes}"))
    assert row is not None
    return (row[0] or 0) % (1 << 64)


def _kept(cursor: Cursor, name: str, form: object) -> _Table | None:
    """Return a table that may be emptied and filled again, or None.

    It is forgotten until it is filled, so that a failure leads to a new table.
    """
    table = _TABLES.get(cursor, {}).pop(name, None)
    if table is None or form is None or table.form != form or table.gone > WORN_ROWS:
        return None
    return replace(table, rows=0, gone=table.gone + table.rows)


def drop_later(cursor: Cursor, name: str) -> None:
    """Let `drop_tables` drop a temporary table that was made otherwise."""
    _TABLES.setdefault(cursor, {})[name] = _Table(None, 0)


def forget_table(cursor: Cursor, name: str) -> None:
    """Let a table be made anew, because its transaction has failed and its contents are unknown."""
    _TABLES.get(cursor, {}).pop(name, None)


def drop_tables(cursor: Cursor, may_stay: bool = False) -> None:
    """Drop the tables of the cursor; with `may_stay`, small tables stay."""
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
