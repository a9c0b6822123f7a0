"""The tables of a cursor with the results of an epoch's steps.

Some tables stay, and the next epochs fill them again, so that statements over them can be prepared: these tables are in
the buffer, where making or dropping a table discards the plans of all prepared statements
(`catalog.lake.prepared_statements`). The other tables are temporary ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy

from sparkwave.catalog.lake.change_feed import make_temporary
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.prepared_statements import Run, define_shared, run
from sparkwave.catalog.names import BUFFER, DELTAS_SCHEMA

# DuckDB keeps deleted rows. A table is made anew that has more rows with them, unless few epochs have filled it.
WORN_ROWS, _FEW_EPOCHS = 50_000, 16
# All tables are made anew when they have more rows together.
_MOST_ROWS = 2_000_000
_KEPT = f"{BUFFER}.{DELTAS_SCHEMA}."


@dataclass(frozen=True)
class _Table:
    """A table may stay while `form`, which identifies its columns, is equal; None for a temporary table.

    `gone` counts its deleted rows. Rows are deleted after their epoch, when clients see it already; `last` is how many
    the last epoch had that filled it.
    """

    form: object
    rows: int
    gone: int = 0
    last: int = 0

    @property
    def written(self) -> int:
        """The rows that DuckDB keeps."""
        return self.rows + self.gone

    @property
    def wear(self) -> float:
        """The share of the rows that it may have before it is made anew."""
        return self.written / max(WORN_ROWS, _FEW_EPOCHS * max(self.rows, self.last))


_TABLES: WeakKeyDictionary[Cursor, dict[str, _Table]] = WeakKeyDictionary()


def kept_table(name: str) -> str:
    """Return the name in SQL of a table that `fill_table` or `fill_changes` may keep for the next epochs."""
    return f"{_KEPT}{name}"


def is_kept(name: str) -> bool:
    """Return whether a table is named by `kept_table`."""
    return name.startswith(_KEPT)


def reads_kept(query: str) -> bool:
    """Return whether a query reads a table that is named by `kept_table`."""
    return _KEPT in query


def has_tables(cursor: Cursor, names: Iterable[str], form: object) -> bool:
    """Return whether all these tables have stayed, so that they can be filled without a definition."""
    tables = _TABLES.get(cursor, {})
    return all(name in tables and tables[name].form == form for name in names)


def make_table(cursor: Cursor, name: str, query: str) -> int:
    """Store the rows of a query in a temporary table, for this epoch. Returns the number of rows."""
    count = make_temporary(cursor, name, query)
    drop_later(cursor, name)
    return count


def fill_table(
    cursor: Cursor, name: str, query: str, form: object, execute: Run = run, by: Cursor | None = None
) -> int:
    """Store the rows of a query in a table that may stay, named by `kept_table`. Returns the number of rows.

    The table has the same columns as long as `form` is equal. With None it is a temporary table for this epoch, and
    its name is a plain one. `execute` runs the query; pass `run_once` for a query whose text differs each time. A table
    that has stayed can be filled `by` another cursor than the one that has it.
    """
    if form is None:
        return make_table(cursor, name, query)
    table = _kept(cursor, name, form)
    if table is None:
        return _make_kept(cursor, name, query, form)
    row = first_row(execute(by or cursor, *_emptying(name, table), f"INSERT INTO {name} {query}"))
    assert row is not None
    _TABLES[cursor][name] = _Table(form, row[0], table.written)
    return int(row[0])


def _make_kept(cursor: Cursor, name: str, query: str, form: object) -> int:
    [(count,)] = define_shared(cursor, f"CREATE OR REPLACE TABLE {name} AS {query}").fetchall()
    _TABLES.setdefault(cursor, {})[name] = _Table(form, count)
    return int(count)


def fill_changes(
    cursor: Cursor, name: str, query: str, form: object, hashed: str, by: Cursor | None = None
) -> tuple[tuple[int, int], int]:
    """Store changed rows in a table that may stay, as `fill_table` does.

    Returns the numbers of removals and additions, and the sum of the SQL `hashed` (unsigned, 64 bits), modulo 2**64,
    in which a removal is subtracted.
    """
    table = _kept(cursor, name, form)
    if table is None:
        _make_kept(cursor, name, query, form)
        return count_signs(cursor, name), sum_changes(cursor, name, hashed)
    filling = f'INSERT INTO {name} {query} RETURNING _weight, {hashed} AS "?hash"'
    found = run(by or cursor, *_emptying(name, table), filling).fetchnumpy()
    weights, hashes = numpy.asarray(found["_weight"]), numpy.asarray(found["?hash"])
    _TABLES[cursor][name] = _Table(form, len(weights), table.written)
    removed = int(numpy.count_nonzero(weights < 0))
    return (removed, len(weights) - removed), int((hashes * weights.astype(numpy.uint64)).sum())


def count_signs(cursor: Cursor, changes: str) -> tuple[int, int]:
    """Return the numbers of removals and additions among the changed rows of a relation."""
    row = first_row(
        cursor.execute(f"SELECT count(*) FILTER (_weight < 0), count(*) FILTER (_weight > 0) FROM {changes}")
    )
    assert row is not None
    return row[0], row[1]


def sum_changes(cursor: Cursor, changes: str, hashed: str) -> int:
    """Return the sum of the SQL `hashed` (unsigned, 64 bits) over changed rows, as `fill_changes` does."""
    row = first_row(cursor.execute(f"SELECT sum({hashed}::HUGEINT * _weight) FROM {changes}"))
    assert row is not None
    return (row[0] or 0) % (1 << 64)


def _kept(cursor: Cursor, name: str, form: object) -> _Table | None:
    """Return a table that may be filled again, or None.

    The table is forgotten until it is filled, so that a failure leads to a new table.
    """
    table = _TABLES.get(cursor, {}).pop(name, None)
    return table if table is not None and table.form == form else None


def _emptying(name: str, table: _Table) -> list[str]:
    """Return the statement that deletes the rows of an epoch that is computed once more."""
    return [f"DELETE FROM {name}"] if table.rows else []


def drop_later(cursor: Cursor, name: str) -> None:
    """Let `drop_tables` drop a temporary table that was made otherwise."""
    _TABLES.setdefault(cursor, {})[name] = _Table(None, 0)


def forget_table(cursor: Cursor, name: str) -> None:
    """Let a table be made anew, because its transaction has failed and its contents are unknown."""
    _TABLES.get(cursor, {}).pop(name, None)


def drop_tables(cursor: Cursor, may_stay: bool = False) -> None:
    """Drop the temporary tables of the cursor. With `may_stay` others are emptied, or made anew if worn."""
    tables = _TABLES.get(cursor, {})
    temporary = [name for name, table in tables.items() if table.form is None]
    if temporary:
        cursor.execute("; ".join(f"DROP TABLE IF EXISTS {name}" for name in temporary))
    for name in temporary:
        del tables[name]
    if not may_stay:
        _define_all(cursor, (f"DROP TABLE IF EXISTS {name}" for name in tables))
        tables.clear()
        return
    most_worn = max((table.wear for table in tables.values()), default=0.0)
    if most_worn > 1 or sum(table.written for table in tables.values()) > _MOST_ROWS:
        # One definition costs as much as several, because all statements are planned anew.
        worn = [name for name, table in tables.items() if table.wear > min(most_worn, 1) / 2]
        _define_all(cursor, (f"CREATE OR REPLACE TABLE {name} AS FROM {name} LIMIT 0" for name in worn))
        tables |= {name: _Table(tables[name].form, 0) for name in worn}
    if filled := {name: table for name, table in tables.items() if table.rows}:
        for name in filled:
            del tables[name]  # it is made anew if it cannot be emptied
        run(cursor, *(f"DELETE FROM {name}" for name in filled))
        tables |= {name: _Table(table.form, 0, table.written, table.rows) for name, table in filled.items()}


def _define_all(cursor: Cursor, statements: Iterable[str]) -> None:
    if text := "; ".join(statements):
        define_shared(cursor, text)
