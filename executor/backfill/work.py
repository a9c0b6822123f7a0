"""What the steps of one backfill share: its view, its resource group, and how it is stopped, paused and retried."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sparkwave.catalog.counters import STEP_RETRIES
from sparkwave.catalog.errors import canceled
from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.places import Place, remove_tree
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.locks import Rank, RankedLock
from sparkwave.catalog.log_context import in_this_context
from sparkwave.catalog.model import CREATING, DEFAULT_GROUP, Epoch, Job, Relation
from sparkwave.catalog.stores.job_store import (
    AlreadyDone,
    Start,
    check_step,
    load_slices,
    move_job_epoch,
    set_job_group,
    set_job_waiting,
    start_job,
)
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill.progress import NO_ROWS, Progress, Rows
from sparkwave.executor.backfill.slicing import row_count
from sparkwave.executor.epochs.advance import Changes, Engine, Fill, View
from sparkwave.executor.epochs.duckdb_engine import DuckDBEngine
from sparkwave.executor.epochs.versions import Version
from sparkwave.executor.faults import message_of
from sparkwave.executor.spark.applications import Size
from sparkwave.executor.spark.groups import Group, Groups, Order
from sparkwave.executor.spark.spark_engine import SparkEngine, SparkError, spark_engine
from sparkwave.executor.spark.workers import actors_of
from sparkwave.planner.backfill.strategy import SNAPSHOT

logger = logging.getLogger(__name__)

# A step that fails is tried again this often, then the job fails with the last reason.
ATTEMPTS = 3

# What a step has computed to be added, and the cursor that has it.
Filled = tuple[Fill, Cursor]


@dataclass(frozen=True)
class Settings:
    """What a job needs to know of the configuration, read when it is needed."""

    slice_rows: Callable[[], int]
    serverless_size: Callable[[], Size]
    # Upstream rows up to which a view is filled on DuckDB, in process; -1 never.
    in_process_rows: Callable[[], int]
    # Whether DuckDB takes up this many changed rows of a creating view.
    duckdb_takes: Callable[[int], bool]


def step_directory(base: Place, fragment_id: int, slice_id: int) -> Place:
    """Where below a job's own directory a step writes its files."""
    return base / f"f{fragment_id}_s{slice_id}"


def partial_results(staging: Place, job_id: int, fragment_id: int, slice_id: int) -> Place:
    """Where a step has its files if the last step of its fragment makes one result of them."""
    return step_directory(_staging(staging, job_id), fragment_id, slice_id)


def _staging(staging: Place, job_id: int) -> Place:
    return staging / f"job_{job_id}"


# Stores the rows of a whole view, which a cursor has, and that it is created. Returns whether that could be done.
End = Callable[[Cursor, Fill], bool]


class ControlsChanged(Exception):
    """The rate limit or the parallelism was changed while a step ran."""


class Work:
    """The tools of one creating job. Used by its thread and those of its slices."""

    def __init__(self, store: Store, groups: Groups, settings: Settings, view: View, job: Job) -> None:
        self.store = store
        self.lake: Lake = store.lake
        self.settings = settings
        self.is_serverless = job.is_serverless
        self._fresh: Start | None = None
        self._ahead: Future[Filled] | None = None
        self._counted: tuple[int, dict[int, int]] = 0, {}  # a snapshot, and rows of relations at it
        self.started = threading.Event()  # the job is CREATING: one in the background needs its permit no longer
        self.is_cancelled = threading.Event()
        self.is_shut_down = threading.Event()
        # Grows whenever the controls change or the job is stopped.
        self._controls = 0
        self._controls_condition = threading.Condition()
        # Of each thread: the controls that its step goes by.
        self._step = threading.local()
        self._groups = groups
        self._group: Group | None = None
        self._group_lock = RankedLock(Rank.JOB_GROUP)
        self._interrupts: set[Callable[[], None]] = set()
        self._waiting: str | None = job.waiting
        self._name(view, job)

    def _name(self, view: View, job: Job) -> None:
        self.view, self._given, self.id = view, job, job.id
        self.progress = Progress(self.staging / "progress.json" if isinstance(self.staging, Path) else None)

    def reserved(self, relation: Relation, job: Job, start: Start | None) -> None:
        """The relation and the job, which had no ids before, are being stored, and maybe where it starts."""
        self._name(View(relation, self.view.plan), job)
        self._fresh = start

    @property
    def relation(self) -> Relation:
        return self.view.relation

    @property
    def job(self) -> Job:
        """The job as the catalog has it now; as it is to be before the catalog has it."""
        return self.store.catalog.job_by_id.get(self.id, self._given)

    def start_ahead(self, fill: Callable[[], Filled]) -> None:
        """Begin the first step on a thread of its own, while the job is being stored."""
        pool = ThreadPoolExecutor(1, thread_name_prefix=f"job-{self.id}-ahead")
        self._ahead = pool.submit(in_this_context(fill))
        pool.shutdown(wait=False)

    def take_ahead(self) -> Future[Filled] | None:
        """What was begun so, for the first who asks."""
        ahead, self._ahead = self._ahead, None
        return ahead

    def give_up(self) -> None:
        """The job cannot be stored: nothing of it is left."""
        self.stop(self.is_cancelled)
        if self._ahead is not None:
            wait([self._ahead])
            remove_tree(self.data)

    @property
    def is_created(self) -> bool:
        """The last step is committed."""
        replaces = self.relation.replaces
        relation = self.store.catalog.by_id.get(self.id if replaces is None else replaces)
        return relation is not None and relation.created and relation.definition_id == self.id

    @property
    def is_over(self) -> bool:
        """It is created, and maybe dropped since."""
        return self.is_created or self.id not in self.store.catalog.by_id

    def has_ended(self) -> bool:
        """As `is_over`, after something that may have been committed has failed."""
        self.store.reload()
        return self.is_over

    @property
    def is_planned(self) -> bool:
        """Its start is pinned and its steps are written down, by this server or one before it."""
        return self.job.status == CREATING

    def now(self, cursor: Cursor) -> Epoch:
        return Epoch(self.lake.newest(cursor), time.time_ns() // 1000)

    @property
    def staging(self) -> Place:
        """Partial results; kept over restarts until the job ends."""
        return _staging(self.lake.staging_path, self.id)

    @property
    def data(self) -> Place:
        """Where Spark writes the files of the view and its states."""
        return self.lake.data_path / f"job_{self.id}"

    # Stopping

    def stop(self, event: threading.Event) -> None:
        """Set `is_cancelled` or `is_shut_down` and stop what runs."""
        event.set()
        self._notify()
        self.interrupt()

    def controls_changed(self) -> None:
        """The rate limit or a parallelism is another: a step that may be larger than a limit allows is interrupted."""
        self._notify()
        if self.job.rate_limit is not None:
            self.interrupt()

    def _notify(self) -> None:
        with self._controls_condition:
            self._controls += 1
            self._controls_condition.notify_all()

    @property
    def controls(self) -> int:
        """Which controls the job has: another number after every change. To be read before they are."""
        return self._controls

    @property
    def is_stopping(self) -> bool:
        return self.is_cancelled.is_set() or self.is_shut_down.is_set()

    def check(self) -> None:
        """Raises Error 57014 when the job is to stop."""
        if self.is_stopping:
            raise canceled()

    def check_step(self) -> None:
        """As `check`, and raises ControlsChanged when a limit was set after this thread's step was chosen.

        Called before each thing an engine does: an interrupt stops what runs, not what is about to run.
        """
        self.check()
        since = getattr(self._step, "since", self._controls)
        if since != self._controls and self.job.rate_limit is not None:
            raise ControlsChanged

    def interrupt(self) -> None:
        """Make what the engines are doing fail."""
        for interrupt in list(self._interrupts):
            try:
                interrupt()
            except SparkError:
                logger.debug("interrupting job %d", self.id, exc_info=True)

    @contextmanager
    def _interruptible(self, interrupt: Callable[[], None]) -> Iterator[None]:
        self._interrupts.add(interrupt)
        try:
            yield
        finally:
            self._interrupts.discard(interrupt)

    def pause(self, seconds: float, since: int) -> None:
        """Sleep, less when the job is stopped or its controls are not those of `since`."""
        with self._controls_condition:
            self._controls_condition.wait_for(lambda: self._controls != since, seconds)
        self.check()

    def wait_because(self, reason: str | None) -> None:
        """Say in the catalog why the job does not move; None when it does."""
        if reason != self._waiting:
            with self.store.change() as cursor:
                set_job_waiting(cursor, self.id, reason)
            self._waiting = reason

    def _waits_no_longer(self, reason: str) -> None:
        """Take a reason back, if it is still the newest."""
        if self._waiting == reason:
            self.wait_because(None)

    def retrying(self, step: Callable[[], None], since: int | None = None) -> None:
        """Run a step until it succeeds, ATTEMPTS times at most. Raises what made the last one fail.

        `since` are the controls the step was chosen by, those of now for None. Raises ControlsChanged when others
        interrupted it.
        """
        self._step.since = since if since is not None else self._controls
        for attempt in range(1, ATTEMPTS + 1):
            self._step.attempt = attempt
            try:
                self.check_step()
                step()
            except AlreadyDone:
                self.store.reload()
                return
            except (DuckDBError, OSError, *SparkError) as error:
                self.check()
                if self._controls != self._step.since:
                    raise ControlsChanged from error
                logger.warning("attempt %d: %s", attempt, message_of(error))
                STEP_RETRIES.inc()
                if attempt == ATTEMPTS:
                    raise
                self._step.failed = f"retrying after an error: {message_of(error)}"
                with suppress(DuckDBError):  # where nothing can be written, not being able to say so is no news
                    self.wait_because(self._step.failed)
                self.pause(0.5 * attempt, self._step.since)
            else:
                self._runs_again()
                return

    def check_retry(self, cursor: Cursor, step: int, fragments: Iterable[int]) -> None:
        """Raises AlreadyDone for a step that this thread tries again after its commit.

        What it wrote is the lake's then, and must not be written again.
        """
        if self._step.attempt > 1:
            if self.has_ended():  # with its rows
                raise AlreadyDone
            check_step(cursor, self.id, step, fragments)

    def _runs_again(self) -> None:
        """What this thread's step waited for after an error is there: it is tried again, or has succeeded."""
        failed, self._step.failed = getattr(self._step, "failed", None), None
        if failed is not None:
            self._waits_no_longer(failed)

    def planning(self, plan: Callable[[], None]) -> None:
        """Have a job planned that is not. Its controls matter to what comes after."""
        while not self.is_planned:
            with suppress(ControlsChanged):
                self.retrying(plan)

    def begin(self, start: Start) -> None:
        """Write down where the job starts; from here on it survives a restart. Slices that it had are forgotten."""
        with self.store.change() as transaction:
            start_job(transaction, self.job, start)
        self._fresh = start

    def fresh_start(self) -> Start | None:
        """Where a job starts that has not done anything yet, for the first who asks; None where the lake knows."""
        fresh, self._fresh = self._fresh, None
        return fresh

    # Engines

    @lazy
    def in_process(self) -> bool:
        """Whether the server itself reads the upstreams: little data, where that is allowed."""
        limit, job = self.settings.in_process_rows(), self.job
        # A group that is named is to do the work. A job that is resumed stays with the engine it began with.
        if (
            limit < 0
            or self.is_serverless
            or job.resource_group != DEFAULT_GROUP
            or (self.is_planned and not self.reads_on)
        ):
            return False
        return self.upstream_rows <= limit

    @property
    def reads_on(self) -> bool:
        """Whether the job keeps positions, not slices."""
        if self.is_planned:
            return not (self._fresh.slices if self._fresh is not None else load_slices(self.lake.cursor(), self.id)[0])
        return self.job.strategy != SNAPSHOT or self.job.rate_limit is not None or self.in_process

    @lazy
    def upstream_rows(self) -> int:
        """The rows of all inputs when that is asked first."""
        cursor = self.lake.cursor()
        snapshot = self.lake.newest(cursor)
        with at_one_moment(cursor):  # else each query reads the lake's catalog anew
            return sum(self.row_count(cursor, scan.relation, snapshot) for scan in self.view.plan.scans)

    def row_count(self, cursor: Cursor, relation: Relation, snapshot: int) -> int:
        """As `executor.backfill.slicing.row_count`. What has been counted for the newest snapshot is known."""
        counted_at, counts = self._counted
        if counted_at != snapshot:
            counts = {}
            self._counted = snapshot, counts
        if relation.id not in counts:
            counts[relation.id] = row_count(cursor, relation, snapshot)
        return counts[relation.id]

    def group(self) -> Group:
        """The job's resource group; another one when the last has died. Raises Error 53000 if it cannot be had."""
        if not self.is_serverless:
            return self._groups.get(self.job.resource_group, lambda: self.is_stopping)
        with self._group_lock:
            if self._group is None or not self._group.is_alive:
                self._release_group()
                self._group = self._borrow_group()
            return self._group

    def wait_for_steady_group(self) -> None:
        """The group that has the view once it is created. Raises Error 53000 if it cannot be had."""
        self._groups.get(self.store.catalog.steady_group(self.job), lambda: self.is_stopping)

    def _borrow_group(self) -> Group:
        order = Order(self.settings.serverless_size(), None, self.id, self.wait_because)
        group = self._groups.borrow(order, lambda: self.is_stopping)
        with self.store.change() as cursor:
            set_job_group(cursor, self.id, group.name)
        self.wait_because(None)
        return group

    @property
    def slots(self) -> int:
        """Steps that the job's group runs at a time."""
        size = self.group().size
        return size.slots * size.replicas

    @property
    def shares(self) -> int:
        """Into how many slices much work is cut at least: as many as several nodes run at a time.

        One node is busy with one, which has all of its cores.
        """
        return self.slots if self.group().size.replicas > 1 else 1

    @property
    def actors(self) -> int:
        """Into how many parts the job's work is cut."""
        return 1 if self.in_process else actors_of(self.job, self.group().size.all_cores)

    def release_group(self) -> None:
        """Give the job's own group back, if it has one."""
        with self._group_lock:
            self._release_group()

    def _release_group(self) -> None:
        if self._group is not None:
            self._groups.give_back(self._group, self.id)
        self._group = None

    @contextmanager
    def spark(
        self, purpose: str, data: Place | None = None, reads: Rows = NO_ROWS, tasks: int = 1
    ) -> Iterator[SparkEngine]:
        """An engine of the job's group, which a cancel reaches, for a step that reads rows of some fragments.

        `data` is as in SparkEngine; `tasks` of the step have about as many rows each.
        """
        self.check()
        name = f"{purpose}_{self.id}"
        group = self.group()
        with (
            self._groups.calls.watched(
                self.id, purpose, self.wait_because, self._waits_no_longer, lambda: group.silent_since
            ),
            spark_engine(group, self.lake, name, data, self.check_step, self.row_count, self) as engine,
            self._interruptible(engine.interrupt),
            self.progress.running(reads, [engine.says(task) for task in range(tasks)]),
        ):
            self._runs_again()
            yield engine

    @contextmanager
    def duckdb(self, cursor: Cursor) -> Iterator[DuckDBEngine]:
        """The engine in process, on a cursor that a cancel reaches."""
        self.check()
        with self._interruptible(cursor.interrupt):
            self._runs_again()
            yield DuckDBEngine()

    @contextmanager
    def engine(self, purpose: str, cursor: Cursor, data: Place, reads: Rows) -> Iterator[Engine]:
        """The engine that reads rows of the upstreams."""
        with self.duckdb(cursor) if self.in_process else self.spark(purpose, data, reads) as engine:
            yield engine

    def advance(
        self, cursor: Cursor, versions: Mapping[str, Version], changes: Changes, old: Epoch, new: Epoch
    ) -> None:
        """Take the view to an epoch with the changes that the cursor has, on the engine for so many, and commit that.

        Few changes are taken up in process, as those of created views are.
        """
        advance = None
        if changes.inputs:
            in_process = self.in_process or self.settings.duckdb_takes(changes.rows)
            with self.duckdb(cursor) if in_process else self.spark("log") as engine:
                advance = engine.advance(cursor, self.view, versions, changes)
        self.check()
        with self.lake.transaction(cursor, advance.tables if advance is not None else ()):
            if advance is not None:
                advance.apply(cursor)
            move_job_epoch(cursor, self.id, old, new)
        self.store.reload()
