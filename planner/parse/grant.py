"""Parsing of GRANT, REVOKE, ALTER DEFAULT PRIVILEGES, and of REASSIGN and DROP OWNED.

RisingWave: src/sqlparser/src/parser.rs, parse_grant_revoke_privileges_objects; PostgreSQL: gram.y, DefACLAction.
"""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type
from sparkwave.catalog.users import COLUMN_PRIVILEGES, PRIVILEGES
from sparkwave.planner.parse.function import parse_signature
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import (
    CURRENT_USER,
    SESSION_USER,
    AlterDefaultPrivileges,
    ChangeMembership,
    ChangePrivileges,
    DropOwned,
    Name,
    Privilege,
    ReassignOwned,
)

_KNOWN = frozenset(privilege for privileges in PRIVILEGES.values() for privilege in privileges)
# The kinds after ALL, as in ALL TABLES IN SCHEMA, and in ALTER DEFAULT PRIVILEGES, which knows SCHEMAS too.
_PLURALS = {
    "TABLES": "table",
    "VIEWS": "view",
    "MATERIALIZED VIEWS": "materialized view",
    "SINKS": "sink",
    "SOURCES": "source",
    "SUBSCRIPTIONS": "subscription",
    "SEQUENCES": "sequence",
    "FUNCTIONS": "function",
    "ROUTINES": "function",
    "CONNECTIONS": "connection",
}
_ROLES = {"CURRENT_USER": CURRENT_USER, "CURRENT_ROLE": CURRENT_USER, "SESSION_USER": SESSION_USER}


def parse_grant(reader: TokenReader) -> ChangePrivileges | ChangeMembership:
    """Parse a GRANT.

    `GRANT {ALL [PRIVILEGES] | privilege [(column, …)], …} ON … TO user, … [WITH GRANT OPTION] [GRANTED BY user]`, or
    `GRANT role, … TO user, … [WITH ADMIN OPTION] [GRANTED BY user]`.
    """
    reader.expect("GRANT")
    privileges = _privileges(reader)
    if reader.peek() == "TO":
        roles = _roles(reader, privileges)
        reader.expect("TO")
        members = reader.comma_separated(lambda: _role(reader))
        admin_option = reader.accept("WITH", "ADMIN", "OPTION")
        granted_by = _granted_by(reader)
        reader.finish()
        return ChangeMembership(False, roles, members, admin_option, granted_by)
    _check(privileges)
    kind, names, all_in, types = _things(reader)
    reader.expect("TO")
    users = reader.comma_separated(lambda: _role(reader))
    grant_option = reader.accept("WITH", "GRANT", "OPTION")
    granted_by = _granted_by(reader)
    reader.finish()
    return ChangePrivileges(
        False, privileges, kind, names, users, all_in, grant_option=grant_option, granted_by=granted_by, types=types
    )


def parse_revoke(reader: TokenReader) -> ChangePrivileges | ChangeMembership:
    """Parse a REVOKE.

    `REVOKE [GRANT OPTION FOR] … ON … FROM user, … [GRANTED BY user] [CASCADE | RESTRICT]`, or `REVOKE [ADMIN OPTION
    FOR] role, … FROM user, …` with the same end.
    """
    reader.expect("REVOKE")
    grant_option = reader.accept("GRANT", "OPTION", "FOR")
    admin_option = not grant_option and reader.accept("ADMIN", "OPTION", "FOR")
    privileges = _privileges(reader)
    if admin_option or (not grant_option and reader.peek() == "FROM"):
        roles = _roles(reader, privileges)
        reader.expect("FROM")
        members = reader.comma_separated(lambda: _role(reader))
        granted_by = _granted_by(reader)
        reader.cascade()
        reader.finish()
        return ChangeMembership(True, roles, members, admin_option, granted_by)
    _check(privileges)
    kind, names, all_in, types = _things(reader)
    reader.expect("FROM")
    users = reader.comma_separated(lambda: _role(reader))
    granted_by = _granted_by(reader)
    cascade = reader.cascade()
    reader.finish()
    return ChangePrivileges(True, privileges, kind, names, users, all_in, grant_option, cascade, granted_by, types)


def parse_alter_default_privileges(reader: TokenReader) -> AlterDefaultPrivileges:
    """Parse from after ALTER DEFAULT PRIVILEGES on.

    `[FOR {ROLE | USER} role, …] [IN SCHEMA schema, …]`, then `GRANT … ON kind TO user, … [WITH GRANT OPTION]` or
    `REVOKE [GRANT OPTION FOR] … ON kind FROM user, … [CASCADE | RESTRICT]`.
    """
    roles: tuple[tuple[str, int], ...] = ()
    schemas: tuple[Name, ...] = ()
    while reader.peek() in ("FOR", "IN"):
        if reader.accept("FOR", "ROLE") or reader.accept("FOR", "USER"):
            roles += reader.comma_separated(lambda: _role(reader))
        else:
            reader.expect("IN", "SCHEMA")
            schemas += reader.comma_separated(reader.name)
    is_revoke = not reader.accept("GRANT")
    if is_revoke:
        reader.expect("REVOKE")
    grant_option = is_revoke and reader.accept("GRANT", "OPTION", "FOR")
    privileges = _privileges(reader)
    _check(privileges)
    reader.expect("ON")
    position = reader.offset + 1
    kind = "schema" if reader.accept("SCHEMAS") else _plural(reader)
    reader.expect("FROM" if is_revoke else "TO")
    users = reader.comma_separated(lambda: _role(reader))
    if is_revoke:
        reader.cascade()
    else:
        grant_option = reader.accept("WITH", "GRANT", "OPTION")
    reader.finish()
    return AlterDefaultPrivileges(is_revoke, roles, schemas, privileges, kind, users, position, grant_option)


def parse_reassign_owned(reader: TokenReader) -> ReassignOwned:
    """Parse `REASSIGN OWNED BY role, … TO role`."""
    reader.expect("REASSIGN", "OWNED", "BY")
    roles = reader.comma_separated(lambda: _role(reader))
    reader.expect("TO")
    owner = _role(reader)
    reader.finish()
    return ReassignOwned(roles, owner)


def parse_drop_owned(reader: TokenReader) -> DropOwned:
    """Parse from after DROP OWNED on: `BY role, … [CASCADE | RESTRICT]`."""
    reader.expect("BY")
    roles = reader.comma_separated(lambda: _role(reader))
    cascade = reader.cascade()
    reader.finish()
    return DropOwned(roles, cascade)


def _role(reader: TokenReader) -> tuple[str, int]:
    """Parse the name of a role, or CURRENT_USER and the like. Returns it with its position."""
    position, word = reader.offset + 1, reader.peek()
    if word in _ROLES:
        reader.skip()
        return _ROLES[word], position
    return reader.placed_identifier()


def _privileges(reader: TokenReader) -> tuple[Privilege, ...]:
    """Parse privileges, or names of roles; none for ALL."""
    position = reader.offset + 1
    if reader.accept("ALL"):
        reader.accept("PRIVILEGES")
        columns = _columns(reader)
        return tuple(Privilege(name, position, columns) for name in COLUMN_PRIVILEGES) if columns else ()
    return reader.comma_separated(lambda: Privilege(*reader.placed_identifier(), _columns(reader)))


def _columns(reader: TokenReader) -> tuple[tuple[str, int], ...]:
    return reader.parenthesised(reader.placed_identifier) if reader.peek() == "(" else ()


def _roles(reader: TokenReader, named: tuple[Privilege, ...]) -> tuple[tuple[str, int], ...]:
    """Return names of roles, which have no columns and are not ALL. Raises Error 42601."""
    if not named or any(each.columns for each in named):
        raise reader.syntax_error()
    return tuple((each.name, each.position) for each in named)


def _check(privileges: tuple[Privilege, ...]) -> None:
    """Raise Error 42601 for an unknown privilege."""
    for privilege in privileges:
        if privilege.name.upper() not in _KNOWN:
            message = f'unrecognized privilege type "{privilege.name}"'
            raise Error(message, errors.SYNTAX_ERROR, position=privilege.position)


_Types = tuple[tuple[Type, ...] | None, ...]


def _things(reader: TokenReader) -> tuple[str | None, tuple[Name, ...], bool, _Types]:
    """Parse ON.

    Returns the kind and names of the objects, whether the names are schemas that contain them, and types of functions.
    """
    reader.expect("ON")
    if reader.accept("ALL"):
        kind = _plural(reader)
        reader.expect("IN", "SCHEMA")
        return kind, reader.comma_separated(reader.name), True, ()
    if reader.accept("FUNCTION") or reader.accept("ROUTINE"):
        found = reader.comma_separated(lambda: parse_signature(reader))
        return "function", tuple(name for name, _ in found), False, tuple(types for _, types in found)
    kinds = (kind for kind in PRIVILEGES if kind != "function" and reader.accept(*kind.upper().split()))
    return next(kinds, None), reader.comma_separated(reader.name), False, ()


def _plural(reader: TokenReader) -> str:
    kind = next((kind for words, kind in _PLURALS.items() if reader.accept(*words.split())), None)
    if kind is None:
        raise reader.syntax_error()
    return kind


def _granted_by(reader: TokenReader) -> tuple[str, int] | None:
    return _role(reader) if reader.accept("GRANTED", "BY") else None
