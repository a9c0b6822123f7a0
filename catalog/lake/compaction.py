"""Making the lake's many small files few, and moving rows out of its catalog.

DuckLake 1.0 (ducklake.select/docs, "Maintenance"). Found by trying, with 1.5.5 (asserted by tests/test_compaction.py):
- `ducklake_flush_inlined_data` and `ducklake_merge_adjacent_files` leave all snapshots and the change feed as they are,
  but for one thing: files whose `row_id_start` seem to follow each other lose the row ids that updates have written
  into them. So these files lose that number before, which says nothing of them (`forget_row_id_starts`).
- files with deletes are not merged, and `ducklake_rewrite_data_files`, which is for them, breaks the change feed, but
  for files without any row left. Rows of others are updated with themselves instead: a row keeps its id, and the feed's
  two rows of it cancel each other out.
- who deletes inlined rows while they are flushed has deleted nothing. So all this is done while nobody else commits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import METADATA, Cursor, Lake, files_with_column, inlined_deletes
from sparkwave.catalog.lake.row_ids import ROW_ID_COLUMN
from sparkwave.catalog.names import LakeTable, literal, quote

# So many rows and deletes in the catalog are worth a file, and so many files below one of these sizes a larger one.
INLINED_ROWS = 10_000
TIERS = ((1 << 20, 32), (16 << 20, 16))
# A file with so large a part of its rows deleted is written again without them.
DELETED_PART = 0.5


@dataclass(frozen=True)
class File:
    """A data file of a table now. `path` is absolute; `size` in bytes; `rows` with the `deleted` ones."""

    id: int
    path: str
    size: int
    rows: int
    deleted: int
    has_row_id_start: bool


@dataclass(frozen=True)
class Table:
    """A lake table with something to do: flush what the catalog has of it, drop files without rows, rewrite those in
    `rewrite`, or merge those in `merge`, which are all below a size (bytes)."""

    name: LakeTable
    flush: bool
    drop: bool
    rewrite: tuple[File, ...]
    merge: tuple[File, ...]
    below: int


def tables_to_compact(cursor: Cursor, data_path: str) -> list[Table]:
    """What there is to do, by lake table; nothing of most."""
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
    """The lake's tables."""
    rows = cursor.execute(
        f"SELECT s.schema_name, t.table_name FROM {METADATA}.ducklake_table t "
        f"JOIN {METADATA}.ducklake_schema s USING (schema_id) WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL"
    ).fetchall()
    return [LakeTable(*row) for row in rows]


def flush(cursor: Cursor, table: LakeTable) -> None:
    """Write the rows and deletes that the catalog holds as files, in the cursor's transaction."""
    cursor.execute(
        "CALL ducklake_flush_inlined_data('lake', "
        f"schema_name => {literal(table.schema)}, table_name => {literal(table.name)})"
    )


def merge(cursor: Cursor, table: LakeTable, below: int) -> None:
    """Make one file of the small ones that lie beside each other, in the cursor's transaction."""
    cursor.execute(
        f"CALL ducklake_merge_adjacent_files('lake', {literal(table.name)}, schema => {literal(table.schema)}, "
        f"max_file_size => {below}, max_compacted_files => 1)"
    )


def drop_dead(cursor: Cursor, table: LakeTable) -> None:
    """Take leave of the files of which a flushed table has no row left, in the cursor's transaction."""
    cursor.execute(
        f"CALL ducklake_rewrite_data_files('lake', {literal(table.name)}, schema => {literal(table.schema)}, "
        "delete_threshold => 1.0)"
    )


def rewrite(cursor: Cursor, table: LakeTable, files: Iterable[File]) -> None:
    """Write what is left of some files as one, in the cursor's transaction."""
    row = cursor.execute(f"DESCRIBE {table.sql}").fetchone()
    assert row is not None
    column = quote(row[0])
    listed = ", ".join(literal(file.path) for file in files)
    cursor.execute(f"UPDATE {table.sql} SET {column} = {column} WHERE filename IN ({listed})")


def forget_row_id_starts(lake: Lake, cursor: Cursor, table: LakeTable, files: Sequence[File]) -> None:
    """Of the files that have row ids in them: they are not where such a number would say."""
    paths = {file.path: file.id for file in files if file.has_row_id_start}
    if not paths:
        return
    own = files_with_column(cursor, paths, ROW_ID_COLUMN)
    if own:
        ids = ", ".join(str(paths[path]) for path in own)
        all_files = f"{METADATA}.ducklake_data_file"
        with lake.holding(table), lake.exclusive():  # or a transaction in progress would find these rows changed
            cursor.execute(f"UPDATE {all_files} SET row_id_start = NULL WHERE data_file_id IN ({ids})")


def _inlined_rows(cursor: Cursor) -> dict[int, int]:
    """The number of rows that the catalog holds now, by table."""
    tables = cursor.execute(f"SELECT table_id, table_name FROM {METADATA}.ducklake_inlined_data_tables").fetchall()
    counted: dict[int, int] = {}
    for id_, name in tables:
        counted[id_] = counted.get(id_, 0) + _rows(cursor, f"{quote(name)} WHERE end_snapshot IS NULL")
    return counted


def _rows(cursor: Cursor, table: str) -> int:
    """The number of rows of a table of the lake's catalog."""
    [(count,)] = cursor.execute(f"SELECT count(*) FROM {METADATA}.{table}").fetchall()
    return count


def _files(cursor: Cursor, table_id: int, directory: str, deletes: str | None) -> list[File]:
    """A table's files, with how many of their rows are deleted; `deletes` is of `inlined_deletes`."""
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
