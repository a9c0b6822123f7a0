"""The targets of a write: a table of the lake, or a transaction's overlay over one.

An overlay is a view in memory, `rows`, of a table as the transaction sees it: the rows of its snapshot, replaced by
newer entries of the overlay's log. An entry is a row's present values, or its deletion. The log is append-only. So a
savepoint is a number of entries, open cursors keep the rows that they saw, and the cost of a transaction depends on the
number of its changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import at_version
from sparkwave.catalog.model import Relation, same_key
from sparkwave.catalog.names import ROW, quote
from sparkwave.planner.batch.write import INSERTED

# Columns of a log besides those of the table: the entry's number, whether the row exists, and its `rowid`. A new row
# has a negative one until the lake assigns another.
ENTRY, LIVE, ROW_ID = '"?entry"', '"?live"', '"?rowid"'
# The newest entry of each row, in the order in which they were written: new rows' ids descend.
NEWEST = f"QUALIFY row_number() OVER (PARTITION BY {ROW_ID} ORDER BY {ENTRY} DESC) = 1 ORDER BY {ENTRY}, {ROW_ID} DESC"


def listed(names: tuple[str, ...], of: str = "") -> str:
    return ", ".join(f"{of}{quote(name)}" for name in names)


def names_of(target: Relation, names: Collection[str] | None = None) -> tuple[str, ...]:
    """Return the lake's names of the table's columns, all or some, in the table's order."""
    return tuple(column.lake_name for column in target.visible if names is None or column.name in names)


def key_of(target: Relation) -> tuple[str, ...]:
    """Return the lake's names of the primary key's columns."""
    return target.in_lake(target.primary_key)


@dataclass(frozen=True)
class Stored:
    """A table of the lake, inside a transaction."""

    target: Relation

    @property
    def rows(self) -> str:
        """The SQL name of the rows, which have the columns of the lake table and a `rowid`."""
        return self.target.lake_name

    def insert(self, cursor: Cursor) -> None:
        """Add the staged rows."""
        cursor.execute(f"INSERT INTO {self.rows} BY NAME FROM {INSERTED}")

    def merge(self, cursor: Cursor) -> None:
        """Add the staged rows; a row whose key exists replaces the stored row."""
        names, key = names_of(self.target), key_of(self.target)
        on = same_key(self.target, "t", "s")
        others = [name for name in names if name not in key] or key
        assignments = ", ".join(f"{quote(name)} = s.{quote(name)}" for name in others)
        cursor.execute(
            f"MERGE INTO {self.rows} t USING {INSERTED} s ON {on} "
            f"WHEN MATCHED THEN UPDATE SET {assignments} "
            f"WHEN NOT MATCHED THEN INSERT ({listed(names)}) VALUES ({listed(names, 's.')})"
        )

    def update(self, cursor: Cursor, assigned: tuple[str, ...], changed: str) -> None:
        """Set columns to their values in the query `changed`, which has the row ids as `?row`."""
        values = ", ".join(f"{quote(name)} = changed.{quote(name)}" for name in names_of(self.target, assigned))
        on = f'stored.rowid = changed."{ROW}"'
        cursor.execute(f"UPDATE {self.rows} AS stored SET {values} FROM ({changed}) AS changed WHERE {on}")

    def delete(self, cursor: Cursor, row_ids: str) -> None:
        """Delete the rows whose ids the query `row_ids` returns."""
        cursor.execute(f"DELETE FROM {self.rows} WHERE rowid IN ({row_ids})")

    def clear(self, cursor: Cursor) -> None:
        """Delete all rows."""
        cursor.execute(f"DELETE FROM {self.rows}")


@dataclass(frozen=True)
class Overlay:
    """A table as the transaction sees it. It has the methods of `Stored`; each call takes an entry number."""

    target: Relation
    rows: str
    log: str
    numbers: Iterator[int]

    def create(self, cursor: Cursor, snapshot: int) -> None:
        columns = ", ".join(f"{quote(column.lake_name)} {column.type.in_lake()}" for column in self.target.visible)
        cursor.execute(f"CREATE TABLE {self.log} ({ENTRY} BIGINT, {LIVE} BOOLEAN, {ROW_ID} BIGINT, {columns})")
        names = listed(names_of(self.target))
        stored = at_version(self.target.lake_name, snapshot)
        cursor.execute(
            f"CREATE VIEW {self.rows} AS FROM (SELECT rowid, snapshot_id, {names} FROM {stored}) AS stored "
            f"WHERE NOT EXISTS (FROM {self.log} AS log WHERE log.{ROW_ID} = stored.rowid) UNION ALL "
            f"SELECT {ROW_ID}, NULL, {names} FROM (FROM {self.log} {NEWEST}) AS log WHERE {LIVE}"
        )

    def insert(self, cursor: Cursor) -> None:
        self._add(cursor, f"{_NEW_ROW}, {listed(names_of(self.target))} FROM {INSERTED}")

    def merge(self, cursor: Cursor) -> None:
        names, on = listed(names_of(self.target), "staged."), same_key(self.target, "stored", "staged")
        row = f"coalesce(stored.rowid, {_NEW_ROW})"
        self._add(cursor, f"{row}, {names} FROM {INSERTED} AS staged LEFT JOIN {self.rows} AS stored ON {on}")

    def update(self, cursor: Cursor, assigned: tuple[str, ...], changed: str) -> None:
        changes = names_of(self.target, assigned)
        names = names_of(self.target)
        values = ", ".join(f"{'changed' if name in changes else 'stored'}.{quote(name)}" for name in names)
        on = f'stored.rowid = changed."{ROW}"'
        self._add(cursor, f"stored.rowid, {values} FROM {self.rows} AS stored JOIN ({changed}) AS changed ON {on}")

    def delete(self, cursor: Cursor, row_ids: str) -> None:
        number = next(self.numbers)
        columns = f"{ENTRY}, {LIVE}, {ROW_ID}"
        cursor.execute(f"INSERT INTO {self.log} ({columns}) SELECT {number}, false, * FROM ({row_ids}) AS gone")

    def clear(self, cursor: Cursor) -> None:
        self.delete(cursor, f"SELECT rowid FROM {self.rows}")

    def _add(self, cursor: Cursor, row_and_values: str) -> None:
        number = next(self.numbers)
        selected = row_and_values.replace(_NEW_ROW, f"-({number} * {_MOST_ROWS} + row_number() OVER ())")
        cursor.execute(f"INSERT INTO {self.log} SELECT {number}, true, {selected}")


# A new row's id is made from the number of its entry and its place in the entry, so that no counter is needed.
_NEW_ROW, _MOST_ROWS = "?new row?", 1 << 36

Store = Stored | Overlay
