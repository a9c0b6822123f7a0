"""Short ways to ask."""

from __future__ import annotations

from typing import Any

import psycopg


def scalar(connection: psycopg.Connection, sql: str) -> Any:
    """The first value of the first row; None when there is none."""
    row = connection.execute(sql).fetchone()
    return row[0] if row else None
