"""EXPLAIN and its options (RisingWave: `src/sqlparser/src/parser.rs`, parse_explain_options)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import meant_option
from sparkwave.planner.parse.normal_text import normalised
from sparkwave.planner.parse.tokens import TokenReader
from sparkwave.planner.statements import (
    AlterQuery,
    CreateIndex,
    CreateMaterializedView,
    CreateSink,
    CreateTable,
    CreateView,
    Delete,
    Explain,
    ExplainJob,
    ExplainOptions,
    Insert,
    Merge,
    Query,
    Statement,
    Update,
)

_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE", "(")  # the first words in a parenthesis that is no list of options
_SWITCHES = frozenset({"analyze", "verbose", "trace", "backfill", "cost", "incremental"})
# What EXPLAIN ANALYZE measures besides queries, and for how long, unless it is said.
_JOBS, _SECONDS = ("table", "materialized view", "index", "sink"), 10
TYPES = ("logical", "physical", "distsql")
FORMATS = ("text", "json", "xml", "yaml", "dot")
_EXPLAINED = (Query, CreateTable, CreateMaterializedView, CreateIndex, CreateSink, Insert, Update, Delete, Merge)


def parse_explain(reader: TokenReader, parse: Callable[[str], Statement]) -> Explain | ExplainJob:
    """Parse `EXPLAIN [(option [value], …)] statement`; `parse` reads the statement.

    Or `EXPLAIN ANALYZE [(DURATION_SECS n)] {TABLE | MATERIALIZED VIEW | INDEX | SINK} name`, or `… ID n`.
    """
    reader.expect("EXPLAIN")
    position = reader.offset + 1
    options = ExplainOptions(analyze=reader.accept("ANALYZE"))
    seconds = _SECONDS
    if reader.peek() == "(" and reader.peek(1) not in _QUERIES:
        for chosen in reader.parenthesised(lambda: _option(reader)):
            seconds = int(chosen.pop("seconds", seconds))
            options = replace(options, **chosen)  # type: ignore[arg-type]
    if options.analyze and (job := _job(reader, seconds)) is not None:
        return job
    if reader.accept("VERBOSE"):
        options = replace(options, verbose=True)
    offset = reader.offset
    statement = parse(reader.blanked())
    if isinstance(statement, CreateView):
        raise Error(
            "Not supported: EXPLAIN CREATE VIEW",
            errors.FEATURE_NOT_SUPPORTED,
            hint="A created VIEW is just an alias. Instead, use EXPLAIN on the queries which reference the view.",
            position=offset + 1,
        )
    if not isinstance(statement, _EXPLAINED) and not (options.cost and isinstance(statement, AlterQuery)):
        raise Error(
            f"Feature is not yet implemented: unsupported statement for EXPLAIN: {normalised(reader.rest)}",
            errors.FEATURE_NOT_SUPPORTED,
            position=offset + 1,
        )
    if options.analyze and not isinstance(statement, Query):
        raise Error(
            "EXPLAIN ANALYZE is for queries",
            errors.FEATURE_NOT_SUPPORTED,
            hint="EXPLAIN ANALYZE {TABLE | MATERIALIZED VIEW | INDEX | SINK} name measures a running job.",
            position=position,
        )
    return Explain(statement, options)


def _job(reader: TokenReader, seconds: int) -> ExplainJob | None:
    """Parse a running job to the end, if one follows. A query cannot begin so but by TABLE, which is a table here."""
    kind = next((kind for kind in _JOBS if reader.accept(*kind.upper().split())), None)
    if kind is not None:
        job = ExplainJob(kind, reader.name(), None, seconds)
    elif reader.accept("ID"):
        position = reader.offset + 1
        job = ExplainJob("job", None, (reader.integer(), position), seconds)
    else:
        return None
    reader.finish()
    return job


def _option(reader: TokenReader) -> dict[str, bool | str | int]:
    """Parse one option. Returns the fields of `ExplainOptions` that it sets, or the `seconds` of a job."""
    position = reader.offset + 1
    word = reader.identifier()
    if word in _SWITCHES:
        is_off = reader.accept("FALSE") or reader.accept("OFF")
        if not is_off:
            _ = reader.accept("TRUE") or reader.accept("ON")
        return {word: not is_off}
    if word in TYPES:
        return {"type": word}
    for name, known, complaint in (
        ("type", TYPES, "unexpected explain type: [{}]"),
        ("format", FORMATS, "unexpected explain format [{}]"),
    ):
        if word == name:
            position = reader.offset + 1
            chosen = reader.identifier()
            if chosen not in known:
                raise Error(complaint.format(chosen), errors.SYNTAX_ERROR, position=position)
            return {name: chosen}
    if word == "duration_secs":
        return {"seconds": reader.integer()}
    hint = meant_option(word, (*_SWITCHES, "type", "format", "duration_secs"))
    raise Error(f"unexpected explain options: [{word}]", errors.SYNTAX_ERROR, hint=hint, position=position)


assert _SWITCHES | {"type", "format"} == {option.name for option in fields(ExplainOptions)}
