"""BEGIN, COMMIT and ROLLBACK: as in RisingWave each statement commits by itself, but READ ONLY is real.

Between BEGIN and its end cursors and portals live on; with READ ONLY every query reads the snapshot that was the newest
at BEGIN, and what writes is refused.
"""

from __future__ import annotations

from catalog import errors
from catalog.errors import Error
from planner import statements
from planner.statements import Statement, Transaction
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
    statements.CreateView: "CREATE VIEW",
    statements.CreateMaterializedView: "CREATE MATERIALIZED VIEW",
    statements.CreateDatabase: "CREATE DATABASE",
    statements.DropDatabase: "DROP DATABASE",
    statements.AlterDatabase: "ALTER DATABASE",
    statements.AlterRateLimit: "ALTER MATERIALIZED VIEW",
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
    statements.Comment: "COMMENT",
    statements.CreateUser: "CREATE ROLE",
    statements.AlterUser: "ALTER ROLE",
    statements.RenameUser: "ALTER ROLE",
    statements.DropUser: "DROP ROLE",
    statements.CancelJobs: "CANCEL JOBS",
    statements.Recover: "RECOVER",
}


def transaction(session: Session, statement: Transaction) -> Result:
    match statement.action:
        case "begin":
            session.names.in_block = True
            if statement.read_only:
                session.pin()
        case "set" if session.names.in_block and statement.read_only is not None:
            session.pin() if statement.read_only else session.unpin()
        case "commit":
            session.names.commit()
            session.unpin()
        case "rollback":
            session.names.rollback()
            session.unpin()
    return Result(statement.tag)


def check_writable(session: Session, statement: Statement) -> None:
    """Raise Error 25006 for what writes in a read-only transaction."""
    if session.pinned is None:
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
        case _ if type(statement) in _WRITES:
            command = _WRITES[type(statement)]
        case _:
            return
    raise Error(f"cannot execute {command} in a read-only transaction", errors.READ_ONLY_TRANSACTION)
