"""FLUSH, REFRESH, WAIT, RECOVER, CANCEL JOBS, DISCARD, KILL, and VACUUM and ANALYZE, which do nothing."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import FAILED
from sparkwave.catalog.types import VARCHAR
from sparkwave.planner.batch.query import failed_job
from sparkwave.planner.bind.binder import resolve_readable
from sparkwave.planner.bind.privileges import check_owner, permission_denied
from sparkwave.planner.statements import (
    CancelJobs,
    CreateExtension,
    Discard,
    Flush,
    Kill,
    Recover,
    Refresh,
    Vacuum,
    Wait,
)
from sparkwave.server.reads.result_columns import rows_result
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_relations import find_of_kind
from sparkwave.server.wire.result import Notice, Result

# The most views that a warning names.
_NAMED = 10


def flush(session: Session, statement: Flush) -> Result:
    """Wait until every view has applied all earlier commits; warns of views that have failed."""
    session.flush()
    return Result("FLUSH", notices=_failed(session))


def _failed(session: Session) -> list[Notice]:
    """Return a warning of the database's views that have failed, with the reasons."""
    catalog = session.context.store.catalog
    jobs = ((catalog.by_id[job.id], job.error) for job in catalog.jobs if job.status == FAILED)
    failed = [(relation, error) for relation, error in jobs if relation.database == session.database]
    if not failed:
        return []
    reasons = [f"{relation.qualified_name} ({reason})" for relation, reason in failed[:_NAMED]]
    rest = [f"{len(failed) - _NAMED} more"] if len(failed) > _NAMED else []
    message = f"what has failed does not follow until it succeeds again: {', '.join(reasons + rest)}"
    return [Notice(message, "WARNING", errors.NOT_IN_PREREQUISITE_STATE)]


def refresh(session: Session, statement: Refresh) -> Result:
    """Run FLUSH: a view follows its tables by itself, so after a FLUSH it has applied all earlier commits.

    With REBUILD the view and all that read it are computed anew; only differing rows are written.

    Raises Error 42704 or 42809 for a name that is no materialized view, 42501 for another user's view, and the error of
    reading the view when it is not created or has failed.
    """
    context = session.context
    check_owner(session.user, find_of_kind(session, statement.name, "materialized view").securable)
    relation = resolve_readable(context.store.catalog, session.scope, statement.name)
    if statement.is_rebuild:
        context.coordinator.rebuild(relation, session.running.check)
    else:
        failed_job(context.store.catalog, relation)
    session.flush()
    failed_job(context.store.catalog, relation)
    return Result("REFRESH_MATERIALIZED_VIEW")


def wait(session: Session, statement: Wait) -> Result:
    """Wait until the named job, or every job, has finished."""
    jobs = session.context.jobs
    if statement.name is None:
        jobs.wait_for_all(session.running.check)
    else:
        assert statement.kind is not None
        jobs.wait(find_of_kind(session, statement.name, statement.kind).id, session.running.check)
    return Result("WAIT")


def recover(session: Session, statement: Recover) -> Result:
    """Stop the creating jobs and resume them at their position. Raises Error 42501 unless the user is a superuser."""
    if not session.user.is_super:
        raise permission_denied("only superusers can trigger adhoc recovery")
    session.context.jobs.recover_now(session.running.check)
    return Result("RECOVER")


def cancel_jobs(session: Session, statement: CancelJobs) -> Result:
    """Cancel jobs and return their ids, without the ids of jobs that do not run.

    Raises Error 42501 for another user's job.
    """
    by_id = session.context.store.catalog.by_id
    for id_ in statement.ids:
        if id_ in by_id:
            check_owner(session.user, by_id[id_].securable)
    cancelled = session.context.jobs.cancel(statement.ids)
    return rows_result("CANCEL_COMMAND", ("Id",), [(str(id_),) for id_ in cancelled], (VARCHAR,))


def discard(session: Session, statement: Discard) -> Result:
    """Run RESET ALL and DISCARD.

    RESET ALL resets the session's variables. DISCARD ALL also closes its prepared statements and portals and ends its
    transaction. DISCARD TEMP and DISCARD ALL drop temporary tables.
    """
    if statement.tag == "DISCARD ALL":
        session.names.close_portals()
        session.names.statements.clear()
        session.names.in_block = False
        session.transaction.unpin()
    if statement.tag in ("DISCARD TEMP", "DISCARD ALL"):
        session.temporary.drop(session.database)
    if statement.tag in ("DISCARD SEQUENCES", "DISCARD ALL"):
        session.numbers.forget()
    if statement.tag in ("RESET", "DISCARD ALL"):
        session.variables.reset_all(and_user=statement.tag == "DISCARD ALL")
    return Result(statement.tag)


def create_extension(session: Session, statement: CreateExtension) -> Result:
    """Say that an extension is there. Raises Error 42710 without IF NOT EXISTS."""
    message = f'extension "{statement.name}" already exists'
    if not statement.if_not_exists:
        raise Error(message, errors.DUPLICATE_OBJECT)
    return Result("CREATE_EXTENSION", notices=[Notice(f"{message}, skipping")])


def vacuum(session: Session, statement: Vacuum) -> Result:
    """Accept VACUUM and ANALYZE, whose work runs in the background anyway. Raises Error 42P01 for an unknown table."""
    for table in statement.tables:
        resolve_readable(session.context.store.catalog, session.scope, table)
    return Result(statement.tag)


def kill(session: Session, statement: Kill) -> Result:
    """Cancel the running statement of a session (KILL). Raises Error 42704 for an unknown process id, 42501."""
    if not session.context.backends.signal(session.user.name, statement.process_id, "cancel"):
        raise Error(f"process {statement.process_id} does not exist", errors.UNDEFINED_OBJECT)
    return Result("KILL")
