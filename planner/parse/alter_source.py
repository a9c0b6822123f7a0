"""Parsing of ALTER SOURCE, and of ALTER TABLE's actions on a connector."""

from __future__ import annotations

from sparkwave.planner.parse.alter_table import column_actions, unsupported_alter
from sparkwave.planner.parse.rename import Naming, parse_naming
from sparkwave.planner.parse.source import rate_limit
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import AlterSourceRateLimit, AlterTable, Name


def parse_alter_source(reader: TokenReader) -> Naming | AlterSourceRateLimit | AlterTable:
    """Parse from after ALTER SOURCE on."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    position = reader.offset + 1
    if reader.peek() == "ADD":
        return AlterTable(name, column_actions(reader, "source"), if_exists, "source")
    found = parse_source_rate_limit(reader, "source", name) or parse_naming(reader, "source", name, if_exists)
    if found is None:
        raise unsupported_alter(position, "source")
    return found


def parse_table_rate_limit(reader: TokenReader) -> AlterSourceRateLimit | None:
    """Parse from after ALTER TABLE on; None for anything but SET SOURCE_RATE_LIMIT."""
    if not any(reader.peek(ahead) == "SOURCE_RATE_LIMIT" and reader.peek(ahead - 1) == "SET" for ahead in range(1, 8)):
        return None
    return parse_source_rate_limit(reader, "table", reader.name())


def parse_source_rate_limit(reader: TokenReader, kind: str, name: Name) -> AlterSourceRateLimit | None:
    """Parse `SET SOURCE_RATE_LIMIT {TO | =} {n | DEFAULT}`; None for anything else."""
    if not reader.accept("SET", "SOURCE_RATE_LIMIT"):
        return None
    if not reader.accept("TO"):
        reader.expect("=")
    position = reader.offset + 1
    limit = rate_limit(reader.value(), position)
    reader.finish()
    return AlterSourceRateLimit(kind, name, limit)
