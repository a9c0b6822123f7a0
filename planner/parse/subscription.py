"""Parsing of CREATE SUBSCRIPTION (RisingWave: src/sqlparser/src/ast/statement.rs, CreateSubscriptionStatement)."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.durations import duration
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import CreateSubscription

RETENTION = "retention"


def parse_create_subscription(reader: TokenReader) -> CreateSubscription:
    """From the word after SUBSCRIPTION on: `[IF NOT EXISTS] name FROM relation WITH (retention = '1D')`."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    reader.expect("FROM")
    upstream = reader.name()
    before = reader.offset
    retention_s = None
    for option, value, position in reader.parenthesised(lambda: _option(reader)) if reader.accept("WITH") else ():
        if option != RETENTION:
            raise Error(
                f"unknown option of a subscription: {option}", errors.INVALID_PARAMETER_VALUE, position=position
            )
        retention_s = _retention(value, position)
    options = reader.sql[before : reader.offset].strip()
    reader.finish()
    if retention_s is None:
        raise Error(
            "subscription retention time not set",
            errors.INVALID_PARAMETER_VALUE,
            hint="WITH (retention = '1D') keeps the changes of a day.",
            position=len(reader.sql.rstrip()) + 1,
        )
    definition = f"CREATE SUBSCRIPTION {name.sql} FROM {upstream.sql} {options}"
    return CreateSubscription(name, upstream, retention_s, if_not_exists, definition)


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
