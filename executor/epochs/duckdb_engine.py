"""Runs delta programs in process: milliseconds for a handful of changes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from sparkwave.catalog.counters import EngineName
from sparkwave.catalog.lake.direct_calls import Direct
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.memory_transactions import in_transaction
from sparkwave.catalog.lake.places import Place
from sparkwave.catalog.lake.prepared_statements import run
from sparkwave.catalog.lake.row_ids import NONE, RowIds
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import Position
from sparkwave.catalog.names import BUFFER, VIEWS_SCHEMA, LakeTable, quote
from sparkwave.catalog.stores.compute_errors import ComputeErrors
from sparkwave.executor.epochs.advance import (
    Addition,
    Advance,
    Application,
    Changes,
    Fill,
    View,
    own_application,
    set_times,
)
from sparkwave.executor.epochs.delta_programs import (
    Added,
    Check,
    Program,
    hash_of_row,
    new_checks,
    program,
    whole,
)
from sparkwave.executor.epochs.lookups import MOST_INDEXED
from sparkwave.executor.epochs.script import Script, bound_checks, script, script_of_few, within
from sparkwave.executor.epochs.versions import Version, rows_added, rows_at, rows_new, rows_old
from sparkwave.executor.faults import error_of, is_nobodys, message_of
from sparkwave.executor.memory.delta_tables import (
    count_signs,
    fill_changes,
    fill_table,
    has_tables,
    make_table,
    sum_changes,
)
from sparkwave.executor.memory.listed_keys import MOST_KEYS, listed_keys
from sparkwave.executor.memory.shared_buffer import SharedBuffer
from sparkwave.executor.spark.kernel import Step, failed_rows, unless_raised, write
from sparkwave.executor.spark.lake_rows import as_stored
from sparkwave.planner.delta.looked_up import Columns, Reduction
from sparkwave.planner.plan.nodes import equal_in_files

logger = logging.getLogger(__name__)

Execute = Callable[[str], Cursor | Direct]
# A program for at most this many changed rows is made once and kept as a script (`script_of_few`).
MOST_FEW = 50_000
# A query that reads the lake contains one of these; the views of the shared buffer may read the lake, too.
_LAKE = ("lake.", f"{BUFFER}.{VIEWS_SCHEMA}.")
_NOT_REDUCED: Mapping[str, str] = {}


@dataclass(frozen=True)
class Reads:
    """The names of the relations that the SQL of a view reads, and a program's `lookups` and `reductions`."""

    names: frozenset[str]
    lookups: Mapping[str, Sequence[Columns]]
    reductions: Mapping[str, tuple[str, Reduction]]


@dataclass(frozen=True)
class Ready:
    """The computation of a view's change by a script, whose temporary relations and tables are those of `cursor`."""

    cursor: Cursor
    view: View
    made: Program
    changes: Changes
    script: Script
    is_for_few: bool

    @property
    def suits_all(self) -> bool:
        """Whether any cursor can `run` this change, because the change reads and fills only tables of the buffer."""
        names = (name for name, _ in self.script.tables)
        return self.is_for_few and self.changes.are_kept and has_tables(self.cursor, names, self.made)

    def run(self, by: Cursor) -> Advance:
        """Compute the change by a cursor."""
        found, row_hash = self.script, hash_of_row(self.view.plan)
        if self.view.plan.needs_times:
            set_times(by, self.changes.times)  # others may have set theirs since
        if self.is_for_few:
            execute: Execute = partial(run, by)
            has_joins = any(step.drives_join for step in self.made.steps)
            with listed_keys(by, MOST_KEYS if has_joins else self.changes.rows):
                counts, hashes, wanted = _fill(self.cursor, found, self.made, self.changes, row_hash, by)
        else:
            execute, wanted = by.execute, frozenset()
            rows = {name: _make(by, name, query, self.changes.rows) for name, query in found.tables}
            counts = _counts(found, rows, count_signs(by, found.changes))
            hashes = sum_changes(by, found.changes, row_hash)
        errors = _failed(by, found.checks, execute)
        return Advance(self.view, found.applications, found.changes, counts, hashes, errors, wanted)


class DuckDBEngine:
    """The engine for small epochs. The engine has no state of its own: the cursor of each call has all tables."""

    name: EngineName = "duckdb"

    def __init__(self, buffer: SharedBuffer | None = None, data: Place | None = None) -> None:
        """`buffer` has rows of views and states that the lake does not have.

        `data` is a directory for files of `fill`: many rows are written before the transaction that adds them to the
        lake, for which all writers wait, so that it has only to register the files.
        """
        self._buffer, self._data = buffer, data

    def _stored(self, cursor: Cursor, view: View, table: LakeTable, key: Iterable[str] = ()) -> str:
        """Return the name of the relation with the rows of a table of a view, as they are stored.

        `key` are the columns by which the rows are looked up.
        """
        return self._buffer.rows(cursor, view.relation, table, key) if self._buffer is not None else table.sql

    def _program(self, view: View, changes: Changes) -> Program:
        """Return the program for some changes and the rows that are stored now."""
        without_nulls = frozenset(
            state.name
            for state in view.plan.states
            if self._buffer is not None
            and {*state.stored_key} <= self._buffer.present(view.relation, view.state_table(state))
        )
        return program(view.plan, changes.inputs, changes.retracts, without_nulls, reduces=True)

    def advance(self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes) -> Advance:
        """Compute a view's change, as `executor.epochs.advance.Engine` says."""
        return self.ready(cursor, view, versions, changes).run(cursor)

    def ready(
        self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes,
        reduced: Mapping[str, str] = _NOT_REDUCED,
    ) -> Ready:  # fmt: skip
        """Return the computation of `advance`, which is still to run.

        `reduced` has SQL of reductions of the program, by their names.
        """
        made = self._program(view, changes)
        bound = self._bound(cursor, view, versions, changes, made.read)
        indexed = _indexed(view, versions, made.read)
        for name, (stands_for, _) in made.reductions.items():
            bound[name] = reduced.get(name, bound[stands_for])
            if stands_for in indexed and name not in reduced:
                indexed[name] = indexed[stands_for]
        is_for_few = _is_for_few(view, changes, made, bound)
        if is_for_few:
            return Ready(cursor, view, made, changes, script_of_few(view, made, bound, indexed), is_for_few)
        found = script(view, made, bound | indexed if changes.rows <= MOST_INDEXED else bound)
        return Ready(cursor, view, made, changes, found, is_for_few)

    def compile(self, view: View, changes: Changes, is_full: bool) -> Reads:
        """Make and keep the SQL that computes a view, in full or by changes, because making the SQL takes long."""
        if is_full:
            whole(view.plan)
            self._of_changes(view, changes)
            return Reads(frozenset(f"{scan.input}_new" for scan in view.plan.scans), {}, {})
        made = self._program(view, changes)
        return Reads(
            made.read,
            made.lookups if changes.rows <= MOST_FEW else {},
            made.reductions if changes.rows <= MOST_FEW else {},
        )

    def looks_through(self, view: View) -> bool:
        """Return whether a view that is computed in full has checks that read the changes."""
        return any(check.is_of_changes for check in new_checks(view.plan))

    def recompute(
        self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes, are_bound: bool = True
    ) -> Advance:
        """Compute a view and its states in full, and return the difference from the stored rows as its change.

        `are_bound` tells whether the cursor has the changes, which serve only the checks for rows whose expressions
        fail.
        """
        bound = {f"{scan.input}_new": rows_new(scan, versions[scan.input]) for scan in view.plan.scans}
        if view.plan.needs_times:
            set_times(cursor, changes.times)
        items, counts = [], []
        for number, item in enumerate(whole(view.plan)):
            name = f"j{view.relation.id}_{number}"
            stored, computed = self._stored(cursor, view, view.table_of(item.state)), within(item.query, bound)
            if item.state is None:
                left = f"j{view.relation.id}_changes"
                make_table(cursor, left, _difference(stored, f"({computed})", item.columns))
                items.append(own_application(view, left))
                counts.append(count_signs(cursor, left))
            else:
                left = f"{name}_changes"
                make_table(cursor, f"{name}_whole", computed)
                bound[f"{item.state}_state"] = f"FROM {name}_whole"
                make_table(cursor, left, _difference(stored, f"{name}_whole", item.columns))
                change = _of_state(view, item, name)
                items.append(change)
                counts.append(_fill_change(cursor, change, name, left))
        failed = _failed(cursor, self._of_changes(view, changes)) if are_bound else None
        return Advance(
            view, tuple(items), left, tuple(counts), sum_changes(cursor, left, hash_of_row(view.plan)), failed
        )

    def _of_changes(self, view: View, changes: Changes) -> tuple[Check, ...]:
        """Return the checks that need nothing but the changes."""
        if not self.looks_through(view):
            return ()
        made = program(view.plan, changes.inputs, changes.retracts)
        return bound_checks((check for check in made.checks if check.is_of_changes), _bound_changes(changes))

    def fill(
        self, cursor: Cursor, view: View, position: Position, rows: Mapping[str, RowIds], queries: Sequence[Added],
        time_us: int,
    ) -> Fill:  # fmt: skip
        """Compute a view's new rows, as `executor.epochs.advance.Engine` says."""
        set_times(cursor, (time_us, time_us))
        inputs = {
            f"{scan.input}_new": rows_at(scan, position.of(scan.relation), rows[scan.input]) for scan in view.plan.scans
        }
        raising = [replace(item, query=item.raising) for item in queries]
        if (filled := unless_raised(lambda: self._filled(cursor, view, inputs, raising))) is not None:
            return filled
        filled = self._filled(cursor, view, inputs, queries)
        return replace(filled, errors=_failed(cursor, new_checks(view.plan)))

    def _filled(self, cursor: Cursor, view: View, inputs: Mapping[str, str], queries: Sequence[Added]) -> Fill:
        """Compute the rows of queries of fragments. `inputs` have SQL, by name, and become views of the cursor."""
        additions, counts = [], []
        with in_transaction(cursor):  # else each query reads the lake's catalog anew
            for name, rows in inputs.items():
                cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {rows}")
            for number, item in enumerate(queries):
                name = f"fill_{number}"
                counts.append(make_table(cursor, name, item.query))
                for state in view.plan.states_in(item.state):
                    cursor.execute(f"CREATE OR REPLACE TEMPORARY VIEW {state.name}_state AS FROM {name}")
                addition = Addition(view.table_of(item.state), name, item.columns)
                if self._data is not None and counts[-1] >= addition.file_rows:
                    types = view.plan.types_in(item.state)
                    stored = as_stored(f"FROM {name}", {column: types[column] for column in item.columns})
                    addition = _in_files(cursor, addition, stored, self._data / name)
                additions.append(addition)
        return Fill(view, tuple(additions), tuple(counts))

    def _bound(
        self, cursor: Cursor, view: View, versions: Mapping[str, Version], changes: Changes, read: Collection[str]
    ) -> dict[str, str]:
        """Return the SQL of the relations that steps read, by name, except steps and change tables of the cursor."""
        bound = _bound_changes(changes)
        for state in view.plan.states:
            if (name := f"{state.name}_state") in read:
                bound[name] = f"FROM {self._stored(cursor, view, view.state_table(state), state.stored_key)}"
        for scan in view.plan.scans:
            version = versions[scan.input]
            for name, rows in ((f"{scan.input}_old", rows_old), (f"{scan.input}_new", rows_new)):
                if name in read:
                    bound[name] = rows(scan, version)
            if version.added_rows != NONE:
                bound[f"{scan.input}_changes"] = rows_added(scan, version)
        return bound


def _fill(
    cursor: Cursor, found: Script, form: object, changes: Changes, row_hash: str, by: Cursor
) -> tuple[tuple[tuple[int, int], ...], int, frozenset[str]]:
    """Fill the tables of a kept script again, which a cursor has, by a cursor.

    Returns the rows removed and added, by application, the sum of the hashes of the view's changed rows, and the inputs
    for which an index is wanted.
    """
    rows, own, hashes = {f"{name}_changes": count or 0 for name, count in changes.counts.items()}, (0, 0), 0
    wanted: frozenset[str] = frozenset()
    for name, query in found.tables:
        other = found.indexed.get(name)
        if other is not None and max(map(rows.__getitem__, other.by), default=MOST_INDEXED + 1) <= MOST_INDEXED:
            query, wanted = other.query, wanted | other.missing
        if name == found.changes:
            own, hashes = fill_changes(cursor, name, query, form, row_hash, by)
        else:
            rows[name] = fill_table(cursor, name, query, form, by=by)
    return _counts(found, rows, own), hashes, wanted


def _counts(found: Script, rows: Mapping[str, int], own: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    return (*((rows[removed], rows[added]) for removed, added in found.counted), own)


def _is_for_few(view: View, changes: Changes, made: Program, bound: Mapping[str, str]) -> bool:
    """Return whether to keep the script of a program: few changes, and no snapshot of the lake or times in its SQL."""
    read = (rows for name, rows in bound.items() if name in made.read)
    return changes.rows <= MOST_FEW and not view.plan.needs_times and not any(_is_of_lake(rows) for rows in read)


def _is_of_lake(query: str) -> bool:
    return any(name in query for name in _LAKE)


def _indexed(view: View, versions: Mapping[str, Version], read: Collection[str]) -> dict[str, str]:
    """Return SQL of the rows of inputs that steps can look up by an index, by name."""
    found = {}
    for scan in view.plan.scans:
        version = versions[scan.input].by_index
        for name, rows in ((f"{scan.input}_old", rows_old), (f"{scan.input}_new", rows_new)):
            if name in read and version is not None:
                found[name] = rows(scan, version)
    return found


def _bound_changes(changes: Changes) -> dict[str, str]:
    return {f"{name}_changes": query for name, query in changes.queries.items()}


def _in_files(cursor: Cursor, addition: Addition, stored: str, directory: Place) -> Addition:
    """Write the rows of an addition, given as SQL of what the lake stores, into files of a directory."""
    if isinstance(directory, Path):
        directory.mkdir(parents=True, exist_ok=True)
    files = write(cursor, Step(addition.rows, stored, str(directory)))
    return replace(addition, directory=directory).with_files(files)


def _failed(cursor: Cursor, checks: Sequence[Check], execute: Execute | None = None) -> ComputeErrors | None:
    """Return the number of rows for which an expression failed and one reason; None if there are none.

    If the checks themselves fail, the view advances all the same. `execute` looks whether there are any.
    """
    try:
        some = " UNION ALL ".join(f"({check.some})" for check in checks)
        if not some or (execute or cursor.execute)(f"SELECT 1 FROM ({some}) LIMIT 1").fetchone() is None:
            return None
        rows, reason = failed_rows(cursor.execute, [check.queries for check in checks])
        if reason is not None and is_nobodys(error_of(reason)):
            raise reason
    except DuckDBError as error:
        if is_nobodys(error_of(error)):
            raise
        logger.warning("the rows whose expressions failed cannot be counted: %s", message_of(error))
        return None
    return ComputeErrors(rows, message_of(reason) if reason is not None else None) if rows else None


def _make(cursor: Cursor, name: str, query: str, keys: int) -> int:
    """Make a table. With copies in memory keys are looked up as a list; DuckLake would ask its catalog for each."""
    with listed_keys(cursor, 0 if _is_of_lake(query) else keys):
        return make_table(cursor, name, query)


def _of_state(view: View, item: Added, name: str) -> Application:
    """Return the change of a state by the tables of `_fill_change`, with the key that programs have for it, too."""
    [state] = (state for state in view.plan.states if state.name == item.state)
    added = Addition(view.table_of(item.state), f"{name}_added", item.columns)
    return Application(state.key, equal_in_files(state.node), f"{name}_removed", added, state.name)


def _fill_change(cursor: Cursor, change: Application, name: str, changed: str) -> tuple[int, int]:
    """Make the tables of a change: the keys of the changed rows, and all computed rows with these.

    Returns their numbers of rows.
    """
    keys = f"SELECT DISTINCT {', '.join(map(quote, change.key)) or '1'} FROM {changed}"
    rows = f"SELECT t.* FROM {name}_whole AS t SEMI JOIN {change.removed} AS r ON {change.same('t', 'r')}"
    return make_table(cursor, change.removed, keys), make_table(cursor, change.added.rows, rows)


def _difference(stored: str, computed: str, columns: Sequence[str]) -> str:
    """Return SQL of the rows, with weights, that turn the stored rows into the computed ones.

    Removing a key removes all rows that have it. So a row that is stored too often is removed and added again.
    """
    listed = ", ".join(map(quote, columns))
    both = f'SELECT {listed}, 1 AS "?new", 0 AS "?old" FROM {computed} UNION ALL SELECT {listed}, 0, 1 FROM {stored}'
    counts = 'sum("?new") AS "?come", sum("?old") AS "?gone"'
    differing = f'SELECT {listed}, {counts} FROM ({both}) GROUP BY ALL HAVING sum("?new") <> sum("?old")'
    return (
        f"WITH differing AS MATERIALIZED ({differing}) "
        f'SELECT {listed}, -1::BIGINT AS _weight FROM differing WHERE "?gone" > 0 '
        f'UNION ALL SELECT {listed}, 1::BIGINT FROM differing WHERE "?come" > 0'
    )
