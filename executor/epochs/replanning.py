"""Whether what is stored of each streaming relation is fit for the plan that it has now; what is not is made anew.

Another plan over what is stored would be wrong, at once or with the next change. So a relation is held against its
`planner.plan.fingerprint` at the start, before anything reads or maintains it. That of an earlier version, which has
none, is made from its columns, its key and the tables of its states, and then kept.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import INITIAL, Catalog, Job, Position, Relation
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores.job_store import leave_behind
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.types import duckdb_type
from sparkwave.executor.epochs.advance import View, internal_name
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.epochs.takeover import replacement
from sparkwave.executor.faults import message_of
from sparkwave.executor.sinks.deliveries import log_name
from sparkwave.planner.bind.scopes import Scope
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.plan.fingerprint import Fingerprint, Stored, differences, fingerprint, load, same_tables
from sparkwave.planner.plan.rules import PLANNER
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_view
from sparkwave.planner.statements import CreateStreaming

logger = logging.getLogger(__name__)

PLAN_CHANGED = "STREAM_JOB_PLAN_CHANGED"


@dataclass(frozen=True)
class Unfit:
    """A relation whose plan is not the one that its rows were made by, and what differs.

    `now` is the fingerprint of its plan if the tables that are stored fit that: then its rows may be computed anew in
    place, where they cannot be made beside it.
    """

    relation: Relation
    reason: str
    now: Fingerprint | None = None

    @property
    def text(self) -> str:
        return f"its plan is not the one that its rows were made by: {self.reason}"


def find_unfit(store: Store, plans: Plans) -> list[Unfit]:
    """The relations that cannot go on, upstreams first: created ones are marked failed, so that nobody reads them.

    Of the others the fingerprint is stored where there was none.
    """
    catalog, cursor = store.catalog, store.lake.cursor()
    found, known = [], []
    for relation in catalog.in_dependency_order(job.id for job in catalog.jobs):
        try:
            view = plans.view(relation, catalog)
        except Exception as error:  # whatever it is, the others can go on
            logger.exception("%s %s cannot be planned", relation.kind, relation.qualified_name)
            found.append(Unfit(relation, f"its definition cannot be planned: {message_of(error)}"))
            continue
        now = fingerprint(view.plan)
        stored = load(relation.fingerprint) if relation.fingerprint is not None else _of_catalog(cursor, view)
        different = differences(stored, now)
        if different:
            may_stay = same_tables(stored, now) and not view.plan.looked_up and not relation.is_sink
            found.append(Unfit(relation, "; ".join(different), now if may_stay else None))
        elif relation.fingerprint != (dumped := now.dump()):
            known.append((relation.id, dumped))
    if found or known:
        # Where they stand: a version whose plan fits goes on from there.
        here = Position(store.epoch(cursor), store.lake.newest(cursor))
        with store.change(cursor=cursor):
            for id_, dumped in known:
                store.put_fingerprint(cursor, id_, dumped)
            for unfit in found:
                _note(store, cursor, unfit, here)
    return found


def _note(store: Store, cursor: Cursor, unfit: Unfit, here: Position) -> None:
    relation = unfit.relation
    logger.warning("%s %s cannot go on: %s", relation.kind, relation.qualified_name, unfit.text)
    info = {"name": relation.name, "definition": relation.definition, "reason": unfit.reason}
    store.add_event(cursor, PLAN_CHANGED, relation.id, info)
    if relation.created:
        job = store.catalog.job_by_id[relation.id]
        position = job.position if job.is_behind else here
        leave_behind(cursor, relation.id, position, unfit.text, has_failed=True)


def _of_catalog(cursor: Cursor, view: View) -> Fingerprint:
    """What is stored, as far as the catalogs tell."""
    relation, plan = view.relation, view.plan
    rows = Stored(tuple((c.lake_name, str(c.type)) for c in relation.stored), relation.in_lake(relation.key))
    needed = fingerprint(plan).states
    names = {internal_name(relation.definition_id, plan, state): state for state in needed}
    states = {}
    for table in _tables_of_states(cursor, relation):
        name = names.get(table)
        if name is None:
            states[table] = Stored((), ())
            continue
        described = cursor.execute(f"DESCRIBE {view.table_of(name).sql}").fetchall()
        types = {column: duckdb_type(type_).duckdb() for column, type_, *_ in described}
        columns = [(f.name, f.type) for s in plan.states if s.name == name for f in s.node.fields]
        # Types that are one in DuckDB are the plan's.
        same = {c: str(type_) for c, type_ in columns if types.get(c) in (type_.duckdb(), type_.in_lake())}
        states[name] = Stored(tuple((column, same.get(column, types[column])) for column in types), needed[name].key)
    return Fingerprint(rows, states)


def _tables_of_states(cursor: Cursor, relation: Relation) -> list[str]:
    names = cursor.execute(f"SELECT name FROM {system_table('states')} WHERE job_id = ?", [relation.id]).fetchall()
    return [name for (name,) in names if name != log_name(relation.definition_id)]


def made_anew(relation: Relation, catalog: Catalog) -> tuple[Relation, StreamPlan, Job]:
    """What takes a relation's place: the same by its plan of now. Raises Error, as for ALTER MATERIALIZED VIEW … AS."""
    definition = relation.shown or relation.definition
    statement = parse_statement(definition)
    assert isinstance(statement, CreateStreaming)
    if relation.is_sink and relation.created:
        message = "what a sink has delivered stays, and all would come again"
        raise Error(message, hint="Drop it and create it again.")
    plan = plan_view(statement, catalog, Scope(relation.database, (relation.schema,)))
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
    """Have the next epoch compute all rows anew: what is stored is where it was and counts for nothing."""
    assert unfit.now is not None
    with store.change() as cursor:
        store.put_fingerprint(cursor, unfit.relation.id, unfit.now.dump())
        leave_behind(cursor, unfit.relation.id, None, unfit.text, has_failed=True)
