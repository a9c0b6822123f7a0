"""The yardstick: one plain Spark SQL job that writes a query's result to Parquet."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from bench.sql import to_spark


class PlainSpark:
    """A session of a Spark Connect server, reading the Parquet files of some tables; `with` closes it."""

    def __init__(self, port: int, files: dict[str, list[str]], target: Path) -> None:
        self._session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
        self._files = files
        self._target = target

    def run(self, query: str) -> None:
        """The whole job: open the tables that are read, run the query (PostgreSQL's SQL), write its rows."""
        for table, files in self._files.items():
            if re.search(rf"\b{table}\b", query):
                self._session.read.parquet(*(f"file://{file}" for file in files)).createOrReplaceTempView(table)
        self._session.sql(to_spark(query)).write.parquet(f"file://{self._target}")

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


def table_files(data: Path, table: str) -> list[str]:
    """The Parquet files of a lake's table that was only ever inserted into."""
    return sorted(str(file) for file in data.glob(f"data/*/{table}/*.parquet"))
