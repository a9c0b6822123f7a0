"""GRANT and REVOKE of roles: changes the members of roles."""

from __future__ import annotations

from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.stores.user_store import put_memberships
from sparkwave.catalog.users import Membership, User, roles_of
from sparkwave.planner.bind.privileges import find_user, permission_denied
from sparkwave.planner.statements import ChangeMembership
from sparkwave.server.session.session import Session
from sparkwave.server.statements.role_names import all_meant, meant
from sparkwave.server.wire.result import Notice, Result


def change_membership(session: Session, statement: ChangeMembership) -> Result:
    """Grant or revoke roles. Raises Error 42501 without the right, 42704 for an unknown role, 0LP01 for a circle."""
    store = session.context.store
    notices: list[Notice] = []
    granted_by = statement.granted_by and meant(session, statement.granted_by)
    statement = replace(statement, members=all_meant(session, statement.members), granted_by=granted_by)
    with store.change() as cursor:
        catalog, me = store.catalog, session.user
        grantor = _grantor(me, statement)
        found = {(each.role, each.member): each for each in catalog.memberships}
        for role_name, position in statement.roles:
            role = find_user(catalog, role_name, position)
            _check_admin(me, role, found, position)
            for name, member_position in statement.members:
                member = find_user(catalog, name, member_position)
                notice = _revoke(found, role, member, statement) if statement.is_revoke else None
                if not statement.is_revoke:
                    notice = _grant(found, role, member, grantor, statement, position)
                notices += [notice] if notice else []
        now = frozenset(found.values())
        put_memberships(cursor, catalog.memberships - now, now - catalog.memberships)
    return Result("REVOKE_ROLE" if statement.is_revoke else "GRANT_ROLE", notices=notices)


_Found = dict[tuple[str, str], Membership]


def _grantor(me: User, statement: ChangeMembership) -> str:
    if statement.granted_by is None or statement.granted_by[0] == me.name:
        return me.name
    if not me.is_super:
        raise permission_denied("must be superuser to set grantor", statement.granted_by[1])
    return statement.granted_by[0]


def _check_admin(me: User, role: User, found: _Found, position: int) -> None:
    """Raise Error 42501 without the right. As in PostgreSQL 15, CREATEROLE may change any role but a superuser's."""
    if me.is_super:
        return
    if role.is_super:
        raise permission_denied("must be superuser to alter superusers", position)
    is_admin = any(each.is_admin and each.role == role.name and me.acts_as(each.member) for each in found.values())
    if not me.create_user and not is_admin:
        raise permission_denied(f'must have admin option on role "{role.name}"', position)


def _grant(
    found: _Found, role: User, member: User, grantor: str, statement: ChangeMembership, position: int
) -> Notice | None:
    if role.name == member.name or member.name in roles_of(role.name, found.values()):
        message = f'role "{role.name}" is a member of role "{member.name}"'
        raise Error(message, errors.INVALID_GRANT_OPERATION, position=position)
    old = found.get((role.name, member.name))
    if old is not None and (old.is_admin or not statement.admin_option):
        message = f'role "{member.name}" is already a member of role "{role.name}"'
        return Notice(message, sqlstate=errors.DUPLICATE_OBJECT)
    found[role.name, member.name] = Membership(role.name, member.name, grantor, statement.admin_option)
    return None


def _revoke(found: _Found, role: User, member: User, statement: ChangeMembership) -> Notice | None:
    old = found.get((role.name, member.name))
    if old is None:
        return Notice(f'role "{member.name}" is not a member of role "{role.name}"', "WARNING", "01000")
    if statement.admin_option:
        found[role.name, member.name] = replace(old, is_admin=False)
    else:
        del found[role.name, member.name]
    return None
