"""Relations: tables, views, sources and others, with their lake tables."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import escaped
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import ROW_ID, Column, Relation, commented_ids
from sparkwave.catalog.names import quote, system_table
from sparkwave.catalog.relation_details import dump_details, dump_settings
from sparkwave.catalog.stores.column_store import put_columns
from sparkwave.catalog.stores.comment_store import forget_comments
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.user_store import forget_grants, put_grants
from sparkwave.catalog.users import Securable, first_grants


def already_exists(relation: Relation) -> Error:
    """Return PostgreSQL's error for a name in use, with RisingWave's words as its detail."""
    suffix = "" if relation.created else " and is still being created"
    return Error(
        f'relation "{relation.name}" already exists{suffix}',
        errors.DUPLICATE_TABLE,
        detail=f"{relation.kind} named {relation.name} already exists{suffix}",
    )


def _made(column: Column) -> Column:
    """A column of a new table with its name in the lake."""
    name = column.lake_name if column.name == ROW_ID else escaped(column.lake_name)
    return column if name == column.name else replace(column, made_as=name)


def create_relation(store: Store, cursor: Cursor, relation: Relation) -> Relation:
    """Add a relation and its empty lake table, if it stores rows, and returns it with the lake table's name.

    Raises Error 42P07 for a name in use, 3F000.
    """
    taken = store.catalog.find(relation.database, relation.schema, relation.name)
    if taken is not None and taken.id != relation.replaces:
        raise already_exists(taken)
    if store.catalog.names_key(relation.database, relation.schema, relation.name):
        raise Error(f'relation "{relation.name}" already exists', errors.DUPLICATE_TABLE)
    is_there = (relation.database, relation.schema) in store.catalog.schemas
    if not is_there and not relation.is_temporary:  # this transaction may create the schema
        raise Error(f'schema "{relation.schema}" does not exist', errors.INVALID_SCHEMA_NAME)
    relation = replace(relation, made_as=store.free_lake_table(relation))
    if relation.is_table:
        relation = replace(relation, columns=tuple(map(_made, relation.columns)))
    cursor.execute(
        f"INSERT INTO {system_table('relations')} "
        "(id, database, schema, name, kind, definition, key, upstreams, created, owner, initialized_at, "
        "created_at, append_only, watermark_column, watermark_delay_us, lake_schema, lake_name, conflict, "
        "version_columns, details, replaces, planner, fingerprint, streaming) "
        f"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, now(), {'now()' if relation.created else 'NULL'}, "
        "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            relation.id,
            relation.database,
            relation.schema,
            relation.name,
            relation.kind,
            relation.definition,
            list(relation.key),
            list(relation.upstreams),
            relation.created,
            relation.owner,
            relation.append_only,
            relation.watermark.column if relation.watermark else None,
            relation.watermark.delay if relation.watermark else None,
            relation.lake_table.schema,
            relation.lake_table.name,
            relation.conflict.action,
            list(relation.conflict.versions),
            dump_details(relation.details),
            relation.replaces,
            relation.planner,
            relation.fingerprint,
            dump_settings(relation.streaming) if relation.is_stored else None,
        ],
    )
    put_columns(cursor, relation.id, relation.columns)
    if relation.replaces is None:
        grant_first(store, cursor, relation.securable, relation.database, relation.schema)
    if relation.is_stored:
        # A view needs no constraints: its query guarantees them.
        stored = relation.stored if relation.is_table else [replace(c, not_null=False) for c in relation.stored]
        cursor.execute(f"CREATE SCHEMA IF NOT EXISTS lake.{quote(relation.lake_table.schema)}")
        create_table(cursor, relation.lake_name, tuple(stored))
    return relation


def grant_first(store: Store, cursor: Cursor, thing: Securable, database: str, schema: str | None) -> None:
    """Store the grants that a new object has from the start."""
    holders = [store.catalog.securables.get(key) for key in ((database,), (database, schema or ""))]
    database_id, schema_id = (holder.id if holder is not None else None for holder in holders)
    put_grants(cursor, (), first_grants(store.catalog.default_grants, thing, database_id, schema_id))


def put_fingerprint(cursor: Cursor, relation_id: int, text: str) -> None:
    """Store the fingerprint of a relation's plan."""
    cursor.execute(f"UPDATE {system_table('relations')} SET fingerprint = ? WHERE id = ?", [text, relation_id])


def put_settings(cursor: Cursor, relation: Relation) -> None:
    """Store the streaming settings of a relation."""
    query = f"UPDATE {system_table('relations')} SET streaming = ? WHERE id = ?"
    cursor.execute(query, [dump_settings(relation.streaming), relation.id])


def put_details(cursor: Cursor, relation: Relation) -> None:
    """Store the details of a relation."""
    query = f"UPDATE {system_table('relations')} SET details = ? WHERE id = ?"
    cursor.execute(query, [dump_details(relation.details), relation.id])


def alter_columns(store: Store, cursor: Cursor, relation: Relation) -> None:
    """Store a table after ALTER TABLE: its columns, and the fields that name columns."""
    store.replace_columns(cursor, relation)
    cursor.execute(
        f"UPDATE {system_table('relations')} SET key = ?, definition = ?, watermark_column = ?, "
        "watermark_delay_us = ?, version_columns = ?, dropped_columns = ?, details = ? WHERE id = ?",
        [
            list(relation.key),
            relation.definition,
            relation.watermark.column if relation.watermark else None,
            relation.watermark.delay if relation.watermark else None,
            list(relation.conflict.versions),
            list(relation.dropped),
            dump_details(relation.details),
            relation.id,
        ],
    )


def put_view(store: Store, cursor: Cursor, relation: Relation) -> None:
    """Store a plain view after CREATE OR REPLACE VIEW: its query and columns."""
    store.replace_columns(cursor, relation)
    query = f"UPDATE {system_table('relations')} SET definition = ?, upstreams = ?, planner = ? WHERE id = ?"
    cursor.execute(query, [relation.definition, list(relation.upstreams), relation.planner, relation.id])


def create_table(cursor: Cursor, name: str, columns: tuple[Column, ...]) -> None:
    """Create a lake table without a relation, for the state of an operator."""
    listed = ", ".join(
        f"{quote(column.lake_name)} {column.type.in_lake()}{' NOT NULL' if column.not_null else ''}"
        for column in columns
    )
    cursor.execute(f"CREATE TABLE {name} ({listed})")


def add_state(cursor: Cursor, job: Relation, internal: str, columns: tuple[Column, ...]) -> None:
    """Create an internal table of a job."""
    create_table(cursor, replace(job.lake_table, name=internal).sql, columns)
    cursor.execute(f"INSERT INTO {system_table('states')} VALUES (?, ?)", [job.id, internal])


def drop_tables(store: Store, cursor: Cursor, relation: Relation) -> None:
    """Drop the lake tables of a relation and its job."""
    for state in store.states.get(relation.id, ()):
        cursor.execute(f"DROP TABLE IF EXISTS {replace(relation.lake_table, name=state).sql}")
    cursor.execute(f"DROP TABLE IF EXISTS {relation.lake_name}")


def drop_relation(store: Store, cursor: Cursor, relation: Relation) -> None:
    """Remove a relation, its job and all their rows, as `drop_relations` does."""
    drop_relations(store, cursor, (relation,))


def drop_relations(store: Store, cursor: Cursor, relations: Collection[Relation]) -> None:
    """Remove relations, their jobs and all their rows, in the given order.

    DELETE is the slowest statement of a lake, so each table has one for all relations, and only where there are rows.
    Rows of dropped relations that no query reads are deleted later (`catalog.lake.leftovers`).
    """
    for relation in relations:
        drop_tables(store, cursor, relation)
    ids = {relation.id for relation in relations}
    sources = ids & store.catalog.sources.keys()
    for table, column, gone in (
        ("relations", "id", ids),
        ("jobs", "id", {relation.id for relation in relations if relation.is_streaming}),
        ("states", "job_id", ids & store.states.keys()),
        ("subscriptions", "relation_id", {relation.id for relation in relations if relation.is_subscription}),
        ("sequences", "relation_id", {relation.id for relation in relations if relation.is_sequence}),
        ("sources", "relation_id", sources),
        ("source_splits", "relation_id", sources),
        ("source_failures", "relation_id", sources),
    ):
        if gone:
            listed = ", ".join(map(str, sorted(gone)))
            cursor.execute(f"DELETE FROM {system_table(table)} WHERE {column} IN ({listed})")
    forget_grants(cursor, ids & {grant.object_id for grant in store.catalog.grants})
    forget_comments(cursor, store.commented & {id_ for relation in relations for id_ in commented_ids(relation)})
