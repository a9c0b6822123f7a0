"""Parsing of statements that change only a relation's name, schema or owner; and of COMMENT."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import AlterOwner, Comment, MoveRelation, Name, RenameRelation, SwapRelations

Naming = RenameRelation | MoveRelation | AlterOwner | SwapRelations


def parse_naming(reader: TokenReader, kind: str, name: Name, if_exists: bool = False) -> Naming | None:
    """Parse after the relation's name: RENAME TO, SET SCHEMA, OWNER TO or SWAP WITH; None for anything else.

    The new name has no schema (PostgreSQL: src/backend/parser/gram.y, RenameStmt).
    """
    found: Naming
    if reader.accept("RENAME", "TO"):
        found = RenameRelation(kind, name, *reader.placed_identifier(), if_exists)
    elif reader.accept("SET", "SCHEMA"):
        found = MoveRelation(kind, name, *reader.placed_identifier(), if_exists)
    elif reader.accept("OWNER", "TO"):
        found = AlterOwner(kind, name, *reader.placed_identifier(), if_exists)
    elif reader.accept("SWAP", "WITH"):
        found = SwapRelations(kind, name, reader.name())
    else:
        return None
    reader.finish()
    return found


def parse_alter_view(reader: TokenReader) -> Naming:
    """Parse from after ALTER VIEW on."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    position = reader.offset + 1
    found = parse_naming(reader, "view", name, if_exists)
    if found is None:
        raise unsupported("view", position, "RENAME TO, SET SCHEMA, OWNER TO and SWAP WITH are.")
    return found


def unsupported(kind: str, position: int, hint: str) -> Error:
    """Return an error for an unsupported ALTER of this kind; the hint tells what is supported."""
    message = f"this ALTER {kind.upper()} is not supported"
    return Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position)


# Kinds of objects with comments; a table is any relation, as in RisingWave.
_COMMENTED = (
    "TABLE",
    "VIEW",
    "MATERIALIZED VIEW",
    "INDEX",
    "SINK",
    "SOURCE",
    "SEQUENCE",
    "COLUMN",
    "CONSTRAINT",
    "SCHEMA",
    "DATABASE",
)


def parse_comment(reader: TokenReader) -> Comment:
    """Parse `COMMENT ON kind name IS {'text' | NULL}`."""
    reader.expect("COMMENT", "ON")
    position = reader.offset + 1
    kind = next((kind for kind in _COMMENTED if reader.accept(*kind.split())), None)
    if kind is None:
        if reader.at_end:
            raise reader.syntax_error()
        raise Error(
            f"COMMENT ON {reader.peek()} is not supported",
            errors.FEATURE_NOT_SUPPORTED,
            hint=f"COMMENT ON {', '.join(_COMMENTED)} is.",
            position=position,
        )
    column = None
    if kind == "COLUMN":
        name, column = _column(reader)
    elif kind == "CONSTRAINT":
        column = reader.placed_identifier()
        reader.expect("ON")
        name = reader.name()
    else:
        name = reader.name()
    reader.expect("IS")
    text = None if reader.accept("NULL") else reader.string()
    reader.finish()
    return Comment(kind.lower(), name, column, text)


def _column(reader: TokenReader) -> tuple[Name, tuple[str, int]]:
    """Parse a relation and, after the last dot, one of its columns."""
    position = reader.offset + 1
    parts = [reader.placed_identifier()]
    while reader.accept("."):
        parts.append(reader.placed_identifier())
    if len(parts) == 1:
        raise Error("column name must be qualified", errors.SYNTAX_ERROR, position=position)
    if len(parts) > 4:
        dotted = ".".join(part for part, _ in parts)
        raise Error(f"improper relation name (too many dotted names): {dotted}", errors.SYNTAX_ERROR, position=position)
    *relation, column = parts
    database, schema, name = ([None] * (3 - len(relation)) + [part for part, _ in relation])[-3:]
    assert name is not None
    return Name(database, schema, name, position), column
