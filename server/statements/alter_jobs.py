"""ALTER … SET of a materialized view, index or sink: controls how its job runs, during creation and after.

Of a table or source the parallelisms are stored alone: statements write its rows, not a job.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import CREATING, DEFAULT_GROUP, INITIAL, Catalog, Job, Relation
from sparkwave.catalog.relation_details import StreamingSettings
from sparkwave.catalog.stores.job_store import set_job_control
from sparkwave.catalog.stores.relation_store import put_details, put_settings
from sparkwave.planner.backfill.strategy import NO_SHUFFLE, SNAPSHOT
from sparkwave.planner.definitions.sinks import no_rate_limit
from sparkwave.planner.statements import (
    AlterBackfillParallelism,
    AlterParallelism,
    AlterRateLimit,
    AlterResourceGroup,
    AlterSinkRateLimit,
)
from sparkwave.server.session.session import Session
from sparkwave.server.statements.renames import altered, find_altered
from sparkwave.server.statements.streaming_settings import check_parallelism
from sparkwave.server.wire.result import Notice, Result

_DEFERRED = Notice(
    "DEFERRED is used, please ensure that automatic parallelism control is enabled on the meta, otherwise, the alter "
    "will not take effect."
)


def set_rate_limit(session: Session, statement: AlterRateLimit) -> Result:
    """Set the rows a second that the backfill of a view may read; a running backfill follows at once."""
    return _change(session, statement, lambda job: replace(job, rate_limit=statement.limit))


def set_sink_rate_limit(session: Session, statement: AlterSinkRateLimit) -> Result:
    """Set the rows a second that a sink sends, from its next epoch on.

    Raises Error 42704, 42809, 42501, or 0A000 for a sink that delivers with the barrier.
    """
    store = session.context.store
    with store.change() as cursor:
        relation = find_altered(session, statement, is_exact=True)
        if isinstance(relation, Notice):
            return altered(statement.kind, relation)
        if not relation.sink.may_be_limited:
            raise no_rate_limit(statement.name.position)
        put_details(cursor, replace(relation, details=replace(relation.sink, rate_limit=statement.limit)))
    return altered(statement.kind)


def set_parallelism(session: Session, statement: AlterParallelism) -> Result:
    """Set the parallelism of a relation. Raises Error 22023 above its maximum, 55000 when a backfill prevents it."""
    reason = "it is blocked by creating unreschedulable backfill jobs"
    hint = "Wait until it is created, or cancel it."

    def changed(job: Job) -> Job:
        if _is_blocked(job, statement.is_deferred) or _feeds_no_shuffle(session.context.store.catalog, job.id):
            raise _cannot_alter(job.id, reason, hint)
        return replace(job, parallelism=statement.parallelism)

    def stored(relation: Relation) -> StreamingSettings:
        if _feeds_no_shuffle(session.context.store.catalog, relation.id):
            raise _cannot_alter(relation.id, reason, hint)
        return replace(relation.streaming, parallelism=statement.parallelism)

    def check(relation: Relation) -> None:
        check_parallelism(statement.parallelism, relation.streaming.max_parallelism, "parallelism")

    return _change(session, statement, changed, statement.is_deferred, stored, check)


def set_backfill_parallelism(session: Session, statement: AlterBackfillParallelism) -> Result:
    """Set the parallelism of a backfill. Raises Error 22023 above the maximum, 55000 when it cannot be changed now."""

    def changed(job: Job) -> Job:
        if _is_blocked(job, statement.is_deferred):
            reason = "its creating backfill contains a scan type that does not support online rescheduling"
            raise _cannot_alter(job.id, reason, "Arrangement backfill does: WITH (backfill_strategy = 'arrangement').")
        return replace(job, backfill_parallelism=statement.parallelism)

    def stored(relation: Relation) -> StreamingSettings:
        return replace(relation.streaming, backfill_parallelism=statement.parallelism)

    def check(relation: Relation) -> None:
        check_parallelism(str(statement.parallelism), relation.streaming.max_parallelism, "backfill parallelism")

    return _change(session, statement, changed, statement.is_deferred, stored, check)


def set_resource_group(session: Session, statement: AlterResourceGroup) -> Result:
    """Set the resource group that runs a view; a backfill moves with its next step, a serverless one when it is done.

    Raises Error 42704 for an unknown group.
    """
    group = None if statement.group == DEFAULT_GROUP else statement.group
    if group is not None:
        session.context.groups.check_exists(group)

    def changed(job: Job) -> Job:
        job = replace(job, specific_group=group)
        if job.is_serverless and _is_creating(job):
            return job
        return replace(job, resource_group=session.context.store.catalog.steady_group(job))

    return _change(session, statement, changed, statement.is_deferred)


Alteration = AlterRateLimit | AlterParallelism | AlterBackfillParallelism | AlterResourceGroup


def _change(
    session: Session,
    statement: Alteration,
    changed: Callable[[Job], Job],
    is_deferred: bool = False,
    stored: Callable[[Relation], StreamingSettings] | None = None,
    check: Callable[[Relation], None] = lambda relation: None,
) -> Result:
    """Store a job's changed settings and inform the job; of a table or source, store what `stored` returns.

    Raises Error 42P01, 42704, 42809 or 42501, and the errors of the functions.
    """
    store, told = session.context.store, (_DEFERRED,) if is_deferred else ()
    with store.change() as cursor:  # the lookup is inside, so that no other ALTER or DROP comes between
        relation = find_altered(session, statement, is_exact=True)
        if isinstance(relation, Notice):
            return altered(statement.kind, relation)
        check(relation)
        if not relation.is_streaming:
            assert stored is not None
            put_settings(cursor, replace(relation, streaming=stored(relation)))
            return altered(statement.kind, *told)
        job = changed(_job(store.catalog, relation))
        set_job_control(cursor, job)
    session.context.jobs.controls_changed(job.id)
    return altered(statement.kind, *told)


def _job(catalog: Catalog, relation: Relation) -> Job:
    """Return the job of a view, or of the view that will replace it."""
    return catalog.job_by_id[(catalog.replacement(relation.id) or relation).id]


def _is_creating(job: Job) -> bool:
    return job.status in (INITIAL, CREATING)


def _is_blocked(job: Job, is_deferred: bool) -> bool:
    """Return whether a job's own backfill cannot change its parallelism.

    A snapshot backfill cannot while it runs, a no-shuffle backfill never (RisingWave: src/meta/src/barrier/…,
    is_reschedulable of a scan type).
    """
    return _is_creating(job) and (job.strategy == NO_SHUFFLE or (job.strategy == SNAPSHOT and not is_deferred))


def _feeds_no_shuffle(catalog: Catalog, id_: int) -> bool:
    """Return whether a no-shuffle backfill reads the relation: such a backfill has the parallelism of its upstream."""
    creating = (other for other in catalog.jobs if _is_creating(other) and other.strategy == NO_SHUFFLE)
    return any(id_ in catalog.by_id[other.id].upstreams for other in creating)


def _cannot_alter(id_: int, reason: str, hint: str) -> Error:
    return Error(f"Cannot alter the job {id_} because {reason}", errors.NOT_IN_PREREQUISITE_STATE, hint=hint)
