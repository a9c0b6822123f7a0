"""What an index or a sink is besides a relation, frozen; the catalog stores it as JSON in `relations.details`."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

# The kinds of relations that a streaming job creates and keeps up to date.
MATERIALIZED_VIEW, INDEX, SINK = "materialized view", "index", "sink"
STREAMING = (MATERIALIZED_VIEW, INDEX, SINK)


def with_article(kind: str) -> str:
    """`an index`, `a table`."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


# What a sink does with changes: it has rows that come only, or rows that go too.
APPEND_ONLY, UPSERT = "append-only", "upsert"
# Connectors of sinks. `table` is that of CREATE SINK … INTO.
TABLE, BLACKHOLE, FILES = "table", "blackhole", ("fs", "posix_fs")


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
    """The key columns of an index, which are its first; `distributed` is the number of them it is distributed by."""

    keys: tuple[IndexKey, ...]
    distributed: int


@dataclass(frozen=True)
class Sink:
    """Where the changes of a sink go.

    `target` is the table (by id) of connector `table`, whose columns have the names of the sink's. Those of files have
    the directory `path`, a `format` and `token`, by which names of files differ from those of any other sink.
    `options` are the connector's as the user gave them.
    """

    connector: str
    type: str  # APPEND_ONLY or UPSERT
    is_forced: bool = False  # rows that go are left out, though there are some
    target: int | None = None
    path: str | None = None
    format: str | None = None
    token: str | None = None
    options: tuple[tuple[str, str], ...] = ()


Details = Index | Sink


def dump_details(details: Details | None) -> str | None:
    """What `relations.details` holds."""
    if details is None:
        return None
    listed = asdict(details)
    return json.dumps({**listed, "options": dict(listed["options"])} if isinstance(details, Sink) else listed)


def load_details(kind: str, text: str | None) -> Details | None:
    """What `dump_details` has made of a relation's."""
    if text is None:
        return None
    found = json.loads(text)
    if kind == INDEX:
        return Index(tuple(IndexKey(**key) for key in found["keys"]), found["distributed"])
    return Sink(**{**found, "options": tuple(found["options"].items())})
