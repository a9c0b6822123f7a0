"""A catalog whose tables are mostly deleted rows is written anew when it is opened, and nothing else of it changes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import duckdb

from sparkwave.catalog.lake.ducklake import Lake, without_lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.lake.vacuum import BLOCK_BYTES, MOST_EMPTY_GROUPS, vacuum

GROUP = 122_880


def groups(catalog: Path) -> int:
    with closing(duckdb.connect(str(catalog))) as connection:
        [(count,)] = connection.execute(
            "SELECT count(DISTINCT row_group_id) FROM pragma_storage_info('ducklake_snapshot')"
        ).fetchall()
    return count


def contents(catalog: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows and constraints of all tables."""
    with closing(duckdb.connect(str(catalog))) as connection:
        names = connection.execute("SELECT table_name FROM duckdb_tables() ORDER BY 1").fetchall()
        found = {name: connection.execute(f'FROM "{name}" ORDER BY ALL').fetchall() for (name,) in names}
        constraints = "SELECT table_name, constraint_text FROM duckdb_constraints() ORDER BY ALL"
        return found | {"constraints": connection.execute(constraints).fetchall()}


def make_worn(catalog: Path, days: int) -> None:
    """As many snapshots come and go as in these days, of which always the newest stay."""
    with closing(duckdb.connect(str(catalog))) as connection:
        newest = "(SELECT max(snapshot_id) FROM ducklake_snapshot)"
        for _ in range(days * 2):
            connection.execute(
                f"INSERT INTO ducklake_snapshot SELECT snapshot_id + i, snapshot_time, schema_version, "
                f"next_catalog_id, next_file_id FROM ducklake_snapshot, range(1, {GROUP // 2}) AS r (i) "
                f"WHERE snapshot_id = {newest}"
            )
            connection.execute(f"DELETE FROM ducklake_snapshot WHERE snapshot_id < {newest} - 100")
            connection.execute("CHECKPOINT")


def test_a_worn_catalog_is_written_anew(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "data")
    lake = Lake(storage)
    lake.cursor().execute("CREATE SCHEMA lake.s; CREATE TABLE lake.s.t (k int); INSERT INTO lake.s.t VALUES (1)")
    lake.close()
    catalog = storage.catalog_file
    connection = without_lake()
    assert not vacuum(connection, catalog)
    make_worn(catalog, MOST_EMPTY_GROUPS + 2)
    worn, before = groups(catalog), contents(catalog)
    assert worn > MOST_EMPTY_GROUPS
    assert vacuum(connection, catalog)
    assert groups(catalog) == 1
    assert contents(catalog) == before
    assert not vacuum(connection, catalog)


def block_bytes(catalog: Path) -> int:
    with closing(duckdb.connect(str(catalog))) as connection:
        [(found,)] = connection.execute("SELECT block_size FROM pragma_database_size()").fetchall()
    return int(found)


def with_large_blocks(catalog: Path) -> None:
    """Make the catalog one of DuckDB's own block size, as earlier versions did."""
    large = catalog.with_name("large")
    with closing(duckdb.connect()) as connection:
        connection.execute(f"ATTACH '{catalog}' AS small; ATTACH '{large}' AS large; COPY FROM DATABASE small TO large")
    large.replace(catalog)


def test_a_catalog_has_small_blocks(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "data")
    Lake(storage).close()
    assert block_bytes(storage.catalog_file) == BLOCK_BYTES
    before = contents(storage.catalog_file)
    with_large_blocks(storage.catalog_file)
    assert block_bytes(storage.catalog_file) > BLOCK_BYTES
    assert vacuum(without_lake(), storage.catalog_file)
    assert block_bytes(storage.catalog_file) == BLOCK_BYTES
    assert contents(storage.catalog_file) == before
    assert [path.name for path in storage.directory.glob("catalog*")] == [storage.catalog_file.name]


def test_a_failure_leaves_the_catalog_as_it_is(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "data")
    Lake(storage).close()
    with_large_blocks(storage.catalog_file)
    before = contents(storage.catalog_file)
    storage.catalog_file.with_name(f"{storage.catalog_file.name}.new.wal").mkdir()  # where the copy's log would be
    connection = without_lake()
    assert not vacuum(connection, storage.catalog_file)
    assert connection.execute("SELECT database_name FROM duckdb_databases() WHERE NOT internal").fetchall() == [
        ("memory",)
    ]
    assert contents(storage.catalog_file) == before
    assert not storage.catalog_file.with_name(f"{storage.catalog_file.name}.new").exists()


def test_opening_a_lake_does_it(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "data")
    Lake(storage).close()
    make_worn(storage.catalog_file, MOST_EMPTY_GROUPS + 2)
    lake = Lake(storage)
    cursor = lake.cursor()
    cursor.execute("CREATE SCHEMA lake.s; CREATE TABLE lake.s.t (k int); INSERT INTO lake.s.t VALUES (1)")
    assert cursor.execute("FROM lake.s.t").fetchall() == [(1,)]
    lake.close()
    assert groups(storage.catalog_file) == 1
