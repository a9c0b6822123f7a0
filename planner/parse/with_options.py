"""Parsing of WITH (…), and of FORMAT … ENCODE … (…)."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import Name, Option, SinkFormat

# The option whose value is the name of a connection, without quotes.
CONNECTION = "connection"


def parse_options(reader: TokenReader) -> tuple[Option, ...]:
    """Parse `(name = value, … [,])`. Raises Error 42601, or 22023 for a repeated name."""
    reader.expect("(")
    options = [_option(reader)]
    while reader.accept(",") and reader.peek() != ")":
        options.append(_option(reader))
    reader.expect(")")
    seen: set[str] = set()
    for option in options:
        if option.name in seen:
            raise Error(f"Duplicated option: {option.name}", errors.INVALID_PARAMETER_VALUE, position=option.position)
        seen.add(option.name)
    return tuple(options)


def parse_format(reader: TokenReader) -> SinkFormat | None:
    """Parse `FORMAT format ENCODE encode [(name = value, …)]`, if it follows."""
    position = reader.offset + 1
    if not reader.accept("FORMAT"):
        return None
    format_ = reader.identifier()
    reader.expect("ENCODE")
    encode = reader.identifier()
    return SinkFormat(format_, encode, parse_options(reader) if reader.peek() == "(" else (), position)


def _option(reader: TokenReader) -> Option:
    position = reader.offset + 1
    name = reader.option_name()
    reader.expect("=")
    value_position = reader.offset + 1
    if name == "backfill_order":
        return _backfill_order(reader, position)
    if name == CONNECTION:
        return Option(name, "", position, value_position, connection=reader.name())
    secret = reader.secret()
    if secret is not None:
        return Option(name, "", position, value_position, secret=secret)
    return Option(name, reader.value(), position, value_position)


def _backfill_order(reader: TokenReader, position: int) -> Option:
    """Parse `FIXED(a -> b, …)`, AUTO, NONE or DEFAULT (RisingWave: src/sqlparser/src/parser.rs)."""
    value_position = reader.offset + 1
    word = next((word for word in ("AUTO", "NONE", "DEFAULT", "FIXED") if reader.accept(word)), None)
    if word is None:
        error = reader.syntax_error()
        error.hint = "backfill_order is FIXED(a -> b, …), AUTO, NONE or DEFAULT, without quotes."
        raise error
    edges = reader.parenthesised(lambda: _edge(reader)) if word == "FIXED" else ()
    return Option("backfill_order", word.lower(), position, value_position, edges)


def _edge(reader: TokenReader) -> tuple[Name, Name]:
    before = reader.name()
    reader.expect("->")
    return before, reader.name()
