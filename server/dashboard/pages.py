"""The contents of the dashboard's pages: queries over the system catalogs, run as the logged-in user.

A page may have a relation's id, `$1` in its queries. Requests of one user within a moment share one answer; queries
about the catalog alone run again only after the catalog has changed.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.catalog.names import DEFAULT_DATABASE, quote
from sparkwave.catalog.types import BIGINT
from sparkwave.executor.spark.usage import Sample
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

# The parameters that the Resources page shows and sets (docs/serverless.md).
BACKFILLING = (
    "serverless_backfill_enabled",
    "serverless_backfill_sku",
    "serverless_backfill_replicas",
    "serverless_backfill_provision_timeout",
    "serverless_backfill_linger",
    "serverless_backfill_warm_groups",
)
FRESH_SECONDS = 0.7
MOST_ANSWERS = 256
TIMEOUT = "10s"
POINT_SECONDS = 6

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Reader:
    """The user who looks at a page, and the database."""

    user: str
    database: str = DEFAULT_DATABASE


@dataclass(frozen=True)
class Page:
    """The queries of a page, by the name of their rows.

    `live` queries run at each look; `settled` queries and `more`, which computes other values, run when the catalog has
    changed. `measured` returns values that are not in the lake. If the settled rows of `only_with` are empty, the live
    queries do not run.
    """

    live: Mapping[str, str] = field(default_factory=dict)
    settled: Mapping[str, str] = field(default_factory=dict)
    more: Callable[[Context, Client, int | None], dict[str, Any]] = lambda context, client, id_: {}
    measured: Callable[[Context], dict[str, Any]] = lambda context: {}
    only_with: str | None = None
    has_id: bool = False


@contextmanager
def session(context: Context, reader: Reader, **variables: str) -> Iterator[Client]:
    """A context with a session of the reader. Raises the errors of a connection."""
    startup = {
        "user": reader.user,
        "database": reader.database,
        "application_name": "dashboard",
        "statement_timeout": TIMEOUT,
        **variables,
    }
    client = Client(context, startup)
    try:
        yield client
    finally:
        client.close()


def run(client: Client, sql: str, *values: object) -> Rows:
    """Return the rows of a statement. Raises Error."""
    oids = (BIGINT.oid,) * len(values)
    with closing(client.execute(client.prepare(sql, oids), values)) as result:
        names = [column.name for column in result.columns or ()]
        rows = (row for batch in result.batches or () for row in zip(*map(_values, batch.columns), strict=True))
        return [dict(zip(names, row, strict=True)) for row in rows]


def _values(column: pa.Array) -> list[Any]:
    return column.to_pylist()


class Pages:
    """Computes and caches the answers for the pages."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._answers: OrderedDict[tuple[Reader, str, int | None], _Answer] = OrderedDict()
        self._lock = RankedLock()

    def show(self, reader: Reader, name: str, id_: int | None) -> dict[str, Any]:
        """Return a page's content. Raises Error 42704 for an unknown page, and the errors of its queries."""
        page = PAGES.get(name)
        if page is None or page.has_id != (id_ is not None):
            raise not_found("page", name)
        with self._lock:
            answer = self._answers.setdefault((reader, name, id_), _Answer())
            self._answers.move_to_end((reader, name, id_))
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
        with answer.lock:
            if answer.content is None or time.monotonic() - answer.made_at > FRESH_SECONDS:
                answer.content = None
                answer.content = self._ask(reader, page, id_, answer)
                answer.made_at = time.monotonic()
            return answer.content

    def forget(self) -> None:
        """Drop the cached answers after a change."""
        with self._lock:
            self._answers.clear()

    def _ask(self, reader: Reader, page: Page, id_: int | None, answer: _Answer) -> dict[str, Any]:
        values = () if id_ is None else (id_,)
        with session(self._context, reader, default_transaction_read_only="on") as client:
            catalog = self._context.store.catalog
            if answer.catalog is not catalog:
                rows = {name: run(client, sql, *values) for name, sql in page.settled.items()}
                answer.settled, answer.catalog = {**rows, **page.more(self._context, client, id_)}, catalog
            needed = page.only_with is None or answer.settled[page.only_with]
            live = {name: run(client, sql, *values) if needed else [] for name, sql in page.live.items()}
            return {**answer.settled, **live, **page.measured(self._context)}


@dataclass
class _Answer:
    """A page's last answer, and the part of it that depends on `catalog` only."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    content: dict[str, Any] | None = None
    made_at: float = 0.0
    settled: dict[str, Any] = field(default_factory=dict)
    catalog: Catalog | None = None


def _cancellable(context: Context, client: Client, id_: int | None) -> dict[str, Any]:
    """The ids of the creating jobs that the user may cancel (`planner.bind.privileges.check_owner`)."""
    catalog, user = context.store.catalog, client.user
    creating = (r for r in catalog.relations if r.is_streaming and not r.created)
    return {"may_cancel": [r.id for r in creating if user.is_super or user.acts_as(r.owner)]}


def _streaming(context: Context, id_: int | None) -> Relation:
    relation = context.store.catalog.by_id.get(id_ or 0)
    if relation is None or not relation.is_streaming:
        raise not_found("view", str(id_))
    return relation


def _plan(context: Context, client: Client, id_: int | None) -> dict[str, Any]:
    """A relation's statement and its EXPLAIN, or the error of EXPLAIN for a user who may not read it."""
    relation = _streaming(context, id_)
    name = f"{quote(relation.schema)}.{quote(relation.name)}"
    found: dict[str, Any] = {
        "name": relation.qualified_name,
        "kind": relation.kind,
        "owner": relation.owner,
        "columns": [{"name": column.name, "type": column.type.shown} for column in relation.visible],
        "definition": relation.shown or relation.definition,
    }
    reader = Reader(client.user.name, relation.database)
    path = ", ".join(dict.fromkeys((quote(relation.schema), "public")))
    with session(context, reader, search_path=path, default_transaction_read_only="on") as own:
        if relation.created:
            found["definition"] = run(own, f"SHOW CREATE {relation.kind.upper()} {name}")[0]["Create Sql"]
        for key, options in (("plan", "FORMAT JSON"), ("incremental", "INCREMENTAL")):
            try:
                lines = run(own, f"EXPLAIN ({options}) {relation.definition}")
                found[key] = "\n".join(str(line["QUERY PLAN"]) for line in lines)
            except Error as error:
                found[f"{key}_error"] = error.message
    return found


def _job(context: Context, client: Client, id_: int | None) -> dict[str, Any]:
    return {**_plan(context, client, id_), **_cancellable(context, client, id_)}


def _resources(context: Context, client: Client, id_: int | None) -> dict[str, Any]:
    parameters = {row["Name"]: row for row in run(client, "SHOW PARAMETERS")}
    return {
        "parameters": [{"name": name, "value": parameters[name]["Value"]} for name in BACKFILLING],
        "skus": [
            {"name": name, "cores": s.cores, "memory_mib": s.memory_mib} for name, s in context.config.skus.items()
        ],
        "may_change": client.user.is_super,
    }


def _usage(context: Context) -> dict[str, Any]:
    """CPU and memory of each node in the last quarter of an hour.

    Each point is a time, the average cores and the most bytes of `POINT_SECONDS` seconds; the intervals are fixed, so
    that a point does not change later.
    """
    found: dict[str, list[list[float]]] = {}
    for name, samples in context.usage.history().items():
        points: dict[int, list[Sample]] = {}
        for sample in samples:
            points.setdefault(int(sample.at // POINT_SECONDS), []).append(sample)
        found[name] = [
            [each[-1].at, round(sum(s.cores for s in each) / len(each), 3), max(s.memory_bytes for s in each)]
            for each in points.values()
        ]
    return {"usage": found}


_JOBS = (
    "SELECT job_id, schema_name, job_name, job_type, state, create_type, is_serverless_backfill, initialized_at, "
    "fresh_as_of, lag_ms, reason, reason_since, tries, next_try_at FROM rw_catalog.rw_job_status"
)
_PROOFS = "SELECT relation_id, checksum, result, audited_at FROM rw_catalog.rw_view_checksums"
_FRAGMENTS = "SELECT * FROM rw_catalog.rw_backfill_status"

PAGES: dict[str, Page] = {
    "jobs": Page(
        {"fragments": _FRAGMENTS},
        {
            "jobs": f"{_JOBS} WHERE state = 'CREATING' ORDER BY job_id",
            "created": "SELECT id, schema_name, name, initialized_at, created_at FROM rw_catalog.rw_materialized_views "
            "WHERE status = 'Created' ORDER BY created_at DESC LIMIT 5",
        },
        _cancellable,
        only_with="jobs",
    ),
    "job": Page(
        {"status": f"{_FRAGMENTS} WHERE job_id = $1"},
        {
            "jobs": f"{_JOBS} WHERE job_id = $1 AND state = 'CREATING'",
            "fragments": "SELECT fragment_id, flags, parallelism FROM rw_catalog.rw_fragments WHERE table_id = $1",
        },
        _job,
        only_with="jobs",
        has_id=True,
    ),
    "views": Page(
        {
            "views": f"{_JOBS} WHERE database_name = current_database() ORDER BY schema_name, job_name",
            "sizes": "SELECT id, total_key_count, total_value_size FROM rw_catalog.rw_table_stats",
            "proofs": _PROOFS,
        }
    ),
    "view": Page(
        {"views": f"{_JOBS} WHERE job_id = $1", "proofs": f"{_PROOFS} WHERE relation_id = $1"}, more=_plan, has_id=True
    ),
    "nodes": Page(
        {
            "nodes": "SELECT id, host, port, state, parallelism, is_serving, system_total_memory_bytes, started_at, "
            "resource_group FROM rw_catalog.rw_worker_nodes ORDER BY id",
            "applications": "SELECT id, name, resource_group, is_serverless, state, replicas, cores, memory_bytes, "
            "started_at, ready_at, changed_at, reason FROM rw_catalog.rw_spark_applications "
            "WHERE state <> 'DESTROYED' OR changed_at > now() - interval '15 minutes' ORDER BY id DESC LIMIT 50",
        },
        measured=_usage,
    ),
    "events": Page(
        {
            "events": 'SELECT unique_id, "timestamp", event_type, info FROM rw_catalog.rw_event_logs '
            'ORDER BY "timestamp" DESC LIMIT 200'
        }
    ),
    "resources": Page(
        {
            "groups": "SELECT name, streaming_workers, parallelism, databases, streaming_jobs "
            "FROM rw_catalog.rw_resource_groups ORDER BY name",
        },
        more=_resources,
    ),
}
