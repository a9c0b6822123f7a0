"""All streaming jobs: to create, drop, cancel and wait for them, and to resume them after a restart."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.leftovers import forget_leftovers
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.locks import Rank, RankedRLock, check_free
from sparkwave.catalog.model import CREATING, INITIAL, Catalog, Column, Job, Relation
from sparkwave.catalog.names import quote_if_needed
from sparkwave.catalog.stores.comment_store import forget_constraints
from sparkwave.catalog.stores.epoch_store import stored_epoch
from sparkwave.catalog.stores.event_store import add_event
from sparkwave.catalog.stores.job_store import Start, add_job, add_started_job, set_job_waiting
from sparkwave.catalog.stores.placing import place
from sparkwave.catalog.stores.relation_store import add_state, create_relation, drop_relation, drop_relations
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill import at_once, whole_fill
from sparkwave.executor.backfill.creation import Admission, BackfillJob, start_of, whole_rows
from sparkwave.executor.backfill.measuring import Measuring
from sparkwave.executor.backfill.permits import Permits
from sparkwave.executor.backfill.work import Settings, Work
from sparkwave.executor.epochs.advance import View
from sparkwave.executor.epochs.coordinator import Coordinator
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.epochs.replanning import Unfit, compute_in_place, find_unfit, made_anew
from sparkwave.executor.faults import error_of, message_of
from sparkwave.executor.maintenance.orphan_removal import delete_own_temporary
from sparkwave.executor.sinks.deliveries import log_columns, log_name
from sparkwave.executor.spark.groups import Groups
from sparkwave.planner.definitions.sinks import circular_dependency
from sparkwave.planner.definitions.stored_definitions import calls_others
from sparkwave.planner.definitions.table_definition import with_text, without_foreign_keys
from sparkwave.planner.plan.stream_plan import StreamPlan

logger = logging.getLogger(__name__)

# RisingWave's timeout of an untargeted WAIT, and the poll interval, in seconds.
WAIT_SECONDS = 7200
WAIT_POLL_SECONDS = 0.1


class PlanOutdated(Error):
    """The catalog has changed since a statement was planned, so that its plan may be another by now."""


@dataclass(eq=False)
class _Permit:
    """The permit of a job that starts at once.

    The permit lapses when CREATE has returned to its client, or the job was not stored.
    """

    lapses: threading.Event = field(default_factory=threading.Event)


class Jobs:
    """The creating jobs of this server. `max_creating` is `max_concurrent_creating_streaming_jobs`."""

    def __init__(
        self,
        store: Store,
        plans: Plans,
        groups: Groups,
        coordinator: Coordinator,
        settings: Settings,
        max_creating: Callable[[], int],
    ) -> None:
        self._store = store
        self._lake: Lake = store.lake
        self._plans = plans
        self._groups = groups
        self._coordinator = coordinator
        self._settings = settings
        self._permits = Permits(max_creating)
        self.measuring = Measuring(store, self._is_busy)
        self._running: dict[int, BackfillJob] = {}
        self._lock = RankedRLock(Rank.JOBS)
        self._closing = False
        self._unfit: list[Unfit] = []

    def recover(self) -> None:
        """Resume the jobs that were being created; drop those that never started; remove temporary data.

        A background job was acknowledged before it started, so it starts now. Rows that do not fit the present plan are
        not used: see `make_anew`.
        """
        for job in self._store.catalog.jobs:
            relation = self._store.catalog.by_id[job.id]
            if job.status == INITIAL and not job.is_background:
                with self._store.change() as cursor:
                    drop_relation(self._store, cursor, relation)
                    info = {"name": relation.name, "definition": relation.definition, "error": "clear during recovery"}
                    add_event(cursor, "DIRTY_STREAM_JOB_CLEAR", job.id, info)
        with self._store.change() as cursor:
            forget_leftovers(cursor)
        self._coordinator.sinks.remove_uncommitted(self._store.catalog, stored_epoch(self._lake.cursor()).snapshot)
        self._unfit = find_unfit(self._store, self._plans)
        unfit = {each.relation.id for each in self._unfit}
        creating = (job for job in self._store.catalog.jobs if job.status in (INITIAL, CREATING))
        resumed = [job for job in creating if job.id not in unfit]
        delete_own_temporary(self._lake, {job.id for job in resumed})
        for job in resumed:
            self._resume(job)
        for each in self._unfit:
            if each.relation.created:
                self._coordinator.behind.hold(each.relation.id, Error(each.text))
            else:
                self._start_again(each)

    def make_anew(self) -> None:
        """Make the rows of relations anew that `recover` found unfit, one after the other, in the background."""
        created = [each for each in self._unfit if each.relation.created]
        if created:
            threading.Thread(target=self._make_anew, args=(created,), name="replanning", daemon=True).start()

    def _make_anew(self, unfit: list[Unfit]) -> None:
        """Make relations anew in dependency order: a job does not finish over an upstream view that is left behind."""
        failed: set[int] = set()
        for each in unfit:
            relation = self._store.catalog.by_id.get(each.relation.id)
            if relation is None or relation.made_as != each.relation.made_as:
                continue  # it was dropped or altered meanwhile
            try:
                self._make_one_anew(each, relation, failed)
            except Exception as raised:
                if self._closing:
                    return
                failed.add(relation.id)
                error = error_of(raised)
                why = " ".join(filter(None, (error.message, error.detail)))
                logger.error("%s %s is not made anew: %s", relation.kind, relation.qualified_name, why, exc_info=raised)
                self._coordinator.behind.hold(relation.id, Error(f"{each.text}; it cannot be made anew: {why}"))
                self._coordinator.notify()

    def _make_one_anew(self, unfit: Unfit, relation: Relation, failed: set[int]) -> None:
        """Make the new rows beside the stored ones; where that is not possible, in place. Raises Error."""
        catalog = self._store.catalog
        upstream = next((catalog.by_id[id_] for id_ in relation.upstreams if id_ in failed), None)
        if upstream is not None:
            raise Error(f"{upstream.kind} {upstream.qualified_name} is not there")
        if catalog.replacement(relation.id) is not None:
            return
        logger.info("%s %s is made anew", relation.kind, relation.qualified_name)
        try:
            job = self.create(*made_anew(relation, catalog), catalog)
        except Error:
            if unfit.now is None:
                raise
            compute_in_place(self._store, unfit)
            self._coordinator.behind.release([relation.id])
            self._coordinator.notify()
            return
        self.wait_for(job, lambda: None)

    def _start_again(self, unfit: Unfit) -> None:
        """Begin the creation of a relation from the start, or drop it where that is not possible."""
        catalog, relation = self._store.catalog, unfit.relation
        with self._store.change() as cursor:
            drop_relation(self._store, cursor, relation)
        try:
            self.create(*made_anew(relation, catalog), self._store.catalog)
        except Exception as error:
            logger.exception("%s %s is not created", relation.kind, relation.qualified_name)
            with self._store.change() as cursor:
                info = {"name": relation.name, "definition": relation.definition, "error": message_of(error)}
                add_event(cursor, "CREATE_STREAM_JOB_FAIL", relation.id, info)

    def recover_now(self, check: Callable[[], None]) -> None:
        """RECOVER: stop the CREATING jobs and resume them from their cursors, as a restart would.

        Views that are left behind are tried at once. A barrier in progress finishes first. A job that has not started
        has no cursor and is left alone. Raises the errors of `check` before anything is stopped, and Error 55000 if a
        job does not stop.
        """
        check()
        reason: dict[str, object] = {"reason": "adhoc recovery"}
        with self._lock:
            self._add_event("GLOBAL_RECOVERY_START", reason)
            started = time.monotonic()
            try:
                self._replace_all()
            except Error as error:
                self._add_event("GLOBAL_RECOVERY_FAILURE", {**reason, "error": error.message})
                raise
            self._coordinator.behind.hurry()
            self._coordinator.notify()
            self._add_event("GLOBAL_RECOVERY_SUCCESS", {**reason, "duration_secs": time.monotonic() - started})

    def _replace_all(self) -> None:
        creating = {job.id for job in self._store.catalog.jobs if job.status == CREATING}
        stopped = [job for job in self._running.values() if job.id in creating and not job.finished.is_set()]
        _stop(stopped)
        stuck = [job.id for job in stopped if not job.finished.is_set()]
        with self._coordinator.barrier_lock:
            for job_id in creating:
                self._coordinator.withdraw(job_id)
            self._coordinator.store_creations()
            # Some may have failed, or been finished by the last barrier.
            for row in [job for job in self._store.catalog.jobs if job.status == CREATING and job.id not in stuck]:
                self._resume(row)
        if stuck:
            raise Error(f"jobs {stuck} did not stop", errors.NOT_IN_PREREQUISITE_STATE, hint="RECOVER again.")

    def _add_event(self, event_type: str, info: dict[str, object]) -> None:
        with self._lake.transaction(self._lake.cursor()) as cursor:
            add_event(cursor, event_type, None, info)

    def rows_read(self) -> dict[int, dict[int, int]]:
        """Return how many rows the jobs have read, by job and fragment, including rows of running steps."""
        with self._lock:
            running = list(self._running.values())
        return {job.id: job.rows_read() for job in running if not job.finished.is_set()}

    def shares(self) -> dict[int, float]:
        """Return the part of their machines that the running jobs may take, below 1 where they are slowed.

        The call takes no lock, because monitoring must not wait for a job that is being stored.
        """
        running = list(self._running.values())
        return {job.id: job.share for job in running if not job.finished.is_set()}

    def controls_changed(self, job_id: int) -> None:
        """Tell a creating job that its rate limit or parallelism was altered."""
        job = self._running.get(job_id)
        if job is not None and not job.finished.is_set():
            job.controls_changed()

    def create(
        self,
        relation: Relation,
        plan: StreamPlan,
        job: Job,
        catalog: Catalog,
        check: Callable[[], None] = lambda: None,
        began: float | None = None,
    ) -> BackfillJob:
        """Create a relation at once, or reserve its name and start its job once the job has a permit.

        Neither `relation` nor `job` has an id yet. `check` raises if DuckDB cannot run the plan: the rows of a relation
        that is created at once show that it can. `began` is when the statement began (monotonic), by default now.
        Raises Error 42710 for a taken name, PlanOutdated when an input of the plan differs from `catalog` by now, 55006
        when the view to be replaced is being replaced already, 0A000 for rows that would feed themselves.
        """
        work = self.work_of(relation, plan, job)
        work.began = began or work.began
        created = self._create_in_process(work, catalog)
        if created is not None:
            return created
        check()
        permit = _Permit()
        try:
            start = self._start_at_once(work, permit)
            created = self._create_on_spark(work, catalog, start) if start is not None else None
            backfill = created or self._reserve(work, catalog, start)
        except BaseException:
            permit.lapses.set()
            work.give_up()
            raise
        permit.lapses = backfill.started if job.is_background else backfill.finished
        return backfill

    def work_of(self, relation: Relation, plan: StreamPlan, job: Job) -> Work:
        """Return the tools of a job that may never be stored."""
        return Work(self._store, self._groups, self._settings, View(relation, plan), job)

    def _is_busy(self) -> bool:
        """Whether backfills run; it takes no lock of the jobs."""
        return self._permits.are_held or any(not job.finished.is_set() for job in list(self._running.values()))

    def _create_in_process(self, work: Work, catalog: Catalog) -> BackfillJob | None:
        """Return the finished job of a view that is created at once in process; None for a view that is not."""
        is_over = threading.Event()
        if work.job.is_background or not self._permits.acquire_free(lambda: not is_over.is_set()):
            return None
        try:
            return self._over(work, at_once.create(work, self._coordinator, partial(self._add_created, work, catalog)))
        finally:
            is_over.set()

    def _create_on_spark(self, work: Work, catalog: Catalog, start: Start) -> BackfillJob | None:
        """Begin the step that fills a view, if it is one on Spark; return the finished job if that is over at once."""
        rows = whole_rows(work, start) if not work.in_process else None
        if rows is None:
            return None
        work.number(self._store.new_id())
        whole_fill.start_ahead(work, start, rows)
        if work.job.is_background:
            return None
        add = partial(self._add_created, work, catalog)
        return self._over(work, at_once.finish(work, self._coordinator, start, rows, add))

    def _add_created(self, work: Work, catalog: Catalog, cursor: Cursor) -> Relation:
        relation = self._add(cursor, replace(work.relation, created=True), work.view.plan, catalog)
        self._plans.put(View(relation, work.view.plan), catalog)  # for the next barrier
        return relation

    def _over(self, work: Work, view: View | None) -> BackfillJob | None:
        """Return the finished job of a view that was created at once."""
        if view is None:
            return None
        work.reserved(view.relation, replace(work.job, id=view.relation.id), None)
        self.measuring.note(work)
        return BackfillJob.over(self._store, self._coordinator, work)

    def _add(self, cursor: Cursor, relation: Relation, plan: StreamPlan, catalog: Catalog) -> Relation:
        """Store a relation that was planned with `catalog`, and its empty tables. Returns it with its id."""
        now = self._store.catalog
        written = [id_ for id_ in (relation.target, relation.replaces) if id_ is not None]
        has_changed = any(now.by_id.get(id_) != catalog.by_id.get(id_) for id_ in (*relation.upstreams, *written))
        if has_changed or (now.functions != catalog.functions and calls_others(relation, catalog, now)):
            raise PlanOutdated(
                "a relation or a function that the query reads has just been dropped or altered",
                errors.NOT_IN_PREREQUISITE_STATE,
                hint="Try again.",
            )
        if relation.replaces is not None:
            refuse_altering(now, now.by_id[relation.replaces])
        if not now.closure(relation.upstreams).isdisjoint(written):
            raise circular_dependency(relation.kind)
        relation = replace(relation, id=relation.id or self._store.new_id())
        self._store.store_ids(cursor)
        relation = create_relation(self._store, cursor, relation)
        for state in plan.states:
            if not state.in_view:
                columns = tuple(Column(f.name, f.type) for f in state.node.fields)
                add_state(cursor, relation, plan.internal_name(relation.id, state.name), columns)
        if relation.is_sink and relation.sink.is_remote:
            add_state(cursor, relation, log_name(relation.id), log_columns(relation))
        return relation

    def _reserve(self, work: Work, catalog: Catalog, start: Start | None) -> BackfillJob:
        with self._store.change() as cursor:
            relation = self._add(cursor, work.relation, work.view.plan, catalog)
            job = replace(work.job, id=relation.id)
            work.reserved(relation, job, start)
            if start is None:
                add_job(cursor, job)
            else:
                add_started_job(cursor, job, start)
        self._plans.put(View(relation, work.view.plan), catalog)  # the same plan as the definition would give
        try:
            return self._start(work, self._admission(job) if start is None else None)
        except BaseException:
            work.give_up()  # before its tables go
            with self._store.change() as cursor:
                drop_relation(self._store, cursor, relation)
            raise

    def _start_at_once(self, work: Work, permit: _Permit) -> Start | None:
        """Return the start of a job that need not wait for anything, so that it is stored as started.

        The job then has `permit`. None for any other job, whose name only is reserved at first.
        """
        if work.is_serverless or work.reads_nothing:
            return None
        with suppress(DuckDBError, OSError):  # the job tries again
            is_ready = work.in_process or self._groups.is_ready(work.job.resource_group)
            start = start_of(work) if is_ready else None
            if start is not None and self._permits.acquire_free(lambda: not permit.lapses.is_set()):
                return start
        return None

    def _admission(self, row: Job) -> Admission:
        def admit(job: BackfillJob, is_cancelled: Callable[[], bool]) -> None:
            returned = job.started if row.is_background else job.finished
            self._permits.acquire(row.id, lambda: not returned.is_set(), is_cancelled, say_waiting)
            if has_waited:
                self._set_waiting(row.id, None)

        def say_waiting(limit: int) -> None:
            has_waited.append(True)
            reason = f"waiting for a permit (max_concurrent_creating_streaming_jobs = {limit})"
            self._set_waiting(row.id, reason)

        has_waited: list[bool] = []
        return admit

    def _resume(self, job: Job) -> None:
        """Resume a job at its cursor. Its reason to wait is over; a CREATING job has its permit already."""
        if job.waiting is not None:
            self._set_waiting(job.id, None)
        job, catalog = replace(job, waiting=None), self._store.catalog
        view = self._plans.view(catalog.by_id[job.id], catalog)
        work = Work(self._store, self._groups, self._settings, view, job)
        work.is_undisturbed = False
        self._start(work, self._admission(job) if job.status == INITIAL else None)

    def _set_waiting(self, job_id: int, reason: str | None) -> None:
        with self._store.change() as cursor:
            set_job_waiting(cursor, job_id, reason)

    def _start(self, work: Work, admit: Admission | None = None) -> BackfillJob:
        with self._lock:
            if self._closing:
                raise Error("terminating connection due to administrator command", errors.ADMIN_SHUTDOWN)
            backfill = BackfillJob(self._store, self._coordinator, work, admit, self.measuring.note)
            self._running = {id_: b for id_, b in self._running.items() if not b.finished.is_set()}
            self._running[work.id] = backfill
        backfill.start()
        return backfill

    def cancel(self, ids: tuple[int, ...]) -> list[int]:
        """Cancel creating jobs and wait until nothing is left of them.

        Returns their ids, without unknown and finished ones.
        """
        check_free()
        with self._lock:
            known = [self._running[id_] for id_ in ids if id_ in self._running]
        found = [job for job in known if not job.finished.is_set()]
        for job in found:
            job.cancel()
            self._coordinator.withdraw(job.id)
        for job in found:
            job.wait_until_stopped(60)
        return [job.id for job in found if job.error is not None]

    def wait_for(self, job: BackfillJob, check: Callable[[], None]) -> None:
        """Wait until a job has finished; RECOVER may replace it meanwhile.

        `check` raises to give up. Raises the error that made the job fail.
        """
        check_free()
        while True:
            while not job.finished.wait(0.05):
                check()
            with self._lock:
                successor = self._running.get(job.id, job)
            if successor is job:
                break
            job = successor
        if job.error is not None:
            raise job.error

    def wait(self, job_id: int, check: Callable[[], None]) -> None:
        """Wait for one job, which may have finished long ago, or for the job that is to replace it.

        Raises the job's error.
        """
        made = self._store.catalog.replacement(job_id)
        with self._lock:
            job = self._running.get(job_id if made is None else made.id)
        if job is not None:
            self.wait_for(job, check)

    def wait_for_all(self, check: Callable[[], None], limit_s: float = WAIT_SECONDS) -> None:
        """Wait until no job is being created, including jobs that start meanwhile.

        Raises Error 57014 after `limit_s` seconds.
        """
        deadline = time.monotonic() + limit_s
        while any(job.status in (INITIAL, CREATING) for job in self._store.catalog.jobs):
            check()
            if time.monotonic() > deadline:
                raise Error(f"Cancelled: timeout after {limit_s * 1000:.0f}ms", errors.QUERY_CANCELED)
            time.sleep(WAIT_POLL_SECONDS)

    def drop(
        self,
        relations: list[Relation],
        also: Callable[[Cursor], None] = lambda cursor: None,
        drops_references: bool = True,
    ) -> None:
        """Drop relations, the last created first; creating ones are cancelled. Foreign keys that reference them go too.

        `also` runs in the same transaction, after the drop. Raises its errors, and Error 55000 when a relation that
        stays depends on them by now, by a foreign key unless `drops_references`.
        """
        while made := self._drop(relations, also, drops_references):
            relations = [*relations, *made]
        for relation in relations:
            self._plans.forget(relation.id)

    def _drop(
        self, relations: list[Relation], also: Callable[[Cursor], None], drops_references: bool
    ) -> list[Relation]:
        """Work as `drop`, but drop nothing where relations have come that will replace some; they are returned."""
        self.cancel(tuple(relation.id for relation in relations if not relation.created))
        with self._coordinator.barrier_lock, self._store.change() as cursor:
            ids = {relation.id for relation in relations}
            made = [self._store.catalog.replacement(id_) for id_ in ids]
            new = [relation for relation in made if relation is not None and relation.id not in ids]
            if new:
                return new
            self._check_unused(ids)
            self._drop_references(cursor, ids, drops_references)
            # A cancelled job is gone by now; a job that finished before is not.
            left = [relation for relation in relations if relation.id in self._store.catalog.by_id]
            drop_relations(self._store, cursor, sorted(left, key=lambda r: -r.id))
            also(cursor)
        return []

    def _check_unused(self, ids: set[int]) -> None:
        new = [d for id_ in ids for d in self._store.catalog.dependents(id_) if d.id not in ids]
        if new:
            raise _now_depends(new[0])

    def _drop_references(self, cursor: Cursor, ids: set[int], are_dropped: bool) -> None:
        catalog = self._store.catalog
        referencing = {t.id: t for id_ in ids for t, _ in catalog.foreign_keys_to(id_) if t.id not in ids}
        if referencing and not are_dropped:
            raise _now_depends(next(iter(referencing.values())))
        for table in referencing.values():
            left = without_foreign_keys(table, lambda key: not ids.isdisjoint((key.parent, key.parent_key)))
            forget_constraints(cursor, table, left)
            place(cursor, [with_text(left, catalog)])

    def close(self) -> None:
        """Stop all jobs; they resume when the server starts again."""
        with self._lock:
            self._closing = True
        _stop(list(self._running.values()))


def _now_depends(relation: Relation) -> Error:
    return Error(
        f"{relation.kind} {relation.qualified_name} has just come to depend on what is to be dropped",
        errors.NOT_IN_PREREQUISITE_STATE,
        hint="Try again.",
    )


def _stop(jobs: list[BackfillJob]) -> None:
    """Stop jobs: all are told before any is waited for."""
    for job in jobs:
        job.shut_down()
    for job in jobs:
        job.wait_until_stopped(30)


def refuse_altering(catalog: Catalog, view: Relation) -> None:
    """Raise Error 55006 for a view that is being given another definition."""
    made = catalog.replacement(view.id)
    if made is not None:
        raise Error(
            f'the query of {view.kind} "{view.name}" is being altered',
            errors.OBJECT_IN_USE,
            hint=f"WAIT {view.kind.upper()} {quote_if_needed(view.name)} waits for it, CANCEL JOBS {made.id} ends it.",
        )
