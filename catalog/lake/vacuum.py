"""Rewrites a catalog's file before it is opened, if it is larger than needed.

DuckDB (1.5.5) removes deleted rows from a table's file when it writes a checkpoint, unless the table has an index. So
DuckLake's tables with a primary key, above all the list of snapshots, keep a row group for every 122,880 rows that they
ever had, and each query reads all of them.

DuckDB also gives each column that gets a row a block of memory until the next checkpoint. A catalog has some columns
for each relation, most with few rows: with DuckDB's default blocks of 256 KiB, 200 tables of 7 columns that get one row
each take 700 MiB of memory and 55 MiB of disk; with the smallest blocks, 43 MiB and 8 MiB.
"""

from __future__ import annotations

import logging
from pathlib import Path

import duckdb
from duckdb import DuckDBPyConnection as Cursor

from sparkwave.catalog.lake.places import flush, log_of
from sparkwave.catalog.lake.translation import first_line
from sparkwave.catalog.names import literal, quote

logger = logging.getLogger(__name__)

BLOCK_BYTES = 16_384  # of a catalog's file; DuckDB's minimum
_ROW_GROUP = 122_880
# The most row groups beyond those that the rows need; one epoch a second adds one or two a day.
MOST_EMPTY_GROUPS = 8


def vacuum(connection: Cursor, catalog: Path) -> bool:
    """Rewrite a catalog that has large blocks, or a table of mostly deleted rows. Returns whether it did.

    The catalog must not be attached. A failure, such as a full disk, leaves it unchanged.
    """
    fresh = catalog.with_name(f"{catalog.name}.new")
    fresh.unlink(missing_ok=True)
    connection.execute(f"ATTACH {literal(str(catalog))} AS worn")
    is_worn = _is_worn(connection)
    try:
        if is_worn:
            connection.execute(f"ATTACH {literal(str(fresh))} AS fresh (BLOCK_SIZE {BLOCK_BYTES})")
            connection.execute("COPY FROM DATABASE worn TO fresh")
    except duckdb.Error as error:
        logger.warning("%s could not be written anew: %s", catalog, first_line(error))
        is_worn = False
    # DETACH writes a checkpoint, so that the file has everything in the write-ahead log.
    connection.execute("DETACH DATABASE IF EXISTS fresh; DETACH worn")
    if is_worn and not log_of(catalog).exists():
        fresh.replace(catalog)
        flush(catalog.parent)
        return True
    fresh.unlink(missing_ok=True)
    return False


def _is_worn(connection: Cursor) -> bool:
    [(block_bytes,)] = connection.execute(
        "SELECT block_size FROM pragma_database_size() WHERE database_name = 'worn'"
    ).fetchall()
    keyed = connection.execute(
        "SELECT DISTINCT table_name FROM duckdb_constraints() "
        "WHERE database_name = 'worn' AND constraint_type = 'PRIMARY KEY'"
    ).fetchall()
    return block_bytes > BLOCK_BYTES or any(_empty_groups(connection, name) > MOST_EMPTY_GROUPS for (name,) in keyed)


def _empty_groups(connection: Cursor, table: str) -> int:
    name = f"worn.{quote(table)}"
    [(groups, rows)] = connection.execute(
        f"SELECT (SELECT count(DISTINCT row_group_id) FROM pragma_storage_info({literal(name)})), "
        f"(SELECT count(*) FROM {name})"
    ).fetchall()
    return groups - rows // _ROW_GROUP
