"""The rows of views and of their states as they are stored, from copies in memory where there are some.

Nobody but the coordinator writes these tables, and a checkpoint changes them and their copies (`executor.copies`) in
one transaction: DuckDB lets one write temporary tables besides a database.
"""

from __future__ import annotations

from collections.abc import Hashable

from catalog.lake import Cursor
from catalog.model import Relation
from catalog.names import LakeTable
from executor.advance import Advance, View
from executor.copies import Copies, Key


class States:
    """Used by the coordinator's thread alone, and with its cursor."""

    def __init__(self, copies: Copies) -> None:
        self._copies = copies

    def rows(self, cursor: Cursor, view: View, table: LakeTable) -> str:
        """The name of what has the rows of a view's table: its copy, or the table itself."""
        if not view.relation.created:
            return table.sql  # a job writes it
        key = _key(view, table)
        copy = self._copies.get(key) or self._copies.make(cursor, key, f"FROM {table.sql}")
        return copy.name if copy is not None else table.sql

    def apply(self, cursor: Cursor, advance: Advance) -> None:
        """Change the copies as the cursor's transaction changes their tables."""
        for item, removed, added in advance.steps:
            copy = self._copies.changes(_key(advance.view, item.added.table), removed, added)
            if copy is not None:
                if removed:
                    item.remove(cursor, copy.name)
                if added:
                    item.added.insert(cursor, copy.name)


def state_owner(relation: Relation) -> Hashable:
    """Whose the copies of a view's tables are: one may be called like one that was dropped, but not its definition."""
    return "state", relation.definition_id


def _key(view: View, table: LakeTable) -> Key:
    return state_owner(view.relation), table
