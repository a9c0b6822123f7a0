"""Parsing of CREATE, DROP and ALTER DATABASE (RisingWave: src/sqlparser/src/parser.rs, parse_create_database)."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.alter_job import parse_resource_group
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import (
    AlterDatabase,
    AlterDatabaseParameter,
    AlterOwner,
    CreateDatabase,
    DatabaseParameter,
    DropDatabase,
    Name,
    RenameDatabase,
)


def parse_create_database(reader: TokenReader) -> CreateDatabase:
    """Parse after DATABASE: `[IF NOT EXISTS] name [WITH] [OWNER [=] user] [RESOURCE_GROUP [=] group]`.

    There are also `BARRIER_INTERVAL_MS [=] n` and `CHECKPOINT_FREQUENCY [=] n`. The options after WITH may be in
    parentheses.
    """
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name, position = reader.placed_identifier()
    is_list = reader.accept("WITH") and reader.accept("(")
    group: str | None = None
    owner: str | None = None
    parameters: list[DatabaseParameter] = []
    while reader.peek() in ("OWNER", "RESOURCE_GROUP", *_PARAMETERS):
        word = reader.identifier()
        reader.accept("=")
        if word == "resource_group":
            group = parse_resource_group(reader)
        elif word == "owner":
            owner = reader.value()
        else:
            parameters.append(_parameter(reader, word))
        reader.accept(",")
    if is_list:
        reader.expect(")")
    reader.finish()
    return CreateDatabase(name, group, if_not_exists, position, owner, tuple(parameters))


_PARAMETERS = ("BARRIER_INTERVAL_MS", "CHECKPOINT_FREQUENCY")


def _parameter(reader: TokenReader, name: str) -> DatabaseParameter:
    position = reader.offset + 1
    return DatabaseParameter(name, None if reader.accept("DEFAULT") else reader.value(), position)


def parse_drop_database(reader: TokenReader) -> DropDatabase:
    """Parse `[IF EXISTS] name` of DROP DATABASE."""
    if_exists = reader.accept("IF", "EXISTS")
    name, position = reader.placed_identifier()
    reader.finish()
    return DropDatabase(name, if_exists, position)


def parse_alter_database(
    reader: TokenReader,
) -> AlterDatabase | AlterDatabaseParameter | RenameDatabase | AlterOwner:
    """Parse from the database's name on.

    `{SET RESOURCE_GROUP {TO | =} group | RESET RESOURCE_GROUP} [DEFERRED]`, `SET parameter {TO | =} {n | DEFAULT}`,
    `RENAME TO name` or `OWNER TO user`.
    """
    name, position = reader.placed_identifier()
    if reader.accept("RENAME", "TO"):
        new_name, new_position = reader.placed_identifier()
        reader.finish()
        return RenameDatabase(name, new_name, position, new_position)
    if reader.accept("OWNER", "TO"):
        owner = AlterOwner("database", Name(None, None, name, position), *reader.placed_identifier())
        reader.finish()
        return owner
    parameter = next((word for word in _PARAMETERS if reader.accept("SET", word)), None)
    if parameter is not None:
        if not reader.accept("TO"):
            reader.expect("=")
        altered = AlterDatabaseParameter(name, position, _parameter(reader, parameter.lower()))
        reader.finish()
        return altered
    group: str | None = None
    if reader.accept("SET", "RESOURCE_GROUP"):
        if not reader.accept("TO"):
            reader.expect("=")
        group = parse_resource_group(reader)
    elif not reader.accept("RESET", "RESOURCE_GROUP"):
        raise Error(
            "this ALTER DATABASE is not supported",
            errors.FEATURE_NOT_SUPPORTED,
            hint="RENAME TO, OWNER TO, SET RESOURCE_GROUP, BARRIER_INTERVAL_MS and CHECKPOINT_FREQUENCY, and RESET "
            "RESOURCE_GROUP are.",
            position=reader.offset + 1,
        )
    reader.accept("DEFERRED")
    reader.finish()
    return AlterDatabase(name, group, position)
