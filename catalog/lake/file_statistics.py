"""What DuckLake knows of a table's files without reading them: rows, bytes by column, and which files a filter skips.

From DuckLake's specification 1.0, tables `ducklake_data_file`, `ducklake_column` and `ducklake_file_column_stats`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import located
from sparkwave.catalog.names import METADATA, LakeTable, literal


@dataclass(frozen=True)
class Range:
    """A comparison that all wanted rows pass: `column operator constant`, by the lake's names and types.

    The constant is SQL; one that is no value of the type compares with nothing.
    """

    column: str
    operator: str
    constant: str
    type: str


@dataclass(frozen=True)
class Asked:
    """Columns of a table, by the lake's names, whose bytes are wanted, and ranges that all wanted rows are within."""

    table: LakeTable
    columns: Sequence[str]
    ranges: Sequence[Range]


@dataclass(frozen=True)
class FileStatistics:
    """A table's files at a snapshot, and those of them that may have rows within some ranges.

    Rows include deleted ones; inlined rows are in no file. `column_bytes` has the bytes of each column in all files.
    """

    files: int
    rows: int
    kept_files: int
    kept_rows: int
    kept_bytes: int
    column_bytes: Mapping[str, int]


_NONE = FileStatistics(0, 0, 0, 0, 0, {})

# When no row of a file can pass a comparison, by its operator; `lo` and `hi` are the file's least and highest value.
_NONE_PASSES = {
    "=": "{lo} > {given} OR {hi} < {given}",
    "<": "{lo} >= {given}",
    "<=": "{lo} > {given}",
    ">": "{hi} <= {given}",
    ">=": "{hi} < {given}",
}


def file_statistics(cursor: Cursor, snapshot: int, asked: Sequence[Asked]) -> list[FileStatistics]:
    """Return what is asked of tables, in the same order; bytes are those of the columns.

    One query tells all, because DuckDB plans a query of the catalog for longer than it runs it.
    """
    places = located(cursor, {each.table for each in asked}, snapshot)
    numbered = {n: each for n, each in enumerate(asked) if each.table in places}
    if not numbered:
        return [_NONE] * len(asked)
    tables = _listed(f"({n}, {places[each.table][0]})" for n, each in numbered.items())
    wanted = _listed(f"({n}, {literal(name)})" for n, each in numbered.items() for name in each.columns)
    skipped = [f"WHEN {n} THEN {' OR '.join(map(_skips, each.ranges))}" for n, each in numbered.items() if each.ranges]
    is_skipped = f"CASE file.n {' '.join(skipped)} ELSE false END" if skipped else "false"
    of_columns = f"(file.n, name) IN ({wanted})" if wanted else "false"
    live = f"begin_snapshot <= {snapshot} AND (end_snapshot IS NULL OR end_snapshot > {snapshot})"
    found = cursor.execute(
        f"""
        WITH asked(n, table_id) AS (VALUES {tables}),
        file AS (
            SELECT n, table_id, data_file_id AS id, record_count
            FROM {METADATA}.ducklake_data_file JOIN asked USING (table_id) WHERE {live}
        ), col AS (
            SELECT table_id, column_id, column_name AS name FROM {METADATA}.ducklake_column
            WHERE {live} AND parent_column IS NULL AND table_id IN (SELECT table_id FROM asked)
        ), stat AS (
            SELECT n, id, name, coalesce(column_size_bytes, 0) AS bytes, min_value, max_value
            FROM {METADATA}.ducklake_file_column_stats s
            JOIN file ON file.id = s.data_file_id AND file.table_id = s.table_id
            JOIN col ON col.column_id = s.column_id AND col.table_id = s.table_id
        ), each AS (
            SELECT file.n, id, record_count, coalesce(sum(bytes) FILTER ({of_columns}), 0) AS bytes,
                coalesce(bool_or({is_skipped}), false) AS is_skipped
            FROM file LEFT JOIN stat USING (n, id) GROUP BY ALL
        ), whole AS (
            SELECT n, count(*) AS files, sum(record_count) AS records, count(*) FILTER (NOT is_skipped) AS kept,
                coalesce(sum(record_count) FILTER (NOT is_skipped), 0) AS kept_records,
                coalesce(sum(bytes) FILTER (NOT is_skipped), 0) AS kept_bytes
            FROM each GROUP BY n
        )
        SELECT whole.*, names, sizes FROM whole
        LEFT JOIN (
            SELECT n, list(name) AS names, list(size) AS sizes
            FROM (SELECT n, name, sum(bytes)::BIGINT AS size FROM stat GROUP BY n, name) GROUP BY n
        ) AS of_columns USING (n)
        """
    ).fetchall()
    by_number = {}
    for n, files, rows, kept_files, kept_rows, kept_bytes, names, sizes in found:
        by_column = dict(zip(names or (), sizes or (), strict=True))
        by_number[n] = FileStatistics(files, int(rows), kept_files, int(kept_rows), int(kept_bytes), by_column)
    return [by_number.get(n, _NONE) for n in range(len(asked))]


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(parts)


def _skips(of: Range) -> str:
    """Return SQL that tells from a row of `stat` that its file has no row within a range."""
    lo, hi, given = (f"TRY_CAST({value} AS {of.type})" for value in ("min_value", "max_value", of.constant))
    condition = _NONE_PASSES[of.operator].format(lo=lo, hi=hi, given=given)
    return f"(name = {literal(of.column)} AND ({condition}))"
