"""A DuckDB with the settings and functions that views use, and no lake."""

from __future__ import annotations

import duckdb

from sparkwave.catalog.database_functions import define_functions
from sparkwave.catalog.lake.ducklake import SETTINGS
from sparkwave.catalog.system.system_views import SCALAR_SETUP, scalar_functions


def view_database() -> duckdb.DuckDBPyConnection:
    """An empty database in memory, of one thread."""
    opened = duckdb.connect()
    opened.execute(f"{SETTINGS.replace('GLOBAL', '')}; SET threads = 1; ATTACH ':memory:' AS lake")
    create_functions(opened)
    return opened


def create_functions(database: duckdb.DuckDBPyConnection) -> None:
    """Create all functions of queries and views."""
    define_functions(database)
    database.execute("; ".join([SCALAR_SETUP, *(statement for statement, _ in scalar_functions().values())]))
