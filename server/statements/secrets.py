"""CREATE, ALTER and DROP SECRET, and connector options whose value is a secret."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found, used
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog, Connection, Relation, Secret
from sparkwave.catalog.sealing import add_secret, set_secret
from sparkwave.catalog.sealing import drop_secret as remove_secret
from sparkwave.catalog.stores.connection_store import drop_connection
from sparkwave.planner.bind.privileges import check_owner, holds, permission_denied
from sparkwave.planner.statements import AlterSecret, CreateSecret, DropSecret, Name, Option
from sparkwave.server.session.session import Session
from sparkwave.server.statements.cascades import check_cascade
from sparkwave.server.statements.new_relations import target_schema
from sparkwave.server.statements.plain_views import with_dependents
from sparkwave.server.wire.result import Notice, Result


def create_secret(session: Session, statement: CreateSecret) -> Result:
    """Create a secret. Raises Error 42710 for a name in use, 3F000 or 42501."""
    store = session.context.store
    with store.change() as cursor:
        schema = store.catalog.securables[session.database, target_schema(session, statement)]
        name = statement.name.name
        if any((s.schema_id, s.name) == (schema.id, name) for s in store.catalog.secrets.values()):
            if statement.if_not_exists:
                return Result("CREATE_SECRET", notices=[Notice(f'secret "{name}" already exists, skipping')])
            message = f"secret named {name} already exists"
            raise Error(message, errors.DUPLICATE_OBJECT, position=statement.name.position)
        sealed = store.cipher.seal(statement.value)
        add_secret(cursor, Secret(store.next_id(cursor), schema.id, name, session.user.name, sealed))
    return Result("CREATE_SECRET")


def alter_secret(session: Session, statement: AlterSecret) -> Result:
    """Give a secret another value, which its sources and sinks use from then on. Raises Error 42704 or 42501."""
    store, name = session.context.store, statement.name
    with store.change() as cursor:
        secret = _find_owned(session, name, statement.if_exists)
        if isinstance(secret, Notice):
            return Result("ALTER_SECRET", notices=[secret])
        set_secret(cursor, secret.id, store.cipher.seal(statement.value))
    session.context.sources.changed()
    return Result("ALTER_SECRET")


def drop_secret(session: Session, statement: DropSecret) -> Result:
    """Drop secrets. Raises Error 42704, 42501, or without CASCADE 2BP01 for a secret that a source or sink uses."""
    catalog = session.context.store.catalog
    secrets, dropped, notices = [], [], []
    for name in statement.names:
        secret = _find_owned(session, name, statement.if_exists)
        if isinstance(secret, Notice):
            notices.append(secret)
            continue
        users = users_of(catalog, [secret])
        listed = users_listed(catalog, [secret])
        if listed and not statement.cascade:
            raise used("secret", listed, "DROP the dependent objects first.", name.position)
        secrets.append(secret)
        dropped += users

    def remove(cursor: Cursor) -> None:
        if any(user not in dropped for user in users_of(session.context.store.catalog, secrets)):
            message = "a source or a sink has just come to use the secret"
            raise Error(message, errors.NOT_IN_PREREQUISITE_STATE, hint="Try again.")
        for connection in connections_with(session.context.store.catalog, secrets):
            drop_connection(cursor, connection)
        for secret in secrets:
            remove_secret(cursor, secret)

    relations = with_dependents(session, dropped, cascade=True)
    if statement.cascade and secrets:
        kinds = ["secret"] * len(secrets) + ["connection"] * len(connections_with(catalog, secrets))
        check_cascade(session, "DROP SECRET", [*kinds, *(each.kind for each in relations)])
    session.context.jobs.drop(relations, remove)
    return Result("DROP_SECRET", notices=notices)


def users_of(catalog: Catalog, secrets: Iterable[Secret], apart: Iterable[int] = ()) -> list[Relation]:
    """Return the sources and sinks that use any of the secrets, without the ids in `apart`."""
    ids = {secret.id for secret in secrets}
    found = []
    for relation in catalog.relations:
        source = catalog.sources.get(relation.id)
        named = set(source.secrets.values()) if source is not None else set()
        named |= set(dict(relation.sink.secrets).values()) if relation.is_sink else set()
        if named & ids and relation.id not in apart:
            found.append(relation)
    return found


def connections_with(catalog: Catalog, secrets: Iterable[Secret], apart: Iterable[int] = ()) -> list[Connection]:
    """Return the connections that use any of the secrets, without the ids in `apart`."""
    ids = {secret.id for secret in secrets}
    return [c for c in catalog.connections.values() if ids & {*c.secrets.values()} and c.id not in apart]


def users_listed(catalog: Catalog, secrets: Collection[Secret], apart: Collection[int] = ()) -> list[str]:
    """Return the sources, sinks and connections that use any of the secrets, without the ids in `apart`, as text."""
    found = [f"{each.kind} {each.qualified_name}" for each in users_of(catalog, secrets, apart)]
    return found + [f"connection {each.name}" for each in connections_with(catalog, secrets, apart)]


def secrets_in(session: Session, schemas: set[str]) -> list[Secret]:
    """Return the secrets in schemas of the session's database."""
    catalog = session.context.store.catalog
    ids = {catalog.securables[session.database, name].id for name in schemas}
    return [secret for secret in catalog.secrets.values() if secret.schema_id in ids]


def named_secrets(session: Session, options: Iterable[Option]) -> dict[str, int]:
    """Return the ids of the secrets in options, by option name, without those of a connection.

    Raises Error 42704 for an unknown secret, 42501.
    """
    found = {}
    for option in options:
        if option.secret is not None and option.connection is None:
            secret = _find(session, option.secret)
            if secret is None:
                raise not_found("secret", str(option.secret), position=option.secret.position)
            if not holds(session.context.store.catalog, session.user, secret.securable, "USAGE"):
                raise permission_denied(f"permission denied for secret {secret.name}", option.secret.position)
            found[option.name] = secret.id
    return found


def _find_owned(session: Session, name: Name, if_exists: bool) -> Secret | Notice:
    """Return a secret that the user owns; with `if_exists`, a notice if there is none."""
    if if_exists and _find(session, name) is None:
        return Notice(f'secret "{name}" does not exist, skipping')
    return owned_secret(session, name)


def owned_secret(session: Session, name: Name) -> Secret:
    """Return the secret of a name, which the user owns. Raises Error 42704, 42501."""
    secret = _find(session, name)
    if secret is None:
        raise not_found("secret", str(name), position=name.position)
    check_owner(session.user, secret.securable, name.position)
    return secret


def _find(session: Session, name: Name) -> Secret | None:
    """Return the secret of a name, in the first schema that has it."""
    catalog = session.context.store.catalog
    for schema in (name.schema,) if name.schema else session.scope.path:
        place = catalog.securables.get((session.database, schema))
        by_name = {(secret.schema_id, secret.name): secret for secret in catalog.secrets.values()}
        if place is not None and (place.id, name.name) in by_name:
            return by_name[place.id, name.name]
    return None
