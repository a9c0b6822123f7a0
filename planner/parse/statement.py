"""Parses SQL text into statements. Nothing passes unknown: the result is one of `planner.statements` or an error."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.names import INTERNAL_PREFIX, quote_if_needed
from sparkwave.catalog.relation_details import SEQUENCE, STREAMING
from sparkwave.planner.parse.connection import parse_create_connection, parse_drop_connection
from sparkwave.planner.parse.cursor import parse_close, parse_declare, parse_fetch
from sparkwave.planner.parse.database import parse_create_database, parse_drop_database
from sparkwave.planner.parse.describe import parse_describe, parse_kill, parse_show
from sparkwave.planner.parse.do_block import parse_do
from sparkwave.planner.parse.explain import parse_explain
from sparkwave.planner.parse.function import parse_create_function, parse_drop_function
from sparkwave.planner.parse.grant import parse_drop_owned, parse_grant, parse_reassign_owned, parse_revoke
from sparkwave.planner.parse.index import parse_create_index
from sparkwave.planner.parse.literals import IS_NEW
from sparkwave.planner.parse.prepare import parse_deallocate, parse_execute, parse_prepare
from sparkwave.planner.parse.rename import parse_comment
from sparkwave.planner.parse.schema import parse_create_schema, parse_drop_schema
from sparkwave.planner.parse.secret import parse_create_secret, parse_drop_secret
from sparkwave.planner.parse.sequence import parse_create_sequence
from sparkwave.planner.parse.sink import parse_create_sink, parse_streaming_query
from sparkwave.planner.parse.subscription import parse_create_subscription
from sparkwave.planner.parse.table import parse_create_source, parse_create_table
from sparkwave.planner.parse.table_as import select_into
from sparkwave.planner.parse.tokens import TokenReader, position_of_input, syntax_error
from sparkwave.planner.parse.transaction import (
    parse_begin,
    parse_commit,
    parse_release,
    parse_rollback,
    parse_savepoint,
    parse_start,
)
from sparkwave.planner.parse.trees import parse_tree
from sparkwave.planner.parse.user import parse_create_user, parse_drop_user
from sparkwave.planner.parse.user_type import parse_create_domain, parse_create_type, parse_drop_type
from sparkwave.planner.parse.utility import (
    parse_alter,
    parse_audit,
    parse_backup,
    parse_cancel,
    parse_copy,
    parse_create_extension,
    parse_discard,
    parse_flush,
    parse_recover,
    parse_refresh,
    parse_reset,
    parse_set,
    parse_unlisten,
    parse_use,
    parse_vacuum,
    parse_wait,
    refuse,
)
from sparkwave.planner.parse.with_options import parse_options
from sparkwave.planner.parse.writes import parse_truncate, parse_write, write_of
from sparkwave.planner.parse.writing_ctes import with_writes
from sparkwave.planner.statements import (
    CreateMaterializedView,
    CreateView,
    DeclareCursor,
    DeclareSubscriptionCursor,
    Drop,
    DropConnection,
    DropDatabase,
    DropFunction,
    DropOwned,
    DropSchema,
    DropSecret,
    DropType,
    DropUser,
    Empty,
    Explain,
    ExplainJob,
    Prepare,
    Query,
    Statement,
)

# The beginning of a query whose tokens nobody needs to see but sqlglot: they take most of the time of long lists.
_QUERY = re.compile(r"\s*+(?:SELECT|VALUES)(?=[\s(*'])", re.IGNORECASE)


def parse_statement(sql: str, order: str | None = None) -> Statement:
    """Return the statement in `sql` (one, without a semicolon). Raises Error 42601 or 0A000 with a position.

    `order` is a session's order of dates (MDY, DMY or YMD), by which the literals of queries and changes are read.
    """
    reader = TokenReader(sql, order)
    parser = _query if _QUERY.match(sql) else _BY_FIRST_WORD.get(reader.peek())
    if parser is None:
        if reader.at_end:
            return Empty()
        raise reader.syntax_error()
    try:
        return parser(reader)
    except Error as error:
        error.position = error.position or position_of_input(sql, error.message)
        raise


def _query(reader: TokenReader) -> Statement:
    tree = parse_tree(reader.sql, order=reader.order)
    return with_writes(tree, lambda rest: _query_of(reader, rest)) or _query_of(reader, tree)


def _query_of(reader: TokenReader, tree: exp.Expr) -> Statement:
    written = write_of(tree)  # WITH may begin a write as well
    if written is not None:
        return written
    if not isinstance(tree, exp.Query | exp.Values):
        raise syntax_error(reader.sql, 0)
    if (made := select_into(tree)) is not None:
        return made
    tables = list(tree.find_all(exp.Table))
    reads_past = any(table.args.get("version") for table in tables)
    return Query(tree, reads_past, any(table.name.startswith(INTERNAL_PREFIX) for table in tables))


def _replace(reader: TokenReader) -> Statement:
    """Refuse REPLACE SINK, of RisingWave's statements the only one that begins so."""
    position = reader.offset + 1
    if not reader.accept("REPLACE", "SINK"):
        raise reader.syntax_error()
    hint = "DROP SINK, and CREATE SINK … WITH (snapshot = false) delivers later changes only."
    raise Error("REPLACE SINK is not supported", errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position)


def _create(reader: TokenReader) -> Statement:
    reader.expect("CREATE")
    if reader.accept("OR", "REPLACE", "FUNCTION"):
        return parse_create_function(reader, replaces=True)
    if reader.accept("OR", "REPLACE", "AGGREGATE"):
        return parse_create_function(reader, replaces=True, is_aggregate=True)
    if reader.accept("OR", "REPLACE", "VIEW"):
        return replace(_create_view(reader), replaces=True)
    if any(reader.accept("OR", "REPLACE", word, "VIEW") for word in ("TEMP", "TEMPORARY")):
        return replace(_create_view(reader), replaces=True, is_temporary=True)
    if reader.accept("OR"):
        raise Error("CREATE OR REPLACE is not supported", errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    if reader.accept("MATERIALIZED", "VIEW"):
        return _create_materialized_view(reader)
    if _accept_temporary(reader, "VIEW"):
        return replace(_create_view(reader), is_temporary=True)
    if reader.accept("VIEW"):
        return _create_view(reader)
    if reader.accept("UNIQUE", "INDEX"):
        return parse_create_index(reader, is_unique=True)
    if reader.accept("INDEX"):
        return parse_create_index(reader)
    if reader.accept("SINK"):
        return parse_create_sink(reader)
    if reader.accept("TABLE") or reader.accept("UNLOGGED", "TABLE"):  # every table is as safe as a logged one
        return parse_create_table(reader)
    if _accept_temporary(reader, "TABLE"):
        return replace(parse_create_table(reader), is_temporary=True)
    if reader.accept("SEQUENCE"):
        return parse_create_sequence(reader)
    if _accept_temporary(reader, "SEQUENCE"):
        return parse_create_sequence(reader, is_temporary=True)
    if reader.accept("SUBSCRIPTION"):
        return parse_create_subscription(reader)
    if reader.accept("FUNCTION"):
        return parse_create_function(reader, replaces=False)
    if reader.accept("AGGREGATE"):
        return parse_create_function(reader, replaces=False, is_aggregate=True)
    if reader.accept("SOURCE"):
        return parse_create_source(reader.sql)
    if reader.accept("TYPE"):
        return parse_create_type(reader)
    if reader.accept("DOMAIN"):
        return parse_create_domain(reader)
    if reader.accept("EXTENSION"):
        return parse_create_extension(reader)
    if reader.accept("SECRET"):
        return parse_create_secret(reader)
    if reader.accept("CONNECTION"):
        return parse_create_connection(reader)
    if reader.accept("SCHEMA"):
        return parse_create_schema(reader)
    if reader.accept("DATABASE"):
        return parse_create_database(reader)
    if reader.peek() in ("USER", "ROLE"):
        return parse_create_user(reader, reader.identifier() == "role")
    kind = reader.peek()
    raise Error(
        f"CREATE {kind} is not supported",
        errors.FEATURE_NOT_SUPPORTED,
        hint="CREATE TABLE, VIEW, MATERIALIZED VIEW, INDEX, SINK, SOURCE, SUBSCRIPTION, SEQUENCE, FUNCTION, "
        "AGGREGATE, TYPE, DOMAIN, SECRET, CONNECTION, SCHEMA, DATABASE and USER are.",
        position=reader.offset + 1,
    )


def _accept_temporary(reader: TokenReader, kind: str) -> bool:
    return reader.accept("TEMP", kind) or reader.accept("TEMPORARY", kind)


def _create_materialized_view(reader: TokenReader) -> CreateMaterializedView:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    columns = reader.parenthesised(reader.identifier) if reader.peek() == "(" else ()
    before_options = reader.index
    options = parse_options(reader) if reader.accept("WITH") else ()
    options_text = reader.text_since(before_options)
    emits_first = reader.accept("EMIT", "ON", "WINDOW", "CLOSE")
    reader.expect("AS")
    offset = reader.offset
    query, emits = parse_streaming_query(reader, offset, len(reader.sql))
    head = f"CREATE MATERIALIZED VIEW {name.sql}{column_list(columns)}"
    body = reader.rest
    ending = "EMIT ON WINDOW CLOSE" if emits_first and not emits else ""
    definition = " ".join(part for part in (head, options_text, "AS", body, ending) if part)
    return CreateMaterializedView(name, columns, query, options, if_not_exists, definition, emits or emits_first)


def column_list(columns: tuple[str, ...]) -> str:
    """Return the names of a view's columns after its own name, as in a definition."""
    return f" ({', '.join(map(quote_if_needed, columns))})" if columns else ""


def _create_view(reader: TokenReader) -> CreateView:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    columns = reader.parenthesised(reader.identifier) if reader.peek() == "(" else ()
    reader.expect("AS")
    offset = reader.offset
    query = parse_tree(reader.sql, offset, reader.order, is_definition=True)
    for text in query.find_all(exp.Literal):
        text.meta[IS_NEW] = reader.order is not None
    if not isinstance(query, exp.Query | exp.Values):
        raise syntax_error(reader.sql, offset)
    definition = f"CREATE VIEW {name.sql}{column_list(columns)} AS {reader.rest}"
    return CreateView(name, columns, query, if_not_exists, definition)


_DROPPED = ("table", "source", "view", "subscription", SEQUENCE, *STREAMING)


def _drop(
    reader: TokenReader,
) -> Drop | DropFunction | DropSecret | DropConnection | DropSchema | DropDatabase | DropUser | DropType | DropOwned:
    reader.expect("DROP")
    if reader.accept("FUNCTION") or reader.accept("AGGREGATE"):
        return parse_drop_function(reader)
    if reader.accept("DOMAIN"):
        return replace(parse_drop_type(reader), are_domains=True)
    if reader.accept("TYPE"):
        return parse_drop_type(reader)
    if reader.accept("SECRET"):
        return parse_drop_secret(reader)
    if reader.accept("CONNECTION"):
        return parse_drop_connection(reader)
    if reader.accept("SCHEMA"):
        return parse_drop_schema(reader)
    if reader.accept("DATABASE"):
        return parse_drop_database(reader)
    if reader.accept("USER") or reader.accept("ROLE"):
        return parse_drop_user(reader)
    if reader.accept("OWNED"):
        return parse_drop_owned(reader)
    kind = next((kind for kind in _DROPPED if reader.accept(*kind.upper().split())), None)
    if kind is None:
        raise Error(f"DROP {reader.peek()} is not supported", errors.FEATURE_NOT_SUPPORTED, position=reader.offset + 1)
    if kind == "index":
        reader.accept("CONCURRENTLY")
    if_exists = reader.accept("IF", "EXISTS")
    names = reader.comma_separated(reader.name)
    cascade = reader.cascade()
    reader.finish()
    return Drop(kind, names, if_exists, cascade)


def _explain(reader: TokenReader) -> Explain | ExplainJob:
    return parse_explain(reader, partial(parse_statement, order=reader.order))


def _prepare(reader: TokenReader) -> Prepare:
    return parse_prepare(reader, partial(parse_statement, order=reader.order))


def _declare(reader: TokenReader) -> DeclareCursor | DeclareSubscriptionCursor:
    return parse_declare(reader, partial(parse_statement, order=reader.order))


# Statements of PostgreSQL that do not exist here.
_REFUSED = (
    "LISTEN",
    "NOTIFY",
    "CALL",
    "LOCK",
    "CLUSTER",
    "REINDEX",
    "CHECKPOINT",
    "SECURITY",
    "IMPORT",
)

_BY_FIRST_WORD: dict[str, Callable[[TokenReader], Statement]] = {
    "SELECT": _query,
    "VALUES": _query,
    "WITH": _query,
    "(": _query,
    "TABLE": _query,
    "CREATE": _create,
    "REPLACE": _replace,
    "DROP": _drop,
    "INSERT": parse_write,
    "UPDATE": parse_write,
    "DELETE": parse_write,
    "MERGE": parse_write,
    "TRUNCATE": parse_truncate,
    "COPY": parse_copy,
    "DO": parse_do,
    "SHOW": parse_show,
    "DESCRIBE": parse_describe,
    "DESC": parse_describe,
    "KILL": parse_kill,
    "SET": parse_set,
    "RESET": parse_reset,
    "USE": parse_use,
    "ALTER": parse_alter,
    "GRANT": parse_grant,
    "REVOKE": parse_revoke,
    "REASSIGN": parse_reassign_owned,
    "COMMENT": parse_comment,
    "FLUSH": parse_flush,
    "RECOVER": parse_recover,
    "BACKUP": parse_backup,
    "REFRESH": parse_refresh,
    "AUDIT": parse_audit,
    "WAIT": parse_wait,
    "CANCEL": parse_cancel,
    "EXPLAIN": _explain,
    "BEGIN": parse_begin,
    "START": parse_start,
    "COMMIT": parse_commit,
    "END": parse_commit,
    "ROLLBACK": parse_rollback,
    "ABORT": parse_rollback,
    "SAVEPOINT": parse_savepoint,
    "RELEASE": parse_release,
    "PREPARE": _prepare,
    "EXECUTE": parse_execute,
    "DEALLOCATE": parse_deallocate,
    "DECLARE": _declare,
    "FETCH": parse_fetch,
    "MOVE": parse_fetch,
    "CLOSE": parse_close,
    "DISCARD": parse_discard,
    "UNLISTEN": parse_unlisten,
    "VACUUM": parse_vacuum,
    "ANALYZE": parse_vacuum,
    "ANALYSE": parse_vacuum,
    **dict.fromkeys(_REFUSED, refuse),
}
