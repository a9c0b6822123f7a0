"""Parsed statements that have not run, and PREPARE, DEALLOCATE and the arguments of EXECUTE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.types import VARCHAR, Type
from sparkwave.planner import statements
from sparkwave.planner.batch.query import plan_arguments
from sparkwave.planner.statements import Statement
from sparkwave.server.reads import execution, queries
from sparkwave.server.reads.error_positions import placed
from sparkwave.server.session import portal
from sparkwave.server.session.session import Session
from sparkwave.server.statements import backups, profiles, show
from sparkwave.server.wire.parameter_values import decode_parameter
from sparkwave.server.wire.result import Result, ResultColumn
from sparkwave.server.wire.text_format import text_array
from sparkwave.server.writes import dml, with_writes

# Columns of statements that make their own rows; they are known before the statement runs.
_FIXED_COLUMNS: dict[type, Callable[[Any], tuple[str, ...]]] = {
    statements.ShowCreate: lambda statement: show.CREATE_COLUMNS,
    statements.ShowVariable: lambda statement: ("Name",),
    statements.Explain: lambda statement: ("QUERY PLAN",),
    statements.ExplainJob: lambda statement: profiles.COLUMNS,
    statements.CancelJobs: lambda statement: ("Id",),
    statements.Backup: lambda statement: backups.COLUMNS,
}


# The kind of each statement in the metrics; other statements change the catalog ("ddl").
_KINDS: dict[type, str] = {
    statements.Query: "select",
    statements.Insert: "insert",
    statements.Update: "update",
    statements.Delete: "delete",
    statements.Merge: "merge",
    statements.WithWrites: "merge",
    statements.Truncate: "delete",
    statements.Copy: "copy",
    **dict.fromkeys((statements.Explain, statements.ExplainJob), "explain"),
    statements.Transaction: "transaction",
    **dict.fromkeys((statements.Show, statements.ShowChecksum, statements.ShowCreate, statements.ShowVariable), "show"),
    statements.SetVariable: "set",
    **dict.fromkeys((statements.Prepare, statements.Execute, statements.Deallocate), "prepared"),
    **dict.fromkeys(
        (statements.DeclareCursor, statements.DeclareSubscriptionCursor, statements.Fetch, statements.CloseCursor),
        "cursor",
    ),
    **dict.fromkeys(
        (
            statements.Flush, statements.Refresh, statements.AuditView, statements.Recover, statements.Backup,
            statements.Wait,
            statements.CancelJobs, statements.Kill, statements.Discard, statements.Vacuum,
        ),
        "control",
    ),
}  # fmt: skip


@dataclass
class Prepared:
    """A statement with its parameters and columns, inferred on first use. See `server.wire.result.Prepared`.

    `constants` are parameter values that come from the text, so that the client gives none.
    """

    session: Session
    statement: Statement
    oids: tuple[int, ...]
    text: str = ""  # as the client sent it
    constants: tuple[object, ...] = ()

    @property
    def is_empty(self) -> bool:
        return isinstance(self.statement, statements.Empty)

    @property
    def kind(self) -> str:
        return _KINDS.get(type(self.statement), "ddl")

    @lazy
    def parameters(self) -> tuple[Type, ...]:
        if self.constants:
            return ()
        match self.statement:
            case statements.Query() | statements.DeclareCursor() as query:
                return queries.plan(self.session, query, self.oids).batch.parameters
            case statements.Insert() | statements.Update() | statements.Delete() | statements.Merge():
                return dml.plan(self.session, self.statement, self.oids).parameters
            case statements.WithWrites() as parts:
                return with_writes.parameters(self.session, parts, self.oids)
        return ()

    @property
    def columns(self) -> tuple[ResultColumn, ...] | None:
        """Return None for a missing cursor or statement: as in PostgreSQL, it is an error only when it runs."""
        names = self.session.names
        if isinstance(self.statement, statements.Query):
            return self._own_columns
        match self.statement:
            case statements.Fetch(cursor, moves=False) if cursor in names.portals:
                return names.portals[cursor].columns
            case statements.Execute(name) if name in names.statements:
                target = names.statements[name].prepared
                return None if is_execute(target) else target.columns
        return self._own_columns

    @property
    def _own_columns(self) -> tuple[ResultColumn, ...] | None:
        if isinstance(self.statement, statements.Query):
            with placed(self.statement, self.session):
                return execution.describe(self.session, queries.plan(self.session, self.statement, self.oids))
        if isinstance(self.statement, statements.Insert | statements.Update | statements.Delete):
            with placed(self.statement, self.session):
                return dml.returned_columns(self.session, self.statement, self.oids)
        if isinstance(self.statement, statements.WithWrites):
            with placed(self.statement, self.session):
                return with_writes.columns(self.session, self.statement, self.oids)
        if isinstance(self.statement, statements.Show):
            return tuple(map(ResultColumn, *show.columns_of(self.statement)))
        if type(self.statement) in _FIXED_COLUMNS:
            return tuple(ResultColumn(name, VARCHAR) for name in _FIXED_COLUMNS[type(self.statement)](self.statement))
        return None


def is_execute(prepared: object) -> bool:
    """Return whether a prepared statement is an EXECUTE, which could name itself."""
    return isinstance(prepared, Prepared) and isinstance(prepared.statement, statements.Execute)


def prepare(session: Session, statement: statements.Prepare) -> Result:
    """Run PREPARE. The statement is planned now, so that its errors show now. Raises Error 42P05."""
    oids = tuple(type_.oid for type_ in statement.types)
    prepared = Prepared(session, statement.statement, oids, session.running_text)

    def plan() -> portal.Statement:
        with placed(statement.statement, session):
            _ = prepared.parameters, prepared.columns
        return portal.Statement(prepared, oids, from_sql=True)

    session.names.add_statement(statement.name, plan)
    return Result("PREPARE")


def deallocate(session: Session, statement: statements.Deallocate) -> Result:
    """Run DEALLOCATE. Raises Error 26000."""
    if statement.name is None:
        session.names.statements.clear()
        return Result("DEALLOCATE ALL")
    session.names.statement(statement.name)
    del session.names.statements[statement.name]
    return Result("DEALLOCATE")


def arguments(session: Session, statement: statements.Execute, target: portal.Statement) -> tuple[object, ...]:
    """Return the argument values of an EXECUTE, as if the client had sent them.

    Raises Error 42601 for a wrong number.
    """
    types = target.prepared.parameters
    if len(statement.arguments) != len(types):
        raise Error(
            f'wrong number of parameters for prepared statement "{statement.name}"',
            errors.SYNTAX_ERROR,
            detail=f"Expected {len(types)} parameters but got {len(statement.arguments)}.",
        )
    if not types:
        return ()
    batch = plan_arguments(statement.arguments, types, session.environment)
    result = execution.query(session, batch)
    try:
        assert result.batches is not None
        (row,) = [batch for batch in result.batches if batch.num_rows]
    finally:
        result.close()
    texts = (text_array(array, type_)[0].as_py() for array, type_ in zip(row.columns, types, strict=True))
    return tuple(
        decode_parameter(None if text is None else text.encode(), 0, type_)
        for text, type_ in zip(texts, types, strict=True)
    )
