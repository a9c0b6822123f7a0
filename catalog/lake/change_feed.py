"""What changed in a table of the lake between two snapshots: rows with a weight, +1 or -1. An update is one of each.

DuckLake has functions for the rows that came and for those that went. The latter reads all of a file that has lost a
row: an update costs as much as the file is large. Found by trying, with 1.5.5 (asserted by tests/test_change_feed.py):
- a scan of a table as it was skips files by `filename` and row groups by `file_row_number`, which are virtual columns;
- which rows went the lake's catalog knows while it has small changes itself: `ducklake_inlined_delete_*` the file of
  each and its place there, `ducklake_inlined_data_*` rows with an `end_snapshot`. A scan has these in a file that is
  called like their table, and each at the place of its row id;
- a transaction that takes some rows from a file, and in another statement all others, has the former twice among those
  that went.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import (
    METADATA,
    Cursor,
    ask,
    at_version,
    files_with_column,
    first_row,
    inlined_deletes,
    inlined_tables,
    locate,
)
from sparkwave.catalog.lake.inlined_changes import InlinedRows, inlined_rows
from sparkwave.catalog.lake.memory_transactions import in_transaction
from sparkwave.catalog.lake.prepared_statements import define, make_temporary
from sparkwave.catalog.lake.row_ids import SNAPSHOT_COLUMN
from sparkwave.catalog.names import LakeTable, literal, quote

# A table with fewer rows in files is read as fast as it is found out where the deleted ones are.
LARGE_ROWS = 1_000_000
# Columns that a scan has besides the table's, unless it has some of these names.
_VIRTUAL = ("rowid", "snapshot_id", "filename", "file_row_number")


def table_changes(table: LakeTable, after: int, upto: int, has_deletes: bool = True, listed: str = "rowid, *") -> str:
    """SQL of the rows changed in snapshots `after < s <= upto`: what is `listed`, and `_weight`.

    That may be virtual columns of DuckLake too. Columns are matched by their names.
    """
    came, went = _or_feeds(InlinedRows(), table, after, upto, has_deletes)
    return _weighed(listed, came, went and went + _ONCE)


# Leaves the rows of a query in a temporary table of a cursor, by its name.
Make = Callable[[Cursor, str, str], object]


def keep_changes(
    cursor: Cursor, name: str, table: LakeTable, after: int, upto: int, has_deletes: bool, listed: str,
    make: Make = make_temporary,
) -> None:  # fmt: skip
    """Leave the rows of `table_changes` in a temporary table of the cursor; maybe without those that came and went.

    What is `listed` has names, no `*`.
    """
    with in_transaction(cursor):  # for compaction moves what the catalog has
        inlined = inlined_rows(cursor, table, after, upto, has_deletes)
        came, went = _or_feeds(inlined, table, after, upto, has_deletes)
        reads_files = has_deletes and inlined.went is None
        if reads_files and is_large(cursor, table) and _keep_net(cursor, name, table, after, upto, listed, came, make):
            return
        if went and reads_files and _tells_twice(cursor, table, after, upto):
            went += _ONCE
        make(cursor, name, _weighed(listed, came, went))


def changed_rows(cursor: Cursor, table: LakeTable, after: int, upto: int, has_deletes: bool) -> tuple[str, str | None]:
    """SQL of relations with the rows that came in snapshots `after < s <= upto`, and with those that went, if any did.

    The latter may be told twice. They have the virtual columns `rowid` and `snapshot_id`, and may be read in the
    cursor's transaction.
    """
    inlined = inlined_rows(cursor, table, after, upto, has_deletes)
    return _or_feeds(inlined, table, after, upto, has_deletes)


def _or_feeds(
    inlined: InlinedRows, table: LakeTable, after: int, upto: int, has_deletes: bool
) -> tuple[str, str | None]:
    """What is inlined, and DuckLake's functions for what is not."""
    came = inlined.came or _feed("insertions", table, after, upto)
    return came, inlined.went or (_feed("deletions", table, after, upto) if has_deletes else None)


def _weighed(listed: str, came: str, went: str | None) -> str:
    inserted = f"SELECT {listed}, 1 AS _weight FROM {came}"
    return f"{inserted} UNION ALL BY NAME SELECT {listed}, -1 AS _weight FROM {went}" if went else inserted


# What follows rows that went: each is told once, from its place. Snapshots alone do not tell them apart: rows that were
# in the catalog, and are in a file now, have all the same one.
_ONCE = f" QUALIFY row_number() OVER (PARTITION BY {', '.join(_VIRTUAL)}) = 1"


def _tells_twice(cursor: Cursor, table: LakeTable, after: int, upto: int) -> bool:
    """Whether rows may have gone from a file before it went as a whole, so that DuckLake may tell them twice."""
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
    """The rows that came in snapshots `after < s <= upto`, those of updates too. What a file has is not read."""
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
    """SQL of rows that are gone, as `_NONE`; and their data files with the numbers, which are None once forgotten."""

    rows: str
    files: tuple[tuple[str | None, int | None], ...] = ()


# A row's file and its place there; and of one that came after the first snapshot when that was.
_NONE = "SELECT ''::VARCHAR AS file, 0::BIGINT AS place, NULL::BIGINT AS born WHERE false"


def _keep_net(
    cursor: Cursor, name: str, table: LakeTable, after: int, upto: int, listed: str, came: str, make: Make
) -> bool:
    """Whether the changes could be kept without reading whole files."""
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
        return False  # not all rows of these were there before
    gone = f"{name}_gone"
    rows = " UNION ".join([_NONE, *(part.rows for part in parts)])
    make_temporary(cursor, gone, rows)
    counts = cursor.execute(
        f"SELECT file, count(*) FILTER (born IS NULL), count(born) FROM {gone} GROUP BY 1"
    ).fetchall()
    if any(passed for *_, passed in counts):
        came += f" AS came ANTI JOIN {gone} AS gone ON came.rowid = gone.place AND came.snapshot_id = gone.born"
    query = f"SELECT {listed}, 1 AS _weight FROM {came}"
    for is_file in (True, False):  # places of one kind alone tell what need not be read
        read = [file for file, old, _ in counts if old and (file in files) == is_file]
        if read:
            query += f" UNION ALL BY NAME SELECT {listed}, -1 AS _weight FROM {_rows_of(table, after, gone, read)}"
    make(cursor, name, query)
    define(cursor, f"DROP TABLE {gone}")
    # What has been tried of DuckLake may be otherwise in another version.
    found = first_row(cursor.execute(f"SELECT count(*) FROM {name} WHERE _weight < 0"))
    return found == (sum(old for _, old, _ in counts),)


def _rows_of(table: LakeTable, snapshot: int, gone: str, files: Sequence[str]) -> str:
    """SQL of the rows of some files that are gone, as they were at a snapshot."""
    names = ", ".join(map(literal, files))
    return (
        f"{at_version(table.sql, snapshot)} SEMI JOIN (FROM {gone} WHERE born IS NULL AND file IN ({names})) AS gone "
        f"ON filename = gone.file AND file_row_number = gone.place WHERE filename IN ({names})"
    )


def is_large(cursor: Cursor, table: LakeTable) -> bool:
    """Whether it is worth the questions. Of tables in several schemas one counts for all."""
    row = first_row(
        ask(
            cursor,
            f"SELECT sum(record_count) >= {LARGE_ROWS} FROM {METADATA}.ducklake_data_file WHERE table_id IN "
            f"(SELECT table_id FROM {METADATA}.ducklake_table WHERE table_name = {literal(table.name)})",
        )
    )
    return row == (True,)


def _first_new_file(cursor: Cursor, number: int, after: int, upto: int) -> int | None:
    """The number of the next file after a snapshot. Files before that have nothing of later snapshots.

    Compaction writes files later that belong to earlier snapshots, so that what they belong to does not tell. None if a
    file has gone as a whole since, or a column has come or gone or hides a virtual one.
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
    """What the lake's files of deletes list, each for one data file; with snapshots where they are of several."""
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
    """The few deletes that the catalog has itself."""
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
    """The rows that are not in a file."""
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
