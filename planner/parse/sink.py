"""Parsing of CREATE SINK, and of the query of any streaming job (RisingWave: src/sqlparser/src/ast/statement.rs)."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.redaction import redact
from sparkwave.planner.parse.tokens import TokenReader, syntax_error
from sparkwave.planner.parse.trees import parse_tree, query_of, text_before
from sparkwave.planner.parse.with_options import parse_format, parse_options
from sparkwave.planner.statements import CreateSink, Name


def parse_streaming_query(reader: TokenReader, start: int, stop: int) -> tuple[exp.Query, bool]:
    """Return the query between two places, and whether EMIT ON WINDOW CLOSE follows it."""
    emits = reader.ending(start, stop, "EMIT", "ON", "WINDOW", "CLOSE")
    query = parse_tree(reader.sql[: stop if emits is None else emits], start, reader.order, is_definition=True)
    if isinstance(query, exp.Values):
        query = query_of(query)
    if not isinstance(query, exp.Query):
        raise syntax_error(reader.sql, start)
    return query, emits is not None


def parse_create_sink(reader: TokenReader) -> CreateSink:
    """Parse CREATE SINK after that word.

    `[IF NOT EXISTS] name [INTO table [(column, …)]] {FROM relation | AS query} [WITH (…)] [FORMAT … ENCODE …]`
    """
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    rest = reader.index
    target: Name | None = None
    columns: tuple[tuple[str, int], ...] = ()
    if reader.accept("INTO"):
        target = reader.name()
        columns = reader.parenthesised(reader.placed_identifier) if reader.peek() == "(" else ()
    source, emits = None, False
    start = reader.offset
    if reader.accept("FROM"):
        source = reader.name()
        query = parse_tree(text_before("SELECT *", reader.sql[: reader.offset], start), 0)
        assert isinstance(query, exp.Query)
    else:
        reader.expect("AS")
        start = reader.offset
        reader.skip_to("WITH", "(")
        query, emits = parse_streaming_query(reader, start, reader.offset)
    body, end = reader.text_since(rest), reader.index
    options = parse_options(reader) if reader.accept("WITH") else ()
    format_ = parse_format(reader)
    reader.finish()
    definition = f"CREATE SINK {name.sql} {body} {redact(reader.text_since(end))}".strip()
    return CreateSink(name, target, columns, source, query, options, format_, if_not_exists, definition, emits)
