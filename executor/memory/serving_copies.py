"""Copies in memory of the tables that clients read often, because a query over the lake takes ten times as long.

A copy is a table of DuckDB's own database, with a view that queries read. All copies are at one snapshot of the lake
and are advanced in one transaction, so that a query sees one snapshot whatever it joins. A reader that finds the copies
behind the lake advances them by the changed rows; a writer does nothing for them. Tables that are read seldom have no
copy. A copy is dropped when too many rows change, or the table changes otherwise than by rows. It is made again in the
background while clients read the lake.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import SimpleQueue

import pyarrow as pa

from sparkwave.catalog.counters import SERVING_HITS, SERVING_MISSES
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import locate
from sparkwave.catalog.lake.memory_transactions import in_transaction
from sparkwave.catalog.lake.row_history import ROW, last_entries, row_history
from sparkwave.catalog.lake.snapshot_changes import ROW_CHANGES, Change, changes_made, is_kept
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.locks import Rank, RankedLock
from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import COPIES, SERVING_SCHEMA, copy_name, quote
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill.slicing import row_count
from sparkwave.executor.memory.delta_tables import make_table
from sparkwave.executor.memory.shared_buffer import SharedBuffer
from sparkwave.executor.memory.sorted_rows import SortedColumns, SortedRows

logger = logging.getLogger(__name__)

SCHEMA = f"{COPIES}.{SERVING_SCHEMA}"


@dataclass(frozen=True)
class Pace:
    """When a relation gets a copy, and when it loses the copy.

    It gets a copy after `reads` reads within `within_s` seconds. It loses the copy when it changes without a read for
    `idle_s` seconds, when more than `most_changes` rows change at once, or when more rows have changed in total than it
    has. A failed copy is not tried again for `again_s` seconds. A reader that would wait longer than `patience_s`
    seconds, for a COMMIT or for another reader that advances the copies, reads the lake.
    """

    reads: int = 3
    within_s: float = 60.0
    idle_s: float = 60.0
    most_changes: int = 20_000
    again_s: float = 60.0
    patience_s: float = 0.05


@dataclass(eq=False)
class Copy:
    """The copy of a relation, whose table id in the lake is `number`.

    `width` is about the bytes of a row. `changed` counts the rows changed since the copy was loaded. `sorted` has the
    rows in the order of each column that is looked up.
    """

    relation: Relation
    table: str
    number: int
    rows: int
    width: float
    hits: int = 0
    read_at: float = 0.0
    changed: int = 0
    since: datetime = field(default_factory=lambda: datetime.now(UTC))
    sorted: SortedColumns = field(default_factory=SortedColumns)

    @property
    def view(self) -> str:
        """The view that queries read. It has the relation's columns only, so that no row id is a name in a query."""
        return f"{SCHEMA}.{quote(copy_name(self.relation.id))}"

    @property
    def bytes(self) -> int:
        return int(self.rows * self.width) + self.sorted.bytes

    @property
    def columns(self) -> str:
        return ", ".join(quote(column.lake_name) for column in self.relation.visible)


@dataclass(frozen=True)
class State:
    """The copies by relation. All are at `snapshot`, or already at a later one while they are being advanced."""

    snapshot: int = -1
    copies: Mapping[int, Copy] = field(default_factory=dict)


class Serving:
    """Keeps the copies. `covers` says whether a query may read copies; the caller runs the query."""

    def __init__(self, store: Store, buffer: SharedBuffer, budget: Callable[[], int], pace: Pace | None = None) -> None:
        """`budget` is how many bytes all copies may take; 0 means no copies."""
        self._store, self._buffer = store, buffer
        self._lake = store.lake
        self._budget = budget
        self._pace = pace or Pace()
        self._cursor = self._lake.cursor()
        self._cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        self._clock = self._lake.cursor()
        self._state = State()
        self._lock = RankedLock(Rank.SERVING)  # held while copies change
        self._missed: dict[Hashable, deque[float]] = {}
        self._not_before: dict[int, float] = {}
        self._numbers = itertools.count(1)
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._pending: set[object] = set()
        self._thread = threading.Thread(target=self._run, name="serving", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the copy that is being made."""
        self._tasks.put(None)
        if self._thread.is_alive():
            self._thread.join(30)

    @property
    def copies(self) -> tuple[int, list[Copy]]:
        """The snapshot of the copies, and the copies sorted by relation id."""
        state = self._state
        return state.snapshot, [state.copies[id_] for id_ in sorted(state.copies)]

    # Reading

    def covers(self, relations: Collection[int]) -> bool:
        """Return whether there are copies of all these relations, with everything committed before this call.

        A query may still find that a copy has been dropped since, and has to read the lake then.
        """
        if not relations:  # only views, which are in memory in any case
            return True
        is_served = self._covers(relations)
        (SERVING_HITS if is_served else SERVING_MISSES).inc()
        return is_served

    def _covers(self, relations: Collection[int]) -> bool:
        if not self._budget():
            if self._state.copies:
                self._later(("drop",), self._clear)
            return False
        now, copies, is_missing = time.monotonic(), self._state.copies, False
        for id_ in relations:
            copy = copies.get(id_)
            if copy is None:
                is_missing = True
                self._miss(id_, now)
            else:
                copy.read_at = now
                copy.hits += 1
        if is_missing:
            return False
        try:
            self._follow(self._lake.newest(self._clock, self._pace.patience_s))
        except (DuckDBError, TimeoutError):
            return False
        return all(id_ in self._state.copies for id_ in relations)

    def _follow(self, newest: int) -> None:
        """Take the copies to a snapshot or a later one. Raises TimeoutError after `patience_s` seconds of waiting."""
        if self._state.snapshot >= newest:
            return
        if not self._lock.acquire(timeout=self._pace.patience_s):
            raise TimeoutError
        try:
            if self._state.snapshot < newest and self._state.copies:
                self._catch_up(newest)
        finally:
            self._lock.release()

    def find(self, relation: int, column: str, value: object, outputs: tuple[str, ...]) -> pa.RecordBatch | None:
        """Return columns of the rows with a value in a column, for a relation that `covers` has accepted.

        None if the caller has to run a query.
        """
        copy = self._state.copies.get(relation)
        if copy is None:
            return self._find_in_view(relation, column, value, outputs)
        rows = copy.sorted.rows.get(column)
        if rows is None or rows.is_worn:
            self._later((copy.table, column), lambda: self._sort(copy, column))
        return rows.find(value, outputs) if rows is not None else None

    def _find_in_view(self, id_: int, column: str, value: object, outputs: tuple[str, ...]) -> pa.RecordBatch | None:
        """Find a materialized view as `find` does: it has no copy here but is in the shared buffer."""
        relation = self._store.catalog.by_id.get(id_)
        if relation is None or not relation.is_streaming:
            return None
        rows = self._buffer.sorted_rows(relation.lake_table, column)
        if (rows is None or rows.is_worn) and self._is_often((id_, column), time.monotonic()):
            self._later((id_, column), lambda: self._sort_view(relation, column))
        return rows.find(value, outputs) if rows is not None else None

    def _sort_view(self, relation: Relation, column: str) -> None:
        """Sort the rows of a view by a column."""
        self._missed.pop((relation.id, column), None)
        values = ", ".join(f"{c.from_lake} AS {quote(c.lake_name)}" for c in relation.visible)
        with closing(self._lake.cursor()) as cursor:
            rows, changed = self._buffer.watch(cursor, relation.lake_table, column)
            batch = _sorted(cursor, f"SELECT {values} FROM {rows}", column)
        fits = batch is not None and self._make_room(batch.nbytes)
        self._buffer.sort(relation.lake_table, SortedRows(column, batch, changed) if fits else None)

    def _miss(self, id_: int, now: float) -> None:
        """Record that a relation without a copy was read."""
        if self._is_often(id_, now):
            self._load_later(id_)

    def _is_often(self, what: Hashable, now: float) -> bool:
        """Record a miss. Returns whether misses of `what` are frequent enough to spend memory on it."""
        reads = self._missed.setdefault(what, deque(maxlen=self._pace.reads))
        reads.append(now)
        return len(reads) == self._pace.reads and now - reads[0] <= self._pace.within_s

    # In the background

    def _load_later(self, id_: int) -> None:
        if self._not_before.get(id_, 0.0) <= time.monotonic():
            self._later((id_,), lambda: self._load(id_))

    def _later(self, what: tuple[object, ...], task: Callable[[], None]) -> None:
        """Queue a task for the thread, unless it is queued already."""
        if what in self._pending:
            return
        self._pending.add(what)

        def run() -> None:
            try:
                task()
            finally:
                self._pending.discard(what)

        self._tasks.put(run)

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task()
            except Exception:
                logger.warning("a copy could not be made or dropped; clients read the lake", exc_info=True)

    def _clear(self) -> None:
        with self._lock:
            state, self._state = self._state, State()
            with self._changing() as cursor:
                _drop(cursor, state.copies.values())

    def _load(self, id_: int) -> None:
        """Copy a relation and advance the copy to the snapshot of the others."""
        began = time.monotonic()
        self._missed.pop(id_, None)
        self._not_before[id_] = began + self._pace.again_s
        with closing(self._lake.cursor()) as cursor:
            with self._lake.exclusive():  # so that the columns are those at the snapshot
                relation = self._store.catalog.by_id.get(id_)
                snapshot = self._lake.pin()
            try:
                if relation is None or not relation.is_table or id_ in self._state.copies:
                    return
                copy = self._copied(cursor, relation, snapshot)
                if copy is None:
                    return
                with self._lock:
                    self._catch_up(self._lake.newest(self._clock), (copy, snapshot))
            finally:
                self._lake.unpin(snapshot)
        if id_ in self._state.copies:
            # Reloading the same relation again and again takes at most a tenth of the time.
            self._not_before[id_] = began + 10 * (time.monotonic() - began)

    def _copied(self, cursor: Cursor, relation: Relation, snapshot: int) -> Copy | None:
        """Return a table with a relation's rows at a snapshot; None when there is no room for it."""
        located = locate(cursor, relation.lake_table, snapshot)
        rows = row_count(cursor, relation, snapshot)
        fixed = sum(_FIXED if column.type.length < 0 else column.type.length for column in relation.visible)
        if located is None or not self._make_room(rows * (fixed + _FIXED)):
            return None
        copy = Copy(relation, f"{SCHEMA}.{quote(f'c{relation.id}_{next(self._numbers)}')}", located[0], rows, 0.0)
        copy.read_at = time.monotonic()
        values = "".join(f", {column.from_lake} AS {quote(column.lake_name)}" for column in relation.visible)
        cursor.execute(
            f"CREATE TABLE {copy.table} AS SELECT rowid AS {ROW}{values} "
            f"FROM {relation.lake_name} AT (VERSION => {snapshot})"
        )
        varying = [f"coalesce(strlen({quote(c.lake_name)}::VARCHAR), 0)" for c in relation.visible if c.type.length < 0]
        row = cursor.execute(f"SELECT avg({' + '.join(varying) or '0'}) FROM {copy.table}").fetchone()
        copy.width = fixed + _FIXED + (row[0] or 0.0 if row else 0.0)
        if self._make_room(copy.bytes):
            return copy
        cursor.execute(f"DROP TABLE {copy.table}")
        return None

    def _make_room(self, size: int) -> bool:
        """Drop the copies that were read least recently until `size` bytes fit. Returns whether they do.

        No copy in use is dropped, because two copies would go on replacing each other.
        """
        with self._lock:
            unused = sorted(self._state.copies.values(), key=lambda copy: copy.read_at)
            unused = [copy for copy in unused if copy.read_at < time.monotonic() - self._pace.idle_s]
            free = self._budget() - self._buffer.sorted_bytes - sum(copy.bytes for copy in self._state.copies.values())
            gone: list[Copy] = []
            while free < size and unused:
                gone.append(unused.pop(0))
                free += gone[-1].bytes
            if free >= size and gone:
                with self._changing() as cursor:
                    _drop(cursor, gone)
                left = {id_: copy for id_, copy in self._state.copies.items() if copy not in gone}
                self._state = State(self._state.snapshot, left)
            return free >= size

    def _sort(self, copy: Copy, column: str) -> None:
        """Sort the rows of a copy by a column."""
        if not self._make_room(int(copy.rows * copy.width)):
            return
        with closing(self._lake.cursor()) as cursor:
            with self._lock:
                if self._state.copies.get(copy.relation.id) is not copy:
                    return
                cursor.execute("BEGIN")
                cursor.execute(f"FROM {copy.table} LIMIT 0").fetchall()  # fixes what the transaction sees
                changed = copy.sorted.watch(column)
            batch = _sorted(cursor, f"SELECT {copy.columns} FROM {copy.table}", column)
        with self._lock:
            copy.sorted.keep(SortedRows(column, batch, changed) if batch is not None else None)

    # Changes, while the lock is held

    def _catch_up(self, upto: int, loaded: tuple[Copy, int] | None = None) -> None:
        """Advance the copies to a snapshot, with a copy that was loaded at an earlier snapshot."""
        state = self._state
        copies = [(copy, state.snapshot) for copy in state.copies.values()] + ([loaded] if loaded else [])
        oldest = min(after for _, after in copies)
        try:
            with self._changing() as cursor:
                changes = changes_made(cursor, oldest, upto)
                is_known = is_kept(cursor, oldest, upto)
                kept = [c for c, after in copies if is_known and self._advance(cursor, c, _of(c, changes, after), upto)]
                kept = self._fitting(kept)
                _drop(cursor, (copy for copy, _ in copies if copy not in kept))
                if loaded is not None and loaded[0] in kept:
                    copy = loaded[0]
                    cursor.execute(f"CREATE OR REPLACE VIEW {copy.view} AS SELECT {copy.columns} FROM {copy.table}")
        except DuckDBError:
            logger.warning("copies could not be brought up to date; clients read the lake", exc_info=True)
            self._state = State()
            with self._changing() as cursor:
                _drop(cursor, (copy for copy, _ in copies))
            raise
        self._state = State(upto, {copy.relation.id: copy for copy in kept})

    def _advance(self, cursor: Cursor, copy: Copy, changes: list[Change], upto: int) -> bool:
        """Apply changes to a copy. Returns whether to keep the copy."""
        if not changes:
            return True
        if any(change.kind not in ROW_CHANGES for change in changes):
            return False  # dropped or altered
        if copy.read_at < time.monotonic() - self._pace.idle_s:
            return False
        has_deletes = any(ROW_CHANGES[change.kind] for change in changes)
        after = min(change.snapshot for change in changes) - 1
        history = row_history(cursor, copy.relation.lake_table, copy.columns, after, upto, has_deletes)
        most = self._pace.most_changes
        count = make_table(cursor, _HISTORY, f"{history} LIMIT {most + 1}")
        copy.changed += count
        if count > most or copy.changed > max(copy.rows, most):
            self._load_later(copy.relation.id)
            return False
        copy.sorted.note(cursor, _HISTORY)
        if has_deletes:
            copy.rows -= _scalar(cursor, f"DELETE FROM {copy.table} WHERE {ROW} IN (SELECT {ROW} FROM {_HISTORY})")
        values = "".join(f", {column.from_lake}" for column in copy.relation.visible)
        rows = f"SELECT {ROW}{values} FROM ({last_entries(_HISTORY, copy.columns)})"
        copy.rows += _scalar(cursor, f"INSERT INTO {copy.table} {rows}")
        return True

    def _fitting(self, copies: list[Copy]) -> list[Copy]:
        """Return the most recently read copies that fit the budget together; copies may have grown."""
        kept: list[Copy] = []
        for copy in sorted(copies, key=lambda copy: copy.read_at, reverse=True):
            if sum(other.bytes for other in kept) + copy.bytes <= self._budget():
                kept.append(copy)
        return kept

    @contextmanager
    def _changing(self) -> Iterator[Cursor]:
        """While entered, a transaction that changes copies is open."""
        with in_transaction(self._cursor):
            yield self._cursor


def _sorted(cursor: Cursor, rows: str, column: str) -> pa.RecordBatch | None:
    """Return the rows of a query sorted by a column, without NULL in it; None if there are too many for one batch."""
    name = quote(column)
    query = f"FROM ({rows}) WHERE {name} IS NOT NULL ORDER BY {name}"
    table = cursor.execute(query).to_arrow_table().combine_chunks()
    batches = table.to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]
    return batches[0] if len(batches) == 1 else None  # more than 2 GiB of text make several batches


_HISTORY = "served_history"
# Bytes of a row id, and of a variable-length value in addition to its content.
_FIXED = 8


def _of(copy: Copy, changes: list[Change], after: int) -> list[Change]:
    """The changes of a copy's relation after a snapshot."""
    return [change for change in changes if change.table_id == copy.number and change.snapshot > after]


def _drop(cursor: Cursor, copies: Iterable[Copy]) -> None:
    for copy in copies:
        cursor.execute(f"DROP VIEW IF EXISTS {copy.view}")
        cursor.execute(f"DROP TABLE IF EXISTS {copy.table}")


def _scalar(cursor: Cursor, sql: str) -> int:
    row = cursor.execute(sql).fetchone()
    return row[0] if row else 0
