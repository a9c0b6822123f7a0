"""Files become part of a table by one statement, and what their footers say is read once."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import with_lake

from sparkwave.catalog.lake.change_feed import table_changes
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.integrity import check_files, known_files
from sparkwave.catalog.lake.lake_tables import register_files
from sparkwave.catalog.lake.row_ids import ALL, RowIds
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.model import ROW_ID, Column, Relation, row_id_column
from sparkwave.catalog.names import METADATA, LakeTable
from sparkwave.catalog.types import INTEGER, VARCHAR
from sparkwave.executor.spark.footers import Footers
from sparkwave.executor.spark.lake_files import DataFile, TableFiles, table_files

T = Relation(1, "dev", "public", "t", "table", (Column("a", INTEGER), Column("s", VARCHAR), row_id_column()),
             (ROW_ID,), "", True)  # fmt: skip
FILES, ROWS = 100, 50


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    lake = Lake(Storage(with_lake(tmp_path / "lake")))
    yield lake
    lake.close()


def made(lake: Lake, table: LakeTable) -> list[str]:
    """An empty table, and files for it whose columns are in another order."""
    cursor = lake.cursor()
    cursor.execute(
        f'CREATE SCHEMA IF NOT EXISTS lake."{table.schema}"; CREATE TABLE {table.sql} (a INTEGER, s VARCHAR)'
    )
    directory = lake.data_path / "job_7" / f"{table.name}_s1"
    directory.mkdir(parents=True)
    files = [str(directory / f"{number:04}.parquet") for number in range(FILES)]
    for number, file in enumerate(files):
        numbers = f"range({number * ROWS}, {(number + 1) * ROWS}) r(i)"
        rows = f"SELECT 'it''s ' || i AS s, if(i % 7 = 0, NULL, i)::INTEGER AS a FROM {numbers}"
        cursor.execute(f"COPY ({rows}) TO '{file}' (FORMAT parquet)")
    return files


def in_catalog(cursor: Cursor, table: LakeTable) -> list[object]:
    """All that the lake's catalog says of a table's files, but for numbers that it has made up."""
    of = f"table_id = (SELECT max(table_id) FROM {METADATA}.ducklake_table WHERE table_name = '{table.name}')"
    queries = (
        "SELECT parse_filename(path), record_count, file_size_bytes, footer_size, row_id_start, file_format "
        f"FROM {METADATA}.ducklake_data_file WHERE {of}",
        "SELECT parse_filename(path), s.* EXCLUDE (data_file_id, table_id) "
        f"FROM {METADATA}.ducklake_file_column_stats s JOIN {METADATA}.ducklake_data_file f USING (data_file_id) "
        f"WHERE f.{of}",
        f"SELECT * EXCLUDE (table_id) FROM {METADATA}.ducklake_table_stats WHERE {of}",
        f"SELECT * EXCLUDE (table_id) FROM {METADATA}.ducklake_table_column_stats WHERE {of}",
    )
    return [cursor.execute(f"{query} ORDER BY ALL").fetchall() for query in queries]


def test_one_statement_says_what_one_for_each_file_does(lake: Lake) -> None:
    together, apart = LakeTable("s", "together"), LakeTable("s", "apart")
    cursor = lake.cursor()
    files = made(lake, together)
    before = lake.snapshot(cursor)
    with lake.transaction(cursor):
        register_files(cursor, together, files)
    others = made(lake, apart)
    with lake.transaction(cursor):
        for file in others:
            register_files(cursor, apart, [file])
    assert in_catalog(cursor, together) == in_catalog(cursor, apart)
    assert [len(rows) for rows in in_catalog(cursor, together)][:2] == [FILES, 2 * FILES]

    expected = [(i, None if i % 7 == 0 else i, f"it's {i}") for i in range(FILES * ROWS)]
    assert cursor.execute(f"SELECT rowid, a, s FROM {together.sql} ORDER BY 1").fetchall() == expected
    feed = table_changes(together, before, lake.snapshot(cursor))
    assert cursor.execute(f"SELECT rowid, a, s FROM ({feed}) WHERE _weight = 1 ORDER BY 1").fetchall() == expected
    assert list(check_files(lake, cursor, known_files(lake, cursor))) == []

    with lake.table_transaction(cursor, together):
        cursor.execute(f"INSERT INTO {together.sql} VALUES (-1, 'next')")
    assert cursor.execute(f"SELECT rowid FROM {together.sql} WHERE a = -1").fetchall() == [(FILES * ROWS,)]
    with lake.transaction(cursor):
        register_files(cursor, together, [])


def test_a_file_beside_them_is_not_taken(lake: Lake) -> None:
    table = LakeTable("s", "together")
    files, cursor = made(lake, table), lake.cursor()
    with lake.transaction(cursor):
        register_files(cursor, table, files[1:])
    assert cursor.execute(f"SELECT min(a) FROM {table.sql}").fetchall() == [(ROWS + (ROWS % 7 == 0),)]


def test_a_file_of_another_shape_is_refused_with_all(lake: Lake) -> None:
    table = LakeTable("s", "t")
    files, cursor = made(lake, table), lake.cursor()
    cursor.execute(f"COPY (SELECT 1 AS other) TO '{files[-1]}' (FORMAT parquet)")
    with pytest.raises(Exception, match="other"), lake.transaction(cursor):
        register_files(cursor, table, files)
    assert cursor.execute(f"SELECT count(*) FROM {table.sql}").fetchall() == [(0,)]


def test_footers_are_read_once(lake: Lake, tmp_path: Path) -> None:
    """A second slice lists the files without opening one; files of a later snapshot are opened."""
    cursor = lake.cursor()
    files = made(lake, T.lake_table)
    with lake.transaction(cursor):
        register_files(cursor, T.lake_table, files[:-1])
    first = table_files(cursor, T, lake.snapshot(cursor), tmp_path / "first")
    for file in files[:-1]:
        Path(file).rename(f"{file}.away")
    again = table_files(cursor, T, lake.snapshot(cursor), tmp_path / "again")
    assert again.files == first.files and len(first.files) == FILES - 1
    with lake.transaction(cursor):
        register_files(cursor, T.lake_table, files[-1:])
    assert len(table_files(cursor, T, lake.snapshot(cursor), tmp_path / "new").files) == FILES


def test_kept_footers_are_bounded(lake: Lake) -> None:
    files, cursor = made(lake, LakeTable("s", "t")), lake.cursor()
    footers = Footers(most=10)
    assert set(footers.columns(cursor, files)) == set(files)  # all are told, the last are kept
    for file in files[:-10]:
        Path(file).unlink()
    assert set(footers.columns(cursor, files[-10:])) == set(files[-10:])
    with pytest.raises(Exception, match="No files found"):
        footers.columns(cursor, files[:1])


def test_files_near_some_rows_are_found_without_a_look_at_each() -> None:
    chance = random.Random(5)
    for _ in range(200):
        starts = sorted(chance.sample(range(0, 300, 3), chance.randint(1, 12)))
        stops = [*starts[1:], 400]
        placed = [
            DataFile(f"p{s}", s, chance.randint(1, stop - s), False, False)
            for s, stop in zip(starts, stops, strict=True)
        ]
        moved = [DataFile("moved", 5, 9, True, True), DataFile("none", None, 9, True, False)]
        files = [*placed, *moved]
        by_start = sorted(files, key=lambda f: (f.row_id_start is None, f.row_id_start or 0))
        table = TableFiles(1, tuple(by_start), None, None, {})
        edges = sorted(chance.sample(range(400), 4))
        for rows in (ALL, RowIds(((edges[0], edges[1]), (edges[2], edges[3]))), RowIds(((edges[0], None),))):
            wanted = {f for f in placed if rows.overlaps(f.row_id_start or 0, (f.row_id_start or 0) + f.row_count)}
            near = table.near(rows)
            assert wanted <= set(near) and set(moved) <= set(near) and len(set(near)) == len(near)
            assert len(near) <= len(wanted) + len(moved) + len(rows.ranges)
