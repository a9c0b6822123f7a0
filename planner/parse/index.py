"""Parsing of CREATE INDEX (RisingWave: src/sqlparser/src/parser.rs, parse_create_index)."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.bind.output_names import NO_NAME, output_name
from sparkwave.planner.definitions.object_names import object_name
from sparkwave.planner.parse.condition import parse_condition
from sparkwave.planner.parse.tokens import TokenReader, blank, tokenize
from sparkwave.planner.parse.trees import parse_tree, text_before
from sparkwave.planner.parse.with_options import parse_options
from sparkwave.planner.statements import CreateIndex, Name

# The operator classes of PostgreSQL's btree (pg_opclass). They are read over: an index has the order of ORDER BY.
_CLASSES = frozenset(
    f"{type_}_ops"
    for type_ in (
        "array", "bit", "bool", "bpchar", "bpchar_pattern", "bytea", "char", "cidr", "date", "enum", "float4", "float8",
        "inet", "int2", "int4", "int8", "interval", "jsonb", "macaddr", "macaddr8", "money", "name", "numeric", "oid",
        "oidvector", "range", "record", "text", "text_pattern", "tid", "time", "timestamp", "timestamptz", "timetz",
        "uuid", "varbit", "varchar", "varchar_pattern", "xid8",
    )
)  # fmt: skip


def parse_create_index(reader: TokenReader, is_unique: bool = False) -> CreateIndex:
    """Parse `[CONCURRENTLY] [[IF NOT EXISTS] name] ON table (key, …)` and the clauses behind it.

    They are `[INCLUDE (column, …)] [DISTRIBUTED BY (key, …)] [WITH (…)] [WHERE condition]`. CONCURRENTLY changes
    nothing, nor does USING hash, since an index serves equalities and ranges. An index without a name gets
    PostgreSQL's, `table_column_idx`.
    """
    reader.accept("CONCURRENTLY")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    given = reader.name() if if_not_exists or reader.peek() != "ON" else None
    rest, body = reader.offset, reader.rest
    reader.expect("ON")
    table = reader.name()
    if reader.accept("USING") and not (reader.accept("BTREE") or reader.accept("HASH")):
        message = f"index method {reader.peek().lower()} is not supported"
        hint = "An index by btree serves =, IN and ranges; what others serve is read from the table."
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=reader.offset + 1)
    keys = _keys(reader)
    include = reader.parenthesised(reader.placed_identifier) if reader.accept("INCLUDE") else ()
    distributed = _keys(reader) if reader.accept("DISTRIBUTED", "BY") else ()
    options = parse_options(reader) if reader.accept("WITH") else ()
    where = parse_condition(reader) if reader.accept("WHERE") else None
    if where is None:
        reader.finish()
    name = given or Name(None, None, _usual_name(table, keys), rest + 1)
    definition = f"{create_index(is_unique)} {name.sql} {body}"
    by = tuple(key.this for key in distributed)
    return CreateIndex(
        name, table, keys, include, by, options, if_not_exists, definition, is_named=given is not None,
        is_unique=is_unique, where=where,
    )  # fmt: skip


def create_index(is_unique: bool) -> str:
    """Return the words before the name of an index."""
    return "CREATE UNIQUE INDEX" if is_unique else "CREATE INDEX"


def _usual_name(table: Name, keys: tuple[exp.Ordered, ...]) -> str:
    """Return the name of an index without one (PostgreSQL: src/backend/commands/indexcmds.c, ChooseIndexName)."""
    columns = (output_name(key.this) for key in keys)
    return object_name(table.name, "_".join("expr" if c == NO_NAME else c for c in columns), "idx", lambda _: True)


def _keys(reader: TokenReader) -> tuple[exp.Ordered, ...]:
    """Parse `(expression [operator class] [ASC | DESC] [NULLS {FIRST | LAST}], …)`."""
    start, stop = reader.skip_parentheses()
    text = text_before("SELECT 1 ORDER BY", reader.sql[:stop], start)
    tree = parse_tree(_without_classes(text), 0)
    order = tree.args.get("order")
    if order is None or {part for part, value in tree.args.items() if value} != {"expressions", "order"}:
        raise reader.syntax_error()
    return tuple(order.expressions)


def _without_classes(text: str) -> str:
    """Return the text of keys with blanks in place of operator classes. Raises Error 42704 for an unknown class."""
    tokens = tokenize(text)
    words = [token.text.upper() for token in tokens]
    for before, token, after in zip(words, tokens[1:], [*words[2:], ","], strict=False):
        name = token.text.lower()
        if not name.endswith("_ops") or before in ("BY", ",", "(", ".") or after not in (",", "ASC", "DESC", "NULLS"):
            continue
        if name not in _CLASSES:
            message = f'operator class "{name}" does not exist for access method "btree"'
            raise Error(message, errors.UNDEFINED_OBJECT, position=token.start + 1)
        text = text[: token.start] + blank(text[token.start : token.end + 1]) + text[token.end + 1 :]
    return text
