"""Rows that are put into the lake's catalog without DuckLake: it is left as DuckLake would leave it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from marking import long_but
from servers import Server, rows

from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.inlined_writes import InlinedWrites, Unfit, may_fit, may_fit_places
from sparkwave.catalog.lake.inlining import INLINED_ROWS
from sparkwave.catalog.lake.lake_tables import inlined_deletes, locate
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.names import METADATA, PLACES
from sparkwave.catalog.types import parse_type

STAGED = "staged"
OF_SNAPSHOTS = {
    "ducklake_snapshot": "snapshot_id, schema_version, next_catalog_id, next_file_id",
    "ducklake_snapshot_changes": "snapshot_id, changes_made, author, commit_message, "
    "commit_extra_info IS NULL OR commit_extra_info > '1'",
}
OF_TABLES = {
    "ducklake_table_stats": "* EXCLUDE file_size_bytes",
    # DuckLake forgets with an inlined row whether files have NaN.
    "ducklake_table_column_stats": "* EXCLUDE contains_nan",
    "ducklake_inlined_data_tables": "*",
    "ducklake_data_file": "data_file_id, table_id, begin_snapshot, end_snapshot, record_count, row_id_start",
    "ducklake_file_column_stats": "* EXCLUDE column_size_bytes",
    "ducklake_schema_versions": "*",
}
# Of each type values as SQL.
VALUES: dict[str, Sequence[str]] = {
    "boolean": ("true", "false"),
    "smallint": ("0", "-32768", "32767", "12"),
    "integer": ("-2147483648", "9", "10"),
    "bigint": ("9223372036854775807", "-5", "100", "9"),
    "real": ("1.5", "-0.0", "0.0", "'-infinity'", "3e38", "0.1"),
    "double precision": ("0.1", "1e300", "'infinity'", "-7", "1e-7", "'nan'"),
    "numeric": ("1.5", "-1234567890123456789012.5", "0.0000000001", "10", "9"),
    "numeric(5,2)": ("999.99", "-0.01", "100", "9"),
    "character varying": ("'it''s'", "''", f"'{'é' * 300}'", "'Z'", "'a'", "'NULL'", "'𝄞'", "'\uffff'"),
    "date": ("'2024-02-29'", "'0044-03-15 (BC)'", "'infinity'", "'10000-01-01'"),
    "timestamp": ("'2024-01-01 00:00:00.000001'", "'-infinity'", "'1969-12-31 23:59:59'", "'0044-03-15 (BC) 01:00:00'"),
    "timestamptz": (
        "'2024-07-01 12:00:00+02'",
        "'infinity'",
        "'1969-12-31 23:59:59.5+00'",
        "'10000-01-01 00:00:00+00'",
    ),
    "time": ("'00:00:00'", "'23:59:59.999999'", "'12:30:00.5'", "'24:00:00'"),
    "uuid": (
        "'00000000-0000-0000-0000-000000000000'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
        "'80000000-0000-0000-0000-000000000001'",
    ),
    "json": ("'{\"a\": 1}'", "'null'", "'[]'", f"'\"{'é' * 300}\"'"),
    "jsonb": ("'{\"a\": 1}'", "'null'", "'[]'", f"'\"{'é' * 300}\"'"),
    "int[]": ("[1, 2]", "[]", "[-5, NULL]", "[2147483647]"),
    "varchar[]": ("['a', '']", "[]", f"['{'é' * 300}', NULL]", "['￿']"),
    "jsonb[]": ("['{}']", "[]", "[NULL]", f"['\"{'é' * 300}\"']"),
}


def table(*types: str, key: Sequence[int] = ()) -> Relation:
    columns = tuple(Column(f"c{place}", parse_type(type_)) for place, type_ in enumerate(types))
    names = tuple(columns[place].name for place in key)
    return Relation(1, "dev", "public", "t", "table", columns, names or ("_row_id",), "", True)


def opened(directory: Path, target: Relation) -> tuple[Lake, Cursor]:
    lake = Lake(Storage(directory))
    cursor = lake.cursor()
    columns = ", ".join(f"{column.lake_name} {column.type.in_lake()}" for column in target.columns)
    cursor.execute(f'CREATE SCHEMA IF NOT EXISTS lake."{target.lake_table.schema}"')
    cursor.execute(f"CREATE TABLE {target.lake_name} ({columns}); CREATE TEMPORARY TABLE {STAGED} ({columns})")
    # The values are floats of few digits, so DuckLake may inline them.
    place = f"schema => '{target.lake_table.schema}', table_name => '{target.lake_table.name}'"
    cursor.execute(f"CALL lake.set_option('data_inlining_row_limit', '{INLINED_ROWS}', {place})")
    return lake, cursor


def stage(cursor: Cursor, staged: Sequence[Sequence[str]]) -> None:
    cursor.execute(f"TRUNCATE {STAGED}")
    values = ", ".join("(" + ", ".join(row) + ")" for row in staged)
    cursor.execute(f"INSERT INTO {STAGED} VALUES {values}")


def insert(lake: Lake, cursor: Cursor, target: Relation) -> None:
    with lake.table_transaction(cursor, target.lake_table):
        cursor.execute(f"INSERT INTO {target.lake_name} FROM {STAGED}")


def put(lake: Lake, cursor: Cursor, target: Relation, inserts: InlinedWrites) -> bool:
    """Whether the staged rows fitted; they are stored at any rate."""
    try:
        with lake.catalog_transaction(cursor, target.lake_table) as snapshot:
            stored = inserts.insert(cursor, target, STAGED, snapshot)
    except Unfit:
        (merge if target.primary_key == ("c0",) else insert)(lake, cursor, target)
        return False
    inserts.keep(target, stored)
    return True


def catalog(cursor: Cursor, target: Relation) -> dict[str, list[tuple[Any, ...]]]:
    """What the catalog has of the table, and of the snapshots."""
    located = locate(cursor, target.lake_table)
    assert located is not None
    made = f"(SELECT begin_snapshot FROM {METADATA}.ducklake_table WHERE table_id = {located[0]})"
    queries = {
        name: f"SELECT {columns} FROM {METADATA}.{name} WHERE snapshot_id > {made}"
        for name, columns in OF_SNAPSHOTS.items()
    }
    for name, columns in OF_TABLES.items():
        queries[name] = f"SELECT {columns} FROM {METADATA}.{name} WHERE table_id = {located[0]}"
    if (deletes := inlined_deletes(cursor, located[0])) is not None:
        queries[deletes] = f"SELECT * FROM {METADATA}.{deletes}"
    inlined = f"SELECT table_name FROM {METADATA}.ducklake_inlined_data_tables WHERE table_id = {located[0]}"
    for (name,) in cursor.execute(inlined).fetchall():
        queries[name] = f"SELECT COLUMNS(*)::VARCHAR FROM {METADATA}.{name}"
    return {name: cursor.execute(f"{query} ORDER BY ALL").fetchall() for name, query in queries.items()}


@pytest.mark.parametrize("seed", long_but([0, 1], [0, 1, 2, 3]))
def test_the_catalog_is_as_ducklake_leaves_it(tmp_path: Path, seed: int) -> None:
    chosen = random.Random(seed)
    types = [*VALUES, *chosen.sample(list(VALUES), 3)]
    target = table(*types)
    assert may_fit(target)
    (ours, own), (theirs, other) = opened(tmp_path / "a", target), opened(tmp_path / "b", target)
    inserts, fitted = InlinedWrites(), 0
    for step in range(40):
        nulls = chosen.choice((0, 0, 0.2, 1))
        staged = [
            ["NULL" if chosen.random() < nulls else chosen.choice(VALUES[type_][: 1 + step // 4]) for type_ in types]
            for _ in range(chosen.choice((1, 1, 3, INLINED_ROWS, INLINED_ROWS + 1)))
        ]
        for cursor in (own, other):
            stage(cursor, staged)
        fitted += put(ours, own, target, inserts)
        insert(theirs, other, target)
        if chosen.random() < 0.1:
            for lake, cursor in ((ours, own), (theirs, other)):
                with lake.transaction(cursor):
                    cursor.execute(f"UPDATE {target.lake_name} SET c1 = 1 WHERE c2 = 9")
        check_same(own, other, target)
    assert fitted > 10
    ours.close()
    theirs.close()


@pytest.mark.parametrize("seed", long_but([0, 1], [0, 1, 2, 3]))
def test_changed_rows_are_as_ducklake_leaves_them(tmp_path: Path, seed: int) -> None:
    """Of rows in files, in files that have been changed, merged or written from the catalog, and in the catalog."""
    chosen = random.Random(seed)
    types = ["bigint", *VALUES]
    target = table(*types, key=[0])
    assert may_fit_places(target)
    (ours, own), (theirs, other) = opened(tmp_path / "a", target), opened(tmp_path / "b", target)
    writes, fitted, number = InlinedWrites(), 0, 0

    def value(place: int) -> str:
        return "NULL" if chosen.random() < 0.1 else chosen.choice(VALUES[types[place]][:-1])

    for step in range(60):
        if step < 3 or chosen.random() < 0.2:
            count = chosen.choice((1, 2, 40))
            staged = [[str(number + row), *map(value, range(1, len(types)))] for row in range(count)]
            number += count
            for lake, cursor in ((ours, own), (theirs, other)):
                stage(cursor, staged)
                insert(lake, cursor, target)
            continue
        if chosen.random() < 0.3:
            stored = own.execute(f"SELECT c0::VARCHAR FROM {target.lake_name} ORDER BY c0").fetchall()
            keys = chosen.sample(stored, min(len(stored), chosen.choice((1, 1, 3))))
            staged = [[key, *map(value, range(1, len(types)))] for (key,) in keys]
            for cursor in (own, other):
                stage(cursor, staged)
            fitted += put(ours, own, target, writes)
            merge(theirs, other, target)
            check_same(own, other, target)
            continue
        keys = ", ".join(str(chosen.randrange(number)) for _ in range(chosen.choice((1, 1, 1, 2, 20))))
        where = f"WHERE c0 IN ({keys})"
        places = [place for place in range(1, len(types)) if chosen.random() < 0.4] if chosen.random() < 0.7 else []
        values = {f"c{place}": f"CAST({value(place)} AS {target.columns[place].type.in_lake()})" for place in places}
        fitted += changed_here(ours, own, target, writes, where, values)
        change(theirs, other, target, where, values)
        if chosen.random() < 0.1:
            for lake, cursor in ((ours, own), (theirs, other)):
                with lake.transaction(cursor):
                    cursor.execute(f"UPDATE {target.lake_name} SET c2 = 1 WHERE c0 % 3 = 0")
                with lake.transaction(cursor):
                    moving = "merge_adjacent_files" if step % 2 else "flush_inlined_data"
                    cursor.execute(f"CALL ducklake_{moving}('lake')")
        check_same(own, other, target)
    assert fitted > 10
    ours.close()
    theirs.close()


def check_same(own: Cursor, other: Cursor, target: Relation) -> None:
    found, expected = catalog(own, target), catalog(other, target)
    for name, content in expected.items():
        assert found[name] == content, name
    contents = f"SELECT rowid, COLUMNS(*)::VARCHAR FROM {target.lake_name} ORDER BY rowid"
    assert own.execute(contents).fetchall() == other.execute(contents).fetchall()


def merge(lake: Lake, cursor: Cursor, target: Relation) -> None:
    names = [column.lake_name for column in target.columns]
    assignments = ", ".join(f"{name} = s.{name}" for name in names[1:])
    with lake.table_transaction(cursor, target.lake_table):
        cursor.execute(
            f"MERGE INTO {target.lake_name} t USING {STAGED} s ON t.c0 = s.c0 "
            f"WHEN MATCHED THEN UPDATE SET {assignments}"
        )


def change(lake: Lake, cursor: Cursor, target: Relation, where: str, values: dict[str, str]) -> None:
    assignments = ", ".join(f"{name} = {value}" for name, value in values.items())
    with lake.table_transaction(cursor, target.lake_table):
        cursor.execute(
            f"UPDATE {target.lake_name} SET {assignments} {where}"
            if values
            else f"DELETE FROM {target.lake_name} {where}"
        )


def changed_here(
    lake: Lake, cursor: Cursor, target: Relation, writes: InlinedWrites, where: str, values: dict[str, str]
) -> bool:
    """Whether the changed rows fitted; they are changed at any rate, if there are any."""
    since = lake.newest(cursor)
    items = [f'{column} AS "{name}"' for name, column in PLACES.items()]
    items += [f"{values.get(c.lake_name, c.lake_name)} AS {c.lake_name}" for c in target.columns] if values else []
    cursor.execute(
        f"CREATE OR REPLACE TEMPORARY TABLE changed AS SELECT {', '.join(items)} FROM {target.lake_name} {where}"
    )
    assigned = [column for column in target.columns if column.lake_name in values]
    if cursor.execute("SELECT count(*) FROM changed").fetchall() == [(0,)]:
        change(lake, cursor, target, where, values)
        return False
    try:
        with lake.catalog_transaction(cursor, target.lake_table) as snapshot:
            stored = writes.change(cursor, target, "changed", assigned, since, snapshot)
    except Unfit:
        change(lake, cursor, target, where, values)
        return False
    writes.keep(target, stored)
    return True


def test_a_null_that_may_not_be(tmp_path: Path) -> None:
    """Even if the catalog says that there has been one."""
    target = table("int", "int")
    lake, cursor = opened(tmp_path, target)
    inserts = InlinedWrites()
    stage(cursor, [["1", "NULL"], ["2", "3"]])
    assert [put(lake, cursor, target, inserts) for _ in range(2)] == [False, True]
    required = replace(target, columns=(target.columns[0], replace(target.columns[1], not_null=True)))
    with pytest.raises(Unfit), lake.catalog_transaction(cursor, target.lake_table) as snapshot:
        inserts.insert(cursor, required, STAGED, snapshot)
    stage(cursor, [["1", "2"]])
    assert put(lake, cursor, required, inserts)
    lake.close()


def test_keys_that_are_there(server: Server) -> None:
    """Wherever the lake has them, the last row of a key counts, and views follow."""
    with server.connect() as connection:
        connection.execute("CREATE TABLE t (k int, l varchar, n int, PRIMARY KEY (k, l))")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS rows, sum(n) AS total FROM t")
        expected: dict[int, int] = {}

        def insert(*keys: int) -> None:
            n = len(expected) + max(expected.values(), default=0)
            connection.execute(f"INSERT INTO t (k, l, n) VALUES {', '.join(f'({k}, {k % 3}, {n})' for k in keys)}")
            expected.update(dict.fromkeys(keys, n))
            assert rows(connection, "SELECT k, n FROM t ORDER BY k") == sorted(expected.items())
            connection.execute("FLUSH")
            assert rows(connection, "SELECT * FROM v") == [(len(expected), sum(expected.values()))]

        for keys in ((1,), (2,), (3,), (2,), (1, 4)):
            insert(*keys)
        connection.execute("DELETE FROM t WHERE k = 2")
        del expected[2]
        for key in (2, 5):
            insert(key)
        connection.execute("ALTER TABLE t ADD COLUMN added int")
        for key in (6, 5, 7, 5, 8):
            insert(key)
        insert(*range(100, 100 + INLINED_ROWS + 1))  # which are a file
        for key in (9, 100, 10):
            insert(key)
        connection.execute("DELETE FROM t WHERE k = 101")
        del expected[101]
        for key in (101, 11, 101):
            insert(key)


CHANGED_COLUMNS = {
    "Ödd": ("json", "'{\"x\":  1}'", "'[\"é\",  2]'"),
    "b": ("jsonb", "'{\"y\": [1, 2]}'", "b || '{\"k\": null}'"),
    "m": ("mood", "'ok'", "'happy'"),
    "u": ("uuid", "'00000000-0000-0000-0000-000000000001'", "'ffffffff-0000-0000-0000-000000000001'"),
    "t": ("time", "'12:00'", "t + interval '90 minutes'"),
    "tags": ("text[]", "'{a,NULL}'", "tags || 'é'::text"),
    "docs": ("json[]", "ARRAY['{}'::json]", "ARRAY['[1,  2]'::json, NULL]"),
}


def test_rows_of_documents_and_arrays_are_changed_by_their_keys(server: Server) -> None:
    """As rows are that no key names, in the file and in the catalog; conditions find them, and a view has them."""
    names = [f'"{name}"' for name in CHANGED_COLUMNS]
    columns = ", ".join(f'"{name}" {type_}' for name, (type_, *_) in CHANGED_COLUMNS.items())
    with server.connect() as connection:
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')")
        first = ", ".join(value for _, value, _ in CHANGED_COLUMNS.values())
        for table in ("here", "there"):
            connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, {columns})")
            connection.execute(f"INSERT INTO {table} SELECT i, {first} FROM generate_series(1, 100) AS i")
        connection.execute("CREATE MATERIALIZED VIEW seen AS SELECT * FROM here")

        def run(change: str) -> None:
            connection.execute(f"{change.replace('TABLE', 'here')} WHERE id = 7")
            connection.execute(f"{change.replace('TABLE', 'there')} WHERE id + 0 = 7")

        for name, (_, _, value) in zip(names, CHANGED_COLUMNS.values(), strict=True):
            run(f"UPDATE TABLE SET {name} = {value}")
            compared = f"{name}::text"
            expected = rows(connection, f"SELECT {compared} FROM there WHERE id = 7")
            found = f"SELECT {compared} FROM here WHERE {compared} = (SELECT {compared} FROM there WHERE id = 7)"
            assert rows(connection, found) == expected, name
        run(f"UPDATE TABLE SET {', '.join(map('{} = NULL'.format, names))}")
        run("UPDATE TABLE SET \"Ödd\" = '{}'")
        connection.execute("FLUSH")
        texts = ", ".join(map("{}::text".format, names))
        expected = rows(connection, f"SELECT id, {texts} FROM there ORDER BY id")
        for table in ("here", "seen"):
            assert rows(connection, f"SELECT id, {texts} FROM {table} ORDER BY id") == expected
        run("DELETE FROM TABLE")
        assert rows(connection, "SELECT count(*), count(*) FILTER (WHERE id = 7) FROM here") == [(99, 0)]
