"""EXPLAIN ANALYZE of a running job: the rows a second of its operators (RisingWave: explain_analyze_stream_job.rs).

The rates of scans and of the job's result come from counts that exist anyway: the changed rows that the job reads, and
the changed rows that the job makes. One program computes all operators between them, whose rates are NULL. Backpressure
is NULL as well: no operator waits for another one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, not_found
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import literal
from sparkwave.catalog.types import VARCHAR
from sparkwave.executor.epochs.feeds import Feeds
from sparkwave.executor.epochs.measured_rows import Rows
from sparkwave.planner.bind.privileges import check_relation
from sparkwave.planner.explain.fragment_plans import fragment_operators
from sparkwave.planner.explain.operator_tree import Operator
from sparkwave.planner.plan.nodes import Scan
from sparkwave.planner.statements import ExplainJob
from sparkwave.server.reads.live_catalog import backfill_rows
from sparkwave.server.reads.result_columns import rows_result
from sparkwave.server.session.session import Session
from sparkwave.server.statements.named_relations import find_to_alter
from sparkwave.server.wire.result import Result

COLUMNS = ("identity", "actor_ids", "output_rows_per_second", "downstream_backpressure_ratio")
_ACTORS = "SELECT actor_id FROM memory.rwc._actors WHERE table_id = ? ORDER BY actor_id"
_BACKFILLED = """
SELECT upstream_id, sum(consumed)::BIGINT FROM memory.rwc._fragment_progress WHERE job_id = ? GROUP BY upstream_id
"""
_TICK_S = 0.05


@dataclass(frozen=True)
class _Moment:
    """The counts at one moment: of epochs, of a running backfill by upstream's id, and the newest snapshot."""

    at: float
    epochs: Rows
    snapshot: int
    backfilled: Mapping[int, int] = field(default_factory=dict)


def explain_job(session: Session, statement: ExplainJob) -> Result:
    """Measure a job for some seconds. Raises Error 42P01, 42704, 42809, 42501, 57014, or 55000 on a server that reads.

    A job that is being created is measured too: its scans have read the rows of its backfill.
    """
    relation = _relation(session, statement)
    if session.context.lake.read_only:
        message = "a server that only reads does not measure jobs"
        raise Error(message, errors.NOT_IN_PREREQUISITE_STATE, hint="The server that writes does.")
    root = fragment_operators(relation, session.context.store.catalog)
    before = _moment(session, relation)
    while (left := before.at + statement.seconds - time.monotonic()) > 0:
        session.running.check()
        time.sleep(min(left, _TICK_S))
    after = _moment(session, relation)
    with closing(session.context.system_views.cursor("rwc._actors")) as cursor:
        actors = ",".join(str(actor) for (actor,) in cursor.execute(_ACTORS, [relation.id]).fetchall())
    counts = _counts(session, relation, root, before, after)
    rows: list[tuple[object, ...]] = [
        (identity, actors, _rate(counts.get(id(operator)), after.at - before.at), None)
        for operator, identity in _lines(root, "", "")
    ]
    return rows_result("EXPLAIN", COLUMNS, rows, (VARCHAR,) * len(COLUMNS))


def _relation(session: Session, statement: ExplainJob) -> Relation:
    catalog = session.context.store.catalog
    if statement.name is not None:
        relation, position = find_to_alter(session, statement.name, statement.kind), statement.name.position
    else:
        assert statement.id is not None
        id_, position = statement.id
        if id_ not in catalog.by_id:
            raise not_found("job", str(id_), position=position, hint="rw_catalog.rw_streaming_jobs has all jobs.")
        relation = catalog.by_id[id_]
    if not (relation.is_streaming or relation.is_table):
        raise Error(f'{relation.kind} "{relation.name}" is no job', errors.WRONG_OBJECT_TYPE, position=position)
    check_relation(catalog, session.user, relation, "SELECT", position)
    return relation


def _moment(session: Session, relation: Relation) -> _Moment:
    context = session.context
    now = context.store.catalog.by_id.get(relation.id)
    backfilled: dict[int, int] = {}
    with closing(context.lake.cursor()) as cursor:
        if now is not None and not now.created:
            context.system_views.refresh(["rwc._fragment_progress"])
            cursor.execute(f"SET VARIABLE backfill_rows = {literal(backfill_rows(context))}")
            backfilled = dict(cursor.execute(_BACKFILLED, [relation.id]).fetchall())
        snapshot = context.lake.newest(cursor)
    return _Moment(time.monotonic(), context.coordinator.measured.of(relation.id), snapshot, backfilled)


def _counts(
    session: Session, relation: Relation, root: Operator, before: _Moment, after: _Moment
) -> dict[int, int | None]:
    """Return the rows of the operators between two moments, by the operator's id in memory; None if unknown."""
    if relation.is_table:
        lake = session.context.lake
        with closing(lake.cursor()) as cursor, closing(Feeds(lake, cursor, lambda: ())) as feeds:
            return {id(root): feeds.count(relation, before.snapshot, after.snapshot)}
    found: dict[int, int | None] = {id(root): after.epochs.output - before.epochs.output}
    if before.backfilled:
        found[id(root)] = None  # slices do not count the rows that they make
    scans = [(operator, operator.node) for operator in _all(root) if isinstance(operator.node, Scan)]
    read = [scan.relation.id for _, scan in scans]
    for operator, scan in scans:
        name, upstream = scan.input, scan.relation.id
        is_unknown = after.epochs.unknown.get(name, 0) > before.epochs.unknown.get(name, 0)
        if upstream in before.backfilled:  # counted together for all scans of an upstream, and only while it goes on
            is_unknown |= read.count(upstream) > 1 or upstream not in after.backfilled
        epochs = after.epochs.inputs.get(name, 0) - before.epochs.inputs.get(name, 0)
        backfilled = after.backfilled.get(upstream, 0) - before.backfilled.get(upstream, 0)
        found[id(operator)] = None if is_unknown else epochs + backfilled
    return found


def _all(operator: Operator) -> Iterator[Operator]:
    yield operator
    for child in operator.children:
        yield from _all(child)


def _lines(operator: Operator, first: str, rest: str) -> Iterator[tuple[Operator, str]]:
    """Yield the operators, each after the operator that reads it, with its name in RisingWave's tree."""
    yield operator, first + operator.name
    for number, child in enumerate(operator.children, 1):
        is_last = number == len(operator.children)
        yield from _lines(child, f"{rest}{'└─ ' if is_last else '├─ '}", f"{rest}{'   ' if is_last else '│  '}")


def _rate(rows: int | None, seconds: float) -> str | None:
    """Return rows a second, with up to three digits after the point."""
    if rows is None:
        return None
    return f"{rows / max(seconds, 1e-9):.3f}".rstrip("0").rstrip(".")
