"""FLUSH, REFRESH, WAIT, RECOVER, CANCEL JOBS, and what is accepted without effect."""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import FAILED
from sparkwave.catalog.types import VARCHAR
from sparkwave.planner.batch.query import failed_job
from sparkwave.planner.bind.binder import resolve_readable
from sparkwave.planner.bind.privileges import check_owner, permission_denied
from sparkwave.planner.statements import CancelJobs, Discard, Flush, Kill, Recover, Refresh, Vacuum, Wait
from sparkwave.server.reads.result_columns import rows_result
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_relations import find_of_kind
from sparkwave.server.wire.result import Notice, Result

# Of so many views a warning tells the names.
_NAMED = 10


def flush(session: Session, statement: Flush) -> Result:
    """Return when every view has applied all that was committed before, with a warning of those that have failed."""
    session.flush()
    return Result("FLUSH", notices=_failed(session))


def _failed(session: Session) -> list[Notice]:
    """A warning that some views of the database do not follow, and why."""
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
    """What FLUSH does: a view follows its tables by itself, so a fresh one has applied all that was committed before.

    Raises Error 42704 or 42809 for what is no materialized view, 42501 for another's, and that of reading it when it
    is not created or has failed.
    """
    check_owner(session.user, find_of_kind(session, statement.name, "materialized view").securable)
    catalog = session.context.store.catalog
    relation = resolve_readable(catalog, session.scope, statement.name)
    failed_job(catalog, relation)
    session.flush()
    failed_job(session.context.store.catalog, relation)
    return Result("REFRESH_MATERIALIZED_VIEW")


def wait(session: Session, statement: Wait) -> Result:
    """Return when the named job, or every job, has finished."""
    jobs = session.context.jobs
    if statement.name is None:
        jobs.wait_for_all(session.check_cancelled)
    else:
        assert statement.kind is not None
        jobs.wait(find_of_kind(session, statement.name, statement.kind).id, session.check_cancelled)
    return Result("WAIT")


def recover(session: Session, statement: Recover) -> Result:
    """Stop the creating jobs and resume them where they are. Raises Error 42501 for who is no superuser."""
    if not session.user.is_super:
        raise permission_denied("only superusers can trigger adhoc recovery")
    session.context.jobs.recover_now(session.check_cancelled)
    return Result("RECOVER")


def cancel_jobs(session: Session, statement: CancelJobs) -> Result:
    """The ids that were cancelled; those of no running job are left out. Raises Error 42501 for another's."""
    by_id = session.context.store.catalog.by_id
    for id_ in statement.ids:
        if id_ in by_id:
            check_owner(session.user, by_id[id_].securable)
    cancelled = session.context.jobs.cancel(statement.ids)
    return rows_result("CANCEL_COMMAND", ("Id",), [(str(id_),) for id_ in cancelled], (VARCHAR,))


def discard(session: Session, statement: Discard) -> Result:
    """RESET ALL resets the session's variables; DISCARD ALL also forgets what it has named and ends its transaction.

    Temporary tables go with DISCARD TEMP and ALL.
    """
    if statement.tag == "DISCARD ALL":
        session.names.close_portals()
        session.names.statements.clear()
        session.names.in_block = False
        session.unpin()
    if statement.tag in ("DISCARD TEMP", "DISCARD ALL"):
        session.drop_temporary()
    if statement.tag in ("DISCARD SEQUENCES", "DISCARD ALL"):
        session.forget_last_numbers()
    if statement.tag in ("RESET", "DISCARD ALL"):
        session.reset_all(and_user=statement.tag == "DISCARD ALL")
    return Result(statement.tag)


def vacuum(session: Session, statement: Vacuum) -> Result:
    """VACUUM and ANALYZE: what they ask for is done in the background. Raises Error 42P01 for an unknown table."""
    for table in statement.tables:
        resolve_readable(session.context.store.catalog, session.scope, table)
    return Result(statement.tag)


def kill(session: Session, statement: Kill) -> Result:
    """KILL: cancel what a session runs. Raises Error 42704 when there is none of that number, 42501."""
    if not session.context.backends.signal(session.user.name, statement.process_id, "cancel"):
        raise Error(f"process {statement.process_id} does not exist", errors.UNDEFINED_OBJECT)
    return Result("KILL")
