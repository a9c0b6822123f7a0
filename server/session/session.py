"""One client's session: its user, variables, snapshot and running statement."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog
from sparkwave.catalog.names import DEFAULT_DATABASE, literal, parse_search_path
from sparkwave.catalog.stores.temporary import drop_temporary_schemas
from sparkwave.catalog.system import system_views
from sparkwave.catalog.system.system_views import is_system
from sparkwave.catalog.users import ROOT, User
from sparkwave.planner.backfill.strategy import BackfillSettings
from sparkwave.planner.batch.query import Batch, Environment
from sparkwave.planner.bind.binder import Scope
from sparkwave.planner.bind.privileges import holds, permission_denied
from sparkwave.planner.parse.moment_texts import MDY
from sparkwave.planner.statements import Statement
from sparkwave.server.context import Context
from sparkwave.server.session.backends import Backend
from sparkwave.server.session.block import Block
from sparkwave.server.session.effective_user import AUTHORIZATION, ROLE, Identity
from sparkwave.server.session.plan_cache import LONGEST_TEXT, MOST_CHARACTERS, MOST_PLANS, Plan, Settings
from sparkwave.server.session.portal import Names
from sparkwave.server.session.running import Interruptible, Running, RunningCursor, RunningStatement
from sparkwave.server.session.variable_kinds import milliseconds
from sparkwave.server.session.variables import SESSION, SYSTEM, find, normalise, resolve_name
from sparkwave.server.wire.result import Notice

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pinned:
    """The snapshot of the lake that a read-only or atomic transaction reads, and the catalog of that moment.

    `applied` is a snapshot up to which every created view has followed its tables.
    """

    snapshot: int | None
    catalog: Catalog
    applied: int


class Session:
    """The state of one connection."""

    def __init__(self, context: Context, startup: dict[str, str]) -> None:
        """Raise Error 3D000 for an unknown database, and the errors of SET for startup parameters."""
        self.context = context
        name = startup.get("user", ROOT)
        if name not in context.store.catalog.users:
            raise Error(f'role "{name}" does not exist', errors.INVALID_AUTHORIZATION)
        self._identity = Identity(lambda: context.store.catalog.users, name)
        self._variables: dict[str, str] = {}
        self.database = startup.get("database") or DEFAULT_DATABASE
        self._check_database(self.database)
        self._reported: dict[str, str] | None = None
        self._environment: Environment | None = None  # the last environment, as long as no variable is set
        self._plans: dict[tuple[int, tuple[int, ...]], Plan] = {}  # the plans found in that environment
        self._reported_defaults: dict[str, str] = {}
        # The values that `get` has found with these defaults, as long as no variable is set. Other threads call `get`
        # too: a SET replaces the pair, so that a value found before the SET is not kept.
        self._shown: tuple[dict[str, str], dict[str, str]] = ({}, {})
        # Sends a notice at once, while a statement runs; the wire sets this.
        self.notify: Callable[[Notice], None] = lambda notice: None
        self._running = Running()
        self.names = Names()
        self.pinned: Pinned | None = None
        self.block: Block | None = None  # the atomic transaction, which has a pinned snapshot
        self.may_write: bool | None = None  # READ WRITE or READ ONLY as the block has chosen
        self.has_committed = False  # the open block has a committed statement, where each commits by itself
        self._before_block: dict[str, str | None] = {}
        self.temporary_schema: str | None = None
        self.on_commit: dict[int, str] = {}  # what becomes of temporary tables at the end of transactions, by id
        self.last_numbers: dict[int | None, int] = {}  # of sequences, by id; None: the last number of any sequence
        self.backend: Backend | None = None
        for name, value in startup.items():
            variable = SESSION.get(resolve_name(name))
            if variable is not None and not variable.is_fixed:
                self.set(name, value)

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
        if self.names.in_block or self.block is not None:
            message = "the database cannot be changed in a transaction block"
            raise Error(message, errors.ACTIVE_TRANSACTION, hint="Change it before BEGIN.")
        if self.temporary_schema is not None and name != self.database:
            message = "the database of a session with temporary tables cannot be changed"
            raise Error(message, errors.OBJECT_IN_USE, hint="DISCARD TEMP drops them.")
        self.database = name
        self._forget_derived()

    @property
    def user(self) -> User:
        """The user whose privileges count, as now in the catalog. Raises Error 28000 when it has been dropped."""
        return self._identity.current_user(self._variables)

    @property
    def session_user(self) -> User:
        """The user without SET ROLE."""
        return self._identity.session_user(self._variables)

    @property
    def login(self) -> User:
        """The user who has connected."""
        return self._identity.login

    # Variables.

    def get(self, name: str) -> str:
        """Return the value of a session variable or system parameter, as SHOW prints it."""
        defaults, shown = self._shown
        if defaults is not self.context.store.catalog.parameters:
            defaults, shown = self._shown = self.context.store.catalog.parameters, {}
        value = shown.get(name)
        if value is None:
            value = self._value(name)
            if resolve_name(name) not in _VARYING:
                shown[name] = value
        return value

    def _value(self, name: str) -> str:
        resolved = resolve_name(name)
        if resolved in SYSTEM:
            return self.context.parameter(resolved)
        if resolved == "transaction_read_only":
            return "on" if self.context.lake.read_only or self.is_read_only else "off"
        if resolved in _OF_TRANSACTIONS and resolved not in self._variables:
            return self.get(f"default_{resolved}")
        if resolved == "in_hot_standby":
            return "on" if self.context.lake.read_only else "off"
        if resolved == AUTHORIZATION:
            return self._variables.get(AUTHORIZATION) or self.login.name
        variable = find(name, system=False)
        stored = self.context.store.catalog.parameters.get(resolved, variable.default)
        return self._variables.get(resolved, stored)

    def set_local(self, name: str, value: str | None) -> None:
        """Set a variable until the block ends (SET LOCAL); `end_block` restores it."""
        resolved = find(name, system=False).name
        self._before_block.setdefault(resolved, self._variables.get(resolved))
        self.set(name, value)

    def end_block(self) -> None:
        """Restore the variables that were set for the block only, after COMMIT or ROLLBACK."""
        for name, value in self._before_block.items():
            self.set(name, value)
        self._before_block.clear()
        self.may_write = None
        self.has_committed = False

    @property
    def is_read_only(self) -> bool:
        """Whether statements may not write now, by the block's READ ONLY or by default_transaction_read_only."""
        if self.may_write is not None:
            return not self.may_write
        return (self.pinned is not None and self.block is None) or self.get("default_transaction_read_only") == "on"

    def set(self, name: str, value: str | None) -> None:
        """Set a variable (SET); None resets it to the default."""
        variable = find(name, system=False)
        if variable.name == "atomic_transactions" and (self.names.in_block or self.block is not None):
            message = f"{variable.name} cannot be set in a transaction block"
            raise Error(message, errors.ACTIVE_TRANSACTION, hint="Set it by itself, before BEGIN.")
        normal = None if value is None else normalise(variable, value, self.get(name))
        if variable.name in (AUTHORIZATION, ROLE):
            normal = self._identity.check(variable.name, normal, self._variables)
        if variable.name == AUTHORIZATION:
            self._variables.pop(ROLE, None)
        if normal is None:
            self._variables.pop(variable.name, None)
        else:
            self._variables[variable.name] = normal
        self._forget_derived()

    @property
    def variables(self) -> dict[str, str]:
        """A copy of the variables that have been set, for a later return to them."""
        return dict(self._variables)

    @variables.setter
    def variables(self, values: dict[str, str]) -> None:
        self._variables = dict(values)
        self._forget_derived()

    def reset_all(self, and_user: bool = False) -> None:
        """Reset all variables but the user's; `and_user` resets the user too."""
        kept = () if and_user else (AUTHORIZATION, ROLE)
        self._variables = {name: value for name, value in self._variables.items() if name in kept}
        self._forget_derived()

    def _forget_derived(self) -> None:
        """Drop the values that are computed from the variables."""
        self._reported = self._environment = None
        self._shown = (self._shown[0], {})

    def flag(self, name: str) -> bool:
        return self.get(name) == "true"

    @property
    def running_text(self) -> str:
        """The running statement's text, as the client sent it."""
        return self.backend.query if self.backend else ""

    @property
    def date_order(self) -> str:
        """The order of day, month and year in dates, of DateStyle: MDY, DMY or YMD."""
        return self.get("datestyle").partition(", ")[2]

    @property
    def scope(self) -> Scope:
        """The user's database, and the schemas of `search_path` that exist and that the user has USAGE on.

        The session's own schema of temporary tables comes first, if it exists.
        """
        catalog = self.pinned.catalog if self.pinned else self.context.store.catalog
        user = self.user

        def counts(schema: str) -> bool:
            found = catalog.securables.get((self.database, schema))
            return schema in system_views.SCHEMAS if found is None else holds(catalog, user, found, "USAGE")

        names = (user.name if name == "$user" else name for name in parse_search_path(self.get("search_path")))
        own = (self.temporary_schema,) if self.temporary_schema is not None else ()
        path = tuple(dict.fromkeys((*own, *(name for name in names if counts(name)))))
        return Scope(self.database, path, self.temporary_schema, order=self.date_order)

    @property
    def environment(self) -> Environment:
        """The inputs of planning now. Outside atomic blocks, the same object as long as nothing changes."""
        pinned = self.pinned
        catalog, snapshot = (pinned.catalog, pinned.snapshot) if pinned else (self.context.store.catalog, None)
        if self.block is not None:  # with overlays, which change at each write
            return self._make_environment(catalog, snapshot)
        last = self._environment
        if (
            last is None
            or last.catalog is not catalog
            or last.snapshot != snapshot
            or last.scope.temporary != self.temporary_schema
            or last.reads_epochs != self._reads_epochs
        ):
            last = self._environment = self._make_environment(catalog, snapshot)
            self._plans.clear()
        return last

    def _make_environment(self, catalog: Catalog, snapshot: int | None) -> Environment:
        return Environment(
            catalog,
            self.scope,
            Settings(self._setting, lambda: iter((*SESSION, *_IDENTITY))),
            is_system,
            self.user,
            snapshot,
            self.context.system_views.columns,
            self.block.names if self.block else {},
            reads_epochs=self._reads_epochs,
        )

    @property
    def _reads_epochs(self) -> bool:
        """Whether queries read views with the changes of all epochs, or only as checkpoints have stored them."""
        return not self.context.lake.read_only and self.get("visibility_mode") != "checkpoint"

    def _setting(self, name: str) -> str:
        if name in _IDENTITY:
            return _IDENTITY[name](self)
        if name not in SESSION:
            raise KeyError(name)
        return self.get(name)

    def plan(
        self,
        statement: Statement,
        oids: tuple[int, ...],
        make: Callable[[Environment], Batch],
        environment: Environment | None = None,
    ) -> Plan:
        """Return the plan of a statement, made with `make` unless a valid one is cached.

        Without `environment`, the plan is for the session's environment.
        """
        now = self.environment
        if self.block is not None or (environment is not None and environment is not now):
            return self.context.plan_cache.plan(statement, oids, environment or now, make)
        plan = self._plans.get((id(statement), oids))
        if plan is None or plan.statement is not statement or not plan.reads_same(now):
            plan = self.context.plan_cache.plan(statement, oids, now, make)
            size = plan.size + sum(other.size for other in self._plans.values()) if plan.size > LONGEST_TEXT else 0
            if len(self._plans) >= MOST_PLANS or size > MOST_CHARACTERS:
                self._plans.clear()
            self._plans[id(statement), oids] = plan
        return plan

    def pin(self) -> None:
        """Pin the current snapshot of the lake and the catalog: reads see them until `unpin`."""
        if self.pinned is None:
            self.store_views()
            lake, applied = self.context.lake, self.context.coordinator.stored_snapshot  # before the pin
            with lake.exclusive():
                self.pinned = Pinned(lake.pin(), self.context.store.catalog, applied)

    def store_views(self) -> None:
        """Try to store the views in the lake as they are shown now, for readers of the lake.

        If that fails, the lake keeps the views as they were.
        """
        self.context.coordinator.checkpoints.attempt()

    def unpin(self) -> None:
        if self.pinned is not None:
            self.context.lake.unpin(self.pinned.snapshot)
            self.pinned = None

    @property
    def backfill_settings(self) -> BackfillSettings:
        limit = int(self.get("backfill_rate_limit"))
        return BackfillSettings(
            self.flag("streaming_use_snapshot_backfill"),
            self.flag("streaming_use_arrangement_backfill"),
            limit if limit >= 0 else None,
        )

    def statement(self) -> RunningStatement:
        """Return a context in which one statement runs: a cancel or the time limit stops it."""
        return RunningStatement(self._running, milliseconds(self.get("statement_timeout")))

    def forget_cancel(self) -> None:
        """Clear the cancel of the previous statement, when the next one starts."""
        self._running.forget_cancel()

    def idle_limit(self, in_transaction: bool) -> tuple[float, Error] | None:
        """Return the seconds to wait for the client and the error after them; None: no limit."""
        if in_transaction:
            name, sqlstate, what = _IN_TRANSACTION
        else:
            name, sqlstate, what = _IDLE
        limit = milliseconds(self.get(name))
        error = Error(f"terminating connection due to {what} timeout", sqlstate)
        return (limit / 1000, error) if limit else None

    def reported(self) -> dict[str, str]:
        """Return bytea_output and the parameters for ParameterStatus; the same object until a parameter changes."""
        defaults = self.context.store.catalog.parameters
        if self._reported is None or self._reported_defaults is not defaults:
            self._reported, self._reported_defaults = self._report(), defaults
        return self._reported

    def _report(self) -> dict[str, str]:
        return {
            "server_version": self.get("server_version"),
            "client_encoding": self.get("client_encoding"),
            "standard_conforming_strings": "on",
            "TimeZone": self.get("timezone"),
            "application_name": self.get("application_name"),
            "DateStyle": self.get("datestyle"),
            "IntervalStyle": self.get("intervalstyle"),
            "integer_datetimes": "on",
            "server_encoding": "UTF8",
            "bytea_output": self.get("bytea_output"),
        }

    def cancel(self, reason: str = "user request") -> None:
        """Stop the running statement. Called from another thread."""
        self._running.cancel(reason)

    def check_cancelled(self) -> None:
        """Raise Error 57014 if the running statement has been cancelled."""
        self._running.check()

    def is_cancelled(self) -> bool:
        return self._running.is_cancelled()

    def committed(self) -> None:
        """Tell the coordinator of committed rows, so that views follow; with `implicit_flush` waits for the views."""
        self.context.coordinator.notify()
        if self.flag("implicit_flush"):
            self.flush()

    def flush(self) -> None:
        """Wait until this session, and other servers on the same catalog, see all committed changes in views.

        Raises the errors of `Coordinator.flush`.
        """

        def tell(why: Error) -> None:
            self.notify(Notice(f"FLUSH waits: {why.message}", sqlstate=why.sqlstate))

        self.context.coordinator.flush(self.is_cancelled, tell=tell)
        if not self._reads_epochs or self.context.config.catalog is not None:
            self.context.coordinator.checkpoints.run()

    def close(self) -> None:
        self.cancel()
        self.unpin()
        if self.block is not None:
            self.block.discard()
        try:
            self.drop_temporary()
        except Exception:  # the next start of the server drops them
            logger.warning("temporary tables are left", exc_info=True)

    def drop_temporary(self) -> None:
        """Drop the temporary tables."""
        schema, self.temporary_schema = self.temporary_schema, None
        self.on_commit.clear()
        if schema is not None:
            store = self.context.store
            with self.context.coordinator.barrier_lock, store.change() as cursor:
                drop_temporary_schemas(store, cursor, [(self.database, schema)])

    # Running DuckDB.

    def running(self, cursor: Interruptible, sql: str = "") -> RunningCursor:
        """Return a context in which a cancel interrupts `cursor`, or other interruptible work.

        If the tables in `sql` have many rows, DuckDB has all of its threads from now on.
        """
        lake = self.context.lake
        if sql:
            lake.threads.provide(lambda: lake.row_estimates.of(sql))
        return RunningCursor(self._running, cursor)

    def note_numbers(self, last: dict[int, int]) -> None:
        """Keep the last number that a statement has taken of each sequence, by id, for `currval` and `lastval`."""
        for id_, number in last.items():
            self.last_numbers[id_] = self.last_numbers[None] = number

    def forget_last_numbers(self) -> None:
        """Clear the last numbers (DISCARD SEQUENCES)."""
        self.last_numbers.clear()

    def cursor(self) -> Cursor:
        """Return a connection to DuckDB in this session's time zone and order of dates."""
        cursor = self.context.lake.cursor()
        if self.date_order != MDY:
            cursor.execute(f"SET VARIABLE date_order = {literal(self.date_order)}")
        if self.get("timezone") != "UTC":
            cursor.execute(f"SET TimeZone = {literal(self.get('timezone'))}")
        return cursor


# Facts about a session that the planner reads besides its variables.
_IDENTITY: dict[str, Callable[[Session], str]] = {
    "database": lambda session: session.database,
    "user": lambda session: session.user.name,
    "session_user": lambda session: session.session_user.name,
}

# Variables that, outside a block or unless the block sets them, have the value of their `default_` variable.
_OF_TRANSACTIONS = ("transaction_isolation", "transaction_deferrable")
# Variables whose values change without a SET.
_VARYING = ("transaction_read_only", AUTHORIZATION, *_OF_TRANSACTIONS)


_IN_TRANSACTION = (
    "idle_in_transaction_session_timeout", errors.IDLE_IN_TRANSACTION_TIMEOUT, "idle-in-transaction"
)  # fmt: skip
_IDLE = ("idle_session_timeout", errors.IDLE_SESSION_TIMEOUT, "idle-session")
