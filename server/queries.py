"""SELECT and EXPLAIN."""

from __future__ import annotations

from catalog.types import VARCHAR
from planner.explain import explain_view
from planner.query import Batch, plan_query, plan_source
from planner.statements import CreateMaterializedView, Delete, Explain, Insert, Query, Update
from planner.stream import plan_view
from server import dml
from server.result import Result
from server.session import Session, rows_result


def select(session: Session, statement: Query, oids: tuple[int, ...], values: tuple[object, ...]) -> Result:
    """Run a query on DuckDB over the lake; the rows are those of one snapshot."""
    return session.query(plan_query(statement.tree, session.environment, oids), values)


def explain(session: Session, statement: Explain) -> Result:
    """The stream plan of a view, or DuckDB's plan of anything else. Nothing runs, nothing is provisioned."""
    target = statement.statement
    if isinstance(target, CreateMaterializedView):
        environment = session.environment
        plan = plan_view(target, environment.catalog, environment.scope)
        lines = explain_view(plan, statement.verbose, statement.incremental)
    else:
        lines = _duckdb_plan(session, _batch(session, target))
    return rows_result("EXPLAIN", ("QUERY PLAN",), [(line,) for line in lines], (VARCHAR,))


def _batch(session: Session, target: Query | Insert | Update | Delete) -> Batch:
    match target:
        case Query(tree):
            return plan_query(tree, session.environment)
        case Insert():
            return plan_source(target.source, (), session.environment)
        case Update() | Delete():
            return dml.plan(session, target, ())


def _duckdb_plan(session: Session, batch: Batch) -> list[str]:
    cursor = session.context.lake.cursor()
    rows = cursor.execute(f"EXPLAIN {batch.sql}").fetchall()
    return [line.rstrip() for _, text in rows for line in text.splitlines() if line.strip()]
