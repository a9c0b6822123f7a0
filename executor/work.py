"""What the steps of one backfill share: its view, its resource group, and how it is stopped, paused and retried."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from catalog import errors
from catalog.errors import Error
from catalog.lake import Cursor, DuckDBError, Lake
from catalog.model import CREATING, Epoch, Job, Relation
from catalog.store import AlreadyDone, Store
from executor.advance import Changes, Engine, View
from executor.coordinator import message_of
from executor.duckdb_engine import DuckDBEngine
from executor.groups import Group, Groups, Size
from executor.slicing import row_count
from executor.spark_engine import Exchange, SparkEngine, SparkError, spark_engine
from executor.versions import Version
from planner.strategy import SNAPSHOT

logger = logging.getLogger(__name__)

# A step that fails is tried again this often, then the job fails with the last reason.
ATTEMPTS = 3


@dataclass(frozen=True)
class Settings:
    """What a job needs to know of the configuration, read when it is needed."""

    slice_rows: Callable[[], int]
    serverless_size: Callable[[int], Size]  # for a number of upstream rows
    # Upstream rows up to which a view is filled on DuckDB, in process; -1 never.
    in_process_rows: Callable[[], int]
    # Whether DuckDB takes up this many changed rows of a creating view.
    duckdb_takes: Callable[[int], bool]


class ControlsChanged(Exception):
    """The rate limit or the parallelism was changed while a step ran."""


class Work:
    """The tools of one creating job. Used by its thread and those of its slices."""

    def __init__(self, store: Store, groups: Groups, settings: Settings, view: View, job: Job) -> None:
        self.store = store
        self.lake: Lake = store.lake
        self.settings = settings
        self.view = view
        self.id = job.id
        self.is_serverless = job.is_serverless
        self.started = threading.Event()  # the job is CREATING: a background statement returns now
        self.is_cancelled = threading.Event()
        self.is_shut_down = threading.Event()
        self._controls_changed = threading.Event()
        self._groups = groups
        self._group: Group | None = None
        self._group_lock = threading.Lock()
        self._engines: set[SparkEngine] = set()
        self._cursor = self.lake.cursor()
        self._waiting: str | None = job.waiting

    @property
    def relation(self) -> Relation:
        return self.view.relation

    @property
    def job(self) -> Job:
        """The job as the catalog has it now."""
        return self.store.catalog.job_by_id[self.id]

    @property
    def is_created(self) -> bool:
        """The last step is committed."""
        relation = self.store.catalog.by_id.get(self.id)
        return relation is not None and relation.created

    @property
    def is_planned(self) -> bool:
        """Its start is pinned and its steps are written down, by this server or one before it."""
        return self.job.status == CREATING

    def now(self, cursor: Cursor) -> Epoch:
        return Epoch(self.lake.snapshot(cursor), time.time_ns() // 1000)

    @property
    def staging(self) -> Path:
        """Partial results; kept over restarts until the job ends."""
        return self.lake.staging_path / f"job_{self.id}"

    @property
    def data(self) -> Path:
        """Where Spark writes the files of the view and its states."""
        return self.lake.data_path / f"job_{self.id}"

    # Stopping

    def stop(self, event: threading.Event) -> None:
        """Set `is_cancelled` or `is_shut_down` and stop what runs."""
        event.set()
        self._controls_changed.set()
        self._interrupt()

    def controls_changed(self) -> None:
        """The rate limit or a parallelism is another: a step that may be larger than a limit allows is interrupted."""
        self._controls_changed.set()
        if self.job.rate_limit is not None:
            self._interrupt()

    @property
    def is_stopping(self) -> bool:
        return self.is_cancelled.is_set() or self.is_shut_down.is_set()

    def check(self) -> None:
        """Raises Error 57014 when the job is to stop."""
        if self.is_stopping:
            raise Error("canceling statement due to user request", errors.QUERY_CANCELED)

    def cursor(self) -> Cursor:
        """A new cursor for a step in process, which a cancel reaches."""
        self._cursor = self.lake.cursor()
        return self._cursor

    def _interrupt(self) -> None:
        self._cursor.interrupt()
        for engine in list(self._engines):
            try:
                engine.interrupt()
            except SparkError:
                logger.debug("interrupting job %d", self.id, exc_info=True)

    def pause(self, seconds: float) -> None:
        """Sleep, less when the job is stopped or its controls change."""
        self._controls_changed.wait(seconds)
        self.check()
        self._controls_changed.clear()

    def wait_because(self, reason: str | None) -> None:
        """Say in the catalog why the job does not move; None when it does."""
        if reason != self._waiting:
            with self.store.change(relations=False) as cursor:
                self.store.set_job_waiting(cursor, self.id, reason)
            self._waiting = reason

    def retrying(self, step: Callable[[], None]) -> None:
        """Run a step until it succeeds, ATTEMPTS times at most. Raises ControlsChanged when that interrupted it."""
        for attempt in range(1, ATTEMPTS + 1):
            self._controls_changed.clear()
            try:
                step()
                return
            except AlreadyDone:
                self.store.reload(relations=False)
                return
            except (DuckDBError, OSError, *SparkError) as error:
                self.check()
                if self._controls_changed.is_set():
                    raise ControlsChanged from error
                logger.warning("job %d, attempt %d: %s", self.id, attempt, message_of(error))
                if attempt == ATTEMPTS:
                    raise
                self.wait_because(f"retrying after an error: {message_of(error)}")
                time.sleep(0.5 * attempt)
        raise AssertionError("unreachable")

    # Engines

    @cached_property
    def in_process(self) -> bool:
        """Whether DuckDB reads the upstreams: because Spark may not, or little data where that is allowed."""
        if self.view.plan.duckdb_only:
            return True
        limit = self.settings.in_process_rows()
        # A job that is resumed stays with the engine it began with.
        if limit < 0 or self.is_serverless or (self.is_planned and not self.reads_on):
            return False
        return self.upstream_rows() <= limit

    @property
    def reads_on(self) -> bool:
        """Whether the job keeps positions, not slices."""
        if self.is_planned:
            return not self.store.slices(self.lake.cursor(), self.id)[0]
        return self.job.strategy != SNAPSHOT or self.job.rate_limit is not None or self.in_process

    def upstream_rows(self) -> int:
        cursor = self.lake.cursor()
        snapshot = self.lake.snapshot(cursor)
        return sum(row_count(cursor, scan.relation, snapshot) for scan in self.view.plan.scans)

    def group(self) -> Group:
        """The job's resource group; another one when the last has died."""
        with self._group_lock:
            if self._group is None or not self._group.is_alive:
                self._release_group()
                self._group = self._acquire_group()
            return self._group

    def _acquire_group(self) -> Group:
        if not self.is_serverless:
            return self._groups.default(lambda: self.is_stopping)
        group = self._groups.provision(self.settings.serverless_size(self.upstream_rows()), lambda: self.is_stopping)
        with self.store.change(relations=False) as cursor:
            self.store.set_job_group(cursor, self.id, group.name)
            self.store.add_event(cursor, "SERVERLESS_BACKFILL_PROVISIONED", self.id, {"resource_group": group.name})
        return group

    def release_group(self) -> None:
        """Destroy the job's own group, if it has one."""
        with self._group_lock:
            self._release_group()

    def _release_group(self) -> None:
        if self._group is not None and self.is_serverless:
            self._groups.destroy(self._group)
        self._group = None

    @contextmanager
    def spark(self, purpose: str, exchange: Exchange | None = None, data: Path | None = None) -> Iterator[SparkEngine]:
        """An engine of the job's group, which a cancel reaches. `exchange` and `data` are as in SparkEngine."""
        self.check()
        with spark_engine(self.group(), self.lake, f"{purpose}_{self.id}", data, exchange) as engine:
            self._engines.add(engine)
            try:
                yield engine
            finally:
                self._engines.discard(engine)

    @contextmanager
    def engine(self, purpose: str, exchange: Exchange | None = None, data: Path | None = None) -> Iterator[Engine]:
        """The engine that reads the upstreams."""
        if self.in_process:
            yield DuckDBEngine()
            return
        with self.spark(purpose, exchange, data) as engine:
            yield engine

    def advance(
        self, cursor: Cursor, versions: Mapping[str, Version], changes: Changes, old: Epoch, new: Epoch
    ) -> None:
        """Take the view to an epoch with the changes that the cursor has, on the engine for so many, and commit that.

        Few changes are taken up in process, as those of created views are.
        """
        in_process = self.in_process or self.settings.duckdb_takes(changes.rows)
        with nullcontext(DuckDBEngine()) if in_process else self.spark("log") as engine:
            advance = engine.advance(cursor, self.view, versions, changes) if changes.inputs else None
            self.check()
            with self.lake.transaction(cursor):
                if advance is not None:
                    advance.apply(cursor)
                self.store.move_job_epoch(cursor, self.id, old, new)
        self.store.reload(relations=False)
