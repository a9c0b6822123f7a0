"""Parsing of ALTER {MATERIALIZED VIEW | INDEX | SINK}, and of the settings of jobs, tables and sources.

RisingWave: src/sqlparser/src/parser.rs, parse_alter_view, parse_alter_index, parse_alter_sink.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.relation_details import INDEX, MATERIALIZED_VIEW, SINK
from sparkwave.planner.definitions.view_options import milliseconds, wrong_target
from sparkwave.planner.parse.rename import Naming, parse_naming, unsupported
from sparkwave.planner.parse.sink import parse_streaming_query
from sparkwave.planner.parse.source import rate_limit
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.parse.with_options import parse_options
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
    AlterBarrierTarget,
    AlterConfig,
    AlterConnector,
    AlterDmlRateLimit,
    AlterFragments,
    AlterParallelism,
    AlterQuery,
    AlterRateLimit,
    AlterResourceGroup,
    AlterSinkRateLimit,
    AlterSourceRateLimit,
    ConfigEntry,
    FragmentParallelism,
    FragmentRateLimit,
    Name,
)

Setting = (
    AlterRateLimit
    | AlterSourceRateLimit
    | AlterSinkRateLimit
    | AlterDmlRateLimit
    | AlterParallelism
    | AlterBackfillParallelism
    | AlterResourceGroup
    | AlterConfig
    | AlterConnector
    | AlterBarrierTarget
)


# RisingWave's errors for a change of the schema that a schema registry has, of which there is none here.
_WITH_SCHEMAS = {
    "table": ("tables without schema registry cannot be refreshed", "try `ALTER TABLE .. ADD/DROP COLUMN ...` instead"),
    "source": ("altering a source without schema registry", "try `ALTER SOURCE .. ADD COLUMN ...` instead"),
}


def parse_alter_streaming(reader: TokenReader, kind: str) -> AlterQuery | Setting | Naming:
    """Parse from the name of a relation of this kind on."""
    if_exists = reader.accept("IF", "EXISTS")
    name = reader.name()
    position = reader.offset + 1
    if (naming := parse_naming(reader, kind, name, if_exists)) is not None:
        return naming
    if kind == MATERIALIZED_VIEW and reader.accept("AS"):
        return _query(reader, name, if_exists)
    setting = parse_setting(reader, kind, name, if_exists)
    if setting is None:
        hint = (
            "SET BACKFILL_RATE_LIMIT, BARRIER_LATENCY_TARGET_MS, PARALLELISM, BACKFILL_PARALLELISM, RESOURCE_GROUP, "
            "CONFIG and SCHEMA, RENAME TO, "
            "OWNER TO and SWAP WITH are, AS of a materialized view, SET SINK_RATE_LIMIT and CONNECTOR WITH of a sink."
        )
        raise unsupported(kind, position, hint)
    return setting


def parse_setting(reader: TokenReader, kind: str, name: Name, if_exists: bool) -> Setting | None:
    """Parse `SET setting {TO | =} value`, `SET CONFIG (…)`, a RESET or `CONNECTOR WITH (…)`; None for anything else.

    Raises Error 0A000 for what RisingWave has for schema registries.
    """
    statement: Setting
    if kind in (SINK, *_WITH_SCHEMAS) and reader.accept("CONNECTOR", "WITH"):
        statement = AlterConnector(kind, name, parse_options(reader))
    elif kind in _WITH_SCHEMAS and (
        reader.accept("REFRESH", "SCHEMA") or (kind == "source" and reader.peek() == "FORMAT")
    ):
        message, hint = _WITH_SCHEMAS[kind]
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=name.position)
    elif reader.accept("RESET", "CONFIG"):
        statement = AlterConfig(kind, name, reader.parenthesised(lambda: _key(reader)))
    elif reader.accept("SET", "CONFIG"):
        statement = AlterConfig(kind, name, reader.parenthesised(lambda: _entry(reader)))
    elif kind in _JOBS and reader.accept("RESET", "RESOURCE_GROUP"):
        statement = AlterResourceGroup(kind, name, None, reader.accept("DEFERRED"))
    else:
        word = reader.peek(1)
        if reader.peek() != "SET" or word not in _SETTINGS or kind not in _SETTINGS[word][0]:
            return None
        reader.accept("SET", word)
        if not reader.accept("TO"):
            reader.expect("=")
        statement = _SETTINGS[word][1](reader, kind, name)
    reader.finish()
    return replace(statement, if_exists=if_exists)


def parse_alter_fragment(reader: TokenReader) -> AlterFragments:
    """Parse `id [, …] SET RATE_LIMIT {TO | =} value`, or PARALLELISM, to the end."""

    def fragment() -> tuple[int, int]:
        position = reader.offset + 1
        return reader.integer(), position

    ids = reader.comma_separated(fragment)
    reader.expect("SET")
    is_limit = reader.accept("RATE_LIMIT")
    if not is_limit:
        reader.expect("PARALLELISM")
    if not reader.accept("TO"):
        reader.expect("=")
    setting: FragmentRateLimit | FragmentParallelism
    if is_limit:
        setting = FragmentRateLimit(_rows_a_second(reader, "rate_limit", "the fragment"))
    else:
        found = _checked(reader, normalise_parallelism, "a number, ADAPTIVE, bounded(n), ratio(r) or DEFAULT")
        setting = FragmentParallelism(found)
    reader.finish()
    return AlterFragments(ids, setting)


def _key(reader: TokenReader) -> ConfigEntry:
    position = reader.offset + 1
    return ConfigEntry(reader.dotted_word(), position)


def _entry(reader: TokenReader) -> ConfigEntry:
    key = _key(reader)
    reader.expect("=")
    return ConfigEntry(key.key, key.position, *_config_value(reader))


def _config_value(reader: TokenReader) -> tuple[int | float | str | bool | None, int]:
    """Parse a value of SET CONFIG. Returns it with its position; NULL is None."""
    position, word = reader.offset + 1, reader.peek()
    text = reader.value()
    if word[:1] in ("'", '"'):
        return text, position
    if word in _WORDS:
        return _WORDS[word], position
    if re.fullmatch(r"-?\d+", text):
        return int(text), position
    if re.fullmatch(r"-?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", text):
        return float(text), position
    message = f"Unsupported value for ALTER CONFIG: {text}"
    hint = "It is a number, true, false, NULL, or text in quotes."
    raise Error(message, errors.INVALID_PARAMETER_VALUE, hint=hint, position=position)


_WORDS = {"TRUE": True, "FALSE": False, "NULL": None}


def _query(reader: TokenReader, name: Name, if_exists: bool) -> AlterQuery:
    start = reader.offset
    query, emits = parse_streaming_query(reader, start, len(reader.sql))
    return AlterQuery(name, query, reader.rest, emits, if_exists)


def _rate_limit(reader: TokenReader, kind: str, name: Name) -> AlterRateLimit:
    return AlterRateLimit(kind, name, _rows_a_second(reader, "backfill_rate_limit", "the backfill"))


def _barrier_target(reader: TokenReader, kind: str, name: Name) -> AlterBarrierTarget:
    position, text = reader.offset + 1, reader.value()
    target = milliseconds(text)
    if target is None and text != DEFAULT:
        raise wrong_target(text, position)
    return AlterBarrierTarget(kind, name, target)


def _sink_rate_limit(reader: TokenReader, kind: str, name: Name) -> AlterSinkRateLimit:
    return AlterSinkRateLimit(kind, name, _rows_a_second(reader, "sink_rate_limit", "the sink"))


def _dml_rate_limit(reader: TokenReader, kind: str, name: Name) -> AlterDmlRateLimit:
    return AlterDmlRateLimit(kind, name, _rows_a_second(reader, "dml_rate_limit", "statements"))


def _rows_a_second(reader: TokenReader, setting: str, what: str) -> int | None:
    """Parse a rate limit; None for DEFAULT or a negative number, which are no limit. Raises Error 22023."""
    position = reader.offset + 1
    text = reader.value()
    if text == DEFAULT:
        return None
    if not re.fullmatch(r"-?\d+", text) or int(text) >= 2**32:
        raise Error(
            f"invalid value for {setting}: {text}",
            errors.INVALID_PARAMETER_VALUE,
            hint=f"It is a number of rows a second; 0 pauses {what}, DEFAULT is no limit.",
            position=position,
        )
    return int(text) if int(text) >= 0 else None


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


def _source_rate_limit(reader: TokenReader, kind: str, name: Name) -> AlterSourceRateLimit:
    position = reader.offset + 1
    return AlterSourceRateLimit(kind, name, rate_limit(reader.value(), position))


_JOBS = (MATERIALIZED_VIEW, INDEX, SINK)
_TABLES = ("table", "source")
# The kinds of relations that have each setting, and the parser of its value.
_SETTINGS: dict[str, tuple[tuple[str, ...], Callable[[TokenReader, str, Name], Setting]]] = {
    "BACKFILL_RATE_LIMIT": (_JOBS, _rate_limit),
    "BARRIER_LATENCY_TARGET_MS": (_JOBS, _barrier_target),
    "SOURCE_RATE_LIMIT": (_TABLES, _source_rate_limit),
    "PARALLELISM": ((*_JOBS, *_TABLES), _parallelism),
    "BACKFILL_PARALLELISM": ((*_JOBS, *_TABLES), _backfill_parallelism),
    "RESOURCE_GROUP": (_JOBS, _resource_group),
    "SINK_RATE_LIMIT": ((SINK,), _sink_rate_limit),
    "DML_RATE_LIMIT": (("table",), _dml_rate_limit),
}
