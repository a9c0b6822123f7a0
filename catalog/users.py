"""Users and what they may do, as frozen data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

ROOT = "root"
PUBLIC = "public"  # every user; no user may have this name

# What can be granted on each kind of thing (RisingWave: src/frontend/src/handler/handle_privilege.rs).
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
# Those of relations that can be granted on single columns.
COLUMN_PRIVILEGES = ("SELECT", "INSERT", "UPDATE")


@dataclass(frozen=True)
class User:
    """Who may connect. `verifier` is the password as `server.wire.authentication` writes it, None for no password.

    The password counts until `valid_until`, if that is set. `roles` are those that the user is a member of, also by
    way of others: what they may do, their members may.
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
        """Whether it is the user of that name, or a member of it."""
        return name == self.name or name in self.roles


@dataclass(frozen=True)
class Membership:
    """That a user has what a role has; `is_admin` may make others members."""

    role: str
    member: str
    grantor: str
    is_admin: bool = False


def roles_of(name: str, memberships: Iterable[Membership]) -> frozenset[str]:
    """The roles that a user is a member of, also by way of others."""
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
    """A database, schema or relation, as what privileges are held on. `kind` is a key of `PRIVILEGES`."""

    kind: str
    id: int
    name: str
    owner: str


@dataclass(frozen=True)
class Grant:
    """One privilege of one user, or of `PUBLIC`, on the securable with an id, or on a column of it alone."""

    object_id: int
    grantee: str
    privilege: str
    grantor: str
    is_grantable: bool = False
    column: str | None = None
