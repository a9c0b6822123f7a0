"""SELECT and EXPLAIN."""

from __future__ import annotations

from functools import partial

from catalog.errors import Error
from catalog.translation import DuckDBError, translate
from catalog.types import VARCHAR
from planner.batch.query import Batch, check_reads, plan_query
from planner.batch.time_travel import points
from planner.explain.explain import check
from planner.explain.explain import explain as explain_lines
from planner.statements import (
    CreateStreaming,
    CreateTable,
    DeclareCursor,
    Delete,
    Explain,
    Insert,
    Merge,
    Query,
    Update,
)
from planner.streaming import streaming_of
from server import distributed, dml, execution
from server.columns import rows_result
from server.plan_cache import Plan
from server.result import Result
from server.sequence_numbers import describe_with
from server.serving import serve
from server.session import Session
from server.time_travel import at_epoch, environment_at, told
from server.variables import SESSION


def select(session: Session, statement: Query, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    """Run a query over copies, the lake, or on Spark; its rows are of one snapshot. `set_config` in it takes effect."""
    planned = plan(session, statement, oids, values)
    versions = planned.environment.versions
    for name, value, is_local in planned.batch.sets:
        if name.lower() not in SESSION:
            continue
        if not is_local:
            session.set(name, value)
        elif session.names.in_block or session.block is not None:
            # Else it lasts for this statement, in which nothing looks at it.
            session.set_local(name, value)
    on_spark = distributed.distributed(
        session, statement, planned.environment, lambda: len(execution.describe(session, planned))
    )
    if on_spark is not None:
        return distributed.run(session, on_spark, planned)
    if not versions:
        served = serve(session, planned, values)
        return served or distributed.or_on_spark(
            session, statement, planned, lambda: execution.run(session, planned, values)
        )
    with told(session, versions):
        return execution.run(session, planned, values)


def plan(
    session: Session, statement: Query | DeclareCursor, oids: tuple[int, ...], values: tuple[object, ...] | None = None
) -> Plan:
    """The plan of a query, also a cursor's: one that can be run where `values` are given."""
    tree = statement.tree if isinstance(statement, Query) else statement.query
    environment = environment_at(session, points(tree)) if statement.reads_past else None
    if session.get("query_epoch") != "0":
        environment = at_epoch(session, environment or session.environment, int(session.get("query_epoch")))
    planned = session.plan(statement, oids, lambda each: plan_query(tree, each, oids), environment)
    if values is None or not planned.batch.constants:
        return planned
    given = {number: values[number - 1] for number in planned.batch.constants}
    batch = plan_query(tree, planned.environment, oids, planned.batch.parameters, given)
    return Plan(statement, planned.environment, batch, {}, planned.columns)


def explain(session: Session, statement: Explain) -> Result:
    """The planner's plan of a statement; of a query that it has no operators for, DuckDB's. Nothing runs."""
    check(statement)
    target = statement.statement
    environment = session.environment
    # Planning a batch statement as it would be run finds its errors.
    batch = None if isinstance(target, CreateStreaming | CreateTable) else _batch(session, target)
    where = []
    if isinstance(target, Query) and batch is not None and statement.options.format == "text":
        where = _place(session, target, batch)
    if isinstance(target, CreateStreaming):
        check_reads(streaming_of(target, environment.catalog, environment.scope).query, environment)
    try:
        indexes = session.flag("enable_index_selection")
        catalog, scope = environment.catalog, environment.scope
        lines = explain_lines(
            statement, catalog, scope, session.backfill_settings, indexes, partial(execution.check_plan, session)
        )
    except Error as refused:
        if batch is None or statement.options.format != "text" or statement.options.type != "physical":
            raise
        try:
            lines = _duckdb_plan(session, batch)
        except DuckDBError as error:
            if translate(error).sqlstate == refused.sqlstate:
                raise refused from error  # the same fault, and the planner knows its place
            raise
    return rows_result("EXPLAIN", ("QUERY PLAN",), [(line,) for line in (*where, *lines)], (VARCHAR,))


def _place(session: Session, target: Query, batch: Batch) -> list[str]:
    """A line that says where a query runs, if that is not in the server."""
    environment = session.environment
    found = distributed.distributed(session, target, environment, lambda: len(execution.describe_batch(session, batch)))
    group = environment.catalog.databases[session.database]
    return [f"Distributed {{ engine: Spark, resource_group: {group} }}"] if found is not None else []


def _batch(session: Session, target: Query | Insert | Update | Delete | Merge) -> Batch:
    match target:
        case Query(tree):
            return plan_query(tree, environment_at(session, points(tree)))
        case Insert() | Update() | Delete() | Merge():
            return dml.plan(session, target, ())


def _duckdb_plan(session: Session, batch: Batch) -> list[str]:
    cursor = session.context.lake.cursor()
    with session.running(cursor):
        describe_with(cursor, batch.draws)
        rows = cursor.execute(f"EXPLAIN {batch.sql}").fetchall()
    return [line.rstrip() for _, text in rows for line in text.splitlines() if line.strip()]
