"""What tasks of Spark do in Python with Parquet files of a bucket. Sent to executors as a whole, so it imports only
what they have: pyarrow and numpy.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# As DuckDB writes them: rows to update or delete are found by the statistics of row groups.
ROW_GROUP_ROWS = 122_880
# Rows of a file that are read at a time.
_BATCH_ROWS = 32_768
# The columns with the name of a row's file, and its place in that.
FILE, POSITION = "_file", "_pos"

# A file, and which of so many parts of it.
Part = tuple[str, int, int]
Batches = Iterator[pa.RecordBatch]


def key(file: str) -> str:
    """The key, with the bucket, of a URL."""
    return file.removeprefix("s3://")


def cut(files: Iterable[tuple[str, int]], rows: int) -> list[list[Part]]:
    """Files, with their rows, as tasks of about so many rows: large ones in parts, small ones together."""
    tasks: list[list[Part]] = []
    room = 0
    for file, count in files:
        parts = max(-(-count // rows), 1)
        for part in range(parts):
            if not tasks or room < count // parts:
                tasks.append([])
                room = rows
            tasks[-1].append((file, part, parts))
            room -= count // parts
    return tasks


def reader(filesystem: Any, tasks: Sequence[Sequence[Part]], schema: pa.Schema) -> Callable[[Batches], Batches]:
    """A function from the numbers of tasks to the rows of their files."""

    def read(numbers: Batches) -> Batches:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                for part in tasks[number]:
                    yield from _rows(filesystem, part, schema)

    return read


def _rows(filesystem: Any, part: Part, schema: pa.Schema) -> Batches:
    """The rows of a part of a file: whole row groups."""
    file, number, parts = part
    with pq.ParquetFile(key(file), filesystem=filesystem, pre_buffer=True) as opened:
        count = opened.num_row_groups
        groups = range(count * number // parts, count * (number + 1) // parts)
        position = sum(opened.metadata.row_group(group).num_rows for group in range(groups.start))
        columns = [name for name in schema.names if name in opened.schema_arrow.names]
        if columns:
            batches = opened.iter_batches(_BATCH_ROWS, list(groups), columns) if groups else iter(())
            sized = ((batch, len(batch)) for batch in batches)
        else:
            sized = ((None, opened.metadata.row_group(group).num_rows) for group in groups)
        for batch, rows in sized:
            given = {FILE: lambda: pa.repeat(file.rpartition("/")[2], rows)}  # noqa: B023 - called at once
            given[POSITION] = lambda: pa.array(np.arange(position, position + rows))  # noqa: B023
            arrays = [_column(batch, columns, given, field, rows) for field in schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
            position += rows


def _column(
    batch: pa.RecordBatch | None, columns: Sequence[str], given: Mapping[str, Callable[[], Any]], field: Any, rows: int
) -> Any:
    if field.name in columns and batch is not None:
        return batch.column(field.name).cast(field.type)
    return given[field.name]() if field.name in given else pa.nulls(rows, field.type)


def writer(
    filesystem: Any, directory: str, schema: pa.Schema, options: Mapping[str, Any]
) -> Callable[[Batches], Batches]:
    """A function that writes rows as one file, if there are any, and returns the file's key.

    Each attempt of a task has a name of its own: what the others leave is nobody's.
    """

    def write(batches: Batches) -> Batches:
        file = f"{directory}/{uuid.uuid4().hex}.parquet"
        opened = None
        for table in _row_groups(batches, schema):
            if opened is None:
                opened = pq.ParquetWriter(file, schema, filesystem=filesystem, **options)
            opened.write_table(table, ROW_GROUP_ROWS)
        if opened is not None:
            opened.close()
            yield pa.RecordBatch.from_pydict({"file": [file]})

    return write


def _row_groups(batches: Batches, schema: pa.Schema) -> Iterator[pa.Table]:
    """Tables of the rows of a row group; the last one of what is left."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        arrays = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
        waiting.append(pa.RecordBatch.from_arrays(arrays, schema=schema))
        rows += len(batch)
        if rows >= ROW_GROUP_ROWS:
            table = pa.Table.from_batches(waiting, schema)
            yield table.slice(0, ROW_GROUP_ROWS)
            waiting = table.slice(ROW_GROUP_ROWS).to_batches()
            rows -= ROW_GROUP_ROWS
    if rows:
        yield pa.Table.from_batches(waiting, schema)


def stored_schema(schema: pa.Schema) -> pa.Schema:
    """How columns of Spark are stored: NULL may be anywhere, times are in microseconds."""
    return pa.schema([pa.field(field.name, _stored(field.type)) for field in schema])


def _stored(type_: Any) -> Any:
    if pa.types.is_list(type_):
        return pa.list_(_stored(type_.value_type))
    return pa.time64("us") if pa.types.is_time64(type_) else type_


def writer_options(schema: pa.Schema, texts: Iterable[str] | None) -> dict[str, Any]:
    """How a file is written: in a form that all read and, with `texts`, as one that may become the lake's, with
    dictionaries for the columns named there and numbers and times as differences."""
    options: dict[str, Any] = {"compression": "zstd", "store_schema": False}
    if texts is None:
        return options
    integral = (pa.types.is_integer, pa.types.is_timestamp, pa.types.is_date, pa.types.is_time)
    differences = [field.name for field in schema if any(is_kind(field.type) for is_kind in integral)]
    return options | {
        "use_dictionary": [name for name in texts if name in schema.names],
        "column_encoding": dict.fromkeys(differences, "DELTA_BINARY_PACKED"),
        "data_page_version": "2.0",
    }
