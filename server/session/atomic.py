"""Atomic transactions, as in PostgreSQL: with `atomic_transactions`, a block's writes are committed at its end.

Isolation is that of a snapshot, taken at BEGIN ("repeatable read"). `server.session.block` keeps the writes. A
definition (DDL) is no part of a transaction: it first commits the block's writes, then itself, as in MySQL and Oracle;
the block goes on in another transaction.
"""

from __future__ import annotations

from collections.abc import Callable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner import statements
from sparkwave.planner.statements import Statement, Transaction
from sparkwave.server.session.block import Block, Mark
from sparkwave.server.session.session import Session
from sparkwave.server.statements.command_names import writing_command
from sparkwave.server.wire.result import Notice, Result

VARIABLE = "atomic_transactions"

# The statements that can be part of a transaction.
_PARTS = (
    statements.Empty,
    statements.Query,
    statements.Insert,
    statements.Update,
    statements.Delete,
    statements.Merge,
    statements.WithWrites,
    statements.Truncate,
    statements.Copy,
    statements.Explain,
    statements.ExplainJob,
    statements.Show,
    statements.ShowCreate,
    statements.ShowVariable,
    statements.SetVariable,
    statements.UseDatabase,
    statements.Kill,
    statements.Transaction,
    statements.Prepare,
    statements.Execute,
    statements.Deallocate,
    statements.Do,
    statements.DeclareCursor,
    statements.Fetch,
    statements.CloseCursor,
    statements.Flush,
    statements.Wait,
)

_BEGINS_PIPELINE = (
    statements.Query,
    statements.Insert,
    statements.Update,
    statements.Delete,
    statements.Merge,
    statements.WithWrites,
    statements.Truncate,
    statements.Copy,
    statements.SetVariable,
    statements.Execute,
)


def applies(session: Session) -> bool:
    """Return whether transaction statements mean atomic transactions. Within a block, its BEGIN has decided."""
    return session.transaction.block is not None or (session.variables.flag(VARIABLE) and not session.names.in_block)


def begins_pipeline(session: Session, statement: Statement) -> bool:
    """Return whether this statement begins a transaction of all messages up to Sync.

    A statement that cannot be in a block, and stands before such a statement, runs and commits by itself, as in
    PostgreSQL.
    """
    if session.transaction.block is not None or not applies(session):
        return False
    match statement:
        case statements.SetVariable(name=name, system=system):
            return not system and name != VARIABLE
    return isinstance(statement, _BEGINS_PIPELINE)


def check(session: Session, statement: Statement) -> None:
    """Raise Error 25P02 for a statement that a failed transaction refuses, 25001 for one that no block may contain."""
    if session.transaction.block is None:
        return
    check_failed(session, statement)
    match statement:
        case statements.SetVariable(system=True) | statements.CreateDatabase() | statements.DropDatabase():
            command = writing_command(statement)
        case statements.Discard(tag=tag) if tag not in ("RESET", "UNLISTEN"):
            command = tag
        case statements.Vacuum(tag="VACUUM" as tag):
            command = tag
        case _:
            return
    raise Error(f"{command} cannot run inside a transaction block", errors.ACTIVE_TRANSACTION)


def is_part(session: Session, statement: Statement) -> bool:
    """Return whether the session has no transaction, or the statement can run as part of it."""
    return session.transaction.block is None or isinstance(statement, (*_PARTS, statements.Discard, statements.Vacuum))


def run_between(session: Session, statement: Statement, run: Callable[[], Result]) -> Result:
    """Commit the transaction, run a statement that cannot be part of one, and go on with another transaction.

    The new transaction has savepoints with the old names. Raises the errors of `commit` and of `run`.
    """
    block, may_write = session.transaction.block, session.transaction.may_write
    assert block is not None
    has_written = block.entries > 0
    commit(session)
    try:
        result = run()
    finally:
        begin(session, block.is_implicit)
        assert session.transaction.block is not None
        session.transaction.may_write = may_write
        session.transaction.block.marks += [_mark(session, mark.name, 0) for mark in block.marks[1:]]
        session.transaction.block.committed = block.committed
    command = writing_command(statement) or result.tag
    session.transaction.block.committed += (command,)
    if has_written:
        message = f"{command} has committed the changes that the transaction had made before it"
        result.notices.append(Notice(message, "WARNING"))
    return result


def check_failed(session: Session, statement: Statement) -> None:
    """Raise Error 25P02 if the transaction has failed and the statement does not end it."""
    if (
        session.transaction.block is None
        or not session.transaction.block.has_failed
        or isinstance(statement, statements.Empty)
    ):
        return
    if not isinstance(statement, Transaction) or statement.action not in ("commit", "rollback", "rollback to"):
        message = "current transaction is aborted, commands ignored until end of transaction block"
        raise Error(message, errors.IN_FAILED_TRANSACTION)


ALREADY = Notice("there is already a transaction in progress", "WARNING", errors.ACTIVE_TRANSACTION)
NONE = Notice("there is no transaction in progress", "WARNING", errors.NO_ACTIVE_TRANSACTION)


def no_block(statement: Transaction) -> Error:
    """Return the error for a statement about savepoints outside a block."""
    what = f"{statement.action.upper()}{' SAVEPOINT' if statement.action != 'savepoint' else ''}"
    return Error(f"{what} can only be used in transaction blocks", errors.NO_ACTIVE_TRANSACTION)


def transaction(session: Session, statement: Transaction) -> Result:
    """Run a transaction statement (BEGIN, COMMIT, SAVEPOINT, ...) in atomic mode. Raises Error 40001, 25P01, 3B001."""
    block = session.transaction.block
    match statement.action:
        case "begin":
            already = block is not None and not block.is_implicit
            begin(session)
            if statement.read_only is not None:
                session.transaction.may_write = not statement.read_only
            if already:
                return Result(statement.tag, notices=[ALREADY])
        case "set" if block is not None and statement.read_only is not None:
            session.transaction.may_write = not statement.read_only
        case "commit" | "rollback":
            return _end(session, statement)
        case "savepoint" | "release" | "rollback to":
            if block is None or block.is_implicit:
                raise no_block(statement)
            _savepoint(session, block, statement)
    return Result(statement.tag)


def begin(session: Session, implicit: bool = False) -> None:
    """Start a transaction; an implicit transaction becomes an explicit block unless `implicit`."""
    if session.transaction.block is None:
        session.transaction.pin()
        assert session.transaction.pinned is not None and session.transaction.pinned.snapshot is not None
        start = _mark(session, "", 0)
        session.transaction.block = Block(session.context.lake, session.transaction.pinned.snapshot, [start], implicit)
    if not implicit:
        session.transaction.block.is_implicit = False
        session.names.in_block = True


def _mark(session: Session, name: str, entries: int) -> Mark:
    return Mark(name, entries, session.variables.assigned, tuple(session.names.portals.values()))


def _savepoint(session: Session, block: Block, statement: Transaction) -> None:
    if statement.action == "savepoint":
        block.marks.append(_mark(session, statement.savepoint, block.entries))
        return
    places = [place for place, mark in enumerate(block.marks) if place and mark.name == statement.savepoint]
    if not places:
        raise Error(f'savepoint "{statement.savepoint}" does not exist', errors.INVALID_SAVEPOINT)
    if statement.action == "release":
        del block.marks[places[-1] :]
        return
    mark = block.marks[places[-1]]
    del block.marks[places[-1] + 1 :]
    block.forget(mark)
    _restore(session, mark)
    block.has_failed = False


def _restore(session: Session, mark: Mark) -> None:
    """Reset the variables to a savepoint's and close cursors opened after it."""
    session.variables.restore(mark.variables)
    session.names.close_portals(lambda portal: not any(portal is old for old in mark.portals))


def _end(session: Session, statement: Transaction) -> Result:
    block = session.transaction.block
    if block is None:
        return Result(statement.tag, notices=[NONE])
    may_write, commits = session.transaction.may_write, statement.action == "commit" and not block.has_failed
    if commits:
        commit(session)
    else:
        abandon(session)
    if statement.chains:
        begin(session)
        session.transaction.may_write = may_write
    result = Result("COMMIT" if commits else "ROLLBACK")
    if block.committed and not commits:
        message = f"{', '.join(block.committed)} cannot be rolled back: committed already, with all that came before"
        result.notices.append(Notice(message, "WARNING"))
    return result


def commit(session: Session, ends_block: bool = True) -> None:
    """Commit the transaction. Raises Error 40001, or the error of a held cursor's query; then nothing is stored.

    Unless it `ends_block`, it was that of one statement, and the client's cursors stay open.
    """
    block = session.transaction.block
    assert block is not None
    cursor = session.context.lake.cursor()
    try:
        if ends_block:
            session.names.commit()
        with session.interrupting(cursor):
            has_written = block.commit(cursor, lambda: session.context.store.catalog)
    except BaseException:
        abandon(session, ends_block)
        raise
    finally:
        cursor.close()
    if ends_block:
        session.end_block()
    _leave(session, block)
    if has_written:
        session.committed()


def abandon(session: Session, ends_block: bool = True) -> None:
    """Roll the transaction back."""
    block = session.transaction.block
    if block is None:
        return
    if ends_block:
        session.names.rollback()
        session.end_block()
    _restore(session, block.marks[0])
    _leave(session, block)


def _leave(session: Session, block: Block) -> None:
    session.transaction.block = None
    session.transaction.unpin()
    block.discard()


def fail(session: Session) -> None:
    """Mark the transaction as failed after a statement's error; an implicit transaction is rolled back."""
    block = session.transaction.block
    if block is None:
        return
    if block.is_implicit:
        abandon(session)
    elif not block.has_failed:
        block.has_failed = True
        kept = block.marks[-1].portals if len(block.marks) > 1 else ()
        session.names.close_portals(lambda portal: not portal.survives and not any(portal is old for old in kept))
