"""pyspark.daemon with what a task of ours imports there already: its workers are forks, which need not import it again.

Spark starts it as a module (`spark.python.daemon.module`). Whatever is imported here must start no thread.
"""

from __future__ import annotations

import gc

import duckdb  # noqa: F401
import pyarrow  # noqa: F401
import pyspark.sql.conversion
import pyspark.sql.pandas.serializers
import pyspark.worker  # noqa: F401
from pyspark.daemon import manager

if __name__ == "__main__":
    gc.freeze()
    manager()
