"""Runs delta programs in process: milliseconds for a handful of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from catalog.lake import Cursor
from catalog.metrics import EngineName
from catalog.row_ids import NONE, RowIds
from executor.advance import (
    Addition,
    Advance,
    Changes,
    Fill,
    View,
    applications,
    computed,
    filled,
    program,
    set_times,
)
from executor.versions import Version, rows_added, rows_at, rows_new, rows_old
from planner.backfill import FillQuery
from planner.functions.emit import DUCKDB, to_sql
from planner.stream import StreamPlan


class DuckDBEngine:
    """The engine for small epochs. Holds nothing; everything is in the cursor it is given."""

    name: EngineName = "duckdb"

    def advance(self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes) -> Advance:
        steps, outputs, read = _sql(view.plan, changes.inputs, changes.retracts)
        for scan in view.plan.scans:
            for version, rows in (("old", rows_old), ("new", rows_new)):
                name = f"{scan.input}_{version}"
                if name in read:
                    cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {rows(scan, versions[scan.input])}")
            if versions[scan.input].added_rows != NONE:
                added = rows_added(scan, versions[scan.input])
                cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {scan.input}_changes AS {added}")
        for state in view.plan.states:
            table = view.state_table(state)
            cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {state.name}_state AS FROM {table.sql}")
        if view.plan.reads_now:
            set_times(cursor, changes.times)
        for name, query in steps:
            cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {name} AS {query}")
        targets = applications(view, changes)
        for target, (removed, added) in zip(targets, outputs, strict=True):
            cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {target.removed} AS {removed}")
            cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {target.added.rows} AS {added}")
        left = f"j{view.relation.id}_changes"
        cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {left} AS FROM view_changes")
        return computed(cursor, view, targets, left)

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
            cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {name} AS {to_sql(item.query, DUCKDB)}")
            if item.target:
                cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {item.target}_state AS FROM {name}")
            additions.append(Addition(view.table_of(item.target), name, item.columns))
        return filled(cursor, additions)


@lru_cache(maxsize=1024)
def _sql(
    plan: StreamPlan, changed: frozenset[str], retracts: bool
) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...], frozenset[str]]:
    """The SQL of the steps and of what they apply, and the versions of inputs that the steps read."""
    compiled = program(plan, changed, retracts)
    steps = tuple((step.name, to_sql(step.query, DUCKDB)) for step in compiled.steps)
    outputs = tuple((to_sql(a.removed, DUCKDB), to_sql(a.added, DUCKDB)) for a in compiled.applies)
    versions = (f"{scan.input}_{version}" for scan in plan.scans for version in ("old", "new"))
    read = frozenset(name for name in versions if any(f'"{name}"' in query for _, query in steps))
    return steps, outputs, read
