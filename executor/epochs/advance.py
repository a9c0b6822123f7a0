"""The computed change of one view in an epoch, and its application to the lake.

An engine leaves its results as temporary relations of the cursor, so that later steps of the same epoch, on either
engine, read them the same way. Nothing is written to the lake before `apply`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from sparkwave.catalog.counters import EngineName
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import register_files
from sparkwave.catalog.lake.places import Place, delete_unused
from sparkwave.catalog.lake.row_ids import ALL, RowIds
from sparkwave.catalog.model import Position, Relation
from sparkwave.catalog.names import LakeTable, quote
from sparkwave.catalog.stores.compute_errors import ComputeErrors, add_errors
from sparkwave.catalog.stores.view_checksums import Checksum, add_changes
from sparkwave.executor.epochs.delta_programs import Added, Program, whole
from sparkwave.executor.epochs.feeds import Feeds
from sparkwave.executor.epochs.versions import Pending, Version, rows_changed, stored_columns
from sparkwave.executor.memory.delta_tables import is_kept, make_table
from sparkwave.executor.spark.kernel import File
from sparkwave.planner.delta.now import NOW
from sparkwave.planner.plan.nodes import Scan, equal_in_files
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
        """Return the internal table of a state, or the view's own table for None."""
        table = self.relation.lake_table
        name = state_name and self.plan.internal_name(self.relation.definition_id, state_name)
        return replace(table, name=name) if name else table


# Files that Spark wrote for a step become files of the lake unchanged from this number of rows on; fewer rows are
# inserted, because there may be many steps.
MIN_FILE_ROWS = 100_000


@dataclass(frozen=True)
class Addition:
    """Rows to add to a stored table.

    `rows` is a temporary relation or a subquery of the cursor, which may read `files`. The files have `size` bytes in
    total and lie in a directory below the lake's data path. They become files of the lake if they have `file_rows` rows
    or more; otherwise their rows are inserted.
    """

    table: LakeTable
    rows: str
    columns: tuple[str, ...]
    files: tuple[str, ...] = ()
    directory: Place | None = None
    size: int = 0
    file_rows: int = MIN_FILE_ROWS

    def apply(self, cursor: Cursor, count: int) -> None:
        """Add the rows in the cursor's transaction. `count` is their number."""
        if self.files and count >= self.file_rows:
            register_files(cursor, self.table, self.files)
        elif count:
            cursor.execute(self.insertion(self.table.sql))

    def insertion(self, table: str) -> str:
        """Return SQL that inserts the rows into a table with the same columns."""
        columns = ", ".join(map(quote, self.columns))
        return f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {self.rows}"

    def with_files(self, files: Iterable[File]) -> Addition:
        """Return the addition of the rows in files that a task has written; those without rows are left out."""
        filled = [file for file in files if file.rows]
        return replace(self, files=tuple(file.path for file in filled), size=sum(file.size for file in filled))

    def clean_up(self, count: int) -> None:
        """Delete the files of Spark that did not become files of the lake."""
        if self.directory is not None:
            delete_unused(self.directory, self.files if count >= self.file_rows else (), 2)


@dataclass(frozen=True)
class Application:
    """The change of a stored table: the keys of the rows to remove, and the rows to add.

    `removed` is a relation or subquery with the keys. If one relation with a `_weight` column has both the removed and
    the added rows, `changes` names it. Otherwise `removed` has the keys of all added rows, too.
    """

    key: tuple[str, ...]
    present: frozenset[str]  # columns of the key that are `equal_in_files`
    removed: str
    added: Addition
    state: str | None = None  # None for the view's own table
    changes: str | None = None

    def equals(self, column: str) -> str:
        """Return the SQL operator that compares a key column.

        The operator is `=`, by which files are pruned, if the column is never NULL and a file tells the truth of it.
        """
        return "=" if column in self.present else "IS NOT DISTINCT FROM"

    def same(self, row: str, key: str) -> str:
        """Return the SQL condition that a row has a key."""
        return " AND ".join(f"{row}.{quote(k)} {self.equals(k)} {key}.{quote(k)}" for k in self.key) or "TRUE"

    def removal(self, table: str) -> str:
        """Return SQL that deletes the rows with the keys from a table."""
        return f"DELETE FROM {table} AS t USING {self.removed} AS r WHERE {self.same('t', 'r')}"


@dataclass(frozen=True)
class Advance:
    """The change that an engine computed for one view.

    `applications` change the tables of its states and then its own table. `changes` is a temporary relation with the
    view's changed rows. `counts` are the rows removed and added, by application. `hashes` is the sum of the hashes of
    the view's added rows, modulo 2**64, without those of the removed rows. `errors` are the rows for which an
    expression failed. `wanted` are the inputs in which few keys were looked up without an index.
    """

    view: View
    applications: tuple[Application, ...]
    changes: str
    counts: tuple[tuple[int, int], ...]
    hashes: int
    errors: ComputeErrors | None = None
    wanted: frozenset[str] = frozenset()

    @property
    def tables(self) -> list[LakeTable]:
        """The tables that `apply` writes."""
        return [item.added.table for item in self.applications]

    @property
    def steps(self) -> list[tuple[Application, int, int]]:
        """The applications, each with its numbers of removed and added rows."""
        return [(item, *counts) for item, counts in zip(self.applications, self.counts, strict=True)]

    @property
    def has_changes(self) -> bool:
        """Whether any stored row of the view or of its states changes."""
        return any(any(counts) for counts in self.counts)

    @property
    def checksums(self) -> list[tuple[int, Checksum]]:
        """The change of the view's checksum, with its id. A view has a checksum once it is created."""
        relation = self.view.relation
        if not relation.created or relation.is_sink:
            return []
        removed, added = self.counts[-1]
        return [(relation.id, Checksum(self.hashes, added - removed))] if removed or added else []

    @property
    def of_states(self) -> Advance:
        """Return the change of the states alone, for a view whose own rows go elsewhere."""
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
        add_changes(cursor, self.checksums)
        add_errors(cursor, self.view.relation.id, self.errors)

    def clean_up(self) -> None:
        """Delete the files that did not become files of the lake. Call this after the commit."""
        for item, _, added in self.steps:
            item.added.clean_up(added)


@dataclass(frozen=True)
class Fill:
    """New rows that an engine computed for a view: the first rows of it and its states, or more rows of the view.

    `counts` are the numbers of rows, by addition; `errors` are as in Advance.
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
        """Number of rows that `apply` inserts; rows of files that become files of the lake do not count."""
        return sum(
            count
            for addition, count in zip(self.additions, self.counts, strict=True)
            if not addition.files or count < addition.file_rows
        )

    @property
    def as_files(self) -> Fill:
        """Return the same fill with all of its files to become files of the lake, as for a fill in one step."""
        return replace(self, additions=tuple(replace(addition, file_rows=1) for addition in self.additions))

    def of(self, view: View) -> Fill:
        """Return a whole fill for the stored view, whose tables have names now."""
        tables = (view.table_of(added.state) for added in whole(view.plan))
        placed = (replace(item, table=table) for item, table in zip(self.additions, tables, strict=True))
        return replace(self, view=view, additions=tuple(placed))

    @property
    def tables(self) -> list[LakeTable]:
        """The tables that `apply` writes."""
        return [addition.table for addition in self.additions]

    def apply(self, cursor: Cursor) -> None:
        """Write the rows into the lake, inside the cursor's transaction."""
        for addition, count in zip(self.additions, self.counts, strict=True):
            addition.apply(cursor, count)
        add_errors(cursor, self.view.relation.id, self.errors)

    def clean_up(self) -> None:
        """Remove temporary tables as `Advance.clean_up` does."""
        for addition, count in zip(self.additions, self.counts, strict=True):
            addition.clean_up(count)


@dataclass(frozen=True)
class Changes:
    """The changes of a view's inputs in an epoch.

    `inputs` are the names of the inputs that have changes; NOW is one of them if the view reads `now()` and it changes.
    `rows` is the number of changed rows of all inputs. `retracts` tells whether any row is removed. `times` are the
    values of `now()` before and after, in microseconds. `queries` have the SQL of the changed rows, by input name, for
    inputs without a temporary table `<input>_changes`. `counts` are the numbers of changed rows, by input name; None
    for an estimate. `are_kept` tells whether all changed rows are in tables that other cursors can read, too.
    """

    inputs: frozenset[str]
    rows: int
    retracts: bool
    times: tuple[int, int]
    queries: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int | None] = field(default_factory=dict)
    are_kept: bool = False

    @property
    def most_rows(self) -> int:
        """The number of changed rows of the input that has the most; of all inputs, if one is an estimate."""
        counts = [self.counts.get(name) for name in self.inputs if name != NOW]
        return self.rows if not counts or None in counts else max(count or 0 for count in counts)

    def query(self, name: str) -> str:
        """Return SQL of the changed rows of an input."""
        return self.queries.get(name, f"FROM {name}_changes")


class Engine(Protocol):
    """Runs delta programs. Both engines read and leave the same temporary relations of the cursor."""

    @property
    def name(self) -> EngineName: ...

    def advance(self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes) -> Advance:
        """Compute a view's change. `versions` are by input name.

        `changes` describes the changed rows, which are in temporary tables of the cursor, in feeds, or in newly read
        rows.
        """

    def fill(
        self,
        cursor: Cursor,
        view: View,
        position: Position,
        rows: Mapping[str, RowIds],
        queries: Sequence[Added],
        time_us: int,
    ) -> Fill:
        """Compute the rows of fragments from some rows of each input (by name); all of the rows are new.

        `position` has the snapshots of the inputs. `queries` that fill a state come before queries that read the state.
        `time_us` is the value of `now()` in microseconds.
        """


def bind_changes(
    cursor: Cursor, view: View, versions: Mapping[str, Version], feeds: Feeds, times: tuple[int, int]
) -> Changes:
    """Find the changed rows of every input.

    An input that the view has read completely uses its feed, which all views share. For any other input a table is
    made.
    """
    changed: set[str] = {NOW} if view.plan.reads_now and times[0] != times[1] else set()
    total, retracts, are_kept, queries, counts = 0, False, True, dict[str, str](), dict[str, int | None]()
    for scan in view.plan.scans:
        if scan.input in view.plan.looked_up:
            counts[scan.input] = None
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
        counts[scan.input] = count
        names = [feed, version.pending.name if version.pending is not None else None]
        are_kept = are_kept and version.old_rows == ALL and all(is_kept(name) for name in names if name is not None)
        if count:
            changed.add(scan.input)
            total += count
            retracts = retracts or _retracts(feeds, feed, version)
    return Changes(frozenset(changed), total, retracts, times, queries, counts, are_kept)


def _count(feeds: Feeds, feed: str | None, pending: Pending | None) -> int:
    return (feeds.rows(feed) if feed is not None else 0) + (pending.rows if pending is not None else 0)


def _retracts(feeds: Feeds, feed: str | None, version: Version) -> bool:
    """Return whether any row of a relation is removed."""
    if version.pending is not None and version.pending.removed:
        return True
    return feed is not None and feeds.has_deletes(version.relation, version.old, version.new) and feeds.retracts(feed)


def _feed(feeds: Feeds, scan: Scan, version: Version) -> str | None:
    if version.is_net:
        return feeds.net(scan.relation, stored_columns(scan), version.old, version.new)
    return feeds.feed(scan, version.old, version.new)


def expected_rows(version: Version, feeds: Feeds) -> int:
    """Return an estimate of the number of changed rows of an input."""
    pending = version.pending.rows if version.pending is not None else 0
    return pending + feeds.expected(version.relation, version.old, version.new)


def counted_rows(version: Version, feeds: Feeds, expected: int) -> int | None:
    """Return the number of changed rows of an input if its expected number is exact, else None."""
    is_exact = not feeds.has_deletes(version.relation, version.old, version.new)
    return expected if is_exact else None


def set_times(cursor: Cursor, times: tuple[int, int]) -> None:
    """Set the values of `now()` for a view's SQL on DuckDB: old and new, in microseconds."""
    for version, time_us in zip(("old", "new"), times, strict=True):
        cursor.execute(f"SET VARIABLE now_{version} = make_timestamptz({time_us})")


def applications(view: View, made: Program, name: str) -> tuple[Application, ...]:
    """Return the applications of a program. The names of their relations in the cursor begin with `name`."""
    found = []
    for number, apply in enumerate(made.applies):
        prefix = f"{name}_{number}"
        added = Addition(view.table_of(apply.state), f"{prefix}_added", apply.columns)
        found.append(Application(apply.key, apply.present, f"{prefix}_removed", added, apply.state))
    return tuple(found)


def own_application(view: View, changes: str) -> Application:
    """Return the change of a view's own table by `changes`, a relation of the cursor with a `_weight` column."""
    plan = view.plan
    columns = tuple(field.name for field in plan.root.fields)
    removed, added = (
        f"(SELECT {', '.join(map(quote, listed))} FROM {changes} WHERE _weight {sign} 0)"
        for listed, sign in ((plan.key or ["_weight"], "<"), (columns, ">"))
    )
    added_rows = Addition(view.relation.lake_table, added, columns)
    return Application(plan.key, equal_in_files(plan.root), removed, added_rows, changes=changes)
