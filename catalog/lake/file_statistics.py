"""What DuckLake knows of a table's files without reading them: rows, bytes by column, and which files a filter skips.

From DuckLake's specification 1.0, tables `ducklake_data_file`, `ducklake_column` and `ducklake_file_column_stats`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.lake_tables import locate
from sparkwave.catalog.lake.memory_transactions import first_row
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


# When no row of a file can pass a comparison, by its operator; `lo` and `hi` are the file's least and highest value.
_NONE_PASSES = {
    "=": "{lo} > {given} OR {hi} < {given}",
    "<": "{lo} >= {given}",
    "<=": "{lo} > {given}",
    ">": "{hi} <= {given}",
    ">=": "{hi} < {given}",
}


def file_statistics(
    cursor: Cursor, table: LakeTable, snapshot: int, columns: Sequence[str], ranges: Sequence[Range]
) -> FileStatistics:
    """Return the statistics of a table; bytes are those of `columns`, by the lake's names."""
    located = locate(cursor, table, snapshot)
    if located is None:
        return FileStatistics(0, 0, 0, 0, 0, {})
    ended = f"(end_snapshot IS NULL OR end_snapshot > {snapshot})"
    live = f"table_id = {located[0]} AND begin_snapshot <= {snapshot} AND {ended}"
    wanted = ", ".join(map(literal, columns)) or "NULL"
    skipped = " OR ".join(_skips(each) for each in ranges) or "false"
    row = first_row(
        cursor.execute(
            f"""
            WITH file AS (SELECT data_file_id AS id, record_count AS n FROM {METADATA}.ducklake_data_file WHERE {live}),
            col AS (
                SELECT column_id, column_name AS name FROM {METADATA}.ducklake_column
                WHERE {live} AND parent_column IS NULL
            ), stat AS (
                SELECT data_file_id AS id, name, coalesce(column_size_bytes, 0) AS bytes, min_value, max_value
                FROM {METADATA}.ducklake_file_column_stats JOIN col USING (column_id)
                WHERE table_id = {located[0]} AND data_file_id IN (SELECT id FROM file)
            ), each AS (
                SELECT file.id, n, coalesce(sum(bytes) FILTER (name IN ({wanted})), 0) AS bytes,
                    coalesce(bool_or({skipped}), false) AS is_skipped
                FROM file LEFT JOIN stat USING (id) GROUP BY ALL
            )
            SELECT count(*), coalesce(sum(n), 0), count(*) FILTER (NOT is_skipped),
                coalesce(sum(n) FILTER (NOT is_skipped), 0), coalesce(sum(bytes) FILTER (NOT is_skipped), 0),
                (SELECT list({{'name': name, 'size': size}})
                    FROM (SELECT name, sum(bytes)::BIGINT AS size FROM stat GROUP BY 1))
            FROM each
            """
        )
    )
    assert row is not None
    files, rows, kept_files, kept_rows, kept_bytes = map(int, row[:5])
    sizes = {each["name"]: each["size"] for each in row[5] or ()}
    return FileStatistics(files, rows, kept_files, kept_rows, kept_bytes, sizes)


def _skips(of: Range) -> str:
    """Return SQL that tells from a row of `stat` that its file has no row within a range."""
    lo, hi, given = (f"TRY_CAST({value} AS {of.type})" for value in ("min_value", "max_value", of.constant))
    condition = _NONE_PASSES[of.operator].format(lo=lo, hi=hi, given=given)
    return f"(name = {literal(of.column)} AND ({condition}))"
