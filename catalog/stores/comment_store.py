"""The only writer of the relation `comments`, which clients read as pg_description.

What writes takes the cursor of an open lake transaction, as the methods of `catalog.stores.store` do.
"""

from __future__ import annotations

from collections.abc import Iterable

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.names import system_table

_TABLE = system_table("comments")


def load_commented(cursor: Cursor) -> frozenset[int]:
    """The ids of what comments are on."""
    return frozenset(id_ for (id_,) in cursor.execute(f"SELECT DISTINCT object_id FROM {_TABLE}").fetchall())


def put_comment(cursor: Cursor, object_id: int, column: str | None, text: str | None) -> None:
    """Store the comment on a thing, or on a column of it, in place of another; None or no text removes it."""
    cursor.execute(
        f"DELETE FROM {_TABLE} WHERE object_id = ? AND column_name IS NOT DISTINCT FROM ?", [object_id, column]
    )
    if text:
        cursor.execute(f"INSERT INTO {_TABLE} VALUES (?, ?, ?)", [object_id, column, text])


def forget_comments(cursor: Cursor, object_ids: Iterable[int]) -> None:
    """What the comments are on has been dropped."""
    listed = ", ".join(map(str, object_ids))
    if listed:
        cursor.execute(f"DELETE FROM {_TABLE} WHERE object_id IN ({listed})")


def rename_comment(cursor: Cursor, object_id: int, column: str, name: str) -> None:
    """A column is called otherwise."""
    cursor.execute(
        f"UPDATE {_TABLE} SET column_name = ? WHERE object_id = ? AND column_name = ?", [name, object_id, column]
    )
