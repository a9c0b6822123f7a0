"""CREATE SINK: its options, and how its rows fit its target table.

The names of options are RisingWave's (src/connector/src/sink, src/frontend/src/handler/create_sink.rs).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.column_names import unescaped
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Column, Relation
from sparkwave.catalog.names import meant_option
from sparkwave.catalog.relation_details import APPEND_ONLY, BLACKHOLE, FILES, KAFKA, S3, TABLE, UPSERT, Sink
from sparkwave.catalog.types import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    INTERVAL,
    NUMERIC,
    QUOTIENT,
    REAL,
    SMALLINT,
    TIME,
    TIMESTAMP,
    Type,
)
from sparkwave.planner.bind.binder import Scope, data_type, resolve
from sparkwave.planner.definitions.connectors import (
    KAFKA_CONNECTION,
    KAFKA_OPTIONS,
    KAFKA_REQUIRED,
    KAFKA_SINK_OPTIONS,
    S3_OPTIONS,
    S3_REQUIRED,
)
from sparkwave.planner.definitions.counting import draws
from sparkwave.planner.definitions.view_options import KNOWN, rows_a_second
from sparkwave.planner.parse.with_options import CONNECTION
from sparkwave.planner.plan.nodes import Item, Project
from sparkwave.planner.statements import CreateSink, Option

# The option with the directory, by connector.
_PATHS = {**dict(zip(FILES, ("fs.path", "posix_fs.root"), strict=True)), S3: "s3.path"}
_TYPE, _FORCED, _IGNORES_DELETES, _SNAPSHOT = "type", "force_append_only", "ignore_delete", "snapshot"
# An option that is always as if it were true: an epoch's changes of a row are one change.
_COMPACTED = "force_compaction"
_RATE_LIMIT = "sink_rate_limit"
# An option that cannot be true: a sink keeps the columns that it was made with.
_FOLLOWS_COLUMNS = "auto.schema.change"
_FLAGS = (_FORCED, _IGNORES_DELETES, _SNAPSHOT, _COMPACTED, _FOLLOWS_COLUMNS)
_TYPED = frozenset({_TYPE, _FORCED, _IGNORES_DELETES})
_OF_ALL = _TYPED | {_SNAPSHOT, _COMPACTED, _RATE_LIMIT, _FOLLOWS_COLUMNS}
# The options of each connector besides `connector` itself.
_TAKEN: dict[str, frozenset[str]] = {
    TABLE: _OF_ALL,
    BLACKHOLE: _OF_ALL | {"primary_key"},
    **{connector: _OF_ALL | {path} for connector, path in _PATHS.items() if connector != S3},
    S3: _OF_ALL | {"s3.path", *S3_OPTIONS},
    KAFKA: _OF_ALL | {"primary_key", CONNECTION, *KAFKA_OPTIONS, *KAFKA_SINK_OPTIONS},
}
_REQUIRED = {**{connector: (path,) for connector, path in _PATHS.items()}, S3: S3_REQUIRED, KAFKA: KAFKA_REQUIRED}
_FORMATS = {"plain": APPEND_ONLY, "upsert": UPSERT}
_ENCODES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys((*FILES, S3), ("parquet", "json", "csv")),
    KAFKA: ("json",),
}


@dataclass(frozen=True)
class SinkOptions:
    """The options of a CREATE SINK, those of the job apart from the connector's.

    `type` None means: follow the query.
    """

    of_job: tuple[Option, ...]
    given: dict[str, Option]
    connector: str
    type: str | None
    is_forced: bool
    encode: str | None
    ignores_deletes: bool = False
    has_snapshot: bool = True

    @property
    def path(self) -> Option | None:
        return self.given.get(_PATHS.get(self.connector, ""))


def sink_options(statement: CreateSink) -> SinkOptions:
    """Return the options of a CREATE SINK.

    Raises Error 42601 without WITH, 0A000 for an unknown connector or format, 22023 for a wrong option.
    """
    of_job = tuple(option for option in statement.options if option.name in KNOWN)
    given = {option.name: option for option in statement.options if option.name not in KNOWN}
    connector = _connector(statement, given)
    format_ = statement.format
    encoded = {option.name: option for option in format_.options} if format_ is not None else {}
    unknown = sorted(given.keys() - _TAKEN[connector] - {"connector"}) or sorted(encoded.keys() - _TYPED)
    if unknown:
        listed = ", ".join(f'"{name}"' for name in unknown)
        position = {**encoded, **given}[unknown[0]].position
        error = _invalid(f"unexpected options in WITH clause: [{listed}]", position)
        error.hint = meant_option(unknown[0], (*_TAKEN[connector], *KNOWN, *_TYPED))
        raise error
    if format_ is not None and connector not in _ENCODES:
        message = f"connector {connector} is not supported by FORMAT ... ENCODE ... syntax"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=format_.position)
    type_ = _type(given.get(_TYPE))
    encode = _ENCODES[connector][0] if connector in _ENCODES else None
    if format_ is None and connector == KAFKA:
        hint = "FORMAT PLAIN ENCODE JSON, or FORMAT UPSERT ENCODE JSON."
        raise Error("missing FORMAT … ENCODE … clause", errors.SYNTAX_ERROR, hint=hint, position=_at(given))
    if format_ is not None:
        type_ = _FORMATS[_one_of(format_.format, "sink format", tuple(_FORMATS), format_.position)]
        encode = _one_of(format_.encode, "sink encode", _ENCODES[connector], format_.position)
    flags = {name: option for name, option in {**encoded, **given}.items() if name in _FLAGS}
    is_on = {name: _is_true(option) for name, option in flags.items()}
    if type_ == UPSERT and is_on.get(_FORCED):
        plain = "type='append-only'" if format_ is None else "FORMAT PLAIN"
        raise _invalid(f'Cannot force the sink to be append-only without "{plain}".', flags[_FORCED].position)
    if is_on.get(_FOLLOWS_COLUMNS):
        raise _fixed_columns(statement, connector, flags[_FOLLOWS_COLUMNS].position)
    has_snapshot = is_on.get(_SNAPSHOT, True)
    if not has_snapshot and statement.source is None:
        raise later_changes_only(flags[_SNAPSHOT].position)
    ignores = is_on.get(_IGNORES_DELETES, False)
    found = SinkOptions(of_job, given, connector, type_, is_on.get(_FORCED, False), encode, ignores, has_snapshot)
    from_connection = KAFKA_CONNECTION if CONNECTION in given else ()
    required = (name for name in _REQUIRED.get(connector, ()) if name not in from_connection)
    missing = next((name for name in required if name not in given), None)
    if missing is not None:
        raise _invalid(f"missing field '{missing}'", _at(given))
    if connector in FILES:
        _check_path(found)
    return found


def _fixed_columns(statement: CreateSink, connector: str, position: int) -> Error:
    """Return the error, RisingWave's where it has one, for a sink that should get the new columns of its upstream."""
    if statement.target is not None:
        message = "auto schema change not supported for sink-into-table"
    elif statement.source is None:
        message = "auto schema change not supported for CREATE SINK AS QUERY"
    else:
        message = f"{connector} sink does not support schema change"
    hint = "DROP SINK, and CREATE SINK … WITH (snapshot = false) has the columns that there are then."
    return Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position)


def _at(given: dict[str, Option]) -> int:
    return given["connector"].position


def _connector(statement: CreateSink, given: dict[str, Option]) -> str:
    option = given.get("connector")
    if statement.target is not None:
        if option is not None and option.value != TABLE:
            raise _invalid("a sink into a table has no connector", option.position)
        return TABLE
    if not statement.options:
        hint = "WITH (connector = …) says where the changes go; INTO a table needs none."
        raise Error("sink properties not provided", errors.SYNTAX_ERROR, hint=hint, position=statement.name.position)
    if option is None:
        raise _invalid("missing field 'connector'", statement.options[0].position)
    if option.value == TABLE:
        hint = "CREATE SINK … INTO a table needs no connector."
        raise Error("unsupported sink type table", errors.FEATURE_NOT_SUPPORTED, hint=hint, position=option.position)
    supported = (BLACKHOLE, *FILES, S3, KAFKA)
    if option.value not in supported:
        raise Error(
            f"unsupported sink connector: {option.value}",
            errors.FEATURE_NOT_SUPPORTED,
            hint=f"Supported are {', '.join(supported)}, and CREATE SINK … INTO a table.",
            position=option.value_position,
        )
    return option.value


def _type(option: Option | None) -> str | None:
    if option is None:
        return None
    if option.value not in (APPEND_ONLY, UPSERT):
        message = f"`type` must be {APPEND_ONLY} or {UPSERT}, not {option.value}"
        raise _invalid(message, option.value_position)
    return option.value


def _is_true(option: Option) -> bool:
    if option.value.lower() not in ("true", "false"):
        raise _invalid(f"`{option.name}` must be true or false", option.value_position)
    return option.value.lower() == "true"


def later_changes_only(position: int) -> Error:
    """Return RisingWave's error for a sink of later changes whose rows do not come from one stored relation."""
    message = "`snapshot = false` only support `CREATE SINK FROM MV or TABLE`"
    return Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)


def _one_of(value: str, what: str, known: tuple[str, ...], position: int) -> str:
    if value not in known:
        hint = f"Supported are {', '.join(word.upper() for word in known)}."
        message = f"{what} unsupported: {value.upper()}"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint=hint, position=position)
    return value


def _check_path(options: SinkOptions) -> None:
    path = options.path
    if path is not None and not path.value.startswith("/"):
        raise _invalid(f"{path.name} is not an absolute path: {path.value}", path.value_position)


def _invalid(message: str, position: int) -> Error:
    return Error(message, errors.INVALID_PARAMETER_VALUE, position=position)


def planned_sink(statement: CreateSink, root: Project, target: Relation | None) -> Sink:
    """Return the properties of a sink over its plan.

    Raises Error 0A000 when the sink should be append-only and the plan is not.
    """
    options = sink_options(statement)
    grows = root.grows
    type_ = options.type or (APPEND_ONLY if grows or options.is_forced else UPSERT)
    if type_ == APPEND_ONLY and not (grows or options.is_forced):
        raise Error(
            "The sink cannot be append-only",
            errors.FEATURE_NOT_SUPPORTED,
            hint="force_append_only = 'true' leaves DELETE out and makes an UPDATE an INSERT.",
            position=statement.name.position,
        )
    path = options.path
    directory = path.value if path is not None else None
    limit = options.given.get(_RATE_LIMIT)
    made = Sink(
        options.connector,
        type_,
        type_ == APPEND_ONLY and not grows,
        target.id if target is not None else None,
        directory.strip("/") if directory and options.connector == S3 else directory,
        options.encode,
        options=tuple((name, option.value) for name, option in options.given.items() if option.secret is None),
        key=_key(statement, options, type_, root),
        has_snapshot=options.has_snapshot,
        ignores_deletes=options.ignores_deletes,
        rate_limit=rows_a_second(limit, "the sink") if limit is not None else None,
    )
    if limit is not None and not made.may_be_limited:
        raise no_rate_limit(limit.position)
    return made


def no_rate_limit(position: int) -> Error:
    """Return RisingWave's error for the rate limit of a sink that delivers with the barrier."""
    return Error(
        "sink rate limit is only supported for kv log store, please SET sink_decouple = TRUE before CREATE SINK",
        errors.FEATURE_NOT_SUPPORTED,
        hint="Sinks to s3 and kafka have a log; blackhole sinks too, unless sink_decouple is false. Into tables and "
        "files, rows go with the barrier.",
        position=position,
    )


def _key(statement: CreateSink, options: SinkOptions, type_: str, root: Project) -> tuple[str, ...]:
    """Return the key columns of a sink's messages. Raises Error 42601 when a required key is missing, 42703."""
    option = options.given.get("primary_key")
    if options.connector != KAFKA:
        return ()
    if option is None:
        if type_ == UPSERT:
            message = "Primary key must be defined for upsert kafka sink. Please define the `primary_key` field."
            raise Error(message, errors.SYNTAX_ERROR, position=_at(options.given))
        return ()
    names = tuple(name.strip() for name in option.value.split(","))
    known = {unescaped(item.name) for item in root.items}
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        message = f'column "{unknown}" of primary_key does not exist in the sink'
        raise Error(message, errors.UNDEFINED_COLUMN, position=option.value_position)
    return names


# Sinks into a table.


def target_of(statement: CreateSink, catalog: Catalog, scope: Scope) -> Relation | None:
    """Return the table that a sink writes to. Raises Error 42P01, 42809."""
    name = statement.target
    if name is None:
        return None
    target = resolve(catalog, scope, name, "table")
    if target.kind != "table":
        raise Error(f'cannot change {target.kind} "{name}"', errors.WRONG_OBJECT_TYPE, position=name.position)
    return target


def into_target(root: Project, statement: CreateSink, target: Relation, made: Relation | None) -> Project:
    """Return the outputs with the names and types of the target's columns. `made` is the stored sink, if there is one.

    Raises Error 42601, 42703, 42701, 42804, or 0A000 for an omitted column that counts.
    """
    if made is not None:
        written = zip(root.items, written_columns(made, target), made.visible, strict=True)
        items = (_assigned(item, replace(column, name=own.name), statement) for item, column, own in written)
        return replace(root, items=tuple(items))
    columns = _target_columns(statement, target, len(root.items))
    if len(columns) != len(root.items):
        more = (
            "expressions than target columns" if len(root.items) > len(columns) else "target columns than expressions"
        )
        raise Error(f"the sink has more {more}", errors.SYNTAX_ERROR, position=statement.name.position)
    counting = next((c for c in target.visible if c not in columns and draws(c.default)), None)
    if counting is not None:
        raise leaves_out_numbers(counting, statement.name.position)
    return replace(root, items=tuple(_assigned(i, c, statement) for i, c in zip(root.items, columns, strict=True)))


def leaves_out_numbers(column: Column, position: int) -> Error:
    """Return the error for a sink that would draw from a sequence: a barrier writes its rows, and reserves none."""
    message = f'a sink cannot leave out column "{column.name}", whose default is the next number of a sequence'
    return Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)


def _target_columns(statement: CreateSink, target: Relation, width: int) -> tuple[Column, ...]:
    """Return the columns that a new sink writes: the named ones, or the first that are not generated."""
    if not statement.target_columns:
        return tuple(column for column in target.visible if column.generated is None)[:width]
    by_name = {column.name: column for column in target.visible}
    found: dict[str, Column] = {}
    for name, position in statement.target_columns:
        if name not in by_name:
            message = f'column "{name}" of relation "{target.name}" does not exist'
            raise Error(message, errors.UNDEFINED_COLUMN, position=position)
        if name in found:
            message = f'column "{name}" specified more than once'
            raise Error(message, errors.DUPLICATE_COLUMN, position=position)
        found[name] = by_name[name]
    return tuple(found.values())


def written_columns(relation: Relation, target: Relation) -> tuple[Column, ...]:
    """Return the table's columns that a sink writes, in the order of the sink's columns.

    The sink's columns have the names that the table's had when the sink was made.
    """
    then = {column.name: column.lake_name for column in target.as_of(relation.definition_id).columns}
    now = {column.lake_name: column for column in target.visible}
    return tuple(now[then[column.name]] for column in relation.visible)


# Casts that PostgreSQL does by itself and that no row makes fail: from the first type to any of the others.
_FLOATS = (REAL, DOUBLE)
_IMPLICIT: dict[Type, tuple[Type, ...]] = {
    SMALLINT: (INTEGER, BIGINT, NUMERIC, QUOTIENT, *_FLOATS),
    INTEGER: (BIGINT, NUMERIC, QUOTIENT, *_FLOATS),
    BIGINT: (NUMERIC, QUOTIENT, *_FLOATS),
    REAL: (DOUBLE,),
    DATE: (TIMESTAMP,),
    TIME: (INTERVAL,),
}


def _assigned(item: Item, column: Column, statement: CreateSink) -> Item:
    if item.type == column.type or (item.type.is_text and column.type.is_text):
        return replace(item, name=column.name)
    is_implicit = column.type in _IMPLICIT.get(item.type, ())
    if not is_implicit and not (item.type.name == "numeric" and column.type in (NUMERIC, QUOTIENT, *_FLOATS)):
        raise Error(
            f'column "{column.name}" is of type {column.type.shown} but the sink\'s is of type {item.type.shown}',
            errors.DATATYPE_MISMATCH,
            hint="You will need to cast it in the sink's query.",
            position=statement.name.position,
        )
    return Item(column.name, exp.cast(item.expression.copy(), data_type(column.type)), column.type)


def check_target(statement: CreateSink, sink: Sink, columns: Iterable[Column], target: Relation) -> None:
    """Check that the table can take the rows of a sink with these columns. Raises Error 0A000, 23502."""
    name = statement.target
    assert name is not None
    names = {column.name for column in columns if not column.is_hidden}
    for column in target.visible:
        is_left_out = column.name not in names and column.default is None and column.generated is None
        if is_left_out and column.not_null and column.name not in target.primary_key and not target.fills_up:
            message = f'null value in column "{column.name}" of relation "{target.name}" violates not-null constraint'
            raise Error(message, errors.NOT_NULL_VIOLATION, position=name.position)
    if sink.type == UPSERT:
        _check_upserts(target, name.position)
    for column in target.visible:
        if column.name in target.primary_key and column.name not in names:
            if sink.type == APPEND_ONLY and (column.default is not None or column.generated is not None):
                continue
            raise Error(
                "When using non append only sink into table, the primary key of the table must be included in the sink "
                "result."
                if sink.type == UPSERT
                else f'the sink has no value for the key column "{column.name}" of table "{target.name}"',
                errors.FEATURE_NOT_SUPPORTED,
                detail=f'The sink has no value for the column "{column.name}".' if sink.type == UPSERT else None,
                position=name.position,
            )


def _check_upserts(target: Relation, position: int) -> None:
    """Raise Error 0A000 for a table that only takes new rows."""
    if target.primary_key and not target.append_only:
        return
    which = "to a table without primary keys" if not target.primary_key else "to a append only table"
    raise Error(
        f"Only append-only sinks can sink {which}.",
        errors.FEATURE_NOT_SUPPORTED,
        hint="please try to add type = 'append-only' in the with option. e.g. create sink s into t as select * from t1 "
        "with (type = 'append-only'); with force_append_only = 'true' for rows that change.",
        position=position,
    )


def check_no_circle(kind: str, upstreams: Iterable[int], written: int, position: int, catalog: Catalog) -> None:
    """Raise Error 0A000 for a job that writes to a relation that it reads, directly or through others."""
    if written in catalog.closure(upstreams):
        raise circular_dependency(kind, position)


def circular_dependency(kind: str, position: int | None = None) -> Error:
    """Return RisingWave's error for rows that would feed themselves."""
    message = f"Creating such a {kind} will result in circular dependency."
    return Error(message, errors.FEATURE_NOT_SUPPORTED, position=position)
