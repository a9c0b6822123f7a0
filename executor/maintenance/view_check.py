"""Checks that the stored rows of a view are those of its query, computed anew from the tables.

A view has applied the stored epoch, so it is compared with its query over the tables at the epoch's snapshot and time,
and over other views as they are in the lake, because those change in checkpoints only, together with the epoch. A view
that is left behind has a position of its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import at_version
from sparkwave.catalog.lake.snapshot_changes import is_kept
from sparkwave.catalog.model import Position, Relation
from sparkwave.catalog.names import quote
from sparkwave.catalog.stores.epoch_store import stored_epoch
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.view_checksums import Checksum, checksum_of
from sparkwave.executor.epochs.advance import View, set_times
from sparkwave.executor.epochs.delta_programs import Added, whole
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.epochs.versions import rows_at
from sparkwave.planner.plan.inexact_fields import inexact_fields

# Sums of floating-point numbers, and what is computed from such sums, may differ by this relative amount.
_CLOSE = 1e-9
# The most rows of a difference that are kept.
_EXAMPLES = 10


@dataclass(frozen=True)
class ViewCheck:
    """The result for a view: its faults, and the reason if it was not compared."""

    name: str
    findings: tuple[str, ...] = ()
    skipped: str | None = None


@dataclass(frozen=True)
class Side:
    """Rows of one relation that another one lacks: their number, and some of them as JSON."""

    count: int
    examples: tuple[str, ...]

    def told(self, words: str) -> str:
        return f"{self.count} {'row is' if self.count == 1 else 'rows are'} {words}: {self.examples[0]}"


@dataclass(frozen=True)
class Difference:
    """The rows that are stored but not in the query, and the rows of the query that are not stored.

    Both are rows of the state, or of the view if `state` is None.
    """

    state: str | None
    unexpected: Side
    missing: Side

    def __str__(self) -> str:
        sides = ((self.unexpected, "unexpected"), (self.missing, "missing"))
        found = "; ".join(side.told(words) for side, words in sides if side.count)
        return f"state {self.state}: {found}" if self.state else found

    @property
    def json(self) -> str:
        """A JSON object with the numbers of rows and some of them; no digit of a number is lost."""
        sides = {"unexpected": self.unexpected, "missing": self.missing}
        parts = [f'"state": {json.dumps(self.state)}', *(f'"{words}": {side.count}' for words, side in sides.items())]
        parts += [f'"{words}_rows": [{", ".join(side.examples)}]' for words, side in sides.items()]
        return f"{{{', '.join(parts)}}}"


@dataclass(frozen=True)
class Comparison:
    """The checksum of a view's stored rows, and the differences of the view and its states from the query."""

    stored: Checksum
    differences: tuple[Difference, ...]


def check_checksum(cursor: Cursor, relation: Relation, recorded: Checksum) -> str | None:
    """Return how the stored rows of a view or an index differ from those that epochs have written; None if not.

    Raises DuckDB's errors.
    """
    stored = stored_checksum(cursor, relation)
    return None if stored == recorded else told_apart(stored, recorded)


def stored_checksum(cursor: Cursor, relation: Relation) -> Checksum:
    """Return the checksum of the rows that are stored for a view or an index. Raises DuckDB's errors."""
    return checksum_of(cursor, relation.lake_name, {column.lake_name: column.type for column in relation.stored})


def told_apart(stored: Checksum, recorded: Checksum | None) -> str:
    return f"the stored rows have the checksum {stored}, those that epochs have written {recorded}"


# Returns the SQL of the rows of a state or view, computed anew.
Compute = Callable[[Added], str]


def check_view(store: Store, cursor: Cursor, plans: Plans, relation: Relation) -> ViewCheck:
    """Compare a view or an index, and the states of its operators, with its query. Raises DuckDB's errors."""
    name = f"{relation.kind} {relation.qualified_name}"
    job, newest = store.catalog.job_by_id[relation.id], store.lake.snapshot(cursor)
    here = job.position if job.is_behind else Position(stored_epoch(cursor), newest)
    if not relation.created or here is None:
        return ViewCheck(name, skipped=f"its job is {job.status}")
    if job.is_behind and not is_kept(cursor, here.oldest - 1, newest):
        return ViewCheck(name, skipped=f"it is behind, and what it has applied is forgotten: {job.error}")
    view = plans.view(relation, store.catalog)
    if view.plan.remembers:
        return ViewCheck(name, skipped=f"the rows of {view.plan.remembers} depend on when its changes came")
    differences = compare(cursor, view, newest, in_process(cursor, view, here)).differences
    return ViewCheck(name, tuple(f"{name}: {difference}" for difference in differences))


def in_process(cursor: Cursor, view: View, here: Position) -> Compute:
    """Return a function that has the cursor compute a view and its states at a position, states first."""
    set_times(cursor, (here.epoch.time_us, here.epoch.time_us))
    for scan in view.plan.scans:
        query = rows_at(scan, here.of(scan.relation))
        cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {scan.input}_new AS {query}")

    def compute(item: Added) -> str:
        if item.state is None:
            return f"({item.query})"
        cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {item.state}_state AS {item.query}")
        return f"{item.state}_state"

    return compute


def compare(cursor: Cursor, view: View, snapshot: int, compute: Compute) -> Comparison:
    """Compare the rows of a view and its states in a snapshot with computed ones. Raises DuckDB's errors.

    Rows are compared one by one only where the checksums differ.
    """
    found, own = [], Checksum()
    for item in whole(view.plan):
        types, stored = view.plan.types_in(item.state), at_version(view.table_of(item.state).sql, snapshot)
        rows, checksum = compute(item), checksum_of(cursor, stored, types)
        if checksum != checksum_of(cursor, rows, types):
            inexact = inexact_fields(view.plan.nodes)
            near = {name for name, type_ in types.items() if type_.is_float or (type_.is_numeric and name in inexact)}
            difference = _difference(cursor, item.state, stored, rows, item.columns, near)
            found += [difference] if difference.unexpected.count or difference.missing.count else []
        own = checksum if item.state is None else own
    return Comparison(own, tuple(found))


def _difference(
    cursor: Cursor, state: str | None, stored: str, computed: str, columns: Sequence[str], near: set[str]
) -> Difference:
    """Return how two relations differ in these columns; in those of `near` by more than `_CLOSE`."""
    listed = ", ".join(map(quote, columns))
    # Computed once: another computation may add floating-point numbers in another order.
    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE computed_rows AS SELECT {listed} FROM {computed}")
    sides = {"too_many": (stored, "computed_rows"), "too_few": ("computed_rows", stored)}
    for side, (rows, others) in sides.items():
        cursor.execute(
            f"CREATE OR REPLACE TEMPORARY TABLE {side} AS "
            f"SELECT {listed} FROM {rows} EXCEPT ALL SELECT {listed} FROM {others}"
        )
    same = " AND ".join(_is_close(column) if column in near else _is_same(column) for column in columns)

    def side_of(side: str, other: str) -> Side:
        where = f"WHERE NOT EXISTS (SELECT 1 FROM {other} b WHERE {same})" if near else ""
        query = f"SELECT to_json(a)::VARCHAR AS example, count(*) OVER () FROM {side} a {where} LIMIT {_EXAMPLES}"
        found = cursor.execute(query).fetchall()
        return Side(found[0][1] if found else 0, tuple(example for example, _ in found))

    return Difference(state, side_of("too_many", "too_few"), side_of("too_few", "too_many"))


def _is_same(column: str) -> str:
    return f"a.{quote(column)} IS NOT DISTINCT FROM b.{quote(column)}"


def _is_close(column: str) -> str:
    a, b = (f"{side}.{quote(column)}::DOUBLE" for side in "ab")
    return f"({_is_same(column)} OR abs({a} - {b}) <= {_CLOSE} * greatest(abs({a}), abs({b}), 1))"
