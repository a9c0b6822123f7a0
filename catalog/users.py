"""Users and what they may do, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass

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
    "schema": ("CREATE", "USAGE"),
    "database": ("CREATE", "CONNECT"),
}


@dataclass(frozen=True)
class User:
    """Who may connect. `verifier` is the password as `server.authentication` writes it, None for no password."""

    id: int
    name: str
    is_super: bool = False
    create_db: bool = False
    create_user: bool = False
    can_login: bool = True
    verifier: str | None = None


@dataclass(frozen=True)
class Securable:
    """A database, schema or relation, as what privileges are held on. `kind` is a key of `PRIVILEGES`."""

    kind: str
    id: int
    name: str
    owner: str


@dataclass(frozen=True)
class Grant:
    """One privilege of one user, or of `PUBLIC`, on the securable with an id."""

    object_id: int
    grantee: str
    privilege: str
    grantor: str
    is_grantable: bool = False
