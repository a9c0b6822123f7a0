"""Statements on users and privileges."""

from __future__ import annotations

from dataclasses import dataclass

from sparkwave.catalog.types import Type
from sparkwave.planner.statements.relation_names import Name


class Password(str):
    """Clear text that must not get into a log."""

    def __repr__(self) -> str:
        return "'***'"


@dataclass(frozen=True)
class UserOption:
    """One option of CREATE or ALTER USER: a field of `catalog.users.User` and its value, or `password` (None: NULL).

    The value of `valid_until` is the text of a time.
    """

    field: str
    value: bool | str | Password | None
    position: int


@dataclass(frozen=True)
class CreateUser:
    name: str
    options: tuple[UserOption, ...]
    is_role: bool  # CREATE ROLE, whose roles may not log in unless told
    position: int


@dataclass(frozen=True)
class AlterUser:
    name: str
    options: tuple[UserOption, ...]
    position: int


@dataclass(frozen=True)
class RenameUser:
    name: str
    new_name: str
    position: int
    new_position: int


@dataclass(frozen=True)
class DropUser:
    names: tuple[tuple[str, int], ...]  # with their positions
    if_exists: bool


# Names of roles in statements that stand for the session's current user and session user.
CURRENT_USER, SESSION_USER = "\0current_user", "\0session_user"


@dataclass(frozen=True)
class Privilege:
    """A privilege in GRANT and REVOKE, in upper case, on single columns if there are some, with their positions."""

    name: str
    position: int
    columns: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class ChangeMembership:
    """GRANT of roles, or REVOKE if `is_revoke`; all with their positions.

    `admin_option` is WITH ADMIN OPTION or its REVOKE.
    """

    is_revoke: bool
    roles: tuple[tuple[str, int], ...]
    members: tuple[tuple[str, int], ...]
    admin_option: bool = False
    granted_by: tuple[str, int] | None = None


@dataclass(frozen=True)
class ChangePrivileges:
    """GRANT, or REVOKE if `is_revoke`.

    `privileges` is empty for ALL. `kind` is "schema", "database", "function", or as in `Relation.kind`; None for a
    relation of any kind. `types` are those of each function's arguments, None where they are not given. With `all_in`,
    `names` are the schemas of the objects. `grant_option` is WITH GRANT OPTION or GRANT OPTION FOR.
    """

    is_revoke: bool
    privileges: tuple[Privilege, ...]
    kind: str | None
    names: tuple[Name, ...]
    users: tuple[tuple[str, int], ...]
    all_in: bool = False
    grant_option: bool = False
    cascade: bool = False
    granted_by: tuple[str, int] | None = None
    types: tuple[tuple[Type, ...] | None, ...] = ()


@dataclass(frozen=True)
class AlterDefaultPrivileges:
    """ALTER DEFAULT PRIVILEGES: what users get on objects that `roles` make; without roles the current user.

    `schemas` are those of the objects; none for all of the database. The other fields are as in `ChangePrivileges`.
    """

    is_revoke: bool
    roles: tuple[tuple[str, int], ...]
    schemas: tuple[Name, ...]
    privileges: tuple[Privilege, ...]
    kind: str
    users: tuple[tuple[str, int], ...]
    position: int
    grant_option: bool = False


@dataclass(frozen=True)
class ReassignOwned:
    """REASSIGN OWNED: all that `roles` own gets another owner. Names have their positions."""

    roles: tuple[tuple[str, int], ...]
    owner: tuple[str, int]


@dataclass(frozen=True)
class DropOwned:
    """DROP OWNED: drops all that `roles` own, and revokes what was granted to them."""

    roles: tuple[tuple[str, int], ...]
    cascade: bool
