"""Parsing of CREATE, ALTER and DROP TYPE and of CREATE DOMAIN (PostgreSQL: src/backend/parser/gram.y, DefineStmt)."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type
from sparkwave.planner.parse.table import column_definition
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.parse.trees import parse_tree
from sparkwave.planner.parse.type_text import read_type
from sparkwave.planner.statements import AddLabel, CreateDomain, CreateType, DropType


def parse_create_type(reader: TokenReader) -> CreateType:
    """Parse from the word after TYPE on. Raises Error 0A000 for other types than enums and composite ones."""
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


# After its name, a domain is written like a column.
_COLUMN = "CREATE TABLE t (value "


def parse_create_domain(reader: TokenReader) -> CreateDomain:
    """Parse from the word after DOMAIN on. Raises Error 0A000 for varchar(n) and for clauses that only columns have."""
    name = reader.name()
    reader.accept("AS")
    start = reader.offset
    try:
        node = parse_tree(f"{_COLUMN}{reader.rest})").find(exp.ColumnDef)
        assert node is not None
        value, is_key = column_definition(node, table=name.name)
    except Error as error:
        error.position = error.position + start - len(_COLUMN) if error.position else None
        raise
    if is_key or value.generated is not None or value.counts is not None or value.length is not None:
        message = "a domain has a type without a length, DEFAULT, NOT NULL and CHECK"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=start + 1)
    return CreateDomain(name, value)


def parse_alter_type(reader: TokenReader) -> AddLabel:
    """Parse from the word after TYPE on. Raises Error 0A000 for other changes than ADD VALUE."""
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
    """Parse from the word after TYPE or DOMAIN on."""
    return DropType(*reader.dropped())
