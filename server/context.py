"""The running server's parts: assembles, starts and stops them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.catalog_log import LOG_PERIOD_S, checkpoint_once
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.inlined_writes import InlinedWrites
from sparkwave.catalog.lake.storage import Lease
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.locks import Rank, RankedLock
from sparkwave.catalog.stores.parameter_store import put_parameter
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.temporary import forget_temporary_schemas
from sparkwave.catalog.stores.user_store import put_user
from sparkwave.catalog.system import system_views
from sparkwave.catalog.system.system_views import COPIES_IN_ORDER, Copy, needs
from sparkwave.catalog.types import Type
from sparkwave.catalog.users import ROOT, User
from sparkwave.executor.backfill.jobs import Jobs
from sparkwave.executor.backfill.measuring import PERIOD_S
from sparkwave.executor.backfill.work import Settings
from sparkwave.executor.epochs.checkpoints import Checkpoints
from sparkwave.executor.epochs.coordinator import Coordinator
from sparkwave.executor.epochs.engines import Engines
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.functions.python_registry import PythonFunctions
from sparkwave.executor.maintenance.audits import AUDITS_PERIOD_S, Audits, AuditSettings
from sparkwave.executor.maintenance.background import Periodic
from sparkwave.executor.maintenance.compactor import compact_once
from sparkwave.executor.maintenance.expired_rows import EXPIRED_ROWS_PERIOD_S, ExpiredRows
from sparkwave.executor.maintenance.orphan_removal import Orphans
from sparkwave.executor.maintenance.retention import Retention
from sparkwave.executor.memory.copies import Copies
from sparkwave.executor.memory.serving_copies import Serving
from sparkwave.executor.memory.shared_buffer import SharedBuffer
from sparkwave.executor.sinks.deliveries import Sinks
from sparkwave.executor.sinks.outbox import Outbox
from sparkwave.executor.sources.reader import Sources
from sparkwave.executor.spark.applications import Size
from sparkwave.executor.spark.capacity import of_this_machine, shortage
from sparkwave.executor.spark.groups import Groups, GroupSettings, require_java
from sparkwave.executor.spark.spark_engine import run_in, warm_up
from sparkwave.executor.spark.usage import Usage
from sparkwave.executor.spark.warm_groups import WarmGroups
from sparkwave.server.operations.config import Config
from sparkwave.server.operations.last_hour import INTERVAL_SECONDS, History, read_counts
from sparkwave.server.session.backends import Backends
from sparkwave.server.session.plan_cache import PlanCache
from sparkwave.server.session.variables import PRICE, SYSTEM, find, normalise
from sparkwave.server.wire.authentication import make_verifier
from sparkwave.server.writes.delivered import Delivery, SinkWriter
from sparkwave.server.writes.dml_pace import DmlPace
from sparkwave.server.writes.group_commit import GroupCommit
from sparkwave.server.writes.sequence_numbers import SequenceNumbers

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Context:
    """The running server without its sockets: all parts that a handler may use."""

    config: Config
    lake: Lake
    store: Store
    plans: Plans
    groups: Groups
    warm_groups: WarmGroups
    coordinator: Coordinator
    buffer: SharedBuffer
    jobs: Jobs
    background: tuple[Periodic, ...]
    audits: Audits
    sources: Sources
    outbox: Outbox
    serving: Serving
    system_views: SystemViews
    plan_cache: PlanCache
    group_commit: GroupCommit
    dml_pace: DmlPace
    sequence_numbers: SequenceNumbers
    inlined_writes: InlinedWrites
    backends: Backends
    usage: Usage
    history: History

    def follow(self) -> None:
        """Read the catalog changes that another server has committed, if this server only reads."""
        if self.lake.read_only:
            self.store.follow()

    def users(self) -> Mapping[str, User]:
        """Return the users who may connect, by name."""
        self.follow()
        return self.store.catalog.users

    def parameter(self, name: str) -> str:
        """Return the value of a system parameter."""
        return self.store.catalog.parameters.get(name, SYSTEM[name].default)

    def shortage(self) -> str | None:
        """Return a text of the cores or memory that serverless groups lack on this machine; None for enough."""
        size = _serverless_size(self.config, self.parameter)
        kept_ready = int(self.parameter("serverless_backfill_warm_groups"))
        return shortage(size, kept_ready, self.config.spark_master, of_this_machine())

    def close(self) -> None:
        """Stop everything. Acknowledged writes are durable; creating jobs resume at the next start."""
        self.usage.stop()
        self.audits.stop()
        for work in self.background:
            work.stop()
        self.sources.stop()
        self.outbox.stop()
        self.serving.stop()
        self.warm_groups.stop()
        self.jobs.close()
        self.groups.end_silent(0)  # else a barrier waits for these groups, and `stop` for the barrier
        self.coordinator.stop()
        self.groups.close()
        self.sequence_numbers.close()
        self.lake.close()


class SystemViews:
    """The system catalogs. A copy of their rows is made, and made again after changes, when a query reads it."""

    def __init__(self, store: Store, backends: Backends) -> None:
        self._store = store
        self._cursor: Cursor = store.lake.cursor()
        system_views.define_python_functions(self._cursor, backends.signal)
        self._lock = RankedLock(Rank.SYSTEM_VIEWS)
        self._versions: dict[str, int] = {}  # of the store, by copy that is made
        system_views.install(self._cursor, store.lake.read_only)
        self._columns = system_views.columns(self._cursor)
        if any(relation.expressions for relation in store.catalog.relations):
            self.refresh()  # such an expression may call a function that reads a copy, and no query's text tells

    def columns(self, schema: str, name: str) -> Mapping[str, Type]:
        """Return the columns of a system relation; none for an unknown one."""
        return self._columns.get((schema, name), {})

    def refresh(self, names: Collection[str] | None = None) -> None:
        """Apply the catalog's changes to the system relations and functions of these names; None for all.

        Names are DuckDB's, as `pgc.pg_class`.
        """
        copies = COPIES_IN_ORDER if names is None else needs(frozenset(names)).copies
        with self._lock:
            version = self._store.version
            behind = [copy for copy in copies if self._versions.get(copy.name) != version]
            stale = [copy for copy in behind if self._is_stale(copy)]
            if stale:
                system_views.refresh(self._cursor, stale)
            self._versions.update((copy.name, version) for copy in behind)

    def _is_stale(self, copy: Copy) -> bool:
        known = self._versions.get(copy.name)
        return known is None or not copy.sources.isdisjoint(self._store.changed_since(known))

    def cursor(self, *names: str) -> Cursor:
        """Return a new cursor that sees the system relations of these names with the catalog's changes."""
        self.refresh(names)
        return self._store.lake.cursor()


def open_context(config: Config, parameters: dict[str, str], lease: Lease | None = None) -> Context:
    """Open the lake and start the coordinator and the creating jobs.

    If the catalog is in a PostgreSQL and another server holds the lease, the server only reads and starts nothing.
    `parameters` come from the configuration file; they are stored as if set by ALTER SYSTEM. Raises Error when the
    directory, a parameter or the machine is unfit.
    """
    checked = {name: normalise(find(name, system=True), value) for name, value in parameters.items()}
    for name, value in checked.items():
        config.check_parameter(name, value)
    require_java()
    lake = Lake(config.storage, config.duckdb_memory, lease, config.duckdb_spill, threads=config.duckdb_threads)
    try:
        return _opened(config, checked, lake)
    except BaseException as error:
        lake.close()
        if isinstance(error, DuckDBError):
            raise translate(error) from error
        raise


def _opened(config: Config, parameters: Mapping[str, str], lake: Lake) -> Context:
    store = Store(lake, config.secret_key_file)
    PythonFunctions(store)
    if lake.read_only:
        return _assemble(config, lake, store)
    forget_temporary_schemas(store)
    if any(store.catalog.parameters.get(name) != value for name, value in parameters.items()):
        with store.change() as cursor:
            for name, value in parameters.items():
                put_parameter(cursor, store.catalog.parameters, name, value)
    _give_root_its_password(config, store)
    context = _assemble(config, lake, store)
    _start(context)
    return context


def _give_root_its_password(config: Config, store: Store) -> None:
    """Give root the configuration's password if it has none: one that ALTER USER has set stays."""
    root = store.catalog.users.get(ROOT)
    if config.root_password and root is not None and root.verifier is None:
        with store.change() as cursor:
            put_user(cursor, replace(root, verifier=str(make_verifier(config.root_password))))


def _assemble(config: Config, lake: Lake, store: Store) -> Context:
    def parameter(name: str) -> str:
        return store.catalog.parameters.get(name, SYSTEM[name].default)

    def serverless_size() -> Size:
        return _serverless_size(config, parameter)

    plans = Plans()
    group_settings = GroupSettings(
        config.group_sizes,
        config.spark_master,
        config.spark,
        config.serverless_spark,
        lambda: int(parameter("serverless_backfill_provision_timeout")),
        lambda: int(parameter("serverless_backfill_linger")),
        lambda: int(parameter("slow_spark_call_secs")),
    )
    groups = Groups(store, group_settings)

    def warm_groups() -> tuple[Size, int]:
        is_enabled = parameter("serverless_backfill_enabled") == "true"
        return serverless_size(), int(parameter("serverless_backfill_warm_groups")) if is_enabled else 0

    def duckdb_takes(rows: int) -> bool:
        engine = parameter("streaming_engine")
        return engine == "duckdb" or (engine == "auto" and rows <= int(parameter("streaming_duckdb_max_rows")))

    an_eighth_mib = of_this_machine().memory_mib // 8

    def cache_bytes(name: str) -> Callable[[], int]:
        def size() -> int:
            given_mib = int(parameter(name))
            return min((given_mib if given_mib >= 0 else an_eighth_mib) << 20, lake.memory_bytes // 4)

        return size

    def intervals() -> list[tuple[int, int]]:
        """Return the barrier interval and the checkpoint frequency of each database."""
        interval, frequency = int(parameter("barrier_interval_ms")), int(parameter("checkpoint_frequency"))
        own = store.catalog.barriers.values()
        return [(each.interval_ms or interval, each.checkpoint_frequency or frequency) for each in own]

    # A barrier is one for all databases, so that the shortest interval of any counts.
    def barrier_ms() -> int:
        return min(interval for interval, _ in intervals())

    def checkpoint_ms() -> int:
        return min(interval * frequency for interval, frequency in intervals())

    copies = Copies(cache_bytes("epoch_cache_mib"), lake.threads)
    buffer = SharedBuffer(store, copies)

    def time_limit_s() -> float:
        return int(parameter("view_time_limit_ms")) / 1000

    coordinator = Coordinator(
        store,
        plans,
        Engines(store, groups, duckdb_takes, lambda: parameter("refresh_mode"), time_limit_s, copies, buffer),
        buffer,
        Checkpoints(store, buffer, checkpoint_ms),
        interval_ms=barrier_ms,
        sinks=Sinks(SinkWriter(lambda: store.catalog)),
    )

    def in_process_rows() -> int:
        return int(parameter("backfill_in_process_rows")) if parameter("backfill_engine") == "auto" else -1

    settings = Settings(
        lambda: int(parameter("backfill_slice_rows")),
        serverless_size,
        in_process_rows,
        lambda: float(parameter(PRICE)),
        duckdb_takes,
        lambda: int(parameter("barrier_latency_target_ms")),
    )
    max_creating = lambda: int(parameter("max_concurrent_creating_streaming_jobs"))  # noqa: E731
    jobs = Jobs(store, plans, groups, coordinator, settings, max_creating)
    retention = Retention(store, coordinator, lambda: int(parameter("time_travel_retention_ms")))

    orphans = Orphans(lake)
    audit_settings = AuditSettings(
        lambda: int(parameter("view_audit_interval_secs")), lambda: int(parameter("backfill_in_process_rows"))
    )
    audits = Audits(store, plans, groups, coordinator, audit_settings)

    def compact() -> bool:
        compact_once(lake, {table.lake_table: table.append_only for table in store.catalog.relations if table.is_table})
        return False  # writers wait for each step, so each period has one step for each table

    history = History(lambda: read_counts(store, coordinator, jobs))
    background = (
        Periodic("retention", lambda: retention.period_s, retention.run_once),
        Periodic("expired rows", lambda: EXPIRED_ROWS_PERIOD_S, ExpiredRows(store).run_once),
        Periodic("orphans", lambda: orphans.period_s, orphans.run_once),
        Periodic("catalog log", lambda: LOG_PERIOD_S, lambda: checkpoint_once(lake)),
        Periodic("measuring", lambda: PERIOD_S, jobs.measuring.run_once),
        Periodic("compaction", lambda: int(parameter("compaction_interval_ms")) / 1000, compact),
        Periodic("audits", lambda: AUDITS_PERIOD_S, audits.run_once),
        Periodic("history", lambda: INTERVAL_SECONDS, history.run_once),
    )
    serving = Serving(store, buffer, cache_bytes("serving_cache_mib"))
    serving.start()
    backends = Backends(lambda: store.catalog.users)
    views = SystemViews(store, backends)
    store.show_system(views.columns)
    most_rows = lambda: int(parameter("source_rows_per_epoch"))  # noqa: E731
    delivery = Delivery(lambda: store.catalog)
    sources = Sources(store, delivery, coordinator.notify, lambda: coordinator.snapshot, most_rows)
    return Context(
        config, lake, store, plans, groups, WarmGroups(groups, lake, warm_groups), coordinator, buffer, jobs,
        background, audits, sources, Outbox(store), serving, views, PlanCache(), GroupCommit(),
        DmlPace(lambda id_: store.catalog.by_id[id_].streaming.dml_rate_limit if id_ in store.catalog.by_id else None),
        SequenceNumbers(store),
        InlinedWrites(), backends,
        Usage(groups.trees),
        history,
    )  # fmt: skip


def _serverless_size(config: Config, parameter: Callable[[str], str]) -> Size:
    usual = SYSTEM["serverless_backfill_sku"].default
    sku = config.skus.get(parameter("serverless_backfill_sku"), config.skus[usual])
    return replace(sku, replicas=int(parameter("serverless_backfill_replicas")))


def _start(context: Context) -> None:
    """Start all parts that write the lake."""
    lacking = context.shortage() if context.parameter("serverless_backfill_enabled") == "true" else None
    if lacking is not None:
        logger.warning(lacking)
    context.usage.start()
    context.groups.recover()
    context.jobs.recover()
    context.coordinator.start()
    context.coordinator.notify()
    context.jobs.make_anew()
    context.history.run_once()  # the first rates are measured from this sample
    for work in context.background:
        work.start()
    if context.config.spark_start == "eager":
        threading.Thread(
            target=_warm_up, args=(context.groups, context.store.lake), name="warm-up", daemon=True
        ).start()
    context.warm_groups.start()
    context.sources.start()
    context.outbox.start()


def _warm_up(groups: Groups, lake: Lake) -> None:
    """Start Spark before the first view needs it."""
    try:
        group = groups.get()
        warm_up(group, lake, group.size.all_slots)
        run_in(group, lake)
    except Error as error:
        if error.sqlstate != errors.QUERY_CANCELED:
            logger.warning("Spark is not ready: %s", error.message)
    except Exception:
        if not groups.is_closing:
            logger.warning("Spark is not ready yet; the first backfill tries again", exc_info=True)
