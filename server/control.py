"""FLUSH, WAIT, RECOVER, CANCEL JOBS, and what is accepted without effect."""

from __future__ import annotations

from catalog import errors
from catalog.errors import Error
from catalog.types import VARCHAR
from planner.bind import resolve
from planner.statements import CancelJobs, Deallocate, Flush, Recover, Transaction, Wait
from server.result import Result
from server.session import Session, rows_result


def flush(session: Session, statement: Flush) -> Result:
    """Return when every view has applied all that was committed before."""
    session.context.coordinator.flush(session.is_cancelled)
    return Result("FLUSH")


def wait(session: Session, statement: Wait) -> Result:
    """Return when the named job, or every job, has finished."""
    ids = None
    if statement.name is not None:
        assert statement.kind is not None
        relation = resolve(session.context.store.catalog, session.scope, statement.name, statement.kind)
        if relation.kind != statement.kind:
            raise Error(f'"{statement.name}" is not a {statement.kind}', errors.WRONG_OBJECT_TYPE)
        ids = {relation.id}
    session.context.jobs.wait(ids, session.check_cancelled)
    return Result("WAIT")


def recover(session: Session, statement: Recover) -> Result:
    """Take all jobs up again from what is stored, as after a restart; return when that is done."""
    session.context.jobs.recover_now(session.check_cancelled)
    return Result("RECOVER")


def cancel_jobs(session: Session, statement: CancelJobs) -> Result:
    """The ids that were cancelled; those of no running job are left out."""
    cancelled = session.context.jobs.cancel(statement.ids)
    return rows_result("CANCEL_COMMAND", ("Id",), [(str(id_),) for id_ in cancelled], (VARCHAR,))


def transaction(session: Session, statement: Transaction) -> Result:
    """Accepted; each statement commits by itself, as in RisingWave."""
    return Result(statement.tag)


def deallocate(session: Session, statement: Deallocate) -> Result:
    """Accepted. RESET ALL and DISCARD ALL reset the session's variables."""
    if statement.tag in ("RESET", "DISCARD ALL"):
        session.reset_all()
    return Result(statement.tag)
