"""The shared parts of one backfill's steps: its view and resource group, and stopping, pausing and retrying."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sparkwave.catalog.counters import STEP_RETRIES
from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.places import Place, remove_tree
from sparkwave.catalog.lake.table_contents import contents, count_rows
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.log_context import in_this_context
from sparkwave.catalog.model import CREATED, CREATING, DEFAULT_GROUP, Epoch, Job, Position, Relation
from sparkwave.catalog.names import LakeTable
from sparkwave.catalog.stores.job_store import (
    AlreadyDone,
    Start,
    check_step,
    load_jobs,
    load_slices,
    move_job_epoch,
    set_job_waiting,
    start_job,
)
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.view_audits import DIFFERENT, newest_results
from sparkwave.executor.backfill.controls import Controls, ControlsChanged
from sparkwave.executor.backfill.job_group import JobGroup
from sparkwave.executor.backfill.pace import WHOLE, Pace
from sparkwave.executor.backfill.progress import NO_ROWS, Progress, Rows
from sparkwave.executor.backfill.slicing import row_count
from sparkwave.executor.epochs.advance import Changes, Engine, Fill, View
from sparkwave.executor.epochs.duckdb_engine import DuckDBEngine
from sparkwave.executor.epochs.versions import Version
from sparkwave.executor.faults import message_of
from sparkwave.executor.spark.applications import Size
from sparkwave.executor.spark.groups import Group, Groups
from sparkwave.executor.spark.spark_engine import SparkEngine, SparkError, spark_engine, warm_up
from sparkwave.executor.spark.task_share import Share
from sparkwave.executor.spark.workers import actors_of
from sparkwave.planner.backfill.strategy import SNAPSHOT
from sparkwave.planner.plan.edits import edit
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_definition

logger = logging.getLogger(__name__)

# A step that fails is tried this often in all; then the job fails with the last error.
ATTEMPTS = 3

# The rows that a step has computed to be added, and the cursor that has them.
Filled = tuple[Fill, Cursor]


@dataclass(frozen=True)
class Settings:
    """The configuration of jobs; each value is read when it is needed."""

    slice_rows: Callable[[], int]
    serverless_size: Callable[[], Size]
    # Number of upstream rows up to which a view is filled on DuckDB, in process; -1 for never.
    in_process_rows: Callable[[], int]
    # The price of a core for an hour.
    price: Callable[[], float]
    # Whether DuckDB applies this many changed rows of a creating view.
    duckdb_takes: Callable[[int], bool]
    # How long barriers of running views may take beside a backfill, in ms; 0 for any time.
    barrier_target_ms: Callable[[], int]


def step_directory(base: Place, fragment_id: int, slice_id: int) -> Place:
    """Return the directory below a job's own where a step writes its files."""
    return base / f"f{fragment_id}_s{slice_id}"


def partial_results(staging: Place, job_id: int, fragment_id: int, slice_id: int) -> Place:
    """Return the directory of a step's files that the last step of its fragment merges."""
    return step_directory(_staging(staging, job_id), fragment_id, slice_id)


def _staging(staging: Place, job_id: int) -> Place:
    return staging / f"job_{job_id}"


@dataclass(frozen=True)
class Edit:
    """A plan that fills a view from the rows of the view that it replaces, which stands at a position."""

    plan: StreamPlan
    position: Position


# Stores the rows of a whole view, which the cursor has, and marks the view created. Returns False if it cannot.
End = Callable[[Cursor, Fill], bool]


class Work:
    """The tools of one creating job. Its own thread and those of its slices use it."""

    def __init__(self, store: Store, groups: Groups, settings: Settings, view: View, job: Job) -> None:
        self.store = store
        self.lake: Lake = store.lake
        self.settings = settings
        self.is_serverless = job.is_serverless
        self._fresh: Start | None = None
        self._ahead: Future[Filled] | None = None
        self._counted: dict[tuple[LakeTable, int], int] = {}  # rows of tables at snapshots
        # For measuring: the start (monotonic), the seconds until the group was there, and its cores; a job that was
        # resumed, retried or held back tells nothing about the time of others.
        self.began, self.start_s, self.cores = time.monotonic(), 0.0, 0
        self.is_undisturbed = True
        self.paused_because: str | None = None  # why the server itself has set the rate limit to 0
        self.pace = WHOLE
        self.is_beside_views = False  # whether there are barriers to give way to
        self._told_share: float | None = None  # an earlier server may have left another in the file
        self.started = threading.Event()  # the job is CREATING: in the background it does not need its permit any more
        self.controls = Controls(lambda: self.job.rate_limit is not None)
        # Of each thread: the attempt at its step, and the reason for which the last one failed.
        self._step = threading.local()
        self.group = JobGroup(
            store,
            groups,
            settings.serverless_size,
            lambda: self.job,
            self.controls,
            self.wait_because,
            lambda: frozenset(self.relation.upstreams),
            self._warm_up,
        )
        self._groups = groups
        self._waiting: str | None = job.waiting
        self._slowed: str | None = None  # shown while nothing else holds the job up
        self._name(view, job)

    @lazy
    def edit(self) -> Edit | None:
        """How the view's rows follow from those of the view that it replaces; None if they are computed anew."""
        replaced = self.relation.replaces
        if replaced is None or (self.is_planned and not self.job.is_edit):
            return None
        catalog = self.store.catalog
        before = catalog.by_id[replaced]
        plan = edit(plan_definition(before, catalog), self.view.plan, before)
        position = self.job.applied if self.is_planned else self._shown(before)
        return Edit(plan, position) if plan is not None and position is not None else None

    def _shown(self, view: Relation) -> Position | None:
        """Return the position of a view's stored rows; None for a view that is behind or known to be wrong."""
        cursor = self.lake.cursor()
        with at_one_moment(cursor):
            snapshot, epoch = self.lake.snapshot(cursor), self.store.epoch(cursor)
            job = next((job for job in load_jobs(cursor) if job.id == view.id), None)
            audited = newest_results(cursor).get(view.id)
        is_right = job is not None and job.status == CREATED and not job.is_behind
        is_right &= audited is None or audited[0] != DIFFERENT
        return Position(epoch, snapshot) if is_right else None

    @property
    def filling(self) -> View:
        """The view with the plan by which it is filled."""
        return self.view if self.edit is None else View(self.view.relation, self.edit.plan)

    def _name(self, view: View, job: Job) -> None:
        self.view, self._given, self.id = view, job, job.id
        self.progress = Progress(self.staging / "progress.json" if isinstance(self.staging, Path) else None)

    def number(self, id_: int) -> None:
        """Give the relation and the job, which are not stored yet, their id."""
        self._name(View(replace(self.relation, id=id_), self.view.plan), replace(self.job, id=id_))

    def reserved(self, relation: Relation, job: Job, start: Start | None) -> None:
        """Take the relation and the job as they are being stored, maybe with their start."""
        self._name(View(relation, self.view.plan), job)
        self._fresh = start

    @property
    def relation(self) -> Relation:
        return self.view.relation

    @property
    def job(self) -> Job:
        """The job as the catalog has it now; before it is stored, the job to store."""
        return self.store.catalog.job_by_id.get(self.id, self._given)

    def start_ahead(self, fill: Callable[[], Filled]) -> None:
        """Begin the first step on a thread of its own, before the job is stored."""
        pool = ThreadPoolExecutor(1, thread_name_prefix=f"job-{self.id}-ahead")
        self._ahead = pool.submit(in_this_context(fill))
        pool.shutdown(wait=False)

    def ahead_within(self, seconds: float) -> Filled | None:
        """Return the rows of the step begun by `start_ahead`, if it succeeds so soon."""
        if self._ahead is None:
            return None
        wait([self._ahead], seconds)
        return self._ahead.result() if self._ahead.done() and self._ahead.exception() is None else None

    def take_ahead(self) -> Future[Filled] | None:
        """Return the step begun by `start_ahead`, to the first caller only."""
        ahead, self._ahead = self._ahead, None
        return ahead

    def give_up(self) -> None:
        """Stop and remove all that was begun, because the job cannot be stored.

        Files stay if the lake may have them: a commit that fails may have succeeded. If it has not, they are deleted
        later, as orphans.
        """
        self.controls.stop(self.controls.is_cancelled)
        if self._ahead is not None:
            wait([self._ahead])
            with suppress(DuckDBError):
                self.store.reload()
                if not self.is_created:
                    remove_tree(self.data)
            self.remove_staging()

    def remove_staging(self) -> None:
        """Remove the partial results and the progress of a job that is over."""
        self.progress.end()
        remove_tree(self.staging)

    @property
    def is_created(self) -> bool:
        """Whether the last step is committed."""
        replaces = self.relation.replaces
        relation = self.store.catalog.by_id.get(self.id if replaces is None else replaces)
        return relation is not None and relation.created and relation.definition_id == self.id

    @property
    def is_measured(self) -> bool:
        """Whether the time since `began` is that of the work and of the group's start, and not of a receiver."""
        is_usual = self.job.rate_limit is None and not self.relation.is_sink and self.edit is None
        return self.is_undisturbed and is_usual

    def await_group(self) -> None:
        """Wait for the group. Raises Error 53000 if it cannot be had."""
        asked = time.monotonic()
        self.cores = self.group.get().size.all_cores
        self.start_s += time.monotonic() - asked

    @property
    def is_over(self) -> bool:
        """Whether the view is created, and maybe dropped since."""
        return self.is_created or self.id not in self.store.catalog.by_id

    def has_ended(self) -> bool:
        """As `is_over`, after a failure that may have followed a commit."""
        self.store.reload()
        return self.is_over

    @property
    def is_planned(self) -> bool:
        """Whether its start is pinned and its steps are stored, by this server or an earlier one."""
        return self.job.status == CREATING

    def now(self, cursor: Cursor) -> Epoch:
        return Epoch(self.lake.newest(cursor), time.time_ns() // 1000)

    @property
    def staging(self) -> Place:
        """The directory of partial results, which are kept over restarts until the job ends."""
        return _staging(self.lake.staging_path, self.id)

    @property
    def data(self) -> Place:
        """The directory where Spark writes the files of the view and its states."""
        return self.lake.data_path / f"job_{self.id}"

    def tell_limit(self, limit: int | None) -> None:
        """Store that the job waits if its rate limit is 0; paused because of its cost, it has no group then."""
        if limit != 0:
            self.paused_because = None
            self.wait_because(None)
            return
        self.wait_because(self.paused_because or "the rate limit is 0")
        if self.paused_because is not None:
            self.group.release()

    def wait_because(self, reason: str | None) -> None:
        """Store in the catalog why the job waits; None when it does not."""
        shown = reason or self._slowed
        if shown != self._waiting:
            with self.store.change() as cursor:
                set_job_waiting(cursor, self.id, shown)
            self._waiting = shown

    def slow_because(self, reason: str | None, event: tuple[str, Mapping[str, object]] | None) -> None:
        """Store in the catalog why the job is slowed, None when it is not, and an event if one is given."""
        before, self._slowed = self._slowed, reason
        with self.store.change() as cursor:
            if event is not None:
                self.store.add_event(cursor, event[0], self.id, event[1])
            if self._waiting == before:  # else another reason stands, which says more
                set_job_waiting(cursor, self.id, reason)
                self._waiting = reason

    @property
    def shares_a_machine(self) -> bool:
        """Whether the job runs on machines where views run, too: a group of its own may have others."""
        return not self.is_serverless or self._groups.are_on_this_machine

    @property
    def barrier_target_ms(self) -> int:
        """How long barriers of running views may take beside the job, in ms; 0 for any time."""
        relation = self.store.catalog.by_id.get(self.id, self.relation)
        own = relation.streaming.barrier_latency_target_ms
        return self.settings.barrier_target_ms() if own is None else own

    def set_pace(self, pace: Pace) -> None:
        """Let the job take this share of its machines from now on; running tasks of Spark follow."""
        self.pace = pace
        share, told, self._told_share = self._share, self._told_share, pace.share
        if share is None or pace.share == told:
            return
        with suppress(OSError):  # the disk is full; the tasks keep their share
            if not pace.is_slowed:
                share.unlink(missing_ok=True)
                return
            share.parent.mkdir(parents=True, exist_ok=True)
            new = share.with_suffix(".new")
            new.write_text(str(pace.share))
            new.replace(share)

    @property
    def _share(self) -> Path | None:
        """The file that tells tasks of the job's share; None in a bucket, where each look would be a request."""
        return self.staging / "share" if isinstance(self.staging, Path) else None

    def _waits_no_longer(self, reason: str) -> None:
        """Remove a reason to wait, if it is still the newest."""
        if self._waiting == reason:
            self.wait_because(None)

    def retrying(self, step: Callable[[], None], since: int | None = None) -> None:
        """Run a step until it succeeds, at most ATTEMPTS times. Raises the last failure.

        `since` are the controls under which the step was chosen; None means the present ones. Raises ControlsChanged
        when changed controls interrupted it.
        """
        since = self.controls.choose(since)
        for attempt in range(1, ATTEMPTS + 1):
            self._step.attempt = attempt
            try:
                self.controls.check_step()
                step()
            except AlreadyDone:
                self.store.reload()
                return
            except (DuckDBError, OSError, *SparkError) as error:
                self.controls.check()
                if self.controls.version != since:
                    raise ControlsChanged from error
                logger.warning("attempt %d: %s", attempt, message_of(error))
                STEP_RETRIES.inc()
                self.is_undisturbed = False
                if attempt == ATTEMPTS:
                    raise
                self._step.failed = f"retrying after an error: {message_of(error)}"
                with suppress(DuckDBError):  # if nothing can be written, the reason is not stored either
                    self.wait_because(self._step.failed)
                self.controls.pause(0.5 * attempt, since)
            else:
                self._runs_again()
                return

    def check_retry(self, cursor: Cursor, step: int, fragments: Iterable[int]) -> None:
        """Raise AlreadyDone for a step that this thread tries again after its commit.

        The written files belong to the lake then, and must not be written again.
        """
        if self._step.attempt > 1:
            if self.has_ended():  # together with the step's rows
                raise AlreadyDone
            check_step(cursor, self.id, step, fragments)

    def _runs_again(self) -> None:
        """Remove the reason to wait after a failure of this thread's step, which runs again or has succeeded."""
        failed, self._step.failed = getattr(self._step, "failed", None), None
        if failed is not None:
            self._waits_no_longer(failed)

    def planning(self, plan: Callable[[], None]) -> None:
        """Plan a job that is not planned yet. Changed controls do not interrupt planning."""
        while not self.is_planned:
            with suppress(ControlsChanged):
                self.retrying(plan)

    def begin(self, start: Start) -> None:
        """Store where the job starts; from here on it survives a restart. Earlier slices are forgotten."""
        with self.store.change() as transaction:
            start_job(transaction, self.job, start)
        self._fresh = start

    def fresh_start(self) -> Start | None:
        """Return the start of a job that has done nothing yet, to the first caller only.

        Otherwise the lake has the position.
        """
        fresh, self._fresh = self._fresh, None
        return fresh

    @property
    def reads_nothing(self) -> bool:
        """Whether only later changes count, so that there is nothing to fill."""
        return self.relation.is_sink and not self.relation.sink.has_snapshot

    # Engines

    @lazy
    def in_process(self) -> bool:
        """Whether the server itself reads the upstreams, because there is little data and the settings allow it."""
        limit, job = self.settings.in_process_rows(), self.job
        # A named resource group is meant to do the work. A resumed job stays with its engine.
        if (
            limit < 0
            or self.is_serverless
            or job.resource_group != DEFAULT_GROUP
            or (self.is_planned and not self.reads_on and self.edit is None)
        ):
            return False
        return self.upstream_rows <= limit

    @property
    def reads_on(self) -> bool:
        """Whether the job keeps positions instead of slices."""
        if self.edit is not None:
            return False
        if self.is_planned:
            return not (self._fresh.slices if self._fresh is not None else load_slices(self.lake.cursor(), self.id)[0])
        return self.job.strategy != SNAPSHOT or self.job.rate_limit is not None or self.in_process

    @lazy
    def upstream_rows(self) -> int:
        """The rows of all inputs, as of the first use."""
        cursor = self.lake.cursor()
        snapshot = self.lake.newest(cursor)
        with at_one_moment(cursor):  # else each query reads the lake's catalog anew
            return sum(self.row_count(cursor, scan.relation, snapshot) for scan in self.filling.plan.scans)

    def row_count(self, cursor: Cursor, relation: Relation, snapshot: int) -> int:
        """As `executor.backfill.slicing.row_count`. All inputs are counted together, and the counts are kept."""
        counted = relation.lake_table, snapshot
        if counted not in self._counted:
            tables = {scan.relation.lake_table for scan in self.filling.plan.scans}
            with closing(self.lake.cursor()) as own, at_one_moment(own):  # `cursor` may be in a transaction
                found = contents(own, tables, snapshot)
                self._counted |= {(table, snapshot): count_rows(own, table, found[table]) for table in found}
        if counted not in self._counted:  # no input, or dropped just now, which DuckLake tells
            self._counted[counted] = row_count(cursor, relation, snapshot)
        return self._counted[counted]

    @property
    def actors(self) -> int:
        """The number of parallel parts of the job's work."""
        return 1 if self.in_process else actors_of(self.job, self.group.get().size.all_cores)

    def _warm_up(self, group: Group) -> None:
        """Let a new group load Spark's classes and start a worker for this job, while the server plans the slices."""

        def run() -> None:
            with suppress(Exception):  # the job's own steps fail in the same way, and tell
                warm_up(group, self.lake, group.size.replicas, self)

        threading.Thread(target=in_this_context(run), name=f"job-{self.id}-warm-up", daemon=True).start()

    @contextmanager
    def spark(
        self, purpose: str, data: Place | None = None, reads: Rows = NO_ROWS, tasks: int = 1
    ) -> Iterator[SparkEngine]:
        """Yield an engine of the job's group for a step that reads rows of some fragments; a cancel interrupts it.

        `data` is as in SparkEngine. Each of the step's `tasks` reads about as many rows.
        """
        self.controls.check()
        name = f"{purpose}_{self.id}"
        group = self.group.get()
        share = Share(str(self._share)) if self._share is not None and self.shares_a_machine else None
        engine_of_group = spark_engine(
            group, self.lake, name, data, self.controls.check_step, self.row_count, self, share
        )
        with (
            self._groups.calls.watched(
                self.id, purpose, self.wait_because, self._waits_no_longer, lambda: group.silent_since
            ),
            engine_of_group as engine,
            self.controls.interruptible(engine.interrupt),
            self.progress.running(reads, [engine.says(task) for task in range(tasks)]),
        ):
            self._runs_again()
            yield engine

    @contextmanager
    def duckdb(self, cursor: Cursor) -> Iterator[DuckDBEngine]:
        """Yield the engine in process, on a cursor that a cancel interrupts."""
        self.controls.check()
        self.lake.threads.provide(lambda: self.upstream_rows)
        with self.controls.interruptible(cursor.interrupt):
            self._runs_again()
            yield DuckDBEngine()

    @contextmanager
    def engine(self, purpose: str, cursor: Cursor, data: Place, reads: Rows) -> Iterator[Engine]:
        """Yield the engine that reads the rows of the upstreams."""
        with self.duckdb(cursor) if self.in_process else self.spark(purpose, data, reads) as engine:
            yield engine

    def advance(
        self, cursor: Cursor, versions: Mapping[str, Version], changes: Changes, old: Epoch, new: Epoch
    ) -> None:
        """Advance the view to an epoch by the changes that the cursor has, and commit that.

        Few changes are computed in process, as for created views; many on Spark.
        """
        advance = None
        if changes.inputs:
            in_process = self.in_process or self.settings.duckdb_takes(changes.rows)
            with self.duckdb(cursor) if in_process else self.spark("log") as engine:
                advance = engine.advance(cursor, self.view, versions, changes)
        self.controls.check()
        with self.lake.transaction(cursor, advance.tables if advance is not None else ()):
            if advance is not None:
                advance.apply(cursor)
            move_job_epoch(cursor, self.id, old, new)
        self.store.reload()
