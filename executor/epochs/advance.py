"""`advance`: the change of one view between two versions of its inputs, and how a checkpoint applies it.

What an engine computes is left as temporary relations of the cursor, so that any later step of the same epoch, on
either engine, reads it the same way. Nothing is written to the lake before `apply`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sparkwave.catalog.counters import EngineName
from sparkwave.catalog.lake.ducklake import Cursor, register_files
from sparkwave.catalog.lake.places import Place, delete_unused
from sparkwave.catalog.lake.row_ids import ALL, RowIds
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import LakeTable, quote
from sparkwave.catalog.stores.compute_errors import ComputeErrors, add_errors
from sparkwave.executor.epochs.delta_programs import Added, Program
from sparkwave.executor.epochs.feeds import Feeds
from sparkwave.executor.epochs.versions import Pending, Version, rows_changed, stored_columns
from sparkwave.executor.memory.delta_tables import make_table
from sparkwave.planner.delta.now import NOW
from sparkwave.planner.plan.nodes import Scan
from sparkwave.planner.plan.stream_plan import State, StreamPlan


@dataclass(frozen=True)
class View:
    """A view and its plan."""

    relation: Relation
    plan: StreamPlan

    def state_table(self, state: State) -> LakeTable:
        """Where the lake stores a state's rows: an internal table, or the view itself."""
        return self.table_of(state.target)

    def table_of(self, state_name: str | None) -> LakeTable:
        """The internal table of a state; the view's own for None."""
        table = self.relation.lake_table
        return (
            replace(table, name=internal_name(self.relation.definition_id, self.plan, state_name))
            if state_name
            else table
        )


def internal_name(job_id: int, plan: StreamPlan, state_name: str) -> str:
    """RisingWave's form of an internal table's name."""
    operator = next(state.operator for state in plan.states if state.name == state_name)
    return f"__internal_{job_id}_{state_name}_{operator}"


# From so many rows of a step on, what Spark wrote becomes files of the lake as it is: steps may be many.
MIN_FILE_ROWS = 100_000


@dataclass(frozen=True)
class Addition:
    """Rows to add to a stored table, of a temporary relation or subquery of the cursor; and the files it reads, if any.

    The files, of `size` bytes, are in a directory below the lake's data path. They become files of the lake if they
    have `file_rows` rows or more; fewer are inserted.
    """

    table: LakeTable
    rows: str
    columns: tuple[str, ...]
    files: tuple[str, ...] = ()
    directory: Place | None = None
    size: int = 0
    file_rows: int = MIN_FILE_ROWS

    def apply(self, cursor: Cursor, count: int) -> None:
        """Add the rows, of which there are `count`, in the cursor's transaction."""
        if self.files and count >= self.file_rows:
            register_files(cursor, self.table, self.files)
        elif count:
            cursor.execute(self.insertion(self.table.sql))

    def insertion(self, table: str) -> str:
        """SQL that inserts the rows into a table that has the columns."""
        columns = ", ".join(map(quote, self.columns))
        return f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {self.rows}"

    def clean_up(self, count: int) -> None:
        """Delete what Spark has written and what did not become the lake's."""
        if self.directory is not None:
            delete_unused(self.directory, self.files if count >= self.file_rows else (), 2)


@dataclass(frozen=True)
class Application:
    """What to do to a stored table: the relation or subquery with the keys to remove, and the rows to add.

    Where both are of one relation, `changes`, its rows have a `_weight`.
    """

    key: tuple[str, ...]
    present: frozenset[str]  # columns of the key that are never NULL
    removed: str
    added: Addition
    state: str | None = None  # None for the view itself
    changes: str | None = None

    def equals(self, column: str) -> str:
        """The operator that compares a key column: one that prunes, where it may."""
        return "=" if column in self.present else "IS NOT DISTINCT FROM"

    def removal(self, table: str) -> str:
        """SQL that deletes the rows of a table that have the keys."""
        same = " AND ".join(f"t.{quote(k)} {self.equals(k)} r.{quote(k)}" for k in self.key) or "TRUE"
        return f"DELETE FROM {table} AS t USING {self.removed} AS r WHERE {same}"


@dataclass(frozen=True)
class Advance:
    """What an engine computed for one view: the tables to bring up to date and `changes`, a temporary relation.

    `counts` are the rows removed and added, by application, the view's own last; `errors` the rows for which an
    expression failed.
    """

    view: View
    applications: tuple[Application, ...]
    changes: str
    counts: tuple[tuple[int, int], ...]
    errors: ComputeErrors | None = None

    @property
    def tables(self) -> list[LakeTable]:
        """What `apply` writes."""
        return [item.added.table for item in self.applications]

    @property
    def steps(self) -> list[tuple[Application, int, int]]:
        """The applications with the rows that each removes and adds."""
        return [(item, *counts) for item, counts in zip(self.applications, self.counts, strict=True)]

    @property
    def has_changes(self) -> bool:
        """Whether any stored row changes: the view's, or those of a state of its own."""
        return any(any(counts) for counts in self.counts)

    @property
    def of_states(self) -> Advance:
        """The change without that of the view's own rows, where somebody else is to have them."""
        kept = [
            (item, counts)
            for item, counts in zip(self.applications, self.counts, strict=True)
            if item.added.table != self.view.relation.lake_table
        ]
        return replace(self, applications=tuple(i for i, _ in kept), counts=tuple(c for _, c in kept))

    def apply(self, cursor: Cursor) -> None:
        """Write the change into the lake, inside the cursor's transaction."""
        for item, removed, added in self.steps:
            if removed:
                cursor.execute(item.removal(item.added.table.sql))
            item.added.apply(cursor, added)
        add_errors(cursor, self.view.relation.id, self.errors)

    def clean_up(self) -> None:
        """Delete what was written and did not become part of the lake. After the commit."""
        for item, _, added in self.steps:
            item.added.clean_up(added)


@dataclass(frozen=True)
class Fill:
    """What an engine computed to be added, all of it new: the first rows of a view and its states, or more of a view's.

    `counts` are rows, by addition; `errors` as those of an Advance.
    """

    view: View
    additions: tuple[Addition, ...]
    counts: tuple[int, ...]
    errors: ComputeErrors | None = None

    @property
    def size(self) -> int:
        """Bytes of the files that Spark has written."""
        return sum(addition.size for addition in self.additions)

    @property
    def inserted(self) -> int:
        """How many rows `apply` inserts, those of files that become the lake's not among them."""
        return sum(
            count
            for addition, count in zip(self.additions, self.counts, strict=True)
            if not addition.files or count < addition.file_rows
        )

    @property
    def as_files(self) -> Fill:
        """The same with all of these files for the lake: what is filled in one step is."""
        return replace(self, additions=tuple(replace(addition, file_rows=1) for addition in self.additions))

    def of(self, view: View, states: Iterable[str | None]) -> Fill:
        """The same for the view as it is stored, whose tables have got names. `states` are those it has rows of."""
        placed = (replace(item, table=view.table_of(state)) for item, state in zip(self.additions, states, strict=True))
        return replace(self, view=view, additions=tuple(placed))

    @property
    def tables(self) -> list[LakeTable]:
        """What `apply` writes."""
        return [addition.table for addition in self.additions]

    def apply(self, cursor: Cursor) -> None:
        """Write it into the lake, inside the cursor's transaction."""
        for addition, count in zip(self.additions, self.counts, strict=True):
            addition.apply(cursor, count)
        add_errors(cursor, self.view.relation.id, self.errors)

    def clean_up(self) -> None:
        """As `Advance.clean_up`."""
        for addition, count in zip(self.additions, self.counts, strict=True):
            addition.clean_up(count)


@dataclass(frozen=True)
class Changes:
    """What changed: the inputs that have changes, the rows in all of them, whether any row is taken away.

    `times` are what `now()` is before and after, in microseconds; NOW is among the inputs when the view reads it.
    `queries` are SQL of the changed rows of inputs, of those that have no temporary table `<input>_changes`.
    """

    inputs: frozenset[str]
    rows: int
    retracts: bool
    times: tuple[int, int]
    queries: Mapping[str, str] = field(default_factory=dict)

    def query(self, name: str) -> str:
        """SQL of the changed rows of an input."""
        return self.queries.get(name, f"FROM {name}_changes")


class Engine(Protocol):
    """Runs delta programs. Both engines read and leave the same temporary relations of the cursor."""

    @property
    def name(self) -> EngineName: ...

    def advance(self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes) -> Advance:
        """Compute a view's change. `versions` by input name.

        The changes themselves are what `changes` says, in the cursor's temporary tables, or rows that are read on.
        """

    def fill(
        self,
        cursor: Cursor,
        view: View,
        snapshot: int,
        rows: Mapping[str, RowIds],
        queries: Sequence[Added],
        time_us: int,
    ) -> Fill:
        """Compute rows of fragments, all of which are new, from some rows of each input (by name) at a snapshot.

        A query that fills a state comes before those that read it. `time_us` is what `now()` is.
        """


def bind_changes(
    cursor: Cursor, view: View, versions: Mapping[str, Version], feeds: Feeds, times: tuple[int, int]
) -> Changes:
    """What has changed of every input: of a whole one that is its feed, which all views share, else a table is made."""
    changed: set[str] = {NOW} if view.plan.reads_now and times[0] != times[1] else set()
    total, retracts, queries = 0, False, dict[str, str]()
    for scan in view.plan.scans:
        if scan.input in view.plan.looked_up:
            continue
        version = versions[scan.input]
        feed = _feed(feeds, scan, version)
        query = rows_changed(scan, version, feed)
        if query is None:
            continue
        if version.old_rows == ALL:
            count, queries[scan.input] = _count(feeds, feed, version.pending), query
        else:
            count = make_table(cursor, f"{scan.input}_changes", query)
        if count:
            changed.add(scan.input)
            total += count
            retracts = retracts or _retracts(feeds, feed, version)
    return Changes(frozenset(changed), total, retracts, times, queries)


def _count(feeds: Feeds, feed: str | None, pending: Pending | None) -> int:
    return (feeds.rows(feed) if feed is not None else 0) + (pending.rows if pending is not None else 0)


def _retracts(feeds: Feeds, feed: str | None, version: Version) -> bool:
    """Whether any row of a relation is taken away."""
    if version.pending is not None and version.pending.removed:
        return True
    return feed is not None and feeds.has_deletes(version.relation, version.old, version.new) and feeds.retracts(feed)


def _feed(feeds: Feeds, scan: Scan, version: Version) -> str | None:
    if version.is_net:
        return feeds.net(scan.relation, stored_columns(scan), version.old, version.new)
    return feeds.feed(scan, version.old, version.new)


def expected_rows(version: Version, feeds: Feeds) -> int:
    """About how many rows of an input have changed."""
    pending = version.pending.rows if version.pending is not None else 0
    return pending + feeds.expected(version.relation, version.old, version.new)


def set_times(cursor: Cursor, times: tuple[int, int]) -> None:
    """Let `now()` of a view's SQL be these times on DuckDB."""
    for version, time_us in zip(("old", "new"), times, strict=True):
        cursor.execute(f"SET VARIABLE now_{version} = make_timestamptz({time_us})")


def applications(view: View, made: Program, name: str) -> tuple[Application, ...]:
    """The applications of a program, with the names their relations will have in the cursor, beginning with `name`."""
    found = []
    for number, apply in enumerate(made.applies):
        prefix = f"{name}_{number}"
        added = Addition(view.table_of(apply.state), f"{prefix}_added", apply.columns)
        found.append(Application(apply.key, apply.present, f"{prefix}_removed", added, apply.state))
    return tuple(found)


def by_changes(
    table: LakeTable, key: Sequence[str], present: frozenset[str], columns: Sequence[str], changes: str
) -> Application:
    """What becomes of a table's rows by their changes, which a relation of the cursor has, with `_weight`."""
    removed, added = (
        f"(SELECT {', '.join(map(quote, listed))} FROM {changes} WHERE _weight {sign} 0)"
        for listed, sign in ((key or ["_weight"], "<"), (columns, ">"))
    )
    return Application(tuple(key), present, removed, Addition(table, added, tuple(columns)), changes=changes)


def own_application(view: View, changes: str) -> Application:
    """What becomes of a view's rows by their changes."""
    plan = view.plan
    return by_changes(
        view.relation.lake_table, plan.key, plan.present, [field.name for field in plan.root.fields], changes
    )
