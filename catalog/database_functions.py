"""The functions in Python that `catalog/system/scalar.sql` calls, in the server and in Spark's tasks.

This module is sent to Spark's executors (`executor.spark.kernel`), as are those that it imports.
"""

from __future__ import annotations

from typing import Any

from sparkwave.catalog.document_contents import define_contents
from sparkwave.catalog.document_paths import define_paths
from sparkwave.catalog.document_texts import define_documents
from sparkwave.catalog.float_texts import define_floats
from sparkwave.catalog.moment_casts import define_moments
from sparkwave.catalog.pattern_functions import define_patterns


def define_functions(database: Any) -> None:
    """Define all of them in a DuckDB database."""
    define_documents(database)
    define_paths(database)
    define_contents(database)
    define_floats(database)
    define_moments(database)
    define_patterns(database)
