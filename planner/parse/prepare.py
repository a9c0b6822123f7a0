"""PREPARE, EXECUTE and DEALLOCATE, as PostgreSQL's grammar has them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import Type
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.parse.trees import parse_tree
from sparkwave.planner.parse.type_text import written_type
from sparkwave.planner.statements import (
    Deallocate,
    Delete,
    Execute,
    Insert,
    Merge,
    Prepare,
    Query,
    Statement,
    Update,
    WithWrites,
)

_PREPARED = (Query, Insert, Update, Delete, Merge, WithWrites)


def parse_prepare(reader: TokenReader, parse: Callable[[str], Statement]) -> Prepare:
    """Parse `PREPARE name [(type, …)] AS statement`; `parse` reads the statement."""
    reader.expect("PREPARE")
    if reader.peek() == "TRANSACTION":
        raise Error("PREPARE TRANSACTION is not supported", errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    name = reader.identifier()
    types = reader.parenthesised(lambda: _type(reader)) if reader.peek() == "(" else ()
    reader.expect("AS")
    statement = parse(reader.blanked())
    if not isinstance(statement, _PREPARED):
        raise reader.syntax_error()
    return Prepare(name, types, statement)


def _type(reader: TokenReader) -> Type:
    """Parse a type that ends before a comma or parenthesis."""
    start, index, depth = reader.offset, reader.index, 0
    while depth or reader.peek() not in (",", ")"):
        if reader.at_end:
            raise reader.syntax_error()
        depth += {"(": 1, "<": 1, ")": -1, ">": -1}.get(reader.peek(), 0)
        reader.skip()
    return written_type(reader.text_since(index), start + 1)


def parse_execute(reader: TokenReader) -> Execute:
    """Parse `EXECUTE name [(value, …)]`."""
    reader.expect("EXECUTE")
    name = reader.identifier()
    if reader.at_end:
        return Execute(name, ())
    if reader.peek() != "(" or reader.peek(1) == ")":
        raise reader.syntax_error()
    # The values keep their positions in the text, after a word that is no longer than EXECUTE.
    tree = parse_tree("VALUES".ljust(reader.offset) + reader.rest)
    if not isinstance(tree, exp.Values) or len(tree.expressions) != 1:
        raise reader.syntax_error()
    row = tree.expressions[0]
    return Execute(name, tuple(row.expressions if isinstance(row, exp.Tuple) else (row,)))


def parse_deallocate(reader: TokenReader) -> Deallocate:
    """Parse `DEALLOCATE [PREPARE] name | ALL`; the name is None for ALL."""
    reader.expect("DEALLOCATE")
    if reader.peek(1):
        reader.accept("PREPARE")
    name = None if reader.accept("ALL") else reader.identifier()
    reader.finish()
    return Deallocate(name)
