"""Parsing of GRANT and REVOKE (RisingWave: src/sqlparser/src/parser.rs, parse_grant_revoke_privileges_objects)."""

from __future__ import annotations

from catalog import errors
from catalog.errors import Error
from catalog.users import PRIVILEGES
from planner.parse.tokens import TokenReader
from planner.statements import ChangePrivileges, Name

_KNOWN = frozenset(privilege for privileges in PRIVILEGES.values() for privilege in privileges)
# What ALL … IN SCHEMA may name.
_PLURALS = {
    "TABLES": "table",
    "VIEWS": "view",
    "MATERIALIZED VIEWS": "materialized view",
    "SINKS": "sink",
    "SOURCES": "source",
}


def parse_grant(reader: TokenReader) -> ChangePrivileges:
    """`GRANT {ALL [PRIVILEGES] | privilege, …} ON … TO user, … [WITH GRANT OPTION] [GRANTED BY user]`."""
    reader.expect("GRANT")
    privileges = _privileges(reader)
    kind, names, all_in = _things(reader)
    reader.expect("TO")
    users = reader.comma_separated(reader.placed_identifier)
    grant_option = reader.accept("WITH", "GRANT", "OPTION")
    granted_by = _granted_by(reader)
    reader.finish()
    return ChangePrivileges(
        False, privileges, kind, names, users, all_in, grant_option=grant_option, granted_by=granted_by
    )


def parse_revoke(reader: TokenReader) -> ChangePrivileges:
    """`REVOKE [GRANT OPTION FOR] … ON … FROM user, … [GRANTED BY user] [CASCADE | RESTRICT]`."""
    reader.expect("REVOKE")
    grant_option = reader.accept("GRANT", "OPTION", "FOR")
    privileges = _privileges(reader)
    kind, names, all_in = _things(reader)
    reader.expect("FROM")
    users = reader.comma_separated(reader.placed_identifier)
    granted_by = _granted_by(reader)
    cascade = reader.cascade()
    reader.finish()
    return ChangePrivileges(True, privileges, kind, names, users, all_in, grant_option, cascade, granted_by)


def _privileges(reader: TokenReader) -> tuple[tuple[str, int], ...]:
    """Raises Error 0A000 for privileges on columns, and for roles, which nobody can be a member of."""
    if reader.accept("ALL"):
        reader.accept("PRIVILEGES")
        return ()
    found = reader.comma_separated(reader.placed_identifier)
    if reader.peek() == "(":
        message = "privileges on columns are not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    if reader.peek() in ("TO", "FROM"):
        message = "membership of a role in another is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=found[0][1])
    for privilege, position in found:
        if privilege.upper() not in _KNOWN:
            message = f'unrecognized privilege type "{privilege}"'
            raise Error(message, errors.SYNTAX_ERROR, position=position)
    return tuple((privilege.upper(), position) for privilege, position in found)


def _things(reader: TokenReader) -> tuple[str | None, tuple[Name, ...], bool]:
    """Kind and names of what the privileges are on, and whether they are schemas full of it."""
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
