"""What the lake's catalog tells of tables at a snapshot: data files, delete files, added columns, inlined rows.

One query tells it of several tables, because DuckDB plans a query of the catalog for longer than it runs it. From
DuckLake's specification 1.0: `ducklake_data_file`, `ducklake_delete_file`, `ducklake_column`,
`ducklake_inlined_data_tables`; a file with `partial_max` has rows of several snapshots up to this one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sparkwave.catalog.lake.ducklake import METADATA, Cursor, at_version, first_row, inlined_deletes
from sparkwave.catalog.names import LakeTable, literal, quote


@dataclass(frozen=True)
class StoredFile:
    """A data file with the number of its rows, including deleted ones."""

    path: str
    row_id_start: int | None
    rows: int
    partial_max: int | None


@dataclass(frozen=True)
class AddedColumn:
    """A column that was added to a table, by its id in the files, and the value of older rows as text."""

    id: int
    name: str
    default: str | None


@dataclass(frozen=True)
class Contents:
    """A table at a snapshot. `number` is the lake's. `inlined` are tables of the catalog, one for each shape of rows.

    `deletes` is the catalog's table with deleted rows of files; None if there is none yet.
    """

    number: int
    snapshot: int
    files: list[StoredFile] = field(default_factory=list)
    delete_files: list[str] = field(default_factory=list)
    added: list[AddedColumn] = field(default_factory=list)
    inlined: list[str] = field(default_factory=list)
    deletes: str | None = None

    @property
    def live(self) -> str:
        """The condition of the catalog's rows that are valid at the snapshot."""
        return _live(self.snapshot)

    @property
    def deleted(self) -> str:
        """SQL of the rows of `deletes` at the snapshot, with the path of the file."""
        files = f"FROM {METADATA}.ducklake_data_file WHERE table_id = {self.number} AND {self.live}"
        return (
            f"SELECT path, d.row_id AS pos FROM {METADATA}.{self.deletes} d JOIN ({files}) f "
            f"ON f.data_file_id = d.file_id WHERE d.begin_snapshot <= {self.snapshot}"
        )


def _live(snapshot: int) -> str:
    return f"begin_snapshot <= {snapshot} AND (end_snapshot IS NULL OR end_snapshot > {snapshot})"


def contents(cursor: Cursor, tables: Collection[LakeTable], snapshot: int) -> dict[LakeTable, Contents]:
    """Return the contents of the tables that exist at a snapshot, read in the cursor's transaction."""
    live, found = _live(snapshot), dict[LakeTable, Contents]()
    rows = cursor.execute(
        f"""
        WITH located AS (
            SELECT table_id, s.schema_name, t.table_name, if(t.path_is_relative,
                if(s.path_is_relative, m.value || s.path, s.path) || t.path, t.path) AS directory
            FROM {METADATA}.ducklake_table t
            JOIN {METADATA}.ducklake_schema s USING (schema_id)
            JOIN {METADATA}.ducklake_metadata m ON m.key = 'data_path'
            WHERE (s.schema_name, t.table_name) IN ({", ".join(_key(table) for table in tables)})
            AND greatest(s.begin_snapshot, t.begin_snapshot) <= {snapshot}
            AND coalesce(least(s.end_snapshot, t.end_snapshot) > {snapshot}, true)
        ), stored AS (
            SELECT table_id, 'file' AS kind, path, path_is_relative, row_id_start AS number, record_count AS rows,
                partial_max, NULL AS value
            FROM {METADATA}.ducklake_data_file WHERE {live}
            UNION ALL
            SELECT table_id, 'delete', path, path_is_relative, NULL, NULL, NULL, NULL
            FROM {METADATA}.ducklake_delete_file WHERE {live}
            UNION ALL
            SELECT table_id, 'column', column_name, false, column_id, NULL, NULL, initial_default
            FROM {METADATA}.ducklake_column WHERE parent_column IS NULL AND {live}
            AND begin_snapshot > (SELECT min(begin_snapshot) FROM {METADATA}.ducklake_table t
                WHERE t.table_id = ducklake_column.table_id)
            UNION ALL
            SELECT table_id, 'inlined', table_name, false, NULL, NULL, NULL, NULL
            FROM {METADATA}.ducklake_inlined_data_tables
        )
        SELECT schema_name, table_name, table_id, kind, if(path_is_relative, directory || path, path), number, rows,
            partial_max, value
        FROM located LEFT JOIN stored USING (table_id) ORDER BY number
        """
    ).fetchall()
    for schema, name, table_number, kind, text, number, count, partial_max, value in rows:
        table = LakeTable(schema, name)
        if table not in found:
            found[table] = Contents(table_number, snapshot, deletes=inlined_deletes(cursor, table_number))
        match kind:
            case "file":
                found[table].files.append(StoredFile(text, number, count, partial_max))
            case "delete":
                found[table].delete_files.append(text)
            case "column":
                found[table].added.append(AddedColumn(number, text, value))
            case "inlined":
                found[table].inlined.append(text)
    return found


def _key(table: LakeTable) -> str:
    return f"({literal(table.schema)}, {literal(table.name)})"


def count_rows(cursor: Cursor, table: LakeTable, found: Contents) -> int:
    """Return the rows of a table at the snapshot of its contents, read in the cursor's transaction."""
    # The counts of merged files include rows of later snapshots, those of delete files also rows of other files.
    if found.delete_files or any((file.partial_max or 0) > found.snapshot for file in found.files):
        return _one(cursor, f"SELECT count(*) FROM {at_version(table.sql, found.snapshot)}")
    rows = sum(file.rows for file in found.files)
    rows += sum(_one(cursor, f"SELECT count(*) FROM {METADATA}.{quote(t)} WHERE {found.live}") for t in found.inlined)
    if found.deletes is not None and found.files:
        rows -= _one(cursor, f"SELECT count(*) FROM ({found.deleted})")
    return rows


def _one(cursor: Cursor, query: str) -> int:
    row = first_row(cursor.execute(query))
    return row[0] if row else 0
