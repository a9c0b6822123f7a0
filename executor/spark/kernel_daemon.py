"""pyspark.daemon with the imports of a task: its workers are forks and need not import them again.

Spark starts it as a module (`spark.python.daemon.module`), and so does the keeper (`executor.spark.daemon_ahead`). The
imports must not start a thread.
"""

from __future__ import annotations

import gc
import os
import sys

from sparkwave.executor.spark.daemon_ahead import AHEAD, SOCKET, hand_over, listen, take_over


def main() -> None:
    path, is_ahead = os.environ.get(SOCKET), sys.argv[1:] == [AHEAD]
    listening = listen(path) if path is not None and is_ahead else None
    if path is not None and not is_ahead and hand_over(path):
        return
    # Spark puts its own archive of pyspark before the installed one, and modules from an archive are never precompiled.
    sys.path[:] = [path for path in sys.path if not path.endswith("pyspark.zip")]

    import duckdb  # noqa: F401
    import pyarrow  # noqa: F401
    import pyspark.sql.conversion
    import pyspark.sql.pandas.serializers
    import pyspark.worker  # noqa: F401
    from pyspark.daemon import manager

    if listening is not None:
        take_over(listening)
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
