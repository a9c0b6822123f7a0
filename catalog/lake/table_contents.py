"""What the lake's catalog tells of tables at a snapshot: data files, delete files, added columns, inlined rows.

Five queries tell it of any number of tables, because DuckDB plans a query of the catalog for longer than it runs it.
From DuckLake's specification 1.0: `ducklake_data_file`, `ducklake_delete_file`, `ducklake_column`,
`ducklake_inlined_data_tables`; a file with `partial_max` has rows of several snapshots up to this one.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import at_version, inlined_deletes, located
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.names import METADATA, LakeTable, quote


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
    places = located(cursor, tables, snapshot)
    if not places:
        return {}
    directories = dict(places.values())
    found = {number: Contents(number, snapshot, deletes=inlined_deletes(cursor, number)) for number in directories}
    of_tables = f"table_id IN ({', '.join(map(str, directories))})"
    live = f"{of_tables} AND {_live(snapshot)}"
    for number, path, is_relative, start, rows, partial_max in cursor.execute(
        "SELECT table_id, path, path_is_relative, row_id_start, record_count, partial_max "
        f"FROM {METADATA}.ducklake_data_file WHERE {live} ORDER BY row_id_start"
    ).fetchall():
        path = directories[number] + path if is_relative else path
        found[number].files.append(StoredFile(path, start, rows, partial_max))
    for number, path, is_relative in cursor.execute(
        f"SELECT table_id, path, path_is_relative FROM {METADATA}.ducklake_delete_file WHERE {live}"
    ).fetchall():
        found[number].delete_files.append(directories[number] + path if is_relative else path)
    columns = cursor.execute(
        f"SELECT table_id, column_id, column_name, initial_default, begin_snapshot, {_live(snapshot)} "
        f"FROM {METADATA}.ducklake_column WHERE {of_tables} AND parent_column IS NULL ORDER BY begin_snapshot"
    ).fetchall()
    made: dict[int, int] = {}
    for number, id_, name, default, begin, is_live in columns:
        if begin > made.setdefault(number, begin) and is_live:
            found[number].added.append(AddedColumn(id_, name, default))
    for number, name in cursor.execute(
        f"SELECT table_id, table_name FROM {METADATA}.ducklake_inlined_data_tables WHERE {of_tables}"
    ).fetchall():
        found[number].inlined.append(name)
    return {table: found[number] for table, (number, _) in places.items()}


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
