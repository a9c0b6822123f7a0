"""Rows sorted by one column, to find the rows with a value without a query."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from operator import methodcaller
from typing import Any

import pyarrow as pa

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import quote

Value = int | str


class SortedRows:
    """Rows of a relation as of a moment, and the values of the column whose rows have changed since.

    Whoever changes rows adds to `changed` before any reader may see the change.
    """

    def __init__(self, column: str, rows: pa.RecordBatch, changed: set[Value]) -> None:
        """`rows` are sorted by `column` and have no NULL in it."""
        self.column = column
        self.changed = changed
        self._rows = rows
        self._selected: dict[tuple[str, ...], pa.RecordBatch] = {}
        values = rows.column(column)
        self._is_text = not pa.types.is_integer(values.type)
        self._values: Sequence[Any] = values if self._is_text else memoryview(values.to_numpy())
        self._key: Callable[[Any], Any] | None = methodcaller("as_py") if self._is_text else None

    @property
    def is_worn(self) -> bool:
        """Whether so many values have changed that the rows should be sorted anew."""
        return len(self.changed) > max(self._rows.num_rows // 20, 100)

    @property
    def bytes(self) -> int:
        return self._rows.nbytes

    def find(self, value: object, outputs: tuple[str, ...]) -> pa.RecordBatch | None:
        """Return columns of the rows with a value; None when they have changed, or the value is of another type."""
        rows = self._selected.get(outputs)
        if rows is None:
            rows = self._selected[outputs] = self._rows.select(outputs)
        if value is None:
            return rows.slice(0, 0)
        if type(value) is not (str if self._is_text else int) or value in self.changed:
            return None
        # Python orders text by code point, like DuckDB, which orders by UTF-8 bytes.
        start = bisect_left(self._values, value, key=self._key)
        return rows.slice(start, bisect_right(self._values, value, lo=start, key=self._key) - start)


class SortedColumns:
    """The rows of one relation sorted by each column that is looked up, and the values that have changed since.

    The caller holds the lock under which the relation changes, except for `bytes`.
    """

    def __init__(self) -> None:
        self.rows: dict[str, SortedRows] = {}
        self._watched: list[tuple[str, set[Value]]] = []

    @property
    def bytes(self) -> int:
        return sum(rows.bytes for rows in list(self.rows.values()))

    def watch(self, column: str) -> set[Value]:
        """Return a set that receives the values of a column whose rows change from now on."""
        changed: set[Value] = set()
        self._watched.append((column, changed))
        return changed

    def keep(self, rows: SortedRows | None) -> None:
        """Keep rows that are still watched, for look-ups; None for none."""
        if rows is not None and any(changed is rows.changed for _, changed in self._watched):
            self.rows[rows.column] = rows
        self._watched = [(each.column, each.changed) for each in self.rows.values()]

    def note(self, cursor: Cursor, changes: str) -> None:
        """Note the values of the changed rows of a relation of the cursor, before and after the change."""
        for column, values in self._watched:
            rows = cursor.execute(f"SELECT DISTINCT {quote(column)} FROM {changes}").fetchall()
            values.update(value for (value,) in rows)
