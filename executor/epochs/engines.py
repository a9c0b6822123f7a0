"""Chooses the engine that takes a created view through an epoch, and whether it computes incrementally or in full."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from sparkwave.catalog import errors
from sparkwave.catalog.counters import ADVANCE_SECONDS, EPOCH_ROWS, REFRESHES
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import NEWEST
from sparkwave.catalog.lake.prepared_statements import prepare_due, unprepared_runs
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import Relation, adds_a_view
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill.slicing import row_count
from sparkwave.executor.epochs.advance import Advance, Changes, Engine, View, bind_changes, counted_rows, expected_rows
from sparkwave.executor.epochs.duckdb_engine import DuckDBEngine
from sparkwave.executor.epochs.feeds import Feeds
from sparkwave.executor.epochs.lookups import MOST_INDEXED, Lookups, input_owner
from sparkwave.executor.epochs.reductions import Reduced, Reductions
from sparkwave.executor.epochs.refresh import FULL, INCREMENTAL, Refresh
from sparkwave.executor.epochs.side_by_side import Sides, Task
from sparkwave.executor.epochs.time_limit import TimeLimit
from sparkwave.executor.epochs.versions import Version
from sparkwave.executor.faults import message_of
from sparkwave.executor.memory.copies import Copies
from sparkwave.executor.memory.delta_tables import drop_tables
from sparkwave.executor.memory.shared_buffer import SharedBuffer, state_owner
from sparkwave.executor.spark.groups import Groups
from sparkwave.executor.spark.spark_engine import spark_engine

logger = logging.getLogger(__name__)
T = TypeVar("T")

# DuckDB computes most views over at most this many rows in a few seconds.
SMALL_ROWS = 10_000_000


class NotStored(Exception):
    """An epoch needs changes of views in the lake that only the shared buffer has."""


@dataclass(frozen=True)
class _Computed:
    """A view's change, how long DuckDB took, and whether it has planned statements to run them once."""

    advance: Advance
    seconds: float
    has_planned: bool


@dataclass(frozen=True)
class Unfinished:
    """A change that a cursor computes or will compute; `finish` makes the result of it."""

    task: Task[_Computed]
    finish: Callable[[_Computed], Advance | None]


class Engines:
    """DuckDB in process for small changes, and Spark for large ones. Only the coordinator's thread uses it."""

    def __init__(
        self, store: Store, groups: Groups, duckdb_takes: Callable[[int], bool], refresh_mode: Callable[[], str],
        time_limit_s: Callable[[], float], copies: Copies, buffer: SharedBuffer,
    ) -> None:  # fmt: skip
        self._store, self._threads = store, store.lake.threads
        self._groups = groups
        self._duckdb_takes = duckdb_takes
        self._copies, self._lookups, self._buffer = copies, Lookups(copies, buffer), buffer
        self._reductions = Reductions(self._lookups)
        self._duckdb = DuckDBEngine(buffer)
        self._refresh = Refresh(refresh_mode)
        self._time_limit_s, self._time_limit = time_limit_s, TimeLimit()
        self._sides = Sides(store.lake)
        self._ready_s: dict[int, float] = {}  # how long views took in their last epochs until they could be computed
        self._wanted: dict[int, frozenset[str]] = {}  # inputs in which few keys are looked up, by view
        self._known: tuple[Relation, ...] = ()

    def advance(
        self, cursor: Cursor, view: View, versions: Mapping[str, Version], feeds: Feeds, times: tuple[int, int],
        stored_at: int, tries: int | None, may_run_beside: bool = False,
    ) -> tuple[Advance | Unfinished | None, Mapping[str, int | None]]:  # fmt: skip
        """Compute a view's change between two versions of its inputs, by name; None if nothing changes.

        Also returns the numbers of changed rows of the inputs, as in `Changes.counts`. If it `may_run_beside` others,
        the change may still have to be computed then.

        `times` are the old and new value of `now()` in microseconds. `stored_at` is a snapshot that has the view's
        stored rows. The view has a time limit in process, which doubles with each of the `tries` that have failed, and
        none where `tries` is None.
        """

        def stored_rows() -> int:
            snapshots = [(scan.relation, versions[scan.input].new) for scan in view.plan.scans]
            return sum(row_count(cursor, *found) for found in [*snapshots, (view.relation, stored_at)])

        def is_full(changed_rows: int) -> bool:
            return self._refresh.is_full(view, changed_rows, stored_rows)

        changes = None
        if self._refresh.may_be_full(view) and not self._duckdb.looks_through(view):
            found = {scan.input: expected_rows(versions[scan.input], feeds) for scan in view.plan.scans}
            rows = sum(found.values())
            if rows and self._duckdb_takes(rows) and is_full(rows):  # a full computation reads no changes
                counts = {name: counted_rows(versions[name], feeds, count) for name, count in found.items()}
                changed = frozenset(name for name, count in found.items() if count)
                changes = Changes(changed, rows, True, times, counts=counts)
        began = time.monotonic()
        if changes is None:
            changes = bind_changes(cursor, view, versions, feeds, times)
        reading_s = time.monotonic() - began
        if not changes.inputs:
            return None, changes.counts
        newest = max((version.new for version in versions.values()), default=NEWEST)  # a view of constants reads none
        with self._engine_for(view, changes.rows, newest) as engine:
            EPOCH_ROWS.labels(engine.name).observe(changes.rows)
            if engine is self._duckdb:
                limit_s = self._limit_s(tries)
                advance = self._in_process(
                    cursor, view, versions, changes, feeds, is_full(changes.rows), reading_s, limit_s, may_run_beside
                )
            else:
                with ADVANCE_SECONDS.labels(engine.name).time():
                    advance = _if_any(engine.advance(cursor, view, versions, changes))
        return advance, changes.counts

    def _limit_s(self, tries: int | None) -> float:
        return self._time_limit_s() * 2**tries if tries is not None else 0.0

    def _in_process(
        self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes, feeds: Feeds,
        is_full: bool, reading_s: float, limit_s: float, may_run_beside: bool,
    ) -> Advance | Unfinished | None:  # fmt: skip
        began = time.monotonic()

        def finish(computed: _Computed) -> Advance | None:
            advance, seconds = computed.advance, computed.seconds
            if advance.wanted:
                self._wanted[view.relation.id] = advance.wanted | self._wanted.get(view.relation.id, frozenset())
            self._refresh.took(view, changes.rows, is_full, reading_s + seconds, computed.has_planned)
            REFRESHES.labels(FULL if is_full else INCREMENTAL).inc()
            ADVANCE_SECONDS.labels(self._duckdb.name).observe(ready_s + seconds)
            if view.relation.created:
                self._buffer.expect(cursor, advance.of_states if view.relation.is_sink else advance)
            return _if_any(advance)

        with self._time_limit.of(cursor, limit_s):
            reads = self._duckdb.compile(view, changes, is_full)  # done once, so its time does not count for either way
            if view.relation.created:
                versions = self._lookups.versions(
                    cursor,
                    self._store.catalog,
                    view,
                    versions,
                    feeds,
                    reads.names,
                    not is_full,
                    reads.lookups,
                    versions if changes.most_rows <= MOST_INDEXED else self._wanted.get(view.relation.id, ()),
                )
            ready, reduced = None, Reduced({})
            if not is_full:
                submit = partial(self._submit, None, limit_s)
                reduced = self._reductions.of(cursor, view, versions, feeds, reads.reductions, submit)
                ready = self._duckdb.ready(cursor, view, versions, changes, reduced.rows)
            ready_s = time.monotonic() - began
        self._ready_s[view.relation.id] = reading_s + ready_s

        def compute(by: Cursor) -> Advance:
            reduced.check()
            is_small = ready is not None and ready.is_for_few and self._sides.take_all_cores
            is_alone = by is not cursor or is_small  # DuckDB's own threads would not help
            with self._threads.during(lambda: 0 if is_alone else self._rows_read(view, changes, reads.names)):
                return self._duckdb.recompute(by, view, versions, changes) if ready is None else ready.run(by)

        is_movable = may_run_beside and ready is not None and ready.suits_all
        task = self._submit(view.relation.id, limit_s, partial(_compute, compute), is_movable, reduced.filled)
        unfinished = Unfinished(task, finish)
        return unfinished if may_run_beside else self.result(cursor, unfinished)

    def _submit(
        self, view_id: int | None, limit_s: float, compute: Callable[[Cursor], T], is_movable: bool,
        needs: Collection[Future[Any]] = (),
    ) -> Task[T]:  # fmt: skip
        """Let a cursor compute within `limit_s` seconds."""

        def within_limit(by: Cursor, limit: TimeLimit) -> T:
            with limit.of(by, limit_s):
                return compute(by)

        return self._sides.submit(within_limit, view_id, is_movable, needs)

    def result(self, cursor: Cursor, unfinished: Unfinished) -> Advance | None:
        """Return a change once it is computed, meanwhile computing others by the coordinator's own cursor.

        Raises the error of the computation.
        """
        self._sides.complete(unfinished.task, cursor, self._time_limit)
        return unfinished.finish(unfinished.task.future.result())

    def stop(self) -> None:
        """Forget changes that no cursor has begun to compute, and wait for the others."""
        self._sides.clear()

    def _rows_read(self, view: View, changes: Changes, read: frozenset[str]) -> int:
        """Return about how many rows the SQL that computes a view reads, by the names of its relations."""
        estimates, plan = self._store.lake.row_estimates, view.plan
        tables = {f"{state.name}_state": view.state_table(state) for state in plan.states}
        for scan in plan.scans:
            tables |= dict.fromkeys((f"{scan.input}_old", f"{scan.input}_new"), scan.relation.lake_table)
        return changes.rows + sum(
            estimates.of_table(table) for table in {tables[name] for name in read & tables.keys()}
        )

    def soonest_first(self, views: Sequence[Relation]) -> list[Relation]:
        """Return views, given in dependency order, in one in which the other cursors soon have something to compute."""
        ids = {view.id for view in views}
        independent = [view for view in views if ids.isdisjoint(view.upstreams)]
        dependent = [view for view in views if not ids.isdisjoint(view.upstreams)]
        return sorted(independent, key=lambda view: self._ready_s.get(view.id, 0.0)) + dependent

    def foresee(
        self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes,
        columns: Callable[[Relation], frozenset[str]],
    ) -> None:  # fmt: skip
        """As `executor.epochs.coordinator.Coordinator.foresee`.

        `columns` returns the columns of a relation that created views read.
        """
        owner = state_owner(view.relation.definition_id)
        self._copies.forget_ahead(lambda _, maker: maker == owner)
        if not changes.inputs:
            return
        reads = self._duckdb.compile(view, changes, False)
        if not adds_a_view(view.relation) or not self._duckdb_takes(changes.rows):
            return
        states = (state for state in view.plan.states if f"{state.name}_state" in reads.names)
        catalog = self._store.catalog
        try:
            self._buffer.copy_ahead(cursor, view, states)
            self._lookups.copy_ahead(cursor, catalog, view, versions, reads.names, reads.lookups, columns)
        except DuckDBError as error:
            logger.info("the barrier that ends the creation has to read more: %s", message_of(error))

    def begin_creation(self, relation: Relation) -> None:
        """Before a barrier takes a view along: forget the copies of a failed attempt, for its job may have gone on."""
        self._copies.forget_all(state_owner(relation.definition_id))

    def end_creation(self, relation: Relation) -> None:
        """After such a barrier: forget copies of states made ahead and not used, for the states change from now on."""
        owner = state_owner(relation.definition_id)
        self._copies.forget_ahead(lambda key, _: key[0] == owner)

    def is_small(self, cursor: Cursor, view: View, snapshot: int) -> bool:
        """Return whether the view's inputs have few enough rows to compute it in full as a last resort."""
        return sum(row_count(cursor, scan.relation, snapshot) for scan in view.plan.scans) <= SMALL_ROWS

    def compute_anew(
        self, cursor: Cursor, view: View, versions: Mapping[str, Version], times: tuple[int, int], tries: int | None
    ) -> Advance | None:
        """Compute a view's change in full, whatever the view has applied.

        Raises Error 55000 where that is impossible.
        """
        if view.plan.remembers or view.relation.is_sink:
            raise Error(
                "what has changed since it stopped is forgotten",
                errors.NOT_IN_PREREQUISITE_STATE,
                hint="Drop it and create it again.",
            )
        changes = Changes(frozenset(versions), 0, True, times)
        with self._time_limit.of(cursor, self._limit_s(tries)):
            advance = self._duckdb.recompute(cursor, view, versions, changes, are_bound=False)
        return advance if advance.has_changes else None

    def make_room(self) -> None:
        """Before an epoch: forget the copies that there is no room for."""
        self._copies.trim()

    def tidy(self, cursor: Cursor) -> None:
        """After an epoch: drop the temporary tables of its steps, and the copies of dropped relations."""
        relations = self._store.catalog.relations
        drop_tables(cursor, may_stay=relations is self._known)
        if relations is not self._known:
            self._known = relations
            inputs = {input_owner(relation) for relation in relations}
            self._copies.keep(inputs | {state_owner(relation.definition_id) for relation in relations})
            self._sides.keep({relation.id for relation in relations})
            self._ready_s, self._wanted = {}, {}
            self._reductions.forget()
        self._buffer.tidy(cursor)
        self._copies.drop_left(cursor)
        prepare_due(cursor)
        self._sides.prepare_due()

    def close(self) -> None:
        """Close the cursors of `executor.epochs.side_by_side`, while no epoch is computed."""
        self._sides.close()

    def forget_copies(self) -> None:
        """Forget all copies, because an epoch has failed."""
        self._copies.clear()

    @contextmanager
    def _engine_for(self, view: View, changed_rows: int, snapshot: int) -> Iterator[Engine]:
        if self._duckdb_takes(changed_rows):
            yield self._duckdb
            return
        if not self._buffer.is_stored_at(snapshot):  # Spark reads views from the lake only
            raise NotStored
        catalog, id_ = self._store.catalog, view.relation.id
        group = self._groups.get_soon(catalog.steady_group(catalog.job_by_id[id_]))
        calls = self._groups.calls
        with spark_engine(group, self._store.lake, f"epoch_{id_}") as engine:
            try:
                with calls.watched(id_, "epoch", silent_since=lambda: group.silent_since, give_up=engine.abandon):
                    yield engine
            except Exception:
                if group.is_alive:
                    group.check_answers()  # raises if a Spark that does not answer is the reason
                raise


def _compute(advance: Callable[[Cursor], Advance], cursor: Cursor) -> _Computed:
    """Compute a view's change by a cursor."""
    started, unprepared = time.monotonic(), unprepared_runs(cursor)
    found = advance(cursor)
    return _Computed(found, time.monotonic() - started, unprepared_runs(cursor) > unprepared)


def _if_any(advance: Advance) -> Advance | None:
    return advance if advance.has_changes or advance.errors is not None else None
