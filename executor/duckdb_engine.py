"""Runs delta programs in process: milliseconds for a handful of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from catalog.lake import Cursor, first_row
from catalog.metrics import EngineName
from catalog.row_ids import NONE, RowIds
from executor.advance import (
    Addition,
    Advance,
    Changes,
    Fill,
    View,
    applications,
    filled,
    make_table,
    program,
    set_times,
)
from executor.versions import Version, rows_added, rows_at, rows_new, rows_old
from planner.backfill import FillQuery
from planner.delta.compiler import VIEW_CHANGES
from planner.functions.emit import DUCKDB, to_sql
from planner.stream import StreamPlan


class DuckDBEngine:
    """The engine for small epochs. Holds nothing; everything is in the cursor it is given."""

    name: EngineName = "duckdb"

    def advance(self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes) -> Advance:
        steps, outputs = _sql(view.plan, changes.inputs, changes.retracts)
        left = f"j{view.relation.id}_changes"
        bound = _bound(view, versions) | {VIEW_CHANGES: f"FROM {left}"}
        if view.plan.reads_now:
            set_times(cursor, changes.times)
        for name, query in steps:
            make_table(cursor, left if name == VIEW_CHANGES else name, _within(query, bound))
        *states, own = applications(view, changes)
        counts = [
            (
                make_table(cursor, item.removed, _within(removed, bound)),
                make_table(cursor, item.added.rows, _within(added, bound)),
            )
            for item, (removed, added) in zip(states, outputs[:-1], strict=True)
        ]
        # What becomes of the view itself is in its changes already.
        removed, added = (f"({_within(query, bound)})" for query in outputs[-1])
        own = replace(own, removed=removed, added=replace(own.added, rows=added))
        signs = f"SELECT count(*) FILTER (_weight < 0), count(*) FILTER (_weight > 0) FROM {left}"
        row = first_row(cursor.execute(signs))
        assert row is not None
        return Advance(view, (*states, own), left, (*counts, row))

    def fill(
        self, cursor: Cursor, view: View, snapshot: int, rows: Mapping[str, RowIds], queries: Sequence[FillQuery],
        time_us: int,
    ) -> Fill:  # fmt: skip
        """As `executor.advance.Engine`."""
        set_times(cursor, (time_us, time_us))
        for scan in view.plan.scans:
            query = rows_at(scan, snapshot, rows[scan.input])
            cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {scan.input}_new AS {query}")
        additions = []
        for number, item in enumerate(queries):
            name = f"fill_{number}"
            make_table(cursor, name, to_sql(item.query, DUCKDB))
            if item.target:
                cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {item.target}_state AS FROM {name}")
            additions.append(Addition(view.table_of(item.target), name, item.columns))
        return filled(cursor, additions)


@lru_cache(maxsize=1024)
def _sql(
    plan: StreamPlan, changed: frozenset[str], retracts: bool
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """The SQL of the steps and of what they apply."""
    compiled = program(plan, changed, retracts)
    steps = tuple((step.name, to_sql(step.query, DUCKDB)) for step in compiled.steps)
    return steps, tuple((to_sql(a.removed, DUCKDB), to_sql(a.added, DUCKDB)) for a in compiled.applies)


def _bound(view: View, versions: Mapping[str, Version]) -> dict[str, str]:
    """The SQL of what steps read besides each other and the changes that are tables of the cursor."""
    bound = {f"{state.name}_state": f"FROM {view.state_table(state).sql}" for state in view.plan.states}
    for scan in view.plan.scans:
        version = versions[scan.input]
        bound |= {f"{scan.input}_old": rows_old(scan, version), f"{scan.input}_new": rows_new(scan, version)}
        if version.added_rows != NONE:
            bound[f"{scan.input}_changes"] = rows_added(scan, version)
    return bound


def _within(query: str, bound: Mapping[str, str]) -> str:
    """The query with what it reads in front of it: a view of the lake would be one more statement that looks there."""
    read = [f"{name} AS NOT MATERIALIZED ({rows})" for name, rows in bound.items() if f'"{name}"' in query]
    return f"WITH {', '.join(read)} FROM ({query})" if read else query
