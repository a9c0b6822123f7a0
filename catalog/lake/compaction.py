"""Merges the lake's many small files into few, and moves rows from its catalog to files.

DuckLake 1.0 (ducklake.select/docs, "Maintenance"). Found by experiment, with 1.5.5 (asserted by
tests/test_compaction.py):

- `ducklake_flush_inlined_data` and `ducklake_merge_adjacent_files` preserve all snapshots and the change feed, with one
  exception: if the `row_id_start` of files seem to continue each other, the row ids that updates have written into the
  files are lost. So those files first lose that number, which is wrong for them (`forget_row_id_starts`).
- files with deletes are not merged. `ducklake_rewrite_data_files`, which is made for them, breaks the change feed,
  except for files without any row left. Rows of the other files are updated to themselves instead: a row keeps its id,
  and its two rows in the feed cancel each other out.
- a transaction that deletes inlined rows while they are flushed deletes nothing. So all this runs while no other
  transaction commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.lake_tables import files_with_column, inlined_deletes
from sparkwave.catalog.lake.row_ids import ROW_ID_COLUMN
from sparkwave.catalog.lake.row_times import keep_writers
from sparkwave.catalog.names import METADATA, LakeTable, literal, quote

# The rows and deletes in the catalog that are worth a file; (size in bytes, number): as many smaller files are merged.
INLINED_ROWS = 10_000
TIERS = ((1 << 20, 32), (16 << 20, 16))
# A file with at least this part of its rows deleted is rewritten without them.
DELETED_PART = 0.5
_TOGETHER = 100  # tables whose rows one query counts


@dataclass(frozen=True)
class File:
    """A present data file of a table. `path` is absolute; `size` is in bytes; `rows` includes the `deleted` ones."""

    id: int
    path: str
    size: int
    rows: int
    deleted: int
    has_row_id_start: bool


@dataclass(frozen=True)
class Table:
    """A lake table that needs work.

    `flush`: write its inlined rows to a file; `drop`: remove files without rows; `rewrite`: files to rewrite; `merge`:
    files to merge, all smaller than `below` bytes.
    """

    name: LakeTable
    flush: bool
    drop: bool
    rewrite: tuple[File, ...]
    merge: tuple[File, ...]
    below: int


def tables_to_compact(cursor: Cursor, data_path: str) -> list[Table]:
    """Return the lake tables that need work."""
    names = cursor.execute(
        f"SELECT t.table_id, s.schema_name, t.table_name, "
        "if(t.path_is_relative, if(s.path_is_relative, ? || s.path, s.path) || t.path, t.path) "
        f"FROM {METADATA}.ducklake_table t JOIN {METADATA}.ducklake_schema s USING (schema_id) "
        "WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL",
        [f"{data_path}/"],
    ).fetchall()
    inlined = _inlined_rows(cursor)
    with_files = cursor.execute(
        f"SELECT table_id, count(*) FROM {METADATA}.ducklake_data_file WHERE end_snapshot IS NULL GROUP BY 1"
    ).fetchall()
    counts = dict(with_files)
    found = []
    for id_, schema, name, directory in names:
        held, files = inlined.get(id_, 0), []
        if counts.get(id_):
            deletes = inlined_deletes(cursor, id_)
            held += _rows(cursor, deletes) if deletes else 0
            files = _files(cursor, id_, directory, deletes)
        table = _plan(LakeTable(schema, name), held, files)
        if table.flush or table.drop or table.rewrite or table.merge:
            found.append(table)
    return found


def _plan(name: LakeTable, inlined: int, files: Sequence[File]) -> Table:
    whole = [file for file in files if not file.deleted]
    frayed = [file for file in files if 0 < file.deleted < file.rows]
    dead = [file for file in files if file.rows <= file.deleted]
    smallest, least = TIERS[0]
    tiers = ((below, count, tuple(file for file in whole if file.size < below)) for below, count in TIERS)
    below, merge = next(((below, found) for below, count, found in tiers if len(found) >= count), (smallest, ()))
    worn = tuple(file for file in frayed if file.size >= smallest and file.deleted > file.rows * DELETED_PART)
    small = tuple(file for file in frayed if file.size < smallest)
    rewrite = worn[:1] or (small if len(small) >= least else ())
    return Table(name, inlined >= INLINED_ROWS, len(dead) >= least, rewrite, merge, below)


def all_tables(cursor: Cursor) -> list[LakeTable]:
    """Return the lake's tables."""
    rows = cursor.execute(
        f"SELECT s.schema_name, t.table_name FROM {METADATA}.ducklake_table t "
        f"JOIN {METADATA}.ducklake_schema s USING (schema_id) WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL"
    ).fetchall()
    return [LakeTable(*row) for row in rows]


def flush(cursor: Cursor, table: LakeTable) -> None:
    """Write the table's inlined rows and deletes to files, in the cursor's transaction."""
    cursor.execute(
        "CALL ducklake_flush_inlined_data('lake', "
        f"schema_name => {literal(table.schema)}, table_name => {literal(table.name)})"
    )


def merge(cursor: Cursor, table: LakeTable, below: int) -> None:
    """Merge adjacent files smaller than `below` bytes into one, in the cursor's transaction."""
    cursor.execute(
        f"CALL ducklake_merge_adjacent_files('lake', {literal(table.name)}, schema => {literal(table.schema)}, "
        f"max_file_size => {below}, max_compacted_files => 1)"
    )


def drop_dead(cursor: Cursor, table: LakeTable) -> None:
    """Remove the files without any row left from a flushed table, in the cursor's transaction."""
    cursor.execute(
        f"CALL ducklake_rewrite_data_files('lake', {literal(table.name)}, schema => {literal(table.schema)}, "
        "delete_threshold => 1.0)"
    )


def rewrite(cursor: Cursor, table: LakeTable, files: Iterable[File], timed: Mapping[LakeTable, bool]) -> None:
    """Rewrite the remaining rows of some files to one file, in the cursor's transaction.

    Of the `timed` tables queries may ask when rows were written; the values tell whether they are append-only.
    """
    row = cursor.execute(f"DESCRIBE {table.sql}").fetchone()
    assert row is not None
    column = quote(row[0])
    condition = f"filename IN ({', '.join(literal(file.path) for file in files)})"
    if table in timed:
        keep_writers(cursor, table, condition, timed[table])
    cursor.execute(f"UPDATE {table.sql} SET {column} = {column} WHERE {condition}")


def forget_row_id_starts(lake: Lake, cursor: Cursor, table: LakeTable, files: Sequence[File]) -> None:
    """Clear `row_id_start` of files that contain row ids, since it is wrong for them."""
    paths = {file.path: file.id for file in files if file.has_row_id_start}
    if not paths:
        return
    own = files_with_column(cursor, paths, ROW_ID_COLUMN)
    if own:
        ids = ", ".join(str(paths[path]) for path in own)
        all_files = f"{METADATA}.ducklake_data_file"
        with lake.holding(table), lake.exclusive():  # else an open transaction would see a conflict with these rows
            cursor.execute(f"UPDATE {all_files} SET row_id_start = NULL WHERE data_file_id IN ({ids})")


def _inlined_rows(cursor: Cursor) -> dict[int, int]:
    """The number of rows that the catalog holds now, by table id."""
    tables = cursor.execute(f"SELECT table_id, table_name FROM {METADATA}.ducklake_inlined_data_tables").fetchall()
    counted: dict[int, int] = {}
    for first in range(0, len(tables), _TOGETHER):
        for id_, count in _counts(cursor, tables[first : first + _TOGETHER]):
            counted[id_] = counted.get(id_, 0) + count
    return counted


def _counts(cursor: Cursor, tables: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
    """The number of present rows of each table of inlined rows, with its table id, by one query: of 60 tables in 7 ms.

    Queries for each table take 23 ms.
    """
    selects = (
        f"SELECT {id_}, count(*) FROM {METADATA}.{quote(name)} WHERE end_snapshot IS NULL" for id_, name in tables
    )
    return cursor.execute(" UNION ALL ".join(selects)).fetchall()


def _rows(cursor: Cursor, table: str) -> int:
    """The number of rows of a table of the lake's catalog."""
    [(count,)] = cursor.execute(f"SELECT count(*) FROM {METADATA}.{table}").fetchall()
    return count


def _files(cursor: Cursor, table_id: int, directory: str, deletes: str | None) -> list[File]:
    """A table's files with the numbers of their deleted rows; `deletes` is the result of `inlined_deletes`."""
    own = f" UNION ALL SELECT file_id, 1 FROM {METADATA}.{deletes}" if deletes else ""
    rows = cursor.execute(
        f"WITH deleted AS (SELECT data_file_id, delete_count FROM {METADATA}.ducklake_delete_file "
        f"WHERE table_id = {table_id} AND end_snapshot IS NULL{own}) "
        "SELECT f.data_file_id, if(path_is_relative, ? || path, path), file_size_bytes, record_count, "
        "coalesce(sum(delete_count), 0)::BIGINT, row_id_start IS NOT NULL "
        f"FROM {METADATA}.ducklake_data_file f LEFT JOIN deleted USING (data_file_id) "
        f"WHERE table_id = {table_id} AND end_snapshot IS NULL GROUP BY ALL ORDER BY 1",
        [directory],
    ).fetchall()
    return [File(*row) for row in rows]
