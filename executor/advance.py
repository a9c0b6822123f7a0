"""`advance`: the change of one view between two versions of its inputs, and how a checkpoint applies it.

What an engine computes is left as temporary relations of the cursor, so that any later step of the same epoch, on
either engine, reads it the same way. Nothing is written to the lake before `apply`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from catalog.lake import Cursor
from catalog.model import Relation
from catalog.names import lake_name, quote
from executor.feeds import Feeds
from executor.versions import Version, rows_changed
from planner.delta.compiler import compile_delta
from planner.delta.now import NOW
from planner.delta.program import DeltaProgram
from planner.stream import State, StreamPlan


@dataclass(frozen=True)
class View:
    """A view and its plan."""

    relation: Relation
    plan: StreamPlan

    def state_table(self, state: State) -> str:
        """Where the lake stores a state's rows: an internal table, or the view itself."""
        return self.relation.lake_name if state.in_view else self.internal_table(state.name)

    def internal_table(self, state_name: str) -> str:
        name = internal_name(self.relation.id, self.plan, state_name)
        return lake_name(self.relation.database, self.relation.schema, name)


def internal_name(job_id: int, plan: StreamPlan, state_name: str) -> str:
    """RisingWave's form of an internal table's name."""
    operator = next(state.operator for state in plan.states if state.name == state_name)
    return f"__internal_{job_id}_{state_name}_{operator}"


@dataclass(frozen=True)
class Application:
    """A stored table (quoted lake name), and the temporary relations with the keys to remove and the rows to add."""

    table: str
    key: tuple[str, ...]
    present: frozenset[str]  # columns of the key that are never NULL
    columns: tuple[str, ...]
    removed: str
    added: str

    def equals(self, column: str) -> str:
        """The operator that compares a key column: one that prunes, where it may."""
        return "=" if column in self.present else "IS NOT DISTINCT FROM"


@dataclass(frozen=True)
class Advance:
    """What an engine computed for one view: the tables to bring up to date and `changes`, a temporary relation.

    `counts` are the rows removed and added, by application.
    """

    view: View
    applications: tuple[Application, ...]
    changes: str
    counts: tuple[tuple[int, int], ...]

    @property
    def has_changes(self) -> bool:
        """Whether any stored row changes: the view's, or those of a state of its own."""
        return any(any(counts) for counts in self.counts)

    def apply(self, cursor: Cursor) -> None:
        """Write the change into the lake, inside the cursor's transaction."""
        for item, (removed, added) in zip(self.applications, self.counts, strict=True):
            if removed:
                same = " AND ".join(f"t.{quote(k)} {item.equals(k)} r.{quote(k)}" for k in item.key) or "TRUE"
                cursor.execute(f"DELETE FROM {item.table} AS t USING {item.removed} AS r WHERE {same}")
            if added:
                columns = ", ".join(map(quote, item.columns))
                cursor.execute(f"INSERT INTO {item.table} ({columns}) SELECT {columns} FROM {item.added}")


def computed(cursor: Cursor, view: View, targets: tuple[Application, ...], changes: str) -> Advance:
    """The advance whose temporary relations an engine has left in the cursor."""
    relations = [name for item in targets for name in (item.removed, item.added)]
    row = cursor.execute("SELECT " + ", ".join(f"(SELECT count(*) FROM {name})" for name in relations)).fetchone()
    assert row is not None
    return Advance(view, targets, changes, tuple(zip(row[::2], row[1::2], strict=True)))


@dataclass(frozen=True)
class Changes:
    """What changed: the inputs that have changes, the rows in all of them, whether any row is taken away.

    `times` are what `now()` is before and after, in microseconds; NOW is among the inputs when the view reads it.
    """

    inputs: frozenset[str]
    rows: int
    retracts: bool
    times: tuple[int, int]


class Engine(Protocol):
    """Runs delta programs. Both engines read and leave the same temporary relations of the cursor."""

    def advance(self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes) -> Advance:
        """Compute a view's change. `versions` by input name.

        The changes themselves are in the cursor's temporary tables `<input>_changes`.
        """


def bind_changes(
    cursor: Cursor, view: View, versions: Mapping[str, Version], feeds: Feeds, times: tuple[int, int]
) -> Changes:
    """Fill `<input>_changes` for every input that may have changed."""
    changed: set[str] = {NOW} if view.plan.reads_now and times[0] != times[1] else set()
    total = retracted = 0
    for scan in view.plan.scans:
        if scan.input in view.plan.looked_up:
            continue
        version = versions[scan.input]
        query = rows_changed(scan, version, feeds.feed(version.relation, version.old, version.new))
        if query is None:
            continue
        cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {scan.input}_changes AS {query}")
        counts = f"SELECT count(*), count(*) FILTER (_weight < 0) FROM {scan.input}_changes"
        row = cursor.execute(counts).fetchone()
        if row and row[0]:
            changed.add(scan.input)
            total += row[0]
            retracted += row[1]
    return Changes(frozenset(changed), total, retracted > 0, times)


def set_times(cursor: Cursor, times: tuple[int, int]) -> None:
    """Let `now()` of a view's SQL be these times on DuckDB."""
    for version, time_us in zip(("old", "new"), times, strict=True):
        cursor.execute(f"SET VARIABLE now_{version} = make_timestamptz({time_us})")


@lru_cache(maxsize=1024)
def program(plan: StreamPlan, changed: frozenset[str], retracts: bool) -> DeltaProgram:
    """The delta program, compiled once for each set of inputs that changed."""
    return compile_delta(plan, changed, retracts)


def applications(view: View, changes: Changes) -> tuple[Application, ...]:
    """The applications of a program, with the names their relations will have in the cursor."""
    found = []
    for number, apply in enumerate(program(view.plan, changes.inputs, changes.retracts).applies):
        prefix = f"j{view.relation.id}_{number}"
        table = view.internal_table(apply.state) if apply.state else view.relation.lake_name
        columns = tuple(select.alias_or_name for select in apply.added.selects)
        found.append(Application(table, apply.key, apply.present, columns, f"{prefix}_removed", f"{prefix}_added"))
    return tuple(found)
