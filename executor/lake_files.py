"""A lake table at a snapshot as Parquet files, for an engine that reads files and not the catalog.

From DuckLake's specification 1.0, tables `ducklake_data_file`, `ducklake_delete_file`, `ducklake_inlined_data_tables`:
- a file's rows have the row ids `row_id_start + position`, unless it has a column `_ducklake_internal_row_id`;
- a file with `_ducklake_internal_snapshot_id` holds rows of several snapshots, those above S are not there yet;
- a delete file lists (`file_path`, `pos`), with a snapshot a row where it has that column;
- small inserts and deletes live in the catalog (`ducklake_inlined_data_*`, and `ducklake_inlined_delete_*`, whose
  `row_id` is the position in the file).
The deletes and the inlined rows are small: DuckDB writes each as one Parquet file beside the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from catalog.lake import METADATA, Cursor, DuckDBError
from catalog.model import ROW_ID, Column, Relation
from catalog.names import literal, quote

ROW_ID_COLUMN = "_ducklake_internal_row_id"
SNAPSHOT_COLUMN = "_ducklake_internal_snapshot_id"


@dataclass(frozen=True)
class DataFile:
    """`row_id_start` is None when the file has a column of row ids. `row_count` is rows, deleted ones included."""

    path: str
    row_id_start: int | None
    row_count: int
    has_row_ids: bool
    has_snapshot_ids: bool


@dataclass(frozen=True)
class TableFiles:
    """A table at a snapshot.

    `deletes` is a Parquet file of (file_name, pos), `inlined` one of the table's columns and `_row_id`.
    """

    snapshot: int
    files: tuple[DataFile, ...]
    deletes: Path | None
    inlined: Path | None


def table_files(cursor: Cursor, relation: Relation, snapshot: int, scratch: Path) -> TableFiles:
    """List a table's files at a snapshot. Writes what the catalog holds inline into the directory `scratch`."""
    table_id, directory = _locate(cursor, relation, snapshot)
    live = f"begin_snapshot <= {snapshot} AND (end_snapshot IS NULL OR end_snapshot > {snapshot})"
    rows = cursor.execute(
        f"SELECT data_file_id, if(path_is_relative, ? || path, path), row_id_start, record_count "
        f"FROM {METADATA}.ducklake_data_file WHERE table_id = ? AND {live} ORDER BY row_id_start",
        [directory, table_id],
    ).fetchall()
    special = _internal_columns(cursor, [path for _, path, _, _ in rows])
    files = []
    for _, path, start, count in rows:
        found = special.get(path, set())
        files.append(DataFile(path, start, count, ROW_ID_COLUMN in found, SNAPSHOT_COLUMN in found))
    paths = {file_id: path for file_id, path, _, _ in rows}
    deletes = _deletes(cursor, table_id, directory, live, snapshot, paths, scratch / "deletes.parquet")
    inlined = _inlined(cursor, relation, table_id, live, scratch / "inlined.parquet")
    return TableFiles(snapshot, tuple(files), deletes, inlined)


def _locate(cursor: Cursor, relation: Relation, snapshot: int) -> tuple[int, str]:
    row = cursor.execute(
        f"SELECT t.table_id, if(s.path_is_relative, m.value || s.path, s.path), t.path, t.path_is_relative "
        f"FROM {METADATA}.ducklake_table t JOIN {METADATA}.ducklake_schema s USING (schema_id) "
        f"JOIN {METADATA}.ducklake_metadata m ON m.key = 'data_path' "
        "WHERE s.schema_name = ? AND t.table_name = ? AND s.end_snapshot IS NULL "
        "AND t.begin_snapshot <= ? AND (t.end_snapshot IS NULL OR t.end_snapshot > ?)",
        [relation.lake_table.schema, relation.lake_table.name, snapshot, snapshot],
    ).fetchone()
    assert row is not None, f"{relation.qualified_name} is not in snapshot {snapshot}"
    table_id, schema_path, path, is_relative = row
    return table_id, schema_path + path if is_relative else path


def _internal_columns(cursor: Cursor, paths: list[str]) -> dict[str, set[str]]:
    if not paths:
        return {}
    listed = ", ".join(map(literal, paths))
    found: dict[str, set[str]] = {}
    for path, name in cursor.execute(
        f"SELECT file_name, name FROM parquet_schema([{listed}]) WHERE name IN (?, ?)",
        [ROW_ID_COLUMN, SNAPSHOT_COLUMN],
    ).fetchall():
        found.setdefault(path, set()).add(name)
    return found


def _deletes(
    cursor: Cursor,
    table_id: int,
    directory: str,
    live: str,
    snapshot: int,
    paths: dict[int, str],
    target: Path,
) -> Path | None:
    parts = []
    for (path,) in cursor.execute(
        f"SELECT if(path_is_relative, ? || path, path) FROM {METADATA}.ducklake_delete_file "
        f"WHERE table_id = ? AND {live}",
        [directory, table_id],
    ).fetchall():
        filtered = f"WHERE {SNAPSHOT_COLUMN} <= {snapshot}" if path in _internal_columns(cursor, [path]) else ""
        parts.append(
            f"SELECT parse_filename(file_path) AS file_name, pos FROM read_parquet({literal(path)}) {filtered}"
        )
    inline_table = f"ducklake_inlined_delete_{table_id}"
    if _metadata_has(cursor, inline_table):
        for file_id, path in paths.items():
            parts.append(
                f"SELECT {literal(Path(path).name)} AS file_name, row_id AS pos "
                f"FROM {METADATA}.{inline_table} WHERE file_id = {file_id} AND begin_snapshot <= {snapshot}"
            )
    return _write(cursor, parts, target)


def _inlined(cursor: Cursor, relation: Relation, table_id: int, live: str, target: Path) -> Path | None:
    parts = []
    columns = ", ".join(map(quote, _stored_names(relation.stored)))
    for (name,) in cursor.execute(
        f"SELECT table_name FROM {METADATA}.ducklake_inlined_data_tables WHERE table_id = ?", [table_id]
    ).fetchall():
        parts.append(f"SELECT {columns}, row_id AS {quote(ROW_ID)} FROM {METADATA}.{quote(name)} WHERE {live}")
    return _write(cursor, parts, target)


def _stored_names(columns: tuple[Column, ...]) -> list[str]:
    return [column.name for column in columns]


def _metadata_has(cursor: Cursor, table: str) -> bool:
    # DuckDB's own catalog functions do not list the metadata database.
    try:
        cursor.execute(f"SELECT 1 FROM {METADATA}.{quote(table)} LIMIT 0")
    except DuckDBError as error:
        if "does not exist" not in str(error):
            raise
        return False
    return True


def _write(cursor: Cursor, parts: list[str], target: Path) -> Path | None:
    """Write the rows of some queries to a Parquet file; None when there are none."""
    if not parts:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    query = " UNION ALL ".join(parts)
    row = cursor.execute(f"COPY ({query}) TO {literal(str(target))} (FORMAT parquet)").fetchone()
    return target if row and row[0] else None
