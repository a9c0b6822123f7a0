"""Checks that the stored rows of a view are those of its query, computed anew from the tables.

A view has applied the stored epoch, so it is compared with its query over the tables at the epoch's snapshot and time,
and over other views as they are now, because those change in checkpoints only, together with the epoch. A view that is
left behind has a position of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor, is_kept
from sparkwave.catalog.model import Position, Relation
from sparkwave.catalog.names import quote
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.epochs.advance import View, set_times
from sparkwave.executor.epochs.delta_programs import whole
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.epochs.versions import rows_at

# Sums of floating-point numbers depend on the order of the rows, so they may differ by this relative amount.
_CLOSE = 1e-9


@dataclass(frozen=True)
class ViewCheck:
    """The result for a view: its faults, and the reason if it was not compared."""

    name: str
    findings: tuple[str, ...] = ()
    skipped: str | None = None


def check_view(store: Store, cursor: Cursor, plans: Plans, relation: Relation) -> ViewCheck:
    """Compare a view or an index, and the states of its operators, with its query. Raises DuckDB's errors."""
    name = f"{relation.kind} {relation.qualified_name}"
    job, newest = store.catalog.job_by_id[relation.id], store.lake.snapshot(cursor)
    here = job.position if job.is_behind else Position(store.epoch(cursor), newest)
    if not relation.created or here is None:
        return ViewCheck(name, skipped=f"its job is {job.status}")
    if job.is_behind and not is_kept(cursor, here.oldest - 1, newest):
        return ViewCheck(name, skipped=f"it is behind, and what it has applied is forgotten: {job.error}")
    view = plans.view(relation, store.catalog)
    if view.plan.looked_up:
        return ViewCheck(name, skipped="the rows of a temporal join depend on when its changes came")
    _compute_inputs(cursor, view, here)
    floats = {c.lake_name for c in relation.stored if c.type.is_float}
    floats |= {f.name for s in view.plan.states for f in s.node.fields if f.type.is_float}
    findings = []
    for number, item in enumerate(whole(view.plan)):
        rows = f"check_{number}"
        cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {rows} AS {item.query}")
        if item.state:
            cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {item.state}_state AS FROM {rows}")
        what = f"{name}: state {item.state}" if item.state else name
        difference = _difference(cursor, view.table_of(item.state).sql, rows, item.columns, floats)
        findings += [f"{what}: {difference}"] if difference else []
    return ViewCheck(name, tuple(findings))


def _compute_inputs(cursor: Cursor, view: View, here: Position) -> None:
    set_times(cursor, (here.epoch.time_us, here.epoch.time_us))
    for scan in view.plan.scans:
        query = rows_at(scan, here.epoch.snapshot if scan.relation.is_table else here.views)
        cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {scan.input}_new AS {query}")


def _difference(cursor: Cursor, stored: str, computed: str, columns: Sequence[str], floats: set[str]) -> str | None:
    """Return how two relations differ in these columns; None if they have the same rows."""
    listed = ", ".join(map(quote, columns))
    sides = {"too_many": (stored, computed), "too_few": (computed, stored)}
    for side, (rows, others) in sides.items():
        cursor.execute(
            f"CREATE OR REPLACE TEMPORARY TABLE {side} AS "
            f"SELECT {listed} FROM {rows} EXCEPT ALL SELECT {listed} FROM {others}"
        )
    same = " AND ".join(_is_close(column) if column in floats else _is_same(column) for column in columns)
    parts = []
    for side, other, words in (("too_many", "too_few", "unexpected"), ("too_few", "too_many", "missing")):
        where = f"WHERE NOT EXISTS (SELECT 1 FROM {other} b WHERE {same})" if not floats.isdisjoint(columns) else ""
        counted = cursor.execute(f"SELECT count(*), any_value(a)::VARCHAR FROM {side} a {where}").fetchone()
        assert counted is not None
        count, example = counted
        if count:
            parts.append(f"{count} {'row is' if count == 1 else 'rows are'} {words}: {example}")
    return "; ".join(parts) or None


def _is_same(column: str) -> str:
    return f"a.{quote(column)} IS NOT DISTINCT FROM b.{quote(column)}"


def _is_close(column: str) -> str:
    a, b = f"a.{quote(column)}", f"b.{quote(column)}"
    return f"({_is_same(column)} OR abs({a} - {b}) <= {_CLOSE} * greatest(abs({a}), abs({b}), 1))"
