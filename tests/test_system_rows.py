"""The rows of system tables that are read in the lake's catalog are those that DuckLake shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import DUCKDB_THREADS, with_lake

from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.snapshot_changes import changes_made
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.lake.system_rows import SystemRows
from sparkwave.catalog.names import system_table
from sparkwave.catalog.stores.store import LOADED

TABLE = "databases"
INSERT = f"INSERT INTO {system_table(TABLE)} (name, id, barrier_interval_ms) VALUES "


class Reader:
    """Follows the changes of a lake as a store does."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.cursor = lake, lake.cursor()
        self._rows, self._seen = SystemRows((TABLE,)), lake.snapshot(self.cursor)

    def relation(self) -> str:
        newest = self.lake.snapshot(self.cursor)
        self._rows.follow(changes_made(self.cursor, self._seen, newest))
        self._seen = newest
        return self._rows.relation(self.cursor, TABLE)

    def check(self, is_inlined: bool) -> None:
        """Compare with DuckLake's rows, types included."""
        relation = self.relation()
        assert (relation != system_table(TABLE)) == is_inlined
        assert _rows_and_types(self.cursor, relation) == _rows_and_types(self.cursor, system_table(TABLE))


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(Storage(with_lake(tmp_path)), threads=DUCKDB_THREADS)
    yield lake
    lake.close()


def run(lake: Lake, *statements: str) -> None:
    with lake.transaction(lake.cursor()) as cursor:
        for statement in statements:
            cursor.execute(statement)


def test_a_new_lake_has_all_loaded_rows_in_its_catalog(lake: Lake) -> None:
    rows, cursor = SystemRows(LOADED), lake.cursor()
    for table in LOADED:
        read, stored = rows.relation(cursor, table), system_table(table)
        assert read != stored
        assert _rows_and_types(cursor, read) == _rows_and_types(cursor, stored)


def test_rows_are_those_of_the_lake(lake: Lake) -> None:
    reader = Reader(lake)
    reader.check(True)
    run(lake, INSERT + "('a', 100, 5), ('b', 101, NULL), ('it''s', 102, -1)")
    reader.check(True)
    run(lake, f"UPDATE {system_table(TABLE)} SET id = 103 WHERE name = 'b'")
    run(lake, f"DELETE FROM {system_table(TABLE)} WHERE name = 'a'")
    reader.check(True)
    assert _names(reader.cursor, reader.relation()) >= {"b", "it's"}


FLUSH = f"CALL ducklake_flush_inlined_data('lake', schema_name => 'sparkwave', table_name => '{TABLE}')"
ALTER = f"ALTER TABLE {system_table(TABLE)} ADD COLUMN added INTEGER"


@pytest.mark.parametrize("moving", [FLUSH, ALTER], ids=["rows in files", "another shape"])
def test_the_rest_is_left_to_ducklake(lake: Lake, moving: str) -> None:
    reader = Reader(lake)
    run(lake, INSERT + "('a', 100, 5)")
    reader.check(True)
    run(lake, moving)
    reader.check(False)
    run(lake, INSERT + "('b', 101, 6)")
    reader.check(False)


def test_a_transaction_reads_one_moment(lake: Lake) -> None:
    reader = Reader(lake)
    relation = reader.relation()
    reader.cursor.execute("BEGIN")
    before = _names(reader.cursor, relation)
    run(lake, INSERT + "('later', 100, 5)")
    assert _names(reader.cursor, relation) == before
    reader.cursor.execute("ROLLBACK")
    assert _names(reader.cursor, relation) == before | {"later"}


def _rows_and_types(cursor: Cursor, relation: str) -> tuple[list[tuple[object, ...]], list[tuple[str, object]]]:
    cursor.execute(f"FROM {relation} ORDER BY ALL")
    types = [(name, type_) for name, type_, *_ in cursor.description or ()]
    return cursor.fetchall(), types


def _names(cursor: Cursor, relation: str) -> set[str]:
    return {name for (name,) in cursor.execute(f"SELECT name FROM {relation}").fetchall()}
