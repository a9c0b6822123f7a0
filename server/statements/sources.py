"""Tables and sources with a connector: CREATE … WITH (connector = …), and their rate limits."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.sealing import sealed
from sparkwave.catalog.source_model import Source
from sparkwave.catalog.stores.source_store import set_rate_limit as store_rate_limit
from sparkwave.executor.sources.reader import open_connector
from sparkwave.planner.batch.values import given_columns
from sparkwave.planner.bind.privileges import check_owner, permission_denied
from sparkwave.planner.definitions.connectors import (
    check_key,
    include_columns,
    known_columns,
    read_source,
    settled_options,
)
from sparkwave.planner.definitions.table_definition import connector_of
from sparkwave.planner.statements import (
    AlterSourceRateLimit,
    ColumnAction,
    ColumnDefinition,
    Connector,
    CreateTable,
    DropColumn,
    Name,
    RenameColumn,
    SetType,
)
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_connections import with_connection, with_stored_connection
from sparkwave.server.statements.named_relations import find_of_kind
from sparkwave.server.statements.new_relations import refuse_padded
from sparkwave.server.statements.renames import altered, find_altered
from sparkwave.server.statements.secrets import named_secrets
from sparkwave.server.wire.result import Notice, Result


def with_source(session: Session, statement: CreateTable, clause: Connector) -> tuple[CreateTable, Source]:
    """Return the statement with all columns, and the source for its table, after a test that it can be read.

    Raises Error 22023 for options, 42701 for a repeated column, 42501, 58P01 or 0A000.
    """
    if statement.is_temporary or statement.name.schema == "pg_temp":
        message = "a temporary table cannot have a connector"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=clause.position)
    refuse_padded(statement.columns)
    options, connection = with_connection(session, clause.options)
    clause = replace(clause, options=options)
    limit = int(session.variables.get("source_rate_limit"))
    default_limit = limit if limit >= 0 else None
    listed = statement.columns or tuple(ColumnDefinition(c.name, c.type) for c in known_columns(clause))
    own = tuple(Column(c.name, c.type) for c in listed if c.generated is None)
    if clause.shared is not None:
        source = replace(_shared(session, clause, clause.shared), rate_limit=default_limit)
    else:
        source = settled_options(read_source(clause, own, default_limit), time.time_ns() // 1_000_000)
        sealed_options = sealed(source.options, session.context.store.cipher)
        source = replace(source, options=sealed_options, secrets=named_secrets(session, clause.options))
    if connection is not None:
        secrets_ = {**source.secrets, **connection.secrets}
        source = replace(source, secrets=secrets_, connection=connection.id)
    if source.connector == "postgres-cdc":
        source = _of_table(source, statement, clause)
    _check_superuser(session, source, clause)
    check_key(source, statement.primary_key, clause)
    included = include_columns(clause)
    made = (*listed, *(ColumnDefinition(column.name, column.type) for column in included))
    names = [column.name for column in made]
    repeated = next((name for index, name in enumerate(names) if name in names[:index]), None)
    if repeated is not None:
        message = f'column "{repeated}" specified more than once'
        raise Error(message, errors.DUPLICATE_COLUMN, position=clause.position)
    try:
        settled = open_connector(session.context.store, source, (*own, *included)).check()
    except Error as error:
        error.position = clause.position
        raise
    return replace(statement, columns=made), replace(source, options={**source.options, **settled})


def _check_superuser(session: Session, source: Source, clause: Connector) -> None:
    """Raise Error 42501 for connectors with the rights of the server's system user, unless a superuser asks."""
    if session.user.is_super:
        return
    if source.connector == "posix_fs":
        message = "must be superuser to use the connector posix_fs, which reads files of the server's machine"
        raise permission_denied(message, clause.position)
    if source.options.get("enable_config_load", "false").lower() == "true":
        raise permission_denied("must be superuser to use the server's own credentials", clause.position)


def _shared(session: Session, clause: Connector, name: Name) -> Source:
    """Return the shared source, with the table to read from it. Raises Error 42704, 42809 or 42501."""
    catalog = session.context.store.catalog
    relation = find_of_kind(session, name, "source")
    check_owner(session.user, relation.securable, name.position)
    shared = catalog.sources[relation.id]
    if shared.connector != "postgres-cdc":
        message = f'source "{name}" is not one of connector postgres-cdc'
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=name.position)
    return replace(shared, options={**shared.options, "table.name": clause.table})


def _of_table(source: Source, statement: CreateTable, clause: Connector) -> Source:
    """Return the source with the table's key and a replication slot, if it reads one table."""
    options = {"slot.name": "rw_cdc", **source.options}
    if "table.name" not in options:
        return replace(source, options=options)
    if not statement.primary_key:
        message = "a table of connector postgres-cdc needs a primary key, that of the table upstream"
        raise Error(message, errors.INVALID_TABLE_DEFINITION, position=clause.position)
    slot = f"{options['slot.name'][:50]}_{secrets.token_hex(4)}"
    return replace(source, options={**options, "table.key": "\0".join(statement.primary_key), "table.slot": slot})


def upstreams(session: Session, statement: CreateTable) -> tuple[int, ...]:
    """Return the id of the shared source that a table is read from, if any."""
    if statement.connector is None or statement.connector.shared is None:
        return ()
    return (find_of_kind(session, statement.connector.shared, "source").id,)


def refuse_altering(session: Session, table: Relation, actions: Sequence[ColumnAction]) -> None:
    """Raise Error 0A000 for changes of columns that the table's connector delivers by name."""
    source = session.context.store.catalog.sources.get(table.id)
    if source is None:
        return
    included = source.included
    for action in actions:
        if isinstance(action, RenameColumn) or (isinstance(action, DropColumn | SetType) and action.name in included):
            raise Error(
                f'cannot alter column "{action.name}" of table "{table.name}"',
                errors.FEATURE_NOT_SUPPORTED,
                detail=f"The connector {source.connector} delivers it under this name.",
                position=action.position,
            )


def check_altered(session: Session, table: Relation) -> None:
    """Raise the errors of CREATE TABLE for the columns that a table with a connector has now."""
    source = session.context.store.catalog.sources.get(table.id)
    if source is None:
        return
    clause, columns = connector_of(table), given_columns(table)
    if clause is not None and clause.shared is None:
        catalog = session.context.store.catalog
        clause = replace(clause, options=with_stored_connection(catalog, clause.options, source.connection))
        read_source(clause, tuple(column for column in columns if column.name not in source.included), None)
    open_connector(session.context.store, source, columns).check()


def refuse_constraints(statement: CreateTable) -> None:
    """Raise Error 0A000 for constraints that a source cannot guarantee for its rows."""
    position = statement.name.position
    if statement.primary_key:
        raise Error(
            "a source cannot have a primary key",
            errors.FEATURE_NOT_SUPPORTED,
            hint="CREATE TABLE … WITH (connector = …) keeps the last row of each key.",
            position=position,
        )
    required = next((column.name for column in statement.columns if column.not_null), None)
    if required is not None:
        message = f'column "{required}" of a source cannot be NOT NULL'
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)


def set_rate_limit(session: Session, statement: AlterSourceRateLimit) -> Result:
    """Set the rows a second that a source delivers, from its next batch on.

    Raises Error 42704, 42809, 42501, or 55000 for a table without a connector.
    """
    store = session.context.store
    with store.change() as cursor:
        relation = find_altered(session, statement, is_exact=True)
        if isinstance(relation, Notice):
            return altered(statement.kind, relation)
        if relation.id not in store.catalog.sources:
            raise Error(
                f'table "{statement.name}" has no connector',
                errors.NOT_IN_PREREQUISITE_STATE,
                position=statement.name.position,
            )
        store_rate_limit(cursor, relation.id, statement.limit)
    session.context.sources.changed()
    return altered(statement.kind)
