"""Parsing of GRANT and REVOKE (RisingWave: src/sqlparser/src/parser.rs, parse_grant_revoke_privileges_objects)."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.users import COLUMN_PRIVILEGES, PRIVILEGES
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import ChangeMembership, ChangePrivileges, Name, Privilege

_KNOWN = frozenset(privilege for privileges in PRIVILEGES.values() for privilege in privileges)
# The kinds after ALL, as in ALL TABLES IN SCHEMA.
_PLURALS = {
    "TABLES": "table",
    "VIEWS": "view",
    "MATERIALIZED VIEWS": "materialized view",
    "SINKS": "sink",
    "SOURCES": "source",
}


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
        members = reader.comma_separated(reader.placed_identifier)
        admin_option = reader.accept("WITH", "ADMIN", "OPTION")
        granted_by = _granted_by(reader)
        reader.finish()
        return ChangeMembership(False, roles, members, admin_option, granted_by)
    _check(privileges)
    kind, names, all_in = _things(reader)
    reader.expect("TO")
    users = reader.comma_separated(reader.placed_identifier)
    grant_option = reader.accept("WITH", "GRANT", "OPTION")
    granted_by = _granted_by(reader)
    reader.finish()
    return ChangePrivileges(
        False, privileges, kind, names, users, all_in, grant_option=grant_option, granted_by=granted_by
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
        members = reader.comma_separated(reader.placed_identifier)
        granted_by = _granted_by(reader)
        reader.cascade()
        reader.finish()
        return ChangeMembership(True, roles, members, admin_option, granted_by)
    _check(privileges)
    kind, names, all_in = _things(reader)
    reader.expect("FROM")
    users = reader.comma_separated(reader.placed_identifier)
    granted_by = _granted_by(reader)
    cascade = reader.cascade()
    reader.finish()
    return ChangePrivileges(True, privileges, kind, names, users, all_in, grant_option, cascade, granted_by)


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


def _things(reader: TokenReader) -> tuple[str | None, tuple[Name, ...], bool]:
    """Parse ON. Returns the kind and names of the objects, and whether the names are schemas that contain them."""
    reader.expect("ON")
    if reader.accept("ALL"):
        kind = next((kind for words, kind in _PLURALS.items() if reader.accept(*words.split())), None)
        if kind is None:
            raise reader.syntax_error()
        reader.expect("IN", "SCHEMA")
        return kind, reader.comma_separated(reader.name), True
    kind = next((kind for kind in PRIVILEGES if reader.accept(*kind.upper().split())), None)
    return kind, reader.comma_separated(reader.name), False


def _granted_by(reader: TokenReader) -> tuple[str, int] | None:
    return reader.placed_identifier() if reader.accept("GRANTED", "BY") else None
