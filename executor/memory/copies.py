"""Copies in memory of the rows that epochs look up.

A scan of the lake asks its catalog for some milliseconds before it reads a row, and then it reads files. Rows that two
epochs read within a minute get a copy if it fits. The owner of a copy keeps it up to date: `executor.epochs.lookups`
for tables, `executor.memory.shared_buffer` for views and their states.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from sparkwave.catalog.counters import EPOCH_CACHE_BYTES
from sparkwave.catalog.lake.duckdb_threads import Threads
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.prepared_statements import define_shared
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.names import BUFFER, EPOCHS_SCHEMA, literal, quote

# Rows that are read again within this many seconds get a copy. A copy that nobody reads for as long may lose its
# place to another one. A copy that did not fit is not tried again before.
RECENT_S = 60.0
# A larger copy would make its epoch more than about a second longer.
MOST_ROWS = 10_000_000
# A copy is made anew after more changed rows than it has rows, and than this.
MANY_ROWS = 10_000
# A scan of fewer rows takes no longer than a look-up.
LARGE_ROWS = 20_000
# An index on a column with more rows a value finds too many rows to be faster than a scan.
_MOST_ROWS_A_VALUE = 100
# Types with an index. One on texts would refuse those of more than 8,192 bytes.
_INDEXED_TYPES = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "DECIMAL", "DATE", "TIMESTAMP", "UUID")
# About the bytes that an index takes for each row, and the part of the budget up to which indexes are made: copies of
# more tables save more.
_INDEX_BYTES, _INDEXED_PART = 16, 0.5
# Rows that no checkpoint has stored may take this many bytes, whatever the budget.
_LEAST_BYTES = 16 << 20
# Bytes of a value of a fixed-size type, and the number of rows whose values of other types are measured.
VALUE_BYTES, _SAMPLE = 8, 2048
_FIXED = ("BIGINT", "DOUBLE", "DECIMAL", "TIME")
_SMALL = {"BOOLEAN": 1, "SMALLINT": 2, "INTEGER": 4, "FLOAT": 4, "DATE": 4}


# The owner of a copy, and the name of the copied rows.
Key = tuple[Hashable, ...]


@dataclass(eq=False)
class Copy:
    """A table in memory.

    `columns` have DuckDB's types, and `width` is about the bytes of a row; `changed` counts changed rows since
    the table was made. `distinct` has about the number of different values of columns that are looked up, and `indexed`
    are those with an index. `present` are columns in which the table refuses NULL; None while no key of a large copy is
    known.
    """

    name: str
    columns: Mapping[str, str]
    rows: int
    width: float
    read_at: float
    changed: int = 0
    distinct: dict[str, int] = field(default_factory=dict)
    indexed: set[str] = field(default_factory=set)
    present: frozenset[str] | None = None

    @property
    def bytes(self) -> int:
        return int(self.rows * (self.width + _INDEX_BYTES * len(self.indexed)))

    @property
    def is_large(self) -> bool:
        """Whether a look-up takes less time than a scan."""
        return self.rows >= LARGE_ROWS

    @property
    def is_worn(self) -> bool:
        """Whether so many rows have changed that the copy should be made anew, because DuckDB keeps deleted rows."""
        return self.changed > max(self.rows, MANY_ROWS)

    def change(self, removed: int, added: int) -> None:
        """Count removed and added rows."""
        self.changed += removed + added
        self.rows += added - removed

    def by(self, column: str, always: str, where: str = "") -> str:
        """Return SQL of the rows for which a condition holds, for look-ups by a column with an index.

        DuckDB 1.5.5 uses an index for a join only if its column is the first that the scan reads, and if no other
        condition is on a single column. So all other columns are expressions of several columns. `always` is a
        comparison of columns that is true for each row.
        """
        others = [quote(name) for name in self.columns if name != column]
        rows = f"SELECT {', '.join([quote(column), *others])} FROM {self.name}"
        hidden = (f"CASE WHEN {always} THEN {name} END AS {name}" for name in others)
        return f"(SELECT {', '.join([quote(column), *hidden])} FROM ({rows}){where})"


class Copies:
    """Keeps the copies. Only the coordinator's thread uses it, with its own cursor; others make copies ahead."""

    def __init__(self, budget: Callable[[], int], threads: Threads) -> None:
        """`budget` is how many bytes all copies and other rows in memory (see `hold`) may take; 0 means no copies."""
        self._budget, self._threads = budget, threads
        self._copies: dict[Key, Copy] = {}
        self._ahead: dict[Key, tuple[Hashable, Copy]] = {}  # made before an epoch asks for them; each with its maker
        self._left: list[str] = []  # tables that are not copies any more, to be dropped
        self._read_at: dict[Key, float] = {}  # when rows without a copy were last read, or their copy was forgotten
        self._numbers = itertools.count(1)
        self._is_held: Callable[[Key], bool] = lambda _key: False
        self._others: Callable[[], int] = lambda: 0

    def hold(self, is_held: Callable[[Key], bool], others: Callable[[], int]) -> None:
        """Keep the copies for which `is_held` returns True: their rows are nowhere else.

        `others` returns the bytes of other rows in memory.
        """
        self._is_held, self._others = is_held, others

    @property
    def _bytes(self) -> int:
        ahead = [copy for _, copy in [*self._ahead.values()]]  # other threads add some
        return sum(copy.bytes for copy in [*self._copies.values(), *ahead])

    def get(self, key: Key) -> Copy | None:
        """Return a copy, which may have been made ahead, or None, and record that it is read."""
        copy = self._copies.get(key)
        if copy is None and (ahead := self._ahead.pop(key, None)) is not None:
            _, copy = ahead
            self._keep(key, copy)
        if copy is not None:
            copy.read_at = time.monotonic()
        return copy

    @property
    def _free(self) -> int:
        return self._budget() - self._bytes - self._others()

    def trim(self) -> None:
        """Forget copies that the budget has no room for: copies may have grown, or the budget may have shrunk."""
        self._make_room(0, math.inf)

    @property
    def is_over(self) -> bool:
        """Whether the copies and the other rows take more bytes than the budget, because some copies are held."""
        budget = self._budget()
        return self._bytes > budget or self._bytes + self._others() > max(budget, _LEAST_BYTES)

    def find(self, key: Key) -> Copy | None:
        """Return a copy, or None, without recording that it is read."""
        return self._copies.get(key)

    def make(self, cursor: Cursor, key: Key, query: str) -> Copy | None:
        """Make a copy of rows that were read lately, by SQL of these rows. None if there is still no copy."""
        now = time.monotonic()
        since = self._read_at.get(key)
        if since is None or now - since > RECENT_S or not self._budget():
            self._read_at = {other: at for other, at in self._read_at.items() if now - at < RECENT_S} | {key: now}
            return None
        if now < since:
            return None
        copy = self._measured(cursor, query)
        if copy is None or not self._make_room(copy.bytes, now - RECENT_S):
            self._read_at[key] = now + RECENT_S
            return None
        with self._threads.during(lambda: copy.rows):
            _make(cursor, copy, query)
        self._keep(key, copy)
        return copy

    def make_ahead(
        self, cursor: Cursor, key: Key, query: str, maker: Hashable, finish: Callable[[Copy], object]
    ) -> None:
        """Make a copy for the next `get` of its key that finds none, if there is room for it.

        Any thread may call this, as the `maker`, with its own cursor; `finish` gets the copy before others do. Until
        that `get` the copy has to stay right, or the maker forgets it. One thread of DuckDB works, so that epochs go
        on.
        """
        if key in self._ahead or not self._budget():
            return
        copy = self._measured(cursor, query)
        if copy is None or copy.bytes > self._free:
            return
        try:
            _make(cursor, copy, query)
            finish(copy)
        except DuckDBError:
            self._left.append(copy.name)
            raise
        self._ahead[key] = maker, copy

    def forget_ahead(self, is_gone: Callable[[Key, Hashable], bool]) -> None:
        """Forget copies made ahead that nobody has read, by key and maker. May be called from any thread."""
        for key in [key for key, (maker, _) in [*self._ahead.items()] if is_gone(key, maker)]:
            if (found := self._ahead.pop(key, None)) is not None:
                self._left.append(found[1].name)

    def _keep(self, key: Key, copy: Copy) -> None:
        self._copies[key] = copy
        self._read_at.pop(key, None)
        self._observe()

    def _measured(self, cursor: Cursor, query: str) -> Copy | None:
        """Return a copy whose table is still to be made; None if it would be too large."""
        row = first_row(cursor.execute(f"SELECT count(*) FROM ({query})"))
        if row is None or row[0] > MOST_ROWS:
            return None
        name = f"{BUFFER}.{EPOCHS_SCHEMA}.copy_{next(self._numbers)}"
        columns = {column: str(type_) for column, type_, *_ in cursor.execute(f"{query} LIMIT 0").description}
        return Copy(name, columns, row[0], row_width(cursor, query), time.monotonic())

    def index(self, cursor: Cursor, copy: Copy, groups: Iterable[Sequence[str]], is_made: bool = True) -> str | None:
        """Return a column with an index of columns that are looked up together in one of the groups.

        The column is the one of its group with the most different values. None if the copy is small, if the columns
        have few values or types without an index, or if there is no room. A missing index `is_made`, or there is none.
        """
        for names in groups if copy.is_large else ():
            group = [name for name in names if _can_be_indexed(copy.columns[name])]
            if not group:
                continue
            self._distinct(cursor, copy, group)
            column = max(group, key=copy.distinct.__getitem__)
            if copy.rows > copy.distinct[column] * _MOST_ROWS_A_VALUE:
                continue
            if column not in copy.indexed:
                if not is_made:
                    return None
                if self._bytes + self._others() + copy.rows * _INDEX_BYTES > self._budget() * _INDEXED_PART:
                    return None
                with self._threads.during(lambda: copy.rows):
                    define_shared(cursor, f"CREATE INDEX {_index_name(copy, column)} ON {copy.name} ({quote(column)})")
                copy.indexed.add(column)
            return column
        return None

    def found(self, cursor: Cursor, copy: Copy, columns: Iterable[str], keys: int) -> float:
        """Return about how many rows of a copy have one of so many keys in some columns."""
        return keys * copy.rows / max(*self._distinct(cursor, copy, columns), 1)

    @staticmethod
    def _distinct(cursor: Cursor, copy: Copy, columns: Iterable[str]) -> list[int]:
        """Return about how many different values each of some columns of a copy has."""
        columns = [*columns]
        if unknown := [column for column in columns if column not in copy.distinct]:
            counted = ", ".join(f"approx_count_distinct({quote(column)})" for column in unknown)
            counts = first_row(cursor.execute(f"SELECT {counted} FROM {copy.name}"))
            copy.distinct |= zip(unknown, counts or (), strict=True)
        return [copy.distinct[column] for column in columns]

    def refuse_nulls(self, cursor: Cursor, copy: Copy, key: Iterable[str]) -> None:
        """Let a large copy refuse NULL in the columns of its key that have none, so that `=` can compare them."""
        names = [name for name in key if copy.columns[name] == "VARCHAR" or _can_be_indexed(copy.columns[name])]
        if copy.present is not None or not copy.is_large or not names:
            return
        counted = ", ".join(f"count(*) - count({quote(name)}), min({quote(name)})::VARCHAR" for name in names)
        found = first_row(cursor.execute(f"SELECT {counted} FROM {copy.name}")) or ()
        nulls, least = found[::2], found[1::2]
        present = {name: value for name, count, value in zip(names, nulls, least, strict=True) if not count}
        for name, value in present.items():
            column = f"ALTER TABLE {copy.name} ALTER COLUMN {quote(name)} SET"
            default = f"{literal(value)}::{copy.columns[name]}"
            # Statements are prepared with a row of default values (`catalog.lake.prepared_statements`).
            define_shared(cursor, f"{column} NOT NULL; {column} DEFAULT {default}")
        copy.present = frozenset(present)

    def allow_nulls(self, cursor: Cursor, copy: Copy, rows: str) -> None:
        """Let a copy have NULL in the columns in which some rows to come have it. `rows` is a query."""
        names = sorted(copy.present or ())
        counted = ", ".join(f"count(*) > count({quote(name)})" for name in names)
        found = first_row(cursor.execute(f"SELECT {counted} FROM ({rows})")) or ()
        for name in (name for name, has_nulls in zip(names, found, strict=True) if has_nulls):
            define_shared(cursor, f"ALTER TABLE {copy.name} ALTER COLUMN {quote(name)} DROP NOT NULL")
            copy.present = (copy.present or frozenset()) - {name}

    def changes(self, key: Key, removed: int, added: int) -> Copy | None:
        """Count changed rows of a copy and return it, for the caller to change. None if it is better made anew."""
        copy = self._copies.get(key)
        if copy is None:
            return None
        copy.change(removed, added)
        if copy.is_worn:
            self.forget(key)
            return None
        self._observe()
        return copy

    def forget(self, key: Key) -> None:
        """Forget a copy, so that it is made anew when its rows are read again."""
        copy = self._copies.pop(key, None)
        if copy is not None:
            self._left.append(copy.name)
            self._read_at[key] = time.monotonic()
            self._observe()

    def forget_all(self, owner: Hashable) -> None:
        """Forget the copies of an owner, but not those made ahead that nobody has read."""
        for key in [key for key in self._copies if key[0] == owner]:
            self.forget(key)

    def keep(self, owners: Collection[Hashable]) -> None:
        """Forget the copies of all other owners, and those that others have made ahead. A key begins with its owner."""
        for key in [key for key in self._copies if key[0] not in owners]:
            self.forget(key)
        self.forget_ahead(lambda _, maker: maker not in owners)
        self._read_at = {key: at for key, at in self._read_at.items() if key[0] in owners}

    def clear(self) -> None:
        """Forget all copies but those that are held."""
        for key in [key for key in self._copies if not self._is_held(key)]:
            self.forget(key)

    def _make_room(self, size: int, read_before: float) -> bool:
        """Forget the copies that were last read before `read_before`, oldest first, until `size` more bytes fit."""
        if self._free < size:
            self.forget_ahead(lambda *_: True)
        free = self._free
        for key, copy in sorted(self._copies.items(), key=lambda item: item[1].read_at):
            if free >= size or copy.read_at > read_before:
                break
            if self._is_held(key):
                continue
            free += copy.bytes
            self.forget(key)
        return free >= size

    def drop_left(self, cursor: Cursor) -> None:
        """Drop the tables of forgotten copies."""
        while self._left:
            define_shared(cursor, f"DROP TABLE IF EXISTS {self._left.pop()}")

    def _observe(self) -> None:
        EPOCH_CACHE_BYTES.set(self._bytes)


def _make(cursor: Cursor, copy: Copy, query: str) -> None:
    define_shared(cursor, f"CREATE OR REPLACE TABLE {copy.name} AS {query}")


def _can_be_indexed(type_: str) -> bool:
    return type_.startswith(_INDEXED_TYPES) and not type_.endswith("]")


def _index_name(copy: Copy, column: str) -> str:
    return quote(f"{copy.name.rpartition('.')[2]}_{column}")


def row_width(cursor: Cursor, query: str) -> float:
    """Return about how many bytes a row of a query has."""
    columns = [(quote(column), str(type_)) for column, type_, *_ in cursor.execute(f"{query} LIMIT 0").description]
    varying = [column for column, type_ in columns if type_ not in _SMALL and not type_.startswith(_FIXED)]
    lengths = " + ".join(f"coalesce(strlen({column}::VARCHAR), 0)" for column in varying) or "0"
    row = first_row(cursor.execute(f"SELECT avg({lengths}) FROM ({query} LIMIT {_SAMPLE})"))
    return sum(_SMALL.get(type_, VALUE_BYTES) for _, type_ in columns) + (row[0] or 0.0 if row else 0.0)
