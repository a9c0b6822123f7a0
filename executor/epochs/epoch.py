"""The computation of one epoch: the views to advance, their start positions, and the views to leave behind."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.snapshot_changes import is_kept
from sparkwave.catalog.log_context import logged
from sparkwave.catalog.model import FAILED, RESTING, Epoch, Job, Position, Relation, adds_a_view
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.epochs.advance import Advance, View
from sparkwave.executor.epochs.behind import Behind, Left
from sparkwave.executor.epochs.engines import Engines, NotStored, Unfinished
from sparkwave.executor.epochs.feeds import Feeds
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.epochs.takeover import Replacement, bind_difference
from sparkwave.executor.epochs.versions import Pending, Version
from sparkwave.executor.faults import error_of, is_nobodys
from sparkwave.executor.memory.shared_buffer import SharedBuffer
from sparkwave.executor.sinks.deliveries import Delivery, Sinks


class Blocked(Exception):
    """A job cannot finish now, for the reason `error`: an upstream view is left behind, or there is no Spark."""

    def __init__(self, job_id: int, error: Error) -> None:
        super().__init__(str(error))
        self.job_id = job_id
        self.error = error


def waits(upstream: Relation, reason: Error) -> Error:
    """Return the error for a job that cannot finish before an upstream view has caught up."""
    what = f"{upstream.kind} {upstream.qualified_name}"
    return Error(f"{what} is left behind", errors.OBJECT_IN_USE, detail=f"{what} has to catch up: {reason.message}")


@dataclass(frozen=True)
class Tools:
    """The objects that compute every epoch."""

    store: Store
    plans: Plans
    engines: Engines
    buffer: SharedBuffer
    sinks: Sinks
    behind: Behind


@dataclass
class EpochWork:
    """The computation from the epoch `applied` to the next one, `epoch`. It writes nothing to the lake before its end.

    `finishing` are jobs whose creation ends with the epoch; `replacements` are those among them that replace a view, by
    the view's id. `failed` are views that are known to stay behind. After `compute`, `pending` has the changes of
    relations, `read` the numbers of changed rows of their inputs (`Changes.counts`), `left` the created views that stay
    behind, and `recovered` the views that have caught up. `running` are views whose changes cursors compute or will
    compute. `has_computed` tells whether there were changes to compute, even if no view changed in the end.
    """

    tools: Tools
    cursor: Cursor
    applied: Epoch
    epoch: Epoch
    feeds: Feeds
    finishing: set[int]
    replacements: dict[int, Replacement]
    deliveries: list[Delivery]
    is_awaited: bool
    is_stopping: Callable[[], bool]
    failed: dict[int, Left]
    advances: dict[int, Advance] = field(default_factory=dict)
    pending: dict[int, Pending] = field(default_factory=dict)
    read: dict[int, Mapping[str, int | None]] = field(default_factory=dict)
    left: dict[int, Left] = field(default_factory=dict)
    recovered: list[Job] = field(default_factory=list)
    running: dict[int, tuple[Relation, Unfinished]] = field(default_factory=dict)
    has_computed: bool = False

    def compute(self) -> None:
        """Advance all views that can be advanced, upstreams first.

        Raises Blocked, NotStored, and the error of a job that is to finish.
        """
        creations = self.tools.buffer.creations  # before the catalog, where a checkpoint puts them first
        catalog = self.tools.store.catalog
        live = {relation.id for relation in catalog.relations if relation.is_streaming and relation.created} | creations
        self.tools.behind.keep(live)
        try:
            relations = catalog.in_dependency_order((live | self.finishing) - self.replacements.keys())
            for relation in relations if self.finishing else self.tools.engines.soonest_first(relations):
                self._take_in_running(relation.upstreams if relation.id in live else [*self.running])
                with logged(job_id=relation.id):
                    if relation.id in live:
                        self._advance_or_leave(_as_created(relation))
                    else:
                        self._finish(_as_created(relation) if adds_a_view(relation) else relation)
            self._take_in_running([*self.running])
        finally:
            self.tools.engines.stop()
        self._store_left()

    def _take_in_running(self, ids: Iterable[int]) -> None:
        """Take the changes of those of these views in that cursors compute, once they are computed."""
        for id_ in ids:
            if id_ in self.running:
                relation, unfinished = self.running.pop(id_)
                with logged(job_id=id_), self._or_leave(relation, unfinished):
                    self._take_in(relation, self.tools.engines.result(self.cursor, unfinished))
                    self.tools.behind.forget((id_,))

    @contextmanager
    def _or_leave(self, relation: Relation, unfinished: Unfinished | None = None) -> Iterator[None]:
        """Leave a view behind if its computation fails, which ends while entered; an `unfinished` one began before."""
        entered = time.monotonic()
        try:
            yield
        except NotStored:
            raise
        except Exception as error:
            if self.is_stopping():
                raise
            began = unfinished.task.began if unfinished is not None else entered
            found = self.tools.behind.failed(relation, error_of(error), self.epoch.snapshot, began)
            self.left[relation.id] = found

    def _store_left(self) -> None:
        """Store the positions of views that stay behind: a snapshot of the lake records them, before others go on."""
        if self.tools.behind.has_news(self.left) and not self.tools.buffer.is_stored_at(self.epoch.snapshot):
            raise NotStored
        self.tools.behind.store(self.left, self.applied, self.epoch.snapshot)

    def _finish(self, relation: Relation) -> None:
        """Take a creating job the rest of the way. Raises its error."""
        upstream = next((up for up in relation.upstreams if up in self.left), None)
        if upstream is not None:
            self._store_left()
            left = self.left[upstream].reason
            raise Blocked(relation.id, waits(self.tools.store.catalog.by_id[upstream], left))
        start = self.tools.store.catalog.job_by_id[relation.id].applied
        try:
            self._take_along(relation, start)
        except Exception as error:
            found = error_of(error)
            if found.sqlstate != errors.INSUFFICIENT_RESOURCES:
                raise
            self._store_left()
            raise Blocked(relation.id, found) from error

    def _advance_or_leave(self, relation: Relation) -> None:
        """Advance a created view, unless an upstream is left behind, the computation fails, or it has failed lately."""
        catalog, epoch = self.tools.store.catalog, self.epoch
        behind = self.tools.behind
        stays = self.failed.get(relation.id) or behind.held(relation.id) or behind.waiting(relation, self.left)
        if stays is not None:
            self.left[relation.id] = stays
            return
        job = catalog.job_by_id[relation.id]
        reads = [catalog.by_id[up] for up in relation.upstreams if catalog.by_id[up].is_stored]

        def has_changes(since: int) -> bool:
            return any(up.id in self.pending or self.feeds.has_changes(up, since, epoch.snapshot) for up in reads)

        if relation.streaming.refresh_s is not None and self._rests(relation, job, reads):
            self.left[relation.id] = Left(Error(RESTING, errors.OBJECT_IN_USE), has_failed=False)
            return
        if job.is_behind and not behind.is_due(job, has_changes, self.is_awaited):
            self.left[relation.id] = behind.still(job)
            return
        with self._or_leave(relation):
            if job.is_behind:
                self._catch_up(relation, job)
                self.recovered.append(job)
            else:
                touched = self._is_touched(relation, reads)
                self.has_computed |= touched
                if touched or self._reads_now(relation):
                    self._take_along(relation, Position(self.applied, epoch.snapshot), may_run_beside=True)
                if relation.id not in self.running:
                    behind.forget((relation.id,))

    def _is_touched(self, relation: Relation, reads: Iterable[Relation]) -> bool:
        """Whether anything that a view reads has changed within the epoch."""
        tables = (up for up in reads if up.is_table)
        since, until = self.applied.snapshot, self.epoch.snapshot
        in_tables = any(self.feeds.has_changes(table, since, until) for table in tables)
        return in_tables or not self.pending.keys().isdisjoint(relation.upstreams)

    def _reads_now(self, relation: Relation) -> bool:
        return self.tools.plans.view(relation, self.tools.store.catalog).plan.reads_now

    def _rests(self, relation: Relation, job: Job, reads: Iterable[Relation]) -> bool:
        """Whether a view that is refreshed at intervals leaves changes for its next refresh.

        The interval begins with the epoch before the first change that the view has not taken in.
        """
        if job.status == FAILED:
            return False
        if not job.is_behind:
            return self._is_touched(relation, reads) or self._reads_now(relation)
        due_s = relation.streaming.refresh_s or 0
        return job.position is not None and self.epoch.time_us < job.position.epoch.time_us + due_s * 1_000_000

    def _catch_up(self, relation: Relation, job: Job) -> None:
        """Advance a view that was left behind, by the changes since its position, or computed in full."""
        if not self.tools.buffer.is_stored_at(self.epoch.snapshot):
            raise NotStored  # the lake's change feeds have the missing changes
        position = self._kept(job)
        try:
            self._take_along(relation, position)
        except Exception as error:
            found, view = error_of(error), self.tools.plans.view(relation, self.tools.store.catalog)
            is_worth_it = not is_nobodys(found) and found.sqlstate != errors.OUT_OF_MEMORY and not relation.is_sink
            if position is None or not is_worth_it or view.plan.remembers:
                raise
            if not self.tools.engines.is_small(self.cursor, view, self.epoch.snapshot):
                raise
            # An incremental step may fail on a row that changed in the meantime.
            self._take_along(relation, None)

    def _kept(self, job: Job) -> Position | None:
        """Return the position of a view that was left behind; None if the lake has forgotten the changes since."""
        position = job.position
        if position is not None and is_kept(self.cursor, position.oldest - 1, self.epoch.snapshot):
            return position
        return None

    def _take_along(self, relation: Relation, start: Position | None, may_run_beside: bool = False) -> None:
        """Compute the change of a view from its position `start`, or in full if `start` is None."""
        view = self.tools.plans.view(relation, self.tools.store.catalog)
        advance = self._advance(view, start, may_run_beside)
        if isinstance(advance, Unfinished):
            self.running[relation.id] = relation, advance
        else:
            self._take_in(relation, advance)

    def _take_in(self, relation: Relation, advance: Advance | None) -> None:
        """Let a computed change, if any, be part of the epoch."""
        cursor, catalog, epoch = self.cursor, self.tools.store.catalog, self.epoch
        if advance is not None:
            self.pending[relation.id] = Pending(advance.changes, *advance.counts[-1])
        if advance is not None and relation.is_sink and advance.has_changes:
            delivery = self.tools.sinks.prepare(cursor, catalog, relation, advance.changes, epoch.snapshot)
            self.deliveries.append(delivery)
            advance = advance.of_states
        if advance is not None:
            self.advances[relation.id] = advance
        if relation.replaces is not None:
            item = self.replacements[relation.replaces]
            own = self.pending.get(relation.id)
            difference = bind_difference(cursor, item, self.tools.plans, catalog, epoch.snapshot, own)
            self.pending |= {relation.replaces: difference} if difference is not None else {}

    def _advance(self, view: View, start: Position | None, may_run_beside: bool) -> Advance | Unfinished | None:
        epoch = self.epoch
        since = start or Position.at(epoch)
        is_late = since.epoch != self.applied
        versions = {}
        for scan in view.plan.scans:
            old, pending = since.of(scan.relation), self.pending.get(scan.relation.id)
            versions[scan.input] = Version(scan.relation, old, epoch.snapshot, pending, is_net=is_late)
        times = (since.epoch.time_us, epoch.time_us)
        tries = None if view.relation.id in self.finishing else self.tools.behind.tries(view.relation.id)
        if start is None:
            self.read[view.relation.id] = dict.fromkeys(versions)
            return self.tools.engines.compute_anew(self.cursor, view, versions, times, tries)
        applied = self.applied.snapshot
        advance, self.read[view.relation.id] = self.tools.engines.advance(
            self.cursor, view, versions, self.feeds, times, applied, tries, may_run_beside
        )
        return advance


def _as_created(relation: Relation) -> Relation:
    """Return a relation whose tables the shared buffer changes, although the catalog may not have it as created yet."""
    return relation if relation.created else replace(relation, created=True)
