"""SELECT and EXPLAIN."""

from __future__ import annotations

import json
from functools import partial

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.types import VARCHAR
from sparkwave.planner.batch.definition_checks import check_definition
from sparkwave.planner.batch.query import Batch, plan_query
from sparkwave.planner.batch.time_travel import points
from sparkwave.planner.explain import duckdb_plan
from sparkwave.planner.explain.lines import check
from sparkwave.planner.explain.lines import explain as explain_lines
from sparkwave.planner.explain.output_formats import FORMATS
from sparkwave.planner.plan.streaming_query import streaming_of
from sparkwave.planner.statements import (
    AlterQuery,
    CreateIndex,
    CreateStreaming,
    CreateTable,
    DeclareCursor,
    Delete,
    Explain,
    ExplainOptions,
    Insert,
    Merge,
    Query,
    Update,
)
from sparkwave.server.reads import execution, on_spark
from sparkwave.server.reads.from_copies import serve
from sparkwave.server.reads.internal_tables import with_internal_tables
from sparkwave.server.reads.past_queries import at_epoch, environment_at, told
from sparkwave.server.reads.result_columns import rows_result
from sparkwave.server.session.plan_cache import Plan
from sparkwave.server.session.session import Session
from sparkwave.server.session.variables import SESSION, is_custom
from sparkwave.server.wire.result import Notice, Result
from sparkwave.server.writes import dml
from sparkwave.server.writes.sequence_numbers import describe_with


def select(session: Session, statement: Query, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    """Run a query over copies, the lake, or on Spark, at one snapshot. `set_config` in the query takes effect."""
    result = _select(session, statement, oids, values)
    for lock in statement.tree.args.get("locks") or ():
        result.notices.append(Notice(f"{lock.sql(dialect='postgres')} locks nothing here"))
    return result


def _select(session: Session, statement: Query, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    planned = plan(session, statement, oids, values)
    versions = planned.environment.versions
    for name, value, is_local in planned.batch.sets:
        if name.lower() not in SESSION and not is_custom(name):
            continue
        if not is_local:
            session.variables.set(name, value)
        elif session.transaction.is_open:
            # Outside a block the value would last for this statement only, which does not read it.
            session.variables.set_local(name, value)
    found = on_spark.distributed(
        session, statement, planned.environment, lambda: len(execution.describe(session, planned))
    )
    if found is not None:
        return on_spark.run(session, found, planned)
    if not versions:
        served = serve(session, planned, values)
        return served or on_spark.or_on_spark(
            session, statement, planned, lambda: execution.run(session, planned, values)
        )
    with told(session, versions):
        return execution.run(session, planned, values)


def plan(
    session: Session, statement: Query | DeclareCursor, oids: tuple[int, ...], values: tuple[object, ...] | None = None
) -> Plan:
    """Return the plan of a query or of a cursor's query; with `values`, a plan that can run."""
    tree = statement.tree if isinstance(statement, Query) else statement.query
    environment = environment_at(session, points(tree)) if statement.reads_past else None
    if session.variables.get("query_epoch") != "0":
        environment = at_epoch(session, environment or session.environment, int(session.variables.get("query_epoch")))
    if statement.reads_internal:
        environment = with_internal_tables(session, environment or session.environment)
    planned = session.plan(statement, oids, lambda each: plan_query(tree, each, oids), environment)
    if values is None or not planned.batch.constants:
        return planned
    given = {number: values[number - 1] for number in planned.batch.constants}
    batch = plan_query(tree, planned.environment, oids, planned.batch.parameters, given)
    return Plan(statement, planned.environment, batch, {}, columns=planned.columns)


def explain(session: Session, statement: Explain) -> Result:
    """Run EXPLAIN: the planner's plan, DuckDB's for a query without operators, or with ANALYZE what a run did."""
    check(statement)
    target = statement.statement
    assert not isinstance(target, AlterQuery)  # only with COST
    environment = session.environment
    # Planning a batch statement as for a run finds its errors.
    batch = None if isinstance(target, CreateStreaming | CreateTable) else _batch(session, target)
    where = []
    if isinstance(target, Query) and batch is not None and statement.options.format == "text":
        where = _place(session, target, batch)
    if statement.options.analyze and batch is not None:
        return _lines([*where, *_duckdb_plan(session, batch, statement.options)])
    if isinstance(target, CreateIndex):
        check_definition(streaming_of(target, environment.catalog, environment.scope).query, environment)
    elif isinstance(target, CreateStreaming):
        check_definition(target.query, environment)
    try:
        indexes = session.variables.flag("enable_index_selection")
        catalog, scope = environment.catalog, environment.scope
        lines = explain_lines(
            statement, catalog, scope, session.backfill_settings, indexes, partial(execution.check_plan, session)
        )
    except Error as refused:
        if batch is None or statement.options.type != "physical":
            raise
        try:
            lines = _duckdb_plan(session, batch, statement.options)
        except DuckDBError as error:
            if translate(error).sqlstate == refused.sqlstate:
                raise refused from error  # the same error, with its position in the text
            raise
    return _lines([*where, *lines])


def _lines(lines: list[str]) -> Result:
    return rows_result("EXPLAIN", ("QUERY PLAN",), [(line,) for line in lines], (VARCHAR,))


def _place(session: Session, target: Query, batch: Batch) -> list[str]:
    """Return a line that says where a query runs, unless it runs in the server."""
    environment = session.environment
    found = on_spark.distributed(session, target, environment, lambda: len(execution.describe_batch(session, batch)))
    group = environment.catalog.databases[session.database]
    return [f"Distributed {{ engine: Spark, resource_group: {group} }}"] if found is not None else []


def _batch(session: Session, target: Query | Insert | Update | Delete | Merge) -> Batch:
    match target:
        case Query(tree):
            environment = environment_at(session, points(tree))
            if target.reads_internal:
                environment = with_internal_tables(session, environment)
            return plan_query(tree, environment)
        case Insert() | Update() | Delete() | Merge():
            return dml.plan(session, target, ())


def _duckdb_plan(session: Session, batch: Batch, options: ExplainOptions) -> list[str]:
    """Return DuckDB's plan of a query; with `analyze` run the query, and return the rows and times of its operators."""
    if options.analyze and batch.parameters:
        raise Error("EXPLAIN ANALYZE of a query with parameters is not supported", errors.FEATURE_NOT_SUPPORTED)
    cursor = session.context.lake.cursor()
    with session.interrupting(cursor):
        execution.show_system(session, cursor, batch)
        describe_with(cursor, batch.draws)
        found = json.loads(_explained(cursor, "ANALYZE, ", batch)) if options.analyze else {}
        if "children" in found:
            return FORMATS[options.format](duckdb_plan.analyzed(found))
        # DuckDB does not profile a query that it has answered while it planned.
        return FORMATS[options.format](duckdb_plan.planned(json.loads(_explained(cursor, "", batch))))


def _explained(cursor: Cursor, how: str, batch: Batch) -> str:
    [(_, text)] = cursor.execute(f"EXPLAIN ({how}FORMAT json) {batch.sql}").fetchall()
    return str(text)
