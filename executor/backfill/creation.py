"""The creation of one view: the fill by its strategy, then the change log, then the last step inside a barrier.

An index is created in the same way. A sink delivers the rows that it has read before the last step.

Every step commits its rows together with its position, so that a job resumes from its last commit after any crash.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, canceled
from sparkwave.catalog.lake.places import remove_tree
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.log_context import logged
from sparkwave.catalog.stores.event_store import add_event
from sparkwave.catalog.stores.job_store import Start, load_slices
from sparkwave.catalog.stores.relation_store import drop_relation
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill import arrangement, one_commit, snapshot
from sparkwave.executor.backfill.controls import ControlsChanged
from sparkwave.executor.backfill.job_engines import advance_job
from sparkwave.executor.backfill.progress import Rows
from sparkwave.executor.backfill.retries import ATTEMPTS
from sparkwave.executor.backfill.spending import held_to_its_cost
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.backfill.yielding import giving_way
from sparkwave.executor.epochs.advance import bind_changes
from sparkwave.executor.epochs.coordinator import Coordinator
from sparkwave.executor.epochs.feeds import Feeds
from sparkwave.executor.epochs.versions import Version
from sparkwave.executor.faults import error_of, message_of
from sparkwave.executor.sinks import later_changes
from sparkwave.executor.sinks.first_delivery import deliver_all

logger = logging.getLogger(__name__)

# The change log is applied in batches until one this small (rows) is left for the barrier.
MAX_HANDOVER_ROWS = 50_000
# Seconds to wait for a barrier before `jobs.waiting` tells of it.
SOON_SECONDS = 0.3
# The value of `jobs.waiting` after that; the system views recognise its first words.
HANDING_OVER = "handing over: waiting for the next barrier"


def start_of(work: Work) -> Start:
    """Where a job starts: by slices of a snapshot or by positions."""
    return arrangement.start(work) if work.reads_on else snapshot.start(work)


def whole_rows(work: Work, start: Start) -> Rows | None:
    """Return what a step reads that fills the view alone, by fragment; None if there is more than one step."""
    return snapshot.whole_rows(start) if start.slices else arrangement.whole_rows(work, start)


# Called by a job before it starts, with a function that tells whether to give up. Waits until the job may start.
Admission = Callable[["BackfillJob", Callable[[], bool]], None]


class BackfillJob:
    """One creating job, on its own thread and resource group."""

    def __init__(
        self,
        store: Store,
        coordinator: Coordinator,
        work: Work,
        admit: Admission | None = None,
        note: Callable[[Work], None] = lambda work: None,
    ) -> None:
        self._store = store
        self._coordinator = coordinator
        self._admit = admit
        self._note = note  # called when the relation is created
        self.id = work.id
        self._relation = work.relation
        self._work = work
        self.started = self._work.started
        self.finished = threading.Event()
        self.error: Error | None = None
        self._thread = threading.Thread(target=self._run, name=f"job-{work.id}", daemon=True)

    @classmethod
    def over(cls, store: Store, coordinator: Coordinator, work: Work) -> BackfillJob:
        """Return a job that has nothing left to do."""
        job = cls(store, coordinator, work)
        job.started.set()
        job.finished.set()
        return job

    def start(self) -> None:
        self._thread.start()

    def cancel(self) -> None:
        """Stop and remove the job. Returns at once; `finished` is set when nothing is left of the job."""
        self._work.controls.stop(self._work.controls.is_cancelled)

    def shut_down(self) -> None:
        """Stop the job because the server stops.

        The job stays as its last commit left it. Returns at once, as `cancel` does.
        """
        self._work.controls.stop(self._work.controls.is_shut_down)

    def wait_until_stopped(self, timeout_s: float) -> bool:
        """Wait for the end of a stopped job, and interrupt all that it still starts. Returns whether it has ended."""
        deadline = time.monotonic() + timeout_s
        while not self.finished.wait(0.5) and time.monotonic() < deadline:
            self._work.controls.interrupt()
        return self.finished.is_set()

    def rows_read(self) -> dict[int, int]:
        """Return how many rows the job has read, by fragment, including rows of running steps."""
        return self._work.progress.rows()

    @property
    def share(self) -> float:
        """The part of its machines that the job may take: see `executor.backfill.pace`."""
        return self._work.share.pace.share

    def controls_changed(self) -> None:
        """Tell the job that its rate limit or parallelism has changed."""
        self._work.controls.changed()

    def _run(self) -> None:
        with logged(job_id=self.id):
            self._create()

    def _create(self) -> None:
        work = self._work
        logger.info("creating %s %s", work.relation.kind, work.relation.qualified_name)
        try:
            work.group.announce()
            if self._admit is not None:
                self._admit(self, lambda: work.controls.is_stopping)
                work.began = time.monotonic()
            if work.reads_nothing:
                later_changes.begin(work, self._coordinator)
            else:
                with held_to_its_cost(work):
                    if not work.in_process:
                        work.await_group()  # before anything is pinned: a job that cannot get its group has not started
                    with giving_way(work, self._coordinator.times):
                        self._fill()
            if work.is_over:
                self._note_created()
                return
            if work.job.delivered is None:
                if work.job.deliver_from is None:  # then the rest is delivered as of the job's epoch, too
                    self._catch_up()
                self._deliver()
            self._finish()
            self._note_created()
        except BaseException as error:
            if work.controls.is_shut_down.is_set():
                self.error = Error("terminating connection due to administrator command", errors.ADMIN_SHUTDOWN)
            else:
                self._give_up(error)
        finally:
            try:
                work.group.release()
                if work.is_created or not work.controls.is_shut_down.is_set():
                    self._remove_files()
            finally:
                self.started.set()
                self.finished.set()

    def _note_created(self) -> None:
        if self._work.is_created:
            self._note(self._work)

    def _fill(self) -> None:
        """Read the upstreams to their end, by slices of a snapshot or by positions."""
        end = partial(one_commit.end, self._work, self._coordinator)
        while not self._work.reads_on:
            try:
                snapshot.run(self._work, end)
                return
            except ControlsChanged:
                if self._work.has_ended():
                    return
                self._cut_again()
        arrangement.run(self._work, end)

    def _cut_again(self) -> None:
        """After a rate limit was set: start again by positions, if no slice is finished."""
        work = self._work
        if work.edit is None and work.job.rate_limit is not None and not load_slices(work.lake.cursor(), self.id)[1]:
            work.begin(arrangement.start(work))
            work.progress.start_again()
            remove_tree(work.data)

    def _catch_up(self) -> None:
        """Apply the change log from the pinned snapshot on, in batches."""
        work = self._work
        while True:
            work.controls.check()
            cursor = work.lake.cursor()
            old, new, applied = work.job.epoch, work.now(cursor), work.job.applied
            versions = {
                s.input: Version(s.relation, applied.of(s.relation), new.snapshot) for s in work.view.plan.scans
            }
            times = (old.time_us, max(old.time_us, new.time_us))
            with closing(Feeds(work.lake, cursor, lambda: work.view.plan.scans)) as feeds:
                changes = bind_changes(cursor, work.view, versions, feeds, times)
                if changes.rows <= MAX_HANDOVER_ROWS:
                    self._coordinator.foresee(cursor, work.view, versions, changes)
                    return
                with suppress(ControlsChanged):  # the log is read without a rate limit
                    work.retries.run(lambda: advance_job(work, cursor, versions, changes, old, new))  # noqa: B023

    def _deliver(self) -> None:
        """Deliver the rows that a sink has read, which are not kept longer. Barriers deliver all later changes."""
        if self._work.relation.is_sink:
            deliver_all(self._work, self._coordinator.sinks)
            self._coordinator.notify()

    def _finish(self) -> None:
        """Run the last step: a barrier takes the view along, and a checkpoint marks it as created."""
        attempt = 0
        while True:
            self._work.controls.check()
            self._coordinator.checkpoints.attempt()  # else the barrier may have to store what others have changed
            handover = self._coordinator.hand_over(self.id)
            if not handover.done.wait(SOON_SECONDS):
                self._work.waiting.because(HANDING_OVER)
            while not handover.done.wait(0.1):
                if self._work.controls.is_shut_down.is_set():
                    return
            error = handover.error or self._store_creation()
            if self._work.is_over:
                return
            if error is None:
                continue  # the views in memory had to begin again at what the lake has
            if isinstance(error, Error) and error.sqlstate == errors.OBJECT_IN_USE:
                # Another job over the view to be replaced has to finish first, because it follows the old rows.
                self._work.waiting.because(f"waiting: {error.detail}")
                self._work.controls.pause(0.5, self._work.controls.version)
                continue
            if isinstance(error, Error) and error.sqlstate == errors.INSUFFICIENT_RESOURCES:
                # A barrier does not wait for Spark, so the job waits.
                self._work.waiting.because(f"waiting: {error.message}")
                self._work.controls.pause(0.5, self._work.controls.version)
                self._work.group.wait_for_steady()
                continue
            attempt += 1
            if attempt == ATTEMPTS:
                raise error

    def _store_creation(self) -> Exception | None:
        """Store that the view is created, if a barrier has taken it along. Returns the error, if any."""
        try:
            self._coordinator.store_creations(gives_way=True)
        except (Error, DuckDBError) as error:
            return error
        return None

    def _give_up(self, error: BaseException) -> None:
        """Remove all that the job has made. The name is free again; the event log keeps the reason."""
        if self._work.controls.is_cancelled.is_set():
            self.error = canceled()
        else:
            logger.error("the job has failed", exc_info=error)
            self.error = error_of(error)
        while not self._work.controls.is_shut_down.is_set():
            try:
                self._drop(self.error)
                return
            except DuckDBError as full:
                # A catalog that cannot be written cannot forget the job either.
                logger.warning("the job cannot be removed yet: %s", message_of(full))
                self._work.controls.is_shut_down.wait(1)

    def _drop(self, reason: Error) -> None:
        relation = self._work.relation
        with self._coordinator.barrier_lock, self._store.change() as cursor:
            if self.id not in self._store.catalog.by_id:
                return  # the name belongs to another relation now
            drop_relation(self._store, cursor, relation)
            event = "CANCEL_STREAM_JOB" if self._work.controls.is_cancelled.is_set() else "CREATE_STREAM_JOB_FAIL"
            info = {"name": relation.name, "definition": relation.definition, "error": reason.message}
            add_event(cursor, event, self.id, info)

    def _remove_files(self) -> None:
        """Remove the partial results, and for a job that was given up all files that Spark wrote for the view."""
        self._work.remove_staging()
        if self.error is not None and not self._work.is_created:
            if not self._work.lake.keeps_files:  # otherwise the files go as those of any dropped table
                remove_tree(self._work.data)
            self._coordinator.sinks.remove_all(self._relation)
