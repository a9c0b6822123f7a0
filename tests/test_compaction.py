"""Small files become few, and neither the rows, nor their ids, nor any snapshot, nor any change feed notices."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from marking import long_but
from servers import DUCKDB_THREADS, with_lake
from test_retention import opened, run

from sparkwave.catalog.lake import compaction, table_contents
from sparkwave.catalog.lake.change_feed import keep_changes, table_changes
from sparkwave.catalog.lake.compaction import File, Table, tables_to_compact
from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.expiry import expire
from sparkwave.catalog.lake.inlining import INLINED_ROWS
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.names import METADATA, LakeTable
from sparkwave.executor.maintenance.compactor import compact, compact_once

TABLE = LakeTable("s", "t")
CHANGES = (
    "INSERT INTO {t} SELECT {next} + range, 0, 'x' FROM range({n})",
    "UPDATE {t} SET v = v + 1 WHERE k % {n} = 0",
    "UPDATE {t} SET v = v + 1, w = w || 'y'",
    "DELETE FROM {t} WHERE k % 13 = {n} % 13",
    "DELETE FROM {t} WHERE k = {n}",
)


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    opened = Lake(Storage(with_lake(tmp_path)), threads=DUCKDB_THREADS)
    opened.cursor().execute(f"CREATE SCHEMA lake.s; CREATE TABLE {TABLE.sql} (k INTEGER, v INTEGER, w VARCHAR)")
    yield opened
    opened.close()


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few files or rows are enough for something to be done."""
    monkeypatch.setattr(compaction, "INLINED_ROWS", 5)
    monkeypatch.setattr(compaction, "TIERS", ((2000, 3), (1 << 20, 2)))
    monkeypatch.setattr(compaction, "DELETED_PART", 0.2)


def contents(cursor: Cursor, at: str = "") -> Counter[Any]:
    return Counter(cursor.execute(f"SELECT rowid, k, v, w FROM {TABLE.sql}{at}").fetchall())


def file_count(cursor: Cursor) -> int:
    row = cursor.execute(f"SELECT count(*) FROM {METADATA}.ducklake_data_file WHERE end_snapshot IS NULL").fetchone()
    return row[0] if row else 0


@pytest.mark.parametrize("seed", long_but([0], range(3)))
def test_nothing_is_noticed(lake: Lake, eager: None, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random changes with compaction between them: every snapshot, and the feed between any two, stays what it was."""
    chosen, cursor = random.Random(seed), lake.cursor()
    known: dict[int, Counter[Any]] = {}
    done: Counter[str] = Counter()
    for step in range(60):
        change = chosen.choice((CHANGES[0], *CHANGES))
        with lake.transaction(cursor, shared=[TABLE]):
            cursor.execute(change.format(t=TABLE.sql, next=step * 1000, n=chosen.choice((2, 7, 30, 101))))
        known[lake.snapshot(cursor)] = contents(cursor)
        for table in tables_to_compact(cursor, str(lake.data_path)):
            done += Counter(flush=table.flush, drop=table.drop, rewrite=bool(table.rewrite), merge=bool(table.merge))
        compact_once(lake)
        assert contents(cursor) == known[max(known)]
    assert min(done["flush"], done["drop"], done["rewrite"], done["merge"]) > 0, done
    for snapshot, rows in known.items():
        assert contents(cursor, f" AT (VERSION => {snapshot})") == rows
        with at_one_moment(cursor):
            found = table_contents.contents(cursor, [TABLE], snapshot)[TABLE]
            assert table_contents.count_rows(cursor, TABLE, found) == rows.total()
    for _ in range(40):
        after, upto = sorted(chosen.sample(sorted(known), 2))
        net = dict(known[upto])
        for row, count in known[after].items():
            net[row] = net.get(row, 0) - count
        keep_changes(cursor, "kept", TABLE, after, upto, True, "rowid, k, v, w")
        for changes in (table_changes(TABLE, after, upto), "FROM kept"):
            query = (
                f"SELECT rowid, k, v, w, sum(_weight)::INTEGER FROM ({changes}) GROUP BY ALL HAVING sum(_weight) <> 0"
            )
            assert sorted(cursor.execute(query).fetchall()) == sorted((*row, n) for row, n in net.items() if n)


def test_few_rows_make_no_file(lake: Lake) -> None:
    cursor, insert = lake.cursor(), f"INSERT INTO {TABLE.sql} SELECT range, 0, 'x' FROM range(?)"
    cursor.execute(insert, [INLINED_ROWS])
    assert file_count(cursor) == 0
    cursor.execute(insert, [INLINED_ROWS + 1])
    assert file_count(cursor) == 1


def test_a_table_that_went_before_its_turn(lake: Lake, eager: None) -> None:
    cursor = lake.cursor()
    for change in (*CHANGES[:3] * 3, CHANGES[3], CHANGES[4]):
        with lake.transaction(cursor, shared=[TABLE]):
            cursor.execute(change.format(t=TABLE.sql, next=0, n=30))
    [table] = tables_to_compact(cursor, str(lake.data_path))
    with lake.transaction(cursor):
        cursor.execute(f"DROP TABLE {TABLE.sql}")
    files = tuple(File(1, "x", 1, 1, 1, False) for _ in range(2))
    compact(lake, cursor, Table(TABLE, True, True, files, (), 0))
    compact(lake, cursor, replace(table, merge=files))
    assert not compact_once(lake)


def test_a_table_that_goes_meanwhile(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows in the catalog go with the last snapshot that had it, maybe while they are being counted."""
    other = lake.cursor()
    with lake.transaction(other):
        other.execute(f"INSERT INTO {TABLE.sql} VALUES (1, 1, 'x')")
    [(inlined,)] = other.execute(
        f"SELECT i.table_name FROM {METADATA}.ducklake_inlined_data_tables i JOIN {METADATA}.ducklake_table t "
        "USING (table_id) WHERE t.table_name = 't'"
    ).fetchall()
    count = compaction._counts

    def count_later(cursor: Cursor, tables: Sequence[tuple[int, str]]) -> list[tuple[int, int]]:
        monkeypatch.setattr(compaction, "_counts", count)
        with lake.transaction(other):
            other.execute(f"DROP TABLE {TABLE.sql}")
        expire(other, lake.snapshot(other), 1000)
        return count(cursor, tables)

    monkeypatch.setattr(compaction, "_counts", count_later)
    assert not compact_once(lake)
    with pytest.raises(DuckDBError, match="does not exist"):
        other.execute(f"FROM {METADATA}.{inlined}")


VIEWS = {
    "joined": "SELECT a.k, a.v, b.v AS w FROM a JOIN b USING (g)",
    "grouped": "SELECT g, count(*) AS n, sum(v)::INT AS s, min(v) AS m, array_agg(k ORDER BY k) AS l FROM a GROUP BY g",
    "first": "SELECT g, k FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v, k) AS r FROM a) s WHERE r <= 2",
    "ranked": "SELECT k, v, rank() OVER (PARTITION BY g ORDER BY v) AS r FROM a",
    "unmatched": "SELECT a.k FROM a LEFT JOIN b ON a.g = b.g AND b.v > 3 WHERE b.k IS NULL",
    "above": "SELECT g, n FROM grouped WHERE n > 2",
}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_views_go_on(tmp_path: Path, eager: None, seed: int) -> None:
    """The law, with compaction of tables, views and their state between epochs."""
    chosen = random.Random(seed)
    with opened(tmp_path / "data") as (context, client):
        for table in "ab":
            run(client, f"CREATE TABLE {table} (k INT PRIMARY KEY, g INT, v INT)")
            run(client, f"INSERT INTO {table} SELECT x, x % 5, x % 7 FROM generate_series(1, 60) x")
        run(client, *(f"CREATE MATERIALIZED VIEW {name} AS {query}" for name, query in VIEWS.items()))
        compacted = 0
        for step in range(25):
            table, n = chosen.choice("ab"), chosen.randrange(60)
            change = chosen.choice(
                (
                    f"INSERT INTO {table} SELECT {100 + 20 * step} + x, x % 6, x FROM generate_series(1, 11) x",
                    f"UPDATE {table} SET v = v + 1 WHERE k % 4 = {n % 4}",
                    f"UPDATE {table} SET g = g + 1 WHERE k = {n}",
                    f"DELETE FROM {table} WHERE k % 17 = {n % 17}",
                )
            )
            run(client, change)
            if step % 2:
                run(client, "FLUSH")
            compacted += compact_once(context.lake)
        run(client, "FLUSH")
        assert compacted > 3
        for name, query in VIEWS.items():
            assert Counter(map(str, run(client, f"SELECT * FROM {name}"))) == Counter(map(str, run(client, query))), (
                name
            )


@pytest.mark.long
def test_hot_rows(lake: Lake) -> None:
    """A table of which a part changes with every epoch has few files, at any time."""
    cursor = lake.cursor()
    cursor.execute(f"INSERT INTO {TABLE.sql} SELECT range, 0, 'x' FROM range(100000)")
    most = 0
    for step in range(300):
        with lake.transaction(cursor):
            cursor.execute(f"UPDATE {TABLE.sql} SET v = v + 1 WHERE k BETWEEN {step * 331} AND {step * 331 + 50}")
        if step % 10 == 9:
            compact_once(lake)
            most = max(most, file_count(cursor))
    assert most < 2 * compaction.TIERS[0][1] + 10
    assert contents(cursor).total() == 100_000


def test_inlined_rows_become_files(lake: Lake) -> None:
    cursor = lake.cursor()
    for step in range(3):
        cursor.execute(f"INSERT INTO {TABLE.sql} VALUES ({step}, 0, 'x')")
    compact_once(lake)
    assert file_count(cursor) == 0  # not worth it
    compaction.flush(cursor, TABLE)
    assert file_count(cursor) == 1


def test_inlined_deletes_become_files(lake: Lake, eager: None) -> None:
    """Also of a table that gets no rows into the catalog."""
    cursor = lake.cursor()
    cursor.execute(f"INSERT INTO {TABLE.sql} SELECT range, 0, 'x' FROM range(1000)")
    for step in range(6):
        cursor.execute(f"DELETE FROM {TABLE.sql} WHERE k = {step}")
    [(table_id,)] = cursor.execute(f"SELECT table_id FROM {METADATA}.ducklake_table WHERE table_name = 't'").fetchall()
    deletes = f"SELECT count(*) FROM {METADATA}.ducklake_inlined_delete_{table_id}"
    assert cursor.execute(deletes).fetchall() == [(6,)]
    before = contents(cursor)
    compact_once(lake)
    assert cursor.execute(deletes).fetchall() == [(0,)]
    assert contents(cursor) == before
    assert before.total() == 994
