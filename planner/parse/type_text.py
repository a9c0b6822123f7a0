"""Reads types in statements: known types, and names that may be those of users' types."""

from __future__ import annotations

import re
from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog.errors import UNDEFINED_OBJECT, Error
from sparkwave.catalog.types import Type, duckdb_type, is_of_ours, parse_type, unresolved
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import Name

_ENDS = frozenset(
    {",", ")", "", "LANGUAGE", "AS", "RETURN", "RETURNS", "IMMUTABLE", "STABLE", "VOLATILE", "STRICT", "DEFAULT", "="}
)


# SQL's form of `type[]`.
_ARRAY = re.compile(r"\s+ARRAY(\s*\[\s*\d*\s*\])?\s*$", re.IGNORECASE)
_MODIFIERS = re.compile(r"\s*\([^()]*\)")


def read_type(reader: TokenReader) -> Type:
    """Read the type that follows. Raises Error 42704 for anything but a type or a name."""
    start, index = reader.offset, reader.index
    type_words(reader)
    return written_type(reader.text_since(index), start + 1)


def written_type(text: str, position: int | None = None) -> Type:
    """Return the type of a text, unresolved for a name with or without a schema. Raises Error 42704."""
    if is_of_ours(text):
        raise Error(f'type "{text}" does not exist', UNDEFINED_OBJECT, position=position)
    text = with_brackets(text)
    try:
        return parse_type(text).as_written
    except Error as error:
        name = _name(text) or _name(_MODIFIERS.sub("", text)) if error.sqlstate == UNDEFINED_OBJECT else None
        if name is not None:
            return unresolved(*name, position)
        error.position = position
        raise


def with_brackets(text: str) -> str:
    """Return the text of a type with `[]` for ARRAY."""
    return _ARRAY.sub("[]", text)


def type_words(reader: TokenReader) -> int:
    """Skip all tokens that may be a type, with parentheses and their contents. Returns the number of tokens."""
    count = depth = 0
    while depth or reader.peek() not in _ENDS:
        if reader.at_end:
            raise reader.syntax_error()
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(reader.peek(), 0)
        reader.skip()
        count += 1
    if not count:
        raise reader.syntax_error()
    return count


# Types of DuckDB by these names, which nobody may write.
ENGINES_OWN = frozenset({"bit", "inet", "timetz", "list", "geometry", "variant"})
# The key in a DataType's `meta` for a user's type.
NAMED = "named"


def user_type(kind: exp.Expr) -> Type | None:
    """Return the user's type of a DataType (`planner.functions.typed`); None for any other."""
    is_enum = kind.args.get("this") == exp.DType.ENUM
    named = kind.meta.get(NAMED)
    if named is None and not is_enum:
        return None
    found = duckdb_type(kind.sql(dialect="duckdb"))
    return found if is_enum else replace(found, named=named)


def user_type_name(kind: exp.Expr) -> Name | None:
    """Return the name in a DataType of an unknown type, which may be a user's; else None."""
    written = kind.args.get("kind")
    if kind.args["this"] != exp.DType.USERDEFINED or not isinstance(written, exp.Identifier | exp.Dot):
        return None
    parts = [folded(part) for part in written.find_all(exp.Identifier)]
    return Name(None, parts[0] if len(parts) == 2 else None, parts[-1], 0) if len(parts) <= 2 else None


def _name(text: str) -> tuple[str | None, str, int] | None:
    """Return the schema, the name and the dimensions of `schema.name[]`; None for other texts."""
    reader, dimensions = TokenReader(text), 0
    try:
        name = reader.name()
        while reader.accept("[", "]"):
            dimensions += 1
        reader.finish()
    except Error:
        return None
    return (name.schema, name.name, dimensions) if name.database is None else None
