"""Rows that a transaction deletes are gone from its commit on, whatever is committed while it is open."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from servers import with_lake

from sparkwave.catalog.lake.change_feed import keep_changes
from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.extensions import load_extension
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.names import LakeTable

LARGE, OTHER = LakeTable("main", "large"), LakeTable("main", "other")
ROWS = 1000


def test_ducklake_dates_them_before_the_commit(tmp_path: Path) -> None:
    """When this fails, transactions that delete rows need no lock (`Lake.dates_deletes`)."""
    with duckdb.connect() as connection:
        load_extension(connection, "ducklake")
        connection.execute(f"ATTACH 'ducklake:{tmp_path}/catalog' AS lake (DATA_PATH '{tmp_path}/data')")
        connection.execute("CREATE TABLE lake.large AS FROM range(1000) AS r (i); CREATE TABLE lake.other (i INT)")
        connection.execute("DELETE FROM lake.large WHERE i < 100; BEGIN; DELETE FROM lake.large WHERE i < 200")
        connection.cursor().execute("INSERT INTO lake.other VALUES (1)")
        connection.execute("COMMIT")
        [(newest,)] = connection.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()
        before = f"SELECT count(*) FROM lake.large AT (VERSION => {newest - 1})"
        assert connection.execute(before).fetchall() == [(800,)]


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """With rows deleted from the file of a table."""
    with closing(Lake(Storage(with_lake(tmp_path)))) as opened:
        with opened.transaction(cursor := opened.cursor()):
            cursor.execute(f"CREATE TABLE {LARGE.sql} AS FROM range({ROWS}) AS r (i)")
            cursor.execute(f"CREATE TABLE {OTHER.sql} (i INT)")
        with opened.table_transaction(cursor, LARGE):
            cursor.execute(f"DELETE FROM {LARGE.sql} WHERE i < 100")
        yield opened


def commit_another(lake: Lake) -> None:
    cursor = lake.cursor()
    with lake.table_transaction(cursor, OTHER):
        cursor.execute(f"INSERT INTO {OTHER.sql} VALUES (1)")


def test_they_are_gone_from_the_commit_on(lake: Lake) -> None:
    cursor, other = lake.cursor(), threading.Thread(target=commit_another, args=(lake,))
    with lake.table_transaction(cursor, LARGE):
        cursor.execute(f"DELETE FROM {LARGE.sql} WHERE i < 200")
        other.start()
        other.join(0.3)
    other.join()
    newest = lake.newest(cursor)
    rows = {n: rows_at(lake, n) for n in range(newest - 2, newest + 1)}
    assert (rows[newest - 2], rows[newest]) == (ROWS - 100, ROWS - 200)
    for snapshot in (newest - 2, newest - 1):
        keep_changes(cursor, f"kept{snapshot}", LARGE, snapshot, snapshot + 1, True, "rowid, i")
        changes = cursor.execute(f"FROM kept{snapshot}").fetchall()
        is_commit = (LARGE.schema, LARGE.name) in lake.changed_tables(cursor, snapshot, snapshot + 1)
        assert len(changes) == rows[snapshot] - rows[snapshot + 1] == 100 * is_commit


def rows_at(lake: Lake, snapshot: int) -> int:
    [(rows,)] = lake.cursor().execute(f"SELECT count(*) FROM {LARGE.sql} AT (VERSION => {snapshot})").fetchall()
    return rows


def test_what_only_inserts_keeps_nobody_waiting(lake: Lake) -> None:
    cursor = lake.cursor()
    with lake.table_transaction(cursor, LARGE, deletes=False):
        cursor.execute(f"INSERT INTO {LARGE.sql} VALUES (1)")
        commit_another(lake)
