"""What an index, a sink, a sequence or a table is besides a relation, frozen; `relations.details` has it as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

# The kinds of relations that a streaming job creates and keeps up to date.
MATERIALIZED_VIEW, INDEX, SINK = "materialized view", "index", "sink"
STREAMING = (MATERIALIZED_VIEW, INDEX, SINK)
SEQUENCE = "sequence"


def with_article(kind: str) -> str:
    """`an index`, `a table`."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


# What a sink does with changes: it has rows that come only, or rows that go too.
APPEND_ONLY, UPSERT = "append-only", "upsert"
# Connectors of sinks. `table` is that of CREATE SINK … INTO. What goes to the remote ones waits for them in a log.
TABLE, BLACKHOLE, FILES = "table", "blackhole", ("fs", "posix_fs")
S3, KAFKA = "s3", "kafka"
REMOTE = (S3, KAFKA)


@dataclass(frozen=True)
class IndexKey:
    """A key column of an index under its name there.

    `source` is the upstream's column, as it was called when the index was made, or an expression as SQL, in which
    columns have their present names.
    """

    name: str
    source: str
    is_expression: bool
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class Index:
    """The key columns of an index, which are its first; `distributed` is the number of them it is distributed by.

    `includes_all` is one whose statement has no INCLUDE, so that the other columns are there without being asked for.
    """

    keys: tuple[IndexKey, ...]
    distributed: int
    includes_all: bool = False


@dataclass(frozen=True)
class Sink:
    """Where the changes of a sink go.

    `target` is the table (by id) of connector `table`, whose columns have the names of the sink's. Those of files have
    the directory `path`, or what names of objects begin with, a `format`, and `token`, by which names of files differ
    from those of any other sink.
    `options` are the connector's as the user gave them, secret ones sealed; those that are the value of a secret are
    in `secrets`, with its id. `key` are the columns of a message's key.
    """

    connector: str
    type: str  # APPEND_ONLY or UPSERT
    is_forced: bool = False  # rows that go are left out, though there are some
    target: int | None = None
    path: str | None = None
    format: str | None = None
    token: str | None = None
    options: tuple[tuple[str, str], ...] = ()
    key: tuple[str, ...] = ()
    secrets: tuple[tuple[str, int], ...] = ()

    @property
    def is_remote(self) -> bool:
        return self.connector in REMOTE

    @property
    def is_local(self) -> bool:
        """Whether it writes files of the server's machine."""
        return self.connector in FILES


# Kinds of identity columns: one takes numbers of its sequence only, the other where none is given.
ALWAYS, BY_DEFAULT = "ALWAYS", "BY DEFAULT"


@dataclass(frozen=True)
class Sequence:
    """How a sequence counts (PostgreSQL: src/include/catalog/pg_sequence.h).

    It goes with the column `column`, as the lake calls it, of the table `table` (by id), if there is one; `identity`
    is of which kind that column is, None for no identity column.
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
    """A condition that no row of a table makes false: SQL over its columns under their present names."""

    name: str
    condition: str


@dataclass(frozen=True)
class Constraints:
    """What rows of a table have to be like. `lengths` are of how many characters the values of columns are at most, by
    what the lake calls the columns."""

    checks: tuple[Check, ...] = ()
    lengths: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Domain:
    """What values of a type are like that is another one with conditions; these call the value `value`."""

    checks: tuple[Check, ...] = ()
    not_null: bool = False
    default: str | None = None


NO_CONSTRAINTS = Constraints()
Details = Index | Sink | Sequence | Constraints


def dump_details(details: Details | None) -> str | None:
    """What `relations.details` holds."""
    if details is None:
        return None
    listed = asdict(details)
    if isinstance(details, Constraints):
        listed |= {"lengths": dict(details.lengths)}
    if isinstance(details, Sink):
        listed |= {"options": dict(details.options), "secrets": dict(details.secrets)}
    return json.dumps(listed)


def load_details(kind: str, text: str | None) -> Details | None:
    """What `dump_details` has made of a relation's."""
    if text is None:
        return None
    found = json.loads(text)
    if kind == INDEX:
        return Index(
            tuple(IndexKey(**key) for key in found["keys"]), found["distributed"], found.get("includes_all", False)
        )
    if kind == SEQUENCE:
        return Sequence(**found)
    if kind != SINK:
        return Constraints(tuple(Check(**check) for check in found["checks"]), tuple(found["lengths"].items()))
    pairs = {name: tuple(found.get(name, {}).items()) for name in ("options", "secrets")}
    return Sink(**{**found, **pairs, "key": tuple(found.get("key", ()))})
