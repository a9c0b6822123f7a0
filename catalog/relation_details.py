"""The details and the streaming settings of relations, as frozen data; `relations` has their JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

# The kinds of relations that a streaming job creates and keeps up to date.
MATERIALIZED_VIEW, INDEX, SINK = "materialized view", "index", "sink"
STREAMING = (MATERIALIZED_VIEW, INDEX, SINK)
SEQUENCE = "sequence"


def with_article(kind: str) -> str:
    """Return a kind with its article, e.g. `an index`, `a table`."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


# The changes that a sink writes: additions only, or also removals.
APPEND_ONLY, UPSERT = "append-only", "upsert"
# Connectors of sinks. `table` is for CREATE SINK … INTO. Rows for the remote connectors wait in a log.
TABLE, BLACKHOLE, FILES = "table", "blackhole", ("fs", "posix_fs")
S3, KAFKA = "s3", "kafka"
REMOTE = (S3, KAFKA)


@dataclass(frozen=True)
class IndexKey:
    """A key column of an index, under its name in the index.

    `source` is the upstream column's name when the index was made, or an SQL expression over the columns' present
    names.
    """

    name: str
    source: str
    is_expression: bool
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Index:
    """An index: its key columns, which are its first columns; `distributed` of them determine the distribution.

    - `includes_all`: the statement has no INCLUDE, so that the index has all other columns too.
    - `is_unique`: UNIQUE was written, which is not enforced.
    - `condition`: the text of what holds for the rows of a partial index; "" of any other.
    """

    keys: tuple[IndexKey, ...]
    distributed: int
    includes_all: bool = False
    is_unique: bool = False
    condition: str = ""


@dataclass(frozen=True)
class Sink:
    """The place that a sink writes changes to.

    - `target`: id of the table for the connector `table`; its columns have the names of the sink's.
    - `path`, `format`, `token`: for files; the directory or the prefix of the objects' names, the format, and a text in
      the files' names that is unique to the sink.
    - `options`: the connector's options as the user gave them, secret ones sealed. `secrets` are the options whose
      value is a named secret, with the secret's id. `connection` is the id of the connection that some of them come
      from, if any.
    - `key`: the columns of a message's key.
    - `has_snapshot`: whether the rows from before the sink are delivered, too.
    - `ignores_deletes`: removals are left out.
    - `rate_limit`: rows a second that it sends; None without a limit, 0 to pause. `is_decoupled` is whether a blackhole
      sink may have one.
    """

    connector: str
    type: str  # APPEND_ONLY or UPSERT
    is_forced: bool = False  # append-only, though the query is not
    target: int | None = None
    path: str | None = None
    format: str | None = None
    token: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    key: tuple[str, ...] = ()
    secrets: tuple[tuple[str, int], ...] = ()
    has_snapshot: bool = True
    ignores_deletes: bool = False
    rate_limit: int | None = None
    is_decoupled: bool = True
    connection: int | None = None

    @property
    def removes(self) -> bool:
        """Whether it delivers removals."""
        return self.type == UPSERT and not self.ignores_deletes

    @property
    def may_be_limited(self) -> bool:
        """Whether it can have a rate limit, because no barrier waits for it."""
        return self.is_remote or (self.connector == BLACKHOLE and self.is_decoupled)

    @property
    def is_remote(self) -> bool:
        return self.connector in REMOTE

    @property
    def is_local(self) -> bool:
        """Whether it writes files on the server's machine."""
        return self.connector in FILES


# Kinds of identity columns: numbers always from the sequence, or only where no value is given.
ALWAYS, BY_DEFAULT = "ALWAYS", "BY DEFAULT"


@dataclass(frozen=True)
class Sequence:
    """The properties of a sequence (PostgreSQL: src/include/catalog/pg_sequence.h).

    A sequence may belong to the column `column` (its lake name) of the table `table` (its id). `identity` is the kind
    of that identity column, None if it is no identity column.
    """

    type: str
    start: int
    increment: int
    minimum: int
    maximum: int
    cycles: bool = False
    cache: int = 1
    table: int | None = None
    column: str | None = None
    identity: str | None = None


@dataclass(frozen=True)
class Check:
    """A condition that must not be false for any row of a table: SQL over its columns' present names.

    `columns` are those that it reads, () if an earlier version stored it.
    """

    name: str
    condition: str
    columns: tuple[str, ...] = ()


# What a foreign key does when its parent's row changes, unless another action is declared.
NO_ACTION = "NO ACTION"


@dataclass(frozen=True)
class Unique:
    """UNIQUE of a table, declared for clients and not enforced. Columns are under their lake names.

    `deferral` is DEFERRABLE, with INITIALLY DEFERRED if it was declared, or "".
    """

    id: int
    name: str
    columns: tuple[str, ...]
    included: tuple[str, ...] = ()
    nulls_distinct: bool = True
    deferral: str = ""


@dataclass(frozen=True)
class ForeignKey:
    """FOREIGN KEY of a table, declared for clients and not enforced. Columns are under their lake names.

    - `parent`: the id of the referenced table, `parent_columns` its columns; `parent_key` is the id of the UNIQUE, or
      of the unique index, of these columns, None for its primary key.
    - `set_columns`: those that ON DELETE SET NULL or SET DEFAULT names.
    - `deferral`: as of `Unique`.
    """

    id: int
    name: str
    columns: tuple[str, ...]
    parent: int
    parent_columns: tuple[str, ...]
    parent_key: int | None = None
    is_full: bool = False  # MATCH FULL
    on_update: str = NO_ACTION
    on_delete: str = NO_ACTION
    set_columns: tuple[str, ...] = ()
    deferral: str = ""


@dataclass(frozen=True)
class Constraints:
    """The constraints on a table's rows; `uniques` and `foreign_keys` are not enforced, so that no plan relies on them.

    `lengths` are pairs of a column's lake name and the most characters of its values; of times, their digits and fields
    (`catalog.modifiers`). `key_name` is the name that the primary key was given, or "".
    """

    checks: tuple[Check, ...] = ()
    lengths: tuple[tuple[str, int], ...] = ()
    uniques: tuple[Unique, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    key_name: str = ""

    @property
    def enforced(self) -> Constraints:
        return Constraints(self.checks, self.lengths)

    @property
    def names(self) -> list[str]:
        """The names of the constraints that have one."""
        return [each.name for each in (*self.checks, *self.keys)]

    @property
    def keys(self) -> tuple[Unique | ForeignKey, ...]:
        """The keys that are not enforced."""
        return (*self.uniques, *self.foreign_keys)


@dataclass(frozen=True)
class Domain:
    """A type with conditions over another type; the conditions refer to the value as `value`."""

    checks: tuple[Check, ...] = ()
    not_null: bool = False
    default: str | None = None


@dataclass(frozen=True)
class StreamingSettings:
    """What a table, source or streaming job was made or altered with, besides the settings that steer its job.

    - `parallelism` and `backfill_parallelism`: of a table or source, as in `catalog.model.Job`; they have no effect.
    - `max_parallelism`: the largest fixed parallelism that ALTER may set.
    - `dml_rate_limit`: the rows a second that statements may write into a table; None without a limit, 0 to pause.
    - `barrier_latency_target_ms`: how long barriers may take beside the job's backfill, in ms; 0 for any time, None for
      the system parameter's.
    - `retention_s`: for how many seconds queries see a row of an append-only table; None for ever.
    - `refresh_s`: after how many seconds a materialized view takes in what has changed; None for one that follows.
    - `config`: keys of RisingWave's section `streaming`, each with its value in TOML, by key; they have no effect.
    """

    parallelism: str = "adaptive"
    backfill_parallelism: int | None = None
    max_parallelism: int = 256
    config: tuple[tuple[str, str], ...] = ()
    dml_rate_limit: int | None = None
    barrier_latency_target_ms: int | None = None
    retention_s: int | None = None
    refresh_s: int | None = None


NO_CONSTRAINTS = Constraints()
EARLIER_SETTINGS = StreamingSettings()  # those of relations of earlier versions
Details = Index | Sink | Sequence | Constraints


def dump_details(details: Details | None) -> str | None:
    """Return the JSON for `relations.details`."""
    if details is None:
        return None
    listed = asdict(details)
    if isinstance(details, Constraints):
        listed |= {"lengths": dict(details.lengths)}
    if isinstance(details, Sink):
        listed |= {"options": dict(details.options), "secrets": dict(details.secrets)}
    return json.dumps(listed)


def load_details(kind: str, text: str | None) -> Details | None:
    """Return the details from a text of `dump_details`."""
    if text is None:
        return None
    found = json.loads(text)
    if kind == INDEX:
        return Index(
            tuple(IndexKey(**key) for key in found["keys"]),
            found["distributed"],
            found.get("includes_all", False),
            found.get("is_unique", False),
            found.get("condition", ""),
        )
    if kind == SEQUENCE:
        return Sequence(**found)
    if kind != SINK:
        return Constraints(
            load_checks(found["checks"]),
            tuple(found["lengths"].items()),
            tuple(Unique(**each) for each in _frozen(found.get("uniques", ()))),
            tuple(ForeignKey(**each) for each in _frozen(found.get("foreign_keys", ()))),
            found.get("key_name", ""),
        )
    pairs = {name: tuple(found.get(name, {}).items()) for name in ("options", "secrets")}
    return Sink(**{**found, **pairs, "key": tuple(found.get("key", ()))})


def load_checks(listed: Iterable[dict[str, Any]]) -> tuple[Check, ...]:
    """Return checks from objects of JSON."""
    return tuple(Check(**each) for each in _frozen(listed))


def _frozen(listed: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Objects of JSON with tuples for lists."""
    return ({name: tuple(v) if isinstance(v, list) else v for name, v in each.items()} for each in listed)


def dump_settings(settings: StreamingSettings) -> str:
    """Return the JSON for `relations.streaming`."""
    return json.dumps({**asdict(settings), "config": dict(settings.config)})


def load_settings(text: str | None) -> StreamingSettings:
    """Return the settings from a text of `dump_settings`."""
    if text is None:
        return EARLIER_SETTINGS
    found = json.loads(text)
    return StreamingSettings(**{**found, "config": tuple(found["config"].items())})
