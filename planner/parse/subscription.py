"""Parsing of CREATE and ALTER SUBSCRIPTION.

RisingWave: src/sqlparser/src/ast/statement.rs, CreateSubscriptionStatement; parser.rs, parse_alter_subscription.
"""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import literal
from sparkwave.planner.parse.durations import duration
from sparkwave.planner.parse.rename import Naming, parse_naming, unsupported
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import AlterRetention, CreateSubscription, Name

RETENTION = "retention"


def parse_create_subscription(reader: TokenReader) -> CreateSubscription:
    """Parse CREATE SUBSCRIPTION after that word: `[IF NOT EXISTS] name FROM relation WITH (retention = '1D')`."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    reader.expect("FROM")
    upstream = reader.name()
    text, retention_s = "", None
    for option, value, position in reader.parenthesised(lambda: _option(reader)) if reader.accept("WITH") else ():
        if option != RETENTION:
            raise Error(
                f"unknown option of a subscription: {option}", errors.INVALID_PARAMETER_VALUE, position=position
            )
        text, retention_s = value, _retention(value, position)
    reader.finish()
    if retention_s is None:
        raise Error(
            "subscription retention time not set",
            errors.INVALID_PARAMETER_VALUE,
            hint="WITH (retention = '1D') keeps the changes of a day.",
            position=len(reader.sql.rstrip()) + 1,
        )
    return CreateSubscription(name, upstream, retention_s, if_not_exists, subscription_definition(name, upstream, text))


def subscription_definition(name: Name, upstream: Name, retention: str) -> str:
    """Return the statement that creates a subscription."""
    return f"CREATE SUBSCRIPTION {name.sql} FROM {upstream.sql} WITH ({RETENTION} = {literal(retention)})"


def parse_alter_subscription(reader: TokenReader) -> Naming | AlterRetention:
    """Parse ALTER SUBSCRIPTION after that word: `SET RETENTION {TO | =} '1D'`, or another name, schema or owner."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    start = reader.offset + 1
    if not reader.accept("SET", "RETENTION"):
        found = parse_naming(reader, "subscription", name, if_exists)
        if found is None:
            raise unsupported(
                "subscription", start, "SET RETENTION, RENAME TO, SET SCHEMA, OWNER TO and SWAP WITH are."
            )
        return found
    if not reader.accept("TO"):
        reader.expect("=")
    position = reader.offset + 1
    text = reader.value()
    reader.finish()
    return AlterRetention(name, text, _retention(text, position), if_exists)


def _option(reader: TokenReader) -> tuple[str, str, int]:
    name = reader.dotted_word()
    reader.expect("=")
    position = reader.offset + 1
    return name, reader.value(), position


def _retention(text: str, position: int) -> int:
    try:
        seconds = int(duration(text))
    except ValueError as error:
        message = f'invalid retention: "{text}"'
        raise Error(message, errors.INVALID_PARAMETER_VALUE, hint=str(error), position=position) from error
    if seconds < 1:
        raise Error("the retention is a second at least", errors.INVALID_PARAMETER_VALUE, position=position)
    return seconds
