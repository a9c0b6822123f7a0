"""EXPLAIN, and its quotes of backfills: EXPLAIN (BACKFILL, COST) of a statement that fills a relation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import at_one_moment
from sparkwave.catalog.model import INITIAL, Job, Relation
from sparkwave.catalog.stores.application_store import usual_starts_s
from sparkwave.catalog.types import VARCHAR
from sparkwave.executor.backfill.appraisal import ONE_STEP, Appraisal, Steps, appraise, steps_on_spark
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.spark.applications import is_local
from sparkwave.executor.spark.capacity import of_this_machine
from sparkwave.planner.backfill.cost_model import IN_PROCESS, SERVERLESS, STEADY, Engine, Finished, quote
from sparkwave.planner.backfill.estimates import Estimate
from sparkwave.planner.definitions.view_options import MAX_COST, amount
from sparkwave.planner.explain.lines import check
from sparkwave.planner.explain.quote import Offer, Quoted, as_json, as_text, money_text
from sparkwave.planner.plan.streaming_query import KINDS
from sparkwave.planner.statements import AlterQuery, CreateIndex, CreateSink, CreateStreaming, Explain, Option
from sparkwave.server.reads import queries
from sparkwave.server.reads.execution import check_plan
from sparkwave.server.reads.result_columns import rows_result
from sparkwave.server.session.session import Session
from sparkwave.server.session.variables import PRICE, SYSTEM
from sparkwave.server.statements.named_connections import with_connection
from sparkwave.server.statements.planned_jobs import PlannedJob, creation_of, placed_index, planned_job
from sparkwave.server.statements.renames import check_created, find_altered
from sparkwave.server.wire.result import Notice, Result

# Seconds after the begin of a statement until which rows are counted for a quote, so that it takes a second at most.
COUNTED_S = 0.55
# Seconds until a resource group is there, as long as none has been started here.
USUAL_START_S = 4.0


def explain(session: Session, statement: Explain) -> Result:
    """Return the plan of a statement, or with COST the quote of its backfill; nothing is created.

    Raises the errors of `server.reads.queries.explain`, and with COST those of planning a CREATE or ALTER.
    """
    if not statement.options.cost:
        return queries.explain(session, statement)
    check(statement)
    target = statement.statement
    assert isinstance(target, CreateStreaming | AlterQuery)
    replaces = None
    if isinstance(target, AlterQuery):
        view = find_altered(session, target)
        if isinstance(view, Notice):
            return rows_result("EXPLAIN", ("QUERY PLAN",), [], (VARCHAR,))
        check_created(view, target.name)
        replaces, target = view, creation_of(view, target)
    if isinstance(target, CreateIndex):
        target = placed_index(session, target)
    elif isinstance(target, CreateSink):
        target = replace(target, options=with_connection(session, target.options)[0])
    planned = planned_job(session, target, replaces)
    check_plan(session, planned.plan)
    quoted = quote_of(session, target, planned, replaces)
    lines = as_json(quoted) if statement.options.format == "json" else as_text(quoted)
    return rows_result("EXPLAIN", ("QUERY PLAN",), [(line,) for line in lines], (VARCHAR,))


def quote_of(
    session: Session, statement: CreateStreaming, planned: PlannedJob, replaces: Relation | None = None
) -> Quoted:
    """Return what the backfill of a planned job would take, on each engine that could do it.

    `replaces` is the view that gets the rows.
    """
    context = session.context
    work = context.jobs.work_of(_relation(session, statement, planned, replaces), planned.plan, _job(planned))
    found = appraise(work, planned.began + COUNTED_S)
    finished = [
        Finished(each.kind, _computing(session, each.cores), each.seconds, Estimate.load(each.work))
        for each in context.jobs.measuring.measured()
    ]
    offers = []
    for engine, steps, is_taken in _engines(session, work, found):
        made = quote(found.work, engine, finished)
        if work.job.rate_limit:
            least = engine.start_s + work.inputs.total / work.job.rate_limit
            made = replace(made, low=max(made.low, least), middle=max(made.middle, least), high=max(made.high, least))
        offers.append(Offer(made, steps.slices, steps.tasks, steps.stages, is_taken))
    price = float(context.parameter(PRICE))
    most = amount(planned.options.max_cost) if planned.options.max_cost is not None else None
    return Quoted(work.filling.plan, found.work, found.inputs, offers, price, most, work.job.rate_limit)


def check_cost(
    session: Session, statement: CreateStreaming, planned: PlannedJob, replaces: Relation | None = None
) -> None:
    """Raise Error 54000 if the middle of a backfill's quote is over its `backfill_max_cost`.

    Also raises Error 22023 where it has no cost: without a price, or if it is not serverless.
    """
    option = planned.options.max_cost
    if option is None:
        return
    if not planned.is_serverless:
        raise _without_cost(option, "is for serverless backfills", "WITH (cloud.serverless_backfill_enabled = true)")
    if not float(session.context.parameter(PRICE)):
        hint = f"An administrator can set one: ALTER SYSTEM SET {PRICE} = 0.05"
        raise _without_cost(option, "needs the price of a core", hint)
    quoted = quote_of(session, statement, planned, replaces)
    low, middle, high = quoted.taken.quote.money(quoted.price)
    if middle > amount(option):
        raise Error(
            f"the backfill would cost about {money_text(middle)}, more than {MAX_COST} = {option.value}",
            errors.PROGRAM_LIMIT_EXCEEDED,
            detail=f"80 % of such backfills cost from {money_text(low)} to {money_text(high)}.",
            hint="EXPLAIN (BACKFILL, COST) says how long it takes, and what it would cost with other SKUs.",
            position=option.value_position,
        )


def _without_cost(option: Option, why: str, hint: str) -> Error:
    return Error(f"{option.name} {why}", errors.INVALID_PARAMETER_VALUE, hint=hint, position=option.position)


def _relation(session: Session, statement: CreateStreaming, planned: PlannedJob, replaces: Relation | None) -> Relation:
    """Return the relation to create, which gets no id."""
    plan, kind = planned.plan, KINDS[type(statement)]
    columns, key = plan.columns, plan.key_columns
    id_ = None if replaces is None else replaces.id
    return Relation(0, session.database, "", "", kind, columns, key, "", False, details=plan.details, replaces=id_)


def _job(planned: PlannedJob) -> Job:
    strategy, limit = planned.plan.strategy, planned.settings.rate_limit
    group = planned.group
    return Job(0, INITIAL, False, planned.is_serverless, group, strategy, rate_limit=limit, order=planned.plan.order)


def _computing(session: Session, cores: int) -> float:
    """How many of a group's cores compute at a time: on this machine, no more than it has."""
    return min(cores, of_this_machine().cores) if is_local(session.context.config.spark_master) else cores


def _engines(session: Session, work: Work, found: Appraisal) -> Iterator[tuple[Engine, Steps, bool]]:
    """Yield the engines that could fill a view, each with the steps, and whether CREATE takes it."""
    context, job = session.context, work.job
    if found.in_process:
        engine = Engine(IN_PROCESS, IN_PROCESS, of_this_machine().cores, context.lake.memory_bytes)
        yield engine, ONE_STEP, True
    with closing(context.lake.cursor()) as cursor, at_one_moment(cursor):
        starts = usual_starts_s(cursor)
    context.groups.check_exists(job.resource_group)
    size = context.config.group_sizes[job.resource_group]
    start = 0.0 if context.groups.is_ready(job.resource_group) else starts.get(False, USUAL_START_S)
    engine = Engine(STEADY, job.resource_group, _computing(session, size.all_cores), size.task_mib << 20, start)
    made = {1: steps_on_spark(work, 1)}
    yield engine, made[1], not (found.in_process or job.is_serverless)
    chosen = context.parameter("serverless_backfill_sku")
    if chosen not in context.config.skus:
        chosen = SYSTEM["serverless_backfill_sku"].default
    replicas = int(context.parameter("serverless_backfill_replicas"))
    for name, sku in context.config.skus.items():
        size = replace(sku, replicas=replicas)
        shares = size.slots * replicas if replicas > 1 else 1
        if shares not in made:
            made[shares] = steps_on_spark(work, shares)
        start = 0.0 if context.groups.has_usable(size) else starts.get(True, USUAL_START_S)
        engine = Engine(
            SERVERLESS, name, _computing(session, size.all_cores), size.task_mib << 20, start, size.all_cores
        )
        yield engine, made[shares], job.is_serverless and name == chosen
