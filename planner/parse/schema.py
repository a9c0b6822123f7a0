"""Parsing of CREATE, DROP and ALTER SCHEMA (RisingWave: src/sqlparser/src/parser.rs, parse_create_schema)."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import AlterOwner, CreateSchema, DropSchema, Name, RenameSchema


def parse_create_schema(reader: TokenReader) -> CreateSchema:
    """Parse CREATE SCHEMA after that word: `[IF NOT EXISTS] {name [AUTHORIZATION user] | AUTHORIZATION user}`."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = None if reader.peek() == "AUTHORIZATION" else reader.name()
    owner = None
    if reader.accept("AUTHORIZATION"):
        owner = reader.placed_identifier()
    if reader.peek() in ("CREATE", "GRANT"):
        message = "CREATE SCHEMA with the things in it is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    reader.finish()
    if name is None:
        assert owner is not None
        name = Name(None, None, *owner)
    return CreateSchema(name, owner, if_not_exists)


def parse_drop_schema(reader: TokenReader) -> DropSchema:
    """Parse DROP SCHEMA from the word after SCHEMA on: `[IF EXISTS] name, … [CASCADE | RESTRICT]`."""
    return DropSchema(*reader.dropped())


def parse_alter_schema(reader: TokenReader) -> RenameSchema | AlterOwner:
    """Parse ALTER SCHEMA from the schema's name on: `{RENAME TO name | OWNER TO user}`."""
    name = reader.name()
    if reader.accept("RENAME", "TO"):
        statement: RenameSchema | AlterOwner = RenameSchema(name, *reader.placed_identifier())
    else:
        reader.expect("OWNER", "TO")
        statement = AlterOwner("schema", name, *reader.placed_identifier())
    reader.finish()
    return statement
