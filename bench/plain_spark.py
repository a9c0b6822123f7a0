"""The yardstick: one plain Spark SQL job that writes a query's result to Parquet, in an application of its own."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import SparkSession

from bench.sql import to_spark
from sparkwave.server.demo.local_server import free_port

SPARK_HOME = Path(pyspark.__file__).parent
START_TIMEOUT_S, STOP_TIMEOUT_S = 180, 10
# Integers overflow with an error; files are compressed as Sparkwave's are; local ones have no checksums beside them.
SETTINGS = {
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.ui.enabled": "false",
}


class PlainSpark:
    """An application with all cores and so much heap, which reads the Parquet files of tables; `with` ends it."""

    def __init__(self, memory_mib: int, files: dict[str, list[str]], directory: Path) -> None:
        self._files = files
        self._target = directory / "rows"
        scratch, port = directory / "scratch", free_port()
        scratch.mkdir(parents=True)
        settings = {
            **SETTINGS,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.driver.host": "127.0.0.1",
            "spark.sql.warehouse.dir": str(scratch / "warehouse"),
            "spark.local.dir": str(scratch),
        }
        command = [
            str(SPARK_HOME / "bin" / "spark-submit"),
            *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
            *("--master", f"local[{os.cpu_count() or 1}]"),
            *("--driver-memory", f"{memory_mib}m", "--driver-java-options", "-XX:+UseParallelGC"),
            *(part for key, value in settings.items() for part in ("--conf", f"{key}={value}")),
            "spark-internal",
        ]
        environment = {**os.environ, "SPARK_HOME": str(SPARK_HOME), "PYSPARK_PYTHON": sys.executable}
        with open(directory / "spark.log", "wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, env=environment)
        try:
            self._wait(port)
            self._session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        except BaseException:
            self._end()
            raise

    @property
    def process_id(self) -> int:
        return self._process.pid

    def _wait(self, port: int) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        raise TimeoutError("plain Spark has not started")

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def run(self, query: str) -> None:
        """The whole job: open the tables that are read, run the query (PostgreSQL's SQL), write its rows."""
        for table, files in self._files.items():
            if re.search(rf"\b{table}\b", query):
                self._session.read.parquet(*(f"file://{file}" for file in files)).createOrReplaceTempView(table)
        self._session.sql(to_spark(query)).write.parquet(f"file://{self._target}")

    def run_in_python(self) -> None:
        """A job of one task that passes one row through Python."""

        def unchanged(batches: Iterator[Any]) -> Iterator[Any]:
            yield from batches

        self._session.range(0, 1, 1, 1).mapInArrow(unchanged, "id long").collect()

    def clear(self) -> None:
        """Remove what the last job has written."""
        shutil.rmtree(self._target, ignore_errors=True)

    def rows(self) -> int:
        """How many rows the last job has written."""
        return self._session.read.parquet(f"file://{self._target}").count()

    def __enter__(self) -> PlainSpark:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.stop()
        self._end()


def table_files(data: Path, table: str) -> list[str]:
    """The Parquet files of a lake's table that was only ever inserted into."""
    return sorted(str(file) for file in data.glob(f"data/*/{table}/*.parquet"))
