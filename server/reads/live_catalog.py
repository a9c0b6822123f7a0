"""The parts of the system catalogs that show the running server: sessions, settings, memory, jobs.

The relations of `catalog/system/live.sql` read DuckDB variables, which `live_variables` computes for a statement that
reads the relations.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import Any

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.stored_files import relation_files, snapshots
from sparkwave.catalog.model import CREATING, FAILED, INITIAL, Epoch, Job, Relation
from sparkwave.catalog.stores.compute_errors import compute_errors
from sparkwave.catalog.stores.view_audits import audits, newest_results
from sparkwave.catalog.stores.view_checksums import checksums
from sparkwave.catalog.system.system_views import needs
from sparkwave.catalog.users import User
from sparkwave.executor.maintenance.audits import is_auditable
from sparkwave.planner.explain.fragment_plans import fragment_operators
from sparkwave.planner.explain.output_formats import as_object
from sparkwave.server.context import Context
from sparkwave.server.operations.last_hour import POINT_SECONDS
from sparkwave.server.session.backends import Backend
from sparkwave.server.session.portal import Statement
from sparkwave.server.session.session import Session
from sparkwave.server.session.variables import SESSION, SYSTEM


def live_variables(session: Session, names: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the DuckDB variables that a statement needs, with their values as text.

    `names` are the system relations and functions that it reads, as `pgc.pg_settings`.
    """
    for name in needs(frozenset(names)).variables & _VARIABLES.keys():
        yield name, _VARIABLES[name](session)


def _as_json(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows, default=str)


def _activity(session: Session) -> str:
    return _as_json([_activity_row(backend, session.user) for backend in session.context.backends.all()])


def _activity_row(backend: Backend, reader: User) -> dict[str, Any]:
    """Return a row of pg_stat_activity. Only a superuser or a member of the session's role sees the statement."""
    session = backend.session
    row = {
        "datname": session.database,
        "pid": backend.process_id,
        "usename": session.login.name,
        "application_name": session.variables.get("application_name"),
    }
    if not reader.is_super and not reader.acts_as(session.login.name):
        return {**row, "query": "<insufficient privilege>"}
    return {
        **row,
        "client_addr": backend.address[0],
        "client_port": backend.address[1],
        "backend_start": backend.backend_start,
        "xact_start": backend.query_start if backend.state != "idle" else None,
        "query_start": backend.query_start,
        "state_change": backend.state_change,
        "wait_event_type": None if backend.state == "active" else "Client",
        "wait_event": None if backend.state == "active" else "ClientRead",
        "state": backend.state,
        "query": backend.shown_query,
    }


def _prepared_statements(session: Session) -> str:
    return _as_json(
        [
            {
                "name": name,
                "statement": getattr(statement.prepared, "text", ""),
                "prepare_time": statement.made_at,
                "parameter_types": _parameter_types(statement),
                "from_sql": statement.from_sql,
            }
            for name, statement in session.names.statements.items()
            if name
        ]
    )


def _parameter_types(statement: Statement) -> list[str]:
    """Return the parameter types; none if the statement can no longer be planned, since an upstream was dropped."""
    try:
        return [str(type_.without_digits) for type_ in statement.prepared.parameters]
    except Error:
        return []


def _cursors(session: Session) -> str:
    return _as_json(
        [
            {
                "name": name,
                "statement": getattr(portal.statement.prepared, "text", ""),
                "is_holdable": portal.holds,
                "is_binary": 1 in portal.format_codes,
                "is_scrollable": portal.scroll is not None,
                "creation_time": portal.made_at,
            }
            for name, portal in session.names.portals.items()
            if name
        ]
    )


def _settings(session: Session) -> str:
    """Return session variables and system parameters, with their values in this session and in new sessions."""
    defaults = session.context.store.catalog.parameters
    found = [(variable, "internal" if variable.is_fixed else "user") for variable in SESSION.values()]
    found += [(variable, "postmaster") for variable in SYSTEM.values()]
    rows = []
    for variable, context in found:
        name, now = variable.name, session.variables.get(variable.name)
        boot, reset = (now, now) if variable.is_fixed else (variable.default, defaults.get(name, variable.default))
        described = {"description": variable.description, "context": context}
        rows.append({"name": name, "setting": now, **described, "boot_val": boot, "reset_val": reset})
    return _as_json(rows)


def _serving_cache(session: Session) -> str:
    catalog = session.context.store.catalog
    snapshot, copies = session.context.serving.copies
    found = ((copy, catalog.by_id.get(copy.relation.id, copy.relation)) for copy in copies)
    return _as_json(
        [
            {
                **_named(relation),
                "rows": copy.rows,
                "bytes": copy.bytes,
                "snapshot": snapshot,
                "hits": copy.hits,
                "since": copy.since,
            }
            for copy, relation in found
        ]
    )


def _shared_buffer(session: Session) -> str:
    """Return the views and operator states that epochs keep in memory."""
    relations = {relation.definition_id: relation for relation in session.context.store.catalog.relations}
    return _as_json(
        [
            {
                **_named(relation),
                "table_name": found.table.name,
                "unstored_changes": found.changes,
                "rows": found.rows,
                "bytes": found.bytes,
                "snapshot": found.snapshot,
            }
            for found in session.context.buffer.contents()
            if (relation := relations.get(found.definition_id)) is not None
        ]
    )


def _job_state(job: Job) -> str:
    """Return the state of a job in rw_job_status."""
    if job.status in (INITIAL, CREATING):
        return "CREATING"
    if job.status == FAILED:
        return "FAILED"
    return "RESTING" if job.is_resting else "BEHIND" if job.is_behind else "FOLLOWING"


def _fresh_as_of(job: Job, applied: Epoch) -> datetime | None:
    if job.status in (INITIAL, CREATING) or (job.is_behind and job.position is None):
        return None
    epoch = job.position.epoch if job.position is not None else applied
    return datetime.fromtimestamp(epoch.time_us / 1e6, UTC)


def _server_history(session: Session) -> str:
    return _as_json(
        [
            {
                "at": datetime.fromtimestamp(one.at, UTC),
                "barriers_per_second": _rounded(one.barriers),
                "barrier_ms": _rounded(one.barrier_ms),
                "failed_barriers": one.failed_barriers,
                "changed_rows_per_second": _rounded(one.changed_rows),
                "backfill_rows_per_second": _rounded(one.read_rows),
                "commits_per_second": _rounded(one.commits),
                "statements_per_second": _rounded(one.statements),
                "statement_ms": _rounded(one.statement_ms),
                "lag_ms": _rounded(one.lag_ms),
            }
            for one in session.context.history.moments()
        ]
    )


def _job_history(session: Session) -> str:
    catalog, (at, curves) = session.context.store.catalog, session.context.history.curves()
    return _as_json(
        [
            {
                **_named(catalog.by_id[id_]),
                "until": datetime.fromtimestamp(at, UTC),
                "interval_seconds": POINT_SECONDS,
                "changed_rows_per_second": _numbers(found.changed_rows),
                "backfill_rows_per_second": _numbers(found.read_rows),
                "lag_ms": _numbers(found.lag_ms),
            }
            for id_, found in curves.items()
            if id_ in catalog.by_id
        ]
    )


def _numbers(values: list[float]) -> list[float | None]:
    return [None if math.isnan(value) else _rounded(value) for value in values]


def _rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 2)


def _slow_statements(session: Session) -> str:
    """Return the newest slow statements. Only a superuser or a member of the session's role sees the text."""
    reader = session.user
    return _as_json(
        [
            {
                "pid": one.process_id,
                "usename": one.login,
                "datname": one.database,
                "application_name": one.application,
                "started_at": one.started_at,
                "seconds": one.seconds,
                "query": one.query if reader.is_super or reader.acts_as(one.login) else "<insufficient privilege>",
            }
            for one in session.context.backends.slow
        ]
    )


def _relation_files(session: Session) -> str:
    with closing(session.context.lake.cursor()) as cursor:
        found = relation_files(cursor)
    catalog = session.context.store.catalog
    places = {(r.lake_table.schema, r.lake_table.name): r for r in catalog.relations if r.is_stored}
    return _as_json(
        [
            {**_named(places[place]), "kind": places[place].kind, **files}
            for place, files in found.items()
            if place in places
        ]
    )


def _lake_snapshots(session: Session) -> str:
    with closing(session.context.lake.cursor()) as cursor:
        return _as_json(snapshots(cursor))


def _job_status(session: Session) -> str:
    rates = session.context.history.rates()
    catalog, coordinator = session.context.store.catalog, session.context.coordinator
    applied, behind = coordinator.epoch, coordinator.behind
    jobs = (
        (job, catalog.by_id[job.id], behind.tried(job.id) or (None, None))
        for job in catalog.jobs
        if job.id in catalog.by_id
    )
    return _as_json(
        [
            {
                "job_id": relation.id,
                "database_name": relation.database,
                "schema_name": relation.schema,
                "job_name": relation.name,
                "job_type": relation.kind,
                "owner": relation.owner,
                "state": _job_state(job),
                "resource_group": job.resource_group,
                "create_type": "BACKGROUND" if job.is_background else "FOREGROUND",
                "is_serverless_backfill": job.is_serverless,
                "initialized_at": relation.initialized_at,
                "fresh_as_of": _fresh_as_of(job, applied),
                "reason": job.error if job.is_behind else None,
                "reason_since": job.since if job.is_behind else None,
                "tries": tries,
                "next_try_at": next_try_at,
                "changed_rows_per_second": _rounded(rates.get(relation.id)),
            }
            for job, relation, (tries, next_try_at) in jobs
        ]
    )


def _compute_errors(session: Session) -> str:
    catalog, reader = session.context.store.catalog, session.user
    with closing(session.context.lake.cursor()) as cursor:
        found = compute_errors(cursor)
    named = ((catalog.by_id[id_], *counted) for id_, counted in sorted(found.items()) if id_ in catalog.by_id)
    return _as_json(
        [
            {
                **_named(relation),
                "errors": failed.rows,
                "last_error": failed.message if reader.is_super or reader.acts_as(relation.owner) else None,
                "last_at": last_at,
            }
            for relation, failed, last_at in named
        ]
    )


def _view_checksums(session: Session) -> str:
    with closing(session.context.lake.cursor()) as cursor:
        known, results = checksums(cursor), newest_results(cursor)
    rows = []
    for relation in session.context.store.catalog.relations:
        if is_auditable(relation):
            checksum, result = known.get(relation.id), results.get(relation.id, (None, None, None))
            own = {
                "checksum": str(checksum) if checksum else None,
                "row_count": checksum.rows if checksum else None,
                **dict(zip(("result", "audited_at", "audited_snapshot"), result, strict=True)),
            }
            rows.append({**_named(relation), **own})
    return _as_json(rows)


def _view_audits(session: Session) -> str:
    catalog, reader = session.context.store.catalog, session.user
    with closing(session.context.lake.cursor()) as cursor:
        found = [
            (catalog.by_id[audit.relation_id], audit) for audit in audits(cursor) if audit.relation_id in catalog.by_id
        ]
    rows = []
    for relation, audit in found:
        may_see = reader.is_super or reader.acts_as(relation.owner)
        own = {
            "started_at": audit.started_at,
            "seconds": audit.seconds,
            "snapshot": audit.snapshot,
            "result": audit.result,
            "engine": audit.engine,
            "checksum": str(audit.checksum) if audit.checksum else None,
            "row_count": audit.checksum.rows if audit.checksum else None,
            "detail": audit.detail if may_see else None,
            "evidence": audit.evidence if may_see else None,
        }
        rows.append({**_named(relation), **own})
    return _as_json(rows)


def _named(relation: Relation) -> dict[str, Any]:
    return {
        "relation_id": relation.id,
        "database_name": relation.database,
        "schema_name": relation.schema,
        "relation_name": relation.name,
    }


def _fragment_plans(session: Session) -> str:
    """Return the plans of created jobs; without those that the present planner cannot plan."""
    catalog = session.context.store.catalog
    found = []
    for relation in catalog.named:
        if relation.created and (relation.is_streaming or relation.kind in ("table", "source")):
            with suppress(Error):
                operators = fragment_operators(relation, catalog)
                found.append({"fragment_id": relation.id, "node": as_object(operators)})
    return _as_json(found)


def backfill_rows(context: Context) -> str:
    """Return the rows that creating jobs have read so far; the lake stores them only at the end of a step."""
    return _as_json(
        [
            {"job_id": job_id, "fragment_id": fragment_id, "rows": rows}
            for job_id, fragments in context.jobs.rows_read().items()
            for fragment_id, rows in fragments.items()
        ]
    )


def _process_id(session: Session) -> str:
    return str(session.backend.process_id) if session.backend else "0"


_VARIABLES: dict[str, Callable[[Session], str]] = {
    "pg_stat_activity": _activity,
    "pg_prepared_statements": _prepared_statements,
    "pg_cursors": _cursors,
    "pg_settings": _settings,
    "pg_backend_pid": _process_id,
    "server_start": lambda session: session.context.backends.started.isoformat(),
    "temporary_schema": lambda session: session.temporary.schema or "",
    "rw_serving_cache": _serving_cache,
    "rw_shared_buffer": _shared_buffer,
    "rw_job_status": _job_status,
    "rw_compute_errors": _compute_errors,
    "rw_view_checksums": _view_checksums,
    "rw_view_audits": _view_audits,
    "rw_server_history": _server_history,
    "rw_job_history": _job_history,
    "rw_slow_statements": _slow_statements,
    "rw_relation_files": _relation_files,
    "rw_lake_snapshots": _lake_snapshots,
    "backfill_rows": lambda session: backfill_rows(session.context),
    "fragment_plans": _fragment_plans,
}
