"""Parsing of the clauses that connect a table to a connector."""

from __future__ import annotations

import re

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import literal, quote_if_needed
from sparkwave.catalog.source_model import MASK, is_secret
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.parse.with_options import CONNECTION
from sparkwave.planner.statements import Connector, Option

_DEFAULT = "default"


def begins_connector(reader: TokenReader) -> bool:
    """Return whether the clauses of a connector follow. Other options in WITH belong to the table."""
    if reader.peek() in ("INCLUDE", "FROM"):
        return True
    if reader.peek() != "WITH" or reader.peek(1) != "(":
        return False
    return any(reader.peek(ahead).strip("'\"").lower() == "connector" for ahead in range(2, 2000))


def parse_connector(reader: TokenReader) -> Connector:
    """Parse `[INCLUDE what [AS column] …] {WITH (…) [FORMAT … ENCODE … [(…)]] | FROM source TABLE 'table'}`.

    Raises Error 42601 without WITH.
    """
    includes = []
    while reader.accept("INCLUDE"):
        includes.append(_include(reader))
    position = reader.offset + 1
    if reader.accept("FROM"):
        shared = reader.name()
        reader.expect("TABLE")
        return Connector((), "", "", (), tuple(includes), position, shared, reader.string())
    if not reader.accept("WITH"):
        raise missing_with(position)
    options = _options(reader)
    format_ = encode = ""
    encode_options: tuple[Option, ...] = ()
    if reader.accept("FORMAT"):
        format_ = reader.identifier().upper()
        reader.expect("ENCODE")
        encode = reader.identifier().upper()
        encode_options = _options(reader) if reader.peek() == "(" else ()
    return Connector(options, format_, encode, encode_options, tuple(includes), position)


def missing_with(position: int) -> Error:
    """Return RisingWave's error for a source without options."""
    return Error(
        "missing WITH clause",
        errors.SYNTAX_ERROR,
        hint="A source needs WITH (connector = '…', …).",
        position=position,
    )


def connector_text(connector: Connector) -> str:
    """Return the clauses as normalised text, without secret values."""
    includes = [f"INCLUDE {what} AS {quote_if_needed(column)}" for what, column, _ in connector.includes]
    if connector.shared is not None:
        return " ".join([*includes, f"FROM {connector.shared.sql} TABLE {literal(connector.table)}"])
    parts = [*includes, f"WITH {_listed(connector.options)}"]
    if connector.format:
        parts.append(f"FORMAT {connector.format} ENCODE {connector.encode}")
        parts += [_listed(connector.encode_options)] if connector.encode_options else []
    return " ".join(parts)


def _listed(options: tuple[Option, ...]) -> str:
    return f"({', '.join(f'{option.name} = {_shown(option)}' for option in options)})"


def _shown(option: Option) -> str:
    if option.secret is not None:
        return f"SECRET {option.secret.sql}"
    if option.connection is not None:
        return option.connection.sql
    return literal(MASK if is_secret(option.name) else option.value)


def _include(reader: TokenReader) -> tuple[str, str, int]:
    position = reader.offset + 1
    what = reader.identifier()
    column = reader.identifier() if reader.accept("AS") else f"_rw_{what}"
    return what, column, position


def _options(reader: TokenReader) -> tuple[Option, ...]:
    """Parse `(name = value, …)`; as in RisingWave a comma may end the list.

    Raises Error 42601, 22023 for duplicates.
    """
    reader.expect("(")
    found: dict[str, Option] = {}
    while not reader.accept(")"):
        option = _option(reader)
        if option.name in found:
            raise Error(f"Duplicated option: {option.name}", errors.INVALID_PARAMETER_VALUE, position=option.position)
        found[option.name] = option
        if not reader.accept(",") and reader.peek() != ")":
            raise reader.syntax_error()
    return tuple(found.values())


def _option(reader: TokenReader) -> Option:
    """Parse an option.

    The parts of a name like `fields.v.start` fold to lower case unless quoted; the last may be a number.
    """
    position, name = reader.offset + 1, reader.option_name()
    reader.expect("=")
    value_position = reader.offset + 1
    if name == CONNECTION:
        return Option(name, "", position, value_position, connection=reader.name())
    secret = reader.secret()
    value = "" if secret is not None else _value(reader)
    return Option(name, value, position, value_position, secret=secret)


def _value(reader: TokenReader) -> str:
    """Parse a value; in E'…' only the escapes of possible delimiters are known."""
    start = reader.offset
    if reader.sql[start : start + 2] not in ("E'", "e'"):
        return reader.value()
    written = reader.sql[start + 2 : reader.end_of_token - 1]
    reader.skip()
    return written.replace(r"\t", "\t").replace(r"\\", "\\")


def rate_limit(text: str, position: int | None) -> int | None:
    """Return a limit in rows a second; None, no limit, for DEFAULT or a negative number. Raises Error 22023."""
    if text == _DEFAULT:
        return None
    if not re.fullmatch(r"-?\d+", text) or int(text) >= 2**32:
        raise Error(
            f"invalid value for source_rate_limit: {text}",
            errors.INVALID_PARAMETER_VALUE,
            hint="It is a number of rows a second; 0 pauses the source, DEFAULT is no limit.",
            position=position,
        )
    return int(text) if int(text) >= 0 else None
