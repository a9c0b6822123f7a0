"""The rows and bytes of relations by DuckLake's counts, without reading data.

Bytes are those of files. Small inserts and deletes are in DuckLake's catalog and count only as rows
(`ducklake_inlined_data_*`, `ducklake_inlined_delete_*` of its specification 1.0).
"""

from __future__ import annotations

import re

from sparkwave.catalog.lake.ducklake import Cursor, at_one_moment
from sparkwave.catalog.lake.lake_tables import inlined_deletes
from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.names import COPIES, METADATA, quote, system_table

# The names, in a query's text, of the macros and views that read the variable (catalog/system/functions.sql).
_USED = re.compile(
    r"reltuples|relpages|pg_(table|relation|total_relation|database|tablespace)_size|pg_stat_(user|all)_tables|rw_table_stats"
)

# The copy of the system catalogs that the sizes are counted for.
SIZED = ("pgc._all_relations",)


def reads_sizes(sql: str) -> bool:
    """Return whether a query over the system catalogs may read sizes: by name, or by a star over pg_class."""
    return _USED.search(sql) is not None or ("pg_class" in sql and "*" in sql)


def set_sizes(cursor: Cursor) -> None:
    """Set a connection's variable with the sizes of all relations."""
    with at_one_moment(cursor):
        cursor.execute(f"SET VARIABLE relation_sizes = ({_sizes(cursor)})")


def relation_sizes(cursor: Cursor) -> dict[int, dict[str, int]]:
    """Return by relation id its `rows`, its `bytes`, and the `total` bytes with the state of its operators."""
    with at_one_moment(cursor):
        row = first_row(cursor.execute(_sizes(cursor)))
    return (row[0] if row else None) or {}


def _sizes(cursor: Cursor) -> str:
    """A query of one map, from a relation's id to its rows, bytes, and bytes with the state of its operators."""
    return f"""
        WITH inlined AS ({" UNION ALL ".join(_inlined(cursor)) or "SELECT 0 AS id, 0 AS n"}),
        counted AS (
            SELECT table_id AS id, record_count AS n, file_size_bytes AS bytes
            FROM {METADATA}.ducklake_data_file WHERE end_snapshot IS NULL
            UNION ALL
            SELECT table_id, -delete_count, file_size_bytes
            FROM {METADATA}.ducklake_delete_file WHERE end_snapshot IS NULL
            UNION ALL
            SELECT id, n, 0 FROM inlined
        ), stored AS (
            SELECT s.schema_name, t.table_name, sum(coalesce(c.n, 0)) AS n, sum(coalesce(c.bytes, 0)) AS bytes
            FROM {METADATA}.ducklake_table t
            JOIN {METADATA}.ducklake_schema s ON s.schema_id = t.schema_id AND s.end_snapshot IS NULL
            LEFT JOIN counted c ON c.id = t.table_id
            WHERE t.end_snapshot IS NULL GROUP BY ALL
        ), state AS (
            SELECT r.id, sum(bytes) AS bytes
            FROM {system_table("states")} i
            JOIN {COPIES}.pgc._all_relations r ON r.id = i.job_id
            JOIN stored ON schema_name = r.lake_schema AND table_name = i.name GROUP BY ALL
        )
        SELECT map_from_entries(list((r.id, {{
            'rows': n::BIGINT, 'bytes': stored.bytes::BIGINT, 'total': (stored.bytes + coalesce(state.bytes, 0))::BIGINT
        }})))
        FROM {COPIES}.pgc._all_relations r
        JOIN stored ON schema_name = r.lake_schema AND table_name = r.lake_name
        LEFT JOIN state USING (id)"""


def _inlined(cursor: Cursor) -> list[str]:
    """Queries of a lake table's id and the rows to add to, or to subtract from, those of its files."""
    tables = cursor.execute(f"SELECT table_id, table_name FROM {METADATA}.ducklake_inlined_data_tables").fetchall()
    found = [
        f"SELECT {id_} AS id, count(*) AS n FROM {METADATA}.{quote(name)} WHERE end_snapshot IS NULL"
        for id_, name in tables
    ]
    with_files = cursor.execute(
        f"SELECT DISTINCT table_id FROM {METADATA}.ducklake_data_file WHERE end_snapshot IS NULL"
    ).fetchall()
    for (id_,) in with_files:
        deletes = inlined_deletes(cursor, id_)
        if deletes is not None:
            found.append(
                f"SELECT {id_} AS id, -count(*) AS n FROM {METADATA}.{deletes} WHERE file_id IN "
                f"(SELECT data_file_id FROM {METADATA}.ducklake_data_file WHERE end_snapshot IS NULL)"
            )
    return found
