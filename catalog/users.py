"""Users and their privileges, as frozen data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

ROOT = "root"
PUBLIC = "public"  # every user; no user may have this name

# The privileges on each kind of object (RisingWave: src/frontend/src/handler/handle_privilege.rs).
PRIVILEGES: dict[str, tuple[str, ...]] = {
    "table": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "source": ("SELECT",),
    "materialized view": ("SELECT",),
    "index": ("SELECT",),
    "sink": ("SELECT",),
    "view": ("SELECT",),
    "subscription": ("SELECT",),
    "sequence": ("USAGE", "SELECT", "UPDATE"),
    "schema": ("CREATE", "USAGE"),
    "database": ("CREATE", "CONNECT"),
}
# The privileges on relations that can be granted on single columns.
COLUMN_PRIVILEGES = ("SELECT", "INSERT", "UPDATE")


@dataclass(frozen=True)
class User:
    """A user or role. `verifier` is the password as `server.wire.authentication` writes it, None without a password.

    The password is valid until `valid_until`, if that is set. `roles` are all roles that the user is a member of,
    directly or through others; a member has the rights of a role.
    """

    id: int
    name: str
    is_super: bool = False
    create_db: bool = False
    create_user: bool = False
    can_login: bool = True
    verifier: str | None = None
    valid_until: datetime | None = None
    roles: frozenset[str] = frozenset()

    def acts_as(self, name: str) -> bool:
        """Return whether it is the user of this name, or a member of that role."""
        return name == self.name or name in self.roles


@dataclass(frozen=True)
class Membership:
    """A user's membership in a role; `is_admin`: the member may add other members."""

    role: str
    member: str
    grantor: str
    is_admin: bool = False


def roles_of(name: str, memberships: Iterable[Membership]) -> frozenset[str]:
    """Return the roles that a user is a member of, directly or through others."""
    direct: dict[str, list[str]] = {}
    for membership in memberships:
        direct.setdefault(membership.member, []).append(membership.role)
    found: set[str] = set()
    pending = list(direct.get(name, ()))
    while pending:
        role = pending.pop()
        if role not in found:
            found.add(role)
            pending += direct.get(role, ())
    return frozenset(found)


@dataclass(frozen=True)
class Securable:
    """A database, schema or relation on which privileges can be granted. `kind` is a key of `PRIVILEGES`."""

    kind: str
    id: int
    name: str
    owner: str


@dataclass(frozen=True)
class Grant:
    """One privilege of one user, or of `PUBLIC`, on a securable, or on one column of it."""

    object_id: int
    grantee: str
    privilege: str
    grantor: str
    is_grantable: bool = False
    column: str | None = None
