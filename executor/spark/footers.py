"""The columns of Parquet files, by their footers.

Each footer is read once, because a file of the lake never changes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.row_ids import ROW_ID_COLUMN, SNAPSHOT_COLUMN
from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.names import literal

# The lake's own columns by name, the table's columns by field id.
Columns = frozenset[str | int]

MOST_FILES = 200_000


class Footers:
    """Keeps the columns of up to `most` files, by path."""

    def __init__(self, most: int = MOST_FILES) -> None:
        self._most = most
        self._kept: OrderedDict[str, Columns] = OrderedDict()
        self._shapes: dict[Columns, Columns] = {}  # shared, because files of a table have the same columns
        self._lock = RankedLock()

    def columns(self, cursor: Cursor, paths: Sequence[str]) -> dict[str, Columns]:
        """Return the columns of each file. Files that are not known yet are opened."""
        with self._lock:
            found = {path: self._kept[path] for path in paths if path in self._kept}
        if new := [path for path in paths if path not in found]:
            read = _read(cursor, new)
            with self._lock:
                found |= {path: self._shapes.setdefault(columns, columns) for path, columns in read.items()}
                self._keep(found)
        return found

    def _keep(self, found: dict[str, Columns]) -> None:
        self._kept.update(found)
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        if len(self._shapes) > self._most:
            self._shapes.clear()


def _read(cursor: Cursor, paths: Sequence[str]) -> dict[str, Columns]:
    listed = ", ".join(map(literal, paths))
    own = f"name IN ({literal(ROW_ID_COLUMN)}, {literal(SNAPSHOT_COLUMN)})"
    rows = cursor.execute(
        f"SELECT file_name, list(DISTINCT field_id), list(DISTINCT name) FILTER ({own}) "
        f"FROM parquet_schema([{listed}]) GROUP BY file_name"
    ).fetchall()
    return {path: frozenset([*filter(None, ids), *(names or ())]) for path, ids, names in rows}


# Shared by this process, because a path is never used for another file.
FOOTERS = Footers()
