"""Spark's classes, loaded and verified once for all: `python -m executor.class_archive` writes them beside its jars.

With the archive (JEP 350, dynamic class-data sharing) an application is ready for its first rows in less than half the
time. The JVM ignores one that does not fit its version or its class path.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from executor.applications import CLASS_ARCHIVE, Application, Size, command, environment
from executor.endpoint import answers, connect, free_port

READY_SECONDS = 120
# The JVM writes the archive when it ends.
END_SECONDS = 300


def create() -> None:
    """Write the archive, in half a minute. Raises OSError where it cannot be written, TimeoutError."""
    with tempfile.TemporaryDirectory() as scratch:
        made = CLASS_ARCHIVE.with_suffix(".new")
        app = Application("class-archive", Size(2, 1024), free_port(), Path(scratch), is_short_lived=True)
        app = replace(app, archive_option=f"-XX:ArchiveClassesAtExit={made}")
        process = subprocess.Popen(
            command(app), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment(app)
        )
        try:
            deadline = time.monotonic() + READY_SECONDS
            while not answers(app.port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise TimeoutError("Spark did not start")
                time.sleep(0.1)
            session = connect(app.port)
            _use(session, Path(scratch))
            session.client.close()
            process.terminate()
            process.wait(END_SECONDS)
            os.replace(made, CLASS_ARCHIVE)
        finally:
            process.kill()
            made.unlink(missing_ok=True)


def _use(session: SparkSession, scratch: Path) -> None:
    """What backfills do: read and write Parquet, join, aggregate, rank."""
    path = f"file://{scratch}/rows"
    columns = ("id", "id % 7 AS g", "'x' || id AS s", "current_timestamp() AS at")
    session.range(0, 10_000, 1, 4).selectExpr(*columns).write.parquet(path)
    rows = session.read.schema("id BIGINT, g BIGINT, s STRING, at TIMESTAMP").parquet(path)
    rows.withColumn("_row", F.col("_metadata.row_index")).createOrReplaceTempView("rows")
    session.sql(
        "SELECT a.g, count(*) AS n, sum(a.id) AS total, min(b.s) AS low, count(DISTINCT b.id) AS ids FROM rows a "
        "JOIN rows b ON a.id = b.id WHERE a.s LIKE 'x%' AND a._row >= 0 GROUP BY a.g"
    ).write.parquet(f"{path}_summed")
    session.sql("SELECT *, row_number() OVER (PARTITION BY g ORDER BY at, id) AS r FROM rows").filter("r < 5").toArrow()


if __name__ == "__main__":
    create()
