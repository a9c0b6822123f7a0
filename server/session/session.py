"""One client's session: its user, variables, transaction and running statement."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog
from sparkwave.catalog.moment_texts import MDY
from sparkwave.catalog.names import DEFAULT_DATABASE, literal, parse_search_path
from sparkwave.catalog.system import system_views
from sparkwave.catalog.system.system_views import is_system
from sparkwave.catalog.users import ROOT, User
from sparkwave.planner.backfill.strategy import BackfillSettings
from sparkwave.planner.batch.query import Batch, Environment
from sparkwave.planner.batch.write import Change
from sparkwave.planner.bind.binder import Scope
from sparkwave.planner.bind.privileges import holds, permission_denied
from sparkwave.planner.statements import Statement
from sparkwave.server.context import Context
from sparkwave.server.session.backends import Backend
from sparkwave.server.session.effective_user import Identity
from sparkwave.server.session.last_numbers import LastNumbers
from sparkwave.server.session.plan_cache import LONGEST_TEXT, MOST_CHARACTERS, MOST_PLANS, Plan, Settings
from sparkwave.server.session.portal import Names
from sparkwave.server.session.running import Interruptible, Running, RunningCursor, RunningStatement
from sparkwave.server.session.session_transaction import SessionTransaction
from sparkwave.server.session.session_variables import SessionVariables
from sparkwave.server.session.temporary_tables import TemporaryTables
from sparkwave.server.session.variable_kinds import milliseconds
from sparkwave.server.session.variables import SESSION, SYSTEM, resolve_name
from sparkwave.server.wire.result import Notice

logger = logging.getLogger(__name__)


class Session:
    """The state of one connection."""

    def __init__(self, context: Context, startup: dict[str, str]) -> None:
        """Raise Error 3D000 for an unknown database, and the errors of SET for startup parameters."""
        self.context = context
        name = startup.get("user", ROOT)
        if name not in context.store.catalog.users:
            raise Error(f'role "{name}" does not exist', errors.INVALID_AUTHORIZATION)
        self._identity = Identity(lambda: context.store.catalog.users, name)
        self.names = Names()
        self.transaction = SessionTransaction(context, self.names)
        self.variables = SessionVariables(context, self._identity, self.transaction)
        self.temporary = TemporaryTables(context)
        self.running = Running()
        self.numbers = LastNumbers()
        self.backend: Backend | None = None
        # Sends a notice at once, while a statement runs; the wire sets this.
        self.notify: Callable[[Notice], None] = lambda notice: None
        # The last environment and the variables of that moment, with the plans found in that environment.
        self._environment: Environment | None = None
        self._assigned: Mapping[str, str] = {}
        self._plans: dict[tuple[int, tuple[int, ...]], Plan] = {}
        self.database = startup.get("database") or DEFAULT_DATABASE
        self._check_database(self.database)
        for name, value in startup.items():
            variable = SESSION.get(resolve_name(name))
            if variable is not None and not variable.is_fixed:
                self.variables.set(name, value)

    def _check_database(self, name: str) -> None:
        """Raise Error 3D000 for an unknown database, 42501 for one that the user may not connect to."""
        catalog = self.context.store.catalog
        if name not in catalog.databases:
            raise Error(f'database "{name}" does not exist', errors.INVALID_CATALOG_NAME)
        if not holds(catalog, self.user, catalog.securables[name,], "CONNECT"):
            raise permission_denied(f'permission denied for database "{name}"')

    def use_database(self, name: str) -> None:
        """Go on in another database.

        Raises the errors of `_check_database`, 25001 in a transaction block, 55006 for a session with temporary tables.
        """
        self._check_database(name)
        if self.transaction.is_open:
            message = "the database cannot be changed in a transaction block"
            raise Error(message, errors.ACTIVE_TRANSACTION, hint="Change it before BEGIN.")
        if self.temporary.schema is not None and name != self.database:
            message = "the database of a session with temporary tables cannot be changed"
            raise Error(message, errors.OBJECT_IN_USE, hint="DISCARD TEMP drops them.")
        self.database = name
        self._environment = None

    @property
    def user(self) -> User:
        """The user whose privileges count, as now in the catalog. Raises Error 28000 when it has been dropped."""
        return self._identity.current_user(self.variables.assigned)

    @property
    def session_user(self) -> User:
        """The user without SET ROLE."""
        return self._identity.session_user(self.variables.assigned)

    @property
    def login(self) -> User:
        """The user who has connected."""
        return self._identity.login

    @property
    def running_text(self) -> str:
        """The running statement's text, as the client sent it."""
        return self.backend.query if self.backend else ""

    # Planning.

    @property
    def scope(self) -> Scope:
        """The user's database, and the schemas of `search_path` that exist and that the user has USAGE on.

        The session's own schema of temporary tables comes first, if it exists.
        """
        catalog, user, temporary = self.transaction.catalog, self.user, self.temporary.schema

        def counts(schema: str) -> bool:
            found = catalog.securables.get((self.database, schema))
            return schema in system_views.SCHEMAS if found is None else holds(catalog, user, found, "USAGE")

        path = parse_search_path(self.variables.get("search_path"))
        names = (user.name if name == "$user" else name for name in path)
        own = (temporary,) if temporary is not None else ()
        known = tuple(dict.fromkeys((*own, *(name for name in names if counts(name)))))
        order = self.variables.date_order
        return Scope(self.database, known, temporary, order=order, is_system=is_system)

    @property
    def environment(self) -> Environment:
        """The inputs of planning now. Outside atomic blocks, the same object as long as nothing changes."""
        transaction, assigned = self.transaction, self.variables.assigned
        catalog, snapshot = transaction.catalog, transaction.pinned.snapshot if transaction.pinned else None
        if transaction.block is not None:  # with overlays, which change at each write
            return self._make_environment(catalog, snapshot)
        last = self._environment
        if (
            last is None
            or last.catalog is not catalog
            or last.snapshot != snapshot
            or last.scope.temporary != self.temporary.schema
            or last.reads_epochs != self._reads_epochs
            or assigned is not self._assigned
        ):
            last = self._environment = self._make_environment(catalog, snapshot)
            self._assigned = assigned
            self._plans.clear()
        return last

    def _make_environment(self, catalog: Catalog, snapshot: int | None) -> Environment:
        block = self.transaction.block
        return Environment(
            catalog,
            self.scope,
            Settings(self._setting, lambda: iter((*SESSION, *SYSTEM, *_IDENTITY))),
            is_system,
            self.user,
            snapshot,
            self.context.system_views.columns,
            block.names if block else {},
            reads_epochs=self._reads_epochs,
        )

    @property
    def _reads_epochs(self) -> bool:
        """Whether queries read views with the changes of all epochs, or only as checkpoints have stored them."""
        return not self.context.lake.read_only and self.variables.get("visibility_mode") != "checkpoint"

    def _setting(self, name: str) -> str:
        if name in _IDENTITY:
            return _IDENTITY[name](self)
        if name not in SESSION and name not in SYSTEM and name not in self.variables.assigned:
            raise KeyError(name)
        return self.variables.get(name)

    def plan(
        self,
        statement: Statement,
        oids: tuple[int, ...],
        make: Callable[[Environment], Batch | Change],
        environment: Environment | None = None,
    ) -> Plan:
        """Return the plan of a statement, made with `make` unless a valid one is cached.

        Without `environment`, the plan is for the session's environment.
        """
        now = self.environment
        if self.transaction.block is not None or (environment is not None and environment is not now):
            return self.context.plan_cache.plan(statement, oids, environment or now, make)
        plan = self._plans.get((id(statement), oids))
        if plan is None or plan.statement is not statement or not plan.reads_same(now):
            plan = self.context.plan_cache.plan(statement, oids, now, make)
            size = plan.size + sum(other.size for other in self._plans.values()) if plan.size > LONGEST_TEXT else 0
            if len(self._plans) >= MOST_PLANS or size > MOST_CHARACTERS:
                self._plans.clear()
            self._plans[id(statement), oids] = plan
        return plan

    @property
    def backfill_settings(self) -> BackfillSettings:
        get, flag = self.variables.get, self.variables.flag
        limit = int(get("backfill_rate_limit"))
        return BackfillSettings(
            flag("streaming_use_snapshot_backfill"),
            flag("streaming_use_arrangement_backfill"),
            limit if limit >= 0 else None,
        )

    # Limits.

    def statement(self) -> RunningStatement:
        """Return a context in which one statement runs: a cancel or the time limit stops it."""
        return RunningStatement(self.running, milliseconds(self.variables.get("statement_timeout")))

    def idle_limit(self, in_transaction: bool) -> tuple[float, Error] | None:
        """Return the seconds to wait for the client and the error after them; None: no limit."""
        name, sqlstate, what = _IN_TRANSACTION if in_transaction else _IDLE
        limit = milliseconds(self.variables.get(name))
        error = Error(f"terminating connection due to {what} timeout", sqlstate)
        return (limit / 1000, error) if limit else None

    # Views and transactions.

    def store_views(self) -> None:
        """Try to store the views in the lake as they are shown now, for readers of the lake.

        If that fails, the lake keeps the views as they were.
        """
        self.context.coordinator.checkpoints.attempt()

    def committed(self) -> None:
        """Tell the coordinator of committed rows, so that views follow; with `implicit_flush` waits for the views."""
        self.context.coordinator.notify()
        if self.variables.flag("implicit_flush"):
            self.flush()

    def flush(self) -> None:
        """Wait until this session, and other servers on the same catalog, see all committed changes in views.

        Raises the errors of `Coordinator.flush`.
        """

        def tell(why: Error) -> None:
            self.notify(Notice(f"FLUSH waits: {why.message}", sqlstate=why.sqlstate))

        self.context.coordinator.flush(self.running.is_cancelled, tell=tell)
        if not self._reads_epochs or self.context.config.catalog is not None:
            self.context.coordinator.checkpoints.run()

    def end_block(self) -> None:
        """Forget what was set and chosen for the block only, after COMMIT or ROLLBACK."""
        self.variables.end_block()
        self.transaction.forget_choices()

    def close(self) -> None:
        self.running.cancel()
        self.transaction.close()
        try:
            self.temporary.drop(self.database)
        except Exception:  # the next start of the server drops them
            logger.warning("the temporary tables of a session cannot be dropped", exc_info=True)

    # Running DuckDB.

    def interrupting(self, cursor: Interruptible, sql: str = "") -> RunningCursor:
        """Return a context in which a cancel interrupts `cursor`, or other interruptible work.

        If the tables in `sql` have many rows, all of DuckDB's threads work as long as the cursor is referenced.
        """
        lake = self.context.lake
        if sql:
            lake.threads.provide(lambda: lake.row_estimates.of(sql), cursor)
        return RunningCursor(self.running, cursor)

    def cursor(self) -> Cursor:
        """Return a connection to DuckDB in this session's time zone and order of dates."""
        cursor = self.context.lake.cursor()
        if self.variables.date_order != MDY:
            cursor.execute(f"SET VARIABLE date_order = {literal(self.variables.date_order)}")
        if self.variables.get("timezone") != "UTC":
            cursor.execute(f"SET TimeZone = {literal(self.variables.get('timezone'))}")
        return cursor


# Facts about a session that the planner reads besides its variables.
_IDENTITY: dict[str, Callable[[Session], str]] = {
    "database": lambda session: session.database,
    "user": lambda session: session.user.name,
    "session_user": lambda session: session.session_user.name,
}

_IN_TRANSACTION = (
    "idle_in_transaction_session_timeout", errors.IDLE_IN_TRANSACTION_TIMEOUT, "idle-in-transaction"
)  # fmt: skip
_IDLE = ("idle_session_timeout", errors.IDLE_SESSION_TIMEOUT, "idle-session")
