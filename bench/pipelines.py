"""Spark's own declarative pipelines: a project of materialized views over Parquet files, run by `spark-pipelines`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow.dataset

from bench.sql import is_portable, to_spark

_SPEC = """name: bench
storage: file://{directory}/storage
libraries:
  - glob:
      include: transformations/**
"""


@dataclass(frozen=True)
class PipelineRun:
    """Seconds of the whole command, and of those since the first flow started; with the rows of each view.

    `left_out` are the views with a function that Spark does not have.
    """

    seconds: float
    flows_s: float
    rows: dict[str, int]
    left_out: tuple[str, ...]


def run(directory: Path, parquet: dict[str, Path], queries: dict[str, str], memory_mib: int) -> PipelineRun:
    """Compute all views once, into an empty warehouse; a later run computes them again from their whole inputs.

    Raises RuntimeError when the pipeline fails.
    """
    left_out = tuple(name for name, query in queries.items() if not is_portable(query))
    queries = {name: query for name, query in queries.items() if name not in left_out}
    shutil.rmtree(directory, ignore_errors=True)
    (directory / "transformations").mkdir(parents=True)
    (directory / "spark-pipeline.yml").write_text(_SPEC.format(directory=directory))
    inputs = [f"CREATE TEMPORARY VIEW {table} AS SELECT * FROM parquet.`{file}`;" for table, file in parquet.items()]
    views = [f"CREATE MATERIALIZED VIEW {name} AS {to_spark(query)};" for name, query in queries.items()]
    (directory / "transformations" / "views.sql").write_text("\n".join([*inputs, *views]))
    command = [
        str(Path(sys.executable).with_name("spark-pipelines")),
        *("--remote", "local[*]", "--driver-memory", f"{memory_mib}m"),
        *("--conf", f"spark.sql.warehouse.dir=file://{directory}/warehouse", "--conf", "spark.ui.enabled=false"),
        "run",
    ]
    environment = {
        **os.environ,
        "PYSPARK_PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
    start = time.perf_counter()
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"spark-pipelines failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return PipelineRun(seconds, _flows_s(done.stdout + done.stderr) or seconds, _rows(directory, queries), left_out)


def _flows_s(log: str) -> float | None:
    """From the first message that a flow starts to the last message; the two outputs have no order between them."""
    times = [
        (int(hours) * 3600 + int(minutes) * 60 + float(seconds), message)
        for hours, minutes, seconds, message in re.findall(r"(\d\d):(\d\d):(\d\d(?:\.\d+)?)[^\n]*?: ([^\n]*)", log)
    ]
    starts = [moment for moment, message in times if "STARTING" in message or "RUNNING" in message]
    return max(moment for moment, _ in times) - min(starts) if starts else None


def _rows(directory: Path, queries: dict[str, str]) -> dict[str, int]:
    warehouse = directory / "warehouse"
    return {name: pyarrow.dataset.dataset(str(warehouse / name), format="parquet").count_rows() for name in queries}
