"""The changes of a lake table between two snapshots: rows with a weight, +1 or -1. An update is one row of each.

DuckLake has functions for inserted and for deleted rows. The latter reads every file that has lost a row in full, so an
update costs as much as the file is large. Found by experiment, with 1.5.5 (asserted by tests/test_change_feed.py):

- a scan of an old version of a table skips files by `filename` and row groups by `file_row_number`, which are virtual
  columns;
- the lake's catalog lists deleted rows as long as it holds small changes itself: `ducklake_inlined_delete_*` has the
  file and the place of each row, `ducklake_inlined_data_*` has rows with an `end_snapshot`. A scan shows the latter in
  a file named like their table, each at the place of its row id;
- if a transaction deletes some rows of a file in one statement and the rest in another, the first rows are twice among
  the deleted ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.inlined_changes import InlinedRows, inlined_rows
from sparkwave.catalog.lake.lake_tables import at_version, files_with_column, inlined_deletes, inlined_tables, locate
from sparkwave.catalog.lake.memory_transactions import first_row, in_transaction
from sparkwave.catalog.lake.row_ids import SNAPSHOT_COLUMN
from sparkwave.catalog.names import METADATA, LakeTable, literal, quote

# In a table with fewer rows in files, reading them is as fast as finding the places of the deleted ones.
LARGE_ROWS = 1_000_000
# Virtual columns of a scan, unless the table has columns of these names.
_VIRTUAL = ("rowid", "snapshot_id", "filename", "file_row_number")


def table_changes(table: LakeTable, after: int, upto: int, has_deletes: bool = True, listed: str = "rowid, *") -> str:
    """Return SQL of the rows changed in snapshots `after < s <= upto`: the columns `listed`, and `_weight`.

    `listed` may contain DuckLake's virtual columns. Columns are matched by name.
    """
    came, went = _or_feeds(InlinedRows(), table, after, upto, has_deletes)
    return _weighed(listed, came, went and went + _ONCE)


# Stores the rows of a query in a table for the cursor: (cursor, name, query).
Make = Callable[[Cursor, str, str], object]
# A temporary table of the places of deleted rows.
_PLACES = "feed_gone"


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
    with in_transaction(cursor):  # compaction moves inlined rows
        inlined = inlined_rows(cursor, table, after, upto, has_deletes)
        came, went = _or_feeds(inlined, table, after, upto, has_deletes)
        reads_files = has_deletes and inlined.went is None
        if reads_files and is_large(cursor, table) and _keep_net(cursor, name, table, after, upto, listed, came, make):
            return
        if went and reads_files and _tells_twice(cursor, table, after, upto):
            went += _ONCE
        make(cursor, name, _weighed(listed, came, went))


def changed_rows(cursor: Cursor, table: LakeTable, after: int, upto: int, has_deletes: bool) -> tuple[str, str | None]:
    """Return SQL of the rows inserted in snapshots `after < s <= upto`, and of the deleted rows, if any.

    A deleted row may appear twice. The relations have the virtual columns `rowid` and `snapshot_id`, and may be read in
    the cursor's transaction.
    """
    inlined = inlined_rows(cursor, table, after, upto, has_deletes)
    return _or_feeds(inlined, table, after, upto, has_deletes)


def _or_feeds(
    inlined: InlinedRows, table: LakeTable, after: int, upto: int, has_deletes: bool
) -> tuple[str, str | None]:
    """The inlined changes, and DuckLake's functions for changes that are not inlined."""
    came = inlined.came or _feed("insertions", table, after, upto)
    return came, inlined.went or (_feed("deletions", table, after, upto) if has_deletes else None)


def _weighed(listed: str, came: str, went: str | None) -> str:
    inserted = f"SELECT {listed}, 1 AS _weight FROM {came}"
    return f"{inserted} UNION ALL BY NAME SELECT {listed}, -1 AS _weight FROM {went}" if went else inserted


# Follows a relation of deleted rows, to keep each only once, by its place. Snapshots alone do not distinguish rows: all
# rows that were inlined, and are in a file now, have the same one.
_ONCE = f" QUALIFY row_number() OVER (PARTITION BY {', '.join(_VIRTUAL)}) = 1"


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


def count_inserted(cursor: Cursor, table: LakeTable, after: int, upto: int) -> int:
    """Return the number of rows inserted in snapshots `after < s <= upto`, updates included, without reading files."""
    located = locate(cursor, table, upto)
    if located is None:
        return 0
    came = f"begin_snapshot > {after} AND begin_snapshot <= {upto}"
    files = f"SELECT sum(record_count) AS n FROM {METADATA}.ducklake_data_file WHERE table_id = {located[0]} AND {came}"
    inlined = (
        f"SELECT count(*) FROM {METADATA}.{quote(name)} WHERE {came}" for name in inlined_tables(cursor, located[0])
    )
    row = first_row(
        cursor.execute(f"SELECT coalesce(sum(n), 0)::BIGINT FROM ({' UNION ALL '.join([files, *inlined])})")
    )
    assert row is not None
    return row[0]


@dataclass(frozen=True)
class _Gone:
    """SQL of deleted rows, in the shape of `_NONE`, and their data files with the numbers; both None once forgotten."""

    rows: str
    files: tuple[tuple[str | None, int | None], ...] = ()


# A row's file and place in it; for a row inserted after the first snapshot, also the snapshot of its insertion.
_NONE = "SELECT ''::VARCHAR AS file, 0::BIGINT AS place, NULL::BIGINT AS born WHERE false"


def _keep_net(
    cursor: Cursor, name: str, table: LakeTable, after: int, upto: int, listed: str, came: str, make: Make
) -> bool:
    """Store the changes without reading whole files. Returns whether that was possible."""
    located = locate(cursor, table, upto)
    first_new = _first_new_file(cursor, located[0], after, upto) if located is not None else None
    if located is None or first_new is None:
        return False
    parts = [
        *_in_files(cursor, *located, after, upto, first_new),
        *_in_catalog(cursor, *located, after, upto),
        *_inlined(cursor, located[0], after, upto),
    ]
    files = {file for part in parts for file, _ in part.files}
    if any(id_ is None or id_ >= first_new for part in parts for _, id_ in part.files):
        return False  # some rows of these files are new
    rows = " UNION ".join([_NONE, *(part.rows for part in parts)])
    make_temporary(cursor, _PLACES, rows)
    counts = cursor.execute(
        f"SELECT file, count(*) FILTER (born IS NULL), count(born) FROM {_PLACES} GROUP BY 1"
    ).fetchall()
    if any(passed for *_, passed in counts):
        came += f" AS came ANTI JOIN {_PLACES} AS gone ON came.rowid = gone.place AND came.snapshot_id = gone.born"
    query = f"SELECT {listed}, 1 AS _weight FROM {came}"
    for is_file in (True, False):  # the places of one kind alone determine which parts are skipped
        read = [file for file, old, _ in counts if old and (file in files) == is_file]
        if read:
            query += f" UNION ALL BY NAME SELECT {listed}, -1 AS _weight FROM {_rows_of(table, after, read)}"
    make(cursor, name, query)
    cursor.execute(f"DROP TABLE {_PLACES}")
    # The facts above, found by experiment, may not hold for another version of DuckLake.
    found = first_row(cursor.execute(f"SELECT count(*) FROM {name} WHERE _weight < 0"))
    return found == (sum(old for _, old, _ in counts),)


def _rows_of(table: LakeTable, snapshot: int, files: Sequence[str]) -> str:
    """SQL of the deleted rows of some files, as they were at a snapshot."""
    names = ", ".join(map(literal, files))
    gone = f"FROM {_PLACES} WHERE born IS NULL AND file IN ({names})"
    return (
        f"{at_version(table.sql, snapshot)} SEMI JOIN ({gone}) AS gone "
        f"ON filename = gone.file AND file_row_number = gone.place WHERE filename IN ({names})"
    )


def is_large(cursor: Cursor, table: LakeTable) -> bool:
    """Return whether the table is large enough for the queries to pay off.

    Equal names in several schemas count together.
    """
    row = first_row(
        cursor.execute(
            f"SELECT sum(record_count) >= {LARGE_ROWS} FROM {METADATA}.ducklake_data_file WHERE table_id IN "
            f"(SELECT table_id FROM {METADATA}.ducklake_table WHERE table_name = {literal(table.name)})",
        )
    )
    return row == (True,)


def _first_new_file(cursor: Cursor, number: int, after: int, upto: int) -> int | None:
    """The number that the next file after a snapshot gets. Files below it have nothing of later snapshots.

    A file's snapshots do not show this: compaction writes files later that belong to earlier snapshots. None if a whole
    file was deleted since, or a column was added or dropped or hides a virtual column.
    """
    hidden = ", ".join(map(literal, _VIRTUAL))
    row = first_row(
        cursor.execute(
            f"SELECT next_file_id FROM {METADATA}.ducklake_snapshot WHERE snapshot_id = $after "
            f"AND NOT EXISTS (FROM {METADATA}.ducklake_data_file WHERE table_id = $number "
            "AND end_snapshot > $after AND end_snapshot <= $upto) "
            f"AND NOT EXISTS (FROM {METADATA}.ducklake_column WHERE table_id = $number "
            "AND (begin_snapshot > $after AND begin_snapshot <= $upto "
            f"OR end_snapshot > $after AND end_snapshot <= $upto OR lower(column_name) IN ({hidden})))",
            {"number": number, "after": after, "upto": upto},
        )
    )
    return row[0] if row else None


def _in_files(cursor: Cursor, number: int, directory: str, after: int, upto: int, first_new: int) -> Iterator[_Gone]:
    """The deletes listed in the lake's delete files, each for one data file; with snapshots if a file has several."""
    found = cursor.execute(
        f"SELECT {_path('f', '$directory')}, f.data_file_id, {_path('d', '$directory')}, d.begin_snapshot "
        f"FROM {METADATA}.ducklake_delete_file d LEFT JOIN {METADATA}.ducklake_data_file f USING (data_file_id) "
        "WHERE d.table_id = $number AND d.begin_snapshot <= $upto AND d.delete_file_id >= $first_new",
        {"directory": directory, "number": number, "upto": upto, "first_new": first_new},
    ).fetchall()
    of_several = files_with_column(cursor, [deletes for *_, deletes, _ in found], SNAPSHOT_COLUMN)
    for file, id_, deletes, begin in found:
        snapshot = SNAPSHOT_COLUMN if deletes in of_several else begin
        yield _Gone(
            f"SELECT {literal(file or '')}, pos, NULL FROM read_parquet({literal(deletes)}) "
            f"WHERE {snapshot} > {after} AND {snapshot} <= {upto}",
            ((file, id_),),
        )


def _in_catalog(cursor: Cursor, number: int, directory: str, after: int, upto: int) -> Iterator[_Gone]:
    """The small deletes that the catalog holds itself."""
    name = inlined_deletes(cursor, number)
    if name is not None:
        file = _path("f", literal(directory))
        joined = (
            f"FROM {METADATA}.{name} AS d LEFT JOIN {METADATA}.ducklake_data_file AS f ON f.data_file_id = d.file_id "
            f"WHERE d.begin_snapshot > {after} AND d.begin_snapshot <= {upto}"
        )
        files = cursor.execute(f"SELECT DISTINCT {file}, f.data_file_id {joined}").fetchall()
        yield _Gone(f"SELECT {file}, d.row_id, NULL {joined}", tuple(files))


def _inlined(cursor: Cursor, number: int, after: int, upto: int) -> Iterator[_Gone]:
    """The deleted rows that were not in a file."""
    for name in inlined_tables(cursor, number):
        yield _Gone(
            f"SELECT {literal(name)}, row_id, if(begin_snapshot > {after}, begin_snapshot, NULL) "
            f"FROM {METADATA}.{quote(name)} WHERE end_snapshot > {after} AND end_snapshot <= {upto}"
        )


def _path(of: str, directory: str) -> str:
    return f"if({of}.path_is_relative, {directory} || {of}.path, {of}.path)"


def _feed(kind: str, table: LakeTable, after: int, upto: int) -> str:
    arguments = f"'lake', {literal(table.schema)}, {literal(table.name)}, {after + 1}, {upto}"
    return f"ducklake_table_{kind}({arguments})"
