"""Determines the schema of a new object, checks that its name is free, and makes schemas of temporary tables."""

from __future__ import annotations

from collections.abc import Iterable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import TEMPORARY_SCHEMA, is_temporary_schema
from sparkwave.catalog.stores.relation_store import already_exists
from sparkwave.catalog.stores.temporary import create_temporary_schema
from sparkwave.catalog.system.system_views import SCHEMAS
from sparkwave.catalog.users import Securable
from sparkwave.planner.bind.binder import check_database
from sparkwave.planner.bind.privileges import check, permission_denied
from sparkwave.planner.parse.constraints import no_padded_type
from sparkwave.planner.statements import (
    ColumnDefinition,
    CreateConnection,
    CreateDomain,
    CreateFunction,
    CreateSecret,
    CreateSequence,
    CreateStreaming,
    CreateSubscription,
    CreateTable,
    CreateTableAs,
    CreateType,
    CreateView,
)
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_relations import check_name
from sparkwave.server.wire.result import Notice

Creation = (
    CreateTable
    | CreateTableAs
    | CreateView
    | CreateStreaming
    | CreateSubscription
    | CreateSequence
    | CreateFunction
    | CreateType
    | CreateDomain
    | CreateSecret
    | CreateConnection
)


def refuse_padded(columns: Iterable[ColumnDefinition]) -> None:
    """Raise Error 0A000 for a new column of char(n), whose values PostgreSQL fills up with blanks."""
    for column in columns:
        if column.padded is not None:
            raise no_padded_type(column.padded)


def schema_of_move(session: Session, name: str, position: int) -> Securable:
    """Return the schema that an object of the database is to be moved to. Raises Error 3F000, or 42501."""
    catalog = session.context.store.catalog
    schema = catalog.securables.get((session.database, name))
    if schema is None:
        raise Error(f'schema "{name}" does not exist', errors.INVALID_SCHEMA_NAME, position=position)
    check(catalog, session.user, schema, "CREATE", position)
    return schema


def _is_temporary(statement: Creation) -> bool:
    """Return whether the statement says TEMPORARY or names the schema `pg_temp`.

    Raises Error 42P16 for another schema, 0A000.
    """
    schema, position = statement.name.schema, statement.name.position
    if not isinstance(statement, CreateTable | CreateTableAs | CreateView):
        if schema == TEMPORARY_SCHEMA:
            raise Error("only tables and plain views can be temporary", errors.FEATURE_NOT_SUPPORTED, position=position)
        return False
    if statement.is_temporary and schema not in (None, TEMPORARY_SCHEMA):
        message = "cannot create temporary relation in non-temporary schema"
        raise Error(message, errors.INVALID_TABLE_DEFINITION, position=position)
    is_temporary = statement.is_temporary or schema == TEMPORARY_SCHEMA
    if not is_temporary and not isinstance(statement, CreateView) and statement.on_commit is not None:
        raise Error("ON COMMIT can only be used on temporary tables", errors.INVALID_TABLE_DEFINITION)
    return is_temporary


def target_schema(session: Session, statement: Creation) -> str:
    """Return the schema of a new object; `pg_temp` if the session has no schema for temporary tables yet.

    Raises Error 3F000, 42939, 0A000, 42501 without the privilege CREATE on it, 42P16 for another session's schema.
    """
    if _is_temporary(statement):
        return session.temporary.schema or TEMPORARY_SCHEMA
    name, position = statement.name, statement.name.position
    check_database(name, session.database)
    schema = name.schema or next((s for s in session.scope.path if not is_temporary_schema(s)), None)
    if schema is None:
        raise Error("no schema has been selected to create in", errors.INVALID_SCHEMA_NAME, position=position)
    catalog = session.context.store.catalog
    if schema in SCHEMAS:
        raise permission_denied(f'permission denied to create "{schema}.{name.name}"', position)
    if is_temporary_schema(schema):
        message = "cannot create relations in temporary schemas of other sessions"
        raise Error(message, errors.INVALID_TABLE_DEFINITION, position=position)
    if (session.database, schema) not in catalog.schemas:
        raise errors.not_found("schema", schema, sqlstate=errors.INVALID_SCHEMA_NAME, position=position)
    check_name(name.name, position)
    check(catalog, session.user, catalog.securables[session.database, schema], "CREATE", position)
    return schema


def made_schema(session: Session, cursor: Cursor, statement: Creation) -> str:
    """Work as `target_schema`, but also creates the session's schema of temporary tables if it is needed."""
    schema = target_schema(session, statement)
    if schema != TEMPORARY_SCHEMA:
        return schema
    return create_temporary_schema(session.context.store, cursor, session.database, session.user.name)


def take_temporary(session: Session, relation: Relation, on_commit: str | None = None) -> None:
    """Note a temporary relation's schema in the session, which then finds the relation, and drops it at its end.

    `on_commit` is what becomes of a table at the end of each transaction (`planner.statements.create`).
    """
    if relation.is_temporary:
        session.temporary.schema = relation.schema
        if on_commit is not None:
            session.temporary.on_commit[relation.id] = on_commit


def refuse_temporary(session: Session, upstreams: Iterable[int]) -> None:
    """Raise Error 0A000 for a permanent view that would read a session's temporary tables or views."""
    by_id = session.context.store.catalog.by_id
    read = [by_id[id_].name for id_ in upstreams if id_ in by_id and by_id[id_].is_temporary]
    if read:
        raise Error(f'views must not use temporary tables, as "{read[0]}" is', errors.FEATURE_NOT_SUPPORTED)


def refuse_refreshed(session: Session, relation: Relation) -> None:
    """Raise Error 0A000, in RisingWave's words, for a job that reads a view that is refreshed at intervals.

    Such a view itself reads no source: the rows of its upstreams have to be there when it is refreshed.
    """
    by_id = session.context.store.catalog.by_id
    read = [by_id[id_] for id_ in relation.upstreams if id_ in by_id]
    if any(each.streaming.refresh_s is not None for each in read):
        message = "creating streaming jobs on batch refresh materialized views is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED)
    source = next((each for each in read if each.kind == "source"), None)
    if relation.streaming.refresh_s is not None and source is not None:
        message = "batch refresh materialized views must not depend on sources directly"
        detail = f"{source.qualified_name} is a source."
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, detail=detail, hint="Read a materialized view over it.")


def existing_notice(session: Session, statement: Creation) -> Notice | None:
    """Return a notice for an existing name with IF NOT EXISTS, None for a free name. Raises Error 42P07 otherwise."""
    assert not isinstance(statement, CreateType | CreateDomain)
    name = statement.name
    found = session.context.store.catalog.find(session.database, target_schema(session, statement), name.name)
    if found is None:
        return None
    if statement.if_not_exists:
        return Notice(f'relation "{name.name}" already exists, skipping')
    error = already_exists(found)
    error.position = name.position
    raise error
