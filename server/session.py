"""One client: its variables, and what it is running on DuckDB."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from catalog import errors
from catalog.errors import Error
from catalog.lake import Cursor, DuckDBError, is_passing, restored, translate
from catalog.model import Catalog
from catalog.names import DEFAULT_DATABASE, literal
from catalog.system_views import is_system
from catalog.types import Type, duckdb_type
from catalog.users import ROOT, User
from planner.batch.query import Batch, Environment
from planner.bind import Scope
from planner.privileges import holds, permission_denied
from planner.strategy import BackfillSettings
from server.activity import Backend, variables
from server.context import Context
from server.portal import Names
from server.result import Notice, Result, ResultColumn
from server.variables import SESSION, SYSTEM, find, normalise, resolve_name

# Rows of a batch sent to the client at once.
BATCH_ROWS = 16_384


@dataclass(frozen=True)
class Pinned:
    """What a read-only transaction reads: a snapshot of the lake and the catalog that was there with it."""

    snapshot: int | None
    catalog: Catalog


class Session:
    """The state of one connection."""

    def __init__(self, context: Context, startup: dict[str, str]) -> None:
        """Raises Error 3D000 for an unknown database, and what SET would raise for startup parameters."""
        self.context = context
        name = startup.get("user", ROOT)
        if name not in context.store.catalog.users:
            raise Error(f'role "{name}" does not exist', errors.INVALID_AUTHORIZATION)
        self._user_id = context.store.catalog.users[name].id
        self.database = startup.get("database") or DEFAULT_DATABASE
        if self.database not in context.store.catalog.databases:
            raise Error(f'database "{self.database}" does not exist', errors.INVALID_CATALOG_NAME)
        database = context.store.catalog.securables[self.database,]
        if not holds(context.store.catalog, self.user, database, "CONNECT"):
            raise permission_denied(f'permission denied for database "{self.database}"')
        self._variables: dict[str, str] = {}
        self._cancelled = threading.Event()
        self._cancel_reason = ""
        # Sends a notice at once, while a statement runs; set by the wire.
        self.notify: Callable[[Notice], None] = lambda notice: None
        self._running: set[Cursor] = set()
        self.names = Names()
        self.pinned: Pinned | None = None
        self.backend: Backend | None = None
        for name, value in startup.items():
            if name.lower() in SESSION and name.lower() not in ("client_encoding",):
                self.set(name, value)

    @property
    def user(self) -> User:
        """The user as the catalog has it now. Raises Error 28000 when it has been dropped."""
        found = (user for user in self.context.store.catalog.users.values() if user.id == self._user_id)
        user = next(found, None)
        if user is None:
            raise Error("the user of this session has been dropped", errors.INVALID_AUTHORIZATION)
        return user

    # Variables.

    def get(self, name: str) -> str:
        """The value of a session variable or system parameter, as SHOW prints it."""
        resolved = resolve_name(name)
        if resolved in SYSTEM:
            return self.context.parameter(resolved)
        variable = find(name, system=False)
        stored = self.context.store.catalog.parameters.get(resolved, variable.default)
        return self._variables.get(resolved, stored)

    def set(self, name: str, value: str | None) -> None:
        """SET; None resets to the default."""
        variable = find(name, system=False)
        if value is None:
            self._variables.pop(variable.name, None)
        else:
            self._variables[variable.name] = normalise(variable, value)

    def reset_all(self) -> None:
        self._variables.clear()

    def flag(self, name: str) -> bool:
        return self.get(name) == "true"

    @property
    def running_text(self) -> str:
        """The statement that runs, as the client sent it."""
        return self.backend.query if self.backend else ""

    @property
    def scope(self) -> Scope:
        return Scope(self.database)

    @property
    def environment(self) -> Environment:
        settings = {name: self.get(name) for name in SESSION}
        settings |= {"database": self.database, "user": self.user.name, "schema": self.scope.schema}
        pinned = self.pinned or Pinned(None, self.context.store.catalog)
        return Environment(pinned.catalog, self.scope, settings, is_system, self.user, pinned.snapshot)

    def pin(self) -> None:
        """From now on read the lake and its catalog as they are now, until `unpin`."""
        if self.pinned is None:
            lake = self.context.lake
            with lake.exclusive():
                self.pinned = Pinned(lake.pin(), self.context.store.catalog)
            self._variables["transaction_read_only"] = "on"

    def unpin(self) -> None:
        if self.pinned is not None:
            self.context.lake.unpin(self.pinned.snapshot)
            self.pinned = None
            self._variables.pop("transaction_read_only", None)

    @property
    def backfill_settings(self) -> BackfillSettings:
        limit = int(self.get("backfill_rate_limit"))
        return BackfillSettings(
            self.flag("streaming_use_snapshot_backfill"),
            self.flag("streaming_use_arrangement_backfill"),
            limit if limit >= 0 else None,
        )

    @contextlib.contextmanager
    def statement(self) -> Iterator[None]:
        """While entered, one statement runs: a cancel or the time limit stops it."""
        self._cancelled.clear()
        limit_ms = int(self.get("statement_timeout").removesuffix("ms"))
        timer = threading.Timer(limit_ms / 1000, self.cancel, ("statement timeout",)) if limit_ms else None
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            yield
        except Error as error:
            if error.sqlstate == errors.QUERY_CANCELED:
                self.check_cancelled()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def reported(self) -> dict[str, str]:
        """What ParameterStatus tells the client."""
        return {
            "server_version": self.get("server_version"),
            "client_encoding": "UTF8",
            "standard_conforming_strings": "on",
            "TimeZone": self.get("timezone"),
            "application_name": self.get("application_name"),
            "DateStyle": "ISO, MDY",
            "IntervalStyle": "postgres",
            "integer_datetimes": "on",
            "server_encoding": "UTF8",
        }

    def cancel(self, reason: str = "user request") -> None:
        """Stop what is running, from another thread."""
        self._cancel_reason = reason
        self._cancelled.set()
        for cursor in list(self._running):
            cursor.interrupt()

    def check_cancelled(self) -> None:
        """Raise Error 57014 if the client has asked to stop."""
        if self._cancelled.is_set():
            raise Error(f"canceling statement due to {self._cancel_reason}", errors.QUERY_CANCELED)

    def is_cancelled(self) -> bool:
        return self._cancelled.is_set()

    def close(self) -> None:
        self.cancel()
        self.unpin()

    # Running DuckDB.

    def running(self, cursor: Cursor) -> _RunningCursor:
        """While entered, a cancel interrupts the cursor."""
        return _RunningCursor(self._running, cursor, self.check_cancelled)

    def query(self, batch: Batch, values: tuple[object, ...] = (), tag: str = "SELECT", keeps: bool = False) -> Result:
        """Run a query and stream its rows. With `keeps` what it reads is kept for as long as the client takes."""
        if batch.reads_system:
            self.context.system_views.refresh()
        cursor = self.context.lake.cursor()
        kept = self.context.lake.pin() if keeps else None
        try:
            with self.running(cursor):
                if self.get("timezone") != "UTC":
                    cursor.execute(f"SET TimeZone = {literal(self.get('timezone'))}")
                if batch.reads_system:
                    self._set_variables(cursor, batch.sql)
                _execute(cursor, batch.sql, list(values) if batch.parameters else None)
                columns = result_columns(cursor)
                reader = cursor.to_arrow_reader(BATCH_ROWS)
        except BaseException:
            self.context.lake.unpin(kept)
            raise
        return Result(tag, columns, _Batches(self, cursor, reader, kept), counts_rows=True)

    def _set_variables(self, cursor: Cursor, sql: str) -> None:
        """What the system catalogs show of this session, and of the others."""
        if self.database != DEFAULT_DATABASE:
            cursor.execute(f"SET VARIABLE database = {literal(self.database)}")
        for name, value in variables(self, sql):
            cursor.execute(f"SET VARIABLE {name} = {literal(value)}")

    def describe(self, batch: Batch) -> tuple[ResultColumn, ...]:
        """The columns of a query, without running it."""
        cursor = self.context.lake.cursor()
        nulls = [None] * len(batch.parameters)
        rows = cursor.execute(f"DESCRIBE {batch.sql}", nulls or None).fetchall()
        return tuple(ResultColumn(name, duckdb_type(type_)) for name, type_, *_ in rows)


def _execute(cursor: Cursor, sql: str, values: list[object] | None) -> None:
    """Run a query, again when it failed for a reason that passes."""
    for last in (False, False, True):
        try:
            cursor.execute(sql, values)
            return
        except DuckDBError as error:
            if last or not is_passing(error):
                raise


def result_columns(cursor: Cursor) -> tuple[ResultColumn, ...]:
    """The columns of the query a cursor has just run."""
    return tuple(ResultColumn(name, duckdb_type(str(type_))) for name, type_, *_ in cursor.description or ())


class _Batches:
    """Record batches of a running query; its errors become ours, and closing it ends the query.

    `kept` is the snapshot that is pinned for it.
    """

    def __init__(self, session: Session, cursor: Cursor, reader: pa.RecordBatchReader, kept: int | None) -> None:
        self._session = session
        self._cursor = cursor
        self._reader = reader
        self._kept = kept

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            with self._session.running(self._cursor):
                return self._reader.read_next_batch()
        except (DuckDBError, pa.ArrowException, OSError) as error:
            self._session.check_cancelled()
            raise translate(error if isinstance(error, DuckDBError) else restored(error)) from error

    def close(self) -> None:
        self._cursor.close()
        self._session.context.lake.unpin(self._kept)
        self._kept = None


class _RunningCursor:
    def __init__(self, running: set[Cursor], cursor: Cursor, check: Callable[[], None]) -> None:
        self._running, self._cursor, self._check = running, cursor, check

    def __enter__(self) -> None:
        self._check()
        self._running.add(self._cursor)

    def __exit__(self, *_: object) -> None:
        self._running.discard(self._cursor)


def rows_result(tag: str, names: tuple[str, ...], rows: list[tuple[object, ...]], types: tuple[Type, ...]) -> Result:
    """A small result made here. `rows` hold Python values that fit `types`."""
    arrays = [pa.array([row[index] for row in rows], _ARROW[type_.name]) for index, type_ in enumerate(types)]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(names))
    return Result(tag, tuple(map(ResultColumn, names, types)), iter((batch,)), counts_rows=False)


_ARROW = {
    "character varying": pa.string(),
    "bigint": pa.int64(),
    "integer": pa.int32(),
    "boolean": pa.bool_(),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
}
