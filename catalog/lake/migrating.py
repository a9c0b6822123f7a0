"""Migrates Sparkwave's own relations to this version."""

from __future__ import annotations

from collections.abc import Iterable

from sparkwave.catalog.lake.memory_transactions import first_row
from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.names import METADATA, SYSTEM_SCHEMA, literal, quote, system_table
from sparkwave.catalog.stores.migrations import MIGRATIONS


def migrate(connection: Cursor) -> None:
    """Run the missing migrations one by one; for a new lake, all in one transaction, which is faster."""
    connection.execute(
        f"BEGIN; CREATE SCHEMA IF NOT EXISTS lake.{SYSTEM_SCHEMA}; "
        f"CREATE TABLE IF NOT EXISTS {system_table('migrations')} (version INTEGER)"
    )
    done, newest = version_of(connection), len(MIGRATIONS)
    if not done:
        _run_migrations(connection, 0, newest)
        _keep_statistics(connection, _empty_tables(connection))
    for number in range(done, newest) if done else ():
        _run_migrations(connection, number, number + 1)
        connection.execute("COMMIT; BEGIN")
    if done:
        _keep_statistics(connection, _tables_without_statistics(connection))
    connection.execute("COMMIT")


def _run_migrations(connection: Cursor, done: int, upto: int) -> None:
    for script in MIGRATIONS[done:upto]:
        connection.execute(script)
    connection.execute(f"INSERT INTO {system_table('migrations')} VALUES (?)", [upto])


def _keep_statistics(connection: Cursor, tables: Iterable[tuple[str, str]]) -> None:
    """Give DuckLake statistics of Sparkwave's own relations, given as empty tables with a column each.

    For each statement that reads a table which never had a row, DuckLake (1.5.5) queries its catalog about every
    column, in 2 ms each.
    """
    for table, column in tables:
        connection.execute(f"INSERT INTO {system_table(table)} ({quote(column)}) VALUES (NULL)")
        connection.execute(f"DELETE FROM {system_table(table)}")


def _tables_without_statistics(connection: Cursor) -> list[tuple[str, str]]:
    return connection.execute(
        f"SELECT table_name, any_value(column_name) FROM {METADATA}.ducklake_table t "
        f"JOIN {METADATA}.ducklake_schema s USING (schema_id) JOIN {METADATA}.ducklake_column c USING (table_id) "
        f"WHERE schema_name = {literal(SYSTEM_SCHEMA)} AND t.end_snapshot IS NULL AND c.end_snapshot IS NULL "
        "AND parent_column IS NULL "
        f"AND table_id NOT IN (SELECT table_id FROM {METADATA}.ducklake_table_stats) GROUP BY table_name"
    ).fetchall()


def _empty_tables(connection: Cursor) -> list[tuple[str, str]]:
    """Return the empty tables of a new lake, each with a column; DuckLake shows none before the transaction ends."""
    columns = connection.execute(
        "SELECT table_name, any_value(column_name) FROM duckdb_columns() "
        f"WHERE database_name = 'lake' AND schema_name = {literal(SYSTEM_SCHEMA)} GROUP BY table_name"
    ).fetchall()
    counts = (f"SELECT {literal(table)}, count(*) FROM {system_table(table)}" for table, _ in columns)
    rows = dict(connection.execute(" UNION ALL ".join(counts)).fetchall())
    return [(table, column) for table, column in columns if not rows[table]]


def version_of(cursor: Cursor) -> int:
    """Return the number of migrations that have run on a lake."""
    row = first_row(cursor.execute("SELECT coalesce(max(version), 0) FROM lake.sparkwave.migrations"))
    return row[0] if row else 0
