"""Parsing of CREATE and ALTER SEQUENCE, and of an identity column's options.

PostgreSQL: src/backend/parser/gram.y, SeqOptList.
"""

from __future__ import annotations

from typing import Any

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.rename import parse_naming
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import AlterSequence, CreateSequence, Name, SequenceOptions, Statement


def parse_create_sequence(reader: TokenReader, is_temporary: bool = False) -> CreateSequence:
    """Parse CREATE SEQUENCE from the word after SEQUENCE on."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    options = parse_sequence_options(reader)
    reader.finish()
    return CreateSequence(name, options, if_not_exists, is_temporary)


def parse_alter_sequence(reader: TokenReader) -> Statement:
    """Parse ALTER SEQUENCE from the word after SEQUENCE on."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    naming = parse_naming(reader, "sequence", name, if_exists)
    if naming is not None:
        return naming
    options = parse_sequence_options(reader, may_restart=True)
    if options == SequenceOptions():
        raise reader.syntax_error()
    reader.finish()
    return AlterSequence(name, options, if_exists)


def parse_sequence_options(reader: TokenReader, may_restart: bool = False) -> SequenceOptions:
    """Parse options up to the first other word. Raises Error 42601 for a repeated option."""
    found: dict[str, Any] = {}
    while True:
        position = reader.offset + 1
        option = _option(reader, may_restart)
        if option is None:
            return SequenceOptions(**found)
        name, value = option
        if name in found:
            raise Error("conflicting or redundant options", errors.SYNTAX_ERROR, position=position)
        found[name] = value


# Words followed by a number, with an optional word before it; and words that are a value.
_NUMBERS = {
    "START": ("start", "WITH"), "INCREMENT": ("increment", "BY"), "MINVALUE": ("minimum", ""),
    "MAXVALUE": ("maximum", ""), "CACHE": ("cache", ""),
}  # fmt: skip
_WORDS: tuple[tuple[tuple[str, ...], str, object], ...] = (
    (("NO", "MINVALUE"), "minimum", ""),
    (("NO", "MAXVALUE"), "maximum", ""),
    (("NO", "CYCLE"), "cycles", False),
    (("CYCLE",), "cycles", True),
)


def _option(reader: TokenReader, may_restart: bool) -> tuple[str, object] | None:
    """Parse the next option and its value; None if no option follows."""
    if reader.peek() in _NUMBERS:
        name, between = _NUMBERS[reader.peek()]
        reader.skip()
        if between:
            reader.accept(between)
        return name, _number(reader)
    for words, name, value in _WORDS:
        if reader.accept(*words):
            return name, value
    if reader.accept("AS"):
        return "type", reader.identifier()
    if reader.accept("OWNED", "BY"):
        return "owned_by", _owner(reader)
    if may_restart and reader.accept("RESTART"):
        is_given = reader.accept("WITH") or reader.peek().isdigit() or reader.peek() in ("-", "+")
        return "restart", _number(reader) if is_given else True
    return None


def _number(reader: TokenReader) -> int:
    """Parse a number of 64 bits. Raises Error 22003."""
    sign = -1 if reader.accept("-") else 1
    if sign > 0:
        reader.accept("+")
    position = reader.offset + 1
    value = sign * reader.integer()
    if not -(2**63) <= value < 2**63:
        message = f'value "{value}" is out of range for type bigint'
        raise Error(message, errors.NUMERIC_VALUE_OUT_OF_RANGE, position=position)
    return value


def _owner(reader: TokenReader) -> tuple[Name, str] | tuple[()]:
    """Parse `table.column` or NONE."""
    position = reader.offset + 1
    parts = [reader.identifier()]
    while reader.accept("."):
        parts.append(reader.identifier())
    if parts == ["none"]:
        return ()
    if len(parts) not in (2, 3, 4):
        message, hint = "invalid OWNED BY option", "Specify OWNED BY table.column or OWNED BY NONE."
        raise Error(message, errors.SYNTAX_ERROR, hint=hint, position=position)
    *table, column = parts
    database, schema, name = ([None] * (3 - len(table)) + table)[-3:]
    assert name is not None
    return Name(database, schema, name, position), column
