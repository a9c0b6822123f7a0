"""The clock: barriers pin a snapshot, advance every view that is behind it, and commit all of them together.

Indexes and sinks are views to it; what a sink's change is, goes on from here.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from catalog import errors
from catalog.errors import Error, canceled
from catalog.job_store import fail_job, finish_job
from catalog.lake import Cursor, Lake
from catalog.locks import Rank, RankedLock, RankedRLock, check_free
from catalog.log_context import logged, note
from catalog.metrics import (
    BARRIER_FAILURES,
    BARRIER_INTERVAL_SECONDS,
    BARRIER_SECONDS,
    VIEW_ROWS,
)
from catalog.model import CREATED, Epoch, Relation
from catalog.store import Store
from catalog.transactions import rollback
from catalog.translation import DISK_FULL, DuckDBError, disk_full, translate
from executor.advance import Advance, View
from executor.engines import Engines
from executor.feeds import Feeds
from executor.plans import Plans
from executor.replacement import Replacement, bind_difference, put, replacement
from executor.sinks import Delivery, Sinks, logs, targets
from executor.spark_engine import SparkError, spark_error
from executor.versions import Version
from planner.nodes import Scan

logger = logging.getLogger(__name__)

# A view whose advance fails this often in a row is marked failed, so that it holds up no other.
MAX_FAILURES = 3


@dataclass
class Handover:
    """A creating job that has almost caught up and asks the next barrier to take it the rest of the way."""

    job_id: int
    done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class _OfView(Exception):
    """The advance of a created view has failed, for the reason `error`."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Coordinator:
    """One thread, the only writer of created views."""

    def __init__(
        self, store: Store, plans: Plans, engines: Engines, interval_ms: Callable[[], int], sinks: Sinks
    ) -> None:
        self._store = store
        self.sinks = sinks
        self._delivering: list[Delivery] = []  # what an epoch has handed on that may not have been committed
        self._delivered = 0  # the newest snapshot in which sinks have written to tables
        self._lake: Lake = store.lake
        self._plans = plans
        self._engines = engines
        self._interval_ms = interval_ms
        self._cursor = self._lake.cursor()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._handovers: list[Handover] = []
        self._handover_lock = RankedLock()
        self._failures: dict[int, int] = {}
        self._epoch_condition = threading.Condition()
        self._epoch = store.epoch(self._cursor)
        self._awaited: list[int] = []  # the snapshots that FLUSHes wait for
        self._has_computed = False  # whether the barrier has had changes to compute, if only to find that none is left
        self._last_error: str | None = None
        self._thread = threading.Thread(target=self._run, name="coordinator", daemon=True)
        # Whoever drops a view waits for a barrier that runs.
        self.barrier_lock = RankedRLock(Rank.BARRIER)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finish the barrier in progress and end the thread."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(30)

    @property
    def snapshot(self) -> int:
        """What every created view has applied, and is committed."""
        return self._epoch.snapshot

    @property
    def epoch(self) -> Epoch:
        """The same with its time. Without changes it goes on too, about every `barrier_interval_ms`."""
        return self._epoch

    def notify(self) -> None:
        """Something was committed to a table: a barrier is due."""
        self._wake.set()

    def flush(self, is_cancelled: Callable[[], bool], timeout_s: float = 300) -> None:
        """Wait until every created view has applied all that is committed now, and what sinks make of it in tables.

        Raises Error 57014 when cancelled, 55000 when the views do not get there in time.
        """
        check_free()
        target = self._lake.newest(self._lake.cursor())
        deadline = time.monotonic() + timeout_s
        sinks = sum(relation.target is not None for relation in self._store.catalog.relations)
        for _ in range(sinks + 1):  # no chain of sinks is longer
            self._wait_for(target, is_cancelled, deadline, timeout_s)
            if self._delivered <= target:
                return
            target = self._delivered

    def _wait_for(self, target: int, is_cancelled: Callable[[], bool], deadline: float, timeout_s: float) -> None:
        with self._epoch_condition:
            self._awaited.append(target)
            try:
                while self._epoch.snapshot < target:
                    self._wake.set()
                    self._epoch_condition.wait(0.1)
                    if is_cancelled():
                        raise canceled()
                    if time.monotonic() > deadline or self._stopping.is_set():
                        raise Error(
                            f"the views did not catch up within {timeout_s:.0f} s",
                            errors.NOT_IN_PREREQUISITE_STATE,
                            detail=self._last_error,
                        )
            finally:
                self._awaited.remove(target)

    def hand_over(self, job_id: int) -> Handover:
        """Let the next barrier finish a creating job."""
        handover = Handover(job_id)
        with self._handover_lock:
            self._handovers.append(handover)
        self._wake.set()
        return handover

    def withdraw(self, job_id: int) -> None:
        """Take back a hand-over that no barrier has begun; whoever waits for it gets Error 57014."""
        with self._handover_lock:
            withdrawn = [h for h in self._handovers if h.job_id == job_id]
            self._handovers = [h for h in self._handovers if h.job_id != job_id]
        for handover in withdrawn:
            handover.error = canceled()
            handover.done.set()

    def store_epoch(self, before: int) -> None:
        """Keep one epoch, written down if the stored one is before a snapshot: barriers without changes store none."""
        if not self.barrier_lock.acquire(timeout=1):
            return  # a barrier takes long; it stores its epoch itself
        try:
            with self._lake.transaction(self._lake.cursor()) as cursor:
                stored = self._store.epoch(cursor).snapshot
                # What is stored is a snapshot too, which must not make the next time necessary.
                if stored < min(before - 1, self._epoch.snapshot):
                    self._store.set_epoch(cursor, self._epoch)
                self._store.forget_epochs(cursor)
        finally:
            self.barrier_lock.release()

    def _run(self) -> None:
        before: float | None = None
        while not self._stopping.is_set():
            self._wake.wait(self._interval_ms() / 1000)
            if self._stopping.is_set():
                break
            self._wake.clear()
            started = time.monotonic()
            if before is not None:
                BARRIER_INTERVAL_SECONDS.observe(started - before)
            before = started
            try:
                changed = self.barrier()
                BARRIER_SECONDS.labels("checkpoint" if changed else "idle").observe(time.monotonic() - started)
            except Exception as error:
                changed = True
                self._last_error = message_of(error)
                logger.exception("barrier failed")
                BARRIER_FAILURES.inc()
            if changed or self._has_computed:
                # At most one barrier an interval while changes keep coming; the first after an idle time is at once.
                self._pause(started + self._interval_ms() / 1000)

    def _pause(self, until: float) -> None:
        """Wait for the next tick, or less when somebody is waiting for it."""
        while time.monotonic() < until and not self._stopping.is_set():
            with self._handover_lock:
                if self._handovers:
                    return
            with self._epoch_condition:
                if any(target > self._epoch.snapshot for target in self._awaited):
                    return
                self._epoch_condition.wait(max(min(until - time.monotonic(), 0.01), 0))

    def barrier(self) -> bool:
        """One epoch. Returns whether any view changed."""
        with self.barrier_lock:
            self._has_computed = False
            self._take_back()
            with self._handover_lock:
                handovers, self._handovers = self._handovers, []
            try:
                handovers, replacements = self._replacements(handovers)
                with closing(Feeds(self._lake, self._cursor, self._scans)) as feeds:
                    return self._advance_all(feeds, handovers, replacements)
            except _OfView as failure:
                # What is wrong with a created view is not the jobs' fault: they go on with the next barrier.
                with self._handover_lock:
                    self._handovers = handovers + self._handovers
                handovers = []
                raise failure.error from failure
            except BaseException as error:
                for handover in handovers:
                    handover.error = error
                self._take_up_stored()
                raise
            finally:
                for handover in handovers:
                    handover.done.set()

    def _scans(self) -> list[Scan]:
        return self._plans.scans(self._store.catalog)

    def _replacements(self, handovers: list[Handover]) -> tuple[list[Handover], dict[int, Replacement]]:
        """The jobs that may finish, and what those of them that replace a view, by its id, do to it."""
        catalog = self._store.catalog
        finishing, found = [], {}
        for handover in handovers:
            made = catalog.by_id.get(handover.job_id)
            try:
                if made is not None and made.replaces is not None:
                    item = found[made.replaces] = replacement(catalog, made)
                    self._plans.put(item.readers.plans)
                finishing.append(handover)
            except Error as error:
                handover.error = error
                handover.done.set()
        return finishing, found

    def _take_up_stored(self) -> None:
        """After a failure: what is stored counts, since the checkpoint may have been committed before it."""
        rollback(self._cursor)
        self._engines.forget_copies()
        self._store.reload()
        self._epoch = self._store.epoch(self._cursor)

    def _take_back(self) -> None:
        """Delete what an epoch has handed on that was not committed."""
        if self._delivering:
            self._take_up_stored()
            self.sinks.forget(d for d in self._delivering if d.snapshot > self._epoch.snapshot)
            self._delivering = []

    def _advance_all(self, feeds: Feeds, handovers: list[Handover], replacements: dict[int, Replacement]) -> bool:
        cursor = self._cursor
        # The clock may be set back; an epoch's time never is.
        epoch = Epoch(self._lake.newest(cursor), max(time.time_ns() // 1000, self._epoch.time_us))
        note(epoch=epoch.snapshot)
        advances: dict[int, Advance] = {}
        pending: dict[int, str] = {}  # the changes of relations that this epoch has computed
        finishing = {handover.job_id for handover in handovers}
        catalog = self._store.catalog
        live = [job.id for job in catalog.jobs if job.status == CREATED or job.id in finishing]
        live = [id_ for id_ in live if id_ not in replacements]
        for relation in catalog.in_dependency_order(live):
            start = self._start_of(relation, finishing)
            tables = (up for up in (catalog.by_id[u] for u in relation.upstreams) if up.is_table)
            touched = any(feeds.has_changes(table, start.snapshot, epoch.snapshot) for table in tables)
            with logged(job_id=relation.id), self._counting_failures(relation):
                view = self._plans.view(relation, catalog)
                has_pending = not pending.keys().isdisjoint(relation.upstreams)
                if not (touched or has_pending or view.plan.reads_now or relation.id in finishing):
                    continue
                self._has_computed |= touched or has_pending
                advance = self._advance(feeds, view, start, epoch, pending)
                if advance is not None and relation.is_sink:
                    changes = advance.changes
                    self._delivering.append(self.sinks.prepare(cursor, catalog, relation, changes, epoch.snapshot))
                    advance = advance.of_states
                if advance is not None:
                    advances[relation.id] = advance
                    pending[relation.id] = advance.changes
                if relation.replaces is not None:
                    item = replacements[relation.replaces]
                    own = pending.get(relation.id)
                    difference = bind_difference(cursor, item, self._plans, catalog, epoch.snapshot, own)
                    pending |= {relation.replaces: difference} if difference is not None else {}
        if advances or finishing:
            self._checkpoint(cursor, epoch, advances, handovers, replacements)
        self._publish(epoch)
        return bool(advances or finishing)

    def _start_of(self, relation: Relation, finishing: set[int]) -> Epoch:
        """What a view has applied so far."""
        if relation.id not in finishing:
            return self._epoch
        return self._store.catalog.job_by_id[relation.id].epoch

    def _advance(self, feeds: Feeds, view: View, start: Epoch, epoch: Epoch, pending: dict[int, str]) -> Advance | None:
        creating = not view.relation.created
        versions = {}
        for scan in view.plan.scans:
            # A created upstream view changes only in checkpoints, and this one's is still pending.
            old = start.snapshot if scan.relation.is_table or creating else epoch.snapshot
            versions[scan.input] = Version(scan.relation, old, epoch.snapshot, pending.get(scan.relation.id))
        times = (start.time_us, epoch.time_us)
        return self._engines.advance(self._cursor, view, versions, feeds, times, self._epoch.snapshot)

    @contextmanager
    def _counting_failures(self, relation: Relation) -> Iterator[None]:
        try:
            yield
            self._failures.pop(relation.id, None)
        except Exception as error:
            if not relation.created:
                raise
            # A full disk or a Spark that does not start says nothing about the view; it catches up afterwards.
            is_own = not error_of(error).sqlstate.startswith("53")
            count = self._failures[relation.id] = self._failures.get(relation.id, 0) + is_own
            logger.warning("%s failed %d times in a row: %s", relation.qualified_name, count, message_of(error))
            if count >= MAX_FAILURES:
                logger.error("%s %s failed: %s", relation.kind, relation.qualified_name, error)
                with self._store.change() as cursor:
                    fail_job(cursor, relation.id, message_of(error))
                    self._store.add_event(cursor, "STREAM_JOB_FAIL", relation.id, {"error": message_of(error)})
            raise _OfView(error) from error

    def _checkpoint(
        self,
        cursor: Cursor,
        epoch: Epoch,
        advances: dict[int, Advance],
        handovers: list[Handover],
        replacements: dict[int, Replacement],
    ) -> None:
        """The one transaction that ends an epoch."""
        written = [table for advance in advances.values() for table in advance.tables]
        catalog, deliveries = self._store.catalog, self._delivering
        shared = targets(catalog, (delivery.relation for delivery in deliveries))
        written += logs(delivery.relation for delivery in deliveries)
        with self._lake.transaction(cursor, written, shared):
            for advance in advances.values():
                self._engines.apply(cursor, advance)
            self.sinks.deliver(cursor, catalog, deliveries)
            self._store.set_epoch(cursor, epoch)
            now = self._store.catalog
            created = {handover.job_id for handover in handovers} - {item.made.id for item in replacements.values()}
            for job_id in created:
                finish_job(cursor, job_id, now.steady_group(now.job_by_id[job_id]))
            for item in replacements.values():
                put(self._store, cursor, item)
        self._delivering = []
        for job_id, advance in advances.items():
            VIEW_ROWS.add(job_id, sum(map(sum, advance.counts)))
        if shared:  # which views may read
            self._delivered = self._lake.newest(cursor)
            self._wake.set()
        self._epoch = epoch
        if handovers:
            self._store.reload()
        for item in replacements.values():
            for id_ in item.replanned:
                self._plans.forget(id_)

    def _publish(self, epoch: Epoch) -> None:
        with self._epoch_condition:
            self._epoch = epoch
            self._epoch_condition.notify_all()


def error_of(error: BaseException) -> Error:
    """What went wrong as the user sees it, whichever engine said it."""
    if isinstance(error, Error):
        return error
    if isinstance(error, SparkError):
        return spark_error(error)
    if isinstance(error, DuckDBError):
        return translate(error)
    return disk_full(str(error)) if DISK_FULL in str(error) else Error(str(error) or type(error).__name__)


def message_of(error: BaseException) -> str:
    """What went wrong, in one line."""
    return error_of(error).message
