"""The clock: each barrier pins a snapshot, advances every view that is behind it, and publishes all views together.

The changes of views are in the shared buffer (`executor.memory.shared_buffer`) until a checkpoint stores them with the
epoch in one transaction of the lake. A barrier that ends the creation of a view, or that delivers rows of sinks, is a
checkpoint itself. Indexes and sinks are views to the coordinator; it hands on the changes of a sink.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial

from sparkwave.catalog import errors
from sparkwave.catalog.counters import BARRIER_FAILURES, BARRIER_INTERVAL_SECONDS, BARRIER_SECONDS, VIEW_ROWS
from sparkwave.catalog.errors import Error, canceled
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.leftovers import forget_leftovers
from sparkwave.catalog.lake.memory_transactions import rollback
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.locks import Rank, RankedLock, RankedRLock, check_free
from sparkwave.catalog.log_context import note
from sparkwave.catalog.model import Catalog, Epoch, Relation, adds_a_view
from sparkwave.catalog.stores import view_checksums
from sparkwave.catalog.stores.epoch_store import store_epoch, stored_epoch
from sparkwave.catalog.stores.job_store import finish_job, leave_behind
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.epochs.advance import Advance, Changes, View
from sparkwave.executor.epochs.barrier_times import BarrierTimes
from sparkwave.executor.epochs.behind import Behind, Left
from sparkwave.executor.epochs.checkpoints import Checkpoints
from sparkwave.executor.epochs.engines import Engines, NotStored
from sparkwave.executor.epochs.epoch import Blocked, EpochWork, Tools, waits
from sparkwave.executor.epochs.feeds import Feeds
from sparkwave.executor.epochs.measured_rows import MeasuredRows
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.epochs.takeover import Replacement, put, replacement
from sparkwave.executor.epochs.versions import Version, columns_read
from sparkwave.executor.faults import error_of
from sparkwave.executor.memory.shared_buffer import MOST_ROWS, SharedBuffer
from sparkwave.executor.sinks.deliveries import Delivery, Sinks, Undeliverable, logs, targets
from sparkwave.planner.plan.nodes import Scan

logger = logging.getLogger(__name__)

# Seconds after which a FLUSH tells what holds it up, and ends if it is a full disk.
PATIENCE_S = 5.0
SHORTEST_TICK_S = 0.05


@dataclass
class Handover:
    """A request of a creating job that has almost caught up: the next barrier is to take its view along.

    A checkpoint then marks the view as created.
    """

    job_id: int
    done: threading.Event = field(default_factory=threading.Event)
    error: BaseException | None = None


class _Alone(Exception):
    """A checkpoint failed because of the changes of one view, and would succeed without them."""

    def __init__(self, relation: Relation, error: Exception) -> None:
        super().__init__(str(error))
        self.relation = relation
        self.error = error


class Coordinator:
    """Runs barriers in one thread. Apart from checkpoints the coordinator is the only writer of created views."""

    def __init__(
        self, store: Store, plans: Plans, engines: Engines, buffer: SharedBuffer, checkpoints: Checkpoints,
        interval_ms: Callable[[], int], sinks: Sinks,
    ) -> None:  # fmt: skip
        self._store = store
        self.sinks = sinks
        self._delivering: list[Delivery] = []  # deliveries of an epoch that may not be committed yet
        self._delivered = 0  # the newest snapshot in which sinks have written to tables
        self._lake: Lake = store.lake
        self._plans = plans
        self._engines = engines
        self._buffer, self.checkpoints = buffer, checkpoints
        self._interval_ms = interval_ms
        self._cursor = self._lake.cursor()
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._handovers: list[Handover] = []
        self._handover_lock = RankedLock()
        self.behind = Behind(store)
        self.measured = MeasuredRows()
        self.times = BarrierTimes()
        self._tools = Tools(store, plans, engines, buffer, sinks, self.behind)
        self._epoch_condition = threading.Condition()
        self._epoch = buffer.epoch
        self._awaited: list[int] = []  # the snapshots that FLUSHes wait for
        self._has_computed = False  # whether the barrier had changes to compute, even if no view changed in the end
        self._fault: Error | None = None  # why the last barrier failed
        self._thread = threading.Thread(target=self._run, name="coordinator", daemon=True)
        # Whoever drops a view takes this lock, to wait for a running barrier.
        self.barrier_lock = RankedRLock(Rank.BARRIER)

    def start(self) -> None:
        self._thread.start()
        self.checkpoints.start()

    def stop(self) -> None:
        """Finish the barrier in progress and store its changes."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(30)
        self.checkpoints.stop()
        self._engines.close()

    @property
    def snapshot(self) -> int:
        """The snapshot that every created view shows, except those left behind."""
        return self._epoch.snapshot

    @property
    def stored_snapshot(self) -> int:
        """The snapshot that every created view, except those left behind, has applied in the lake."""
        return self.checkpoints.stored.snapshot

    @property
    def epoch(self) -> Epoch:
        """The epoch of `snapshot`, with its time.

        The epoch advances about every `barrier_interval_ms`, even without changes.
        """
        return self._epoch

    def notify(self) -> None:
        """Start a barrier, because a transaction has committed to a table."""
        self._wake.set()

    def flush(
        self, is_cancelled: Callable[[], bool], timeout_s: float = 300, tell: Callable[[Error], None] = lambda why: None
    ) -> None:
        """Wait until every created view has applied all that is committed now, including rows of sinks into tables.

        Failed views are not waited for. After PATIENCE_S `tell` gets the reason why a view does not follow. Raises
        Error 57014 when cancelled, 53100 when the disk is full, 55000 when the views do not get there within
        `timeout_s` seconds.
        """
        check_free()
        target = self._lake.newest(self._lake.cursor())
        began = time.monotonic()
        sinks = sum(relation.target is not None for relation in self._store.catalog.relations)
        for _ in range(sinks + 1):  # a chain of sinks has at most this length
            self._wait_for(target, is_cancelled, began, timeout_s, tell)
            if self._delivered <= target:
                break
            target = self._delivered
        if self._buffer.has_errors:  # the errors are counted in the catalog
            self.checkpoints.attempt()

    def _wait_for(
        self,
        target: int,
        is_cancelled: Callable[[], bool],
        began: float,
        timeout_s: float,
        tell: Callable[[Error], None],
    ) -> None:
        told = ""
        with self._epoch_condition:
            self._awaited.append(target)
        try:
            while True:
                with self._epoch_condition:
                    if self._epoch.snapshot >= target and not self.behind.lagging:
                        return
                    self._wake.set()
                    self._epoch_condition.wait(0.1)
                if is_cancelled():
                    raise canceled()
                held_up = self._held_up()
                waited_s = time.monotonic() - began
                if held_up is not None and waited_s > PATIENCE_S:
                    if held_up.sqlstate == errors.DISK_FULL:
                        raise held_up
                    if held_up.message != told:
                        tell(held_up)
                        told = held_up.message
                if waited_s > timeout_s or self._stopping.is_set():
                    raise Error(
                        f"the views did not catch up within {timeout_s:.0f} s",
                        errors.NOT_IN_PREREQUISITE_STATE,
                        detail=held_up.message if held_up is not None else None,
                    )
        finally:
            with self._epoch_condition:
                self._awaited.remove(target)

    def _held_up(self) -> Error | None:
        """Return why the views, or one of them, do not advance; None if all is well."""
        if self._fault is not None:
            return self._fault
        job = next(iter(self.behind.lagging), None)
        if job is None:
            return None
        view, reason = self._store.catalog.by_id[job.id], self.behind.error(job)
        message = f"{view.kind} {view.qualified_name} does not follow: {reason.message}"
        return Error(message, reason.sqlstate, detail=reason.detail, hint=reason.hint)

    def reach(self, snapshot: int, patience_s: float) -> bool:
        """Wait until a barrier has reached a snapshot. Returns whether one has within `patience_s` seconds."""
        with self._epoch_condition:
            if self._epoch.snapshot >= snapshot:
                return True
            self._awaited.append(snapshot)
            try:
                self._wake.set()
                self._epoch_condition.notify_all()  # wakes a pausing coordinator, too
                return self._epoch_condition.wait_for(lambda: self._epoch.snapshot >= snapshot, patience_s)
            finally:
                self._awaited.remove(snapshot)

    @contextmanager
    def between_barriers(self, patience_s: float) -> Iterator[Epoch | None]:
        """While entered, no barrier runs, and the lake has all created views at the yielded epoch.

        Yields None if a barrier takes longer than `patience_s` seconds.
        """
        is_free = self.barrier_lock.acquire(timeout=patience_s)
        try:
            if is_free:
                self.checkpoints.run()
            yield self._epoch if is_free else None
        finally:
            if is_free:
                self.barrier_lock.release()

    def rebuild(self, relation: Relation, check_cancelled: Callable[[], None]) -> None:
        """Let the next barrier compute a created view anew, and all its readers, whatever they have applied.

        No query reads them before. The readers have not applied the rows that are stored now, so a change of these rows
        is no change for them. Raises Error 0A000 where a view among them, or a sink, cannot be computed anew.
        """
        while True:
            with self.between_barriers(0.1) as epoch:
                if epoch is not None:
                    self._engines.forget_copies()  # the rows in the lake are to be compared
                    rebuilt = self._computable(relation)
                    with self._store.change() as cursor:
                        for each in rebuilt:
                            leave_behind(cursor, each.id, None, "it is being computed anew", has_failed=True)
                            view_checksums.forget(cursor, each.id)  # its rows may not be those that it tells of
                    self.behind.forget({each.id for each in rebuilt})
                    return
            check_cancelled()

    def _computable(self, relation: Relation) -> list[Relation]:
        """Return a view and the streaming jobs that read it. Raises Error 0A000 as `rebuild`."""
        catalog = self._store.catalog
        found = [relation, *(reader for reader in catalog.readers(relation.id) if reader.is_streaming)]
        for each in found:
            reason = self._why_not_computable(each)
            if reason is not None:
                raise Error(
                    f"cannot compute {relation.kind} {relation.qualified_name} anew",
                    errors.FEATURE_NOT_SUPPORTED,
                    detail=f"{each.kind} {each.qualified_name} {reason}",
                    hint="Drop it and create it again.",
                )
        return found

    def _why_not_computable(self, relation: Relation) -> str | None:
        if not relation.created:
            return "is still being created"
        if relation.is_sink:
            return "has delivered its rows"
        found = self._plans.view(relation, self._store.catalog).plan.remembers
        return f"has {found}, whose rows depend on when changes came" if found is not None else None

    def foresee(self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes) -> None:
        """Prepare the last change of a creating view, of the kind of these changes, before the barrier that needs it.

        Its SQL is made, and copies of the rows that it looks up: those of the view's states, and those of tables at the
        old snapshots of `versions` (by input). The view's job calls this, and changes no table of the view afterwards.
        """
        self._engines.foresee(cursor, view, versions, changes, partial(columns_read, self._scans()))

    def hand_over(self, job_id: int) -> Handover:
        """Let the next barrier finish a creating job."""
        handover = Handover(job_id)
        with self._handover_lock:
            self._handovers.append(handover)
        self._wake.set()
        return handover

    def store_creations(self, gives_way: bool = False) -> None:
        """Store the views that barriers have taken along for their hand-overs, as created ones.

        Arguments and errors are those of `Checkpoints.run`.
        """
        if self._buffer.creations:
            self.checkpoints.run(gives_way)

    def withdraw(self, job_id: int) -> None:
        """Take back a hand-over that no barrier has begun; its waiter gets Error 57014."""
        with self._handover_lock:
            withdrawn = [h for h in self._handovers if h.job_id == job_id]
            self._handovers = [h for h in self._handovers if h.job_id != job_id]
        for handover in withdrawn:
            handover.error = canceled()
            handover.done.set()

    def store_epoch(self, before: int) -> int:
        """Store the epoch if the stored one is before a snapshot, because barriers without changes store none.

        Returns the oldest snapshot that readers of views may be reading.
        """
        oldest = self._buffer.oldest
        if not self.barrier_lock.acquire(timeout=1):
            return oldest  # a barrier takes long; it stores its epoch itself
        try:
            with self.checkpoints.between():
                self.checkpoints.run()
                self._buffer.refresh(before)
            with self._lake.transaction(self._lake.cursor()) as cursor:
                stored = stored_epoch(cursor).snapshot
                # The stored epoch makes a snapshot itself; `before - 1` keeps this snapshot from causing the next
                # store.
                if stored < min(before - 1, self._epoch.snapshot):
                    store_epoch(cursor, self._epoch)
                forget_leftovers(cursor)
        finally:
            self.barrier_lock.release()
        return oldest

    def _run(self) -> None:
        before: float | None = None
        while not self._stopping.is_set():
            self._wake.wait(self._tick_s())
            if self._stopping.is_set():
                break
            self._wake.clear()
            started = time.monotonic()
            self.times.begin()
            if before is not None:
                BARRIER_INTERVAL_SECONDS.observe(started - before)
            before = started
            try:
                changed = self.barrier()
                BARRIER_SECONDS.labels("changed" if changed else "idle").observe(time.monotonic() - started)
                self._fault = None
            except Exception as error:
                changed = True
                self._fault = error_of(error)
                logger.exception("barrier failed")
                BARRIER_FAILURES.inc()
            self.times.end(changed or self._has_computed)
            if changed or self._has_computed:
                # At most one barrier an interval while changes keep coming; the first after an idle time is at once.
                self._pause(started + self._tick_s())

    def _tick_s(self) -> float:
        """Return how many seconds to wait for the next barrier if nothing happens."""
        due_s, interval_s = self.behind.due_s, self._interval_ms() / 1000
        return interval_s if due_s is None else min(max(due_s, SHORTEST_TICK_S), interval_s)

    def _pause(self, until: float) -> None:
        """Wait for the next tick, or less when somebody waits for a barrier."""
        while time.monotonic() < until and not self._stopping.is_set():
            with self._handover_lock:
                if self._handovers:
                    return
            with self._epoch_condition:
                if any(target > self._epoch.snapshot for target in self._awaited):
                    return
                if self._awaited and self.behind.lagging:
                    return
                self._epoch_condition.wait(max(min(until - time.monotonic(), 0.01), 0))

    def barrier(self, is_stored: bool = False) -> bool:
        """Run one epoch, as a checkpoint if `is_stored`. Returns whether any view changed."""
        with self.barrier_lock, self.checkpoints.beside_a_barrier():
            began, pinned = time.monotonic(), self._lake.newest(self._cursor)
            self._has_computed = False
            self._take_back()
            with self._handover_lock:
                handovers, self._handovers = self._handovers, []
            try:
                if handovers:
                    self.times.leave_out()
                if self._buffer.is_full or any(map(self._reads_stored_views, handovers)):
                    self.checkpoints.run()
                handovers, replacements = self._replacements(handovers)
                with self._tidying(), closing(self._feeds()) as feeds:
                    return self._advance_all(feeds, handovers, replacements, is_stored, {})
            except _Alone as failure:
                # A fault of a created view is not the jobs' fault: they continue with the next barrier.
                self._again(handovers)
                handovers = []
                self._take_up_stored()
                left = self.behind.failed(failure.relation, error_of(failure.error), pinned, began, True)
                self._leave(failure.relation, left)
                return True
            except Blocked as blocked:
                self._again([handover for handover in handovers if handover.job_id != blocked.job_id])
                handovers = [handover for handover in handovers if handover.job_id == blocked.job_id]
                for handover in handovers:
                    handover.error = blocked.error
                return True
            except BaseException as error:
                for handover in handovers:
                    handover.error = error
                self._take_up_stored()
                raise
            finally:
                for handover in handovers:
                    handover.done.set()

    @contextmanager
    def _tidying(self) -> Iterator[None]:
        """While entered, an epoch is computed; its temporary tables are dropped afterwards, whether or not it fails."""
        self._engines.make_room()
        try:
            yield
        finally:
            try:
                self._engines.tidy(self._cursor)
            except DuckDBError:
                logger.warning("what an epoch has left cannot be dropped", exc_info=True)

    def _again(self, handovers: list[Handover]) -> None:
        """Leave hand-overs to the next barrier."""
        with self._handover_lock:
            self._handovers = handovers + self._handovers

    def _leave(self, relation: Relation, left: Left) -> None:
        """Let the next barrier do without a view and its readers, while no change is pending."""
        catalog = self._store.catalog
        found = {relation.id: left}
        for reader in catalog.in_dependency_order(job.id for job in catalog.jobs):
            waiting = self.behind.waiting(reader, found) if reader.created else None
            if waiting is not None:
                found[reader.id] = waiting
        self.behind.store(found, self._epoch, self._lake.newest(self._cursor))

    def _feeds(self) -> Feeds:
        return Feeds(self._lake, self._cursor, self._scans, self._epoch.snapshot)

    def _scans(self) -> list[Scan]:
        return self._plans.scans(self._store.catalog, self._buffer.creations)

    def _replacements(self, handovers: list[Handover]) -> tuple[list[Handover], dict[int, Replacement]]:
        """Return the hand-overs that may finish, and the replacements among them, by the id of the replaced view."""
        catalog = self._store.catalog
        finishing, found = [], {}
        for handover in handovers:
            made = catalog.by_id.get(handover.job_id)
            try:
                if made is not None:
                    self._check_upstreams(made)
                if made is not None and made.replaces is not None:
                    item = found[made.replaces] = replacement(catalog, made)
                    for id_, plan in item.readers.plans.items():
                        self._plans.put(View(catalog.by_id[id_], plan), catalog)
                finishing.append(handover)
            except Error as error:
                handover.error = error
                handover.done.set()
        return finishing, found

    def _reads_stored_views(self, handover: Handover) -> bool:
        """Whether a creation can end only while the lake has all changes of views: it reads views, or ends there."""
        made, catalog = self._store.catalog.by_id.get(handover.job_id), self._store.catalog
        return made is not None and not (adds_a_view(made) and all(catalog.by_id[up].is_table for up in made.upstreams))

    def _take_up_stored(self) -> None:
        """Return to the stored state after a failure, in case a checkpoint was committed before it."""
        rollback(self._cursor)
        self._engines.forget_copies()
        self._store.reload()
        with self.checkpoints.between():
            stored = stored_epoch(self._cursor)
            if stored.snapshot > self.checkpoints.stored.snapshot:
                self._buffer.start_again(self._cursor, stored)
                self.checkpoints.stored = stored
            self._epoch = self._buffer.epoch

    def _take_back(self) -> None:
        """Delete the deliveries of an epoch that were not committed."""
        if self._delivering:
            self._take_up_stored()
            self.sinks.forget(d for d in self._delivering if d.snapshot > self.checkpoints.stored.snapshot)
            self._delivering = []

    def _check_upstreams(self, made: Relation) -> None:
        """Raise Error 55006 for a job that is to finish while one of its upstream views is left behind."""
        for upstream in made.upstreams:
            job = self._store.catalog.job_by_id.get(upstream)
            if job is not None and job.is_behind:
                raise waits(self._store.catalog.by_id[upstream], self.behind.error(job))

    def _advance_all(
        self, feeds: Feeds, handovers: list[Handover], replacements: dict[int, Replacement], is_stored: bool,
        failed: dict[int, Left],
    ) -> bool:  # fmt: skip
        catalog = self._store.catalog
        # The clock may be set back; an epoch's time never is.
        times = [job.epoch.time_us for job in catalog.jobs if job.position is not None]
        epoch = Epoch(self._lake.newest(self._cursor), max(time.time_ns() // 1000, self._epoch.time_us, *times))
        note(epoch=epoch.snapshot)
        finishing = {handover.job_id for handover in handovers if handover.job_id in catalog.by_id}
        for id_ in finishing:
            self._engines.begin_creation(catalog.by_id[id_])
        work = EpochWork(
            self._tools, self._cursor, self._epoch, epoch, feeds, finishing, replacements, self._delivering,
            bool(self._awaited), self._stopping.is_set, failed,
        )  # fmt: skip
        try:
            work.compute()
        except NotStored:
            self._take_back()
            self.checkpoints.run()
            return self._advance_all(feeds, handovers, replacements, is_stored, work.left)
        finally:
            self._has_computed = work.has_computed
        for id_ in finishing:
            self._engines.end_creation(catalog.by_id[id_])
        has_changed = bool(work.advances or work.finishing or work.recovered)
        if has_changed:
            self._end_epoch(work, is_stored)
        else:
            self._buffer.go_on(epoch)
        for job_id, inputs in work.read.items():
            pending = work.pending.get(job_id)
            self.measured.add(job_id, inputs, pending.rows if pending is not None else 0)
        self.measured.keep({job.id for job in catalog.jobs})
        self._publish(epoch)
        return has_changed

    def _end_epoch(self, work: EpochWork, is_stored: bool) -> None:
        if not is_stored and self._is_for_buffer(work):
            try:
                self._buffer.apply(self._cursor, work.advances.values(), work.epoch, work.finishing)
                self.checkpoints.notify()
            except DuckDBError:
                logger.warning("an epoch is stored at once, for it does not fit into memory", exc_info=True)
                self._store_epoch_of(work)
        else:
            self._store_epoch_of(work)
        for job_id, advance in work.advances.items():
            VIEW_ROWS.add(job_id, sum(map(sum, advance.counts)))

    def _is_for_buffer(self, work: EpochWork) -> bool:
        """Return whether an epoch changes only rows of views, and few enough for the shared buffer."""
        by_id = self._store.catalog.by_id
        if work.recovered or work.deliveries or not all(adds_a_view(by_id[id_]) for id_ in work.finishing):
            return False
        advances = work.advances.values()
        written = any(item.added.files for advance in advances for item in advance.applications)
        return not written and sum(sum(map(sum, advance.counts)) for advance in advances) <= MOST_ROWS

    def _store_epoch_of(self, work: EpochWork) -> None:
        """End an epoch whose barrier is a checkpoint."""
        with self.checkpoints.between():
            self.checkpoints.run()
            self._checkpoint(work)

    def _checkpoint(self, work: EpochWork) -> None:
        """Run the one transaction that ends such an epoch."""
        cursor, advances = self._cursor, work.advances
        written = [table for advance in advances.values() for table in advance.tables]
        catalog, deliveries, replacements = self._store.catalog, self._delivering, work.replacements.values()
        shared = targets(catalog, (delivery.relation for delivery in deliveries))
        written += logs(delivery.relation for delivery in deliveries)
        with self._lake.transaction(cursor, written, shared):
            for advance in advances.values():
                self._apply(cursor, advance)
            self._deliver(cursor, catalog, deliveries)
            store_epoch(cursor, work.epoch)
            self.behind.caught_up(cursor, work.recovered)
            now = self._store.catalog
            for job_id in work.finishing - {item.made.id for item in replacements}:
                finish_job(cursor, job_id, now.steady_group(now.job_by_id[job_id]))
            for item in replacements:
                put(self._store, cursor, item)
                stay = [now.job_by_id[reader.id] for reader in item.readers.direct if reader.id in work.left]
                self.behind.lose_position(cursor, stay, work.left)
        self._delivering = []
        self.checkpoints.stored = work.epoch
        self._follow(work)
        if shared:  # views may read these tables
            self._delivered = self._lake.newest(cursor)
            self._wake.set()
        if work.finishing or work.recovered:
            self._store.reload()
        self._epoch = work.epoch  # who waits for it sees the catalog of this epoch
        self.behind.forget({job.id for job in work.recovered} | work.replacements.keys())
        self.behind.release(work.replacements)
        for item in replacements:
            for id_ in item.replanned:
                self._plans.forget(id_)

    def _follow(self, work: EpochWork) -> None:
        """Bring the shared buffer to the state of the lake."""
        try:
            self._buffer.follow(self._cursor, work.advances.values(), work.epoch)
        except DuckDBError:
            logger.warning("views are read from the lake, for memory could not follow it", exc_info=True)
            self._buffer.start_again(self._cursor, work.epoch)

    def _apply(self, cursor: Cursor, advance: Advance) -> None:
        try:
            advance.apply(cursor)
        except DuckDBError as error:
            if not self._store.catalog.by_id[advance.view.relation.id].created:
                raise
            raise _Alone(advance.view.relation, error) from error

    def _deliver(self, cursor: Cursor, catalog: Catalog, deliveries: Sequence[Delivery]) -> None:
        try:
            self.sinks.deliver(cursor, catalog, deliveries)
        except Undeliverable as failure:
            if not failure.relation.created:
                raise failure.error from failure
            raise _Alone(failure.relation, failure.error) from failure

    def _publish(self, epoch: Epoch) -> None:
        with self._epoch_condition:
            self._epoch = epoch
            self._epoch_condition.notify_all()
