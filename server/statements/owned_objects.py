"""REASSIGN OWNED and DROP OWNED: give away, or drop, all that roles own in the session's database."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, used
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog, Connection, Function, Relation, Secret, UserType
from sparkwave.catalog.sealing import drop_secret
from sparkwave.catalog.stores.function_store import drop_function
from sparkwave.catalog.stores.placing import drop_schema, set_owner
from sparkwave.catalog.stores.relation_store import alter_columns
from sparkwave.catalog.stores.type_store import drop_type
from sparkwave.catalog.stores.user_store import put_default_grants, put_grants
from sparkwave.catalog.users import ROOT, Securable
from sparkwave.planner.bind.privileges import find_user, permission_denied
from sparkwave.planner.definitions.stored_definitions import callers, described, users_of_type
from sparkwave.planner.statements import DropOwned, ReassignOwned
from sparkwave.server.session.session import Session
from sparkwave.server.statements import grants
from sparkwave.server.statements.cascades import cascaded, check_cascade
from sparkwave.server.statements.named_connections import drop_unused, users_of
from sparkwave.server.statements.plain_views import refuse_creating, with_dependents
from sparkwave.server.statements.role_names import Role, all_meant
from sparkwave.server.statements.secrets import users_listed
from sparkwave.server.statements.sequences import left_without_default
from sparkwave.server.wire.result import Result


@dataclass(frozen=True)
class _Owned:
    """Objects of a database that some roles own."""

    schemas: list[Securable]
    relations: list[Relation]
    functions: list[Function]
    types: list[UserType]
    secrets: list[Secret]
    connections: list[Connection]

    @property
    def securables(self) -> list[Securable]:
        found: list[Relation | Function | UserType | Secret | Connection] = [*self.relations, *self.functions]
        found += [*self.types, *self.secrets, *self.connections]
        return [*self.schemas, *(each.securable for each in found)]


def reassign_owned(session: Session, statement: ReassignOwned) -> Result:
    """Give all that roles own in this database, and databases, to another role.

    Raises Error 42704, or 42501 unless the user is a superuser or a member of all these roles.
    """
    store = session.context.store
    with store.change() as cursor:
        catalog = store.catalog
        names = _roles(session, statement.roles, "reassign", "reassign ownership of")
        [owner] = _roles(session, (statement.owner,), "reassign")
        databases = [thing for key, thing in catalog.securables.items() if len(key) == 1 and thing.owner in names]
        for thing in (*databases, *_owned(catalog, session.database, names).securables):
            if thing.owner != owner:
                set_owner(cursor, thing, owner)
    return Result("REASSIGN_OWNED")


def drop_owned(session: Session, statement: DropOwned) -> Result:
    """Drop all that roles own in this database, and revoke what was granted to them here and on databases.

    Raises Error 42704, 42501, or 2BP01 for dependent objects of others, without CASCADE or that it does not drop.
    """
    store = session.context.store
    names = _roles(session, statement.roles, "drop", "drop")
    owned = _owned(store.catalog, session.database, names)
    inside = _in_schemas(store.catalog, session.database, owned)
    if not statement.cascade:
        _refuse_others(owned, inside)
    dropped = with_dependents(session, inside.relations, statement.cascade)
    if statement.cascade and owned.securables:
        others = [relation.kind for relation in dropped if relation not in inside.relations]
        check_cascade(session, "DROP OWNED", [*(thing.kind for thing in inside.securables), *others])
    cascaded_ = cascaded(session, dropped, {relation.id for relation in owned.relations})
    refuse_creating([relation for relation in dropped if relation.owner not in names])
    left = left_without_default(session, dropped, statement.cascade)
    ids = {relation.id for relation in dropped}

    def remove(cursor: Cursor) -> None:
        catalog = store.catalog
        now = _in_schemas(catalog, session.database, _owned(catalog, session.database, names))
        if any(relation.id not in ids for relation in now.relations):
            message = "something has just been made in what is to be dropped"
            raise Error(message, errors.NOT_IN_PREREQUISITE_STATE, hint="Try again.")
        _refuse_users(catalog, now, dropped)
        for table in left:
            alter_columns(store, cursor, table)
        drop_unused(session, cursor, now.connections, ids)
        for secret in now.secrets:
            drop_secret(cursor, secret)
        for function in now.functions:
            drop_function(cursor, function)
        for made in now.types:
            drop_type(cursor, made)
        for schema in now.schemas:
            drop_schema(store, cursor, schema, ids)
        _revoke(session, cursor, names)

    session.context.jobs.drop(dropped, remove, statement.cascade)
    return Result("DROP_OWNED", notices=cascaded_)


def _roles(session: Session, roles: tuple[Role, ...], verb: str, treated: str | None = None) -> set[str]:
    """Return the names of roles that the user may act for. Raises Error 2BP01 for root where it is `treated`."""
    catalog, me, names = session.context.store.catalog, session.user, set[str]()
    for name, position in all_meant(session, roles):
        names.add(find_user(catalog, name, position).name)
        if name == ROOT and treated is not None:
            required = f"cannot {treated} objects owned by role {name} because they are required by the database system"
            raise Error(required, errors.DEPENDENT_OBJECTS_STILL_EXIST)
        if not me.is_super and not me.acts_as(name):
            raise permission_denied(f"permission denied to {verb} objects", position)
    return names


def _owned(catalog: Catalog, database: str, names: set[str]) -> _Owned:
    schemas = {thing.id: key for key, thing in catalog.securables.items() if len(key) == 2 and key[0] == database}
    return _Owned(
        [catalog.securables[key] for key in schemas.values() if catalog.securables[key].owner in names],
        [each for each in catalog.named if each.database == database and each.owner in names],
        [each for each in catalog.functions if each.database == database and each.owner in names],
        [each for each in catalog.types if each.database == database and each.owner in names],
        [each for each in catalog.secrets.values() if each.schema_id in schemas and each.owner in names],
        [each for each in catalog.connections.values() if each.schema_id in schemas and each.owner in names],
    )


def _in_schemas(catalog: Catalog, database: str, owned: _Owned) -> _Owned:
    """Return owned objects, and all that is in the owned schemas."""
    names, ids = {schema.name for schema in owned.schemas}, {schema.id for schema in owned.schemas}
    everything = _owned(catalog, database, {*catalog.users})
    return _Owned(
        owned.schemas,
        [each for each in everything.relations if each in owned.relations or each.schema in names],
        [each for each in everything.functions if each in owned.functions or each.schema in names],
        [each for each in everything.types if each in owned.types or each.schema in names],
        [each for each in everything.secrets if each in owned.secrets or each.schema_id in ids],
        [each for each in everything.connections if each in owned.connections or each.schema_id in ids],
    )


def _refuse_others(owned: _Owned, inside: _Owned) -> None:
    """Raise Error 2BP01 for objects of other roles in the owned schemas."""
    others = [thing for thing in inside.securables if thing not in owned.securables]
    if others:
        users = [f"{thing.kind} {thing.name}" for thing in others]
        raise used("schema", users, "Use DROP ... CASCADE to drop the dependent objects too.")


def _refuse_users(catalog: Catalog, gone: _Owned, dropped: Iterable[Relation]) -> None:
    """Raise Error 2BP01 if a function, type, secret or connection is used by an object that is not dropped too."""
    things: list[Relation | Function | UserType] = [*dropped, *gone.functions, *gone.types]
    names = {described(each) for each in things}
    by_type = (user for made in gone.types for user in users_of_type(catalog, made, {t.id for t in gone.types}))
    ids = {relation.id for relation in dropped}
    for kind, users in (
        ("function", callers(catalog, gone.functions)),
        ("type", list(by_type)),
        ("secret", users_listed(catalog, gone.secrets, {*ids, *(each.id for each in gone.connections)})),
        ("connection", [f"{each.kind} {each.qualified_name}" for each in users_of(catalog, gone.connections, ids)]),
    ):
        found = [user for user in users if user not in names]
        if found:
            raise used(kind, found, "DROP the dependent objects first.")


def _revoke(session: Session, cursor: Cursor, names: set[str]) -> None:
    """Revoke the privileges of roles on databases and what is in this database, also on what is to come."""
    catalog = session.context.store.catalog
    within = _owned(catalog, session.database, {*catalog.users})
    ids = {thing.id for thing in within.securables} | {t.id for key, t in catalog.securables.items() if len(key) == 1}
    held = {grant for grant in catalog.grants if grant.grantee in names and grant.object_id in ids}
    put_grants(cursor, grants.with_dependents(catalog, held, cascade=True), ())
    database = catalog.securables[session.database,].id
    to_come = (each for each in catalog.default_grants if each.database_id == database)
    put_default_grants(cursor, [each for each in to_come if names & {each.role, each.grantee}], ())
