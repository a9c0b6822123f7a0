"""How Spark reads and writes Parquet where the lake's files are.

In a directory by its own readers and writers. Those know no bucket without a library that PyPI does not have, so there
its tasks do it in Python, by Arrow (`executor.object_tasks`): they need pyarrow, and nothing of ours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa
from pyarrow import parquet
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from catalog.places import BucketPath, Place
from executor import object_tasks
from executor.lake_files import DataFile
from executor.object_tasks import FILE, POSITION, ROW_GROUP_ROWS, Part, cut

cloudpickle.register_pickle_by_value(object_tasks)

__all__ = ["FILE", "POSITION", "SparkFiles", "spark_files"]

_TASK_ROWS = 4 * ROW_GROUP_ROWS


class SparkFiles(Protocol):
    """Parquet files of one place. Schemas are Spark's DDL; columns that a file lacks are NULL."""

    def read(self, files: Sequence[str], schema: str | None = None) -> DataFrame:
        """The rows of files; their own columns without a schema."""

    def read_data(self, files: Sequence[DataFile], schema: str, with_positions: bool) -> DataFrame:
        """The rows of a table's files; with the names of the files (FILE) and their places there (POSITION), if so."""

    def write(self, frame: DataFrame, target: Place, texts: Iterable[str] | None = None) -> list[str]:
        """Write rows below a new directory. Returns the files, at least one.

        With `texts`, the columns that hold text, as rows that may become the lake's.
        """

    def write_and_read(self, frame: DataFrame, target: Place) -> DataFrame:
        """The same rows, computed now."""


def spark_files(session: SparkSession, place: Place) -> SparkFiles:
    """How a session reads and writes files below a place."""
    return DirectoryFiles(session) if isinstance(place, Path) else BucketFiles(session, place.s3.filesystem)


@dataclass(frozen=True)
class DirectoryFiles:
    """Files of a directory that Spark's nodes see."""

    session: SparkSession

    def read(self, files: Sequence[str], schema: str | None = None) -> DataFrame:
        reader = self.session.read if schema is None else self.session.read.schema(schema)
        return reader.parquet(*(f"file://{file}" for file in files))

    def read_data(self, files: Sequence[DataFile], schema: str, with_positions: bool) -> DataFrame:
        frame = self.read([file.path for file in files], schema)
        if not with_positions:
            return frame
        return frame.withColumns({FILE: F.col("_metadata.file_name"), POSITION: F.col("_metadata.row_index")})

    def write(self, frame: DataFrame, target: Place, texts: Iterable[str] | None = None) -> list[str]:
        options = {} if texts is None else _writer_options(texts)
        frame.write.options(**options).parquet(f"file://{target}")
        return sorted(str(file) for file in target.glob("*.parquet"))

    def write_and_read(self, frame: DataFrame, target: Place) -> DataFrame:
        schema = frame.schema  # to find it in the files is a job
        frame.write.parquet(f"file://{target}")
        return self.session.read.schema(schema).parquet(f"file://{target}")


def _writer_options(texts: Iterable[str]) -> dict[str, str | int]:
    """How rows that may become the lake's are written: numbers and times as differences (version 2 of Parquet's data
    pages), which take half the room of dictionaries and less time to read; text, named here, with dictionaries.
    """
    return {
        "parquet.block.row.count.limit": ROW_GROUP_ROWS,
        "parquet.writer.version": "v2",
        "parquet.enable.dictionary": "false",
        **{f"parquet.enable.dictionary#{name}": "true" for name in texts},
    }


@dataclass(frozen=True)
class BucketFiles:
    """Files of a bucket. The filesystem goes to the tasks with its keys, in a form that Spark does not log."""

    session: SparkSession
    filesystem: Any

    def read(self, files: Sequence[str], schema: str | None = None) -> DataFrame:
        return self._read([[(file, 0, 1)] for file in files], self._fields(files, schema))

    def read_data(self, files: Sequence[DataFile], schema: str, with_positions: bool) -> DataFrame:
        names = [FILE, POSITION] if with_positions else []
        fields = [schema] if schema else []
        whole = ", ".join([*fields, *(f"{name} {type_}" for name, type_ in _POSITIONS.items() if name in names)])
        parts = cut([(file.path, file.row_count) for file in files], _TASK_ROWS)
        return self._read(parts, self._fields([], whole or f"{POSITION} {_POSITIONS[POSITION]}"))

    def _read(self, parts: Sequence[Sequence[Part]], fields: Any) -> DataFrame:
        tasks = self.session.range(0, len(parts), 1, len(parts))
        function = object_tasks.reader(self.filesystem, parts, to_arrow_schema(fields, timezone="UTC"))
        return tasks.mapInArrow(function, fields)

    def _fields(self, files: Sequence[str], schema: str | None) -> Any:
        """Spark's schema of the DDL, or of the first file."""
        if schema is not None:
            return self.session.createDataFrame([], schema).schema
        first = parquet.read_schema(object_tasks.key(files[0]), filesystem=self.filesystem)
        return from_arrow_schema(first, prefer_timestamp_ntz=True)

    def write(self, frame: DataFrame, target: Place, texts: Iterable[str] | None = None) -> list[str]:
        assert isinstance(target, BucketPath)
        schema = object_tasks.stored_schema(to_arrow_schema(frame.schema, timezone="UTC"))
        options = object_tasks.writer_options(schema, texts)
        function = object_tasks.writer(self.filesystem, target.key, schema, options)
        # By their places: a name with a dot in it would be looked for inside of another column.
        numbered = frame.toDF(*(f"_{number}" for number in range(len(schema))))
        files = [f"s3://{row[0]}" for row in numbered.mapInArrow(function, "file STRING").collect()]
        if not files:
            key = f"{target.key}/none.parquet"
            parquet.write_table(pa.Table.from_pylist([], schema), key, filesystem=self.filesystem)
            files = [f"s3://{key}"]
        return sorted(files)

    def write_and_read(self, frame: DataFrame, target: Place) -> DataFrame:
        fields = frame.schema
        files = self.write(frame, target)
        return self._read([[(file, 0, 1)] for file in files], fields)


_POSITIONS = {FILE: "STRING", POSITION: "BIGINT"}
