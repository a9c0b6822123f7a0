"""What DuckLake's catalog and files have of a table."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from weakref import WeakKeyDictionary

from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.translation import Cursor, DuckDBError
from sparkwave.catalog.names import METADATA, LakeTable, literal

# A number above all snapshots.
NEWEST = 1 << 62


# The columns of DuckLake's own in a table of inlined rows.
CATALOG_COLUMNS = "row_id", "begin_snapshot", "end_snapshot"
# All others, in SQL.
OWN_COLUMNS = f"* EXCLUDE ({', '.join(CATALOG_COLUMNS)})"

# The answers of `has_file` for each cursor; a lake's catalog never changes its kind.
_HAVE_FILES: WeakKeyDictionary[Cursor, bool] = WeakKeyDictionary()


def has_file(cursor: Cursor) -> bool:
    """Return whether the lake's catalog is a DuckDB file."""
    if cursor not in _HAVE_FILES:
        row = first_row(cursor.execute("SELECT catalog_type FROM ducklake_settings('lake')"))
        _HAVE_FILES[cursor] = row == ("duckdb",)
    return _HAVE_FILES[cursor]


# What `locate` has found lately for each cursor, and the earliest snapshot that has it. A table keeps its name.
_FOUND: WeakKeyDictionary[Cursor, dict[LakeTable, tuple[int, str, int]]] = WeakKeyDictionary()
_MOST_FOUND = 1000


def locate(cursor: Cursor, table: LakeTable, snapshot: int = NEWEST) -> tuple[int, str] | None:
    """Return the lake's number of a table, and the directory of its files with a slash at the end; None if unknown."""
    known = _FOUND.setdefault(cursor, {})
    if table in known and known[table][2] <= snapshot and _is_there(cursor, known[table][0], snapshot):
        return known[table][:2]
    found = located(cursor, [table], snapshot).get(table)
    if found is not None and snapshot != NEWEST:
        if len(known) >= _MOST_FOUND:
            known.clear()
        known[table] = (*found, snapshot)
    return found


def _is_there(cursor: Cursor, number: int, snapshot: int) -> bool:
    """Whether a snapshot has a table that an earlier one had."""
    query = f"SELECT coalesce(end_snapshot > {snapshot}, true) FROM {METADATA}.ducklake_table WHERE table_id = {number}"
    return first_row(cursor.execute(query)) == (True,)


def located(cursor: Cursor, tables: Iterable[LakeTable], snapshot: int) -> dict[LakeTable, tuple[int, str]]:
    """Return what `locate` does, for the tables that a snapshot has."""
    listed = ", ".join(f"({literal(table.schema)}, {literal(table.name)})" for table in tables)
    rows = cursor.execute(
        "SELECT s.schema_name, t.table_name, t.table_id, if(t.path_is_relative, "
        "if(s.path_is_relative, m.value || s.path, s.path) || t.path, t.path) "
        f"FROM {METADATA}.ducklake_table t JOIN {METADATA}.ducklake_schema s USING (schema_id) "
        f"JOIN {METADATA}.ducklake_metadata m ON m.key = 'data_path' "
        f"WHERE (s.schema_name, t.table_name) IN ({listed}) "
        f"AND greatest(s.begin_snapshot, t.begin_snapshot) <= {snapshot} "
        f"AND coalesce(least(s.end_snapshot, t.end_snapshot) > {snapshot}, true)"
    ).fetchall()
    return {LakeTable(schema, name): (number, directory) for schema, name, number, directory in rows}


def files_with_column(cursor: Cursor, paths: Collection[str], column: str) -> set[str]:
    """Return the Parquet files that have a column."""
    if not paths:
        return set()
    listed = ", ".join(map(literal, paths))
    query = f"SELECT DISTINCT file_name FROM parquet_schema([{listed}]) WHERE name = {literal(column)}"
    return {path for (path,) in cursor.execute(query).fetchall()}


def inlined_deletes(cursor: Cursor, table_id: int) -> str | None:
    """Return the table of the lake's catalog that lists deleted rows of a table's files; None if there is none yet."""
    name = f"ducklake_inlined_delete_{table_id}"
    # DuckDB's catalog functions do not list tables of the metadata database.
    try:
        cursor.execute(f"SELECT 1 FROM {METADATA}.{name} LIMIT 0")
    except DuckDBError as error:
        if "does not exist" not in str(error):
            raise
        return None
    return name


def register_files(cursor: Cursor, table: LakeTable, files: Sequence[str]) -> None:
    """Add Parquet files to a table by one statement, inside the cursor's transaction.

    If the files are a whole directory, a pattern is given: DuckLake needs 3 ms for each listed file, and a tenth of
    that for a file found by a pattern (1.5.5, 100 and 400 files).
    """
    if not files:
        return
    pattern = f"{files[0].rpartition('/')[0]}/*.parquet"
    found = cursor.execute(f"SELECT file FROM glob({literal(pattern)})").fetchall() if len(files) > 1 else []
    given = [pattern] if {file for (file,) in found} == set(files) else files
    cursor.execute(
        f"CALL ducklake_add_data_files('lake', {literal(table.name)}, [{', '.join(map(literal, given))}], "
        f"schema => {literal(table.schema)})"
    )


def registered_files(cursor: Cursor, table: LakeTable) -> list[str]:
    """Return the Parquet files of a table to which files were added and nothing else was done."""
    schema = literal(table.schema)
    cursor.execute(f"SELECT data_file FROM ducklake_list_files('lake', {literal(table.name)}, schema => {schema})")
    return [file for (file,) in cursor.fetchall()]


def made_at(name: str) -> float | None:
    """Return the time (s since 1970) when DuckLake (1.5.5) made a file, from the UUID (version 7) in the file's name.

    None for a name of another form.
    """
    found = re.match(r"ducklake-([0-9a-f]{8})-([0-9a-f]{4})-7", name)
    return int(found[1] + found[2], 16) / 1000 if found else None


def at_version(lake_name: str, snapshot: int) -> str:
    return f"{lake_name} AT (VERSION => {snapshot})"
