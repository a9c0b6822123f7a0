"""The known connectors, and the check that the options of a table or source fit its connector.

RisingWave: src/frontend/src/handler/create_source/validate.rs and src/connector/src/source.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Column
from sparkwave.catalog.source_model import Source
from sparkwave.catalog.types import BIGINT, BYTEA, JSONB, TIMESTAMP, TIMESTAMPTZ, VARCHAR, Type
from sparkwave.planner.definitions.generators import WrongField, datagen_rows
from sparkwave.planner.parse.source import rate_limit
from sparkwave.planner.statements import Connector, Option

RATE_LIMIT = "source_rate_limit"
_COMMON = ("connector", RATE_LIMIT)


@dataclass(frozen=True)
class Kind:
    """A connector. `formats` are pairs of FORMAT and ENCODE, the first for a statement without them.

    `options` are checked by functions of (name, value) that raise ValueError; a name that ends in `.` allows every name
    with this beginning. `includes` are the further columns of a row besides its values, with the types.
    """

    formats: tuple[tuple[str, str], ...]
    options: Mapping[str, Callable[[str], None]]
    required: tuple[str, ...] = ()
    includes: Mapping[str, Type] | None = None
    needs_format: bool = False


def _any(value: str) -> None:
    pass


def _field(value: str) -> None:
    """Accept an option of a column, whose values depend on the column's type (`_check_datagen`)."""


def _number(value: str) -> None:
    if not re.fullmatch(r"\d{1,18}", value):
        raise ValueError("It is a whole number.")


def _positive(value: str) -> None:
    _number(value)
    if not int(value):
        raise ValueError("It is a whole number above 0.")


def _one_of(*values: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value.lower() not in values:
            raise ValueError(f"It is {' or '.join(values)}.")

    return check


def _character(value: str) -> None:
    if len(value.encode()) != 1 or value in '"\n\r':
        raise ValueError("It is one character.")


_NEXMARK_NUMBERS = (
    "event.num", "min.event.gap.in.ns", "first.event.id", "first.event.number", "base.time", "avg.person.byte.size",
    "avg.auction.byte.size", "avg.bid.byte.size", "first.auction.id", "first.person.id", "first.category.id",
    "auction.id.lead", "person.id.lead", "in.flight.auctions",
)  # fmt: skip
# Divisors. `threads`, chunks and splits are internals of RisingWave that do not change the rows.
_NEXMARK_POSITIVE = (
    "active.people", "num.categories", "hot.seller.ratio", "hot.auction.ratio", "hot.bidder.ratio", "hot.channel.ratio",
    "hot.seller.ratio.2", "hot.auction.ratio.2", "hot.bidder.ratio.2", "person.proportion", "auction.proportion",
    "bid.proportion", "first.event.rate", "us.per.unit", "split.num", "max.chunk.size", "threads",
)  # fmt: skip

_FILE_FORMATS = (("PLAIN", "CSV"), ("PLAIN", "JSON"), ("PLAIN", "PARQUET"))
_FILE_INCLUDES = {"file": VARCHAR, "offset": VARCHAR}
# Options of sources and sinks (RisingWave: src/connector/src/aws_utils.rs and src/connector/src/source/filesystem).
S3_OPTIONS = (
    "s3.region_name", "s3.bucket_name", "s3.endpoint_url", "s3.credentials.access", "s3.credentials.secret",
    "s3.credentials.session_token", "s3.assume_role", "enable_config_load",
)  # fmt: skip
S3_REQUIRED = ("s3.region_name", "s3.bucket_name")
# The options of librdkafka that RisingWave knows (src/connector/src/connector_common/common.rs).
KAFKA_CONNECTION = (
    "properties.bootstrap.server", "properties.security.protocol", "properties.sasl.mechanism",
    "properties.sasl.username", "properties.sasl.password", "properties.ssl.ca.location",
    "properties.ssl.certificate.location", "properties.ssl.key.location", "properties.ssl.key.password",
    "properties.ssl.endpoint.identification.algorithm",
)  # fmt: skip
KAFKA_OPTIONS = (
    "topic", *KAFKA_CONNECTION, "properties.message.max.bytes", "properties.receive.message.max.bytes",
    "properties.client.id", "properties.socket.keepalive.enable",
)  # fmt: skip
KAFKA_REQUIRED = ("properties.bootstrap.server", "topic")
KAFKA_SINK_OPTIONS = (
    "properties.compression.codec", "properties.batch.size", "properties.batch.num.messages",
    "properties.message.timeout.ms", "properties.request.required.acks",
)  # fmt: skip
KAFKA_SOURCE_OPTIONS = (
    "properties.fetch.max.bytes", "properties.fetch.wait.max.ms", "properties.queued.min.messages",
    "properties.fetch.queue.backoff.ms", "group.id.prefix",
)  # fmt: skip
_POSTGRES = (
    "hostname", "username", "password", "database.name", "schema.name", "table.name", "slot.name", "publication.name"
)  # fmt: skip

KINDS: Mapping[str, Kind] = {
    "datagen": Kind(
        (("PLAIN", "JSON"), ("PLAIN", "BYTES"), ("NATIVE", "NATIVE")),
        {"datagen.rows.per.second": _positive, "datagen.split.num": _positive, "fields.": _field},
    ),
    "nexmark": Kind(
        (("NATIVE", "NATIVE"), ("PLAIN", "JSON"), ("PLAIN", "BYTES")),
        {
            "nexmark.table.type": _one_of("person", "auction", "bid"),
            "nexmark.use.real.time": _one_of("true", "false"),
            **{f"nexmark.{name}": _number for name in _NEXMARK_NUMBERS},
            **{f"nexmark.{name}": _positive for name in _NEXMARK_POSITIVE},
        },
    ),
    "posix_fs": Kind(
        _FILE_FORMATS,
        {"posix_fs.root": _any, "match_pattern": _any, "compression_format": _one_of("none", "")},
        required=("posix_fs.root",),
        includes=_FILE_INCLUDES,
        needs_format=True,
    ),
    "s3": Kind(
        _FILE_FORMATS,
        {
            **dict.fromkeys(S3_OPTIONS, _any),
            "enable_config_load": _one_of("true", "false"),
            "match_pattern": _any,
            "compression_format": _one_of("none", ""),
            "refresh.interval.sec": _positive,
        },
        required=S3_REQUIRED,
        includes=_FILE_INCLUDES,
        needs_format=True,
    ),
    "kafka": Kind(
        (("PLAIN", "JSON"), ("PLAIN", "CSV"), ("PLAIN", "BYTES"), ("UPSERT", "JSON")),
        {
            **dict.fromkeys((*KAFKA_OPTIONS, *KAFKA_SOURCE_OPTIONS), _any),
            "scan.startup.mode": _one_of("earliest", "latest", "timestamp"),
            "scan.startup.timestamp.millis": _number,
        },
        required=KAFKA_REQUIRED,
        includes={
            "key": BYTEA,
            "partition": VARCHAR,
            "offset": VARCHAR,
            "timestamp": TIMESTAMPTZ,
            "header": Type("struct", dimensions=1, fields=(("key", VARCHAR), ("value", BYTEA))),
            "payload": JSONB,
        },
        needs_format=True,
    ),
    "postgres-cdc": Kind(
        (("PLAIN", "JSON"), ("DEBEZIUM", "JSON")),
        {
            "port": _positive,
            "publication.create.enable": _one_of("true"),
            **dict.fromkeys(_POSTGRES, _any),
        },
        required=("hostname", "username", "database.name"),
    ),
}
_ENCODE_OPTIONS: Mapping[str, Mapping[str, Callable[[str], None]]] = {
    "CSV": {"without_header": _one_of("true", "false"), "delimiter": _character},
}


def read_source(clause: Connector, columns: tuple[Column, ...], default_limit: int | None) -> Source:
    """Return the source that a statement describes, for a relation with these visible columns.

    The columns of INCLUDE are not among them. Raises Error 22023 for an option that is missing, unknown or wrong, 0A000
    for columns or rows that a connector cannot deliver.
    """
    name, kind = _kind(clause)
    options = {option.name: option.value for option in clause.options if option.secret is None}
    named = {option.name for option in clause.options if option.secret is not None}
    format_, encode = _format(name, kind, clause)
    _check_options(f"connector {name}", kind.options, clause.options)
    _check_options(f"ENCODE {encode}", _ENCODE_OPTIONS.get(encode, {}), clause.encode_options)
    for required in kind.required:
        if not options.get(required) and required not in named:
            raise _wrong(f"missing field `{required}`", clause.position)
    limit = next((rate_limit(o.value, o.value_position) for o in clause.options if o.name == RATE_LIMIT), default_limit)
    source = Source(
        0,
        name,
        options,
        format_,
        encode,
        {option.name: option.value for option in clause.encode_options},
        tuple((what, column) for what, column, _ in clause.includes),
        limit,
    )
    _check_maps(name, columns, clause)
    _CHECKS[name](source, columns, clause)
    return source


def known_columns(clause: Connector) -> tuple[Column, ...]:
    """Return the columns of a statement that lists none: those of its connector. Raises Error 42601, 22023."""
    options = {option.name: option.value for option in clause.options}
    name = _kind(clause)[0] if clause.shared is None else ""
    if name == "nexmark":
        return _nexmark_columns(options)
    if name == "postgres-cdc" and "table.name" not in options:
        return (Column("payload", JSONB),)  # as in RisingWave, where nobody can read it either
    raise Error(
        "columns must be listed for this connector",
        errors.SYNTAX_ERROR,
        hint="CREATE … name (column type, …) WITH (…)",
        position=clause.position,
    )


def include_columns(clause: Connector) -> tuple[Column, ...]:
    """Return the columns of INCLUDE. Raises Error 22023 for one that the connector does not have."""
    connector = next((option.value for option in clause.options if option.name == "connector"), "")
    known = (KINDS[connector].includes if connector in KINDS else None) or {}
    for what, _, position in clause.includes:
        if what not in known:
            hint = f"It has {', '.join(known)}." if known else None
            raise _wrong(f"connector {connector} does not support INCLUDE {what}", position, hint)
    return tuple(Column(column, known[what]) for what, column, _ in clause.includes)


def _kind(clause: Connector) -> tuple[str, Kind]:
    """Return the name of the statement's connector, and the connector."""
    option = next((option for option in clause.options if option.name == "connector"), None)
    if option is None:
        raise _wrong("missing field 'connector'", clause.position)
    if option.value not in KINDS:
        hint = f"There are {', '.join(sorted(KINDS))}."
        raise _wrong(f'connector "{option.value}" is not supported', option.value_position, hint)
    return option.value, KINDS[option.value]


def _format(name: str, kind: Kind, clause: Connector) -> tuple[str, str]:
    if not clause.format:
        if kind.needs_format:
            raise _wrong("missing FORMAT … ENCODE … clause", clause.position, "E.g. FORMAT PLAIN ENCODE CSV.")
        return kind.formats[0]
    if clause.format not in {format_ for format_, _ in kind.formats}:
        raise _wrong(f"connector {name} does not support format {clause.format.title()}", clause.position)
    if (clause.format, clause.encode) not in kind.formats:
        listed = ", ".join(encode for format_, encode in kind.formats if format_ == clause.format)
        message = (
            f"connector {name} does not support format {clause.format.title()} with encode {clause.encode.title()}"
        )
        raise _wrong(message, clause.position, f"It supports ENCODE {listed}.")
    return clause.format, clause.encode


def _check_options(what: str, known: Mapping[str, Callable[[str], None]], given: tuple[Option, ...]) -> None:
    for option in given:
        if option.name in _COMMON and not what.startswith("ENCODE") and option.secret is None:
            continue
        check = known.get(option.name) or next(
            (found for name, found in known.items() if name.endswith(".") and option.name.startswith(name)), None
        )
        if check is None:
            listed = ", ".join(name + ("*" if name.endswith(".") else "") for name in known)
            hint = f"It has {listed}." if known and len(known) < 12 else None
            raise _wrong(f'unknown option "{option.name}" of {what}', option.position, hint)
        if option.secret is not None:
            if check is not _any:
                raise _wrong(f'option "{option.name}" cannot be a secret', option.value_position)
            continue
        try:
            check(option.value)
        except ValueError as error:
            message = f"invalid value for {option.name}: {option.value}"
            raise _wrong(message, option.value_position, str(error)) from error


def _wrong(message: str, position: int | None, hint: str | None = None) -> Error:
    return Error(message, errors.INVALID_PARAMETER_VALUE, hint=hint, position=position)


# The requirements of each connector on the columns.


def _check_datagen(source: Source, columns: tuple[Column, ...], clause: Connector) -> None:
    try:
        datagen_rows(source.options, columns)
    except WrongField as error:
        position = next((o.position for o in clause.options if o.name == error.option), clause.position)
        raise _wrong(str(error), position) from error


_NEXMARK: Mapping[str, tuple[tuple[str, Type], ...]] = {
    "person": (
        ("id", BIGINT), ("name", VARCHAR), ("email_address", VARCHAR), ("credit_card", VARCHAR), ("city", VARCHAR),
        ("state", VARCHAR), ("date_time", TIMESTAMP), ("extra", VARCHAR),
    ),
    "auction": (
        ("id", BIGINT), ("item_name", VARCHAR), ("description", VARCHAR), ("initial_bid", BIGINT), ("reserve", BIGINT),
        ("date_time", TIMESTAMP), ("expires", TIMESTAMP), ("seller", BIGINT), ("category", BIGINT), ("extra", VARCHAR),
    ),
    "bid": (
        ("auction", BIGINT), ("bidder", BIGINT), ("price", BIGINT), ("channel", VARCHAR), ("url", VARCHAR),
        ("date_time", TIMESTAMP), ("extra", VARCHAR),
    ),
}  # fmt: skip


def _nexmark_columns(options: Mapping[str, str]) -> tuple[Column, ...]:
    """Return the columns of the table type; without one, a row is an event of any type."""
    table = options.get("nexmark.table.type", "").lower()
    if table in _NEXMARK:
        return tuple(Column(name, type_) for name, type_ in _NEXMARK[table])
    structs = tuple(Column(name, Type("struct", fields=fields)) for name, fields in _NEXMARK.items())
    return (Column("event_type", BIGINT), *structs)


def _check_nexmark(source: Source, columns: tuple[Column, ...], clause: Connector) -> None:
    expected = [(column.name, column.type) for column in _nexmark_columns(source.options)]
    given = [(column.name, column.type) for column in columns]
    plain = [(name, VARCHAR if type_.is_text else type_) for name, type_ in given]
    if plain != expected:
        raise Error(
            "The schema of the nexmark source must specify all columns in order",
            errors.INVALID_PARAMETER_VALUE,
            detail=f"They are {', '.join(f'{name} {type_}' for name, type_ in expected)}.",
            position=clause.position,
        )


def _check_maps(connector: str, columns: tuple[Column, ...], clause: Connector) -> None:
    for column in columns:
        if column.type.holds_map:
            message = f'column "{column.name}" of type {column.type.shown} cannot be read by connector {connector}'
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=clause.position)


def _check_files(source: Source, columns: tuple[Column, ...], clause: Connector) -> None:
    for column in columns:
        if source.encode == "CSV" and (column.type.dimensions or column.type.is_struct):
            message = f'column "{column.name}" of type {column.type.shown} cannot be read from CSV'
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=clause.position)


def _check_kafka(source: Source, columns: tuple[Column, ...], clause: Connector) -> None:
    _check_files(source, columns, clause)
    if source.options.get("scan.startup.mode", "").lower() == "timestamp":
        if "scan.startup.timestamp.millis" not in source.options:
            raise _wrong("missing field `scan.startup.timestamp.millis`", clause.position)
    elif "scan.startup.mode" in source.options and "scan.startup.timestamp.millis" in source.options:
        raise _wrong("scan.startup.timestamp.millis is for scan.startup.mode = 'timestamp'", clause.position)
    if source.encode == "CSV" and source.encode_options.get("without_header", "").lower() != "true":
        raise _wrong("ENCODE CSV of connector kafka needs without_header = 'true'", clause.position)
    if source.encode == "BYTES" and [column.type for column in columns] != [BYTEA]:
        raise _wrong("ENCODE BYTES only supports one column of type bytea", clause.position)
    whats = [what for what, _ in source.includes]
    if source.encode != "JSON" and "payload" in whats:
        raise _wrong("INCLUDE payload is for ENCODE JSON", clause.position)


def check_key(source: Source, primary_key: tuple[str, ...], clause: Connector) -> None:
    """Raise Error 22023 when the messages' key does not identify the rows of an upsert source."""
    if source.format != "UPSERT":
        return
    key = tuple(column for what, column in source.includes if what == "key")
    if not key:
        raise _wrong("INCLUDE KEY clause must be set for FORMAT UPSERT ENCODE JSON", clause.position)
    if primary_key != key:
        message = f'Only "{key[0]}" can be used as primary key'
        raise _wrong(message, clause.position, f"CREATE TABLE … (…, PRIMARY KEY ({key[0]})) INCLUDE KEY AS {key[0]} …")


def _check_postgres(source: Source, columns: tuple[Column, ...], clause: Connector) -> None:
    for column in columns:
        if column.type.dimensions or column.type.is_struct:
            message = f'column "{column.name}" of type {column.type.shown} cannot be read from PostgreSQL'
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=clause.position)


_CHECKS: Mapping[str, Callable[[Source, tuple[Column, ...], Connector], None]] = {
    "datagen": _check_datagen,
    "nexmark": _check_nexmark,
    "posix_fs": _check_files,
    "s3": _check_files,
    "kafka": _check_kafka,
    "postgres-cdc": _check_postgres,
}


def settled_options(source: Source, now_ms: int) -> Source:
    """Return the source with the options that its connector settles at its creation, to be the same after a restart."""
    if source.connector == "nexmark" and "nexmark.base.time" not in source.options:
        # RisingWave: src/connector/src/source/nexmark/mod.rs, where one table type begins at 2015-07-15.
        base = 1_436_918_400_000 if "nexmark.table.type" in source.options else now_ms
        return replace(source, options={**source.options, "nexmark.base.time": str(base)})
    if source.connector == "datagen":
        return replace(source, options={**source.options, "datagen.base.time": str(now_ms)})
    return source
