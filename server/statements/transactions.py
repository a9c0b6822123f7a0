"""BEGIN, COMMIT and ROLLBACK without atomic transactions: as in RisingWave, each statement commits by itself.

Cursors and portals stay open between BEGIN and its end. READ ONLY is enforced: all queries read the newest snapshot of
BEGIN, and writes are refused. With `atomic_transactions`, `server.session.atomic` follows PostgreSQL instead.
"""

from __future__ import annotations

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner import statements
from sparkwave.planner.statements import Statement, Transaction
from sparkwave.server.session import atomic
from sparkwave.server.session.session import Session
from sparkwave.server.statements.command_names import writing_command
from sparkwave.server.wire.result import Notice, Result


def transaction(session: Session, statement: Transaction) -> Result:
    if statement.action == "characteristics":
        if statement.read_only is not None:
            session.variables.set("default_transaction_read_only", "on" if statement.read_only else "off")
        for name, value in statement.modes:
            session.variables.set(f"default_transaction_{name}", value)
        return Result(statement.tag)
    _check_constraints(session, statement)
    result = atomic.transaction(session, statement) if atomic.applies(session) else _transaction(session, statement)
    is_in_block = session.transaction.is_open
    if statement.action in ("begin", "set") and is_in_block:
        _show_modes(session, statement)
    if statement.action == "set" and not is_in_block:
        what = "SET TRANSACTION" if statement.tag == "SET" else statement.tag
        message = f"{what} can only be used in transaction blocks"
        result.notices.append(Notice(message, "WARNING", errors.NO_ACTIVE_TRANSACTION))
    return result


def _check_constraints(session: Session, statement: Transaction) -> None:
    """Raise Error 42704 for an unknown constraint, and 42809 for one that is not deferrable."""
    catalog = session.context.store.catalog
    for name, position in statement.constraints:
        found = [key for table in catalog.relations for key in table.constraints.keys if key.name == name]
        if not found:
            raise Error(f'constraint "{name}" does not exist', errors.UNDEFINED_OBJECT, position=position)
        if not any(key.deferral for key in found):
            raise Error(f'constraint "{name}" is not deferrable', errors.WRONG_OBJECT_TYPE, position=position)


def _show_modes(session: Session, statement: Transaction) -> None:
    """Store the modes that a client asks for, which SHOW prints. They do not change the isolation."""
    said = dict(statement.modes)
    for name in ("isolation", "deferrable"):
        value = said.get(name) or (statement.action == "begin" and session.variables.get(f"default_transaction_{name}"))
        if value and value != session.variables.get(f"transaction_{name}"):
            session.variables.set_local(f"transaction_{name}", value)


def _transaction(session: Session, statement: Transaction) -> Result:
    """Run a transaction statement where each statement commits by itself. Raises Error 25P01."""
    in_block = session.names.in_block
    undone = [_STAYS] if session.transaction.has_committed else []
    match statement.action:
        case "begin":
            session.names.in_block = True
            _set_mode(session, statement.read_only)
            return Result(statement.tag, notices=[atomic.ALREADY] if in_block else [])
        case "set" if session.names.in_block and statement.read_only is not None:
            _set_mode(session, statement.read_only)
        case "commit":
            try:
                session.names.commit()
            finally:
                session.transaction.unpin()
                session.end_block()
            return Result(statement.tag, notices=[] if in_block else [atomic.NONE])
        case "rollback":
            session.names.rollback()
            session.transaction.unpin()
            session.end_block()
            return Result(statement.tag, notices=undone if in_block else [atomic.NONE])
        case "savepoint" | "release" | "rollback to":
            if not in_block:
                raise atomic.no_block(statement)
            return Result(statement.tag, notices=undone if statement.action == "rollback to" else [])
    return Result(statement.tag)


_STAYS = Notice(
    "ROLLBACK undoes nothing: each statement before it has been committed; SET atomic_transactions = on for blocks "
    "that are stored at COMMIT",
    "WARNING",
    errors.WARNING,
)


def note_committed(session: Session, statement: Statement) -> None:
    """Note, for a warning at ROLLBACK, that a statement in a block has committed a write."""
    if session.names.in_block and session.transaction.block is None and writing_command(statement) is not None:
        session.transaction.has_committed = True


def _set_mode(session: Session, read_only: bool | None) -> None:
    if read_only is not None:
        session.transaction.may_write = not read_only
    session.transaction.pin() if session.variables.is_read_only else session.transaction.unpin()


def check_writable(session: Session, statement: Statement) -> None:
    """Raise Error 25006 for a write in a read-only transaction, or on a server that only reads."""
    only_reads = session.context.lake.read_only
    if not only_reads and not session.variables.is_read_only:
        return
    command = writing_command(statement)
    if only_reads and isinstance(statement, statements.AuditView):  # which stores no result there
        return
    if command is None and only_reads and isinstance(statement, statements.Flush | statements.Wait | statements.Backup):
        command = type(statement).__name__.upper()
    if command is None:
        return
    if only_reads:
        writer = session.context.lake.writer
        hint = f"Connect to {writer}." if writer else "The server that writes has ended; another takes its place soon."
        raise Error(f"cannot execute {command} on a server that only reads", errors.READ_ONLY_TRANSACTION, hint=hint)
    raise Error(f"cannot execute {command} in a read-only transaction", errors.READ_ONLY_TRANSACTION)
