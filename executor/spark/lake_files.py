"""A lake table at a snapshot as Parquet files, for an engine that reads files and not the catalog.

From DuckLake's specification 1.0, tables `ducklake_data_file`, `ducklake_delete_file`, `ducklake_inlined_data_tables`:
- a file's rows have the row ids `row_id_start + position`, unless it has a column `_ducklake_internal_row_id`;
- a file with `_ducklake_internal_snapshot_id` has rows of several snapshots; rows above S do not exist yet at S;
- a delete file lists (`file_path`, `pos`), with the snapshot of each deletion where it has that column;
- small inserts and deletes are in the catalog (`ducklake_inlined_data_*`, and `ducklake_inlined_delete_*`, whose
  `row_id` is the position in the file);
- a column that was added later is missing in older files and tables of inlined rows; their rows have the value with
  which it was added (`initial_default` in `ducklake_column`), or NULL. Column ids are the files' field ids.

The deletes and the inlined rows are small: DuckDB writes each as one Parquet file beside the others.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import METADATA, Cursor, inlined_deletes, inlined_tables, locate
from sparkwave.catalog.lake.places import Place
from sparkwave.catalog.lake.row_ids import ROW_ID_COLUMN, SNAPSHOT_COLUMN, RowIds
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import literal, quote
from sparkwave.executor.spark.footers import FOOTERS


@dataclass(frozen=True)
class DataFile:
    """A data file. `row_id_start` is None when the file has a column of row ids. `row_count` includes deleted rows.

    `missing` are the columns, by the lake's names, that were added after the file was written.
    """

    path: str
    row_id_start: int | None
    row_count: int
    has_row_ids: bool
    has_snapshot_ids: bool
    missing: frozenset[str] = frozenset()

    @property
    def shape(self) -> tuple[bool, bool, frozenset[str]]:
        """A key of files that can be read together."""
        return self.has_row_ids, self.has_snapshot_ids, self.missing


@dataclass(frozen=True)
class TableFiles:
    """The files of a table at a snapshot.

    `deletes` is a Parquet file of (file_name, pos), `inlined` one of the table's columns and row ids. `defaults` has,
    for each added column, the value (as SQL) of rows that lack it.
    """

    snapshot: int
    files: tuple[DataFile, ...]
    deletes: Place | None
    inlined: Place | None
    defaults: Mapping[str, str]

    @lazy
    def _placed(self) -> tuple[list[DataFile], list[DataFile]]:
        """The files whose rows have row ids by position, in order, and the other files."""
        placed = [file for file in self.files if file.row_id_start is not None and not file.has_row_ids]
        return placed, [file for file in self.files if file.row_id_start is None or file.has_row_ids]

    @lazy
    def _starts(self) -> list[int]:
        return [file.row_id_start or 0 for file in self._placed[0]]

    def near(self, rows: RowIds) -> Sequence[DataFile]:
        """Return the files that may have some of these rows, without looking at each file."""
        placed, others = self._placed
        found: dict[DataFile, None] = {}
        for first, last in rows.ranges:
            start = max(bisect_right(self._starts, first) - 1, 0)
            stop = len(placed) if last is None else bisect_left(self._starts, last)
            found.update(dict.fromkeys(placed[start:stop]))
        return [*found, *others]


def table_files(cursor: Cursor, relation: Relation, snapshot: int, scratch: Place) -> TableFiles:
    """Return a table's files at a snapshot. Writes the catalog's inline rows into the directory `scratch`."""
    located = locate(cursor, relation.lake_table, snapshot)
    assert located is not None, f"{relation.qualified_name} is not in snapshot {snapshot}"
    table_id, directory = located
    live = f"begin_snapshot <= {snapshot} AND (end_snapshot IS NULL OR end_snapshot > {snapshot})"
    rows = cursor.execute(
        "SELECT if(path_is_relative, ? || path, path), row_id_start, record_count "
        f"FROM {METADATA}.ducklake_data_file WHERE table_id = ? AND {live} ORDER BY row_id_start",
        [directory, table_id],
    ).fetchall()
    added = _added(cursor, relation, table_id, live)
    columns = FOOTERS.columns(cursor, [path for path, _, _ in rows])
    defaults = dict(added.values())
    files = []
    for path, start, count in rows:
        found = columns[path]
        missing = frozenset(name for id_, (name, _) in added.items() if id_ not in found)
        files.append(DataFile(path, start, count, ROW_ID_COLUMN in found, SNAPSHOT_COLUMN in found, missing))
    deletes = _deletes(cursor, table_id, directory, live, snapshot, scratch / "deletes.parquet")
    inlined = _inlined(cursor, relation, table_id, live, defaults, scratch / "inlined.parquet")
    return TableFiles(snapshot, tuple(files), deletes, inlined, defaults)


def _added(cursor: Cursor, relation: Relation, table_id: int, live: str) -> dict[int, tuple[str, str]]:
    """Return the columns that were added to the table: by id the name, and the value of older rows as SQL."""
    types = {column.lake_name: column.type.in_lake() for column in relation.stored}
    made = f"(SELECT min(begin_snapshot) FROM {METADATA}.ducklake_table WHERE table_id = ?)"
    rows = cursor.execute(
        f"SELECT column_id, column_name, initial_default FROM {METADATA}.ducklake_column "
        f"WHERE table_id = ? AND parent_column IS NULL AND begin_snapshot > {made} AND {live}",
        [table_id, table_id],
    ).fetchall()
    return {
        id_: (n, f"CAST({'NULL' if value is None else literal(value)} AS {types[n]})")
        for id_, n, value in rows
        if n in types
    }


def _deletes(cursor: Cursor, table_id: int, directory: str, live: str, snapshot: int, target: Place) -> Place | None:
    listed = cursor.execute(
        f"SELECT if(path_is_relative, ? || path, path) FROM {METADATA}.ducklake_delete_file "
        f"WHERE table_id = ? AND {live}",
        [directory, table_id],
    ).fetchall()
    paths = [path for (path,) in listed]
    columns = FOOTERS.columns(cursor, paths)
    parts = []
    for condition in ("", f"WHERE {SNAPSHOT_COLUMN} <= {snapshot}"):
        files = [path for path in paths if (SNAPSHOT_COLUMN in columns[path]) == bool(condition)]
        if files:
            read = f"read_parquet([{', '.join(map(literal, files))}])"
            parts.append(f"SELECT parse_filename(file_path) AS file_name, pos FROM {read} {condition}")
    inlined = inlined_deletes(cursor, table_id)
    if inlined is not None:
        parts.append(
            f"SELECT parse_filename(path) AS file_name, d.row_id AS pos FROM {METADATA}.{inlined} d "
            f"JOIN (FROM {METADATA}.ducklake_data_file WHERE table_id = {table_id} AND {live}) f "
            f"ON f.data_file_id = d.file_id WHERE d.begin_snapshot <= {snapshot}"
        )
    return _write(cursor, parts, target)


def _inlined(
    cursor: Cursor, relation: Relation, table_id: int, live: str, defaults: Mapping[str, str], target: Place
) -> Place | None:
    parts = []
    for name in inlined_tables(cursor, table_id):
        table = f"{METADATA}.{quote(name)}"
        described = cursor.execute(f"SELECT * FROM {table} LIMIT 0").description or ()
        present = {column: str(type_) for column, type_, *_ in described}
        columns = ", ".join(_inlined_column(column, present, defaults) for column in relation.stored)
        parts.append(f"SELECT {columns}, row_id AS {ROW_ID_COLUMN} FROM {table} WHERE {live}")
    return _write(cursor, parts, target)


def _inlined_column(column: Column, present: Mapping[str, str], defaults: Mapping[str, str]) -> str:
    """Return SQL of a column from a table of inlined rows. `present` has the columns and types of the inlined table.

    A catalog in PostgreSQL has text as bytes.
    """
    name, type_ = column.lake_name, column.type.in_lake()
    stored = quote(name) if name in present else defaults.get(name, "NULL")
    if present.get(name) == "BLOB" and type_ != "BLOB":
        stored = f"decode({stored})"
    return f"CAST({stored} AS {type_}) AS {quote(name)}"


def _write(cursor: Cursor, parts: list[str], target: Place) -> Place | None:
    """Write the rows of some queries to a Parquet file; None when there are none."""
    if not parts:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    query = " UNION ALL ".join(parts)
    row = cursor.execute(f"COPY ({query}) TO {literal(str(target))} (FORMAT parquet)").fetchone()
    return target if row and row[0] else None
