"""Short ways to ask."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import sqlglot
from sqlglot import exp
from sqlglot.optimizer.annotate_types import annotate_types

_POSTGRES_ONLY = re.compile("regexp_match", re.IGNORECASE)


def scalar(connection: psycopg.Connection[Any], sql: str) -> Any:
    """The first value of the first row; None when there is none."""
    row = connection.execute(sql).fetchone()
    return row[0] if row else None


def to_spark(query: str) -> str:
    """A query of PostgreSQL's in Spark's SQL."""
    return _typed(query).sql("spark")


def to_duckdb(query: str) -> str:
    """The same in DuckDB's."""
    return _typed(query).sql("duckdb")


def is_portable(query: str) -> bool:
    """Whether Spark and DuckDB have all the functions of a query of PostgreSQL's."""
    return not _POSTGRES_ONLY.search(query)


def has_join(query: str) -> bool:
    """Whether a query reads two relations in one FROM clause."""
    return sqlglot.parse_one(query, read="postgres").find(exp.Join) is not None


def _typed(query: str) -> exp.Expr:
    """A query of PostgreSQL's whose integers, where their types show, are divided as integers everywhere."""
    return annotate_types(sqlglot.parse_one(query, read="postgres"), dialect="postgres")
