"""Checks whether the stored rows of each streaming relation fit its present plan, and makes those that do not anew.

A new plan over the stored rows of another plan would give wrong results, at once or with the next change. So at the
start, before anything reads or maintains a relation, its plan is compared with its stored `planner.plan.fingerprint`. A
relation of an earlier version has none: its fingerprint is made from its columns, its key and the tables of its states,
and then stored.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import INITIAL, Catalog, Job, Position, Relation
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores.epoch_store import stored_epoch
from sparkwave.catalog.stores.event_store import add_event
from sparkwave.catalog.stores.job_store import leave_behind
from sparkwave.catalog.stores.relation_store import put_fingerprint
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.types import duckdb_type
from sparkwave.executor.epochs.advance import View
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.epochs.takeover import replacement
from sparkwave.executor.faults import message_of
from sparkwave.executor.sinks.deliveries import log_name
from sparkwave.planner.bind.scopes import Scope
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.plan.fingerprint import Fingerprint, Stored, differences, fingerprint, load, same_tables
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_view
from sparkwave.planner.since import PLANNER
from sparkwave.planner.statements import CreateStreaming

logger = logging.getLogger(__name__)

PLAN_CHANGED = "STREAM_JOB_PLAN_CHANGED"


@dataclass(frozen=True)
class Unfit:
    """A relation whose stored rows were made by another plan than its present one, and the difference.

    `now` is the fingerprint of the present plan if the stored tables fit it. Then the rows may be computed anew in
    place, where they cannot be made beside it.
    """

    relation: Relation
    reason: str
    now: Fingerprint | None = None

    @property
    def text(self) -> str:
        return f"its plan is not the one that its rows were made by: {self.reason}"


def find_unfit(store: Store, plans: Plans) -> list[Unfit]:
    """Return the relations that cannot go on, upstreams first, and mark the created ones failed.

    Nobody may read a failed relation. For the other relations a missing fingerprint is stored.
    """
    catalog, cursor = store.catalog, store.lake.cursor()
    found, known = [], []
    for relation in catalog.in_dependency_order(job.id for job in catalog.jobs):
        try:
            view = plans.view(relation, catalog)
        except Exception as error:  # whatever the error is, the other relations can go on
            logger.exception("%s %s cannot be planned", relation.kind, relation.qualified_name)
            found.append(Unfit(relation, f"its definition cannot be planned: {message_of(error)}"))
            continue
        now = fingerprint(view.plan)
        stored = load(relation.fingerprint) if relation.fingerprint is not None else _of_catalog(cursor, view)
        different = differences(stored, now)
        if different:
            may_stay = same_tables(stored, now) and not view.plan.remembers and not relation.is_sink
            found.append(Unfit(relation, "; ".join(different), now if may_stay else None))
        elif relation.fingerprint != (dumped := now.dump()):
            known.append((relation.id, dumped))
    if found or known:
        # The present position: a version of the server whose plan fits goes on from it.
        here = Position(stored_epoch(cursor), store.lake.newest(cursor))
        with store.change(cursor=cursor):
            for id_, dumped in known:
                put_fingerprint(cursor, id_, dumped)
            for unfit in found:
                _note(store, cursor, unfit, here)
    return found


def _note(store: Store, cursor: Cursor, unfit: Unfit, here: Position) -> None:
    relation = unfit.relation
    logger.warning("%s %s cannot go on: %s", relation.kind, relation.qualified_name, unfit.text)
    info = {"name": relation.name, "definition": relation.definition, "reason": unfit.reason}
    add_event(cursor, PLAN_CHANGED, relation.id, info)
    if relation.created:
        job = store.catalog.job_by_id[relation.id]
        position = job.position if job.is_behind else here
        leave_behind(cursor, relation.id, position, unfit.text, has_failed=True)


def _of_catalog(cursor: Cursor, view: View) -> Fingerprint:
    """Return the fingerprint of the stored tables, as far as the catalogs have it."""
    relation, plan = view.relation, view.plan
    rows = Stored(tuple((c.lake_name, str(c.type)) for c in relation.stored), relation.in_lake(relation.key))
    needed = fingerprint(plan).states
    names = {plan.internal_name(relation.definition_id, state): state for state in needed}
    states = {}
    for table in _tables_of_states(cursor, relation):
        name = names.get(table)
        if name is None:
            states[table] = Stored((), ())
            continue
        described = cursor.execute(f"DESCRIBE {view.table_of(name).sql}").fetchall()
        types = {column: duckdb_type(type_).duckdb() for column, type_, *_ in described}
        columns = [(f.name, f.type) for s in plan.states if s.name == name for f in s.node.fields]
        # Types that are the same in DuckDB are written as in the plan.
        same = {c: str(type_) for c, type_ in columns if types.get(c) in (type_.duckdb(), type_.in_lake())}
        states[name] = Stored(tuple((column, same.get(column, types[column])) for column in types), needed[name].key)
    return Fingerprint(rows, states)


def _tables_of_states(cursor: Cursor, relation: Relation) -> list[str]:
    names = cursor.execute(f"SELECT name FROM {system_table('states')} WHERE job_id = ?", [relation.id]).fetchall()
    return [name for (name,) in names if name != log_name(relation.definition_id)]


def made_anew(relation: Relation, catalog: Catalog) -> tuple[Relation, StreamPlan, Job]:
    """Return what replaces a relation: the relation, plan and job by its present plan.

    Raises Error, as for ALTER MATERIALIZED VIEW … AS.
    """
    definition = relation.shown or relation.definition
    statement = parse_statement(definition)
    assert isinstance(statement, CreateStreaming)
    if relation.is_sink and relation.created:
        message = "what a sink has delivered stays, and all would come again"
        raise Error(message, hint="Drop it and create it again.")
    plan = plan_view(statement, catalog, Scope(relation.database, (relation.schema,), is_stored=True))
    job = catalog.job_by_id[relation.id]
    made = replace(
        relation,
        id=0,
        columns=plan.columns,
        key=plan.key_columns,
        definition=definition,
        created=False,
        initialized_at=None,
        made_as=None,
        shown=None,
        details=plan.details if relation.is_index else relation.details,
        replaces=relation.id if relation.created else relation.replaces,
        defined_by=None,
        planner=PLANNER,
        fingerprint=fingerprint(plan).dump(),
    )
    if relation.created:
        replacement(catalog, made)
    status = Job(
        0, INITIAL, True, job.is_serverless and not relation.created, catalog.steady_group(job), plan.strategy,
        rate_limit=job.rate_limit, parallelism=job.parallelism, backfill_parallelism=job.backfill_parallelism,
        order=plan.order, specific_group=job.specific_group,
    )  # fmt: skip
    return made, plan, status


def compute_in_place(store: Store, unfit: Unfit) -> None:
    """Let the next epoch compute all rows of a relation anew, in the stored tables."""
    assert unfit.now is not None
    with store.change() as cursor:
        put_fingerprint(cursor, unfit.relation.id, unfit.now.dump())
        leave_behind(cursor, unfit.relation.id, None, unfit.text, has_failed=True)
