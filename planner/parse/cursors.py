"""DECLARE, FETCH, MOVE and CLOSE, as PostgreSQL's grammar has them."""

from __future__ import annotations

from collections.abc import Callable

from planner.parse.tokens import TokenReader
from planner.parse.trees import blank
from planner.statements import CloseCursor, DeclareCursor, Fetch, Query, Statement


def parse_declare(reader: TokenReader, parse: Callable[[str], Statement]) -> DeclareCursor:
    """`DECLARE name [BINARY] [[NO] SCROLL] CURSOR [WITH HOLD] FOR query`; `parse` reads the query."""
    reader.expect("DECLARE")
    name = reader.identifier()
    is_binary = scrolls = False
    while not reader.accept("CURSOR"):
        if reader.accept("BINARY"):
            is_binary = True
        elif reader.accept("SCROLL"):
            scrolls = True
        elif not (reader.accept("NO", "SCROLL") or reader.accept("INSENSITIVE") or reader.accept("ASENSITIVE")):
            raise reader.syntax_error()
    holds = reader.accept("WITH", "HOLD")
    if not holds:
        reader.accept("WITHOUT", "HOLD")
    reader.expect("FOR")
    query = parse(blank(reader.sql[: reader.offset]) + reader.rest)
    if not isinstance(query, Query):
        raise reader.syntax_error()
    return DeclareCursor(name, query.tree, is_binary, holds, scrolls)


# Directions that say how many rows without a number.
_FIXED = {"NEXT": ("forward", 1), "PRIOR": ("backward", 1), "FIRST": ("absolute", 1), "LAST": ("absolute", -1)}
_COUNTED = ("ABSOLUTE", "RELATIVE")


def parse_fetch(reader: TokenReader) -> Fetch:
    """`FETCH | MOVE [direction] [FROM | IN] cursor`. The last word is the cursor, whatever else it could mean."""
    moves = reader.accept("MOVE")
    if not moves:
        reader.expect("FETCH")
    way, count = _direction(reader) if reader.peek(1) else ("forward", 1)
    _ = reader.accept("FROM") or reader.accept("IN")
    cursor = reader.identifier()
    reader.finish()
    return Fetch(cursor, way, count, moves)


def _direction(reader: TokenReader) -> tuple[str, int | None]:
    word = reader.peek()
    if word in _FIXED:
        reader.accept(word)
        return _FIXED[word]
    if word in _COUNTED:
        reader.accept(word)
        return word.lower(), _signed(reader)
    way = next((way for way in ("FORWARD", "BACKWARD") if reader.accept(way)), "FORWARD").lower()
    if reader.accept("ALL"):
        return way, None
    return way, _signed(reader) if reader.peek() == "-" or reader.peek().isdigit() else 1


def _signed(reader: TokenReader) -> int:
    sign = -1 if reader.accept("-") else 1
    reader.accept("+")
    return sign * reader.integer()


def parse_close(reader: TokenReader) -> CloseCursor:
    reader.expect("CLOSE")
    name = None if reader.accept("ALL") else reader.identifier()
    reader.finish()
    return CloseCursor(name)
