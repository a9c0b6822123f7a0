"""CREATE, ALTER and DROP CONNECTION, and the sources and sinks that take options from one.

A source or sink keeps a copy of its connection's options, so that readers and writers need no connection; ALTER
CONNECTION changes all copies in one transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found, used
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog, Connection, Relation
from sparkwave.catalog.sealing import opened, sealed
from sparkwave.catalog.stores.connection_store import add_connection, set_connection
from sparkwave.catalog.stores.connection_store import drop_connection as remove_connection
from sparkwave.catalog.stores.placing import place
from sparkwave.catalog.stores.source_store import set_options
from sparkwave.planner.bind.privileges import check, check_owner
from sparkwave.planner.definitions.connection_options import check_connection, check_options, connection_option, merged
from sparkwave.planner.statements import (
    AlterConnection,
    CreateConnection,
    DropConnection,
    MoveConnection,
    Name,
    Option,
)
from sparkwave.server.session.session import Session
from sparkwave.server.statements.cascades import check_cascade
from sparkwave.server.statements.new_relations import schema_of_move, target_schema
from sparkwave.server.statements.plain_views import with_dependents
from sparkwave.server.statements.secrets import named_secrets
from sparkwave.server.wire.result import Notice, Result

_Value = TypeVar("_Value")


def create_connection(session: Session, statement: CreateConnection) -> Result:
    """Create a connection. Raises Error 42710 for a name in use, 22023 or 0A000 for its options, 3F000, 42501."""
    store = session.context.store
    with store.change() as cursor:
        schema = store.catalog.securables[session.database, target_schema(session, statement)]
        name = statement.name.name
        if _named(store.catalog, schema.id, name) is not None:
            if statement.if_not_exists:
                return Result("CREATE_CONNECTION", notices=[Notice(f'connection "{name}" exists, skipping')])
            raise _exists(name, statement.name.position)
        check_connection(statement)
        options = _sealed(session, statement.options)
        secrets = named_secrets(session, statement.options)
        id_, owner = store.next_id(cursor), session.user.name
        add_connection(cursor, Connection(id_, schema.id, name, owner, statement.kind, options, secrets))
    return Result("CREATE_CONNECTION")


def alter_connection(session: Session, statement: AlterConnection) -> Result:
    """Change options of a connection, and of the sources and sinks that use it. Raises Error 42704, 42501, 22023."""
    store = session.context.store
    with store.change() as cursor:
        connection = owned_connection(session, statement.name)
        check_options(connection.kind, statement.options)
        changed = {option.name for option in statement.options}
        options = {**_without(connection.options, changed), **_sealed(session, statement.options)}
        secrets = {**_without(connection.secrets, changed), **named_secrets(session, statement.options)}
        set_connection(cursor, replace(connection, options=options, secrets=secrets))
        for relation in users_of(store.catalog, [connection]):
            source = store.catalog.sources.get(relation.id)
            if source is not None:
                kept = _without(source.options, changed), _without(source.secrets, changed)
                set_options(cursor, replace(source, options={**kept[0], **options}, secrets={**kept[1], **secrets}))
            else:
                sink = relation.sink
                kept = _without(dict(sink.options), changed), _without(dict(sink.secrets), changed)
                pairs = tuple({**kept[0], **options}.items()), tuple({**kept[1], **secrets}.items())
                place(cursor, [replace(relation, details=replace(sink, options=pairs[0], secrets=pairs[1]))])
    session.context.sources.changed()
    return Result("ALTER_CONNECTION")


def move_connection(session: Session, statement: MoveConnection) -> Result:
    """Move a connection to another schema. Raises Error 42704, 42501, 3F000, or 42710 for a name in use."""
    store, position = session.context.store, statement.schema_position
    with store.change() as cursor:
        connection = owned_connection(session, statement.name)
        schema = schema_of_move(session, statement.schema, position)
        if schema.id != connection.schema_id:
            if _named(store.catalog, schema.id, connection.name) is not None:
                raise _exists(connection.name, position)
            set_connection(cursor, replace(connection, schema_id=schema.id))
    return Result("ALTER_CONNECTION")


def drop_connection(session: Session, statement: DropConnection) -> Result:
    """Drop connections. Raises Error 42704, 42501, or without CASCADE 2BP01 for one that a source or sink uses."""
    catalog = session.context.store.catalog
    connections: list[Connection] = []
    dropped: list[Relation] = []
    notices = []
    for name in statement.names:
        try:
            connection = owned_connection(session, name)
        except Error as error:
            if not statement.if_exists or error.sqlstate not in errors.MISSING:
                raise
            notices.append(Notice(f'connection "{name}" does not exist, skipping'))
            continue
        users = users_of(catalog, [connection])
        if users and not statement.cascade:
            listed = [f"{each.kind} {each.qualified_name}" for each in users]
            raise used("connection", listed, "DROP the dependent objects first.", name.position)
        connections.append(connection)
        dropped += users
    relations = with_dependents(session, dropped, cascade=True)
    if statement.cascade and connections:
        kinds = ["connection"] * len(connections) + [each.kind for each in relations]
        check_cascade(session, "DROP CONNECTION", kinds)

    def remove(cursor: Cursor) -> None:
        drop_unused(session, cursor, connections, {relation.id for relation in dropped})

    session.context.jobs.drop(relations, remove)
    return Result("DROP_CONNECTION", notices=notices)


def drop_unused(
    session: Session, cursor: Cursor, connections: Collection[Connection], dropped: Collection[int]
) -> None:
    """Drop connections with the relations that use them (`dropped`, by id). Raises Error 55000 for another user."""
    if users_of(session.context.store.catalog, connections, dropped):
        message = "a source or a sink has just come to use the connection"
        raise Error(message, errors.NOT_IN_PREREQUISITE_STATE, hint="Try again.")
    for connection in connections:
        remove_connection(cursor, connection)


def users_of(catalog: Catalog, connections: Iterable[Connection], apart: Collection[int] = ()) -> list[Relation]:
    """Return the sources and sinks that use any of the connections, without the ids in `apart`."""
    ids = {connection.id for connection in connections}
    found = []
    for relation in catalog.relations:
        source = catalog.sources.get(relation.id)
        used_by = source.connection if source is not None else relation.sink.connection if relation.is_sink else None
        if used_by in ids and relation.id not in apart:
            found.append(relation)
    return found


def connections_in(session: Session, schemas: Iterable[str]) -> list[Connection]:
    """Return the connections in schemas of the session's database, by schema and name."""
    catalog = session.context.store.catalog
    keys = [(session.database, name) for name in schemas]
    ids = [catalog.securables[key].id for key in keys if key in catalog.securables]
    found = [each for each in catalog.connections.values() if each.schema_id in ids]
    return sorted(found, key=lambda each: (ids.index(each.schema_id), each.name))


def with_connection(session: Session, options: tuple[Option, ...]) -> tuple[tuple[Option, ...], Connection | None]:
    """Return the options of a source or sink together with those of the connection they name; and the connection.

    Raises Error 42704, 42501, or 22023 for options that do not go together.
    """
    named = connection_option(options)
    if named is None or named.connection is None:
        return options, None
    catalog, name = session.context.store.catalog, named.connection
    connection = find_connection(session, name)
    check(catalog, session.user, connection.securable, "USAGE", name.position)
    values = opened(connection.options, {}, catalog.secrets, session.context.store.cipher)
    return merged(options, connection, values, _secret_names(catalog, connection)), connection


def with_stored_connection(catalog: Catalog, options: tuple[Option, ...], id_: int | None) -> tuple[Option, ...]:
    """Return the options in a stored definition with those of its connection, whose secret values stay sealed."""
    if id_ is None:
        return options
    connection = catalog.connections[id_]
    return merged(options, connection, connection.options, _secret_names(catalog, connection))


def find_connection(session: Session, name: Name) -> Connection:
    """Return the connection of a name, in the first schema that has it. Raises Error 42704."""
    catalog = session.context.store.catalog
    for schema in (name.schema,) if name.schema else session.scope.path:
        at = catalog.securables.get((session.database, schema))
        found = _named(catalog, at.id, name.name) if at is not None else None
        if found is not None:
            return found
    raise not_found("connection", str(name), position=name.position)


def owned_connection(session: Session, name: Name) -> Connection:
    """Return a connection that the user owns. Raises Error 42704 or 42501."""
    connection = find_connection(session, name)
    check_owner(session.user, connection.securable, name.position)
    return connection


def _named(catalog: Catalog, schema_id: int, name: str) -> Connection | None:
    connections = catalog.connections.values()
    return next((each for each in connections if (each.schema_id, each.name) == (schema_id, name)), None)


def _exists(name: str, position: int) -> Error:
    return Error(f'connection "{name}" already exists', errors.DUPLICATE_OBJECT, position=position)


def _sealed(session: Session, options: Iterable[Option]) -> dict[str, str]:
    """Return the options whose values are no named secrets, as they are stored."""
    given = {option.name: option.value for option in options if option.secret is None}
    return sealed(given, session.context.store.cipher)


def _secret_names(catalog: Catalog, connection: Connection) -> dict[str, Name]:
    return {
        option: Name(None, None, catalog.secrets[id_].name, 0)
        for option, id_ in connection.secrets.items()
        if id_ in catalog.secrets
    }


def _without(options: Mapping[str, _Value], names: Collection[str]) -> dict[str, _Value]:
    return {name: value for name, value in options.items() if name not in names}
