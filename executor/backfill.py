"""Fills a creating view: slices of a pinned snapshot, then the change log, then the last step inside a barrier.

Every step commits its rows together with where it stands, so a job resumes from its last commit after any crash.
"""

from __future__ import annotations

import logging
import shutil
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from catalog import errors
from catalog.errors import Error
from catalog.lake import Cursor, DuckDBError, Lake, register_files
from catalog.model import CREATING, Epoch, Job, Relation
from catalog.names import lake_schema, literal
from catalog.store import Slice, Store
from executor.advance import Changes, View, bind_changes, internal_name, set_times
from executor.coordinator import Coordinator, message_of
from executor.feeds import Feeds
from executor.groups import Group, Groups, Size
from executor.plans import Plans
from executor.slicing import plan_slices, row_count
from executor.spark_engine import RowIds, SparkEngine, SparkError, spark_engine
from executor.versions import Version, rows_at
from planner.backfill import PARTIALS, Fragment, fragments, merge_query, slice_query, whole_query
from planner.functions.emit import DUCKDB, SPARK, to_sql

logger = logging.getLogger(__name__)

# Slices in flight at once: two keep all cores busy while one of them is in its last task or commits.
CONCURRENT_SLICES = 2
# A step that fails is tried again this often, then the job fails with the last reason.
ATTEMPTS = 3
# The change log is applied in batches until one this small (rows) is left for the barrier.
MAX_HANDOVER_ROWS = 50_000


@dataclass(frozen=True)
class Settings:
    """What a job needs to know of the configuration, read when it is needed."""

    slice_rows: Callable[[], int]
    serverless_size: Callable[[int], Size]  # for a number of upstream rows
    # Upstream rows up to which a view is filled on DuckDB, in process; -1 never.
    in_process_rows: Callable[[], int]


# Called by a job before it starts, with what tells whether to give up: waits until it may.
Admission = Callable[["BackfillJob", Callable[[], bool]], None]


class BackfillJob:
    """The creation of one view, on its own thread and resource group."""

    def __init__(
        self, store: Store, plans: Plans, groups: Groups, coordinator: Coordinator, settings: Settings, job: Job,
        admit: Admission | None = None,
    ) -> None:  # fmt: skip
        self._store = store
        self._lake: Lake = store.lake
        self._groups = groups
        self._coordinator = coordinator
        self._settings = settings
        self._admit = admit
        self.id = job.id
        self.is_serverless = job.is_serverless
        self.relation: Relation = store.catalog.by_id[job.id]
        self._view: View = plans.view(self.relation, store.catalog)
        self.started = threading.Event()  # the job is CREATING: a background statement returns now
        self.finished = threading.Event()
        self.error: Error | None = None
        self._cancelled = threading.Event()
        self._shutdown = threading.Event()
        self._engines: set[SparkEngine] = set()
        self._group: Group | None = None
        self._group_lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name=f"job-{job.id}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """Stop and forget the job. Returns at once; `finished` is set when nothing is left of it."""
        self._cancelled.set()
        self._interrupt()

    def controls_changed(self) -> None:
        """The job's rate limit or parallelism has been altered."""

    def shut_down(self) -> None:
        """The server stops: leave the job as its last commit has it."""
        self._shutdown.set()
        self._interrupt()
        self._thread.join(30)

    @property
    def _stopping(self) -> bool:
        return self._cancelled.is_set() or self._shutdown.is_set()

    def _interrupt(self) -> None:
        for engine in list(self._engines):
            try:
                engine.interrupt()
            except SparkError:
                logger.debug("interrupting job %d", self.id, exc_info=True)

    def _run(self) -> None:
        try:
            if self._admit is not None:
                self._admit(self, lambda: self._stopping)
            if self._is_small():
                self._fill_in_process()
            else:
                self._live_group()
                self._backfill()
                self._catch_up()
            self._finish()
        except BaseException as error:
            if self._shutdown.is_set():
                self.error = Error("terminating connection due to administrator command", errors.ADMIN_SHUTDOWN)
            else:
                self._give_up(error)
        finally:
            if self._group is not None and self.is_serverless:
                self._groups.destroy(self._group)
            if not self._shutdown.is_set():
                shutil.rmtree(self._staging, ignore_errors=True)
            self.started.set()
            self.finished.set()

    def _live_group(self) -> Group:
        """The job's resource group; another one when the last has died."""
        with self._group_lock:
            if self._group is None or not self._group.is_alive:
                if self._group is not None and self.is_serverless:
                    self._groups.destroy(self._group)
                    self._group = None
                self._group = self._acquire_group()
            return self._group

    def _acquire_group(self) -> Group:
        if not self.is_serverless:
            return self._groups.default(lambda: self._stopping)
        group = self._groups.provision(self._settings.serverless_size(self._upstream_rows()), lambda: self._stopping)
        with self._store.change(relations=False) as cursor:
            self._store.set_job_group(cursor, self.id, group.name)
            self._store.add_event(cursor, "SERVERLESS_BACKFILL_PROVISIONED", self.id, {"resource_group": group.name})
        return group

    # A view over little data, where that is allowed: one step, no Spark.

    def _is_small(self) -> bool:
        if self._view.plan.duckdb_only:
            return True
        limit = self._settings.in_process_rows()
        if limit < 0 or self.is_serverless:
            return False
        # A resumed job keeps the slices it was cut into.
        is_new = self._store.catalog.job_by_id[self.id].status != CREATING
        return is_new and self._upstream_rows() <= limit

    def _upstream_rows(self) -> int:
        cursor = self._lake.cursor()
        snapshot = self._lake.snapshot(cursor)
        return sum(row_count(cursor, scan.relation, snapshot) for scan in self._view.plan.scans)

    def _fill_in_process(self) -> None:
        cursor = self._lake.cursor()
        if self._store.catalog.job_by_id[self.id].status != CREATING:
            self._plan(cursor, slice_rows=sys.maxsize)
        self.started.set()
        slices, finished = self._store.slices(cursor, self.id)
        set_times(cursor, (self._epoch().time_us, self._epoch().time_us))
        for scan in self._view.plan.scans:
            query = rows_at(scan, self._epoch().snapshot)
            cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {scan.input}_new AS {query}")
        for state in self._view.plan.states:
            if not state.in_view:
                table = self._view.state_table(state)
                cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {state.name}_state AS FROM {table}")
        plan = fragments(self._view.plan, {scan.input: 0 for scan in self._view.plan.scans})
        for fragment, slice_ in zip(plan, slices, strict=True):
            if (slice_.fragment_id, slice_.id) in finished:
                continue
            target = self._view.internal_table(fragment.target) if fragment.target else self.relation.lake_name
            query = to_sql(whole_query(self._view.plan, fragment), DUCKDB)
            with self._lake.transaction(cursor):
                cursor.execute(f"INSERT INTO {target} BY NAME {query}")
                self._store.finish_slice(cursor, self.id, slice_)

    # Phase 1: the pinned snapshot, slice by slice.

    def _backfill(self) -> None:
        cursor = self._lake.cursor()
        if self._store.catalog.job_by_id[self.id].status != CREATING:
            self._plan(cursor, self._settings.slice_rows())
        self.started.set()
        slices, finished = self._store.slices(cursor, self.id)
        snapshot = self._epoch().snapshot
        # The slices are already cut, so what drives them no longer matters here.
        for fragment in fragments(self._view.plan, {scan.input: 0 for scan in self._view.plan.scans}):
            own = [s for s in slices if s.fragment_id == fragment.id]
            parts = [s for s in own if s.input is not None or len(own) == 1]
            self._run_slices(fragment, snapshot, parts, finished, is_only=len(own) == 1)
            for merge in (s for s in own if s not in parts and (s.fragment_id, s.id) not in finished):
                self._retrying(lambda m=merge, f=fragment: self._merge(f, m))  # type: ignore[misc]

    def _plan(self, cursor: Cursor, slice_rows: int) -> None:
        """Pin the epoch and write the slices down; from here on the job survives a restart."""
        epoch = self._now(cursor)
        slices = plan_slices(cursor, self._view.plan, epoch.snapshot, slice_rows)
        with self._store.change(relations=False) as transaction:
            self._store.start_job(transaction, self.id, epoch, slices)

    def _now(self, cursor: Cursor) -> Epoch:
        return Epoch(self._lake.snapshot(cursor), time.time_ns() // 1000)

    def _epoch(self) -> Epoch:
        """Up to where the job has applied its upstreams."""
        return self._store.catalog.job_by_id[self.id].epoch

    def _run_slices(
        self, fragment: Fragment, snapshot: int, slices: list[Slice], finished: set[tuple[int, int]], is_only: bool
    ) -> None:
        todo = [s for s in slices if (s.fragment_id, s.id) not in finished]
        with ThreadPoolExecutor(CONCURRENT_SLICES, thread_name_prefix=f"job-{self.id}-slice") as pool:
            futures: set[Future[None]] = set()
            for slice_ in todo:
                if len(futures) >= CONCURRENT_SLICES:
                    _, futures = _first_done(futures)
                run = lambda s=slice_: self._run_slice(fragment, snapshot, s, is_only)  # noqa: E731
                futures.add(pool.submit(self._retrying, run))
            while futures:
                _, futures = _first_done(futures)

    def _run_slice(self, fragment: Fragment, snapshot: int, slice_: Slice, is_only: bool) -> None:
        cursor = self._lake.cursor()
        plan = self._view.plan
        with spark_engine(self._live_group(), self._lake, f"slice_{self.id}") as engine, self._running(engine):
            for scan in plan.scans:
                # A cancel stops what Spark runs, not what is about to run.
                self._check()
                whole = is_only or scan.input != slice_.input or slice_.row_id_from is None
                rows = None if whole else RowIds(slice_.row_id_from or 0, slice_.row_id_to)
                engine.bind_slice(cursor, scan, snapshot, rows)
            self._bind_states(engine, cursor)
            if plan.reads_now:
                engine.set_times((self._epoch().time_us, self._epoch().time_us))
            if is_only:
                query = whole_query(plan, fragment)
            else:
                assert slice_.input is not None
                query = slice_query(plan, fragment, slice_.input)
            is_partial = fragment.end is not None and not is_only
            self._check()
            files = engine.run_to_parquet(to_sql(query, SPARK), self._target(fragment, slice_, is_partial))
        self._check()
        self._commit_slice(cursor, fragment, slice_, [] if is_partial else files)

    def _merge(self, fragment: Fragment, slice_: Slice) -> None:
        cursor = self._lake.cursor()
        with spark_engine(self._live_group(), self._lake, f"merge_{self.id}") as engine, self._running(engine):
            partials = sorted(str(file) for file in self._staging.glob(f"f{fragment.id}_s*/*.parquet"))
            engine.bind_files(PARTIALS, partials)
            self._bind_states(engine, cursor)
            query = to_sql(merge_query(self._view.plan, fragment), SPARK)
            files = engine.run_to_parquet(query, self._target(fragment, slice_, is_partial=False))
        self._check()
        self._commit_slice(cursor, fragment, slice_, files)

    def _bind_states(self, engine: SparkEngine, cursor: Cursor) -> None:
        for state in self._view.plan.states:
            if not state.in_view:
                engine.bind_query(cursor, f"{state.name}_state", f"FROM {self._view.state_table(state)}")

    def _commit_slice(self, cursor: Cursor, fragment: Fragment, slice_: Slice, files: list[str]) -> None:
        """Rows and cursor together: register the files and note the slice, or neither."""
        relation = self.relation
        table = internal_name(self.id, self._view.plan, fragment.target) if fragment.target else relation.name
        filled = [file for file in files if _file_rows(cursor, file)]
        with self._lake.transaction(cursor):
            register_files(cursor, lake_schema(relation.database, relation.schema), table, filled)
            self._store.finish_slice(cursor, self.id, slice_)

    @property
    def _staging(self) -> Path:
        """Partial results; kept over restarts until the job ends."""
        return self._lake.staging_path / f"job_{self.id}"

    def _target(self, fragment: Fragment, slice_: Slice, is_partial: bool) -> Path:
        name = f"f{fragment.id}_s{slice_.id}"
        target = self._staging / name if is_partial else self._lake.data_path / f"job_{self.id}" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    # Phase 2: the change log from the pinned snapshot on.

    def _catch_up(self) -> None:
        while True:
            self._check()
            cursor = self._lake.cursor()
            old, new = self._epoch(), self._now(cursor)
            versions = {s.input: Version(s.relation, old.snapshot, new.snapshot) for s in self._view.plan.scans}
            times = (old.time_us, max(old.time_us, new.time_us))
            changes = bind_changes(cursor, self._view, versions, Feeds(self._lake, cursor), times)
            if changes.rows <= MAX_HANDOVER_ROWS:
                return
            self._retrying(lambda: self._apply_log(cursor, versions, changes, new))  # noqa: B023

    def _apply_log(self, cursor: Cursor, versions: dict[str, Version], changes: Changes, new: Epoch) -> None:
        with spark_engine(self._live_group(), self._lake, f"log_{self.id}") as engine, self._running(engine):
            advance = engine.advance(cursor, self._view, versions, changes)
            with self._lake.transaction(cursor):
                advance.apply(cursor)
                self._store.set_job_epoch(cursor, self.id, new)
        self._store.reload(relations=False)

    # Phase 3: the last step, inside a barrier.

    def _finish(self) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            self._check()
            handover = self._coordinator.hand_over(self.id)
            while not handover.done.wait(0.1):
                if self._shutdown.is_set():
                    return
            if handover.error is None:
                return
            if attempt == ATTEMPTS:
                raise handover.error

    def _check(self) -> None:
        if self._stopping:
            raise Error("canceling statement due to user request", errors.QUERY_CANCELED)

    def _running(self, engine: SparkEngine) -> _Running:
        self._check()
        return _Running(self._engines, engine)

    def _retrying(self, step: Callable[[], None]) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                step()
                return
            except (DuckDBError, OSError, *SparkError) as error:
                self._check()
                logger.warning("job %d, attempt %d: %s", self.id, attempt, message_of(error))
                if attempt == ATTEMPTS:
                    raise
                time.sleep(0.5 * attempt)

    def _give_up(self, error: BaseException) -> None:
        """Remove everything the job made. The name is free again; the reason stays in the event log."""
        if self._cancelled.is_set():
            self.error = Error("canceling statement due to user request", errors.QUERY_CANCELED)
        else:
            logger.error("job %d failed", self.id, exc_info=error)
            self.error = error if isinstance(error, Error) else Error(message_of(error))
        with self._coordinator.barrier_lock, self._store.change() as cursor:
            self._store.drop_relation(cursor, self.relation)
            event = "CANCEL_STREAM_JOB" if self._cancelled.is_set() else "CREATE_STREAM_JOB_FAIL"
            info = {"name": self.relation.name, "definition": self.relation.definition, "error": self.error.message}
            self._store.add_event(cursor, event, self.id, info)
        shutil.rmtree(self._lake.data_path / f"job_{self.id}", ignore_errors=True)


class _Running:
    """Registers an engine while it works, so that a cancel reaches it."""

    def __init__(self, engines: set[SparkEngine], engine: SparkEngine) -> None:
        self._engines, self._engine = engines, engine

    def __enter__(self) -> None:
        self._engines.add(self._engine)

    def __exit__(self, *_: object) -> None:
        self._engines.discard(self._engine)


def _first_done(futures: set[Future[None]]) -> tuple[set[Future[None]], set[Future[None]]]:
    done, rest = wait(futures, return_when=FIRST_COMPLETED)
    for future in done:
        future.result()
    return done, rest


def _file_rows(cursor: Cursor, file: str) -> int:
    row = cursor.execute(f"SELECT num_rows FROM parquet_file_metadata({literal(file)})").fetchone()
    return row[0] if row else 0
