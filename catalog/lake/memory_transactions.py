"""Transactions of a cursor outside the lake (those of the lake: `catalog.lake.ducklake.Lake.transaction`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sparkwave.catalog.lake.direct_calls import Direct
from sparkwave.catalog.lake.prepared_statements import prepare_due
from sparkwave.catalog.lake.translation import Cursor, DuckDBError


def rollback(cursor: Cursor) -> None:
    """Roll back if a transaction is open."""
    with suppress(DuckDBError):
        cursor.execute("ROLLBACK")


@contextmanager
def in_transaction(cursor: Cursor) -> Iterator[None]:
    """A context in which the cursor's writes outside the lake, and its reads of the lake, are one transaction."""
    cursor.execute("BEGIN")
    try:
        yield
        cursor.execute("COMMIT")
    except BaseException:
        rollback(cursor)
        raise
    prepare_due(cursor)


def first_row(cursor: Cursor | Direct) -> tuple[Any, ...] | None:
    """Return the first row of a cursor's result; None without one.

    It fetches the other rows too: an unfinished result keeps its transaction open, and with it every change of others
    in memory, until the cursor executes again. So cursors that live long do not use `fetchone`.
    """
    rows = cursor.fetchall()
    return rows[0] if rows else None
