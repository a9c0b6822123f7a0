"""Parsing of ALTER SOURCE."""

from __future__ import annotations

from sparkwave.planner.parse.alter_job import Setting, parse_setting
from sparkwave.planner.parse.alter_table import column_actions, unsupported_alter
from sparkwave.planner.parse.rename import Naming, parse_naming
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import AlterTable


def parse_alter_source(reader: TokenReader) -> Naming | Setting | AlterTable:
    """Parse from after ALTER SOURCE on."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    position = reader.offset + 1
    if reader.peek() == "ADD":
        return AlterTable(name, column_actions(reader, "source"), if_exists, "source")
    found = parse_setting(reader, "source", name, if_exists) or parse_naming(reader, "source", name, if_exists)
    if found is None:
        raise unsupported_alter(position, "source")
    return found
