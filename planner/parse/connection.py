"""Parsing of CREATE, ALTER and DROP CONNECTION (RisingWave: src/sqlparser/src/parser.rs, parse_alter_connection)."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.rename import unsupported
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.parse.with_options import parse_options
from sparkwave.planner.statements import (
    AlterConnection,
    AlterOwner,
    CreateConnection,
    DropConnection,
    MoveConnection,
    Option,
)

_TYPE = "type"


def parse_create_connection(reader: TokenReader) -> CreateConnection:
    """Parse CREATE CONNECTION after that word: `[IF NOT EXISTS] name WITH (type = 'type', option = value, …)`.

    Raises Error 22023 without a type, or for an option that is a connection.
    """
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    reader.expect("WITH")
    position = reader.offset + 1
    options = _options(reader)
    reader.finish()
    kind = next((option for option in options if option.name == _TYPE), None)
    if kind is None:
        message = 'Required property "type" is not provided'
        raise Error(message, errors.INVALID_PARAMETER_VALUE, position=position)
    rest = tuple(option for option in options if option is not kind)
    return CreateConnection(name, kind.value, rest, if_not_exists, kind.value_position)


def parse_alter_connection(reader: TokenReader) -> AlterConnection | MoveConnection | AlterOwner:
    """Parse ALTER CONNECTION after that word: `name {CONNECTOR WITH (…) | SET SCHEMA schema | OWNER TO role}`."""
    name = reader.name()
    position = reader.offset + 1
    found: AlterConnection | MoveConnection | AlterOwner
    if reader.accept("CONNECTOR", "WITH"):
        options = _options(reader)
        kind = next((option for option in options if option.name == _TYPE), None)
        if kind is not None:
            message = "the type of a connection cannot be altered"
            raise Error(message, errors.INVALID_PARAMETER_VALUE, position=kind.position)
        found = AlterConnection(name, options)
    elif reader.accept("SET", "SCHEMA"):
        found = MoveConnection(name, *reader.placed_identifier())
    elif reader.accept("OWNER", "TO"):
        found = AlterOwner("connection", name, *reader.placed_identifier())
    else:
        raise unsupported("connection", position, "CONNECTOR WITH (…), SET SCHEMA and OWNER TO are.")
    reader.finish()
    return found


def parse_drop_connection(reader: TokenReader) -> DropConnection:
    """Parse DROP CONNECTION from the word after CONNECTION on: `[IF EXISTS] name, … [CASCADE | RESTRICT]`."""
    return DropConnection(*reader.dropped())


def _options(reader: TokenReader) -> tuple[Option, ...]:
    options = parse_options(reader)
    named = next((option for option in options if option.connection is not None), None)
    if named is not None:
        message = "Connection reference is not allowed in options in CREATE CONNECTION"
        raise Error(message, errors.INVALID_PARAMETER_VALUE, position=named.position)
    return options
