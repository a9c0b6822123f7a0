"""Rows in the order of one column, to find those with a value without a query."""

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
    """Rows of a relation as they were at a moment, and the values of the column whose rows have changed since.

    Whoever changes rows adds to `changed` before anybody may see the change.
    """

    def __init__(self, column: str, rows: pa.RecordBatch, changed: set[Value]) -> None:
        """`rows` are in the order of `column`, without NULL in it."""
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
        """Whether so much has changed that it is better sorted anew."""
        return len(self.changed) > max(self._rows.num_rows // 20, 100)

    @property
    def bytes(self) -> int:
        return self._rows.nbytes

    def find(self, value: object, outputs: tuple[str, ...]) -> pa.RecordBatch | None:
        """Columns of the rows with a value; None when they have changed since, or the value is of another type."""
        rows = self._selected.get(outputs)
        if rows is None:
            rows = self._selected[outputs] = self._rows.select(outputs)
        if value is None:
            return rows.slice(0, 0)
        if type(value) is not (str if self._is_text else int) or value in self.changed:
            return None
        # Python orders texts by code points, which is the order of their bytes in UTF-8, DuckDB's.
        start = bisect_left(self._values, value, key=self._key)
        return rows.slice(start, bisect_right(self._values, value, lo=start, key=self._key) - start)


class SortedColumns:
    """The rows of one relation in the order of each column that is looked up, and the values that have changed since.

    Whoever calls it but for `bytes` holds the lock under which the relation changes.
    """

    def __init__(self) -> None:
        self.rows: dict[str, SortedRows] = {}
        self._watched: list[tuple[str, set[Value]]] = []

    @property
    def bytes(self) -> int:
        return sum(rows.bytes for rows in list(self.rows.values()))

    def watch(self, column: str) -> set[Value]:
        """The values of a column whose rows change from now on."""
        changed: set[Value] = set()
        self._watched.append((column, changed))
        return changed

    def keep(self, rows: SortedRows | None) -> None:
        """Have rows looked up that are watched still; None for none."""
        if rows is not None and any(changed is rows.changed for _, changed in self._watched):
            self.rows[rows.column] = rows
        self._watched = [(each.column, each.changed) for each in self.rows.values()]

    def note(self, cursor: Cursor, changes: str) -> None:
        """Note the values of rows that change, which a relation of the cursor has as they were and will be."""
        for column, values in self._watched:
            rows = cursor.execute(f"SELECT DISTINCT {quote(column)} FROM {changes}").fetchall()
            values.update(value for (value,) in rows)
