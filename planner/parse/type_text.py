"""Types as they are written in statements: those there are, and names of types that a user may have made."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog.errors import UNDEFINED_OBJECT, Error
from sparkwave.catalog.types import Type, is_of_ours, parse_type, unresolved
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import Name

_ENDS = frozenset(
    {",", ")", "", "LANGUAGE", "AS", "RETURN", "RETURNS", "IMMUTABLE", "STABLE", "VOLATILE", "STRICT", "DEFAULT", "="}
)


def read_type(reader: TokenReader) -> Type:
    """The type that comes next. Raises Error 42704 for what is neither a type nor a name of one."""
    start = reader.offset
    type_words(reader)
    return written_type(reader.sql[start : reader.offset].strip(), start + 1)


def written_type(text: str, position: int | None = None) -> Type:
    """The type of a text, unresolved where it is a name with or without a schema. Raises Error 42704."""
    if is_of_ours(text):
        raise Error(f'type "{text}" does not exist', UNDEFINED_OBJECT, position=position)
    try:
        return parse_type(text).as_written
    except Error as error:
        name = _name(text) if error.sqlstate == UNDEFINED_OBJECT else None
        if name is not None:
            return unresolved(*name, position)
        error.position = position
        raise


def type_words(reader: TokenReader) -> int:
    """Step over all that may be a type, with what is in its parentheses. Returns how many tokens these are."""
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


# What a DataType is called that stands for a user's type.
NAMED = "named"


def user_type(kind: exp.Expr) -> Type | None:
    """The user's type that a DataType stands for (`planner.functions.typed`); None for any other."""
    is_enum = kind.args.get("this") == exp.DType.ENUM
    named = kind.meta.get(NAMED)
    if named is None and not is_enum:
        return None
    found = parse_type(kind.sql(dialect="duckdb"))
    return found if is_enum else replace(found, named=named)


def user_type_name(kind: exp.Expr) -> Name | None:
    """The name that a DataType is by which we have none: a user's, perhaps."""
    written = kind.args.get("kind")
    if kind.args["this"] != exp.DType.USERDEFINED or not isinstance(written, exp.Identifier | exp.Dot):
        return None
    parts = [_folded(part) for part in written.find_all(exp.Identifier)]
    return Name(None, parts[0] if len(parts) == 2 else None, parts[-1], 0) if len(parts) <= 2 else None


def _folded(identifier: exp.Expr) -> str:
    return identifier.name if identifier.args.get("quoted") else identifier.name.lower()


def _name(text: str) -> tuple[str | None, str, int] | None:
    """The schema, the name and the dimensions of `schema.name[]`; None for other texts."""
    reader, dimensions = TokenReader(text), 0
    try:
        name = reader.name()
        while reader.accept("[", "]"):
            dimensions += 1
        reader.finish()
    except Error:
        return None
    return (name.schema, name.name, dimensions) if name.database is None else None
