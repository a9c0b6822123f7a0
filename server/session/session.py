"""One client: its variables, and what it is running on DuckDB."""

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
    """What a read-only or atomic transaction reads: a snapshot of the lake and the catalog that was there with it.

    `applied` is a snapshot whose changes every created view has there.
    """

    snapshot: int | None
    catalog: Catalog
    applied: int


class Session:
    """The state of one connection."""

    def __init__(self, context: Context, startup: dict[str, str]) -> None:
        """Raises Error 3D000 for an unknown database, and what SET would raise for startup parameters."""
        self.context = context
        name = startup.get("user", ROOT)
        if name not in context.store.catalog.users:
            raise Error(f'role "{name}" does not exist', errors.INVALID_AUTHORIZATION)
        self._identity = Identity(lambda: context.store.catalog.users, name)
        self._variables: dict[str, str] = {}
        self.database = startup.get("database") or DEFAULT_DATABASE
        if self.database not in context.store.catalog.databases:
            raise Error(f'database "{self.database}" does not exist', errors.INVALID_CATALOG_NAME)
        database = context.store.catalog.securables[self.database,]
        if not holds(context.store.catalog, self.user, database, "CONNECT"):
            raise permission_denied(f'permission denied for database "{self.database}"')
        self._reported: dict[str, str] | None = None
        self._environment: Environment | None = None  # the last one, as long as no variable is set
        self._plans: dict[tuple[int, tuple[int, ...]], Plan] = {}  # those found in it
        self._reported_defaults: dict[str, str] = {}
        # What `get` has found with these defaults, as long as no variable is set. Other threads look too: whoever sets
        # one makes a new pair afterwards, so that what was found before is not kept.
        self._shown: tuple[dict[str, str], dict[str, str]] = ({}, {})
        # Sends a notice at once, while a statement runs; set by the wire.
        self.notify: Callable[[Notice], None] = lambda notice: None
        self._running = Running()
        self.names = Names()
        self.pinned: Pinned | None = None
        self.block: Block | None = None  # the atomic transaction, which has something pinned
        self.may_write: bool | None = None  # what the block has said
        self.has_committed = False  # a statement of the block that goes on, where each commits by itself
        self._before_block: dict[str, str | None] = {}
        self.temporary_schema: str | None = None
        self.last_numbers: dict[int | None, int] = {}  # of sequences, by id; None is the last of any
        self.backend: Backend | None = None
        for name, value in startup.items():
            variable = SESSION.get(resolve_name(name))
            if variable is not None and not variable.is_fixed:
                self.set(name, value)

    @property
    def user(self) -> User:
        """Whose privileges count, as the catalog has it now. Raises Error 28000 when it has been dropped."""
        return self._identity.current_user(self._variables)

    @property
    def session_user(self) -> User:
        """Who `user` is when there is no SET ROLE."""
        return self._identity.session_user(self._variables)

    @property
    def login(self) -> User:
        """Who has connected."""
        return self._identity.login

    # Variables.

    def get(self, name: str) -> str:
        """The value of a session variable or system parameter, as SHOW prints it."""
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
        """SET LOCAL: until the block ends, which `end_block` tells."""
        resolved = find(name, system=False).name
        self._before_block.setdefault(resolved, self._variables.get(resolved))
        self.set(name, value)

    def end_block(self) -> None:
        """COMMIT or ROLLBACK: what was set for the block only is as it was before."""
        for name, value in self._before_block.items():
            self.set(name, value)
        self._before_block.clear()
        self.may_write = None
        self.has_committed = False

    @property
    def is_read_only(self) -> bool:
        """Whether statements may not write now: READ ONLY was said, of the block or of all that do not say."""
        if self.may_write is not None:
            return not self.may_write
        return (self.pinned is not None and self.block is None) or self.get("default_transaction_read_only") == "on"

    def set(self, name: str, value: str | None) -> None:
        """SET; None resets to the default."""
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
        """A copy of what has been set, to go back to."""
        return dict(self._variables)

    @variables.setter
    def variables(self, values: dict[str, str]) -> None:
        self._variables = dict(values)
        self._forget_derived()

    def reset_all(self, and_user: bool = False) -> None:
        """Reset all variables but who the user is; that too if asked to."""
        kept = () if and_user else (AUTHORIZATION, ROLE)
        self._variables = {name: value for name, value in self._variables.items() if name in kept}
        self._forget_derived()

    def _forget_derived(self) -> None:
        """What is derived from the variables has to be worked out again."""
        self._reported = self._environment = None
        self._shown = (self._shown[0], {})

    def flag(self, name: str) -> bool:
        return self.get(name) == "true"

    @property
    def running_text(self) -> str:
        """The statement that runs, as the client sent it."""
        return self.backend.query if self.backend else ""

    @property
    def scope(self) -> Scope:
        """The user's database and the schemas of `search_path` that there are and into which the user may look.

        First of all comes the session's own schema of temporary tables, if it has made some.
        """
        catalog = self.pinned.catalog if self.pinned else self.context.store.catalog
        user = self.user

        def counts(schema: str) -> bool:
            found = catalog.securables.get((self.database, schema))
            return schema in system_views.SCHEMAS if found is None else holds(catalog, user, found, "USAGE")

        names = (user.name if name == "$user" else name for name in parse_search_path(self.get("search_path")))
        own = (self.temporary_schema,) if self.temporary_schema is not None else ()
        path = tuple(dict.fromkeys((*own, *(name for name in names if counts(name)))))
        return Scope(self.database, path, self.temporary_schema)

    @property
    def environment(self) -> Environment:
        """What statements are planned against now. The same object while it is the same, outside of atomic blocks."""
        pinned = self.pinned
        catalog, snapshot = (pinned.catalog, pinned.snapshot) if pinned else (self.context.store.catalog, None)
        if self.block is not None:  # has overlays
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
        """Whether queries read what epochs have made of views, or what checkpoints have stored."""
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
        """The plan of a statement, made unless one is there that is as good; `environment` None is that of now."""
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
        """From now on read the lake and its catalog as they are now, until `unpin`."""
        if self.pinned is None:
            self.store_views()
            lake, applied = self.context.lake, self.context.coordinator.stored_snapshot  # before the snapshot
            with lake.exclusive():
                self.pinned = Pinned(lake.pin(), self.context.store.catalog, applied)

    def store_views(self) -> None:
        """Have views in the lake as they are shown, for who reads it. If that fails they are as they were before."""
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
        """While entered, one statement runs: a cancel or the time limit stops it."""
        return RunningStatement(self._running, milliseconds(self.get("statement_timeout")))

    def forget_cancel(self) -> None:
        """A statement starts: what was to stop the one before it does not stop this one."""
        self._running.forget_cancel()

    def idle_limit(self, in_transaction: bool) -> tuple[float, Error] | None:
        """For how many seconds the client may be waited for, and what it is told then."""
        if in_transaction:
            name, sqlstate, what = _IN_TRANSACTION
        else:
            name, sqlstate, what = _IDLE
        limit = milliseconds(self.get(name))
        error = Error(f"terminating connection due to {what} timeout", sqlstate)
        return (limit / 1000, error) if limit else None

    def reported(self) -> dict[str, str]:
        """What ParameterStatus tells the client; the same object while nothing has changed."""
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
        }

    def cancel(self, reason: str = "user request") -> None:
        """Stop what is running, from another thread."""
        self._running.cancel(reason)

    def check_cancelled(self) -> None:
        """Raise Error 57014 if the client has asked to stop."""
        self._running.check()

    def is_cancelled(self) -> bool:
        return self._running.is_cancelled()

    def committed(self) -> None:
        """Rows have been committed: views follow, and with `implicit_flush` they are waited for."""
        self.context.coordinator.notify()
        if self.flag("implicit_flush"):
            self.flush()

    def flush(self) -> None:
        """Wait until this session sees in views what has been committed, and so do other servers on the catalog.

        Raises Error as `Coordinator.flush` does.
        """
        self.context.coordinator.flush(self.is_cancelled)
        if not self._reads_epochs or self.context.config.catalog is not None:
            self.context.coordinator.checkpoints.run()

    def close(self) -> None:
        self.cancel()
        self.unpin()
        if self.block is not None:
            self.block.discard()
        try:
            self.drop_temporary()
        except Exception:  # the next start drops them
            logger.warning("temporary tables are left", exc_info=True)

    def drop_temporary(self) -> None:
        """Drop the temporary tables."""
        schema, self.temporary_schema = self.temporary_schema, None
        if schema is not None:
            store = self.context.store
            with self.context.coordinator.barrier_lock, store.change() as cursor:
                drop_temporary_schemas(store, cursor, [(self.database, schema)])

    # Running DuckDB.

    def running(self, cursor: Interruptible) -> RunningCursor:
        """While entered, a cancel interrupts the cursor, or whatever else can be."""
        return RunningCursor(self._running, cursor)

    def note_numbers(self, last: dict[int, int]) -> None:
        """Keep the last number of each sequence, by id, that a statement has taken: for `currval` and `lastval`."""
        for id_, number in last.items():
            self.last_numbers[id_] = self.last_numbers[None] = number

    def forget_last_numbers(self) -> None:
        """DISCARD SEQUENCES."""
        self.last_numbers.clear()

    def cursor(self) -> Cursor:
        """A connection to DuckDB in this session's time zone."""
        cursor = self.context.lake.cursor()
        if self.get("timezone") != "UTC":
            cursor.execute(f"SET TimeZone = {literal(self.get('timezone'))}")
        return cursor


# What the planner is told of a session besides its variables.
_IDENTITY: dict[str, Callable[[Session], str]] = {
    "database": lambda session: session.database,
    "user": lambda session: session.user.name,
    "session_user": lambda session: session.session_user.name,
}

# Variables that outside of a block, and where it says nothing else, are what is set for all.
_OF_TRANSACTIONS = ("transaction_isolation", "transaction_deferrable")
# Variables whose values change without a SET.
_VARYING = ("transaction_read_only", AUTHORIZATION, *_OF_TRANSACTIONS)


_IN_TRANSACTION = (
    "idle_in_transaction_session_timeout", errors.IDLE_IN_TRANSACTION_TIMEOUT, "idle-in-transaction"
)  # fmt: skip
_IDLE = ("idle_session_timeout", errors.IDLE_SESSION_TIMEOUT, "idle-session")
