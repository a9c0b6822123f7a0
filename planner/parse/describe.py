"""Parsing of SHOW, DESCRIBE and KILL (RisingWave: src/sqlparser/src/parser.rs)."""

from __future__ import annotations

import re

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import Kill, Show, ShowChecksum, ShowCreate, ShowVariable, Statement

# Objects that SHOW lists; longer names come before their prefixes.
_LISTS = (
    "INTERNAL TABLES", "MATERIALIZED VIEWS", "SUBSCRIPTION CURSORS", "ALL", "CLUSTER", "CONNECTIONS", "CURSORS",
    "DATABASES", "FUNCTIONS", "JOBS", "PARAMETERS", "PROCESSLIST", "SCHEMAS", "SECRETS", "SINKS", "SOURCES",
    "SUBSCRIPTIONS", "TABLES", "VIEWS",
)  # fmt: skip
FRAGMENTS, FRAGMENT = "DESCRIBE FRAGMENTS", "DESCRIBE FRAGMENT"
# Properties of a relation that SHOW lists, by each spelling.
_OF_RELATION = {"COLUMNS": "COLUMNS", "INDEXES": "INDEXES", "INDEX": "INDEXES", "INDICES": "INDEXES"}
_CREATED = ("TABLE", "MATERIALIZED VIEW", "VIEW", "SOURCE", "SINK", "INDEX", "SUBSCRIPTION", "FUNCTION")


def parse_show(reader: TokenReader) -> Statement:
    """Parse SHOW of a list, of a relation's columns or indexes, of a CREATE statement, or of a variable."""
    reader.expect("SHOW")
    if reader.accept("TRANSACTION", "ISOLATION", "LEVEL"):
        return ShowVariable("transaction_isolation")
    if reader.accept("TIME", "ZONE"):
        return ShowVariable("timezone")
    if reader.accept("SESSION", "AUTHORIZATION"):
        return ShowVariable("session_authorization")
    if reader.accept("CREATE"):
        kind = next((kind for kind in _CREATED if reader.accept(*kind.split())), None)
        if kind is None:
            raise reader.syntax_error()
        created = reader.name()
        reader.finish()
        return ShowCreate(kind.lower(), created)
    if reader.accept("CHECKSUM"):
        summed = reader.name()
        reader.finish()
        return ShowChecksum(summed)
    if reader.peek() in _OF_RELATION and reader.peek(1) == "FROM":
        what = _OF_RELATION[reader.identifier().upper()]
        reader.expect("FROM")
        relation = reader.name()
        return _filtered(reader, Show(what, relation=relation))
    what = next((what for what in _LISTS if reader.accept(*what.split())), "")
    if what:
        return _filtered(reader, Show(what, reader.identifier() if reader.accept("FROM") else None))
    name = reader.dotted_word()
    reader.finish()
    return ShowVariable(name)


def _filtered(reader: TokenReader, show: Show) -> Show:
    like = ""
    if reader.peek() == "WHERE":
        message = "Feature is not yet implemented: WHERE clause in SHOW statement"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    if reader.accept("ILIKE"):
        like = f"(?i:{_pattern(reader.string())})"
    elif reader.accept("LIKE"):
        like = _pattern(reader.string())
    reader.finish()
    return Show(show.what, show.schema, show.relation, like or None)


def _pattern(like: str) -> str:
    """Return LIKE's pattern as a regular expression; a backslash escapes the next character."""
    parts = re.findall(r"\\.|.", like, re.DOTALL)
    return "".join({"%": ".*", "_": "."}.get(part) or re.escape(part[-1]) for part in parts)


def parse_describe(reader: TokenReader) -> Show:
    """Parse `DESCRIBE relation`, `DESCRIBE FRAGMENTS relation` or `DESCRIBE FRAGMENT id`."""
    if not reader.accept("DESC"):
        reader.expect("DESCRIBE")
    if reader.peek(1) not in ("", ".", ";"):  # else a relation of such a name
        if reader.accept("FRAGMENTS"):
            name = reader.name()
            reader.finish()
            return Show(FRAGMENTS, relation=name)
        if reader.accept("FRAGMENT"):
            position = reader.offset + 1
            number = reader.integer()
            reader.finish()
            return Show(FRAGMENT, fragment=(number, position))
    name = reader.name()
    reader.finish()
    return Show("DESCRIBE", relation=name)


def parse_kill(reader: TokenReader) -> Kill:
    """Parse KILL with an id of SHOW PROCESSLIST. Raises Error 22023 for an impossible id."""
    reader.expect("KILL")
    position = reader.offset + 1
    text = reader.value()
    reader.finish()
    if not re.fullmatch(r"\d{1,9}", text):
        raise Error(f'invalid process id: "{text}"', errors.INVALID_PARAMETER_VALUE, position=position)
    return Kill(int(text))
