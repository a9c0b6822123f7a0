"""Statements on users and privileges."""

from __future__ import annotations

from dataclasses import dataclass

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

    `privileges` is empty for ALL. `kind` is "schema", "database", or as in `Relation.kind`; None for a relation of any
    kind. With `all_in`, `names` are the schemas of the relations. `grant_option` is WITH GRANT OPTION or GRANT OPTION
    FOR.
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
