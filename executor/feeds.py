"""The changed rows of relations, each read from the lake once and shared by all views of an epoch."""

from __future__ import annotations

from catalog.lake import ChangedTables, Cursor, Lake, table_changes
from catalog.model import Relation


class Feeds:
    """Temporary tables of one cursor: `rowid`, all columns and `_weight` of a relation's changes between snapshots."""

    def __init__(self, lake: Lake, cursor: Cursor) -> None:
        self._lake = lake
        self._cursor = cursor
        self._changed: dict[tuple[int, int], ChangedTables] = {}
        self._made: dict[tuple[int, int, int], str] = {}

    def has_changes(self, relation: Relation, old: int, new: int) -> bool:
        """Whether a relation changed in snapshots `old < s <= new`."""
        return self._key(relation) in self._changes(old, new)

    def has_deletes(self, relation: Relation, old: int, new: int) -> bool:
        """Whether any of the changes takes a row away."""
        return self._changes(old, new).get(self._key(relation), False)

    def feed(self, relation: Relation, old: int, new: int) -> str | None:
        """The name of the temporary table with a relation's changes; None when it did not change."""
        has_deletes = self._changes(old, new).get(self._key(relation))
        if has_deletes is None:
            return None
        key = (relation.id, old, new)
        if key not in self._made:
            name = f"feed_{relation.id}_{old}"
            changes = table_changes(*self._key(relation), old, new, has_deletes)
            self._cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {name} AS {changes}")
            self._made[key] = name
        return self._made[key]

    def close(self) -> None:
        """Drop the temporary tables."""
        for name in self._made.values():
            self._cursor.execute(f"DROP TABLE IF EXISTS {name}")

    def _changes(self, old: int, new: int) -> ChangedTables:
        if (old, new) not in self._changed:
            self._changed[old, new] = self._lake.changed_tables(self._cursor, old, new) if new > old else {}
        return self._changed[old, new]

    @staticmethod
    def _key(relation: Relation) -> tuple[str, str]:
        return relation.lake_table.schema, relation.lake_table.name
