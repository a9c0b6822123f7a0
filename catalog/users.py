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
    "view": ("SELECT", "INSERT", "UPDATE", "DELETE"),
    "subscription": ("SELECT",),
    "sequence": ("USAGE", "SELECT", "UPDATE"),
    "function": ("EXECUTE",),
    "connection": ("USAGE",),
    "schema": ("CREATE", "USAGE"),
    "database": ("CREATE", "CONNECT"),
}
# What everybody may do with new objects of a kind, as in PostgreSQL, unless ALTER DEFAULT PRIVILEGES takes it away.
PUBLIC_PRIVILEGES: dict[str, tuple[str, ...]] = {"function": ("EXECUTE",)}
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


@dataclass(frozen=True)
class DefaultGrant:
    """A privilege on each object of a kind that `role` makes from now on: in one schema, or for None in a database.

    `is_revoked`: PUBLIC does not get its privilege of `PUBLIC_PRIVILEGES`.
    """

    database_id: int
    role: str
    schema_id: int | None
    kind: str
    grantee: str
    privilege: str
    is_grantable: bool = False
    is_revoked: bool = False


def first_grants(
    defaults: Iterable[DefaultGrant], thing: Securable, database_id: int | None, schema_id: int | None
) -> set[Grant]:
    """Return the grants that a new object has from the start."""
    counting = [
        each
        for each in defaults
        if (each.database_id, each.role, each.kind) == (database_id, thing.owner, thing.kind)
        and each.schema_id in (None, schema_id)
    ]
    revoked = {each.privilege for each in counting if each.is_revoked}
    held = {(PUBLIC, name): False for name in PUBLIC_PRIVILEGES.get(thing.kind, ()) if name not in revoked}
    for each in counting:
        if not each.is_revoked:
            key = each.grantee, each.privilege
            held[key] = held.get(key, False) or each.is_grantable
    return {Grant(thing.id, grantee, name, thing.owner, may) for (grantee, name), may in held.items()}
