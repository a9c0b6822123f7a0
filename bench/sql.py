"""Short ways to ask."""

from __future__ import annotations

from typing import Any

import psycopg
import sqlglot

DEFAULT_GROUP_PORT = "SELECT port FROM rw_catalog.rw_worker_nodes WHERE resource_group = 'default'"


def scalar(connection: psycopg.Connection[Any], sql: str) -> Any:
    """The first value of the first row; None when there is none."""
    row = connection.execute(sql).fetchone()
    return row[0] if row else None


def to_spark(query: str) -> str:
    """A query of PostgreSQL's in Spark's SQL."""
    return sqlglot.transpile(query, read="postgres", write="spark")[0]
