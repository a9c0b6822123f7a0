"""The resource group of a creating job: a steady one, or one of its own for serverless backfill."""

from __future__ import annotations

from collections.abc import Callable

from sparkwave.catalog.locks import Rank, RankedLock
from sparkwave.catalog.model import Job
from sparkwave.catalog.stores.job_store import set_job_group
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill.controls import Controls
from sparkwave.executor.spark.applications import Size
from sparkwave.executor.spark.groups import Group, Groups, Order


class JobGroup:
    """The group of the job that `job` returns. `wait_because` records why the job waits, None when it goes on."""

    def __init__(
        self,
        store: Store,
        groups: Groups,
        serverless_size: Callable[[], Size],
        job: Callable[[], Job],
        controls: Controls,
        wait_because: Callable[[str | None], None],
        reads: Callable[[], frozenset[int]],
        warm_up: Callable[[Group], None],
    ) -> None:
        """`reads` returns the ids of the relations that the job reads. `warm_up` is called with a new group."""
        self._store, self._groups, self._serverless_size = store, groups, serverless_size
        self._job, self._controls, self._wait_because = job, controls, wait_because
        self._reads, self._warm_up = reads, warm_up
        self._own: Group | None = None
        self._lock = RankedLock(Rank.JOB_GROUP)

    def announce(self) -> None:
        """Tell that the job will need a group of its own, if it does; `release` undoes it."""
        if self._job().is_serverless:
            self._groups.expect(self._order())

    def get(self) -> Group:
        """Return the group, a new one when the last has died. Raises Error 53000 if it cannot be had."""
        job = self._job()
        if not job.is_serverless:
            return self._groups.get(job.resource_group, lambda: self._controls.is_stopping)
        with self._lock:
            if self._own is None or not self._own.is_alive:
                self._give_back()
                self._own = self._borrow(job)
            return self._own

    def wait_for_steady(self) -> None:
        """Wait for the group that maintains the view once it is created. Raises Error 53000 if it cannot be had."""
        self._groups.get(self._store.catalog.steady_group(self._job()), lambda: self._controls.is_stopping)

    def _borrow(self, job: Job) -> Group:
        group = self._groups.borrow(self._order(), lambda: self._controls.is_stopping)
        if group.uses == 1:
            self._warm_up(group)
        with self._store.change() as cursor:
            set_job_group(cursor, job.id, group.name)
        self._wait_because(None)
        return group

    def _order(self) -> Order:
        return Order(self._serverless_size(), None, self._job().id, self._reads(), self._wait_because)

    @property
    def slots(self) -> int:
        """The number of steps that the group runs at a time."""
        return self.get().size.all_slots

    @property
    def shares(self) -> int:
        """The least number of slices of a large fragment: the slots, if there are several nodes.

        A single node is busy with one slice, which uses all of its cores.
        """
        return self.slots if self.get().size.replicas > 1 else 1

    def release(self) -> None:
        """Give the job's own group back, if it has one."""
        with self._lock:
            self._give_back()
        self._groups.withdraw(self._job().id)

    def _give_back(self) -> None:
        if self._own is not None:
            self._groups.give_back(self._own, self._job().id)
        self._own = None
