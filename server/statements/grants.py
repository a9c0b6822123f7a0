"""GRANT and REVOKE of privileges, by PostgreSQL's rules: a grant ends with the grantor's right to grant."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog
from sparkwave.catalog.stores.user_store import put_grants
from sparkwave.catalog.users import COLUMN_PRIVILEGES, PRIVILEGES, PUBLIC, Grant, Securable, User
from sparkwave.planner.bind.binder import resolve
from sparkwave.planner.bind.privileges import find_user, holds, permission_denied
from sparkwave.planner.statements import ChangePrivileges, Name, Privilege
from sparkwave.server.session.session import Session
from sparkwave.server.statements.functions import find_function
from sparkwave.server.statements.named_connections import connections_in, find_connection
from sparkwave.server.statements.named_relations import find_of_kind
from sparkwave.server.statements.role_names import all_meant, meant
from sparkwave.server.wire.result import Notice, Result

# A privilege and its column; None for the whole object.
_Held = tuple[str, str | None]


def change_privileges(session: Session, statement: ChangePrivileges) -> Result:
    """Run GRANT or REVOKE of privileges.

    Raises Error 42501 without the right to grant, 42704 for an unknown user, 42883 for an unknown function, 0LP01 for a
    privilege that the object cannot have, 2BP01 when other users' grants depend on a revoked one.
    """
    store = session.context.store
    notices: list[Notice] = []
    granted_by = statement.granted_by and meant(session, statement.granted_by)
    statement = replace(statement, users=all_meant(session, statement.users), granted_by=granted_by)
    with store.change() as cursor:
        catalog = store.catalog
        for name, position in statement.users:
            _check_user(catalog, name, position, statement)
        removed: set[Grant] = set()
        added: set[Grant] = set()
        for thing in _things(session, statement):
            privileges, missing = _grantable(catalog, session.user, thing, statement)
            notices += missing
            if statement.is_revoke:
                taken, kept = _revoked(catalog, session.user, thing, privileges, statement)
            else:
                taken, kept = _granted(catalog, session.user, thing, privileges, statement)
            removed |= taken
            added |= kept
        put_grants(cursor, removed, added)
    return Result("REVOKE_PRIVILEGE" if statement.is_revoke else "GRANT_PRIVILEGE", notices=notices)


def _check_user(catalog: Catalog, name: str, position: int, statement: ChangePrivileges) -> None:
    if name == PUBLIC:
        if statement.grant_option and not statement.is_revoke:
            message = "grant options can only be granted to roles"
            raise Error(message, errors.INVALID_GRANT_OPERATION, position=position)
    else:
        find_user(catalog, name, position)


def _things(session: Session, statement: ChangePrivileges) -> Iterator[Securable]:
    """Yield the objects of the privileges. Raises Error 3D000, 3F000, 42704, 42809 or 42P01 for unknown names."""
    catalog = session.context.store.catalog
    for index, name in enumerate(statement.names):
        if statement.kind == "database":
            yield _find(catalog, (name.name,), name, errors.INVALID_CATALOG_NAME)
        elif statement.all_in:
            _check_privileges(statement, statement.kind or "table")
            schema = _find(catalog, (session.database, name.name), name, errors.INVALID_SCHEMA_NAME).name
            if statement.kind == "connection":
                yield from (each.securable for each in connections_in(session, [schema]))
                continue
            for each in catalog.functions if statement.kind == "function" else catalog.named:
                if (each.database, each.schema, each.securable.kind) == (session.database, schema, statement.kind):
                    yield each.securable
        elif statement.kind == "schema":
            database = name.schema or session.database
            yield _find(catalog, (database, name.name), name, errors.INVALID_SCHEMA_NAME)
        elif statement.kind == "function":
            yield find_function(session, name, statement.types[index]).securable
        elif statement.kind == "connection":
            yield find_connection(session, name).securable
        elif statement.kind in (None, "table"):  # as in PostgreSQL, TABLE includes any relation
            yield resolve(catalog, session.scope, name).securable
        else:
            yield find_of_kind(session, name, statement.kind).securable


def _find(catalog: Catalog, key: tuple[str, ...], name: Name, sqlstate: str) -> Securable:
    found = catalog.securables.get(key)
    if found is None:
        kind = "database" if len(key) == 1 else "schema"
        raise Error(f'{kind} "{name.name}" does not exist', sqlstate, position=name.position)
    return found


def _check_privileges(statement: ChangePrivileges, kind: str) -> None:
    for privilege in statement.privileges:
        name = privilege.name.upper()
        if name not in (COLUMN_PRIVILEGES if privilege.columns else PRIVILEGES[kind]):
            message = f"invalid privilege type {name} for {'column' if privilege.columns else kind}"
            raise Error(message, errors.INVALID_GRANT_OPERATION, position=privilege.position)


def _grantable(
    catalog: Catalog, user: User, thing: Securable, statement: ChangePrivileges
) -> tuple[tuple[_Held, ...], list[Notice]]:
    """Return the privileges that the user may grant; with a warning if some are missing.

    Raises Error 42501, 0LP01, or 42703 for an unknown column.
    """
    _check_privileges(statement, thing.kind)
    for privilege in statement.privileges:
        _check_columns(catalog, thing, privilege)
    wanted: tuple[_Held, ...] = tuple(
        (privilege.name.upper(), column)
        for privilege in statement.privileges
        for column in (*(name for name, _ in privilege.columns), *(() if privilege.columns else (None,)))
    ) or tuple((name, None) for name in PRIVILEGES[thing.kind])
    found = tuple(held for held in wanted if holds(catalog, user, thing, held[0], to_grant=True, column=held[1]))
    if not found:
        raise permission_denied(f"permission denied for {thing.kind} {thing.name}")
    if found != wanted and statement.privileges:
        verb = "revoked" if statement.is_revoke else "granted"
        return found, [Notice(f'not all privileges were {verb} for "{thing.name}"', "WARNING", "01007")]
    return found, []


def _check_columns(catalog: Catalog, thing: Securable, privilege: Privilege) -> None:
    """Raise Error 0LP01 for an object without columns, 42703 for an unknown column."""
    if not privilege.columns:
        return
    relation = catalog.by_id.get(thing.id)
    if relation is None or thing.kind not in _WITH_COLUMNS:
        message = "column privileges are only valid for relations"
        raise Error(message, errors.INVALID_GRANT_OPERATION, position=privilege.position)
    for name, position in privilege.columns:
        if name not in [column.name for column in relation.visible]:
            message = f'column "{name}" of relation "{relation.name}" does not exist'
            raise Error(message, errors.UNDEFINED_COLUMN, position=position)


_WITH_COLUMNS = ("table", "view", "materialized view")


def _grantor(
    catalog: Catalog, user: User, thing: Securable, privileges: Iterable[_Held], statement: ChangePrivileges
) -> str:
    """Return the role that grants.

    Superusers and members of the owner grant as the owner. A user without the right to grant grants as one of the
    user's roles that has the right. Raises Error 0A000 for another grantor in GRANTED BY.
    """
    grantor = thing.owner
    if not user.is_super and not user.acts_as(thing.owner):
        own = (user, *(catalog.users[role] for role in sorted(user.roles)))
        alone = (replace(each, roles=frozenset()) for each in own)
        may = (
            each.name
            for each in alone
            if any(holds(catalog, each, thing, name, to_grant=True, column=column) for name, column in privileges)
        )
        grantor = next(may, user.name)
    if statement.granted_by is not None and statement.granted_by[0] not in (grantor, user.name):
        message = "grantor must be current user"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=statement.granted_by[1])
    return grantor


def _granted(
    catalog: Catalog, user: User, thing: Securable, privileges: tuple[_Held, ...], statement: ChangePrivileges
) -> tuple[set[Grant], set[Grant]]:
    """Return the grants to remove and to add: a privilege granted again keeps its grant option."""
    grantor = _grantor(catalog, user, thing, privileges, statement)
    removed, added = set(), set()
    for name, _ in statement.users:
        for privilege in privileges:
            old = {grant for grant in _held(catalog, thing, name, privilege, grantor) if grant.column == privilege[1]}
            is_grantable = statement.grant_option or any(grant.is_grantable for grant in old)
            removed |= old
            if name != thing.owner:
                added.add(Grant(thing.id, name, privilege[0], grantor, is_grantable, privilege[1]))
    return removed, added


def _revoked(
    catalog: Catalog, user: User, thing: Securable, privileges: tuple[_Held, ...], statement: ChangePrivileges
) -> tuple[set[Grant], set[Grant]]:
    """Return the grants to remove, and the grants to keep without grant option. Raises Error 2BP01 without CASCADE."""
    grantor = _grantor(catalog, user, thing, privileges, statement)
    removed, kept = set(), set()
    for name, _ in statement.users:
        for privilege in privileges:
            old = _held(catalog, thing, name, privilege, grantor)
            removed |= old
            if statement.grant_option:
                kept |= {replace(grant, is_grantable=False) for grant in old}
    return with_dependents(catalog, removed, statement.cascade), kept


def with_dependents(catalog: Catalog, removed: Iterable[Grant], cascade: bool) -> set[Grant]:
    """Return grants with the grants that depend on them. Raises Error 2BP01 for such grants without `cascade`."""
    found = set(removed)
    pending = set(found)
    while pending:
        gone = pending.pop()
        if _may_still_grant(catalog, gone, found):
            continue
        dependents = _given_by(catalog, gone) - found
        if dependents and not cascade:
            message = "dependent privileges exist"
            hint = "Use CASCADE to revoke them too."
            raise Error(message, errors.DEPENDENT_OBJECTS_STILL_EXIST, hint=hint)
        found |= dependents
        pending |= dependents
    return found


def _held(catalog: Catalog, thing: Securable, grantee: str, privilege: _Held, grantor: str) -> set[Grant]:
    """Return the grants of a privilege on a column; for a whole object, the grants on its columns too."""
    name, column = privilege
    on = catalog.grants_on.get(thing.id, frozenset())
    held = {grant for grant in on if (grant.grantee, grant.privilege, grant.grantor) == (grantee, name, grantor)}
    return {grant for grant in held if column in (None, grant.column)}


def _given_by(catalog: Catalog, gone: Grant) -> set[Grant]:
    """Return the grants that the holder of a removed grant has given from it."""
    on = catalog.grants_on.get(gone.object_id, frozenset())
    given = {grant for grant in on if (grant.grantor, grant.privilege) == (gone.grantee, gone.privilege)}
    return {grant for grant in given if gone.column in (None, grant.column)}


def _may_still_grant(catalog: Catalog, gone: Grant, removed: set[Grant]) -> bool:
    others = catalog.grants_on.get(gone.object_id, frozenset()) - removed
    holder = (gone.grantee, gone.privilege)
    still = (grant for grant in others if (grant.grantee, grant.privilege) == holder and grant.is_grantable)
    return any(grant.column in (None, gone.column) for grant in still)
