"""Writes the relation `comments`, which clients read as pg_description.

Writing functions take the cursor of an open lake transaction, as the methods of `catalog.stores.store` do.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Relation, constraints_id
from sparkwave.catalog.names import system_table

_TABLE = system_table("comments")


def load_commented(cursor: Cursor, stored: str) -> frozenset[int]:
    """Return the ids of the objects with comments, from SQL of the relation `comments`."""
    return frozenset(id_ for (id_,) in cursor.execute(f"SELECT DISTINCT object_id FROM {stored}").fetchall())


def put_comment(cursor: Cursor, object_id: int, column: str | None, text: str | None) -> None:
    """Replace the comment on an object, or on one of its columns; None or "" removes it.

    Those on a table's constraints are on its `constraints_id`, with their names for columns.
    """
    cursor.execute(
        f"DELETE FROM {_TABLE} WHERE object_id = ? AND column_name IS NOT DISTINCT FROM ?", [object_id, column]
    )
    if text:
        cursor.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?)", [object_id, column, text])


def forget_comments(cursor: Cursor, object_ids: Iterable[int]) -> None:
    """Remove the comments on dropped objects."""
    listed = ", ".join(map(str, object_ids))
    if listed:
        cursor.execute(f"DELETE FROM {_TABLE} WHERE object_id IN ({listed})")


def forget_constraints(cursor: Cursor, before: Relation, after: Relation) -> None:
    """Remove the comments on constraints that a table has lost."""
    for name in {*before.constraints.names} - {*after.constraints.names}:
        put_comment(cursor, constraints_id(after), name, None)


def rename_comment(cursor: Cursor, object_id: int, column: str, name: str) -> None:
    """Move a comment to a column's new name."""
    cursor.execute(
        f"UPDATE {_TABLE} SET column_name = ? WHERE object_id = ? AND column_name = ?", [name, object_id, column]
    )
