"""What a user may do with what: the owner and superusers everything, others what was granted to them or to PUBLIC."""

from __future__ import annotations

from catalog import errors
from catalog.errors import Error
from catalog.model import Catalog, Relation
from catalog.users import PUBLIC, Securable, User


def holds(catalog: Catalog, user: User, thing: Securable, privilege: str, to_grant: bool = False) -> bool:
    """Whether a user has a privilege, or may grant it to others."""
    if user.is_super or thing.owner == user.name:
        return True
    return any(
        grant.privilege == privilege and grant.grantee in (user.name, PUBLIC) and (grant.is_grantable or not to_grant)
        for grant in catalog.grants_on.get(thing.id, ())
    )


def check(catalog: Catalog, user: User, thing: Securable, privilege: str, position: int | None = None) -> None:
    """Raise Error 42501 unless a user has a privilege."""
    if not holds(catalog, user, thing, privilege):
        raise permission_denied(f"permission denied for {thing.kind} {thing.name}", position)


def check_relation(
    catalog: Catalog, user: User, relation: Relation, privilege: str, position: int | None = None
) -> None:
    """As `check`, for a relation and the schema it is in."""
    check(catalog, user, catalog.securables[relation.database, relation.schema], "USAGE", position)
    check(catalog, user, relation.securable, privilege, position)


def check_owner(user: User, thing: Securable, position: int | None = None) -> None:
    """Raise Error 42501 unless it is the user's, or the user is a superuser."""
    if not user.is_super and thing.owner != user.name:
        raise permission_denied(f"must be owner of {thing.kind} {thing.name}", position)


def permission_denied(message: str, position: int | None = None) -> Error:
    return Error(message, errors.INSUFFICIENT_PRIVILEGE, position=position)


def find_owner(catalog: Catalog, me: User, name: str, position: int | None = None) -> User:
    """Who is to own something. Raises Error 42704, or 42501 for another than `me`, which only a superuser may name."""
    owner = find_user(catalog, name, position)
    if owner.id != me.id and not me.is_super:
        raise permission_denied(f'must be member of role "{name}"', position)
    return owner


def find_user(catalog: Catalog, name: str, position: int | None = None) -> User:
    """Raises Error 42704 when there is none of that name."""
    if name not in catalog.users:
        raise Error(f'role "{name}" does not exist', errors.UNDEFINED_OBJECT, position=position)
    return catalog.users[name]
