"""Parsing of CREATE, ALTER and DROP of USER or ROLE (RisingWave: src/sqlparser/src/ast/statement.rs, UserOptions)."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import AlterUser, CreateUser, DropUser, Password, RenameUser, UserOption

# The field of each option; NO before an option negates it.
_FLAGS = {
    "SUPERUSER": "is_super",
    "CREATEDB": "create_db",
    "CREATEUSER": "create_user",
    "CREATEROLE": "create_user",
    "LOGIN": "can_login",
}
# Options of Postgres that state what is always the case here.
_NO_EFFECT = ("INHERIT", "NOREPLICATION", "NOBYPASSRLS")


def parse_create_user(reader: TokenReader, is_role: bool) -> CreateUser:
    """Parse CREATE USER from the name on: `name [WITH] [option …]`."""
    name, position = reader.placed_identifier()
    return CreateUser(name, _options(reader), is_role, position)


def parse_alter_user(reader: TokenReader) -> AlterUser | RenameUser:
    """Parse ALTER USER from the name on: `name [WITH] option …` or `name RENAME TO name`."""
    name, position = reader.placed_identifier()
    if reader.accept("RENAME", "TO"):
        new_name, new_position = reader.placed_identifier()
        reader.finish()
        return RenameUser(name, new_name, position, new_position)
    return AlterUser(name, _options(reader), position)


def parse_drop_user(reader: TokenReader) -> DropUser:
    """Parse DROP USER from the word after USER on: `[IF EXISTS] name, …`."""
    if_exists = reader.accept("IF", "EXISTS")
    names = reader.comma_separated(reader.placed_identifier)
    reader.finish()
    return DropUser(names, if_exists)


def _options(reader: TokenReader) -> tuple[UserOption, ...]:
    """Parse options. Raises Error 42601 for contradicting or repeated ones, 0A000 for unsupported ones of Postgres."""
    reader.accept("WITH")
    found: dict[str, UserOption] = {}
    while not reader.at_end:
        option = _option(reader)
        if option is None:
            continue
        if option.field in found:
            raise Error("conflicting or redundant options", errors.SYNTAX_ERROR, position=option.position)
        found[option.field] = option
    return tuple(found.values())


def _option(reader: TokenReader) -> UserOption | None:
    """Parse the next option; None for one without effect."""
    position = reader.offset + 1
    if reader.accept("ENCRYPTED", "PASSWORD") or reader.accept("PASSWORD"):
        return UserOption("password", None if reader.accept("NULL") else Password(reader.string()), position)
    if reader.accept("VALID", "UNTIL"):
        return UserOption("valid_until", reader.string(), position)
    word = reader.peek()
    bare = word.removeprefix("NO")
    if bare in _FLAGS:
        reader.accept(word)
        return UserOption(_FLAGS[bare], word == bare, position)
    if word in _NO_EFFECT:
        reader.accept(word)
        return None
    if word in _UNSUPPORTED:
        raise Error(f"the option {word} of a user is not supported", errors.FEATURE_NOT_SUPPORTED, position=position)
    raise reader.syntax_error()


_UNSUPPORTED = (
    "NOINHERIT", "REPLICATION", "BYPASSRLS", "CONNECTION", "IN", "ROLE", "ADMIN", "USER", "SYSID", "OAUTH",
    "NOADMIN", "SET", "RESET",
)  # fmt: skip
