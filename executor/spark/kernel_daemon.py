"""pyspark.daemon with the imports of a task: its workers are forks and need not import them again.

Spark starts it as a module (`spark.python.daemon.module`). The imports must not start a thread.
"""

from __future__ import annotations

import gc
import sys

# Spark puts its own archive of pyspark before the installed one, and modules from an archive are never precompiled.
sys.path[:] = [path for path in sys.path if not path.endswith("pyspark.zip")]

import duckdb  # noqa: E402, F401
import pyarrow  # noqa: E402, F401
import pyspark.sql.conversion  # noqa: E402
import pyspark.sql.pandas.serializers  # noqa: E402
import pyspark.worker  # noqa: E402, F401
from pyspark.daemon import manager  # noqa: E402

if __name__ == "__main__":
    gc.freeze()
    manager()
