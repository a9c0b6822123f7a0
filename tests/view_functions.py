"""A DuckDB with the settings and functions that views use, and no lake."""

from __future__ import annotations

import duckdb

from sparkwave.catalog.document_paths import define_paths
from sparkwave.catalog.document_texts import define_documents
from sparkwave.catalog.lake.ducklake import SETTINGS
from sparkwave.catalog.system import system_views


def view_database() -> duckdb.DuckDBPyConnection:
    """An empty database in memory, of one thread."""
    opened = duckdb.connect()
    opened.execute(
        f"{SETTINGS.replace('GLOBAL', '')}; SET threads = 1; CREATE SCHEMA memory.pg; ATTACH ':memory:' AS lake"
    )
    define_documents(opened)
    define_paths(opened)
    opened.execute(system_views.scalar_functions())
    return opened
