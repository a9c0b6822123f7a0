"""Runs a query over copies of its tables in memory, if all its tables have a copy."""

from __future__ import annotations

from functools import partial

from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.server.reads import execution
from sparkwave.server.reads.result_columns import result_columns
from sparkwave.server.session.plan_cache import Plan
from sparkwave.server.session.session import Session
from sparkwave.server.wire.result import Result


def serve(session: Session, plan: Plan, values: tuple[object, ...]) -> Result | None:
    """Return the rows of a planned query from copies; None when the lake has to be read.

    A query that fails is left to the lake: a copy may have been dropped meanwhile, and the error must name lake
    objects.
    """
    served, serving = plan.batch.served, session.context.serving
    if served is None or not serving.covers(served.relations):
        return None
    snapshot, _ = serving.copies
    lookup = served.lookup
    if lookup is not None and plan.columns is not None:
        rows = serving.find(lookup.relation, lookup.column, values[lookup.parameter], lookup.outputs)
        if rows is not None:
            session.running.check()
            return Result("SELECT", plan.columns, iter((rows,)), counts_rows=True)
    cursor, sql, given = session.cursor(), served.sql, list(values) if plan.batch.parameters else None
    try:
        with session.interrupting(cursor, plan.batch.sql):
            cursor.execute(sql, given)
    except DuckDBError:
        cursor.close()
        session.running.check()
        return None
    if served.reads_views and served.relations and session.context.buffer.newest.snapshot > snapshot:
        cursor.close()
        return None  # the views in the buffer may be newer than the copies of the tables
    plan.columns = plan.columns or result_columns(cursor, plan.batch.origins)
    again = partial(execution.run_again, cursor, sql, given)
    return execution.stream(session, cursor, "SELECT", plan.columns, again=again)
