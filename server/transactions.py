"""BEGIN, COMMIT and ROLLBACK: as in RisingWave each statement commits by itself, but READ ONLY is real.

Between BEGIN and its end cursors and portals live on; with READ ONLY every query reads the snapshot that was the newest
at BEGIN, and what writes is refused. With `atomic_transactions` all this is as in PostgreSQL: `server.atomic`.
"""

from __future__ import annotations

from catalog import errors
from catalog.errors import Error
from planner import statements
from planner.statements import Statement, Transaction
from server import atomic
from server.result import Result
from server.session import Session

# What changes something, and what PostgreSQL calls it.
_WRITES: dict[type, str] = {
    statements.Insert: "INSERT",
    statements.Update: "UPDATE",
    statements.Delete: "DELETE",
    statements.Merge: "MERGE",
    statements.Truncate: "TRUNCATE TABLE",
    statements.CreateTable: "CREATE TABLE",
    statements.CreateTableAs: "CREATE TABLE AS",
    statements.CreateSource: "CREATE SOURCE",
    statements.CreateView: "CREATE VIEW",
    statements.CreateMaterializedView: "CREATE MATERIALIZED VIEW",
    statements.CreateSubscription: "CREATE SUBSCRIPTION",
    statements.CreateFunction: "CREATE FUNCTION",
    statements.DropFunction: "DROP FUNCTION",
    statements.CreateSecret: "CREATE SECRET",
    statements.AlterSecret: "ALTER SECRET",
    statements.DropSecret: "DROP SECRET",
    statements.CreateIndex: "CREATE INDEX",
    statements.CreateSink: "CREATE SINK",
    statements.CreateDatabase: "CREATE DATABASE",
    statements.DropDatabase: "DROP DATABASE",
    statements.AlterDatabase: "ALTER DATABASE",
    statements.RenameDatabase: "ALTER DATABASE",
    statements.AlterRateLimit: "ALTER MATERIALIZED VIEW",
    statements.AlterSourceRateLimit: "ALTER SOURCE",
    statements.AlterParallelism: "ALTER MATERIALIZED VIEW",
    statements.AlterBackfillParallelism: "ALTER MATERIALIZED VIEW",
    statements.AlterResourceGroup: "ALTER MATERIALIZED VIEW",
    statements.CreateSchema: "CREATE SCHEMA",
    statements.DropSchema: "DROP SCHEMA",
    statements.RenameSchema: "ALTER SCHEMA",
    statements.RenameRelation: "ALTER TABLE",
    statements.MoveRelation: "ALTER TABLE",
    statements.SwapRelations: "ALTER TABLE",
    statements.AlterOwner: "ALTER OWNER",
    statements.AlterTable: "ALTER TABLE",
    statements.Comment: "COMMENT",
    statements.CreateUser: "CREATE ROLE",
    statements.AlterUser: "ALTER ROLE",
    statements.RenameUser: "ALTER ROLE",
    statements.DropUser: "DROP ROLE",
    statements.CancelJobs: "CANCEL JOBS",
    statements.Recover: "RECOVER",
    statements.Refresh: "REFRESH MATERIALIZED VIEW",
}


def transaction(session: Session, statement: Transaction) -> Result:
    if statement.action == "characteristics":
        if statement.read_only is not None:
            session.set("default_transaction_read_only", "on" if statement.read_only else "off")
        return Result(statement.tag)
    if atomic.applies(session):
        return atomic.transaction(session, statement)
    match statement.action:
        case "begin":
            session.names.in_block = True
            _set_mode(session, statement.read_only)
        case "set" if session.names.in_block and statement.read_only is not None:
            _set_mode(session, statement.read_only)
        case "commit":
            try:
                session.names.commit()
            finally:
                session.unpin()
                session.end_block()
        case "rollback":
            session.names.rollback()
            session.unpin()
            session.end_block()
    return Result(statement.tag)


def _set_mode(session: Session, read_only: bool | None) -> None:
    if read_only is not None:
        session.may_write = not read_only
    session.pin() if session.is_read_only else session.unpin()


def check_writable(session: Session, statement: Statement) -> None:
    """Raise Error 25006 for what writes in a read-only transaction, or where another server is the one that writes."""
    only_reads = session.context.lake.read_only
    if not only_reads and not session.is_read_only:
        return
    match statement:
        case statements.Drop(kind=kind):
            command = f"DROP {kind.upper()}"
        case statements.Copy(is_from=True):
            command = "COPY FROM"
        case statements.SetVariable(system=True):
            command = "ALTER SYSTEM"
        case statements.ChangePrivileges(is_revoke=is_revoke):
            command = "REVOKE" if is_revoke else "GRANT"
        case statements.ChangeMembership(is_revoke=is_revoke):
            command = "REVOKE ROLE" if is_revoke else "GRANT ROLE"
        case _ if type(statement) in _WRITES:
            command = _WRITES[type(statement)]
        case statements.Flush() | statements.Wait() | statements.Backup() if only_reads:
            command = type(statement).__name__.upper()
        case _:
            return
    if only_reads:
        writer = session.context.lake.writer
        hint = f"Connect to {writer}." if writer else "The server that writes has ended; another takes its place soon."
        raise Error(f"cannot execute {command} on a server that only reads", errors.READ_ONLY_TRANSACTION, hint=hint)
    raise Error(f"cannot execute {command} in a read-only transaction", errors.READ_ONLY_TRANSACTION)
