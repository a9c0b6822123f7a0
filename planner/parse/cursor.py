"""DECLARE, FETCH, MOVE and CLOSE, as PostgreSQL's grammar has them and, for subscriptions, RisingWave's."""

from __future__ import annotations

from collections.abc import Callable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.durations import duration
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import CloseCursor, DeclareCursor, DeclareSubscriptionCursor, Fetch, Query, Statement


def parse_declare(reader: TokenReader, parse: Callable[[str], Statement]) -> DeclareCursor | DeclareSubscriptionCursor:
    """Parse `DECLARE name [BINARY] [[NO] SCROLL] CURSOR [WITH HOLD] FOR query`; `parse` reads the query.

    Or `DECLARE name SUBSCRIPTION CURSOR FOR subscription [SINCE time | FULL]`.
    """
    reader.expect("DECLARE")
    name = reader.identifier()
    if reader.accept("SUBSCRIPTION"):
        return _of_subscription(reader, name)
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
    query = parse(reader.blanked())
    if not isinstance(query, Query):
        raise reader.syntax_error()
    return DeclareCursor(name, query.tree, is_binary, holds, scrolls, query.reads_past, query.reads_internal)


def _of_subscription(reader: TokenReader, name: str) -> DeclareSubscriptionCursor:
    reader.expect("CURSOR", "FOR")
    subscription = reader.name()
    position = reader.offset + 1
    since: str | int = "now"
    if reader.accept("FULL"):
        since = "full"
    elif reader.accept("SINCE"):
        position = reader.offset + 1
        since = _since(reader)
    reader.finish()
    return DeclareSubscriptionCursor(name, subscription, since, position)


def _since(reader: TokenReader) -> str | int:
    if reader.peek().isdigit():
        return reader.integer()
    word = next((word for word in ("NOW", "PROCTIME", "BEGIN") if reader.accept(word)), None)
    if word is None:
        error = reader.syntax_error()
        error.hint = "SINCE takes NOW(), PROCTIME(), BEGIN() or milliseconds since 1970."
        raise error
    if reader.accept("("):
        reader.expect(")")
    return "begin" if word == "BEGIN" else "now"


# Directions that give a count of rows without a number.
_FIXED = {"NEXT": ("forward", 1), "PRIOR": ("backward", 1), "FIRST": ("absolute", 1), "LAST": ("absolute", -1)}
_COUNTED = ("ABSOLUTE", "RELATIVE")


def parse_fetch(reader: TokenReader) -> Fetch:
    """Parse `FETCH | MOVE [direction] [FROM | IN] cursor [WITH (timeout = '1s')]`.

    The last word is the cursor, even if it could be another keyword.
    """
    moves = reader.accept("MOVE")
    if not moves:
        reader.expect("FETCH")
    is_bare = reader.peek(1) == "" or (reader.peek(1), reader.peek(2)) == ("WITH", "(")
    way, count = ("forward", 1) if is_bare else _direction(reader)
    _ = reader.accept("FROM") or reader.accept("IN")
    cursor = reader.identifier()
    timeout_s = _timeout(reader) if reader.accept("WITH") else 0
    reader.finish()
    return Fetch(cursor, way, count, moves, timeout_s)


def _timeout(reader: TokenReader) -> float:
    """Parse `(timeout = 'interval')`. Raises Error 22023 for anything but an interval."""
    reader.expect("(", "TIMEOUT", "=")
    position = reader.offset + 1
    text = reader.value()
    reader.expect(")")
    try:
        return duration(text)
    except ValueError as error:
        message = f'invalid timeout: "{text}"'
        raise Error(message, errors.INVALID_PARAMETER_VALUE, hint=str(error), position=position) from error


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
    """Parse `CLOSE name | ALL`; the name is None for ALL."""
    reader.expect("CLOSE")
    name = None if reader.accept("ALL") else reader.identifier()
    reader.finish()
    return CloseCursor(name)
