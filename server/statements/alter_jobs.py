"""ALTER … SET of a materialized view, index or sink: controls how its job runs, during creation and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import CREATING, DEFAULT_GROUP, INITIAL, Catalog, Job
from sparkwave.catalog.stores.job_store import set_job_control
from sparkwave.planner.backfill.strategy import NO_SHUFFLE, SNAPSHOT
from sparkwave.planner.bind.privileges import check_owner
from sparkwave.planner.statements import AlterBackfillParallelism, AlterParallelism, AlterRateLimit, AlterResourceGroup
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_relations import find_to_alter
from sparkwave.server.statements.renames import altered
from sparkwave.server.wire.result import Notice, Result

_DEFERRED = Notice(
    "DEFERRED is used, please ensure that automatic parallelism control is enabled on the meta, otherwise, the alter "
    "will not take effect."
)


def set_rate_limit(session: Session, statement: AlterRateLimit) -> Result:
    """Set the rows a second that the backfill of a view may read; a running backfill follows at once."""
    return _change(session, statement, lambda job: replace(job, rate_limit=statement.limit))


def set_parallelism(session: Session, statement: AlterParallelism) -> Result:
    """Set the parallelism of a view. Raises Error 55000 when a backfill prevents it."""

    def changed(job: Job) -> Job:
        catalog = session.context.store.catalog
        if _is_blocked(job, statement.is_deferred) or _feeds_no_shuffle(catalog, job):
            reason = "it is blocked by creating unreschedulable backfill jobs"
            raise _cannot_alter(job, reason, "Wait until it is created, or cancel it.")
        return replace(job, parallelism=statement.parallelism)

    return _change(session, statement, changed, statement.is_deferred)


def set_backfill_parallelism(session: Session, statement: AlterBackfillParallelism) -> Result:
    """Set the parallelism of a view's backfill. Raises Error 55000 when the backfill cannot change it."""

    def changed(job: Job) -> Job:
        if _is_blocked(job, statement.is_deferred):
            reason = "its creating backfill contains a scan type that does not support online rescheduling"
            raise _cannot_alter(job, reason, "Arrangement backfill does: WITH (backfill_strategy = 'arrangement').")
        return replace(job, backfill_parallelism=statement.parallelism)

    return _change(session, statement, changed, statement.is_deferred)


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
    session: Session, statement: Alteration, changed: Callable[[Job], Job], is_deferred: bool = False
) -> Result:
    """Store a job's changed settings and informs the job."""
    store = session.context.store
    with store.change() as cursor:  # the lookup is inside, so that no other ALTER or DROP comes between
        job = changed(_job(session, statement))
        set_job_control(cursor, job)
    session.context.jobs.controls_changed(job.id)
    return altered(statement.kind, *((_DEFERRED,) if is_deferred else ()))


def _job(session: Session, statement: Alteration) -> Job:
    """The job of the named view, or of the view that will replace it. Raises Error 42704, 42809 or 42501."""
    relation = find_to_alter(session, statement.name, statement.kind)
    check_owner(session.user, relation.securable, statement.name.position)
    catalog = session.context.store.catalog
    return catalog.job_by_id[(catalog.replacement(relation.id) or relation).id]


def _is_creating(job: Job) -> bool:
    return job.status in (INITIAL, CREATING)


def _is_blocked(job: Job, is_deferred: bool) -> bool:
    """Whether a job's own backfill cannot change its parallelism.

    A snapshot backfill cannot while it runs, a no-shuffle backfill never (RisingWave: src/meta/src/barrier/…,
    is_reschedulable of a scan type).
    """
    return _is_creating(job) and (job.strategy == NO_SHUFFLE or (job.strategy == SNAPSHOT and not is_deferred))


def _feeds_no_shuffle(catalog: Catalog, job: Job) -> bool:
    """Whether a no-shuffle backfill reads the view: such a backfill has the parallelism of its upstream."""
    creating = (other for other in catalog.jobs if _is_creating(other) and other.strategy == NO_SHUFFLE)
    return any(job.id in catalog.by_id[other.id].upstreams for other in creating)


def _cannot_alter(job: Job, reason: str, hint: str) -> Error:
    return Error(f"Cannot alter the job {job.id} because {reason}", errors.NOT_IN_PREREQUISITE_STATE, hint=hint)
