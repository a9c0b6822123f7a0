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

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.places import Place
from sparkwave.catalog.lake.row_ids import ROW_ID_COLUMN, SNAPSHOT_COLUMN, RowIds
from sparkwave.catalog.lake.table_contents import Contents, contents
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import METADATA, literal, quote
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
    found = contents(cursor, [relation.lake_table], snapshot).get(relation.lake_table)
    assert found is not None, f"{relation.qualified_name} is not in snapshot {snapshot}"
    added = _added(relation, found)
    columns = FOOTERS.columns(cursor, [file.path for file in found.files])
    defaults = dict(added.values())
    files = []
    for file in found.files:
        held = columns[file.path]
        missing = frozenset(name for id_, (name, _) in added.items() if id_ not in held)
        has_ids, has_snapshots = ROW_ID_COLUMN in held, SNAPSHOT_COLUMN in held
        files.append(DataFile(file.path, file.row_id_start, file.rows, has_ids, has_snapshots, missing))
    deletes = _deletes(cursor, found, scratch / "deletes.parquet")
    inlined = _inlined(cursor, relation, found, defaults, scratch / "inlined.parquet")
    return TableFiles(snapshot, tuple(files), deletes, inlined, defaults)


def _added(relation: Relation, found: Contents) -> dict[int, tuple[str, str]]:
    """Return the columns that were added to the table: by id the name, and the value of older rows as SQL."""
    types = {column.lake_name: column.type.in_lake() for column in relation.stored}
    return {
        column.id: (
            column.name,
            f"CAST({'NULL' if column.default is None else literal(column.default)} AS {types[column.name]})",
        )
        for column in found.added
        if column.name in types
    }


def _deletes(cursor: Cursor, found: Contents, target: Place) -> Place | None:
    columns = FOOTERS.columns(cursor, found.delete_files)
    parts = []
    for condition in ("", f"WHERE {SNAPSHOT_COLUMN} <= {found.snapshot}"):
        files = [path for path in found.delete_files if (SNAPSHOT_COLUMN in columns[path]) == bool(condition)]
        if files:
            read = f"read_parquet([{', '.join(map(literal, files))}])"
            parts.append(f"SELECT parse_filename(file_path) AS file_name, pos FROM {read} {condition}")
    if found.deletes is not None:
        parts.append(f"SELECT parse_filename(path) AS file_name, pos FROM ({found.deleted})")
    return _write(cursor, parts, target)


def _inlined(
    cursor: Cursor, relation: Relation, found: Contents, defaults: Mapping[str, str], target: Place
) -> Place | None:
    parts = []
    for name in found.inlined:
        table = f"{METADATA}.{quote(name)}"
        if not cursor.execute(f"SELECT 1 FROM {table} WHERE {found.live} LIMIT 1").fetchall():
            continue
        described = cursor.execute(f"SELECT * FROM {table} LIMIT 0").description or ()
        present = {column: str(type_) for column, type_, *_ in described}
        columns = ", ".join(_inlined_column(column, present, defaults) for column in relation.stored)
        parts.append(f"SELECT {columns}, row_id AS {ROW_ID_COLUMN} FROM {table} WHERE {found.live}")
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
