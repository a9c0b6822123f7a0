"""FLUSH, REFRESH, WAIT, RECOVER, CANCEL JOBS, and what is accepted without effect."""

from __future__ import annotations

from catalog.types import VARCHAR
from planner.batch.query import failed_job
from planner.bind import resolve_readable
from planner.privileges import check_owner, permission_denied
from planner.statements import CancelJobs, Discard, Flush, Recover, Refresh, Wait
from server.columns import rows_result
from server.kinds import find_of_kind
from server.result import Result
from server.session import Session


def flush(session: Session, statement: Flush) -> Result:
    """Return when every view has applied all that was committed before."""
    session.context.coordinator.flush(session.is_cancelled)
    return Result("FLUSH")


def refresh(session: Session, statement: Refresh) -> Result:
    """What FLUSH does: a view follows its tables by itself, so a fresh one has applied all that was committed before.

    Raises Error 42704 or 42809 for what is no materialized view, 42501 for another's, and that of reading it when it
    is not created or has failed.
    """
    check_owner(session.user, find_of_kind(session, statement.name, "materialized view").securable)
    catalog = session.context.store.catalog
    failed_job(catalog, resolve_readable(catalog, session.scope, statement.name))
    session.context.coordinator.flush(session.is_cancelled)
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
    if statement.tag in ("RESET", "DISCARD ALL"):
        session.reset_all(and_user=statement.tag == "DISCARD ALL")
    return Result(statement.tag)
