"""What is on each of the dashboard's pages."""

from __future__ import annotations

import shutil
from typing import Any

from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import quote
from sparkwave.executor.spark.usage import Sample
from sparkwave.server.context import Context
from sparkwave.server.dashboard.pages import Page, Reader, run, session
from sparkwave.server.dashboard.preview import preview
from sparkwave.server.dashboard.quoting import quoted
from sparkwave.server.dispatch import Client

# The parameters that the Settings page shows and sets (docs/serverless.md).
BACKFILLING = (
    "serverless_backfill_enabled",
    "serverless_backfill_sku",
    "serverless_backfill_replicas",
    "serverless_backfill_provision_timeout",
    "serverless_backfill_linger",
    "serverless_backfill_warm_groups",
)
POINT_SECONDS = 6


def _cancellable(context: Context, client: Client, id_: int | None) -> dict[str, Any]:
    """Return the ids of the creating jobs that the user may cancel (`planner.bind.privileges.check_owner`)."""
    catalog, user = context.store.catalog, client.user
    creating = (r for r in catalog.relations if r.is_streaming and not r.created)
    return {"may_cancel": [r.id for r in creating if user.is_super or user.acts_as(r.owner)]}


def _streaming(context: Context, id_: int | None) -> Relation:
    relation = context.store.catalog.by_id.get(id_ or 0)
    if relation is None or not relation.is_streaming:
        raise not_found("view", str(id_))
    return relation


def _relation(context: Context, client: Client, id_: int | None) -> dict[str, Any]:
    """Return a table, source or view: its name, statement and columns."""
    relation = context.store.catalog.by_id.get(id_ or 0)
    if relation is None or relation.kind not in ("table", "source", "view"):
        raise not_found("table", str(id_))
    return _described(relation)


def _described(relation: Relation) -> dict[str, Any]:
    return {
        "name": f"{relation.schema}.{relation.name}",
        "kind": relation.kind,
        "owner": relation.owner,
        "columns": [
            {"name": column.name, "type": column.type.shown, "is_key": column.name in relation.key}
            for column in relation.visible
        ],
        "definition": relation.shown or relation.definition,
    }


def _plan(context: Context, client: Client, id_: int | None) -> dict[str, Any]:
    """Return a relation's statement and its EXPLAIN, or the error of EXPLAIN for a user who may not read it."""
    relation = _streaming(context, id_)
    name = f"{quote(relation.schema)}.{quote(relation.name)}"
    found = {**_described(relation), "may_audit": client.user.is_super or client.user.acts_as(relation.owner)}
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
    """Return CPU and memory of each node in the last quarter of an hour.

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


def _disk(context: Context) -> dict[str, Any]:
    try:
        disk = shutil.disk_usage(context.lake.directory)
    except OSError:
        return {"disk": None}
    return {"disk": {"free": disk.free, "total": disk.total}}


def _retention(context: Context, client: Client, id_: int | None) -> dict[str, Any]:
    return {"retention_ms": int(context.parameter("time_travel_retention_ms"))}


def _job_quote(context: Context, client: Client, id_: int | None) -> dict[str, Any]:
    """Return the quote of a creating job's statement, or why there is none."""
    relation = _streaming(context, id_)
    path = ", ".join(dict.fromkeys((quote(relation.schema), "public")))
    reader = Reader(client.user.name, relation.database)
    with session(context, reader, search_path=path, default_transaction_read_only="on") as own:
        return quoted(own, relation.definition)


_JOBS = (
    "SELECT job_id, schema_name, job_name, job_type, owner, state, create_type, is_serverless_backfill, "
    "resource_group, initialized_at, fresh_as_of, lag_ms, reason, reason_since, tries, next_try_at, "
    "changed_rows_per_second "
    "FROM rw_catalog.rw_job_status"
)
_PRICE = "SELECT setting AS value FROM pg_catalog.pg_settings WHERE name = 'serverless_backfill_price_per_core_hour'"
_CREATING = "SELECT job_id FROM rw_catalog.rw_job_status WHERE state = 'CREATING'"
_HERE = "WHERE database_name = current_database()"
_PROOFS = (
    "SELECT relation_id, checksum, row_count, result, audited_at, audited_snapshot FROM rw_catalog.rw_view_checksums"
)
_FRAGMENTS = "SELECT * FROM rw_catalog.rw_backfill_status"
_SIZES = "SELECT id, total_key_count, total_value_size FROM rw_catalog.rw_table_stats"
_SOURCES = (
    "SELECT source_id, source_name, connector, state, rows_consumed, splits, failed_splits, rate_limit, reason, "
    "reason_since FROM rw_catalog.rw_source_status"
)
_HISTORY = (
    'SELECT "at", barriers_per_second, barrier_ms, failed_barriers, changed_rows_per_second, backfill_rows_per_second, '
    'statements_per_second, statement_ms, lag_ms FROM rw_catalog.rw_server_history ORDER BY "at"'
)
_JOB_HISTORY = "SELECT * FROM rw_catalog.rw_job_history WHERE job_id = $1"
_GROUPS = (
    "SELECT name, streaming_workers, parallelism, databases, streaming_jobs FROM rw_catalog.rw_resource_groups "
    "ORDER BY name"
)
_RELATIONS = (
    "SELECT r.id, s.name AS schema_name, r.name, r.relation_type FROM rw_catalog.rw_relations r "
    "JOIN rw_catalog.rw_schemas s ON s.id = r.schema_id "
    "WHERE r.relation_type NOT IN ('system table', 'subscription') ORDER BY s.name, r.name"
)
_LINEAGE = "SELECT from_id, to_id FROM rw_catalog.rw_lineage"
_FILES = (
    "SELECT relation_id, schema_name, relation_name, relation_type, data_files, data_bytes, delete_files, "
    "delete_bytes, smallest_bytes, largest_bytes FROM rw_catalog.rw_relation_files"
)
# When relations were created: no event says so.
_CREATED = " UNION ALL ".join(
    f"SELECT id, name, '{kind}' AS kind, created_at FROM rw_catalog.{relation} WHERE created_at IS NOT NULL"
    for kind, relation in (
        ("table", "rw_tables"),
        ("materialized view", "rw_materialized_views"),
        ("index", "rw_indexes"),
        ("sink", "rw_sinks"),
        ("source", "rw_sources"),
    )
)

PAGES: dict[str, Page] = {
    "overview": Page(
        {
            "views": f"{_JOBS} {_HERE} ORDER BY schema_name, job_name",
            "fragments": _FRAGMENTS,
            "proofs": f"{_PROOFS} {_HERE}",
            "sources": _SOURCES,
            "errors": f"SELECT relation_id, errors, last_error, last_at FROM rw_catalog.rw_compute_errors {_HERE}",
            "history": _HISTORY,
            "groups": _GROUPS,
            "applications": "SELECT name, resource_group, is_serverless, state, replicas, cores, memory_bytes, "
            "started_at, ready_at, reason FROM rw_catalog.rw_spark_applications WHERE state <> 'DESTROYED' ORDER BY id",
        },
        {"tables": "SELECT count(*) AS n FROM rw_catalog.rw_tables", "creating": _CREATING},
        measured=_disk,
        only_with="creating",
        gated=frozenset({"fragments"}),
    ),
    "lineage": Page(
        {
            "jobs": f"{_JOBS} {_HERE}",
            "fragments": _FRAGMENTS,
            "sources": _SOURCES,
            "sizes": _SIZES,
            "proofs": f"{_PROOFS} {_HERE}",
        },
        {"relations": _RELATIONS, "lineage": _LINEAGE, "creating": _CREATING},
        only_with="creating",
        gated=frozenset({"fragments"}),
    ),
    "jobs": Page(
        {"fragments": _FRAGMENTS},
        {
            "jobs": f"{_JOBS} WHERE state = 'CREATING' ORDER BY job_id",
            "created": "SELECT id, schema_name, name, initialized_at, created_at FROM rw_catalog.rw_materialized_views "
            "WHERE status = 'Created' ORDER BY created_at DESC LIMIT 5",
            "measured": "SELECT job_id, schema_name, job_name, finished_at, engine, cores, row_count, start_seconds, "
            "seconds FROM rw_catalog.rw_measured_backfills ORDER BY finished_at DESC LIMIT 20",
            "price": _PRICE,
        },
        _cancellable,
        only_with="jobs",
    ),
    "job": Page(
        {
            "status": f"{_FRAGMENTS} WHERE job_id = $1",
            "steps": "SELECT row_count, finished_at FROM rw_catalog.rw_backfill_steps "
            "WHERE job_id = $1 AND finished_at IS NOT NULL ORDER BY finished_at",
            "splits": "SELECT fragment_id, count(*) AS steps, count(finished_at) AS finished "
            "FROM rw_catalog.rw_backfill_steps WHERE job_id = $1 GROUP BY fragment_id",
            "history": _JOB_HISTORY,
        },
        {
            "jobs": f"{_JOBS} WHERE job_id = $1 AND state = 'CREATING'",
            "fragments": "SELECT fragment_id, flags, parallelism FROM rw_catalog.rw_fragments WHERE table_id = $1",
        },
        _job,
        only_with="jobs",
        has_id=True,
    ),
    "quote": Page(fresh=_job_quote, has_id=True),
    "views": Page(
        {"views": f"{_JOBS} {_HERE} ORDER BY schema_name, job_name", "sizes": _SIZES, "proofs": f"{_PROOFS} {_HERE}"}
    ),
    "view": Page(
        {
            "views": f"{_JOBS} WHERE job_id = $1",
            "proofs": f"{_PROOFS} WHERE relation_id = $1",
            "history": _JOB_HISTORY,
            "audits": "SELECT started_at, seconds, snapshot, result, engine, checksum, row_count, detail "
            "FROM rw_catalog.rw_view_audits WHERE relation_id = $1 ORDER BY started_at DESC LIMIT 5",
            "errors": "SELECT errors, last_error, last_at FROM rw_catalog.rw_compute_errors WHERE relation_id = $1",
        },
        {
            "relations": _RELATIONS,
            "lineage": f"{_LINEAGE} WHERE from_id = $1 OR to_id = $1",
            "measured": "SELECT finished_at, engine, cores, row_count, start_seconds, seconds "
            "FROM rw_catalog.rw_measured_backfills WHERE job_id = $1",
            "price": _PRICE,
        },
        more=_plan,
        has_id=True,
    ),
    "tables": Page(
        {"sizes": _SIZES, "sources": _SOURCES, "files": f"{_FILES} {_HERE}"},
        {"relations": f"SELECT * FROM ({_RELATIONS}) AS r WHERE relation_type IN ('table', 'source', 'view')"},
    ),
    "table": Page(
        {
            "sizes": f"{_SIZES} WHERE id = $1",
            "sources": f"{_SOURCES} WHERE source_id = $1",
            "files": f"{_FILES} WHERE relation_id = $1",
        },
        {"relations": _RELATIONS, "lineage": f"{_LINEAGE} WHERE from_id = $1 OR to_id = $1"},
        more=_relation,
        has_id=True,
    ),
    "preview": Page(fresh=preview, has_id=True),
    "sessions": Page(
        {
            "sessions": "SELECT pid, usename, datname, application_name, client_addr, backend_start, query_start, "
            "state_change, state, query FROM pg_catalog.pg_stat_activity ORDER BY pid",
            "slow": "SELECT pid, usename, datname, application_name, started_at, seconds, query "
            "FROM rw_catalog.rw_slow_statements ORDER BY started_at DESC",
            "history": _HISTORY,
        }
    ),
    "storage": Page(
        {
            "files": f"{_FILES} {_HERE}",
            "sizes": _SIZES,
            "snapshots": "SELECT snapshot_id, created_at, changed_tables, kept, oldest_at "
            "FROM rw_catalog.rw_lake_snapshots ORDER BY snapshot_id DESC LIMIT 8",
        },
        more=_retention,
        measured=_disk,
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
            'ORDER BY "timestamp" DESC LIMIT 300',
            "audits": "SELECT relation_id, schema_name, relation_name, started_at, result "
            f"FROM rw_catalog.rw_view_audits {_HERE} ORDER BY started_at DESC LIMIT 200",
        },
        {"created": f"SELECT * FROM ({_CREATED}) AS c ORDER BY created_at DESC LIMIT 100"},
    ),
    "resources": Page(
        {"groups": _GROUPS},
        more=_resources,
    ),
}
