"""Giving back the room of what a catalog has forgotten, before it is opened.

DuckDB (1.5.5) takes deleted rows out of a table's file when it writes a checkpoint, unless the table has an index. So
those of DuckLake's tables that have a primary key, the list of snapshots above all, keep a row group for every 122,880
rows that they ever had, and each question reads through all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from catalog.names import MEMORY, literal, quote

if TYPE_CHECKING:
    from catalog.lake import Cursor

_ROW_GROUP = 122_880
# A table that has so many more row groups than its rows need is written anew. An epoch a second makes one or two a day.
MOST_EMPTY_GROUPS = 8


def vacuum(connection: Cursor, catalog: Path) -> list[str]:
    """Write those tables anew that are mostly deleted rows, all or none. Returns their names.

    Nobody has the catalog attached. After a failure the connection is of no more use.
    """
    connection.execute(f"ATTACH {literal(str(catalog))} AS worn; USE worn")
    keyed = connection.execute(
        "SELECT t.table_name, t.sql FROM duckdb_tables() t SEMI JOIN "
        "(FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY') c USING (database_name, table_name) "
        "WHERE t.database_name = 'worn' ORDER BY 1"
    ).fetchall()
    worn = [(name, sql) for name, sql in keyed if _empty_groups(connection, name) > MOST_EMPTY_GROUPS]
    if worn:
        connection.execute("BEGIN")
        for name, sql in worn:
            connection.execute(f"CREATE TEMP TABLE kept AS FROM {quote(name)}")
            connection.execute(f"DROP TABLE {quote(name)}")
            connection.execute(sql)
            connection.execute(f"INSERT INTO {quote(name)} FROM kept")
            connection.execute("DROP TABLE kept")
        connection.execute("COMMIT")
    connection.execute(f"USE {MEMORY}; DETACH worn")
    return [name for name, _ in worn]


def _empty_groups(connection: Cursor, table: str) -> int:
    [(groups, rows)] = connection.execute(
        f"SELECT (SELECT count(DISTINCT row_group_id) FROM pragma_storage_info({literal(table)})), "
        f"(SELECT count(*) FROM {quote(table)})"
    ).fetchall()
    return groups - rows // _ROW_GROUP
