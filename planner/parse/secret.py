"""Parsing of CREATE, ALTER and DROP SECRET, and of options whose value is one (RisingWave: src/sqlparser/src/ast)."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.parse.with_options import parse_options
from sparkwave.planner.statements import AlterOwner, AlterSecret, CreateSecret, DropSecret


def parse_create_secret(reader: TokenReader) -> CreateSecret:
    """Parse CREATE SECRET from the word after SECRET on: `[IF NOT EXISTS] name WITH (backend = 'meta') AS 'value'`.

    Raises Error 22023 for another backend.
    """
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    reader.expect("WITH")
    value = _value(reader)
    return CreateSecret(name, value, if_not_exists)


def parse_alter_secret(reader: TokenReader) -> AlterSecret | AlterOwner:
    """Parse ALTER SECRET after that word: `[IF EXISTS] name {[WITH (backend = 'meta')] AS 'value' | OWNER TO role}`."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    if not if_exists and reader.accept("OWNER", "TO"):
        owner = AlterOwner("secret", name, *reader.placed_identifier())
        reader.finish()
        return owner
    value = _value(reader) if reader.accept("WITH") else _text(reader)
    return AlterSecret(name, value, if_exists)


def _value(reader: TokenReader) -> str:
    """Parse from the options of WITH on."""
    position = reader.offset + 1
    options = {option.name: option for option in parse_options(reader)}
    backend = options.get("backend")
    if backend is None:
        raise Error("missing field `backend`", errors.INVALID_PARAMETER_VALUE, position=position)
    if backend.value != "meta":
        message = f'secret backend "{backend.value}" is not supported'
        hint = "The backend is meta."
        raise Error(message, errors.INVALID_PARAMETER_VALUE, hint=hint, position=backend.position)
    if len(options) > 1:
        wrong = next(option for option in options.values() if option is not backend)
        message = f'unrecognized option of a secret: "{wrong.name}"'
        raise Error(message, errors.INVALID_PARAMETER_VALUE, position=wrong.position)
    return _text(reader)


def _text(reader: TokenReader) -> str:
    reader.expect("AS")
    value = reader.string()
    reader.finish()
    return value


def parse_drop_secret(reader: TokenReader) -> DropSecret:
    """Parse DROP SECRET from the word after SECRET on: `[IF EXISTS] name, … [CASCADE | RESTRICT]`."""
    return DropSecret(*reader.dropped())
