"""All streaming jobs: creating, dropping, cancelling, waiting for them, and taking them up again after a restart."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from dataclasses import replace

from catalog import errors
from catalog.errors import Error
from catalog.lake import Lake
from catalog.model import CREATING, INITIAL, Column, Job, Relation
from catalog.store import Store
from executor.advance import internal_name
from executor.backfill import BackfillJob
from executor.coordinator import Coordinator
from executor.groups import Groups
from executor.plans import Plans
from executor.work import Settings
from planner.stream import StreamPlan


class Jobs:
    """The creating jobs of this server."""

    def __init__(
        self, store: Store, plans: Plans, groups: Groups, coordinator: Coordinator, settings: Settings
    ) -> None:
        self._store = store
        self._lake: Lake = store.lake
        self._plans = plans
        self._groups = groups
        self._coordinator = coordinator
        self._settings = settings
        self._running: dict[int, BackfillJob] = {}
        self._lock = threading.Lock()

    def recover(self) -> None:
        """Resume the jobs that were being created; drop those that never started; remove what nobody knows."""
        for job in self._store.catalog.jobs:
            relation = self._store.catalog.by_id[job.id]
            if job.status == INITIAL:
                with self._store.change() as cursor:
                    self._store.drop_relation(cursor, relation)
                    info = {"name": relation.name, "definition": relation.definition, "error": "clear during recovery"}
                    self._store.add_event(cursor, "DIRTY_STREAM_JOB_CLEAR", job.id, info)
        with self._store.change(relations=False) as cursor:
            self._store.forget_slices(cursor)
        resumed = [job for job in self._store.catalog.jobs if job.status == CREATING]
        self._remove_orphans({job.id for job in resumed})
        for job in resumed:
            self._start(job)

    def _remove_orphans(self, resumed: set[int]) -> None:
        """Delete staged files that belong to no job, and files that no snapshot knows."""
        kept = {f"job_{job_id}" for job_id in resumed}
        if self._lake.staging_path.exists():
            for path in self._lake.staging_path.iterdir():
                if path.name not in kept:
                    shutil.rmtree(path, ignore_errors=True)
        self._lake.delete_orphaned_files()

    def create(self, relation: Relation, plan: StreamPlan, job: Job) -> BackfillJob:
        """Reserve the name and start the job. `relation` and `job` have no id yet."""
        with self._store.change() as cursor:
            job_id = self._store.next_id(cursor)
            relation, job = replace(relation, id=job_id), replace(job, id=job_id)
            self._store.create_relation(cursor, relation)
            self._store.add_job(cursor, job)
            for state in plan.states:
                if not state.in_view:
                    columns = tuple(Column(f.name, f.type) for f in state.node.fields)
                    self._store.add_state(cursor, relation, internal_name(job_id, plan, state.name), columns)
        try:
            return self._start(job)
        except BaseException:
            with self._store.change() as cursor:
                self._store.drop_relation(cursor, relation)
            raise

    def _start(self, job: Job) -> BackfillJob:
        backfill = BackfillJob(self._store, self._plans, self._groups, self._coordinator, self._settings, job)
        with self._lock:
            self._running = {id_: b for id_, b in self._running.items() if not b.finished.is_set()}
            self._running[job.id] = backfill
        backfill.start()
        return backfill

    def cancel(self, ids: tuple[int, ...]) -> list[int]:
        """Cancel creating jobs and wait until nothing is left of them. Unknown and finished ids are left out."""
        found = [job for id_ in ids if (job := self._running.get(id_)) is not None and not job.finished.is_set()]
        for job in found:
            job.cancel()
        for job in found:
            job.finished.wait(60)
        return [job.id for job in found if job.error is not None]

    def wait(self, ids: set[int] | None, check: Callable[[], None]) -> None:
        """Wait for creating jobs, all of them when `ids` is None. Raises what made one of them fail."""
        for job in list(self._running.values()):
            if ids is None or job.id in ids:
                self.wait_for(job.finished, check)
                if job.error is not None and ids is not None:
                    raise job.error

    @staticmethod
    def wait_for(event: threading.Event, check: Callable[[], None]) -> None:
        """Wait for an event; `check` raises to give up."""
        while not event.wait(0.05):
            check()

    def controls_changed(self, job_id: int) -> None:
        """The rate limit or the parallelism of a job is another in the catalog."""
        job = self._running.get(job_id)
        if job is not None:
            job.controls_changed()

    def drop(self, relations: list[Relation]) -> None:
        """Drop relations, dependents last created first; creating ones are cancelled."""
        self.cancel(tuple(relation.id for relation in relations if not relation.created))
        with self._coordinator.barrier_lock, self._store.change() as cursor:
            for relation in sorted(relations, key=lambda r: -r.id):
                # A cancelled job is gone by now; one that finished first is not.
                if relation.id in self._store.catalog.by_id:
                    self._store.drop_relation(cursor, relation)
        for relation in relations:
            self._plans.forget(relation.id)

    def recover_now(self, check: Callable[[], None]) -> None:
        """Take all jobs up again from what is stored."""
        raise Error("RECOVER is not supported", errors.FEATURE_NOT_SUPPORTED)

    def close(self) -> None:
        """Stop all jobs where they are; they resume when the server starts again."""
        for job in list(self._running.values()):
            job.shut_down()
