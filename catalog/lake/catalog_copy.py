"""Copies a lake's catalog, as of one moment, to another place."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor, without_lake
from sparkwave.catalog.lake.extensions import load_extension, load_extensions
from sparkwave.catalog.lake.lake_tables import inlined_deletes
from sparkwave.catalog.lake.memory_transactions import in_transaction, rollback
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import CREATING
from sparkwave.catalog.names import METADATA, literal, quote, system_table


@contextmanager
def attached(cursor: Cursor, file: Path) -> Iterator[str]:
    """A context with a database file, new or existing, attached under the yielded name.

    Afterwards the file is complete, without a write-ahead log.
    """
    name = f"backup_{uuid.uuid4().hex}"
    cursor.execute(f"ATTACH {literal(str(file))} AS {name}")
    try:
        yield name
        cursor.execute(f"CHECKPOINT {name}")
    finally:
        with suppress(DuckDBError):
            cursor.execute(f"DETACH {name}")


def copy_catalog(cursor: Cursor, name: str) -> None:
    """Copy the catalog, as the cursor's transaction sees it, into an empty attached database."""
    cursor.execute(f"COPY FROM DATABASE {METADATA} TO {name}")


def make_empty_catalog(file: Path) -> None:
    """Create a database file with DuckLake's tables, all empty."""
    with closing(without_lake()) as cursor:
        load_extension(cursor, "ducklake")
        cursor.execute(f"ATTACH {literal(f'ducklake:{file}')} AS lake (DATA_PATH {literal(str(file.parent))})")
        cursor.execute("DETACH lake")
        cursor.execute(f"ATTACH {literal(str(file))} AS made")
        for table in _tables(cursor, "made"):
            cursor.execute(f"DELETE FROM made.{table}")
        cursor.execute("DETACH made")


def copy_postgres_catalog(cursor: Cursor, name: str) -> None:
    """Copy the catalog from a PostgreSQL, as the cursor's transaction sees it, into one of `make_empty_catalog`."""
    for table in _tables(cursor, name):
        cursor.execute(f"INSERT INTO {name}.{table} BY NAME FROM {METADATA}.{table}")
    inlined = cursor.execute(
        f"SELECT i.table_id, i.table_name, v.begin_snapshot FROM {name}.ducklake_inlined_data_tables i "
        f"LEFT JOIN {name}.ducklake_schema_versions v USING (table_id, schema_version)"
    ).fetchall()
    for table_id, table, snapshot in inlined:
        assert snapshot is not None, "the version of a table lives as long as the table"
        types = _column_types(cursor, name, table_id, snapshot)
        stored = cursor.execute(f"DESCRIBE {METADATA}.{quote(table)}").fetchall()
        columns = ", ".join(_restored(column, kind, types.get(column, kind)) for column, kind, *_ in stored)
        cursor.execute(f"CREATE TABLE {name}.{quote(table)} AS SELECT {columns} FROM {METADATA}.{quote(table)}")
    for (table_id,) in cursor.execute(f"SELECT DISTINCT table_id FROM {name}.ducklake_table").fetchall():
        deletes = inlined_deletes(cursor, table_id)
        if deletes is not None:
            cursor.execute(f"CREATE TABLE {name}.{deletes} AS FROM {METADATA}.{deletes}")


@contextmanager
def new_postgres_catalog(cursor: Cursor, storage: Storage) -> Iterator[str]:
    """A context with new DuckLake tables in a PostgreSQL, under the yielded name; a failure drops them.

    Raises Error 42710 when the PostgreSQL has a lake already.
    """
    assert storage.catalog is not None
    load_extensions(cursor, storage)
    name = f"restored_{uuid.uuid4().hex}"
    cursor.execute(f"ATTACH {literal(storage.catalog)} AS {name} (TYPE postgres)")
    if "ducklake_metadata" in _tables(cursor, name):
        raise Error(f"{storage.name} has a lake already", errors.DUPLICATE_OBJECT, hint="Restore into a new database.")
    before = set(_tables(cursor, name))
    try:
        cursor.execute(f"ATTACH {literal(storage.target(False))} AS made (DATA_PATH {literal(str(storage.data_path))})")
        cursor.execute("DETACH made; CALL pg_clear_cache()")
        yield name
    except BaseException:
        rollback(cursor)
        for table in set(_tables(cursor, name)) - before:
            cursor.execute(f"DROP TABLE {name}.{quote(table)}")
        raise


def fill_postgres_catalog(cursor: Cursor, name: str, source: str) -> None:
    """Copy a catalog without inlined rows and deletes into a catalog of `new_postgres_catalog`."""
    tables = [table for table in _tables(cursor, source) if not table.startswith("ducklake_inlined_")]
    with in_transaction(cursor):
        for table in tables:
            cursor.execute(f"DELETE FROM {name}.{table}")
            cursor.execute(f"INSERT INTO {name}.{table} BY NAME FROM {source}.{table}")


def _tables(cursor: Cursor, name: str) -> list[str]:
    rows = cursor.execute("SELECT table_name FROM duckdb_tables() WHERE database_name = ?", [name]).fetchall()
    return [table for (table,) in rows]


def _restored(column: str, stored: str, kind: str) -> str:
    text = f"decode({quote(column)})" if stored == "BLOB" and kind.upper() != "BLOB" else quote(column)
    return f"CAST({text} AS {kind}) AS {quote(column)}"


def _column_types(cursor: Cursor, name: str, table_id: int, snapshot: int) -> dict[str, str]:
    """The types of a table's columns at a snapshot, by name."""
    rows = cursor.execute(
        "SELECT column_id, column_name, column_type, parent_column FROM "
        f"{name}.ducklake_column WHERE table_id = ? AND begin_snapshot <= ? "
        "AND (end_snapshot IS NULL OR end_snapshot > ?) ORDER BY column_order, column_id",
        [table_id, snapshot, snapshot],
    ).fetchall()

    def spelled(id_: int, kind: str) -> str:
        inner = [(field, spelled(child, type_)) for child, field, type_, parent in rows if parent == id_]
        if kind == "list":
            return f"{inner[0][1]}[]"
        if kind == "struct":
            return f"STRUCT({', '.join(f'{quote(field)} {type_}' for field, type_ in inner)})"
        return _TYPES.get(kind, kind)

    return {column: spelled(id_, kind) for id_, column, kind, parent in rows if parent is None}


# DuckLake's names of types that differ from DuckDB's.
_TYPES = {"int8": "TINYINT", "uint8": "UTINYINT", "uint16": "USMALLINT", "uint32": "UINTEGER", "uint64": "UBIGINT"} | {
    "float32": "FLOAT", "float64": "DOUBLE", "uint128": "UHUGEINT"
}  # fmt: skip


def forget_deleted_files(cursor: Cursor, name: str) -> None:
    """Remove from a copied catalog the files scheduled for deletion, which none of its snapshots has."""
    cursor.execute(f"DELETE FROM {name}.ducklake_files_scheduled_for_deletion")


def finished_steps(cursor: Cursor) -> list[tuple[int, int, int]]:
    """Return the finished steps of creating jobs: job, fragment and slice."""
    return cursor.execute(
        f"SELECT DISTINCT job_id, fragment_id, slice_id FROM {system_table('finished_slices')} "
        f"JOIN {system_table('jobs')} j ON j.id = job_id WHERE j.status = '{CREATING}' ORDER BY ALL"
    ).fetchall()
