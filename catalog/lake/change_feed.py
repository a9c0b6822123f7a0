"""The changes of a lake table between two snapshots: rows with a weight, +1 or -1. An update is one row of each.

They are read as the lake stores them (`catalog.lake.stored_changes`), else by DuckLake's functions for inserted and for
deleted rows. Found by experiment, with 1.5.5 (asserted by tests/test_change_feed.py): if a transaction deletes some
rows of a file in one statement and the rest in another, DuckLake lists the first rows twice among the deleted ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import locate
from sparkwave.catalog.lake.memory_transactions import first_row, in_transaction
from sparkwave.catalog.lake.snapshot_changes import Change
from sparkwave.catalog.lake.stored_changes import VIRTUAL, StoredChanges, stored_changes
from sparkwave.catalog.names import METADATA, LakeTable, literal, quote


def table_changes(table: LakeTable, after: int, upto: int, has_deletes: bool = True, listed: str = "rowid, *") -> str:
    """Return SQL of the rows changed in snapshots `after < s <= upto`: the columns `listed`, and `_weight`.

    `listed` may contain DuckLake's virtual columns. Columns are matched by name.
    """
    came, went = _or_feeds(StoredChanges(), table, after, upto, has_deletes)
    return _weighed(listed, came, went and went + _ONCE)


# Stores the rows of a query in a table for the cursor: (cursor, name, query).
Make = Callable[[Cursor, str, str], object]


def make_temporary(cursor: Cursor, name: str, query: str) -> int:
    """Create or replace a temporary table with the rows of a query. Returns their number."""
    [(count,)] = cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {name} AS {query}").fetchall()
    return int(count)


def keep_changes(
    cursor: Cursor, name: str, table: LakeTable, after: int, upto: int, has_deletes: bool, listed: str,
    make: Make = make_temporary,
) -> None:  # fmt: skip
    """Store the rows of `table_changes` in a table; rows that came and went may be missing.

    `listed` has column names, no `*`.
    """
    with in_transaction(cursor):  # compaction moves rows
        stored = stored_changes(cursor, table, after, upto, has_deletes)
        came, went = _or_feeds(stored, table, after, upto, has_deletes)
        if went and stored.went is None and _tells_twice(cursor, table, after, upto):
            went += _ONCE
        make(cursor, name, _weighed(listed, came, went))


def changed_rows(cursor: Cursor, table: LakeTable, after: int, upto: int, has_deletes: bool) -> tuple[str, str | None]:
    """Return SQL of the rows inserted in snapshots `after < s <= upto`, and of the deleted rows, if any.

    A deleted row may appear twice. The relations have the virtual columns `rowid` and `snapshot_id`, and may be read in
    the cursor's transaction.
    """
    return _or_feeds(stored_changes(cursor, table, after, upto, has_deletes), table, after, upto, has_deletes)


def _or_feeds(
    stored: StoredChanges, table: LakeTable, after: int, upto: int, has_deletes: bool
) -> tuple[str, str | None]:
    """The stored changes, and DuckLake's functions where they are unknown."""
    came = stored.came or _feed("insertions", table, after, upto)
    return came, stored.went or (_feed("deletions", table, after, upto) if has_deletes else None)


def _weighed(listed: str, came: str, went: str | None) -> str:
    inserted = f"SELECT {listed}, 1 AS _weight FROM {came}"
    return f"{inserted} UNION ALL BY NAME SELECT {listed}, -1 AS _weight FROM {went}" if went else inserted


# Follows a relation of deleted rows, to keep each only once, by its place. Snapshots alone do not distinguish rows: all
# rows that were inlined, and are in a file now, have the same one.
_ONCE = f" QUALIFY row_number() OVER (PARTITION BY {', '.join(VIRTUAL)}) = 1"


def _tells_twice(cursor: Cursor, table: LakeTable, after: int, upto: int) -> bool:
    """Whether rows may have been deleted from a file before the file itself, so that DuckLake may list them twice."""
    located = locate(cursor, table, upto)
    row = located and first_row(
        cursor.execute(
            f"SELECT count(*) FROM {METADATA}.ducklake_data_file f JOIN {METADATA}.ducklake_delete_file d "
            "USING (data_file_id) WHERE f.table_id = $number AND f.end_snapshot > $after AND f.end_snapshot <= $upto",
            {"number": located[0], "after": after, "upto": upto},
        )
    )
    return row != (0,)


def count_inserted(cursor: Cursor, changes: Collection[Change], after: int, upto: int) -> dict[int, int]:
    """Return the number of rows inserted in snapshots `after < s <= upto`, updates included, without reading files.

    Keys are the lake's numbers of tables. `changes` are those of the snapshots.
    """
    came = f"begin_snapshot > {after} AND begin_snapshot <= {upto}"
    parts = []
    if filed := _numbers(changes, "inserted_into_table"):
        parts.append(
            f"SELECT table_id, record_count AS n FROM {METADATA}.ducklake_data_file "
            f"WHERE table_id IN ({_listed(filed)}) AND {came}"
        )
    if inlined := _numbers(changes, "inlined_insert"):
        tables = cursor.execute(
            f"SELECT table_id, table_name FROM {METADATA}.ducklake_inlined_data_tables "
            f"WHERE table_id IN ({_listed(inlined)})"
        ).fetchall()
        parts += (f"SELECT {id_}, count(*) FROM {METADATA}.{quote(name)} WHERE {came}" for id_, name in tables)
    if not parts:
        return {}
    counted = f"SELECT table_id, sum(n)::BIGINT FROM ({' UNION ALL '.join(parts)}) AS t(table_id, n) GROUP BY 1"
    return dict(cursor.execute(counted).fetchall())


def _numbers(changes: Iterable[Change], kind: str) -> set[int]:
    return {change.table_id for change in changes if change.kind == kind}


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def _feed(kind: str, table: LakeTable, after: int, upto: int) -> str:
    arguments = f"'lake', {literal(table.schema)}, {literal(table.name)}, {after + 1}, {upto}"
    return f"ducklake_table_{kind}({arguments})"
