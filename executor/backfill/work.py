"""The shared parts of one backfill's steps: its view and resource group, and stopping, pausing and retrying."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.places import Place, remove_tree
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.lazy import lazy
from sparkwave.catalog.log_context import in_this_context
from sparkwave.catalog.model import CREATED, CREATING, DEFAULT_GROUP, Epoch, Job, Position, Relation
from sparkwave.catalog.stores.epoch_store import stored_epoch
from sparkwave.catalog.stores.job_store import (
    AlreadyDone,
    Start,
    check_step,
    load_jobs,
    load_slices,
    start_job,
)
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.view_audits import DIFFERENT, newest_results
from sparkwave.executor.backfill.ahead import Ahead
from sparkwave.executor.backfill.controls import Controls, ControlsChanged
from sparkwave.executor.backfill.input_counts import InputCounts
from sparkwave.executor.backfill.input_statistics import bytes_read
from sparkwave.executor.backfill.job_group import JobGroup
from sparkwave.executor.backfill.machine_share import MachineShare
from sparkwave.executor.backfill.progress import Progress
from sparkwave.executor.backfill.retries import Retries
from sparkwave.executor.backfill.waiting import Waiting
from sparkwave.executor.epochs.advance import Fill, View
from sparkwave.executor.spark.applications import Size
from sparkwave.executor.spark.groups import Group, Groups
from sparkwave.executor.spark.spark_engine import warm_up
from sparkwave.planner.backfill.strategy import SNAPSHOT
from sparkwave.planner.plan.edits import edit
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_definition

logger = logging.getLogger(__name__)

# An edit that computes aggregates of stored groups is worth it if it reads so little of what the whole query reads, or
# so few bytes; it joins the groups besides.
LITTLE, FEW_BYTES = 0.5, 1_000_000


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
        # For measuring: the start (monotonic), the seconds until the group was there, and its cores; a job that was
        # resumed or held back tells nothing about the time of others.
        self.began, self.start_s, self.cores = time.monotonic(), 0.0, 0
        self.is_undisturbed = True
        self.paused_because: str | None = None  # why the server itself has set the rate limit to 0
        self.started = threading.Event()  # the job is CREATING: in the background it does not need its permit any more
        self.controls = Controls(lambda: self.job.rate_limit is not None)
        self.waiting = Waiting(store, lambda: self.id, job.waiting)
        self.retries = Retries(store, self.controls, self.waiting)
        self.share = MachineShare(lambda: self.staging, store.lake.threads)
        self.inputs = InputCounts(store.lake, lambda: self.filling.plan.scans)
        self.ahead = Ahead()
        self.calls = groups.calls
        self.group = JobGroup(
            store,
            groups,
            settings.serverless_size,
            lambda: self.job,
            self.controls,
            self.waiting.because,
            lambda: frozenset(self.relation.upstreams),
            self._warm_up,
        )
        self._groups = groups
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
        if plan is None or position is None or not (self.is_planned or self._reads_less(plan)):
            return None
        return Edit(plan, position)

    def _reads_less(self, plan: StreamPlan) -> bool:
        """Return whether an edit reads much less than the whole query, if it computes aggregates of stored groups."""
        if all(state.computed is None for state in plan.states):
            return True
        with closing(self.lake.cursor()) as cursor, at_one_moment(cursor):
            snapshot = self.lake.newest(cursor)
            edited, whole = (bytes_read(cursor, each, snapshot) for each in (plan, self.view.plan))
        return edited <= max(whole * LITTLE, FEW_BYTES)

    def _shown(self, view: Relation) -> Position | None:
        """Return the position of a view's stored rows; None for a view that is behind or known to be wrong."""
        cursor = self.lake.cursor()
        with at_one_moment(cursor):
            snapshot, epoch = self.lake.snapshot(cursor), stored_epoch(cursor)
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

    def give_up(self) -> None:
        """Stop and remove all that was begun, because the job cannot be stored.

        Files stay if the lake may have them: a commit that fails may have succeeded. If it has not, they are deleted
        later, as orphans.
        """
        self.controls.stop(self.controls.is_cancelled)
        if self.ahead.wait():
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
        return self.is_undisturbed and not self.retries.has_failed and is_usual

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
        """Return what `is_over` is by the stored catalog: a failure may have followed a commit."""
        self.store.reload()
        return self.is_over

    @property
    def is_planned(self) -> bool:
        """Whether this server or an earlier one has pinned the job's start and stored the steps."""
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
            self.waiting.because(None)
            return
        self.waiting.because(self.paused_because or "the rate limit is 0")
        if self.paused_because is not None:
            self.group.release()

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

    def check_retry(self, cursor: Cursor, step: int, fragments: Iterable[int]) -> None:
        """Raise AlreadyDone for a step that this thread tries again after its commit.

        The written files belong to the lake then, and must not be written again.
        """
        if self.retries.is_again:
            if self.has_ended():  # together with the step's rows
                raise AlreadyDone
            check_step(cursor, self.id, step, fragments)

    def planning(self, plan: Callable[[], None]) -> None:
        """Plan a job that is not planned yet. Changed controls do not interrupt planning."""
        while not self.is_planned:
            with suppress(ControlsChanged):
                self.retries.run(plan)

    def begin(self, start: Start) -> None:
        """Store where the job starts; from here on the job survives a restart. Earlier slices are forgotten."""
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
        return self.inputs.total <= limit

    @property
    def reads_on(self) -> bool:
        """Whether the job keeps positions instead of slices."""
        if self.edit is not None:
            return False
        if self.is_planned:
            return not (self._fresh.slices if self._fresh is not None else load_slices(self.lake.cursor(), self.id)[0])
        return self.job.strategy != SNAPSHOT or self.job.rate_limit is not None or self.in_process

    def _warm_up(self, group: Group) -> None:
        """Let a new group load Spark's classes and start a worker for this job, while the server plans the slices."""

        def run() -> None:
            with suppress(Exception):  # the job's own steps fail in the same way, and tell
                warm_up(group, self.lake, group.size.replicas, self)

        threading.Thread(target=in_this_context(run), name=f"job-{self.id}-warm-up", daemon=True).start()
