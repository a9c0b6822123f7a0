"""Parsing of CREATE, ALTER and DROP TYPE (PostgreSQL: src/backend/parser/gram.y, DefineStmt and AlterEnumStmt)."""

from __future__ import annotations

from catalog import errors
from catalog.errors import Error
from catalog.types import Type
from planner.parse.tokens import TokenReader
from planner.parse.type_text import read_type
from planner.statements import AddLabel, CreateType, DropType


def parse_create_type(reader: TokenReader) -> CreateType:
    """From the word after TYPE on. Raises Error 0A000 for other types than enums and composite ones."""
    name = reader.name()
    if reader.accept("AS", "ENUM"):
        labels = () if reader.accept("(", ")") else reader.parenthesised(reader.string)
        reader.finish()
        return CreateType(name, labels=labels)
    if not reader.accept("AS") or reader.peek() != "(":
        message = "only enums and composite types can be created"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    fields = () if reader.accept("(", ")") else reader.parenthesised(lambda: _field(reader))
    reader.finish()
    return CreateType(name, fields=fields)


def _field(reader: TokenReader) -> tuple[str, Type]:
    return reader.identifier(), read_type(reader)


def parse_alter_type(reader: TokenReader) -> AddLabel:
    """From the word after TYPE on. Raises Error 0A000 for other changes than ADD VALUE."""
    name = reader.name()
    if not reader.accept("ADD", "VALUE"):
        message = "of ALTER TYPE only ADD VALUE is supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    label = reader.string()
    is_before = reader.accept("BEFORE")
    neighbour = reader.string() if is_before or reader.accept("AFTER") else None
    reader.finish()
    return AddLabel(name, label, if_not_exists, neighbour, is_before)


def parse_drop_type(reader: TokenReader) -> DropType:
    """From the word after TYPE on."""
    if_exists = reader.accept("IF", "EXISTS")
    names = reader.comma_separated(reader.name)
    cascade = reader.cascade()
    reader.finish()
    return DropType(names, if_exists, cascade)
