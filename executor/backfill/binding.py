"""Checks that DuckDB can run a view's queries, before anything of the view is stored.

DuckDB plans the queries that fill the view over empty tables with the input types. A query that it refuses here would
fail in every step of the job. The delta program has the same expressions and takes far longer to plan.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.names import quote
from sparkwave.executor.epochs.advance import set_times
from sparkwave.executor.epochs.delta_programs import whole
from sparkwave.executor.faults import is_nobodys
from sparkwave.planner.plan.nodes import Field
from sparkwave.planner.plan.refusal import REFUSED, refusal
from sparkwave.planner.plan.stream_plan import StreamPlan


def check_binds(cursor: Cursor, plan: StreamPlan) -> None:
    """Raise an error for a query that DuckDB cannot run: Error 0A000, or PostgreSQL's for a wrong value or type.

    The cursor is a new one and is used for nothing else.
    """
    set_times(cursor, (0, 0))
    for scan in plan.scans:
        types = {column.name: column.type for column in scan.relation.columns}
        _make_empty(cursor, f"{scan.input}_new", (Field(name, types[name]) for name in scan.columns))
    for state in plan.states:
        _make_empty(cursor, f"{state.name}_state", state.node.fields)
    try:
        for item in whole(plan):
            cursor.execute(f"EXPLAIN {item.query}")
    except DuckDBError as error:
        if is_nobodys(translate(error)):
            raise

        def asked(fields: tuple[Field, ...], query: str) -> str | None:
            try:
                _make_empty(cursor, REFUSED, fields)
                cursor.execute(f"EXPLAIN {query}")
            except DuckDBError as found:
                return str(found)
            return None

        raise refusal(plan, asked) from error


def _make_empty(cursor: Cursor, name: str, fields: Iterable[Field]) -> None:
    columns = ", ".join(f"{quote(field.name)} {field.type.duckdb()}" for field in fields) or "_none INTEGER"
    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {name} ({columns})")
