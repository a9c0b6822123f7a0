"""An archive of Spark's classes, loaded and verified ahead of time.

`python -m sparkwave.executor.spark.class_archive` writes the archive beside the links to Spark's jars. With it (JEP
350, dynamic class-data sharing) an application is ready for its first rows in less than half the time. The JVM ignores
an archive that does not fit its version or its class path.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from pyspark.sql import SparkSession

from sparkwave.catalog.lake.ducklake import ENGINE_VERSION
from sparkwave.executor.spark.applications import Application, Size, command, environment
from sparkwave.executor.spark.endpoint import answers, connect, free_port
from sparkwave.executor.spark.kernel import Setup, Step, Task
from sparkwave.executor.spark.spark_engine import TASK_SCRIPT, run_tasks
from sparkwave.executor.spark.spark_home import CLASS_ARCHIVE, make_light

READY_SECONDS = 120
# The JVM writes the archive when it ends.
END_SECONDS = 300


def create() -> None:
    """Write the archive, which takes half a minute. Raises OSError where it cannot be written, and TimeoutError."""
    make_light()
    with tempfile.TemporaryDirectory() as scratch:
        made = CLASS_ARCHIVE.with_suffix(".new")
        app = Application("class-archive", Size(2, 1024), free_port(), Path(scratch))
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
    """Use the classes as backfills do, by tasks that run DuckDB."""
    setup = Setup(ENGINE_VERSION, 1, 256, (), TASK_SCRIPT)
    for number in range(3):
        step = Step("rows", f"SELECT i, 'x' || i AS s FROM range({number}000) r(i)", str(scratch))
        run_tasks(session, setup, [Task((step,)), Task((step,))])


if __name__ == "__main__":
    create()
