"""ALTER DEFAULT PRIVILEGES: what users may do with objects that roles make from now on.

As in PostgreSQL, privileges for a schema are added to those for the whole database, and only a REVOKE that names the
schema takes them away. The kinds of relations are apart, as in RisingWave: TABLES are not views.
"""

from __future__ import annotations

from collections.abc import Iterator

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog
from sparkwave.catalog.stores.user_store import put_default_grants
from sparkwave.catalog.users import PRIVILEGES, PUBLIC, PUBLIC_PRIVILEGES, DefaultGrant
from sparkwave.planner.bind.privileges import find_owner, find_user
from sparkwave.planner.statements import AlterDefaultPrivileges
from sparkwave.server.session.session import Session
from sparkwave.server.statements.role_names import Role, all_meant
from sparkwave.server.wire.result import Result

# What a default grant is of: database, role, schema, kind, grantee and privilege.
_Key = tuple[int, str, int | None, str, str, str]


def alter_default_privileges(session: Session, statement: AlterDefaultPrivileges) -> Result:
    """Store privileges on objects to come.

    Raises Error 42704 for an unknown user, 42501 for a role that the user is no member of, 3F000, or 0LP01 for a
    privilege that the kind of object cannot have.
    """
    store = session.context.store
    with store.change() as cursor:
        before = {_key(each): each for each in store.catalog.default_grants}
        after = dict(before)
        for key in _keys(session, statement):
            _change(after, key, statement)
        now = frozenset(after.values())
        put_default_grants(cursor, frozenset(before.values()) - now, now - frozenset(before.values()))
    return Result("ALTER_DEFAULT_PRIVILEGES")


def _key(grant: DefaultGrant) -> _Key:
    return grant.database_id, grant.role, grant.schema_id, grant.kind, grant.grantee, grant.privilege


def _keys(session: Session, statement: AlterDefaultPrivileges) -> Iterator[_Key]:
    catalog, me = session.context.store.catalog, session.user
    database = catalog.securables[session.database,].id
    roles = all_meant(session, statement.roles) or ((me.name, 0),)
    owners = [find_owner(catalog, me, name, position).name for name, position in roles]
    schemas = _schemas(session, statement) or [None]
    users = [_user(catalog, role, statement) for role in all_meant(session, statement.users)]
    privileges = _privileges(statement)
    for owner in owners:
        for schema in schemas:
            for user in users:
                yield from ((database, owner, schema, statement.kind, user, name) for name in privileges)


def _schemas(session: Session, statement: AlterDefaultPrivileges) -> list[int | None]:
    found: list[int | None] = []
    for name in statement.schemas:
        if statement.kind == "schema":
            message = "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS"
            raise Error(message, errors.INVALID_GRANT_OPERATION, position=statement.position)
        schema = session.context.store.catalog.securables.get((session.database, name.name))
        if schema is None:
            message = f'schema "{name.name}" does not exist'
            raise Error(message, errors.INVALID_SCHEMA_NAME, position=name.position)
        found.append(schema.id)
    return found


def _user(catalog: Catalog, role: Role, statement: AlterDefaultPrivileges) -> str:
    name, position = role
    if name != PUBLIC:
        return find_user(catalog, name, position).name
    if statement.grant_option and not statement.is_revoke:
        message = "grant options can only be granted to roles"
        raise Error(message, errors.INVALID_GRANT_OPERATION, position=position)
    return PUBLIC


def _privileges(statement: AlterDefaultPrivileges) -> tuple[str, ...]:
    allowed = PRIVILEGES[statement.kind]
    for privilege in statement.privileges:
        if privilege.columns:
            message = "default privileges cannot be set for columns"
            raise Error(message, errors.INVALID_GRANT_OPERATION, position=privilege.position)
        if privilege.name.upper() not in allowed:
            message = f"invalid privilege type {privilege.name.upper()} for {statement.kind}"
            raise Error(message, errors.INVALID_GRANT_OPERATION, position=privilege.position)
    return tuple(privilege.name.upper() for privilege in statement.privileges) or allowed


def _change(grants: dict[_Key, DefaultGrant], key: _Key, statement: AlterDefaultPrivileges) -> None:
    """Grant or revoke one privilege."""
    _, role, schema, kind, user, privilege = key
    old = grants.pop(key, None)
    if schema is None and user == PUBLIC and privilege in PUBLIC_PRIVILEGES.get(kind, ()):
        if statement.is_revoke and not statement.grant_option:
            grants[key] = DefaultGrant(*key, is_revoked=True)
    elif user == role:  # the owner may do everything
        pass
    elif not statement.is_revoke:
        grants[key] = DefaultGrant(*key, statement.grant_option or (old is not None and old.is_grantable))
    elif statement.grant_option and old is not None:
        grants[key] = DefaultGrant(*key)
