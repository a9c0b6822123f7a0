"""Parsing of CREATE TABLE … AS and SELECT … INTO."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.tokens import TokenReader, syntax_error
from sparkwave.planner.parse.trees import name_of, parse_tree, query_of
from sparkwave.planner.statements import DELETE_ROWS, DROP, CreateTableAs, Name


def parse_create_table_as(reader: TokenReader, name: Name, if_not_exists: bool) -> CreateTableAs:
    """Parse `[(column, …)] [APPEND ONLY] [WITH (…)] AS query [WITH [NO] DATA]`.

    Known options are `appendonly`, RisingWave's older spelling, and PostgreSQL's `fillfactor`, which changes nothing.
    """
    columns = reader.parenthesised(reader.identifier) if reader.peek() == "(" else ()
    append_only = reader.accept("APPEND", "ONLY")
    if reader.accept("WITH"):
        options = dict(reader.parenthesised(lambda: _option(reader)))
        append_only = append_only or options.get("appendonly") == "true"
    on_commit = read_on_commit(reader) if reader.accept("ON", "COMMIT") else None
    if not reader.accept("AS"):
        raise Error("CREATE TABLE needs a list of columns", errors.SYNTAX_ERROR, position=name.position)
    offset = reader.offset
    stop = len(reader.sql)
    without = reader.ending(offset, stop, "WITH", "NO", "DATA")
    end = reader.ending(offset, stop, "WITH", "DATA") if without is None else without
    query = parse_tree(reader.sql if end is None else reader.sql[:end], offset, reader.order)
    while isinstance(query, exp.Subquery) and {key for key, value in query.args.items() if value} == {"this"}:
        query = query.this
    if isinstance(query, exp.Values):
        query = query_of(query)
    if not isinstance(query, exp.Query):
        raise syntax_error(reader.sql, offset)
    return CreateTableAs(name, columns, query, if_not_exists, append_only, without is None, on_commit=on_commit)


def select_into(query: exp.Expr) -> CreateTableAs | None:
    """Return `SELECT … INTO [TEMP] t …` as the statement that makes the table; None for any other query."""
    first = query
    while isinstance(first, exp.SetOperation):
        first = first.this
    into = first.args.get("into") if isinstance(first, exp.Select) else None
    if into is None or not isinstance(query, exp.Query):
        return None
    first.set("into", None)
    return CreateTableAs(name_of(into.this), (), query, False, is_temporary=bool(into.args.get("temporary")))


def read_on_commit(reader: TokenReader) -> str | None:
    """Parse from after ON COMMIT on. Returns what becomes of the table when a transaction ends, None for nothing."""
    if reader.accept("DROP"):
        return DROP
    if reader.accept("DELETE", "ROWS"):
        return DELETE_ROWS
    reader.expect("PRESERVE", "ROWS")
    return None


def _option(reader: TokenReader) -> tuple[str, str]:
    position = reader.offset + 1
    name = reader.option_name()
    reader.expect("=")
    if name not in ("appendonly", "fillfactor"):
        message = f"the option {name} of CREATE TABLE AS is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
    return name, reader.value()
