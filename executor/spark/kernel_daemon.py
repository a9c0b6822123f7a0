"""pyspark.daemon with what a task of ours imports there already: its workers are forks, which need not import it again.

Spark starts it as a module (`spark.python.daemon.module`). Whatever is imported here must start no thread.
"""

from __future__ import annotations

import gc
import sys

# Spark puts its own archive of pyspark before the installed one, and from an archive nothing comes compiled.
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
