"""The privileges of users: owners and superusers have all, others those granted to them or to PUBLIC.

Members of a role have the privileges of the role.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.catalog.users import PUBLIC, Securable, User


def holds(
    catalog: Catalog, user: User, thing: Securable, privilege: str, to_grant: bool = False, column: str | None = None
) -> bool:
    """Return whether a user has a privilege, or may grant it to others.

    The privilege on a thing includes its columns.
    """
    if user.is_super or user.acts_as(thing.owner):
        return True
    return any(
        grant.privilege == privilege
        and (grant.grantee == PUBLIC or user.acts_as(grant.grantee))
        and (grant.is_grantable or not to_grant)
        and grant.column in (None, column)
        for grant in catalog.grants_on.get(thing.id, ())
    )


def holds_any(catalog: Catalog, user: User, relation: Relation, privilege: str) -> bool:
    """Return whether a user has a privilege on a relation or on some of its columns."""
    names = (None, *(column.name for column in relation.visible))
    return any(holds(catalog, user, relation.securable, privilege, column=name) for name in names)


def check(catalog: Catalog, user: User, thing: Securable, privilege: str, position: int | None = None) -> None:
    """Raise Error 42501 unless a user has a privilege."""
    if not holds(catalog, user, thing, privilege):
        raise permission_denied(f"permission denied for {thing.kind} {thing.name}", position)


def check_relation(
    catalog: Catalog,
    user: User,
    relation: Relation,
    privilege: str,
    position: int | None = None,
    columns: Iterable[str] = (),
) -> None:
    """Check the privilege on a relation and its schema. The privilege on each of the `columns` is enough."""
    if not relation.is_temporary:  # its schema is the session's, whatever the user
        check(catalog, user, catalog.securables[relation.database, relation.schema], "USAGE", position)
    names = list(columns)
    if not names or not all(holds(catalog, user, relation.securable, privilege, column=name) for name in names):
        check(catalog, user, relation.securable, privilege, position)


def check_owner(user: User, thing: Securable, position: int | None = None) -> None:
    """Raise Error 42501 unless the user, or a role that the user is a member of, owns the thing, or is a superuser."""
    if not user.is_super and not user.acts_as(thing.owner):
        raise permission_denied(f"must be owner of {thing.kind} {thing.name}", position)


def permission_denied(message: str, position: int | None = None) -> Error:
    return Error(message, errors.INSUFFICIENT_PRIVILEGE, position=position)


def find_owner(catalog: Catalog, me: User, name: str, position: int | None = None) -> User:
    """Return the user that is to own a thing.

    Raises Error 42704, or 42501 for a user that is neither `me` nor a role that `me` is a member of, unless `me` is a
    superuser.
    """
    owner = find_user(catalog, name, position)
    if not me.is_super and not me.acts_as(name):
        raise permission_denied(f'must be member of role "{name}"', position)
    return owner


def find_user(catalog: Catalog, name: str, position: int | None = None) -> User:
    """Return the user of a name. Raises Error 42704 when there is none."""
    if name not in catalog.users:
        raise Error(f'role "{name}" does not exist', errors.UNDEFINED_OBJECT, position=position)
    return catalog.users[name]
