"""Parsing of CREATE, ALTER and DROP TYPE and DOMAIN (PostgreSQL: src/backend/parser/gram.y, DefineStmt)."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type
from sparkwave.planner.parse.alter_table import add_constraint, alter_column, drop_constraint
from sparkwave.planner.parse.rename import unsupported
from sparkwave.planner.parse.table import column_definition
from sparkwave.planner.parse.tokens import TokenReader, syntax_error
from sparkwave.planner.parse.trees import parse_tree
from sparkwave.planner.parse.type_text import read_type
from sparkwave.planner.statements import (
    AddAttribute,
    AddLabel,
    AlterAttributes,
    AlterDomain,
    AlterOwner,
    AttributeAction,
    CreateDomain,
    CreateType,
    DomainAction,
    DropAttribute,
    DropType,
    Name,
    PlaceType,
    RenameAttribute,
    RenameConstraint,
    RenameLabel,
    SetAttributeType,
    SetType,
)


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
_VALUE = "value"
_COLUMN = f"CREATE TABLE t ({_VALUE} "


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
        hint = f"Write CHECK (length(value) <= {value.length})." if value.length is not None else None
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=start + 1)
    return CreateDomain(name, value)


def parse_alter_type(reader: TokenReader) -> AddLabel | RenameLabel | AlterAttributes | PlaceType | AlterOwner:
    """Parse from the word after TYPE on. Raises Error 42601, and 0A000 for SET of properties."""
    name = reader.name()
    placed = _placed(reader, name)
    if placed is not None:
        return placed
    found: AddLabel | RenameLabel | AlterAttributes
    if reader.accept("ADD", "VALUE"):
        if_not_exists = reader.accept("IF", "NOT", "EXISTS")
        label = reader.string()
        is_before = reader.accept("BEFORE")
        neighbour = reader.string() if is_before or reader.accept("AFTER") else None
        found = AddLabel(name, label, if_not_exists, neighbour, is_before)
    elif reader.accept("RENAME", "VALUE"):
        label = reader.string()
        reader.expect("TO")
        found = RenameLabel(name, label, reader.string())
    elif reader.accept("RENAME", "ATTRIBUTE"):
        attribute = reader.identifier()
        reader.expect("TO")
        found = AlterAttributes(name, (RenameAttribute(attribute, reader.identifier()),))
        reader.cascade()
    else:
        found = AlterAttributes(name, reader.comma_separated(lambda: _attribute_action(reader)))
    reader.finish()
    return found


def _placed(reader: TokenReader, name: Name, is_domain: bool = False) -> PlaceType | AlterOwner | None:
    found: PlaceType | AlterOwner
    if reader.accept("RENAME", "TO"):
        new_name, position = reader.placed_identifier()
        found = PlaceType(name, new_name, None, position, is_domain)
    elif reader.accept("SET", "SCHEMA"):
        schema, position = reader.placed_identifier()
        found = PlaceType(name, None, schema, position, is_domain)
    elif reader.accept("OWNER", "TO"):
        found = AlterOwner("domain" if is_domain else "type", name, *reader.placed_identifier())
    else:
        return None
    reader.finish()
    return found


def _attribute_action(reader: TokenReader) -> AttributeAction:
    position = reader.offset + 1
    found: AttributeAction
    if reader.accept("ADD", "ATTRIBUTE"):
        found = AddAttribute(*_field(reader))
    elif reader.accept("DROP", "ATTRIBUTE"):
        if_exists = reader.accept("IF", "EXISTS")
        found = DropAttribute(reader.identifier(), if_exists)
    elif reader.accept("ALTER", "ATTRIBUTE"):
        attribute = reader.identifier()
        reader.accept("SET", "DATA")
        reader.expect("TYPE")
        found = SetAttributeType(attribute, read_type(reader))
    else:
        hint = "ADD and RENAME VALUE are, ADD, DROP, ALTER and RENAME ATTRIBUTE, RENAME TO, SET SCHEMA and OWNER TO."
        raise unsupported("type", position, hint)
    reader.cascade()
    return found


def parse_alter_domain(reader: TokenReader) -> AlterDomain | PlaceType | AlterOwner:
    """Parse from the word after DOMAIN on. Raises Error 42601, 0A000."""
    name = reader.name()
    position = reader.offset + 1
    placed = _placed(reader, name, is_domain=True)
    if placed is not None:
        return placed
    action: DomainAction | None
    if reader.accept("VALIDATE", "CONSTRAINT"):
        reader.identifier()
        action = None
    elif reader.accept("RENAME", "CONSTRAINT"):
        constraint, position = reader.placed_identifier()
        reader.expect("TO")
        action = RenameConstraint(constraint, position, reader.identifier())
    elif reader.accept("DROP", "CONSTRAINT"):
        action = drop_constraint(reader)
    elif reader.accept("ADD"):
        action = add_constraint(reader, reader.offset + 1)
    elif reader.peek() in ("SET", "DROP"):
        changed = alter_column(reader, _VALUE, position)
        if isinstance(changed, SetType):
            raise syntax_error(reader.sql, position - 1)
        action = changed
    else:
        hint = (
            "SET and DROP DEFAULT are, SET and DROP NOT NULL, ADD, DROP and RENAME CONSTRAINT, RENAME TO, SET SCHEMA."
        )
        raise unsupported("domain", position, hint)
    reader.finish()
    return AlterDomain(name, action)


def parse_drop_type(reader: TokenReader) -> DropType:
    """Parse from the word after TYPE or DOMAIN on."""
    return DropType(*reader.dropped())
