"""Parsing of CREATE TABLE: sqlglot reads the columns, and this module RisingWave's additions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import check_distinct
from sparkwave.catalog.errors import Error
from sparkwave.catalog.interval_texts import UNITS
from sparkwave.catalog.model import IGNORE, OVERWRITE, RESERVED_COLUMNS, UPDATE_IF_NOT_NULL, Conflict, Watermark
from sparkwave.catalog.names import meant_option, quote_if_needed
from sparkwave.catalog.relation_details import ALWAYS, BY_DEFAULT, Check
from sparkwave.catalog.types import Type, parse_type
from sparkwave.planner.parse.constraints import (
    check_of,
    constraint_name,
    is_by_bytes,
    is_padded,
    length_of,
    named_checks,
)
from sparkwave.planner.parse.declared_keys import column_keys, declared_key
from sparkwave.planner.parse.generated import check_generated, generated_text
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.intervals import UNITS_US, fixed_length_us
from sparkwave.planner.parse.sequence import parse_sequence_options
from sparkwave.planner.parse.shown_text import shown_text
from sparkwave.planner.parse.source import begins_connector, connector_text, missing_with, parse_connector
from sparkwave.planner.parse.table_as import parse_create_table_as, read_on_commit
from sparkwave.planner.parse.time_types import interval_literal, modifier_of
from sparkwave.planner.parse.tokens import TokenReader, blank, syntax_error, tokenize
from sparkwave.planner.parse.trees import declared_type, name_of, parse_tree, position_of, unsupported
from sparkwave.planner.statements import (
    LIKE_PARTS,
    ColumnDefinition,
    Connector,
    CreateSource,
    CreateTable,
    CreateTableAs,
    DeclaredKey,
    Like,
    Name,
    SequenceOptions,
)


def parse_create_table(reader: TokenReader) -> CreateTable | CreateTableAs:
    """Return the statement from the table's name on."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    if begins_connector(reader):
        return _without_columns(reader, name, if_not_exists)
    if reader.at_end:  # RisingWave needs no list of no columns
        reader = TokenReader(f"CREATE TABLE {name.sql} ()")
        reader.expect("CREATE", "TABLE")
        reader.name()
    is_empty = reader.peek() == "(" and reader.peek(1) == ")"
    if not is_empty and (reader.peek() != "(" or reader.peek(2) in (",", ")")):
        return parse_create_table_as(reader, name, if_not_exists)
    return _with_columns(reader, name, if_not_exists)


def parse_create_source(sql: str) -> CreateSource:
    """Parse CREATE SOURCE, which is like CREATE TABLE but for the word. Raises Error 42601 without WITH."""
    before = TokenReader(sql)
    before.expect("CREATE")
    start, end = before.offset, before.end_of_token
    reader = TokenReader(f"{sql[:start]}TABLE {sql[end:]}")  # of the same length, so that positions are right
    reader.expect("CREATE", "TABLE")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.name()
    has_columns = reader.peek() == "("
    table = (_with_columns if has_columns else _without_columns)(reader, name, if_not_exists, is_source=True)
    if table.connector is None:
        raise missing_with(len(sql.rstrip()) + 1)
    return CreateSource(table)


def _create(is_source: bool) -> str:
    """Return the words before the name in a definition."""
    return "CREATE SOURCE" if is_source else "CREATE TABLE"


def _without_columns(reader: TokenReader, name: Name, if_not_exists: bool, is_source: bool = False) -> CreateTable:
    """Parse a table without a list of columns, which has those of its connector."""
    connector = parse_connector(reader)
    reader.finish()
    definition = f"{_create(is_source)} {name.sql} {connector_text(connector)}"
    return CreateTable(name, (), (), if_not_exists, definition, is_source, connector=connector)


def _with_columns(reader: TokenReader, name: Name, if_not_exists: bool, is_source: bool = False) -> CreateTable:
    added = _read_additions(reader, is_source)
    included = [column for _, column, _ in added.connector.includes] if added.connector is not None else []
    table = _columns(added, name, included)
    columns, key, listed = table.columns, table.primary_key, table.definition
    if added.watermark is not None:
        _check_watermark(added.watermark, columns, added)
    conflict = _conflict(added, columns, key)
    ttl = "" if added.append_only else " WITH TTL"
    listed += f", {added.watermark_text}{ttl}" if added.watermark_text else ""
    definition = f"{_create(is_source)} {name.sql} ({listed})"
    definition += clauses_text(added.append_only and not is_source, bool(key), conflict)
    definition += retention_text(added.retention_s)
    definition += f" {connector_text(added.connector)}" if added.connector else ""
    return replace(
        table, if_not_exists=if_not_exists, definition=definition, append_only=added.append_only,
        watermark=added.watermark, conflict=conflict, connector=added.connector, on_commit=added.on_commit,
        retention_s=added.retention_s,
    )  # fmt: skip


def retention_text(seconds: int | None) -> str:
    """Return the option of a normalised CREATE TABLE for how long rows are there."""
    return "" if seconds is None else f" WITH (retention_seconds = {seconds})"


def clauses_text(append_only: bool, has_key: bool, conflict: Conflict) -> str:
    """Return the clauses after the columns of a normalised CREATE TABLE."""
    versions = (
        f" WITH VERSION COLUMN({', '.join(map(quote_if_needed, conflict.versions))})" if conflict.versions else ""
    )
    if append_only:
        return f" APPEND ONLY{versions}"
    is_default = not has_key or conflict.action == OVERWRITE
    words = "" if is_default else f" ON CONFLICT {_CONFLICT_WORDS[conflict.action]}"
    return words + versions


def _conflict(added: _Additions, columns: tuple[ColumnDefinition, ...], key: tuple[str, ...]) -> Conflict:
    """Return the conflict behaviour.

    Raises Error 42601 for a behaviour that an append-only table cannot have, 22023 for a wrong version column.
    """
    action = added.conflict
    if added.append_only and key:
        if action not in (None, IGNORE):
            raise Error(
                "When PRIMARY KEY constraint applied to an APPEND ONLY table, the ON CONFLICT behavior must be DO "
                "NOTHING.",
                errors.SYNTAX_ERROR,
                position=added.conflict_position,
            )
        action = IGNORE
    by_name = {column.name: column for column in columns}
    for name, position in added.versions:
        if name not in by_name:
            message = "The specified version column name is not in the current columns."
            raise Error(message, errors.INVALID_PARAMETER_VALUE, position=position)
        type_ = by_name[name].type
        if type_.dimensions or type_.name in _NO_VERSIONS:
            message = "The specified version column data type is invalid."
            raise Error(message, errors.INVALID_PARAMETER_VALUE, detail=f"It is {type_}.", position=position)
    return Conflict(action or OVERWRITE, tuple(name for name, _ in added.versions))


# Types that a version column cannot have (RisingWave: src/frontend/src/handler/create_table.rs).
_NO_VERSIONS = ("json", "jsonb", "struct", "bytea", "boolean")
_CONFLICT_WORDS = {OVERWRITE: "OVERWRITE", IGNORE: "DO NOTHING", UPDATE_IF_NOT_NULL: "DO UPDATE IF NOT NULL"}


def _read_conflict(reader: TokenReader) -> str:
    """Parse from after ON CONFLICT on."""
    if reader.accept("DO", "UPDATE", "IF", "NOT", "NULL"):
        return UPDATE_IF_NOT_NULL
    if reader.accept("DO", "NOTHING") or reader.accept("IGNORE"):
        return IGNORE
    if reader.accept("DO", "UPDATE", "FULL") or reader.accept("OVERWRITE"):
        return OVERWRITE
    error = reader.syntax_error()
    error.hint = "It is DO NOTHING, IGNORE, OVERWRITE, DO UPDATE FULL or DO UPDATE IF NOT NULL."
    raise error


def _columns(added: _Additions, name: Name, included: Sequence[str] = ()) -> CreateTable:
    """Return a CREATE TABLE from its list of columns and constraints; its definition is the list as normalised text.

    `included` are the columns of INCLUDE, which constraints may name too.
    """
    tree, identities = parse_tree(added.sql), iter(added.identities)
    schema = tree.this
    if isinstance(tree, exp.Create) and tree.expression:
        message = "Should not specify data type in CREATE TABLE AS"
        raise Error(message, errors.SYNTAX_ERROR, position=name.position)
    if not isinstance(tree, exp.Create) or not isinstance(schema, exp.Schema):
        raise Error("CREATE TABLE needs a list of columns", errors.SYNTAX_ERROR, position=name.position)
    for clause, words in _NOT_THERE.items():
        if tree.find(clause) is not None:
            raise unsupported(words, tree)
    columns: list[ColumnDefinition] = []
    key: list[str] = []
    key_name = ""
    checks: list[Check] = []
    keys: list[DeclaredKey] = []
    likes: list[Like] = []
    for whole in schema.expressions:
        part = _unnamed(whole)
        name_ = constraint_name(whole) if whole is not part else ""
        if (declared := declared_key(part, name_)) is not None:
            keys.append(declared)
        elif isinstance(part, exp.CheckColumnConstraint):
            checks.append(check_of(part, name_))
        elif isinstance(part, exp.ColumnDef):
            column, is_key = column_definition(part, identities, name.name)
            if key and is_key:
                raise several_keys(name.name)
            columns.append(column)
            checks += column.checks
            keys += column.keys
            key += [column.name] if is_key else []
            key_name = _key_name(part) if is_key else key_name
        elif isinstance(part, exp.PrimaryKey):
            if key:
                raise several_keys(name.name)
            key, key_name = [folded(identifier) for identifier in part.find_all(exp.Identifier)], name_
        elif isinstance(part, exp.LikeProperty):
            likes.append(_like(part, len(columns), added.sql))
        else:
            raise unsupported(f"{part.sql(dialect='postgres')} in CREATE TABLE", part)
    listed = ", ".join(map(shown_text, schema.expressions))
    table = CreateTable(
        name, tuple(columns), tuple(key), False, listed, checks=tuple(checks), keys=tuple(keys), key_name=key_name,
        likes=tuple(likes),
    )  # fmt: skip
    return table if likes else checked(table, included)


def checked(table: CreateTable, included: Sequence[str] = ()) -> CreateTable:
    """Return a table with names for its checks; `included` are further columns, which have no expressions.

    Raises Error 42701 for columns with the same name, 42703 for an unknown one, 42P17, 42710.
    """
    names = [column.name for column in table.columns]
    check_distinct(names)
    for column_name in table.primary_key:
        if column_name not in (*names, *included):
            raise Error(f'column "{column_name}" named in key does not exist', errors.UNDEFINED_COLUMN)
    check_generated(table.columns, included)
    return replace(table, checks=named_checks(table.name.name, table.checks, (*names, *included)))


def _like(node: exp.LikeProperty, place: int, sql: str) -> Like:
    """Return a LIKE clause, in which the last word about a part counts. Raises Error 42601 for an unknown part."""
    found: frozenset[str] = frozenset()
    for option in node.expressions:
        part = option.text("value").upper()
        if part not in LIKE_PARTS and part != "ALL":
            start = next(
                t.start for t in tokenize(sql) if t.start >= (position_of(node) or 1) and t.text.upper() == part
            )
            raise syntax_error(sql, start)
        parts = LIKE_PARTS if part == "ALL" else frozenset((part,))
        found = found | parts if option.name == "INCLUDING" else found - parts
    return Like(name_of(node.this), place, found)


# PostgreSQL's clauses after the columns that are not supported.
_NOT_THERE = {exp.PartitionedByProperty: "PARTITION BY", exp.InheritsProperty: "INHERITS"}


def _unnamed(part: exp.Expr) -> exp.Expr:
    """Return a constraint without its name."""
    return part.expressions[0] if isinstance(part, exp.Constraint) and len(part.expressions) == 1 else part


def _key_name(column: exp.ColumnDef) -> str:
    """Return the name of the primary key that is declared behind a column."""
    constraints = column.args.get("constraints") or []
    return next((constraint_name(c) for c in constraints if isinstance(c.kind, exp.PrimaryKeyColumnConstraint)), "")


# Integer types whose default is the next number of a sequence.
_SERIALS = {"SMALLSERIAL": "smallint", "SERIAL": "integer", "BIGSERIAL": "bigint"}


def column_definition(
    node: exp.ColumnDef, identities: Iterator[SequenceOptions] | None = None, table: str = ""
) -> tuple[ColumnDefinition, bool]:
    """Return a column, and whether it is the primary key. `identities` are the options of identity columns, in order.

    Raises Error 42611, 42601, 0A000, as `generated_text` does.
    """
    name = folded(node.this)
    if name in RESERVED_COLUMNS:
        raise Error(f'column name "{name}" conflicts with a system column name', errors.INVALID_COLUMN_DEFINITION)
    if node.args.get("kind") is None:
        raise Error(f'column "{name}" has no type', errors.SYNTAX_ERROR, position=position_of(node))
    not_null = is_key = False
    default: str | None = None
    generated: str | None = None
    identity: str | None = None
    checks: list[Check] = []
    kind = node.args["kind"]
    serial = _SERIALS.get(kind.this.name if isinstance(kind.this, exp.DType) else "")
    counts = SequenceOptions(type=serial) if serial else None
    for constraint in node.args.get("constraints") or []:
        match constraint.kind:
            case exp.PrimaryKeyColumnConstraint():
                is_key = not_null = True
            case exp.NotNullColumnConstraint(args=args):
                if not_null and args.get("allow_null"):
                    where = f' of table "{table}"' if table else ""
                    message = f'conflicting NULL/NOT NULL declarations for column "{name}"{where}'
                    raise Error(message, errors.SYNTAX_ERROR, position=position_of(node))
                not_null = not_null or not args.get("allow_null")
            case exp.CollateColumnConstraint(this=collation) if is_by_bytes(collation.name):
                pass
            case exp.DefaultColumnConstraint(this=value):
                default = default_text(value)
            case exp.CheckColumnConstraint() as check:
                checks.append(check_of(check, constraint_name(constraint)))
            case exp.UniqueColumnConstraint() | exp.Reference():
                pass  # see `column_keys`
            case exp.ComputedColumnConstraint(this=None):
                raise Error(f'column "{name}" has no expression', errors.SYNTAX_ERROR, position=position_of(node))
            case exp.ComputedColumnConstraint(this=value):
                generated = generated_text(value)
            case exp.GeneratedAsIdentityColumnConstraint(args=args) if args.get("expression") is not None:
                generated = generated_text(args["expression"])
            case exp.GeneratedAsIdentityColumnConstraint(args=args):
                identity = ALWAYS if args.get("this") else BY_DEFAULT
                counts = next(identities or iter(()), SequenceOptions())
                _show(constraint.kind, counts)
            case other:
                raise unsupported(f"{other.sql(dialect='postgres')} in CREATE TABLE", node)
    type_ = parse_type(serial) if serial else declared_type(kind)
    default = _default_in_fields(default, kind)
    is_serial = bool(serial)
    for is_there, what in (
        (default is not None and generated is not None, "both default and generation expression"),
        (identity is not None and (default is not None or is_serial), "both default and identity"),
        (identity is not None and generated is not None, "both identity and generation expression"),
        (is_serial and (default is not None or generated is not None), "multiple default values"),
    ):
        if is_there:
            where = f' of table "{table}"' if table else ""
            message = f'{what} specified for column "{name}"{where}'
            raise Error(message, errors.SYNTAX_ERROR, position=position_of(node))
    if counts is not None:
        if type_.name not in _SERIALS.values() or type_.dimensions:
            message = "identity column type must be smallint, integer, or bigint"
            raise Error(message, errors.INVALID_PARAMETER_VALUE, position=position_of(node))
        counts = replace(counts, type=counts.type or type_.name)
        not_null = True
    column = ColumnDefinition(
        name, type_, not_null, default, generated, counts, identity, length_of(kind), tuple(checks),
        tuple(column_keys(node, name)), position_of(node) if is_padded(kind) else None,
    )  # fmt: skip
    return column, is_key


def _show(constraint: exp.Expr, counts: SequenceOptions) -> None:
    """Put an identity column's options into the text of its constraint."""
    for name, value in (
        ("start", counts.start), ("increment", counts.increment), ("minvalue", counts.minimum),
        ("maxvalue", counts.maximum),
    ):  # fmt: skip
        if isinstance(value, int):
            constraint.set(name, exp.Literal.number(value))
    constraint.set("cycle", counts.cycles)


def _default_in_fields(default: str | None, kind: exp.Expr) -> str | None:
    """Return a default, of which a text is read by the fields of a type of intervals."""
    modifier = modifier_of(kind) if isinstance(kind, exp.DataType) and kind.find(exp.Interval) else None
    value = parse_tree(f"SELECT {default}").expressions[0] if default is not None and modifier is not None else None
    if value is None or not value.is_string or modifier is None:
        return default
    return shown_default(interval_literal(exp.Literal.string(value.name), modifier))


def shown_default(interval: exp.Expr) -> str:
    """Return the text of an interval's literal without parts that are 0."""
    return exp.Literal.string(re.sub(r"\b0 (?:months|days|microseconds) ?", "", interval.name).strip() or "0").sql()


def several_keys(table: str) -> Error:
    """Return the error for a second primary key."""
    return Error(f'multiple primary keys for table "{table}" are not allowed', errors.INVALID_TABLE_DEFINITION)


def default_text(value: exp.Expr) -> str | None:
    """Return the text of an expression without inputs. Raises Error 0A000 for a column or a query in it, 42803."""
    for part in value.find_all(exp.Column, exp.Query, exp.Parameter):
        what = "column reference" if isinstance(part, exp.Column) else "subquery"
        if isinstance(part, exp.Parameter):
            raise unsupported(f"{part.sql(dialect='postgres')} in a DEFAULT expression", part)
        message = f"cannot use {what} in DEFAULT expression"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(part))
    if value.find(exp.AggFunc, exp.Window):
        raise Error("aggregate functions are not allowed in DEFAULT expressions", errors.GROUPING_ERROR)
    written = value.transform(_as_called)
    return None if isinstance(value, exp.Null) else shown_text(written)


def _as_called(node: exp.Expr) -> exp.Expr:
    """Return `now()` as it was written; sqlglot writes CURRENT_TIMESTAMP."""
    is_now = isinstance(node, exp.CurrentTimestamp) and node.meta.get("name") == "now"
    return exp.Anonymous(this="now") if is_now else node


# RisingWave's additions.


@dataclass(frozen=True)
class _Additions:
    """The clauses that sqlglot does not know, and the statement without them, with positions kept."""

    sql: str
    append_only: bool
    watermark: Watermark | None
    watermark_text: str
    watermark_position: int
    has_ttl: bool
    conflict: str | None
    conflict_position: int
    versions: tuple[tuple[str, int], ...]  # with their positions
    connector: Connector | None
    identities: tuple[SequenceOptions, ...]
    on_commit: str | None
    retention_s: int | None


_OPTIONS = ("appendonly", "retention_seconds")


def _options(reader: TokenReader) -> dict[str, tuple[str, int]]:
    """Parse `WITH (name = value, …)` of a table; each value has the position of its name.

    Options of other systems mean nothing here. Raises Error 22023 for one that looks like one of ours.
    """
    reader.expect("WITH")

    def option() -> tuple[str, tuple[str, int]]:
        position, name = reader.offset + 1, reader.option_name()
        hint = meant_option(name.lower(), _OPTIONS)
        if hint is not None:
            raise Error(
                f'unrecognized parameter "{name}"', errors.INVALID_PARAMETER_VALUE, hint=hint, position=position
            )
        return name.lower(), (reader.value() if reader.accept("=") else "true", position)

    return dict(reader.parenthesised(option))


def _retention(options: dict[str, tuple[str, int]], append_only: bool) -> int | None:
    """Return the seconds after which rows go. Raises Error 22023, or 0A000 for a table whose rows change."""
    if "retention_seconds" not in options:
        return None
    text, position = options["retention_seconds"]
    if not append_only:
        message = "Defining retention seconds on table requires the table to be append only."
        hint = "Use the key words `APPEND ONLY`"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position)
    if not text.isdigit() or not 0 < int(text) < 2**32:
        message = f"invalid value for retention_seconds: {text}"
        hint = "It is a number of seconds."
        raise Error(message, errors.INVALID_PARAMETER_VALUE, hint=hint, position=position)
    return int(text)


def _read_additions(reader: TokenReader, is_source: bool) -> _Additions:
    sql = reader.sql
    watermark: Watermark | None = None
    text, position, has_ttl = "", 0, False
    append_only = False
    conflict: str | None = None
    conflict_position = 0
    versions: tuple[tuple[str, int], ...] = ()
    append_only = is_source
    connector: Connector | None = None
    identities: list[SequenceOptions] = []
    on_commit: str | None = None
    options: dict[str, tuple[str, int]] = {}
    depth = 0
    before, before_start = "", 0  # the token before this one
    while not reader.at_end:
        start = reader.offset
        if depth == 1 and before in ("(", ",") and reader.accept("WATERMARK", "FOR"):
            if watermark is not None:
                raise Error("a table has one watermark", errors.FEATURE_NOT_SUPPORTED, position=start + 1)
            position = reader.offset + 1
            watermark, text, has_ttl = parse_watermark(reader)
            if before == "(":
                reader.accept(",")
            sql = _without(sql, before_start if before == "," else start, reader.offset)
        elif depth == 1 and reader.accept("AS", "IDENTITY"):
            start = reader.offset
            identities.append(_identity(reader))
            sql = _without(sql, start, reader.offset)
        elif depth == 0 and reader.accept("APPEND", "ONLY"):
            append_only = True
            sql = _without(sql, start, reader.offset)
        elif depth == 0 and conflict is None and reader.accept("ON", "CONFLICT"):
            conflict, conflict_position = _read_conflict(reader), start + 1
            sql = _without(sql, start, reader.offset)
        elif depth == 0 and reader.accept("ON", "COMMIT"):
            on_commit = read_on_commit(reader)
            sql = _without(sql, start, reader.offset)
        elif depth == 0 and not versions and reader.accept("WITH", "VERSION", "COLUMN"):
            versions = reader.parenthesised(reader.placed_identifier)
            sql = _without(sql, start, reader.offset)
        elif depth == 0 and before and (begins_connector(reader) or (is_source and reader.peek() == "WITH")):
            connector = parse_connector(reader)
            sql = _without(sql, start, reader.offset)
        elif depth == 0 and before and reader.peek() == "WITH" and reader.peek(1) == "(":
            options |= _options(reader)
            append_only = append_only or options.get("appendonly", ("", 0))[0].lower() in ("true", "t", "1")
            sql = _without(sql, start, reader.offset)
        else:
            if depth == 1 and before == "," and reader.peek() == ")":  # as in RisingWave
                sql = _without(sql, before_start, start)
            before, before_start = reader.peek(), start
            depth += {"(": 1, ")": -1}.get(before, 0)
            reader.accept(before)
    return _Additions(
        sql, append_only, watermark, text, position, has_ttl, conflict, conflict_position, versions, connector,
        tuple(identities), on_commit, _retention(options, append_only),
    )  # fmt: skip


def _identity(reader: TokenReader) -> SequenceOptions:
    """Parse `[(options)]`, of an identity column."""
    if not reader.accept("("):
        return SequenceOptions()
    options = parse_sequence_options(reader)
    reader.expect(")")
    return options


def _without(sql: str, start: int, end: int) -> str:
    return sql[:start] + blank(sql[start:end]) + sql[end:]


def parse_watermark(reader: TokenReader) -> tuple[Watermark, str, bool]:
    """Parse `column AS column [- {INTERVAL '5' SECOND | 5}] [WITH TTL]`.

    Returns it, the clause as normalised text without WITH TTL, and whether that is in it.
    """
    column = reader.identifier()
    reader.expect("AS")
    position = reader.offset + 1
    if reader.identifier() != column:
        raise Error(
            "a watermark is its own column, or that minus an interval or number",
            errors.FEATURE_NOT_SUPPORTED,
            position=position,
        )
    delay, subtracted = _delay(reader) if reader.accept("-") else (0, "")
    has_ttl = reader.accept("WITH", "TTL")
    if reader.peek() not in (",", ")", ""):
        raise reader.syntax_error()
    written = quote_if_needed(column)
    text = f"WATERMARK FOR {written} AS {written}" + (subtracted and f" - {subtracted}")
    return Watermark(column, delay), text, has_ttl


def _delay(reader: TokenReader) -> tuple[int, str]:
    """Parse `INTERVAL '5' SECOND` or `INTERVAL '1 minute 30 seconds'` in µs, or a number; and as normalised text."""
    if reader.peek().isdigit():
        number = reader.value()
        return int(number), number
    reader.expect("INTERVAL")
    position = reader.offset + 1
    text = reader.value()
    unit = reader.identifier() if reader.peek().lower() in UNITS else ""
    delay = fixed_length_us(f"{text} {unit}")
    if delay is None or delay < 0:
        raise Error(
            f'invalid delay of a watermark: "{text}"',
            errors.INVALID_DATETIME_FORMAT,
            hint=f"Its units are {', '.join(UNITS_US)}.",
            position=position,
        )
    return delay, f"INTERVAL '{text}' {unit.upper()}".strip()


# Types whose maximum is exact in the lake's statistics.
_ORDERED = ("timestamp", "date", "smallint", "integer", "bigint")


def _check_watermark(watermark: Watermark, columns: tuple[ColumnDefinition, ...], added: _Additions) -> None:
    column = next((column for column in columns if column.name == watermark.column), None)
    if column is None:
        raise Error(
            f'column "{watermark.column}" does not exist', errors.UNDEFINED_COLUMN, position=added.watermark_position
        )
    check_watermark_type(watermark, added.watermark_text, column.type, added.watermark_position)
    if not added.append_only and not added.has_ttl:
        raise Error(
            "Defining watermarks on table requires the table to be append only.",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Use the key words `APPEND ONLY`, or `WITH TTL` behind the watermark",
            position=added.watermark_position,
        )


def check_watermark_type(watermark: Watermark, text: str, type_: Type, position: int) -> None:
    """Raise Error unless a column of a type can have the watermark, which was written so: 0A000, 42804."""
    if type_.dimensions or not type_.name.startswith(_ORDERED):
        raise Error(
            f"a watermark on a column of type {type_.shown} is not supported",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Columns of timestamps, dates and integers can have one.",
            position=position,
        )
    is_number = text.rpartition(" - ")[2].isdigit()
    if watermark.delay and not (type_.is_integer if is_number else type_.name.startswith("timestamp")):
        raise Error(
            "The return value type of the watermark expression must be identical to the watermark column data type.",
            errors.DATATYPE_MISMATCH,
            detail=f"The column is of type {type_.shown}.",
            position=position,
        )
