"""The shared buffer (RisingWave's term): changes that epochs made to views and states and no checkpoint has stored yet.

The lake has the rows of a view as of the last checkpoint. Tables in DuckDB's memory have the changes since: the keys
whose rows have changed, and the present rows of these keys. A view in memory joins both; clients and epochs read this
view. An epoch changes all of this in one transaction in memory, so that a reader of several views sees all of them at
one epoch. The lake's rows are read at a fixed snapshot. A checkpoint replaces the snapshot in the transaction in which
it forgets the changes that it has stored.

Tables that epochs read often also have a copy (`executor.memory.copies`) with all present rows. Then the view in memory
reads the copy, and a checkpoint stores the copy's rows of the changed keys.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import at_version
from sparkwave.catalog.lake.memory_transactions import in_transaction
from sparkwave.catalog.lake.prepared_statements import define_shared, run, run_once
from sparkwave.catalog.lake.translation import ConstraintError
from sparkwave.catalog.locks import Rank, RankedLock
from sparkwave.catalog.model import Catalog, Epoch, Relation
from sparkwave.catalog.names import BUFFER, DELTAS_SCHEMA, EPOCHS_SCHEMA, VIEWS_SCHEMA, LakeTable, name_in_memory, quote
from sparkwave.catalog.stores.compute_errors import ComputeErrors, add_errors
from sparkwave.catalog.stores.epoch_store import stored_epoch
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.view_checksums import Checksum, add_changes
from sparkwave.executor.epochs.advance import Advance, Application, View
from sparkwave.executor.memory.copies import VALUE_BYTES, Copies, Copy, Key, row_width
from sparkwave.executor.memory.delta_tables import WORN_ROWS, reads_kept
from sparkwave.executor.memory.sorted_rows import SortedColumns, SortedRows, Value
from sparkwave.planner.plan.stream_plan import State

# With more changed rows than this, a checkpoint comes before the next epoch.
MOST_ROWS = 1_000_000
# Tables of pending changes are also made anew after this many bytes, because DuckDB keeps deleted rows.
_WORN_BYTES = 4 << 20
# Columns of the tables of keys: a growing number, and whether the lake may have a row of the key.
_NUMBER, _GONE = '"?number"', '"?gone"'
_NUMBERS = f"{BUFFER}.{EPOCHS_SCHEMA}.numbers"
_NEXT = f"nextval('{_NUMBERS}')"
# A transaction that begins with this query sees memory as of that moment.
ANCHOR = f"FROM {BUFFER}.{EPOCHS_SCHEMA}.anchor"


@dataclass(eq=False)
class _Pending:
    """The pending changes of a table.

    `keys` names a table of keys, `rows` a table of their rows, unless the copy has the rows. `changes` counts the
    removed and added rows that are not stored, or some more; `has_gone` tells that there are removed rows. `written`
    and `written_rows` count the keys and rows written since the tables were made. A row has about `width` bytes.
    """

    application: Application
    keys: str
    rows: str
    changes: int = 0
    has_gone: bool = False
    written: int = 0
    written_rows: int = 0
    width: float = 0.0

    @property
    def bytes(self) -> int:
        """The bytes of the tables, with deleted rows, which DuckDB keeps."""
        return int(self.written_rows * self.width) + self.written * (len(self.application.key) + 1) * VALUE_BYTES


@dataclass(eq=False)
class _Table:
    """A table of a view or of a state. At `snapshot` the lake has its rows without the pending changes.

    `name` is its view in memory, once it `is_shown`. The view reads the `copy` if there is one. `sorted` has the rows
    in the order of some columns.
    """

    stored: LakeTable
    owner: int
    snapshot: int
    copy: Copy | None = None
    pending: _Pending | None = None
    is_shown: bool = False
    sorted: SortedColumns = field(default_factory=SortedColumns)

    @property
    def name(self) -> str:
        return f"{BUFFER}.{VIEWS_SCHEMA}.{quote(name_in_memory(self.stored))}"

    @property
    def key(self) -> Key:
        return state_owner(self.owner), self.stored

    @property
    def has_changes(self) -> bool:
        return self.changes > 0

    @property
    def changes(self) -> int:
        """The number of rows that were removed and added since the last checkpoint."""
        return self.pending.changes if self.pending is not None else 0

    @property
    def rows(self) -> str:
        """SQL of the present rows."""
        stored = at_version(self.stored.sql, self.snapshot)
        if self.copy is not None:
            return f"FROM {self.copy.name}"
        if self.pending is None:
            return f"FROM {stored}"
        same = self.pending.application.same("t", "k")
        unchanged = f"(FROM {stored}) AS t ANTI JOIN {self.pending.keys} AS k ON {same}"
        return f"SELECT t.* FROM {unchanged} UNION ALL FROM {self.pending.rows}"


@dataclass(frozen=True)
class _Part:
    """The changes of one table that a checkpoint stores. `rows` names the relation with the rows of the keys."""

    table: LakeTable
    pending: _Pending
    rows: str
    changes: int
    has_gone: bool

    def store(self, cursor: Cursor, give_way: Callable[[], None]) -> None:
        """Write the changes into the lake, in the cursor's transaction, in which they were frozen."""
        item, pending = self.pending.application, self.pending
        same = item.same("t", "k")
        if self.has_gone:
            give_way()
            keys = ", ".join(map(quote, item.key)) or "1"
            gone = f"(SELECT DISTINCT {keys} FROM {pending.keys} WHERE {_GONE})"
            cursor.execute(f"DELETE FROM {self.table.sql} AS t USING {gone} AS k WHERE {same}")
        columns = ", ".join(map(quote, item.added.columns))
        changed = f"{self.rows} AS t SEMI JOIN {pending.keys} AS k ON {same}"
        give_way()
        cursor.execute(f"INSERT INTO {self.table.sql} ({columns}) SELECT {columns} FROM {changed}")


@dataclass(frozen=True)
class Frozen:
    """The changes that a checkpoint stores: those up to an epoch, and by relation the failed rows and the changes of
    checksums. The creations of some relations end with it, by id.
    """

    epoch: Epoch
    number: int
    parts: tuple[_Part, ...]
    errors: tuple[tuple[int, ComputeErrors], ...]
    checksums: tuple[tuple[int, Checksum], ...]
    creations: frozenset[int]

    @property
    def tables(self) -> list[LakeTable]:
        return [part.table for part in self.parts]

    @property
    def changes(self) -> int:
        """The number of removed and added rows."""
        return sum(part.changes for part in self.parts)

    def store(self, cursor: Cursor, give_way: Callable[[], None]) -> None:
        """Write all but the epoch into the lake. `give_way` is called before each statement of a table."""
        for part in self.parts:
            part.store(cursor, give_way)
        for relation_id, errors in self.errors:
            add_errors(cursor, relation_id, errors)
        add_changes(cursor, self.checksums)


@dataclass(frozen=True)
class Content:
    """The contents of a table of a view or state.

    `changes` counts the rows changed since the last checkpoint, `rows` the rows of its copy; the bytes are of both.
    """

    definition_id: int
    table: LakeTable
    changes: int
    rows: int
    bytes: int
    snapshot: int


class SharedBuffer:
    """Keeps the changes.

    Only the coordinator's thread applies epochs; checkpoints and the catalog use other threads.
    """

    def __init__(self, store: Store, copies: Copies) -> None:
        self._lake, self._copies = store.lake, copies
        copies.hold(self._is_held, self._pending_bytes)
        self._cursor = self._lake.cursor()
        for schema in (EPOCHS_SCHEMA, DELTAS_SCHEMA, VIEWS_SCHEMA):
            self._cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {BUFFER}.{schema}")
        self._cursor.execute(f"CREATE TABLE {BUFFER}.{EPOCHS_SCHEMA}.anchor (one INTEGER)")
        self._cursor.execute(f"CREATE SEQUENCE {_NUMBERS}")
        self._lock = RankedLock(Rank.BUFFER)
        self._tables: dict[LakeTable, _Table] = {}
        self._errors: list[tuple[int, ComputeErrors]] = []  # failed rows that are not stored yet
        self._checksums: list[tuple[int, Checksum]] = []  # changes of checksums that are not stored yet
        # Views that follow the epochs like created ones, by relation id: the next checkpoint marks them as created.
        self.creations: frozenset[int] = frozenset()
        self._names = 0
        self._stored_at = 0  # the snapshot of the last checkpoint, or a later one
        self._known: tuple[Relation, ...] = ()
        self.epoch = self.newest = stored_epoch(self._cursor)  # `newest` may not be published yet
        if not self._lake.read_only:
            store.watch(self._take_up)

    @property
    def _every(self) -> list[_Table]:
        return list(self._tables.values())  # a copy, because other threads add tables

    @property
    def has_changes(self) -> bool:
        """Whether there are changes that no checkpoint has stored."""
        return bool(self._errors or self.creations) or any(table.has_changes for table in self._every)

    def is_stored_at(self, snapshot: int) -> bool:
        """Return whether a snapshot of the lake has all changes that epochs made to views."""
        return not self.has_changes and self._stored_at <= snapshot

    @property
    def has_errors(self) -> bool:
        """Whether there are failed rows that no checkpoint has stored."""
        return bool(self._errors)

    @property
    def is_full(self) -> bool:
        """Whether a checkpoint should come before the next epoch."""
        return sum(table.changes for table in self._every) > MOST_ROWS or (self._copies.is_over and self.has_changes)

    def _pending_bytes(self) -> int:
        return sum(table.pending.bytes for table in self._every if table.pending is not None)

    @property
    def oldest(self) -> int:
        """The oldest snapshot that the views in memory read."""
        return min((table.snapshot for table in self._every if table.is_shown), default=1 << 62)

    def contents(self) -> list[Content]:
        """Return the contents of each table that has changes or a copy."""
        return [
            Content(
                table.owner,
                table.stored,
                table.changes,
                table.copy.rows if table.copy is not None else 0,
                (table.copy.bytes if table.copy else 0) + (table.pending.bytes if table.pending else 0),
                table.snapshot,
            )
            for table in self._every
            if table.copy is not None or table.has_changes
        ]

    def _is_held(self, key: Key) -> bool:
        """Return whether the copy of a table has rows that are nowhere else."""
        return any(table.key == key and table.has_changes for table in self._every)

    # Epochs

    def rows(self, cursor: Cursor, relation: Relation, stored: LakeTable, key: Iterable[str] = ()) -> str:
        """Return the name of the relation with the rows of a view's or state's table after the last epoch.

        `key` are the columns by which they are looked up, if they are.
        """
        if not relation.created:
            return stored.sql  # the job itself writes to it
        table = self._table(relation, stored)
        copy = self._copies.get(table.key) or self._copied(cursor, table)
        if copy is not None:
            self._copies.refuse_nulls(cursor, copy, key)
            return copy.name
        return table.name if table.has_changes else stored.sql

    def present(self, relation: Relation, stored: LakeTable) -> frozenset[str]:
        """Return columns of a table that are known to have no NULL after the last epoch."""
        copy = self._copies.find((state_owner(relation.definition_id), stored))
        return (copy.present if copy is not None else None) or frozenset()

    def copy_ahead(self, cursor: Cursor, view: View, states: Iterable[State]) -> None:
        """Copy the tables of a creating view's states, which its last change will look up, in the name of the view.

        Its job calls this. Nobody may change the tables before the view is created.
        """
        owner = state_owner(view.relation.definition_id)
        for state in states:
            stored = view.state_table(state)

            def finish(copy: Copy, key: Iterable[str] = state.stored_key) -> None:
                self._copies.refuse_nulls(cursor, copy, key)

            self._copies.make_ahead(cursor, (owner, stored), f"FROM {stored.sql}", owner, finish)

    def expect(self, cursor: Cursor, advance: Advance) -> None:
        """Make the tables for a view's pending changes before there are any.

        Otherwise the first change of each table would discard the plans of all prepared statements.
        """
        tables = [(self._table(advance.view.relation, item.added.table), item) for item in advance.applications]
        missing = [(table, item) for table, item in tables if table.pending is None]
        if missing:
            with self._changing(cursor):
                snapshot = self._lake.newest(cursor)
                for table, item in missing:
                    self._make_pending(cursor, table, item, snapshot)

    def apply(
        self, cursor: Cursor, advances: Iterable[Advance], epoch: Epoch, creations: Collection[int] = ()
    ) -> None:  # fmt: skip
        """Publish the changes of views in an epoch, with which some creations end, by relation id.

        Nothing has changed when it raises DuckDBError.
        """
        self._change(cursor, [*advances], epoch, self._pending_statements, creations)

    def follow(self, cursor: Cursor, advances: Iterable[Advance], epoch: Epoch) -> None:
        """Apply changes that the lake has already, while no other changes are pending."""
        self._change(cursor, [*advances], epoch, self._stored_statements)

    def _change(
        self, cursor: Cursor, advances: list[Advance], epoch: Epoch,
        statements: Callable[[Cursor, list[Advance], int], list[str]], creations: Collection[int] = (),
    ) -> None:  # fmt: skip
        """Run the statements by which tables follow views; once more if NULLs come where copies had none."""
        self.newest = epoch

        def run() -> None:
            with self._changing(cursor, epoch):
                self._run(cursor, statements(cursor, advances, self._lake.newest(cursor)))
                self.creations |= {*creations}

        try:
            run()
        except ConstraintError:
            for item, _, added in (step for advance in advances for step in advance.steps):
                table = self._tables.get(item.added.table)
                copy = self._copies.find(table.key) if table is not None else None
                if added and copy is not None and copy.present:
                    self._copies.allow_nulls(cursor, copy, f"FROM {item.added.rows}")
            run()

    def _pending_statements(self, cursor: Cursor, advances: list[Advance], snapshot: int) -> list[str]:
        """Return the statements that note changes which the lake does not have."""
        statements = []
        for advance in advances:
            for item, removed, added in self._steps(cursor, advance):
                table = self._table(advance.view.relation, item.added.table)
                statements += self._add(cursor, table, item, snapshot, removed, added)
            if advance.errors is not None:
                self._errors.append((advance.view.relation.id, advance.errors))
            self._checksums += advance.checksums
        return statements

    def _stored_statements(self, cursor: Cursor, advances: list[Advance], snapshot: int) -> list[str]:
        """Return the statements by which copies follow changes that the lake has."""
        statements = []
        for item, removed, added in (step for advance in advances for step in self._steps(cursor, advance)):
            table = self._tables.get(item.added.table)
            if table is None:
                continue
            table.snapshot = snapshot
            copy = self._take_copy(table, removed, added)
            if copy is not None:
                statements += _statements(copy, item, removed, added)
            else:
                self._show_again(cursor, table)
        return statements

    def _steps(self, cursor: Cursor, advance: Advance) -> list[tuple[Application, int, int]]:
        """Return the changes of an advance that are not empty.

        Values of sorted columns are noted before any reader sees the change.
        """
        table = self._tables.get(advance.view.relation.lake_table)
        if table is not None:
            table.sorted.note(cursor, advance.changes)
        return [(item, removed, added) for item, removed, added in advance.steps if removed or added]

    def go_on(self, epoch: Epoch) -> None:
        """Advance to an epoch that has changed nothing."""
        with self._lock:
            self.epoch = epoch

    def start_again(self, cursor: Cursor, epoch: Epoch) -> None:
        """Forget all changes that the lake does not have, and set the lake's epoch."""
        with self._changing(cursor, epoch):
            snapshot = self._lake.newest(cursor)
            self._errors, self._checksums, self.creations = [], [], frozenset()
            for table in self._every:
                if table.pending is not None:
                    _make_empty(cursor, table.stored, table.pending)
                table.copy, table.snapshot, table.sorted = None, snapshot, SortedColumns()
                self._show_again(cursor, table)
        self._copies.clear()

    def tidy(self, cursor: Cursor) -> None:
        """After an epoch: let the views in memory stop reading copies that are to be dropped."""
        gone = [table for table in self._every if table.copy is not self._copies.find(table.key)]
        if gone:
            with self._changing(cursor):
                for table in gone:
                    table.copy = self._copies.find(table.key)
                    self._show_again(cursor, table)

    def _table(self, relation: Relation, stored: LakeTable) -> _Table:
        table = self._tables.get(stored)
        if table is None:
            table = self._tables[stored] = _Table(stored, relation.definition_id, 0)
        return table

    def _copied(self, cursor: Cursor, table: _Table) -> Copy | None:
        source = table.name if table.has_changes else table.stored.sql
        copy = self._copies.make(cursor, table.key, f"FROM {source}")
        if copy is not None:
            with self._changing(cursor):
                table.copy = copy
                self._show_again(cursor, table)
        return copy

    def _add(
        self, cursor: Cursor, table: _Table, item: Application, snapshot: int, removed: int, added: int
    ) -> list[str]:  # fmt: skip
        """Return the statements that apply a change to a table and note the keys."""
        was = table.copy
        pending = table.pending or self._make_pending(cursor, table, item, snapshot)
        assert pending.application.key == item.key, f"the keys of {table.stored} differ"
        if added and not pending.width:
            pending.width = row_width(cursor, f"FROM {item.added.rows}")
        copy = self._take_copy(table, removed, added)
        listed = f"SELECT {_listed(item.key)}{_NEXT}"
        if item.changes is not None:
            keys, written = f"{listed}, _weight < 0 FROM {item.changes}", removed + added
        else:
            keys, written = f"{listed}, TRUE FROM {item.removed}", removed
        pending.changes += removed + added
        pending.written += written
        pending.written_rows += added if copy is None else 0
        pending.has_gone |= removed > 0
        if copy is not was:
            self._show(cursor, table)
        return [
            *_statements(copy or pending.rows, item, removed, added), f"INSERT INTO {pending.keys} {keys}",
        ]  # fmt: skip

    def _run(self, cursor: Cursor, statements: list[str]) -> None:
        """Run the statements that change tables, and make copies anew that are worn."""
        kept = [text for text in statements if reads_kept(text)]
        others = [text for text in statements if not reads_kept(text)]
        for execute, texts in ((run, kept), (run_once, others)):
            if texts:
                execute(cursor, *texts)
        for copy in (table.copy for table in self._every):
            if copy is not None and copy.is_worn:
                define_shared(cursor, f"CREATE OR REPLACE TABLE {copy.name} AS FROM {copy.name}")
                copy.changed, copy.present = 0, None

    def _make_pending(self, cursor: Cursor, table: _Table, item: Application, snapshot: int) -> _Pending:
        self._names += 1
        name = f"{BUFFER}.{EPOCHS_SCHEMA}.pending_{self._names}"
        pending = table.pending = _Pending(item, f"{name}_keys", f"{name}_rows")
        _make(cursor, table.stored, pending)
        table.snapshot = snapshot  # nothing has been stored since
        self._show(cursor, table)
        return pending

    def _take_copy(self, table: _Table, removed: int, added: int) -> Copy | None:
        """Return the copy of a table, which the caller will change; None if there is none."""
        copy = table.copy = self._copies.find(table.key)
        if copy is not None:
            copy.change(removed, added)
        return copy

    # Looking up

    def sorted_rows(self, stored: LakeTable, column: str) -> SortedRows | None:
        """Return the rows of a view sorted by a column, if there are any."""
        table = self._tables.get(stored)
        return table.sorted.rows.get(column) if table is not None else None

    @property
    def sorted_bytes(self) -> int:
        return sum(table.sorted.bytes for table in self._every)

    def watch(self, cursor: Cursor, stored: LakeTable, column: str) -> tuple[str, set[Value]]:
        """Begin to note changed values of a column, and a transaction that sees the rows before the changes.

        Returns the name of the relation with the rows, and the set of noted values.
        """
        with self._lock:
            cursor.execute(f"BEGIN; {ANCHOR}").fetchall()
            table = self._tables[stored]
            return table.name, table.sorted.watch(column)

    def sort(self, stored: LakeTable, rows: SortedRows | None) -> None:
        """Publish rows that are sorted by a column and are still watched; None for none."""
        with self._lock:
            table = self._tables.get(stored)
            if table is not None:
                table.sorted.keep(rows)

    # The catalog

    def _take_up(self, catalog: Catalog) -> None:
        """Publish the newly created views, and forget the dropped ones."""
        if catalog.relations is self._known:
            return
        views = {r.lake_table: r for r in catalog.relations if r.is_streaming and r.created and not r.is_sink}
        owners = {relation.definition_id for relation in catalog.relations}
        with self._changing(self._cursor):
            snapshot = self._lake.newest(self._cursor)
            for table in [table for table in self._every if table.owner not in owners]:
                self._drop(table)
            self.creations &= owners
            for stored, relation in views.items():
                table = self._table(relation, stored)
                if not table.is_shown:
                    table.snapshot = table.snapshot or snapshot
                    self._show(self._cursor, table)
        self._known = catalog.relations

    def _drop(self, table: _Table) -> None:
        define_shared(self._cursor, f"DROP VIEW IF EXISTS {table.name}")
        if table.pending is not None:
            define_shared(self._cursor, f"DROP TABLE {table.pending.keys}; DROP TABLE {table.pending.rows}")
        del self._tables[table.stored]

    def refresh(self, before: int) -> None:
        """Read no snapshot of the lake before this one any more. Call it while no checkpoint runs."""
        with self._changing(self._cursor):
            newest = self._lake.newest(self._cursor)
            for table in self._every:
                if table.is_shown and table.snapshot < before:
                    table.snapshot = newest
                    self._show(self._cursor, table)

    # Checkpoints

    def freeze(self, cursor: Cursor) -> Frozen:
        """Return the changes to store. The cursor is in a transaction that has read nothing yet and will read them."""
        with self._lock:
            cursor.execute(ANCHOR).fetchall()
            [(number,)] = self._cursor.execute(f"SELECT {_NEXT}").fetchall()
            parts = tuple(
                _Part(t.stored, t.pending, t.copy.name if t.copy else t.pending.rows, t.changes, t.pending.has_gone)
                for t in self._every
                if t.pending is not None and t.has_changes
            )
            return Frozen(self.epoch, number, parts, tuple(self._errors), tuple(self._checksums), self.creations)

    def stored(self, frozen: Frozen) -> None:
        """Forget the changes that the lake has now."""
        with self._changing(self._cursor):
            self._errors = self._errors[len(frozen.errors) :]
            self._checksums = self._checksums[len(frozen.checksums) :]
            self.creations -= frozen.creations
            snapshot = self._lake.newest(self._cursor)
            self._stored_at = snapshot
            for part in frozen.parts:
                table = self._tables.get(part.table)
                if table is not None and table.pending is part.pending:
                    self._forget(table, part, frozen.number)
                    table.snapshot = snapshot
                    if table.copy is None:
                        self._show(self._cursor, table)

    def _forget(self, table: _Table, part: _Part, number: int) -> None:
        pending = part.pending
        if pending.changes == part.changes:  # no change has been added since
            _make_empty(self._cursor, table.stored, pending)
            return
        pending.changes -= part.changes
        self._cursor.execute(f"DELETE FROM {pending.keys} WHERE {_NUMBER} < {number}")
        if pending.written_rows:
            changed = f"EXISTS (SELECT 1 FROM {pending.keys} AS k WHERE {pending.application.same('t', 'k')})"
            self._cursor.execute(f"DELETE FROM {pending.rows} AS t WHERE NOT {changed}")

    # What views read

    def _show(self, cursor: Cursor, table: _Table) -> None:
        define_shared(cursor, f"CREATE OR REPLACE VIEW {table.name} AS {table.rows}")
        table.is_shown = True

    def _show_again(self, cursor: Cursor, table: _Table) -> None:
        if table.is_shown:
            self._show(cursor, table)

    @contextmanager
    def _changing(self, cursor: Cursor, epoch: Epoch | None = None) -> Iterator[None]:
        """While entered, a transaction of memory is open; at its end memory is at the epoch.

        If the transaction fails, the attributes of the tables are restored, too.
        """
        with self._lock:
            errors, checksums, creations = [*self._errors], [*self._checksums], self.creations
            tables = [*self._tables.values()]
            parts = (part for table in tables for part in (table, table.pending, table.copy) if part is not None)
            before = [(part, dict(vars(part))) for part in parts]
            try:
                with in_transaction(cursor):
                    yield
            except BaseException:
                self._errors, self._checksums, self.creations = errors, checksums, creations
                self._tables = {table.stored: table for table in tables}
                for part, was in before:
                    vars(part).update(was)
                raise
            self.epoch = epoch or self.epoch


def state_owner(definition_id: int) -> tuple[str, int]:
    """Return the owner key of the copies of a view's tables.

    The definition's id is unique, while the name may be that of a dropped view.
    """
    return "state", definition_id


def _statements(of: Copy | str, item: Application, removed: int, added: int) -> list[str]:
    """Return the statements that remove and add rows of a copy, or of a table by its name."""
    name, known = (of.name, of.present or ()) if isinstance(of, Copy) else (of, ())
    item = replace(item, present=item.present | {*known}) if known else item
    return [*([item.removal(name)] if removed else ()), *([item.added.insertion(name)] if added else ())]


def _make_empty(cursor: Cursor, stored: LakeTable, pending: _Pending) -> None:
    if pending.written > WORN_ROWS or pending.bytes > _WORN_BYTES:
        _make(cursor, stored, pending)
        return
    pending.changes, pending.has_gone = 0, False
    cursor.execute(f"DELETE FROM {pending.keys}")
    if pending.written_rows:
        cursor.execute(f"DELETE FROM {pending.rows}")


def _make(cursor: Cursor, stored: LakeTable, pending: _Pending) -> None:
    """Make empty tables for pending changes, in place of any present ones."""
    pending.changes, pending.has_gone, pending.written, pending.written_rows = 0, False, 0, 0
    keys = (
        f"SELECT {_listed(pending.application.key)}0::BIGINT AS {_NUMBER}, FALSE AS {_GONE} FROM {stored.sql} LIMIT 0"
    )
    define_shared(cursor, f"CREATE OR REPLACE TABLE {pending.keys} AS {keys}")
    define_shared(cursor, f"CREATE OR REPLACE TABLE {pending.rows} AS FROM {stored.sql} LIMIT 0")


def _listed(key: Iterable[str]) -> str:
    return "".join(f"{quote(name)}, " for name in key)
