"""Schemas of temporary tables: one for each session that needs it, dropped with the session or at the next start."""

from __future__ import annotations

from collections.abc import Iterable

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import TEMPORARY_SCHEMA, is_temporary_schema, system_table
from sparkwave.catalog.stores.database_store import drop_lake_schemas
from sparkwave.catalog.stores.relation_store import drop_relations
from sparkwave.catalog.stores.store import Store


def create_temporary_schema(store: Store, cursor: Cursor, database: str, owner: str) -> str:
    """Create a schema for a session, in the transaction that makes its first table. Returns its name."""
    id_ = store.next_id(cursor)
    name = f"{TEMPORARY_SCHEMA}_{id_}"
    cursor.execute(f"INSERT INTO {system_table('schemas')} VALUES (?, ?, ?, ?)", [id_, database, name, owner])
    return name


def drop_temporary_schemas(store: Store, cursor: Cursor, schemas: Iterable[tuple[str, str]]) -> None:
    """Drop schemas, given as (database, schema), and all their relations."""
    dropped = []
    for database, schema in schemas:
        inside = [r for r in store.catalog.relations if (r.database, r.schema) == (database, schema)]
        drop_relations(store, cursor, inside)
        dropped += [relation.id for relation in inside]
        cursor.execute(f"DELETE FROM {system_table('schemas')} WHERE database = ? AND name = ?", [database, schema])
    drop_lake_schemas(store, cursor, dropped)


def forget_temporary_schemas(store: Store) -> None:
    """Drop the temporary schemas that sessions of an earlier server have left."""
    left = [(database, schema) for database, schema in store.catalog.schemas if is_temporary_schema(schema)]
    if left:
        with store.change() as cursor:
            drop_temporary_schemas(store, cursor, left)
