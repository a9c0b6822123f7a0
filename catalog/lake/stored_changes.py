"""The changes of a table as the lake's catalog and files hold them, read without DuckLake's functions for them.

DuckLake's functions of the change feed query the catalog ten times first, and read the whole of each file that has lost
a row. Here only the changed rows are read: new rows in the catalog (`ducklake_inlined_data_*`, with the snapshots of
their insertion and deletion), new files, and from older files the rows at the places that the catalog
(`ducklake_inlined_delete_*`) or delete files list (DuckLake 1.0, ducklake.select/docs, "Data Inlining", "Deletes"). It
is left to DuckLake where rows may have moved: by compaction, a changed shape, or the deletion of a whole file.

Found by experiment, with 1.5.5 (asserted by tests/test_change_feed.py):

- a catalog file has inlined rows in the table's types; a PostgreSQL has text as bytes, and other types than numbers as
  text;
- a file of changed rows has their row ids as a column, any other file counts them from `row_id_start`;
- a file with rows or deletes of several snapshots has a `partial_max`, the last of them, and a column of snapshots;
- a scan of an old version of a table skips files by `filename` and row groups by `file_row_number`, which are virtual
  columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import (
    OWN_COLUMNS,
    at_version,
    files_with_column,
    has_file,
    inlined_deletes,
    locate,
)
from sparkwave.catalog.lake.row_ids import ROW_ID_COLUMN, SNAPSHOT_COLUMN
from sparkwave.catalog.lake.shapes import Shape, StoredColumn, keep_shape, known_shape, read_shape
from sparkwave.catalog.lake.snapshot_changes import ROW_CHANGES, newest_changes
from sparkwave.catalog.names import METADATA, LakeTable, literal, quote

# Virtual columns of a scan, unless the table has columns of these names.
VIRTUAL = ("rowid", "snapshot_id", "filename", "file_row_number")
# Columns of the places of deleted rows, besides the number of the file's first row; no table has such names.
_FILE, _PLACE, _SNAPSHOT, _FIRST = '"?file"', '"?place"', '"?snapshot"', '"?first"'

# Whether files have their rows' ids; a file never changes.
_HAVE_IDS: dict[str, bool] = {}
_MOST_KNOWN = 10_000


@dataclass(frozen=True)
class StoredChanges:
    """SQL of relations with the inserted and the deleted rows, with `rowid` and `snapshot_id`; None where unknown."""

    came: str | None = None
    went: str | None = None


def stored_changes(cursor: Cursor, table: LakeTable, after: int, upto: int, has_deletes: bool) -> StoredChanges:
    """Return the changes in snapshots `after < s <= upto`, to be read in the cursor's transaction."""
    changes, schema_version = newest_changes(cursor, after)
    known = known_shape(cursor, table, after, schema_version)
    located = locate(cursor, table, after) if known is None else (known.number, known.directory)
    if located is None:
        return StoredChanges()
    own = [change for change in changes if change.table_id == located[0]]
    kinds = {change.kind for change in own}
    if not kinds <= ROW_CHANGES.keys():
        return StoredChanges()
    shape = known or read_shape(cursor, *located, upto)
    if known is None:
        keep_shape(cursor, table, after, schema_version, shape)
    reading = _Reading(cursor, table, shape, after, upto)
    if reading.has_earlier_rows:
        return StoredChanges()
    came = [reading.inlined(shape.inlined, "begin_snapshot")] if shape.inlined and "inlined_insert" in kinds else []
    went = [reading.inlined(shape.inlined, "end_snapshot")] if shape.inlined and "inlined_delete" in kinds else []
    places = reading.places(kinds) if has_deletes else []
    if places or "inserted_into_table" in kinds or "deleted_from_table" in kinds:
        files = reading.files({place.file_id for place in places})
        if files is None or not reading.is_plain:
            return StoredChanges()
        if new := [file for file in files if file.begin > after]:
            came += reading.new_rows(new, {change.snapshot for change in own if ROW_CHANGES[change.kind]})
        if places:
            went += reading.deleted_rows(files, places)
    came, went = came or [reading.no_rows()], went or [reading.no_rows()]
    return StoredChanges(_united(came), _united(went) if has_deletes else None)


def _united(parts: Sequence[str]) -> str:
    return f"({' UNION ALL BY NAME '.join(f'FROM {part}' for part in parts)})"


@dataclass(frozen=True)
class _File:
    id: int
    path: str
    first_row: int | None
    begin: int


@dataclass(frozen=True)
class _Places:
    """SQL of the _PLACE and the _SNAPSHOT of rows deleted from a file."""

    file_id: int
    rows: str


class _Reading:
    """Makes SQL of a table's changed rows in snapshots `after < s <= upto`."""

    def __init__(self, cursor: Cursor, table: LakeTable, shape: Shape, after: int, upto: int) -> None:
        self._cursor, self._table, self._shape = cursor, table, shape
        self._after, self._upto = after, upto

    @property
    def is_plain(self) -> bool:
        """Whether no column hides a virtual column."""
        return not any(column.name.lower() in VIRTUAL for column in self._shape.columns)

    @property
    def has_earlier_rows(self) -> bool:
        """Whether inlined rows of an earlier shape came or went."""
        rows = [
            f"SELECT 1 FROM {METADATA}.{quote(name)} "
            f"WHERE begin_snapshot > {self._after} OR {self._within('end_snapshot')}"
            for name in self._shape.earlier
        ]
        return bool(rows and self._cursor.execute(f"{' UNION ALL '.join(rows)} LIMIT 1").fetchall())

    def no_rows(self) -> str:
        """Return a relation without rows, of the table's types."""
        columns = ", ".join(f"NULL::{column.type} AS {quote(column.name)}" for column in self._shape.columns)
        return f"(SELECT {columns}, NULL::BIGINT AS rowid, NULL::BIGINT AS snapshot_id WHERE false)"

    def inlined(self, name: str, snapshot: str) -> str:
        """Return the inlined rows whose insertion (`begin_snapshot`) or deletion (`end_snapshot`) is meant."""
        columns = OWN_COLUMNS
        if not has_file(self._cursor):
            columns = ", ".join(
                f"{_cast_from_postgres(column)} AS {quote(column.name)}" for column in self._shape.columns
            )
        return (
            f"(SELECT {columns}, row_id AS rowid, {snapshot} AS snapshot_id FROM {METADATA}.{quote(name)} "
            f"WHERE {self._within(snapshot)})"
        )

    def places(self, kinds: set[str]) -> list[_Places]:
        """Return the places of deleted rows of files that the catalog lists, and those that delete files list."""
        found = list(self._listed_in_catalog()) if "inlined_delete" in kinds else []
        return [*found, *self._listed_in_files()] if "deleted_from_table" in kinds else found

    def _listed_in_catalog(self) -> Iterator[_Places]:
        name = inlined_deletes(self._cursor, self._shape.number)
        if name is None:
            return
        rows = f"FROM {METADATA}.{name} WHERE {self._within('begin_snapshot')}"
        for (file,) in self._cursor.execute(f"SELECT DISTINCT file_id {rows}").fetchall():
            place = f"SELECT row_id AS {_PLACE}, begin_snapshot AS {_SNAPSHOT} {rows} AND file_id = {file}"
            yield _Places(file, place)

    def _listed_in_files(self) -> Iterator[_Places]:
        found = self._cursor.execute(
            f"SELECT data_file_id, {self._path}, begin_snapshot, partial_max FROM {METADATA}.ducklake_delete_file "
            f"WHERE table_id = {self._shape.number} AND begin_snapshot <= {self._upto} "
            f"AND coalesce(partial_max, begin_snapshot) > {self._after}"
        ).fetchall()
        for file, path, begin, last in found:
            snapshot = begin if last is None else SNAPSHOT_COLUMN
            where = "" if last is None else f" WHERE {self._within(SNAPSHOT_COLUMN)}"
            rows = f"SELECT pos AS {_PLACE}, {snapshot} AS {_SNAPSHOT} FROM read_parquet({literal(path)}){where}"
            yield _Places(file, rows)

    def files(self, lost: set[int]) -> list[_File] | None:
        """Return the new files and those with some ids. None if a whole file went, or one has rows of several times."""
        listed = f" OR data_file_id IN ({', '.join(map(str, lost))})" if lost else ""
        rows = self._cursor.execute(
            f"SELECT data_file_id, {self._path}, row_id_start, begin_snapshot, "
            f"coalesce({self._within('end_snapshot')}, false) OR coalesce(partial_max > {self._after}, false) "
            f"FROM {METADATA}.ducklake_data_file WHERE table_id = {self._shape.number} AND ("
            f"{self._within('begin_snapshot')} OR {self._within('end_snapshot')} "
            f"OR begin_snapshot <= {self._upto} AND partial_max > {self._after}{listed})"
        ).fetchall()
        return None if any(row[-1] for row in rows) else [_File(*row[:-1]) for row in rows]

    def new_rows(self, files: Sequence[_File], updates: Container[int]) -> Iterator[str]:
        """Yield relations of the rows of new files. Only files of `updates`, snapshots with removed rows, have ids."""
        with_ids = self._with_ids([file for file in files if file.begin in updates])
        for file in files:
            row_id = ROW_ID_COLUMN if file.path in with_ids else f"{file.first_row} + file_row_number"
            yield (
                f"(SELECT {self._cast}, {row_id} AS rowid, {file.begin}::BIGINT AS snapshot_id "
                f"FROM {_reading([file], False)} AS stored)"
            )

    def deleted_rows(self, files: Sequence[_File], places: Sequence[_Places]) -> Iterator[str]:
        """Yield relations of deleted rows: files as old as the columns are read, others by a scan of the table."""
        places_of = defaultdict[int, list[str]](list)
        for each in places:
            places_of[each.file_id].append(each.rows)
        newest = max(column.begin for column in self._shape.columns)
        lost = [file for file in files if file.id in places_of]
        for are_read in (True, False):
            chosen = [file for file in lost if (file.begin >= newest) == are_read]
            listed = " UNION ALL ".join(
                f"SELECT {literal(file.path)} AS {_FILE}, {_sql(file.first_row)} AS {_FIRST}, * FROM ({rows})"
                for file in chosen
                for rows in places_of[file.id]
            )
            if listed:
                yield (self._read if are_read else self._scanned)(chosen, f"({listed}) AS listed")

    def _read(self, files: Sequence[_File], listed: str) -> str:
        """The rows of files at the listed places."""
        counted = f"listed.{_FIRST} + stored.file_row_number"
        with_ids = self._with_ids(files)
        row_id = f"coalesce(stored.{ROW_ID_COLUMN}, {counted})" if with_ids else counted
        return (
            f"(SELECT {self._cast}, {row_id} AS rowid, listed.{_SNAPSHOT} AS snapshot_id "
            f"FROM {_reading(files, bool(with_ids))} AS stored JOIN {listed} "
            f"ON stored.{_FILE} = listed.{_FILE} AND stored.file_row_number = listed.{_PLACE})"
        )

    def _scanned(self, files: Sequence[_File], listed: str) -> str:
        """The rows at the listed places of files that were written before some columns were made."""
        columns = ", ".join(quote(column.name) for column in self._shape.columns)
        names = ", ".join(literal(file.path) for file in files)
        return (
            f"(SELECT {columns}, rowid, listed.{_SNAPSHOT} AS snapshot_id "
            f"FROM {at_version(self._table.sql, self._after)} JOIN {listed} "
            f"ON filename = listed.{_FILE} AND file_row_number = listed.{_PLACE} WHERE filename IN ({names}))"
        )

    def _with_ids(self, files: Sequence[_File]) -> set[str]:
        """The paths of files that have row ids."""
        unknown = [file.path for file in files if file.path not in _HAVE_IDS]
        if unknown:
            if len(_HAVE_IDS) > _MOST_KNOWN:
                _HAVE_IDS.clear()
            found = files_with_column(self._cursor, unknown, ROW_ID_COLUMN)
            _HAVE_IDS.update((path, path in found) for path in unknown)
        return {file.path for file in files if _HAVE_IDS[file.path]}

    @property
    def _cast(self) -> str:
        return ", ".join(f"{_cast(column, 'stored.')} AS {quote(column.name)}" for column in self._shape.columns)

    def _within(self, snapshot: str) -> str:
        return f"({snapshot} > {self._after} AND {snapshot} <= {self._upto})"

    @property
    def _path(self) -> str:
        return f"if(path_is_relative, {literal(self._shape.directory)} || path, path)"


def _sql(number: int | None) -> str:
    return f"{'NULL' if number is None else number}::BIGINT"


def _reading(files: Sequence[_File], by_name: bool) -> str:
    """SQL that reads files; by name, if their columns differ."""
    paths = ", ".join(literal(file.path) for file in files)
    options = f"file_row_number => true, hive_partitioning => false, union_by_name => {str(by_name).lower()}"
    return f"read_parquet([{paths}], filename => {literal(_FILE[1:-1])}, {options})"


def _cast(column: StoredColumn, of: str = "") -> str:
    return f"CAST({of}{quote(column.name)} AS {column.type})"


def _cast_from_postgres(column: StoredColumn) -> str:
    return f"CAST(decode({quote(column.name)}) AS {column.type})" if column.type in _TEXTS else _cast(column)


_TEXTS = ("varchar", "json")
