"""Transactions of a cursor that are not the lake's (`catalog.lake.ducklake.Lake.transaction`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from sparkwave.catalog.lake.translation import Cursor, DuckDBError


def rollback(cursor: Cursor) -> None:
    """Roll back if a transaction is open."""
    with suppress(DuckDBError):
        cursor.execute("ROLLBACK")


@contextmanager
def in_transaction(cursor: Cursor) -> Iterator[None]:
    """While entered, what the cursor does outside of the lake, and reads of it, is one transaction."""
    cursor.execute("BEGIN")
    try:
        yield
        cursor.execute("COMMIT")
    except BaseException:
        rollback(cursor)
        raise
