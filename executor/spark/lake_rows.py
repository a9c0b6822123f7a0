"""SQL of the rows of a lake table over its Parquet files, for an engine without the catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from sparkwave.catalog.lake.places import Place
from sparkwave.catalog.lake.row_ids import ALL, ROW_ID_COLUMN, SNAPSHOT_COLUMN, RowIds
from sparkwave.catalog.model import ROW_ID, Column, Relation, row_id_column
from sparkwave.catalog.names import literal, quote
from sparkwave.catalog.types import Type
from sparkwave.executor.spark.lake_files import DataFile, TableFiles

# For up to this many files a SQL list has the row ids at which they start. A join instead would keep DuckDB from
# knowing the progress of a query; but DuckDB handles the whole list for each 2,048 rows.
MOST_LISTED = 1000
# Up to this many files are read one by one. DuckDB knows of a column's NULLs, least and largest value only for
# single files; by them it leaves out equal counts and adds up integers in 64 bits.
MOST_ALONE = 8
# The files of a bucket are in a directory of their own.
BUCKET_COLUMN = "_bucket"


def read_files(files: Iterable[str]) -> str:
    """Return SQL of the rows of files that have the same columns."""
    return f"FROM read_parquet([{', '.join(map(literal, files))}], hive_partitioning = false)"


def as_stored(query: str, types: Mapping[str, Type]) -> str:
    """Return SQL of some columns of a query's rows as the lake stores them, in types that Parquet has."""
    return f"SELECT {', '.join(_stored(types)) or '1 AS one'} FROM ({query})"


def in_buckets(query: str, types: Mapping[str, Type], keys: Sequence[str], buckets: int) -> str:
    """Return the SQL of `as_stored` with the bucket of each row in BUCKET_COLUMN.

    Rows with equal `keys`, which are SQL, share a bucket.
    """
    bucket = f"hash({', '.join(keys)}) % {buckets}" if keys else "0"
    return f"SELECT {', '.join([*_stored(types), f'CAST({bucket} AS INTEGER) AS {BUCKET_COLUMN}'])} FROM ({query})"


def _stored(types: Mapping[str, Type]) -> list[str]:
    return [f"CAST({quote(name)} AS {type_.in_lake()}) AS {quote(name)}" for name, type_ in types.items()]


def bucket_of(file: str) -> int:
    """Return the bucket of a file's rows; 0 where there are no buckets."""
    _, name, number = file.rpartition("/")[0].rpartition(f"/{BUCKET_COLUMN}=")
    return int(number) if name else 0


def as_values(rows: str, types: Mapping[str, Type]) -> str:
    """Return SQL of a query's rows as values, from rows as they are stored."""
    if all(type_.is_read_as_stored for type_ in types.values()):
        return rows
    columns = ", ".join(f"{type_.from_lake(quote(name))} AS {quote(name)}" for name, type_ in types.items())
    return f"SELECT {columns} FROM ({rows})"


def table_rows(table: TableFiles, relation: Relation, columns: Sequence[str], rows: RowIds = ALL) -> str:
    """Return SQL of some columns, under their own names, of some rows of a table; `_row_id` is a table's row id.

    Row ids are compared only in files that also have unwanted rows.
    """
    parts = [_of_files(_Shape(table, relation, columns, *key), group, rows) for key, group in _grouped(table, rows)]
    if table.inlined is not None:
        shape = _Shape(table, relation, columns, True, False, frozenset(), rows == ALL)
        parts.append(_of_files(replace(shape, table=replace(table, deletes=None)), [_inlined(table.inlined)], rows))
    return " UNION ALL ".join(parts) or no_rows(
        {column.name: column.type.duckdb() for column in columns_of(relation, columns)}
    )


def no_rows(types: Mapping[str, str]) -> str:
    """Return SQL of columns of these DuckDB types without a row."""
    named = ", ".join(f"CAST(NULL AS {type_}) AS {quote(name)}" for name, type_ in types.items())
    return f"SELECT {named or '1 AS one'} WHERE FALSE"


def _inlined(file: Place) -> DataFile:
    return DataFile(str(file), None, 0, True, False)


@dataclass(frozen=True)
class _Shape:
    """The common properties of files that are read together. `is_whole` tells that all of their rows are wanted."""

    table: TableFiles
    relation: Relation
    columns: Sequence[str]
    has_row_ids: bool
    has_snapshot_ids: bool
    missing: frozenset[str]
    is_whole: bool


_Key = tuple[bool, bool, frozenset[str], bool]


def _grouped(table: TableFiles, rows: RowIds) -> list[tuple[_Key, list[DataFile]]]:
    """Return the files that have wanted rows, by shape."""
    groups: dict[_Key, list[DataFile]] = {}
    for file in table.near(rows):
        start, stop = file.row_id_start, (file.row_id_start or 0) + file.row_count
        is_whole = rows == ALL or (start is not None and not file.has_row_ids and rows.covers(start, stop))
        if is_whole or file.has_row_ids or start is None or rows.overlaps(start, stop):
            groups.setdefault((*file.shape, is_whole), []).append(file)
    return list(groups.items())


def _of_files(shape: _Shape, files: Sequence[DataFile], rows: RowIds) -> str:
    """Return SQL of the wanted rows of files of one shape. Without a column of row ids, positions give the row ids."""
    if not shape.is_whole and not shape.has_row_ids:
        return " UNION ALL ".join(_of_range(shape, file, rows) for file in files)
    if 1 < len(files) <= MOST_ALONE and shape.table.deletes is None:
        return " UNION ALL ".join(_of_files(shape, [file], rows) for file in files)
    conditions = [] if shape.is_whole else [rows.condition(f"f.{ROW_ID_COLUMN}")]
    source, row_id = _read([file.path for file in files]) + " AS f", f"f.{ROW_ID_COLUMN}"
    if ROW_ID in shape.columns and not shape.has_row_ids:
        if len(files) == 1:
            row_id = f"{files[0].row_id_start} + f.file_row_number"
        elif len(files) <= MOST_LISTED and all(column.lake_name != "file_index" for column in shape.relation.columns):
            starts = ", ".join(str(file.row_id_start) for file in files)
            row_id = f"list_extract([{starts}], CAST(f.file_index AS BIGINT) + 1) + f.file_row_number"
        else:
            starts = ", ".join(f"({literal(file.path.rpartition('/')[2])}, {file.row_id_start})" for file in files)
            source += f" JOIN (VALUES {starts}) AS s(file, start) ON s.file = parse_filename(f.filename)"
            row_id = "s.start + f.file_row_number"
    return _select(shape, source, row_id, conditions)


def _of_range(shape: _Shape, file: DataFile, rows: RowIds) -> str:
    """Return SQL of some rows of a file by position, so that DuckDB skips row groups without wanted rows."""
    start = file.row_id_start or 0
    places = RowIds(
        tuple(
            (max(first - start, 0), None if last is None else last - start)
            for first, last in rows.ranges
            if last is None or last > start
        )
    )
    condition = places.condition("f.file_row_number")
    return _select(shape, f"{_read([file.path])} AS f", f"{start} + f.file_row_number", [condition])


def _select(shape: _Shape, source: str, row_id: str, conditions: list[str]) -> str:
    table = shape.table
    if shape.has_snapshot_ids:
        conditions = [*conditions, f"f.{SNAPSHOT_COLUMN} <= {table.snapshot}"]
    if table.deletes is not None:
        gone = "d.file_name = parse_filename(f.filename) AND d.pos = f.file_row_number"
        source += f" ANTI JOIN {_read([str(table.deletes)])} AS d ON {gone}"
    items = []
    for column in columns_of(shape.relation, shape.columns):
        name = column.lake_name
        stored = row_id if column.name == ROW_ID and shape.relation.is_table else f"f.{quote(name)}"
        items.append(_named(column, table.defaults[name] if name in shape.missing else stored))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {', '.join(items) or '1 AS one'} FROM {source}{where}"


def _read(files: Iterable[str]) -> str:
    """Return SQL of files whose rows have their file name."""
    return f"read_parquet([{', '.join(map(literal, files))}], filename = true, hive_partitioning = false)"


def columns_of(relation: Relation, names: Sequence[str]) -> list[Column]:
    """Return columns by name; the lake's row id is one of them."""
    by_name = {column.name: column for column in (row_id_column(), *relation.columns)}
    return [by_name[name] for name in names]


def _named(column: Column, value: str) -> str:
    """Return SQL of a column with a cast to its type, because a file older than the type may have a narrower one."""
    return f"CAST({column.type.from_lake(value)} AS {column.type.duckdb()}) AS {quote(column.name)}"
