"""Columns of results, from DuckDB's types and the planner's origins, and small results made by the server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import NO_COLUMN
from sparkwave.catalog.types import DEFAULT_NUMERIC, Type, described_type
from sparkwave.planner.batch.origins import Origin
from sparkwave.server.wire.result import Result, ResultColumn


def result_columns(cursor: Cursor, origins: tuple[Origin | None, ...] = ()) -> tuple[ResultColumn, ...]:
    """Return the columns of the query that a cursor has just run."""
    return described_columns([(name, str(type_)) for name, type_, *_ in cursor.description or ()], origins)


# DuckDB numbers equal names of a subquery's outputs.
_UNNAMED = re.compile(r"^(\?column\?)_\d+$")


def described_columns(
    described: Sequence[tuple[str, str]], origins: tuple[Origin | None, ...]
) -> tuple[ResultColumn, ...]:
    """Return columns from DuckDB's names and types and the planner's origins of the columns."""
    if [name for name, _ in described] == [NO_COLUMN]:
        return ()
    known = origins if len(origins) == len(described) else (None,) * len(described)
    return tuple(
        _column(_UNNAMED.sub(r"\1", name), described_type(kind), origin)
        for (name, kind), origin in zip(described, known, strict=True)
    )


def _column(name: str, type_: Type, origin: Origin | None) -> ResultColumn:
    same = origin is not None and origin.type.duckdb() == type_.duckdb()
    if origin is not None and (same or (origin.type.is_text and type_.is_text)):
        return ResultColumn(name, origin.type if same else type_, origin.relation_id, origin.number, origin.typmod)
    # Of texts that are no table's columns, the planner tells those that are varchars. asyncpg looks up types by a query
    # with an array that is no table's column.
    return ResultColumn(name, _as_written(type_).in_rows)


def _as_written(type_: Type) -> Type:
    """Return the type with a plain `numeric` for DuckDB's type of one without precision, also in a row's fields."""
    if (type_.precision, type_.scale) == DEFAULT_NUMERIC:
        return replace(type_, precision=None, scale=None)
    if type_.fields:
        return replace(type_, fields=tuple((name, _as_written(field)) for name, field in type_.fields))
    return type_


def rows_result(tag: str, names: tuple[str, ...], rows: list[tuple[object, ...]], types: tuple[Type, ...]) -> Result:
    """Return a small result made by the server. `rows` hold Python values that fit `types`."""
    arrays = [pa.array([row[index] for row in rows], _ARROW[type_.name]) for index, type_ in enumerate(types)]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(names))
    return Result(tag, tuple(map(ResultColumn, names, types)), iter((batch,)), counts_rows=False)


_ARROW = {
    "character varying": pa.string(),
    "bigint": pa.int64(),
    "double precision": pa.float64(),
    "integer": pa.int32(),
    "boolean": pa.bool_(),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
}
