"""One way to run a statement."""

from __future__ import annotations

from typing import Any, LiteralString, cast

import psycopg


def execute(connection: psycopg.Connection, sql: str) -> psycopg.Cursor:
    """Run one statement."""
    return connection.execute(cast(LiteralString, sql))


def scalar(connection: psycopg.Connection, sql: str) -> Any:
    """The first value of the first row; None when there is none."""
    row = execute(connection, sql).fetchone()
    return row[0] if row else None
