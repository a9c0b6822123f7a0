"""PostgreSQL's names of statements that change something."""

from __future__ import annotations

from sparkwave.planner import statements
from sparkwave.planner.statements import Statement

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
    statements.CreateType: "CREATE TYPE",
    statements.CreateDomain: "CREATE DOMAIN",
    statements.AddLabel: "ALTER TYPE",
    statements.RenameLabel: "ALTER TYPE",
    statements.AlterAttributes: "ALTER TYPE",
    statements.PlaceType: "ALTER TYPE",
    statements.AlterDomain: "ALTER DOMAIN",
    statements.DropType: "DROP TYPE",
    statements.CreateSecret: "CREATE SECRET",
    statements.AlterSecret: "ALTER SECRET",
    statements.DropSecret: "DROP SECRET",
    statements.CreateConnection: "CREATE CONNECTION",
    statements.AlterConnection: "ALTER CONNECTION",
    statements.MoveConnection: "ALTER CONNECTION",
    statements.DropConnection: "DROP CONNECTION",
    statements.CreateSequence: "CREATE SEQUENCE",
    statements.AlterSequence: "ALTER SEQUENCE",
    statements.CreateIndex: "CREATE INDEX",
    statements.CreateSink: "CREATE SINK",
    statements.CreateDatabase: "CREATE DATABASE",
    statements.DropDatabase: "DROP DATABASE",
    statements.AlterDatabase: "ALTER DATABASE",
    statements.AlterDatabaseParameter: "ALTER DATABASE",
    statements.RenameDatabase: "ALTER DATABASE",
    statements.CreateSchema: "CREATE SCHEMA",
    statements.DropSchema: "DROP SCHEMA",
    statements.AlterRetention: "ALTER SUBSCRIPTION",
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
    statements.AlterDefaultPrivileges: "ALTER DEFAULT PRIVILEGES",
    statements.ReassignOwned: "REASSIGN OWNED",
    statements.DropOwned: "DROP OWNED",
    statements.AlterFragments: "ALTER FRAGMENT",
    statements.CancelJobs: "CANCEL JOBS",
    statements.Recover: "RECOVER",
    statements.Refresh: "REFRESH MATERIALIZED VIEW",
    statements.AuditView: "AUDIT",
}


def writing_command(statement: Statement) -> str | None:
    """Return the name of a statement that writes; None for a statement that only reads."""
    match statement:
        case statements.Drop(kind=kind):
            return f"DROP {kind.upper()}"
        case (
            statements.AlterRateLimit(kind=kind)
            | statements.AlterSourceRateLimit(kind=kind)
            | statements.AlterSinkRateLimit(kind=kind)
            | statements.AlterDmlRateLimit(kind=kind)
            | statements.AlterConnector(kind=kind)
            | statements.AlterBarrierTarget(kind=kind)
            | statements.AlterParallelism(kind=kind)
            | statements.AlterBackfillParallelism(kind=kind)
            | statements.AlterResourceGroup(kind=kind)
            | statements.AlterConfig(kind=kind)
        ):
            return f"ALTER {kind.upper()}"
        case statements.Copy(is_from=True):
            return "COPY FROM"
        case statements.SetVariable(system=True):
            return "ALTER SYSTEM"
        case statements.ChangePrivileges(is_revoke=is_revoke):
            return "REVOKE" if is_revoke else "GRANT"
        case statements.ChangeMembership(is_revoke=is_revoke):
            return "REVOKE ROLE" if is_revoke else "GRANT ROLE"
    return _WRITES.get(type(statement))
