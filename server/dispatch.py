"""The table from statements to handlers, and the client session the wire talks to."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from catalog.lake import DuckDBError, translate
from catalog.types import VARCHAR, Type
from planner import statements
from planner.batch import pg_compat
from planner.batch.query import plan_query
from planner.parse.statement import parse_statement
from planner.parse.tokens import split_statements
from planner.parse.trees import locate
from planner.statements import Statement
from server import alter, control, copy_handlers, databases, ddl, dml, grants, queries, result, show, users
from server.context import Context
from server.result import Notice, Result, ResultColumn
from server.session import Session

# A handler runs a statement with the client's parameter OIDs and values.
Handler = Callable[[Session, Any, tuple[int, ...], tuple[object, ...]], Result]


def _plain(handler: Callable[[Session, Any], Result]) -> Handler:
    """A handler of a statement that has no parameters."""
    return lambda session, statement, oids, values: handler(session, statement)


HANDLERS: dict[type, Handler] = {
    statements.Query: queries.select,
    statements.Insert: dml.insert,
    statements.Update: dml.write,
    statements.Delete: dml.write,
    statements.Copy: _plain(copy_handlers.copy),
    statements.Explain: _plain(queries.explain),
    statements.CreateTable: _plain(ddl.create_table),
    statements.CreateMaterializedView: _plain(ddl.create_materialized_view),
    statements.CreateView: _plain(ddl.create_view),
    statements.Drop: _plain(ddl.drop),
    statements.Show: _plain(show.show),
    statements.ShowCreate: _plain(show.show_create),
    statements.ShowVariable: _plain(show.show_variable),
    statements.SetVariable: _plain(show.set_variable),
    statements.AlterRateLimit: _plain(alter.set_rate_limit),
    statements.AlterParallelism: _plain(alter.set_parallelism),
    statements.AlterBackfillParallelism: _plain(alter.set_backfill_parallelism),
    statements.AlterResourceGroup: _plain(alter.set_resource_group),
    statements.CreateDatabase: _plain(databases.create_database),
    statements.DropDatabase: _plain(databases.drop_database),
    statements.AlterDatabase: _plain(databases.alter_database),
    statements.CreateUser: _plain(users.create_user),
    statements.AlterUser: _plain(users.alter_user),
    statements.RenameUser: _plain(users.rename_user),
    statements.DropUser: _plain(users.drop_user),
    statements.ChangePrivileges: _plain(grants.change_privileges),
    statements.Flush: _plain(control.flush),
    statements.Recover: _plain(control.recover),
    statements.Wait: _plain(control.wait),
    statements.CancelJobs: _plain(control.cancel_jobs),
    statements.Transaction: _plain(control.transaction),
    statements.Deallocate: _plain(control.deallocate),
}

# Columns of statements that make their own rows, known without running them.
_FIXED_COLUMNS: dict[type, Callable[[Any], tuple[str, ...]]] = {
    statements.Show: lambda statement: show.columns_of(statement)[0],
    statements.ShowCreate: lambda statement: show.CREATE_COLUMNS,
    statements.ShowVariable: lambda statement: ("Name",),
    statements.Explain: lambda statement: ("QUERY PLAN",),
    statements.CancelJobs: lambda statement: ("Id",),
}


@contextlib.contextmanager
def _places(statement: Statement) -> Iterator[None]:
    """Give errors that DuckDB found their place in the client's text."""
    try:
        yield
    except DuckDBError as raw:
        error = translate(raw)
        trees = (getattr(statement, attribute, None) for attribute in ("tree", "source", "query"))
        tree = next((tree for tree in trees if tree is not None), None)
        name = re.search(r'(?:column|name) "?(\w+)', error.message)
        if tree is not None and name is not None:
            error.position = locate(tree, name[1])
        raise error from raw


@dataclass
class Prepared:
    """A statement and, once asked for, what it takes and returns. See `server.result.Prepared`."""

    session: Session
    statement: Statement
    oids: tuple[int, ...]

    @property
    def is_empty(self) -> bool:
        return isinstance(self.statement, statements.Empty)

    @functools.cached_property
    def parameters(self) -> tuple[Type, ...]:
        match self.statement:
            case statements.Query(tree):
                return plan_query(tree, self.session.environment, self.oids).parameters
            case statements.Insert() | statements.Update() | statements.Delete():
                return dml.plan(self.session, self.statement, self.oids).parameters
        return ()

    @functools.cached_property
    def columns(self) -> tuple[ResultColumn, ...] | None:
        if isinstance(self.statement, statements.Query):
            with _places(self.statement):
                return self.session.describe(plan_query(self.statement.tree, self.session.environment, self.oids))
        if isinstance(self.statement, statements.Show):
            return tuple(map(ResultColumn, *show.columns_of(self.statement)))
        if type(self.statement) in _FIXED_COLUMNS:
            return tuple(ResultColumn(name, VARCHAR) for name in _FIXED_COLUMNS[type(self.statement)](self.statement))
        return None


class Client:
    """A `server.result.ClientSession` over the running server."""

    def __init__(self, context: Context, startup: dict[str, str]) -> None:
        self._session = Session(context, startup)

    @property
    def notify(self) -> Callable[[Notice], None]:
        return self._session.notify

    @notify.setter
    def notify(self, send: Callable[[Notice], None]) -> None:
        self._session.notify = send

    def split(self, sql: str) -> Iterable[tuple[str, int]]:
        pieces = split_statements(pg_compat.prepare_text(sql))
        return [(sql[offset : offset + len(text)], offset) for text, offset in pieces]

    def prepare(self, sql: str, parameter_oids: tuple[int, ...]) -> Prepared:
        return Prepared(self._session, parse_statement(pg_compat.prepare_text(sql)), parameter_oids)

    def execute(self, prepared: result.Prepared, values: tuple[object, ...]) -> Result:
        assert isinstance(prepared, Prepared)
        statement = prepared.statement
        with self._session.statement(), _places(statement):
            return HANDLERS[type(statement)](self._session, statement, prepared.oids, values)

    def transaction_status(self) -> bytes:
        """Always idle: each statement commits by itself, as in RisingWave."""
        return b"I"

    def parameters(self) -> dict[str, str]:
        return self._session.reported()

    def cancel(self) -> None:
        self._session.cancel()

    def close(self) -> None:
        self._session.close()
