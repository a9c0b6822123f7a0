"""Databases with their schemas, in the catalog and in the lake."""

from __future__ import annotations

from collections.abc import Collection

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import CREATED, NO_BARRIERS, Barriers
from sparkwave.catalog.names import DEFAULT_SCHEMA, quote, system_table
from sparkwave.catalog.stores.comment_store import forget_comments
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.user_store import forget_grants, put_default_grants, put_grants
from sparkwave.catalog.users import PUBLIC, ROOT, Grant


def put_database(
    store: Store, cursor: Cursor, name: str, resource_group: str, owner: str = ROOT, barriers: Barriers = NO_BARRIERS
) -> None:
    """Add a database with the schema `public`; every user may connect to the database and use the schema."""
    database, schema = store.next_id(cursor), store.next_id(cursor)
    cursor.execute(
        f"INSERT INTO {system_table('databases')} VALUES (?, ?, ?, ?, ?, ?)",
        [database, name, owner, resource_group, barriers.interval_ms, barriers.checkpoint_frequency],
    )
    cursor.execute(f"INSERT INTO {system_table('schemas')} VALUES (?, ?, '{DEFAULT_SCHEMA}', ?)", [schema, name, owner])
    put_grants(cursor, (), (Grant(database, PUBLIC, "CONNECT", owner), Grant(schema, PUBLIC, "USAGE", owner)))


def forget_database(store: Store, cursor: Cursor, name: str, dropped: Collection[int]) -> None:
    """Remove a database and its schemas, whose relations (`dropped`, by id) this transaction has dropped."""
    gone = [s.id for key, s in store.catalog.securables.items() if key[0] == name]
    put_default_grants(cursor, (each for each in store.catalog.default_grants if each.database_id in gone), ())
    forget_grants(cursor, gone)
    forget_comments(cursor, gone)
    cursor.execute(f"DELETE FROM {system_table('schemas')} WHERE database = ?", [name])
    cursor.execute(f"DELETE FROM {system_table('databases')} WHERE name = ?", [name])
    drop_lake_schemas(store, cursor, dropped)


def drop_lake_schemas(store: Store, cursor: Cursor, dropped: Collection[int] = ()) -> None:
    """Drop the lake schemas that are empty once this transaction has dropped the relations `dropped` (ids)."""
    used = {r.lake_table.schema for r in store.catalog.relations if r.id not in dropped and r.is_stored}
    for schema in store.lake.schemas(cursor):
        if schema not in used:
            cursor.execute(f"DROP SCHEMA lake.{quote(schema)}")


def set_database_group(cursor: Cursor, name: str, resource_group: str) -> None:
    """Move a database to a resource group, with its jobs that have no group of their own."""
    cursor.execute(f"UPDATE {system_table('databases')} SET resource_group = ? WHERE name = ?", [resource_group, name])
    cursor.execute(
        f"UPDATE {system_table('jobs')} SET resource_group = ? WHERE specific_group IS NULL "
        f"AND (status = '{CREATED}' OR NOT is_serverless) "
        f"AND id IN (SELECT id FROM {system_table('relations')} WHERE database = ?)",
        [resource_group, name],
    )


def set_barriers(cursor: Cursor, database: str, barriers: Barriers) -> None:
    """Store a database's own intervals."""
    cursor.execute(
        f"UPDATE {system_table('databases')} SET barrier_interval_ms = ?, checkpoint_frequency = ? WHERE name = ?",
        [barriers.interval_ms, barriers.checkpoint_frequency, database],
    )
