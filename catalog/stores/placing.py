"""Stores schemas, and the effects of a rename, a move or a new owner on the catalog.

Only Sparkwave's own relations change in the lake: a lake table keeps its first name. Writing functions take the cursor
of an open lake transaction, as the methods of `catalog.stores.store` do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import system_table
from sparkwave.catalog.relation_details import dump_details
from sparkwave.catalog.stores.comment_store import forget_comments
from sparkwave.catalog.stores.database_store import drop_lake_schemas
from sparkwave.catalog.stores.relation_store import grant_first
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.user_store import forget_grants, move_grants, put_default_grants
from sparkwave.catalog.users import Securable

# The catalog relation that stores each kind of object with an owner, by `Securable.kind`.
_OWNED = {
    "database": "databases",
    "schema": "schemas",
    "function": "functions",
    "type": "types",
    "secret": "secrets",
    "connection": "connections",
}


def create_schema(store: Store, cursor: Cursor, database: str, name: str, owner: str) -> None:
    """Add a schema, which at first only its owner may use, unless ALTER DEFAULT PRIVILEGES says otherwise."""
    schema = Securable("schema", store.next_id(cursor), name, owner)
    cursor.execute(f"INSERT INTO {system_table('schemas')} VALUES (?, ?, ?, ?)", [schema.id, database, name, owner])
    grant_first(store, cursor, schema, database, None)


def drop_schema(store: Store, cursor: Cursor, schema: Securable, dropped: Collection[int]) -> None:
    """Remove a schema whose relations (`dropped`, by id) this transaction has dropped."""
    forget_grants(cursor, (schema.id,))
    put_default_grants(cursor, (each for each in store.catalog.default_grants if each.schema_id == schema.id), ())
    forget_comments(cursor, (schema.id,))
    cursor.execute(f"DELETE FROM {system_table('schemas')} WHERE id = ?", [schema.id])
    drop_lake_schemas(store, cursor, dropped)


def rename_schema(cursor: Cursor, schema: Securable, name: str) -> None:
    """Rename a schema; the caller then calls `place` for its relations."""
    cursor.execute(f"UPDATE {system_table('schemas')} SET name = ? WHERE id = ?", [name, schema.id])


def rename_database(cursor: Cursor, database: Securable, name: str) -> None:
    """Rename a database and its objects; the caller then calls `place` for definitions that name it."""
    cursor.execute(f"UPDATE {system_table('databases')} SET name = ? WHERE id = ?", [name, database.id])
    for table in ("schemas", "relations", "functions", "types"):
        cursor.execute(f"UPDATE {system_table(table)} SET database = ? WHERE database = ?", [name, database.name])


def place(cursor: Cursor, relations: Iterable[Relation]) -> None:
    """Store the names, schemas, definitions and details of relations."""
    for relation in relations:
        cursor.execute(
            f"UPDATE {system_table('relations')} SET schema = ?, name = ?, definition = ?, shown = ?, details = ? "
            "WHERE id = ?",
            [
                relation.schema,
                relation.name,
                relation.definition,
                relation.shown,
                dump_details(relation.details),
                relation.id,
            ],
        )


def set_owner(cursor: Cursor, thing: Securable, owner: str) -> None:
    """Give an object another owner, who replaces the old owner as grantor."""
    table = system_table(_OWNED.get(thing.kind, "relations"))
    cursor.execute(f"UPDATE {table} SET owner = ? WHERE id = ?", [owner, thing.id])
    move_grants(cursor, thing, owner)
