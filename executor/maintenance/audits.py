"""Audits: compares the rows of created views with their queries, while the server runs.

An audit reads one snapshot of the lake, in which a checkpoint has stored the views, and computes a view's query anew.
Epochs and clients go on meanwhile. Where the rows differ, the checksum that epochs have recorded tells whether the
epochs have written these rows, or something else has changed them.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sparkwave.catalog import errors
from sparkwave.catalog.counters import AUDITS
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor, at_one_moment
from sparkwave.catalog.lake.lake_tables import at_version
from sparkwave.catalog.locks import Rank, RankedLock
from sparkwave.catalog.log_context import logged
from sparkwave.catalog.model import Position, Relation
from sparkwave.catalog.stores.epoch_store import stored_epoch
from sparkwave.catalog.stores.event_store import add_event
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.view_audits import DIFFERENT, PROVEN, SAME, SKIPPED, Audit, add_audit, newest_results
from sparkwave.catalog.stores.view_checksums import Checksum, changed, checksum_of, checksums, put_first
from sparkwave.executor.backfill.slicing import row_count
from sparkwave.executor.epochs.advance import View
from sparkwave.executor.epochs.coordinator import Coordinator
from sparkwave.executor.epochs.delta_programs import whole
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.faults import error_of
from sparkwave.executor.maintenance.view_check import (
    Comparison,
    Compute,
    compare,
    in_process,
    stored_checksum,
    told_apart,
)
from sparkwave.executor.spark.groups import Groups
from sparkwave.executor.spark.spark_engine import SparkEngine, spark_engine

logger = logging.getLogger(__name__)

# After an audit of t seconds in the background, none follows for REST * t seconds: audits take 2 % of the time.
REST = 49
AUDITS_PERIOD_S = 30.0
_DUCKDB, _SPARK = "duckdb", "spark"
# The type of the event of a view whose rows are not those of its query.
_EVENT = "VIEW_AUDIT_DIFFERENT"

_NOT_COMPUTED = "the stored rows have the recorded checksum; a server that only reads does not compute the query"
_NOT_RECORDED = "no checksum is recorded: the server that writes records it with SHOW CHECKSUM or an audit"

# Lets a cancel interrupt a cursor or an engine while entered.
Running = Callable[[Cursor | SparkEngine], AbstractContextManager[object]]


@dataclass(frozen=True)
class Client:
    """The client that asks for an audit: by default the background, which cannot be cancelled and starts no Spark.

    `check` raises Error 57014 once the audit is cancelled.
    """

    running: Running = nullcontext
    check: Callable[[], None] = lambda: None
    starts_spark: bool = False


BACKGROUND = Client()


@dataclass(frozen=True)
class AuditSettings:
    """Parameters of audits.

    `interval_s` are the seconds after which a view is audited again in the background; 0 turns these audits off. A view
    over at most `in_process_rows` rows is computed in process, others on Spark.
    """

    interval_s: Callable[[], int]
    in_process_rows: Callable[[], int]


@dataclass(frozen=True)
class _Moment:
    """A snapshot of the lake, and there a view's position, recorded checksum, and sum of recorded changes."""

    snapshot: int
    position: Position
    recorded: Checksum | None
    changed: Checksum


class Audits:
    """Audits views one at a time, for statements and in the background."""

    def __init__(
        self, store: Store, plans: Plans, groups: Groups, coordinator: Coordinator, settings: AuditSettings
    ) -> None:
        self._store, self._lake, self._plans = store, store.lake, plans
        self._groups, self._coordinator, self._settings = groups, coordinator, settings
        self._turn = RankedLock(Rank.AUDITS)
        self._rest_until = 0.0
        self._at_work: list[Cursor | SparkEngine] = []
        self._is_stopping = False
        with closing(self._lake.cursor()) as cursor:
            self.results = newest_results(cursor)  # by relation id, each with the time of the audit

    def run_once(self) -> bool:
        """Audit the view that was audited the longest ago, if it is due. Returns False: the next one follows later."""
        interval_s = self._settings.interval_s()
        relation = self._due(interval_s) if interval_s and time.monotonic() >= self._rest_until else None
        if relation is not None:
            with suppress(Error):  # the server stops
                audit = self.audit(relation)
                self._rest_until = time.monotonic() + REST * audit.seconds
        return False

    def stop(self) -> None:
        """Interrupt the audit in progress; no other one begins."""
        self._is_stopping = True
        while not self._turn.acquire(timeout=0.05):  # an interrupt is lost if nothing runs at that moment
            for each in list(self._at_work):
                each.interrupt()
        self._turn.release()

    def _due(self, interval_s: int) -> Relation | None:
        now, never = datetime.now(UTC), datetime.min.replace(tzinfo=UTC)
        ages = [
            ((now - self.results.get(relation.id, ("", never, 0))[1]).total_seconds(), relation)
            for relation in self._store.catalog.relations
            if is_auditable(relation)
        ]
        age, relation = max(ages, key=lambda item: item[0], default=(0.0, None))
        return relation if age >= interval_s else None

    def audit(self, relation: Relation, client: Client = BACKGROUND) -> Audit:
        """Compare a created view or index with its query, and store the result.

        A server that only reads compares the checksum of the stored rows with the recorded one, and stores nothing.
        Raises Error 57014 when it is cancelled, or 57P01 when the server stops. Any other failure is a result: the
        audit is SKIPPED.
        """
        with self._turn_of(client), logged(job_id=relation.id), closing(self._lake.cursor()) as cursor:
            compared = self._read_again if self._lake.read_only else self._audited
            audit = compared(cursor, relation, client)
        AUDITS.labels(audit.result.lower()).inc()
        if self._lake.read_only:
            return audit
        known = {**self.results, relation.id: (audit.result, audit.started_at, audit.snapshot)}
        self.results = {id_: result for id_, result in known.items() if id_ in self._store.catalog.by_id}
        if audit.result == DIFFERENT:
            logger.error("%s %s is not its query: %s", relation.kind, relation.qualified_name, audit.detail)
        return audit

    def checksum(self, relation: Relation, client: Client) -> Checksum:
        """Return the recorded checksum of a created view or index; the first time, its stored rows are read for it.

        A server that only reads records nothing. Raises Error 55000 for a view that is behind, 57014 when it is
        cancelled, and DuckDB's errors.
        """
        with self._turn_of(client), closing(self._lake.cursor()) as cursor, client.running(cursor):
            if self._lake.read_only:
                return checksums(cursor, relation.id).get(relation.id) or stored_checksum(cursor, relation)
            moment = self._moment(cursor, relation)
            if moment.recorded is not None:
                return moment.recorded
            types = self._plans.view(relation, self._store.catalog).plan.types_in(None)
            stored = checksum_of(cursor, at_version(relation.lake_name, moment.snapshot), types)
            with self._store.change(cursor):
                put_first(cursor, relation.id, stored - moment.changed)
            return stored

    @contextmanager
    def _turn_of(self, client: Client) -> Iterator[None]:
        while not self._turn.acquire(timeout=0.1):
            client.check()
        try:
            yield
        finally:
            self._turn.release()

    @contextmanager
    def _interruptible(self, client: Client, what: Cursor | SparkEngine) -> Iterator[None]:
        """Let a cancel, and the end of the server, interrupt a cursor or an engine while entered."""
        self._at_work.append(what)
        try:
            with client.running(what):
                yield
        finally:
            self._at_work.remove(what)

    def _check(self, client: Client) -> None:
        client.check()
        if self._is_stopping:
            raise Error("the server stops", errors.ADMIN_SHUTDOWN)

    def _is_over(self, client: Client) -> bool:
        try:
            self._check(client)
        except Error:
            return True
        return False

    def _audited(self, cursor: Cursor, relation: Relation, client: Client) -> Audit:
        began, audit = time.monotonic(), Audit(relation.id, datetime.now(UTC), 0.0, 0, SKIPPED)
        moment: _Moment | None = None
        self._check(client)
        try:
            moment = self._moment(cursor, relation)
            audit = replace(audit, snapshot=moment.snapshot)
            pinned = self._lake.pin(min(moment.snapshot, moment.position.oldest))
            try:
                with self._interruptible(client, cursor):
                    audit = self._compared(cursor, relation, moment, audit, client)
            finally:
                self._lake.unpin(pinned)
        except Exception as error:
            self._check(client)
            audit = replace(audit, result=SKIPPED, detail=error_of(error).message)
        audit = replace(audit, seconds=time.monotonic() - began)
        return self._stored(cursor, relation, moment, audit)

    def _read_again(self, cursor: Cursor, relation: Relation, client: Client) -> Audit:
        """Compare the checksum of a view's stored rows with the recorded one."""
        began, audit = time.monotonic(), Audit(relation.id, datetime.now(UTC), 0.0, 0, SKIPPED, engine=_DUCKDB)
        self._check(client)
        try:
            with self._interruptible(client, cursor), at_one_moment(cursor):
                snapshot = self._lake.snapshot(cursor)
                recorded = checksums(cursor, relation.id).get(relation.id)
                stored = stored_checksum(cursor, relation)
            audit = replace(audit, snapshot=snapshot, checksum=stored, detail=_NOT_RECORDED)
            if recorded is not None:
                is_same = stored == recorded
                detail = _NOT_COMPUTED if is_same else told_apart(stored, recorded)
                audit = replace(audit, result=SAME if is_same else DIFFERENT, detail=detail)
        except Exception as error:
            self._check(client)
            audit = replace(audit, detail=error_of(error).message)
        return replace(audit, seconds=time.monotonic() - began)

    def _moment(self, cursor: Cursor, relation: Relation) -> _Moment:
        """Let the lake have the views as they are shown, and return that moment. Raises Error for a view behind."""
        self._coordinator.checkpoints.run()
        with at_one_moment(cursor):
            snapshot, epoch = self._lake.snapshot(cursor), stored_epoch(cursor)
            recorded = checksums(cursor, relation.id).get(relation.id)
            known = changed(cursor, relation.id)
        job = self._store.catalog.job_by_id.get(relation.id)
        if job is None or job.is_behind:
            reason = f": {job.error}" if job is not None and job.error else ""
            raise Error(f"it is behind{reason}", errors.NOT_IN_PREREQUISITE_STATE)
        return _Moment(snapshot, Position(epoch, snapshot), recorded, known)

    def _compared(self, cursor: Cursor, relation: Relation, moment: _Moment, audit: Audit, client: Client) -> Audit:
        view = self._plans.view(relation, self._store.catalog)
        if view.plan.remembers:
            stored = checksum_of(cursor, at_version(relation.lake_name, moment.snapshot), view.plan.types_in(None))
            audit = replace(audit, checksum=stored)
            if moment.recorded in (stored, None):
                return replace(audit, detail=f"the rows of {view.plan.remembers} depend on when its changes came")
            return replace(audit, result=DIFFERENT, detail=told_apart(stored, moment.recorded))
        with self._computing(cursor, view, moment, client) as (engine, compute):
            found = compare(cursor, view, moment.snapshot, compute)
        audit = replace(audit, engine=engine, checksum=found.stored)
        is_recorded = moment.recorded in (found.stored, None)
        origin = "epochs have written these rows" if is_recorded else told_apart(found.stored, moment.recorded)
        if not found.differences:
            corrected = f"the recorded checksum was {moment.recorded}, and is corrected"
            return replace(audit, result=PROVEN, detail=None if is_recorded else corrected)
        detail = "; ".join([*map(str, found.differences), origin])
        return replace(audit, result=DIFFERENT, detail=detail, evidence=_evidence(relation, moment, found))

    @contextmanager
    def _computing(self, cursor: Cursor, view: View, moment: _Moment, client: Client) -> Iterator[tuple[str, Compute]]:
        """Yield the engine, and a function that has it compute the view and its states."""
        snapshots = {scan.input: moment.position.of(scan.relation) for scan in view.plan.scans}
        rows = sum(row_count(cursor, scan.relation, snapshots[scan.input]) for scan in view.plan.scans)
        if rows <= self._settings.in_process_rows():
            yield _DUCKDB, in_process(cursor, view, moment.position)
            return
        catalog = self._store.catalog
        name = catalog.steady_group(catalog.job_by_id[view.relation.id])
        if not client.starts_spark and not self._groups.is_ready(name):
            raise Error(f"resource group {name} is not there", errors.INSUFFICIENT_RESOURCES)
        group = self._groups.get(name, lambda: self._is_over(client))
        with spark_engine(group, self._lake, f"audit_{view.relation.id}") as engine:
            with at_one_moment(cursor):
                for scan in view.plan.scans:
                    engine.bind_slice(cursor, scan, snapshots[scan.input])
            calls, silent_since = self._groups.calls, lambda: group.silent_since
            with (
                self._interruptible(client, engine),
                calls.watched(view.relation.id, "audit", silent_since=silent_since, give_up=engine.abandon),
            ):
                fill = engine.fill_bound(cursor, view, whole(view.plan), moment.position.epoch.time_us)
            items = zip(whole(view.plan), fill.additions, strict=True)
            found = {item.state: addition.rows for item, addition in items}
            yield _SPARK, lambda item: found[item.state]

    def _stored(self, cursor: Cursor, relation: Relation, moment: _Moment | None, audit: Audit) -> Audit:
        """Store a result. The recorded checksum becomes that of rows that are proven."""
        with self._store.change(cursor):
            now = self._store.catalog.by_id.get(relation.id)
            if now is None or now.lake_table != relation.lake_table:
                return replace(audit, result=SKIPPED, detail="it has been altered or dropped meanwhile", evidence=None)
            add_audit(cursor, audit)
            is_right = audit.result == PROVEN or (audit.result == SKIPPED and moment and moment.recorded is None)
            if moment is not None and audit.checksum is not None and is_right and audit.checksum != moment.recorded:
                put_first(cursor, relation.id, audit.checksum - moment.changed)
            if audit.result == DIFFERENT:
                add_event(cursor, _EVENT, relation.id, {"name": relation.qualified_name})
        return audit


def is_auditable(relation: Relation) -> bool:
    """Return whether a relation is a created view or index, whose rows are those of a query."""
    return relation.is_streaming and relation.created and not relation.is_sink


def _evidence(relation: Relation, moment: _Moment, found: Comparison) -> str:
    """Return a JSON object with the differing rows, and what they were compared with."""
    told = {
        "definition": relation.definition,
        "epoch": moment.position.epoch.snapshot,
        "recorded_checksum": str(moment.recorded) if moment.recorded else None,
        "stored_checksum": str(found.stored),
    }
    differences = ", ".join(difference.json for difference in found.differences)
    return f'{json.dumps(told)[:-1]}, "differences": [{differences}]}}'
