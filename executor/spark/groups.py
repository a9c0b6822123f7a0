"""Resource groups: each is a Spark application of its own.

`default` is started with the server or on first use, a group of the configuration on first use; both are started again
when they have died. A serverless group is provisioned for a job, or ahead of it (`warm_groups`), and destroyed after
the job.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import SparkSession

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, canceled, not_found
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.locks import Rank, RankedLock
from sparkwave.catalog.model import DEFAULT_GROUP
from sparkwave.catalog.stores import application_store
from sparkwave.catalog.stores.application_store import DESTROYED, DRAINING, PROVISIONING, READY, ApplicationRow
from sparkwave.catalog.stores.event_store import add_event
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.spark.applications import Application, Size, is_local
from sparkwave.executor.spark.endpoint import Ended, Endpoint, free_port
from sparkwave.executor.spark.keeper import BACKGROUND, NORMAL, end_orphan
from sparkwave.executor.spark.spark_calls import IS_SILENT, SparkCalls
from sparkwave.executor.spark.turns import Turns
from sparkwave.executor.spark.usage import Tree

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
# How long to wait before an application that ended while it started is started again.
RETRY_SECONDS = 1.0
# Seconds that an epoch waits for a group that starts, because its other views wait, too.
SOON_SECONDS = 1.0
# Seconds between two checks of the groups, and seconds that a group may take to answer.
WATCH_SECONDS = 2.0
ANSWER_SECONDS = 4.0
# Seconds that a group may take to answer an interrupt, and seconds without an answer after which it counts as dead.
INTERRUPT_SECONDS = 2.0
HANG_SECONDS = 60.0


@dataclass(frozen=True)
class GroupSettings:
    """The configuration of groups. Times are in seconds; values that ALTER SYSTEM sets are read when they are needed.

    `sizes` are those of the steady groups, `default` among them. `master` is None for this machine. `spark` are Spark's
    own settings; `serverless_spark` overrides them for serverless groups.
    """

    sizes: Mapping[str, Size]
    master: str | None = None
    spark: Mapping[str, str] = field(default_factory=dict)
    serverless_spark: Mapping[str, str] = field(default_factory=dict)
    timeout_s: Callable[[], float] = lambda: 60.0
    linger_s: Callable[[], float] = lambda: 0.0
    slow_call_s: Callable[[], float] = lambda: 0.0


@dataclass(frozen=True)
class Order:
    """A group to provide: a steady one with its `name`, or a serverless one (None), for a job or kept ready.

    `reads` are the ids of the relations that the job reads. `say` is called with the reason for waiting.
    """

    size: Size
    name: str | None = None
    job_id: int | None = None
    reads: frozenset[int] = frozenset()
    say: Callable[[str], None] = lambda reason: None


@dataclass(eq=False)
class Group:
    """A resource group. `jobs` counts the present jobs of a serverless one, `uses` all jobs it has had.

    `reads` are the ids of the relations that its jobs read.
    `silent_since` is the time since when it does not answer; None while it answers. `turns` are of backfill steps,
    as many as tasks run at once.
    """

    row: ApplicationRow
    size: Size
    endpoint: Endpoint
    state: str = PROVISIONING
    jobs: int = 0
    uses: int = 0
    reads: frozenset[int] = frozenset()
    silent_since: datetime | None = None
    turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        self.turns = Turns(self.size.all_slots)

    @property
    def name(self) -> str:
        return self.row.resource_group

    @property
    def is_alive(self) -> bool:
        return self.endpoint.is_alive

    @property
    def is_idle(self) -> bool:
        """Whether the group is kept ready for a job and has had none yet."""
        return self.row.is_serverless and self.state == READY and not self.uses

    def session(self, owner: object) -> contextlib.AbstractContextManager[SparkSession]:
        """Return a Spark session; only users with the same owner share it at a time."""
        return self.endpoint.session(owner)

    def interrupt(self, session: SparkSession) -> None:
        """Interrupt a session's work. If the group does not even answer it is ended, whoever else waits for it."""
        self.end_if_silent(0, INTERRUPT_SECONDS)
        if self.is_alive:
            session.interruptAll()

    def abandon(self, session: SparkSession) -> None:
        """Make the work of a session fail, even if the group does not answer."""
        self.endpoint.abandon(session)

    def check_answers(self) -> None:
        """Raise Error 53000 if the group does not answer."""
        asked = datetime.now(UTC)
        if self.silent_since is None and self.is_alive and not self.endpoint.is_responsive(ANSWER_SECONDS):
            self.silent_since = asked
        since = self.silent_since
        if since is not None:
            raise Error(f"{IS_SILENT} since {since:%H:%M:%S} UTC", errors.INSUFFICIENT_RESOURCES)

    def end_if_silent(self, patience_s: float, answer_s: float = ANSWER_SECONDS) -> None:
        """Check that the group answers.

        After `patience_s` seconds without an answer end its processes; running calls fail.
        """
        asked = datetime.now(UTC)
        if not self.is_alive or self.endpoint.is_responsive(answer_s):
            self.silent_since = None
            return
        self.silent_since = self.silent_since or asked
        silent_s = (datetime.now(UTC) - self.silent_since).total_seconds()
        if silent_s >= patience_s and self.is_alive:
            logger.warning("resource group %s has not answered for %.0f s", self.name, silent_s)
            self.endpoint.end_processes()


class _Starting:
    """The start of a steady group on a thread of its own, for which any number of jobs wait."""

    def __init__(self, start: Callable[[], Group]) -> None:
        self._done = threading.Event()
        self._group: Group | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(start,), name="start-group", daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait until the group has started or failed."""
        self._thread.join(timeout_s)

    def _run(self, start: Callable[[], Group]) -> None:
        try:
            self._group = start()
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    @property
    def is_over(self) -> bool:
        """Whether the start failed, or the process has ended since."""
        return self._done.is_set() and (self._group is None or not self._group.is_alive)

    @property
    def is_ready(self) -> bool:
        return self._done.is_set() and not self.is_over

    def wait(self, is_cancelled: Callable[[], bool]) -> Group:
        while not self._done.wait(POLL_SECONDS):
            _check(is_cancelled)
        if self._group is None:
            assert self._error is not None
            raise self._error
        return self._group


class Groups:
    """Starts and ends groups. The catalog has a row with the state of each group."""

    def __init__(self, store: Store, settings: GroupSettings) -> None:
        self._store = store
        self._lake = store.lake
        self._settings = settings
        self._lock = RankedLock(Rank.GROUPS)
        self._steady: dict[str, _Starting] = {}
        self._groups: dict[int, Group] = {}
        self._expected: dict[int, Order] = {}  # by the job that will borrow a group
        self._closing = threading.Event()
        self._scratch = self._lake.directory / "scratch"
        self.calls = SparkCalls(store, settings.slow_call_s)
        threading.Thread(target=self._watch, name="watch-groups", daemon=True).start()

    def _watch(self) -> None:
        """End groups that hang, so that whoever waits for them gets new ones."""
        while not self._closing.wait(WATCH_SECONDS):
            self.end_silent(HANG_SECONDS)

    def end_silent(self, patience_s: float) -> None:
        """End the groups that have not answered for `patience_s` seconds; running calls fail."""
        for group in list(self._groups.values()):
            if group.state == READY:
                group.end_if_silent(patience_s)

    def recover(self) -> None:
        """End the applications that an earlier server has left running."""
        left = [end_orphan(directory) for directory in self._scratch.glob("risingwave-*-[0-9]*") if directory.is_dir()]
        if any(left):
            logger.warning("ended %d Spark applications of a server that was killed", sum(left))
        with self._lake.transaction(self._lake.cursor()) as cursor:
            for name in application_store.destroy_all(cursor, "the server ended"):
                self._add_event(cursor, DESTROYED, name, None, "the server ended")

    def check_exists(self, name: str, position: int | None = None) -> None:
        """Raise Error 42704 for a steady group that the configuration does not have."""
        if name not in self._settings.sizes:
            names = ", ".join(sorted(self._settings.sizes))
            hint = f"The resource groups are {names}. The configuration file can add some."
            raise not_found("resource group", name, position=position, hint=hint)

    def get(self, name: str = DEFAULT_GROUP, is_cancelled: Callable[[], bool] = lambda: False) -> Group:
        """Return a steady group. If it is not running it is started, once for all who wait.

        Raises Error 42704 for an unknown group, 57014 when cancelled, 53000 if it cannot be had in time.
        """
        self.check_exists(name)
        with self._lock:
            _check(self._closing.is_set)
            starting = self._steady.get(name)
            if starting is None or starting.is_over:
                starting = self._steady[name] = _Starting(lambda: self._start_steady(name))
        return starting.wait(is_cancelled)

    @property
    def are_on_this_machine(self) -> bool:
        """Whether the nodes of groups are processes of this machine."""
        return is_local(self._settings.master)

    def is_ready(self, name: str) -> bool:
        """Return whether `get` returns a steady group at once."""
        with self._lock:
            starting = self._steady.get(name)
        return starting is not None and starting.is_ready

    def get_soon(self, name: str) -> Group:
        """Return a group as `get` does, for a caller that holds up others.

        Also raises Error 53000 for a group that is starting or does not answer.
        """
        deadline = time.monotonic() + SOON_SECONDS
        try:
            group = self.get(name, lambda: time.monotonic() > deadline)
        except Error as error:
            if error.sqlstate == errors.QUERY_CANCELED and not self._closing.is_set():
                raise Error(f"resource group {name} is starting", errors.INSUFFICIENT_RESOURCES) from error
            raise
        group.check_answers()
        return group

    def _start_steady(self, name: str) -> Group:
        for dead in [group for group in self._groups.values() if group.name == name]:
            self.destroy(dead)
        return self._provision(Order(self._settings.sizes[name], name), self._closing.is_set)

    def expect(self, order: Order) -> None:
        """Note that a job will borrow a group, so that a group that it can share is not destroyed before."""
        assert order.job_id is not None
        with self._lock:
            self._expected[order.job_id] = order

    def withdraw(self, job_id: int) -> None:
        """Undo `expect`. Does nothing if the job is not expected."""
        with self._lock:
            self._expected.pop(job_id, None)
        self._drain_left(job_id)

    def borrow(self, order: Order, is_cancelled: Callable[[], bool]) -> Group:
        """Return a serverless group for a job: one of its size that it can share or that is kept ready, else a new one.

        Raises Error 57014 when cancelled, 53000 if the group cannot be had in time.
        """
        assert order.job_id is not None
        try:
            while True:
                with self._lock:
                    found = self._usable(order)
                    if found is None:
                        group = self._add(order)
                        break
                    self._take(found, order)
                try:
                    if found.state == PROVISIONING:
                        order.say(f"waiting for resource group {found.name}")
                    while found.state == PROVISIONING:
                        _pause(POLL_SECONDS, is_cancelled)
                except BaseException:
                    self.give_back(found, order.job_id)
                    raise
                if found.state == READY:
                    return found
            return self._start(group, order, is_cancelled)
        finally:
            self.withdraw(order.job_id)

    def _take(self, group: Group, order: Order) -> None:
        """Let a job use a group that is there or about to be. The caller holds the lock."""
        group.jobs += 1
        group.uses += 1
        group.reads |= order.reads
        if group.state == DRAINING:
            self._set_state(group, READY, order.job_id)

    def _usable(self, order: Order) -> Group | None:
        """Return a group that can take one more job, an idle one first; None if there is none."""
        lingers = self._settings.linger_s() > 0
        usable = [
            group
            for group in self._groups.values()
            if self._shares(group, order)
            or (
                group.row.is_serverless
                and group.size == order.size
                and group.state in (READY, DRAINING)
                and group.is_alive
                and (group.is_idle or lingers)
            )
        ]
        return min(usable, key=lambda group: (group.jobs, group.uses), default=None)

    def _shares(self, group: Group, order: Order) -> bool:
        """Return whether a job shares a group with jobs that read the same. Steady groups have no jobs.

        Jobs share only on this machine, where groups of their own would divide the same cores.
        """
        is_there = group.state == PROVISIONING or (group.state == READY and group.is_alive)
        reads_one = group.size == order.size and not group.reads.isdisjoint(order.reads)
        return self.are_on_this_machine and is_there and reads_one

    def _is_left(self, group: Group) -> bool:
        """Return whether a group has had jobs, and neither has one nor expects one."""
        has_had = group.state == READY and group.uses > 0 and group.jobs == 0
        return has_had and not any(self._shares(group, order) for order in self._expected.values())

    def has_usable(self, size: Size) -> bool:
        """Return whether a serverless group of a size is there for the next job."""
        with self._lock:
            return self._usable(Order(size)) is not None

    def prepare(self, size: Size, is_cancelled: Callable[[], bool]) -> Group:
        """Return a new serverless group to keep ready. Raises as `borrow` does."""
        return self._provision(Order(size), lambda: self._closing.is_set() or is_cancelled())

    def end_idle(self, size: Size, most: int) -> int:
        """End the idle groups that have died, have another size, or exceed `most`. Returns how many are left."""
        with self._lock:
            idle = [group for group in self._groups.values() if group.is_idle]
            kept = [group for group in idle if group.size == size and group.is_alive][:most]
            gone = [group for group in idle if group not in kept]
            for group in gone:
                group.state = DESTROYED  # from here on no job takes it
        for group in gone:
            self.destroy(group, "it is no longer kept ready" if group.is_alive else None)
        return len(kept)

    def give_back(self, group: Group, job_id: int) -> None:
        """Return a job's serverless group. A group that neither has a job nor expects one drains and is destroyed."""
        with self._lock:
            group.jobs -= 1
        self._drain_left(job_id)

    def _drain_left(self, job_id: int) -> None:
        with self._lock:
            left = [group for group in self._groups.values() if self._is_left(group)]
            for group in left:
                self._set_state(group, DRAINING, job_id)
        for group in left:
            linger_s = self._settings.linger_s() if group.is_alive else 0
            if linger_s:
                timer = threading.Timer(linger_s, self._destroy_drained, (group, group.uses))
                timer.daemon = True
                timer.start()
            else:
                self._destroy_drained(group, group.uses)

    def _destroy_drained(self, group: Group, uses: int) -> None:
        with self._lock:
            if group.state != DRAINING or group.uses != uses:
                return  # a job has taken it meanwhile
            group.state = DESTROYED  # from here on no job takes it
        self.destroy(group)

    def destroy(self, group: Group, reason: str | None = None) -> None:
        """End a group and all its work."""
        with self._lock:
            if self._groups.pop(group.row.id, None) is None:
                return
        if reason is None and not group.is_alive:
            reason = "it had died"
        group.endpoint.end()
        self._set_state(group, DESTROYED, None, reason)

    def trees(self) -> list[Tree]:
        """Return the process trees of all groups with processes."""
        return [tree for group in list(self._groups.values()) if (tree := group.endpoint.tree) is not None]

    @property
    def is_closing(self) -> bool:
        """Whether the groups end because the server stops."""
        return self._closing.is_set()

    def close(self) -> None:
        """End all groups; later requests for a group are cancelled."""
        with self._lock:
            self._closing.set()
        self.calls.stop()
        for starting in list(self._steady.values()):
            starting.join(10)
        for group in list(self._groups.values()):
            self.destroy(group, "the server ended")

    def _provision(self, order: Order, is_cancelled: Callable[[], bool]) -> Group:
        """Return a new group. Raises as `borrow` does."""
        with self._lock:
            group = self._add(order)
        return self._start(group, order, is_cancelled)

    def _start(self, group: Group, order: Order, is_cancelled: Callable[[], bool]) -> Group:
        """Start the processes of a new group, with as many attempts as the time limit allows."""
        timeout_s = self._settings.timeout_s()
        deadline = time.monotonic() + timeout_s
        what = f"provisioning resource group {group.name} ({order.size})"
        last: Ended | None = None
        try:
            order.say(what)
            while True:
                group.endpoint.start()
                try:
                    group.endpoint.wait_until_ready(deadline, lambda: _check(is_cancelled))
                    break
                except Ended as ended:
                    last = ended
                    logger.warning("resource group %s ended while it started: %s", group.name, ended)
                    order.say(f"{what}, again after: {ended}")
                    _pause(RETRY_SECONDS, is_cancelled)
                    if time.monotonic() > deadline:
                        raise TimeoutError from ended
            self._set_state(group, READY, order.job_id)
        except TimeoutError as late:
            reason = str(late) if last is None else f"it ended while it started: {last}"
            self.destroy(group, reason)
            raise _not_ready(group.name, timeout_s, reason) from late
        except BaseException as error:
            self.destroy(group, "cancelled" if isinstance(error, Error) else str(error))
            raise
        return group

    def _add(self, order: Order) -> Group:
        """Store a new group, without processes, in the catalog. The caller holds the lock."""
        size, port = order.size, free_port()
        with self._lake.transaction(self._lake.cursor()) as cursor:
            id_ = application_store.next_id(cursor)
            name = f"risingwave-{'compute' if order.name else 'backfill'}-{id_}"
            memory = size.memory_mib << 20
            row = ApplicationRow(
                id_, name, order.name or name, order.name is None, port, size.replicas, size.cores, memory
            )
            application_store.add(cursor, row)
            self._add_event(cursor, PROVISIONING, name, order.job_id, None)
        settings = self._settings
        spark = {**settings.spark, **(settings.serverless_spark if row.is_serverless else {})}
        stays = not row.is_serverless
        application = Application(name, size, port, self._scratch / name, settings.master, spark, stays)
        log_file = self._lake.directory / "logs" / f"{name}.log"
        endpoint = Endpoint(application, BACKGROUND if row.is_serverless else NORMAL, log_file)
        jobs = int(order.job_id is not None)
        group = Group(row, size, endpoint, jobs=jobs, uses=jobs, reads=order.reads)
        self._groups[row.id] = group
        return group

    def _set_state(self, group: Group, state: str, job_id: int | None, reason: str | None = None) -> None:
        group.state = state
        try:
            with self._lake.transaction(self._lake.cursor()) as cursor:
                application_store.set_state(cursor, group.row.id, state, reason)
                self._add_event(cursor, state, group.row.name, job_id, reason)
        except DuckDBError:  # a group has to end even on a full disk
            logger.warning("the state of resource group %s cannot be stored", group.name, exc_info=True)

    def _add_event(self, cursor: Cursor, state: str, name: str, job_id: int | None, reason: str | None) -> None:
        info = {"resource_group": name} | ({"reason": reason} if reason else {})
        add_event(cursor, f"RESOURCE_GROUP_{state}", job_id, info)


def _not_ready(name: str, timeout_s: float, reason: str) -> Error:
    return Error(
        f"resource group {name} was not ready within {timeout_s:g} s: {reason}",
        errors.INSUFFICIENT_RESOURCES,
        detail=f"The log is {name}.log in the data directory's logs.",
        hint="ALTER SYSTEM SET serverless_backfill_provision_timeout allows more.",
    )


def _check(is_cancelled: Callable[[], bool]) -> None:
    if is_cancelled():
        raise canceled()


def _pause(seconds: float, is_cancelled: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        _check(is_cancelled)
        time.sleep(POLL_SECONDS)


def require_java() -> None:
    """Raise Error when there is no Java for Spark to run on."""
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise Error("Spark needs Java 17 or newer, and no java was found", hint="Install a JRE, or set JAVA_HOME.")
