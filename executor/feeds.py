"""The changed rows of relations, each read from the lake once and shared by all views of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from catalog.change_feed import count_inserted, keep_changes
from catalog.lake import ChangedTables, Cursor, Lake
from catalog.model import Relation
from catalog.names import quote
from executor.versions import stored_columns
from planner.nodes import Scan


class Feeds:
    """Temporary tables of one cursor: `rowid`, columns and `_weight` of a relation's changes between snapshots.

    The columns are those that views read, `scans` being of all that may be of the epoch: to find a deleted row its file
    is read, where other columns cost as much. What else a view reads is read again.
    """

    def __init__(self, lake: Lake, cursor: Cursor, scans: Callable[[], Iterable[Scan]]) -> None:
        self._lake = lake
        self._cursor = cursor
        self._scans = scans
        self._changed: dict[tuple[int, int], ChangedTables] = {}
        self._made: dict[tuple[int, int, int], tuple[str, frozenset[str]]] = {}
        self._inserted: dict[tuple[int, int, int], int] = {}

    def has_changes(self, relation: Relation, old: int, new: int) -> bool:
        """Whether a relation changed in snapshots `old < s <= new`."""
        return self._key(relation) in self._changes(old, new)

    def has_deletes(self, relation: Relation, old: int, new: int) -> bool:
        """Whether any of the changes takes a row away."""
        return self._changes(old, new).get(self._key(relation), False)

    def expected(self, relation: Relation, old: int, new: int) -> int:
        """About how many rows a feed has, which need not be made for it: those that went are taken for as many."""
        has_deletes = self._changes(old, new).get(self._key(relation))
        if has_deletes is None:
            return 0
        key = (relation.id, old, new)
        if key not in self._inserted:
            self._inserted[key] = count_inserted(self._cursor, relation.lake_table, old, new)
        return self._inserted[key] * (1 + has_deletes)

    def feed(self, scan: Scan, old: int, new: int) -> str | None:
        """The name of the temporary table with the changes of what a scan reads; None when that did not change."""
        relation = scan.relation
        has_deletes = self._changes(old, new).get(self._key(relation))
        if has_deletes is None:
            return None
        key = (relation.id, old, new)
        name, columns = self._made.get(key, (f"feed_{relation.id}_{old}", frozenset()))
        if key not in self._made or not columns.issuperset(stored_columns(scan)):
            alike = (other for other in self._scans() if other.relation.id == relation.id)
            columns = columns.union(stored_columns(scan), *map(stored_columns, alike))
            listed = ", ".join(["rowid", *map(quote, sorted(columns))])
            keep_changes(self._cursor, name, relation.lake_table, old, new, has_deletes, listed)
            self._made[key] = name, columns
        return name

    def close(self) -> None:
        """Drop the temporary tables."""
        for name, _ in self._made.values():
            self._cursor.execute(f"DROP TABLE IF EXISTS {name}")

    def _changes(self, old: int, new: int) -> ChangedTables:
        if (old, new) not in self._changed:
            self._changed[old, new] = self._lake.changed_tables(self._cursor, old, new) if new > old else {}
        return self._changed[old, new]

    @staticmethod
    def _key(relation: Relation) -> tuple[str, str]:
        return relation.lake_table.schema, relation.lake_table.name
