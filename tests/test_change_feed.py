"""A table's changes between two snapshots, without reading the files that rows went from."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from postgres import Postgres
from servers import DUCKDB_THREADS

from sparkwave.catalog.lake import change_feed
from sparkwave.catalog.lake.change_feed import keep_changes, table_changes
from sparkwave.catalog.lake.compaction import File, flush, forget_row_id_starts
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.lake_tables import locate
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.lake.stored_changes import StoredChanges, stored_changes
from sparkwave.catalog.names import METADATA, LakeTable

ROWS = 1000
# Some change, several times; and whether what went is found without DuckLake's function for it.
SCRIPTS = {
    "a row": (["UPDATE {t} SET v = 1 WHERE k = 7"], True),
    "a row that goes": (["DELETE FROM {t} WHERE k = 7"], True),
    "so many that they go to a file": (["DELETE FROM {t} WHERE k < 50"], True),
    "several files of deletes in one": (["DELETE FROM {t} WHERE k < 50", "UPDATE {t} SET v = 1 WHERE k < 90"], True),
    "what was changed before": (
        ["UPDATE {t} SET v = v + 1 WHERE k IN (7, 8)", "DELETE FROM {t} WHERE k = 7"] * 2,
        True,
    ),
    "what came and went": (["INSERT INTO {t} VALUES (-1, 0, 'x')", "DELETE FROM {t} WHERE k < 3"], True),
    "some of what came in a file": (
        ["INSERT INTO {t} SELECT -range, 0, 'y' FROM range(1, 100)", "DELETE FROM {t} WHERE k < -90"],
        True,
    ),
    "all": (["DELETE FROM {t}"], False),
    "all in two statements": (
        ["BEGIN; DELETE FROM {t} WHERE k < 100; DELETE FROM {t}; COMMIT"],
        False,
    ),
    "all changed in two statements": (
        ["BEGIN; UPDATE {t} SET v = 1 WHERE k < 100; UPDATE {t} SET v = 2 WHERE v = 0; COMMIT"],
        False,
    ),
    "a column": (["ALTER TABLE {t} ADD COLUMN n INTEGER DEFAULT 5", "UPDATE {t} SET v = n WHERE k = 7"], False),
    "a column of another type": (
        ["ALTER TABLE {t} ALTER v TYPE BIGINT", "UPDATE {t} SET v = 1 WHERE k = 7", "DELETE FROM {t} WHERE k < 50"],
        False,
    ),
    "a hidden column": (
        ["ALTER TABLE {t} ADD COLUMN filename VARCHAR DEFAULT 'f'", "UPDATE {t} SET v = 3 WHERE k = 7"],
        False,
    ),
}


@pytest.fixture(scope="module", params=["a file", "PostgreSQL"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """With its catalog in a file, and in a PostgreSQL."""
    with ExitStack() as stack:
        catalog = None
        if request.param == "PostgreSQL":
            postgres = Postgres()
            stack.callback(postgres.stop)
            catalog = postgres.conninfo()
        opened = Lake(Storage(tmp_path_factory.mktemp("lake"), catalog), threads=DUCKDB_THREADS)
        opened.cursor().execute("CREATE SCHEMA lake.s")
        yield opened
        opened.close()


@pytest.fixture
def table(lake: Lake) -> LakeTable:
    """A new table."""
    name = LakeTable("s", f"t{next(_NUMBERS)}")
    cursor = lake.cursor()
    cursor.execute(f"CREATE TABLE {name.sql} (k INTEGER, v INTEGER, w VARCHAR)")
    cursor.execute(f"INSERT INTO {name.sql} SELECT range, 0, 'rów ' || range FROM range({ROWS})")
    return name


_NUMBERS = itertools.count()


@pytest.fixture
def outcomes(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each feed since was kept without DuckLake's functions."""
    found: list[bool] = []

    def stored(*arguments: Any) -> StoredChanges:
        changes = stored_changes(*arguments)
        found.append(changes.came is not None and changes.went is not None)
        return changes

    monkeypatch.setattr(change_feed, "stored_changes", stored)
    return found


def net(cursor: Cursor, changes: str) -> Counter[Any]:
    found = Counter[Any]()
    for *row, weight in cursor.execute(f"SELECT rowid, k, v, w, _weight FROM ({changes})").fetchall():
        found[tuple(row)] += weight
    return Counter({row: weight for row, weight in found.items() if weight})


def difference(cursor: Cursor, table: LakeTable, after: int, upto: int) -> Counter[Any]:
    """The net changes, by the rows that were there."""
    found = Counter[Any]()
    for snapshot, weight in ((after, -1), (upto, 1)):
        rows = cursor.execute(f"SELECT rowid, k, v, w FROM {table.sql} AT (VERSION => {snapshot})").fetchall()
        found.update({row: weight * count for row, count in Counter(rows).items()})
    return Counter({row: weight for row, weight in found.items() if weight})


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_same_as_ducklake(lake: Lake, table: LakeTable, outcomes: list[bool], name: str) -> None:
    """Between any two snapshots of a script, also when what the catalog held of it was made files meanwhile."""
    statements, is_net = SCRIPTS[name]
    cursor = lake.cursor()
    snapshots = [lake.snapshot(cursor)]
    for statement in statements:
        cursor.execute(statement.format(t=table.sql))
        snapshots = sorted({*snapshots, lake.snapshot(cursor)})
    for is_flushed in (False, True):
        if is_flushed:
            flush(cursor, table)
        for after, upto in itertools.combinations(snapshots, 2):
            keep_changes(cursor, "kept", table, after, upto, True, "rowid, k, v, w")
            found = net(cursor, "FROM kept")
            assert found == net(cursor, table_changes(table, after, upto, True, "rowid, k, v, w"))
            assert found == difference(cursor, table, after, upto)
        assert found
        if not is_flushed:
            assert all(outcomes) == is_net


def test_each_change_as_it_comes(lake: Lake, table: LakeTable) -> None:
    """By one cursor, which keeps what it knows of the table while its shape is the same."""
    rows = ["INSERT INTO {t} (k, v, w) VALUES (-1, 2, 'x')", "UPDATE {t} SET v = v + 1 WHERE k < 5"]
    many = ["INSERT INTO {t} (k, v, w) SELECT -range, 3, 'y' FROM range(2, 90)", "DELETE FROM {t} WHERE k % 3 = 0"]
    shapes = [
        "ALTER TABLE {t} ADD COLUMN n INTEGER DEFAULT 5",
        "ALTER TABLE {t} ALTER v TYPE BIGINT",
        "DROP TABLE {t}; CREATE TABLE {t} (w VARCHAR, v INTEGER, k INTEGER)",
        "DROP TABLE {t}; CREATE TABLE {t} (x INTEGER, k INTEGER, v INTEGER, w VARCHAR)",
    ]
    cursor = lake.cursor()
    for shape in ["SELECT 1", *shapes]:
        cursor.execute(shape.format(t=table.sql))
        for statement in [*rows, *many, *rows]:
            after = lake.snapshot(cursor)
            cursor.execute(statement.format(t=table.sql))
            upto = lake.snapshot(cursor)
            keep_changes(cursor, "kept", table, after, upto, True, "rowid, k, v, w")
            assert net(cursor, "FROM kept") == difference(cursor, table, after, upto)
            if statement == many[0]:
                flush(cursor, table)  # it drops tables of inlined rows


@pytest.mark.parametrize("gone", [5, 50])  # told by the catalog, and by a file
def test_of_a_file_that_has_its_row_ids(lake: Lake, table: LakeTable, outcomes: list[bool], gone: int) -> None:
    """Compaction takes the number of the first row from it, and may not come to merge it."""
    cursor = lake.cursor()
    cursor.execute(f"UPDATE {table.sql} SET v = 1 WHERE k < 100")
    files = [file for file in table_files(lake, table) if file.has_row_id_start]
    forget_row_id_starts(lake, cursor, table, files)
    assert len(files) > len([file for file in table_files(lake, table) if file.has_row_id_start])
    after = lake.snapshot(cursor)
    cursor.execute(f"DELETE FROM {table.sql} WHERE k < {gone}")
    upto = lake.snapshot(cursor)
    keep_changes(cursor, "kept", table, after, upto, True, "rowid, k, v, w")
    assert net(cursor, "FROM kept") == difference(cursor, table, after, upto)
    assert all(outcomes)


def table_files(lake: Lake, table: LakeTable) -> list[File]:
    cursor = lake.cursor()
    found = locate(cursor, table)
    assert found is not None
    rows = cursor.execute(
        f"SELECT data_file_id, path, row_id_start IS NOT NULL FROM {METADATA}.ducklake_data_file WHERE table_id = ?",
        [found[0]],
    ).fetchall()
    return [File(id_, f"{found[1]}{path}", 0, 0, 0, has_start) for id_, path, has_start in rows]


# Some changes; whether they are read without DuckLake's functions, and whether the catalog has new rows of them.
STORED = {
    "new rows": (
        ["INSERT INTO {t} VALUES (-1, 0, 'x'), (-2, 0, NULL)", "INSERT INTO {t} VALUES (-3, 0, 'x')"],
        True,
        True,
    ),
    "its own rows": (
        [
            "INSERT INTO {t} VALUES (-1, 0, 'x'), (-2, 0, 'x')",
            "UPDATE {t} SET v = v + 1 WHERE k < 0",
            "DELETE FROM {t} WHERE k = -2",
            "UPDATE {t} SET v = v + 1 WHERE k < 0",
        ],
        True,
        True,
    ),
    "in one transaction": (
        [
            "BEGIN",
            "INSERT INTO {t} VALUES (-1, 0, 'x')",
            "UPDATE {t} SET v = 9 WHERE k < 0",
            "INSERT INTO {t} VALUES (-2, 0, 'y')",
            "DELETE FROM {t} WHERE k = -2",
            "COMMIT",
        ],
        True,
        True,
    ),
    "rows of a file": (["INSERT INTO {t} VALUES (-1, 0, 'x')", "UPDATE {t} SET v = 1 WHERE k < 2"], True, True),
    "changed rows in files": (
        [
            "UPDATE {t} SET v = v + 1 WHERE k < 200",
            "UPDATE {t} SET v = v + 1 WHERE k % 2 = 0",
            "DELETE FROM {t} WHERE k < 100",
        ],
        True,
        False,
    ),
    "a column": (["ALTER TABLE {t} ADD COLUMN n INTEGER", "INSERT INTO {t} VALUES (-1, 0, 'x', 1)"], False, False),
    "many": (["INSERT INTO {t} SELECT -range, 0, 'y' FROM range(1, 100)"], True, False),
}


@pytest.mark.parametrize("name", STORED)
def test_what_is_stored(lake: Lake, table: LakeTable, name: str) -> None:
    """Is read without DuckLake's functions, until new rows are moved from the catalog into files."""
    statements, is_known, is_inlined = STORED[name]
    cursor = lake.cursor()
    first, snapshots = lake.snapshot(cursor), {lake.snapshot(cursor)}
    is_one = "BEGIN" in statements
    for statement in statements:
        cursor.execute(statement.format(t=table.sql))
        snapshots |= set() if is_one else {lake.snapshot(cursor)}
    windows = list(itertools.combinations(sorted({*snapshots, lake.snapshot(cursor)}), 2))
    for is_flushed in (False, True):
        if is_flushed:
            flush(cursor, table)
        for after, upto in windows:
            keep_changes(cursor, "kept", table, after, upto, True, "rowid, k, v, w")
            expected = net(cursor, table_changes(table, after, upto, True, "rowid, k, v, w"))
            assert net(cursor, "FROM kept") == expected == difference(cursor, table, after, upto)
        rows = stored_changes(cursor, table, first, windows[-1][1], True)
        is_there = is_known and not (is_flushed and is_inlined)
        assert (rows.came is not None, rows.went is not None) == (is_there, is_there)


CHANGES = {
    "a new column": ["ADD COLUMN n INTEGER DEFAULT 5"],
    "another type": ["ALTER v TYPE BIGINT"],
    "an earlier name": ["DROP COLUMN v", "ADD COLUMN v INTEGER DEFAULT 5"],
}


@pytest.mark.parametrize("change", CHANGES)
def test_rows_of_files_older_than_a_column(lake: Lake, table: LakeTable, change: str, outcomes: list[bool]) -> None:
    cursor = lake.cursor()
    for action in CHANGES[change]:
        cursor.execute(f"ALTER TABLE {table.sql} {action}")
    cursor.execute(f"UPDATE {table.sql} SET v = 1 WHERE k BETWEEN 500 AND 600")
    after = lake.snapshot(cursor)
    for changed in ("UPDATE {t} SET v = 2 WHERE k = 7", "DELETE FROM {t} WHERE k > 550", "DELETE FROM {t} WHERE k = 3"):
        cursor.execute(changed.format(t=table.sql))
        upto = lake.snapshot(cursor)
        columns = [f"rowid, {name}" for name, *_ in cursor.execute(f"DESCRIBE {table.sql}").fetchall()]
        keep_changes(cursor, "kept", table, after, upto, True, ", ".join(columns).replace(", rowid", ""))
        assert net(cursor, "FROM kept") == difference(cursor, table, after, upto)
        expected = cursor.execute(f"SELECT rowid, * FROM {table.sql} LIMIT 0").description
        found = cursor.execute("SELECT * EXCLUDE (_weight) FROM kept LIMIT 0").description
        assert [column[:2] for column in found] == [column[:2] for column in expected]
    assert all(outcomes)


# Types of columns, with values.
TYPES = {
    "BOOLEAN": ["true", "NULL"],
    "SMALLINT": ["-32768", "7"],
    "INTEGER": ["-2147483648", "7"],
    "BIGINT": ["-9223372036854775808", "7"],
    "REAL": ["0.1", "'nan'", "'-infinity'"],
    "DOUBLE": ["0.012500000186264515::DOUBLE", "'nan'", "'infinity'", "1e-320"],
    "DECIMAL(38, 19)": ["-1234567890123456789.0123456789012345678", "0.5"],
    "DECIMAL(9, 2)": ["-1.25", "NULL"],
    "VARCHAR": ["''", "'rów, ''a'''", "NULL"],
    "BLOB": [r"'\x00\xFF'::BLOB", "''"],
    "DATE": ["'0044-03-15 (BC)'", "'9999-12-31'", "'infinity'"],
    "TIME": ["'23:59:59.999999'"],
    "TIMESTAMP": ["'1900-01-01 00:00:00.000001'", "'infinity'"],
    "TIMESTAMPTZ": ["'2026-11-29 12:00:00.123456+02'", "'-infinity'"],
    "UUID": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'"],
    "JSON": ["""'{"a": [1, null]}'""", "NULL"],
    "INTEGER[]": ["[1, NULL]", "[]", "NULL"],
    "VARCHAR[]": ["""['a, b', 'c''d', NULL, 'NULL', '"x']"""],
    "DOUBLE[]": ["[0.012500000186264515::DOUBLE]"],
    "MAP(VARCHAR, DECIMAL(9, 2)[])": ["MAP {'a': [1.5, NULL]}", "NULL"],
    "STRUCT(x INTEGER, y VARCHAR)": ["""{'x': 1, 'y': 'q,"'''}""", "NULL"],
    "STRUCT(x DECIMAL(9, 2), y DATE[])[]": ["[{'x': 1.5, 'y': ['2026-01-01']}, NULL]"],
}
# Types whose columns are of one table: one that keeps a table's rows from the catalog would do so to others.
TOGETHER = {
    "numbers": ("BOOLEAN", "SMALLINT", "INTEGER", "BIGINT", "DECIMAL(38, 19)", "DECIMAL(9, 2)"),
    "floats": ("REAL", "DOUBLE"),
    "texts": ("VARCHAR", "BLOB", "UUID", "JSON"),
    "times": ("DATE", "TIME", "TIMESTAMP", "TIMESTAMPTZ"),
    "lists": ("INTEGER[]", "VARCHAR[]", "DOUBLE[]"),
    "maps": ("MAP(VARCHAR, DECIMAL(9, 2)[])",),
    "rows": ("STRUCT(x INTEGER, y VARCHAR)", "STRUCT(x DECIMAL(9, 2), y DATE[])[]"),
}


@pytest.mark.parametrize("rows", [1, 100])  # in the catalog, and in a file
@pytest.mark.parametrize("name", TOGETHER)
def test_values_are_of_the_same_types(lake: Lake, name: str, rows: int, outcomes: list[bool]) -> None:
    cursor = lake.cursor()
    table = LakeTable("s", f"t{next(_NUMBERS)}")
    columns = {f"c{place}": type_ for place, type_ in enumerate(TOGETHER[name])}
    listed, texts = ", ".join(columns), ", ".join(f"{column}::VARCHAR AS {column}" for column in columns)
    cursor.execute(f"CREATE TABLE {table.sql} (k INTEGER, {', '.join(map(' '.join, columns.items()))})")
    snapshots = [lake.snapshot(cursor)]
    for values in itertools.zip_longest(*map(TYPES.get, columns.values()), fillvalue="NULL"):
        cursor.execute(f"INSERT INTO {table.sql} SELECT range, {', '.join(values)} FROM range({rows})")
    snapshots.append(lake.snapshot(cursor))
    cursor.execute(f"DELETE FROM {table.sql} WHERE k < {rows // 2 + 1}")
    snapshots.append(lake.snapshot(cursor))
    for after, upto in itertools.combinations(snapshots, 2):
        ours = f"SELECT {texts}, sum(_weight) FROM {{}} GROUP BY ALL ORDER BY ALL"
        changes = table_changes(table, after, upto, upto == snapshots[2])
        keep_changes(cursor, "kept", table, after, upto, upto == snapshots[2], f"rowid, k, {listed}")
        types = [cursor.execute(f"SELECT {listed} FROM {of} LIMIT 0").description for of in ("kept", f"({changes})")]
        assert types[0] == types[1]
        assert cursor.execute(ours.format("kept")).fetchall() == cursor.execute(ours.format(f"({changes})")).fetchall()
    assert len(outcomes) == 3


def test_all_types_are_tried() -> None:
    assert sorted(itertools.chain(*TOGETHER.values())) == sorted(TYPES)


@pytest.mark.long
def test_a_little_of_a_large_table(lake: Lake, table: LakeTable, outcomes: list[bool]) -> None:
    """Costs no reading of the file."""
    cursor = lake.cursor()
    cursor.execute(f"INSERT INTO {table.sql} SELECT range, 0, 'row ' || range % 99991 FROM range(1000, 18000000)")
    after = lake.snapshot(cursor)
    cursor.execute(f"UPDATE {table.sql} SET v = 1 WHERE k = 123456")
    upto = lake.snapshot(cursor)
    files = sum(file.stat().st_size for file in lake.storage.data_path.rglob("*.parquet"))
    before = _bytes_read()
    keep_changes(cursor, "kept", table, after, upto, True, "rowid, k, v, w")
    assert _bytes_read() - before < files / 20
    assert all(outcomes) and len(net(cursor, "FROM kept")) == 2


def _bytes_read() -> int:
    """Of files by this process, ever."""
    return int(Path("/proc/self/io").read_text().partition("rchar: ")[2].split()[0])
