"""Parsing of ALTER {MATERIALIZED VIEW | INDEX | SINK} … SET and … AS.

RisingWave: src/sqlparser/src/parser.rs, parse_alter_view, parse_alter_index, parse_alter_sink.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.relation_details import MATERIALIZED_VIEW
from sparkwave.planner.parse.rename import Naming, parse_naming
from sparkwave.planner.parse.sink import parse_streaming_query
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.plan.parallelism import (
    ADAPTIVE,
    DEFAULT,
    LARGEST,
    check_maximum,
    normalise_backfill_parallelism,
    normalise_parallelism,
)
from sparkwave.planner.statements import (
    AlterBackfillParallelism,
    AlterParallelism,
    AlterQuery,
    AlterRateLimit,
    AlterResourceGroup,
    Name,
)

AlterStreaming = AlterQuery | AlterRateLimit | AlterParallelism | AlterBackfillParallelism | AlterResourceGroup | Naming


def parse_alter_streaming(reader: TokenReader, kind: str) -> AlterStreaming:
    """Parse from the name of a relation of this kind on."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    position = reader.offset + 1
    if (naming := parse_naming(reader, kind, name, if_exists)) is not None:
        return naming
    if kind == MATERIALIZED_VIEW and reader.accept("AS"):
        return _query(reader, name, if_exists)
    if reader.accept("RESET", "RESOURCE_GROUP"):
        reset = AlterResourceGroup(kind, name, None, reader.accept("DEFERRED"))
        reader.finish()
        return reset
    if not reader.accept("SET") or reader.peek() not in _SETTINGS:
        raise Error(
            f"this ALTER {kind.upper()} is not supported",
            errors.FEATURE_NOT_SUPPORTED,
            hint="SET BACKFILL_RATE_LIMIT, PARALLELISM, BACKFILL_PARALLELISM, RESOURCE_GROUP and SCHEMA, RENAME TO, "
            "OWNER TO and SWAP WITH are, and AS of a materialized view.",
            position=position,
        )
    setting = _SETTINGS[reader.identifier().upper()]
    if not reader.accept("TO"):
        reader.expect("=")
    statement = setting(reader, kind, name)
    reader.finish()
    return statement


def _query(reader: TokenReader, name: Name, if_exists: bool) -> AlterQuery:
    start = reader.offset
    query, emits = parse_streaming_query(reader, start, len(reader.sql))
    return AlterQuery(name, query, reader.sql[start:].strip(), emits, if_exists)


def _rate_limit(reader: TokenReader, kind: str, name: Name) -> AlterRateLimit:
    position = reader.offset + 1
    text = reader.value()
    if text == DEFAULT:
        return AlterRateLimit(kind, name, None)
    if not re.fullmatch(r"-?\d+", text) or int(text) >= 2**32:
        raise Error(
            f"invalid value for backfill_rate_limit: {text}",
            errors.INVALID_PARAMETER_VALUE,
            hint="It is a number of rows a second; 0 pauses the backfill, DEFAULT is no limit.",
            position=position,
        )
    return AlterRateLimit(kind, name, int(text) if int(text) >= 0 else None)


def _parallelism(reader: TokenReader, kind: str, name: Name) -> AlterParallelism:
    found = _checked(reader, normalise_parallelism, "a number, ADAPTIVE, bounded(n), ratio(r) or DEFAULT")
    return AlterParallelism(kind, name, ADAPTIVE if found == DEFAULT else found, reader.accept("DEFERRED"))


def _backfill_parallelism(reader: TokenReader, kind: str, name: Name) -> AlterBackfillParallelism:
    found = _checked(reader, normalise_backfill_parallelism, "a number or DEFAULT")
    return AlterBackfillParallelism(kind, name, None if found == DEFAULT else int(found), reader.accept("DEFERRED"))


def _resource_group(reader: TokenReader, kind: str, name: Name) -> AlterResourceGroup:
    group = parse_resource_group(reader)
    return AlterResourceGroup(kind, name, group, reader.accept("DEFERRED"))


def parse_resource_group(reader: TokenReader) -> str | None:
    """Parse a resource group's name; None for DEFAULT. Raises Error 22023."""
    position = reader.offset + 1
    group = reader.value()
    if not group:
        raise Error(
            "target resource group must be a valid string or default", errors.INVALID_PARAMETER_VALUE, position=position
        )
    return None if group == DEFAULT else group


def _checked(reader: TokenReader, normalise: Callable[[str], str], allowed: str) -> str:
    """Parse a parallelism. Raises Error 22023 with its position."""
    position = reader.offset + 1
    text = reader.value()
    if reader.accept("("):
        text = f"{text}({reader.value()})"
        reader.expect(")")
    try:
        found = normalise(text)
        check_maximum(found, LARGEST)
    except ValueError as error:
        raise Error(
            f"invalid parallelism: {text}: {error}",
            errors.INVALID_PARAMETER_VALUE,
            hint=f"It is {allowed}.",
            position=position,
        ) from error
    return found


_SETTINGS: dict[str, Callable[[TokenReader, str, Name], AlterStreaming]] = {
    "BACKFILL_RATE_LIMIT": _rate_limit,
    "PARALLELISM": _parallelism,
    "BACKFILL_PARALLELISM": _backfill_parallelism,
    "RESOURCE_GROUP": _resource_group,
}
