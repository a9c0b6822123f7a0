"""`_rw_timestamp` is the time of the commit that last wrote a row, whatever the server's upkeep does to its files."""

from __future__ import annotations

import random
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from servers import wait_until
from test_law import opened, run

from sparkwave.catalog.commit_times import KEPT, MOVED, TIMES
from sparkwave.catalog.lake import compaction
from sparkwave.catalog.lake.row_times import MOST_RUNS
from sparkwave.catalog.names import METADATA, LakeTable
from sparkwave.executor.maintenance.compactor import compact_once
from sparkwave.executor.maintenance.expired_rows import ExpiredRows
from sparkwave.executor.maintenance.retention import Pace, Retention
from sparkwave.server.context import Context
from sparkwave.server.dispatch import Client

TABLE = LakeTable("dev.public", "t")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CHANGES = (
    "INSERT INTO {t} SELECT {next} + g, 0 FROM generate_series(1, {n}) AS g",
    "INSERT INTO {t} VALUES ({next} + 1, 0)",
    "UPDATE {t} SET v = v + 1 WHERE k % 7 = {n} % 7 AND k > {next} / 3",
    "DELETE FROM {t} WHERE k % 13 = {n} % 13",
)


def last_commit(context: Context) -> datetime:
    with closing(context.lake.cursor()) as cursor:
        row = cursor.execute(f"SELECT max(time_us) FROM ({TIMES})").fetchone()
    assert row is not None
    return EPOCH + timedelta(microseconds=row[0])


def times(client: Client) -> dict[Any, Any]:
    return dict(run(client, "SELECT k, _rw_timestamp FROM t"))


@pytest.mark.parametrize("key", ["k int PRIMARY KEY", pytest.param("k int", marks=pytest.mark.long)])
def test_times_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr(compaction, "INLINED_ROWS", 5)
    monkeypatch.setattr(compaction, "TIERS", ((2000, 3), (1 << 20, 2)))
    monkeypatch.setattr(compaction, "DELETED_PART", 0.2)
    rewritten = []
    usual = compaction.rewrite
    monkeypatch.setattr(compaction, "rewrite", lambda *args: (rewritten.append(1), usual(*args)))
    chooser = random.Random(3)
    with opened(tmp_path / "lake") as (context, client):
        run(client, f"CREATE TABLE t ({key}, v int)")
        expected: dict[Any, datetime] = {}
        rows: dict[Any, Any] = {}
        following = 0
        retention = Retention(context.store, context.coordinator, lambda: 0, Pace(settle_s=0, files_s=0))
        for step in range(40):
            began = last_commit(context)
            change = chooser.choice(CHANGES).format(t="t", next=following, n=chooser.choice([3, 40, 200]))
            run(client, change)
            found: dict[Any, Any] = dict(run(client, "SELECT k, v FROM t"))
            own = times(client)
            for k, v in found.items():
                if k not in rows or rows[k] != v:
                    expected[k] = own[k]
                    assert began < own[k] <= last_commit(context)
            rows, following = found, max((following, *map(int, found)))
            if step % 4 == 3:
                while compact_once(context.lake, {TABLE: False}):
                    pass
            if step < 25:  # no snapshot has expired
                assert times(client) == {k: expected[k] for k in rows}
            if step in (28, 39):
                context.coordinator.flush(lambda: False)
                retention.run_once()
        after = times(client)
        assert rewritten
        for k in rows:
            assert after[k] is None or timedelta() <= expected[k] - after[k] < timedelta(minutes=1), k
        with closing(context.lake.cursor()) as cursor:
            [(kept,)] = cursor.execute(f"SELECT count(*) FROM {KEPT}").fetchall()
            [(remaining,)] = cursor.execute(f"SELECT count(*) FROM {METADATA}.ducklake_snapshot").fetchall()
        assert 0 < kept <= 10  # one a minute
        assert remaining < 20


def test_its_columns_and_transactions(tmp_path: Path) -> None:
    with opened(tmp_path / "lake") as (context, client):
        run(client, "CREATE TABLE t (k int PRIMARY KEY, v int)")
        run(client, "INSERT INTO t VALUES (1, 1), (2, 2)")
        first = last_commit(context)
        run(client, "UPDATE t SET v = 3 WHERE k = 2")
        second = last_commit(context)
        assert times(client) == {1: first, 2: second}
        for _ in range(5):  # the table is copied into memory meanwhile
            run(client, "SELECT * FROM t")
        assert times(client) == {1: first, 2: second}
        assert run(
            client, f"SELECT k FROM t FOR SYSTEM_TIME AS OF '{first}' WHERE _rw_timestamp = '{first}' ORDER BY k"
        )
        run(client, "SET atomic_transactions = on")
        run(client, "BEGIN")
        run(client, "UPDATE t SET v = 4 WHERE k = 1")
        assert times(client) == {1: None, 2: second}
        run(client, "COMMIT")
        assert times(client) == {1: last_commit(context), 2: second}


def test_rows_past_their_retention(tmp_path: Path) -> None:
    """Queries do not see them; views keep what they have, and while one reads the table its rows stay in the lake."""
    with opened(tmp_path / "lake") as (context, client):
        run(client, "CREATE TABLE t (k int, v int) APPEND ONLY WITH (retention_seconds = 3)")
        assert "WITH (retention_seconds = 3)" in str(run(client, "SHOW CREATE TABLE t"))
        run(client, "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS n FROM t")
        run(client, "CREATE INDEX i ON t (k)")
        run(client, "INSERT INTO t VALUES (1, 1), (2, 2)")
        assert times(client).keys() == {1, 2}
        assert wait_until(lambda: run(client, "SELECT k FROM t") == [], 10)
        run(client, "INSERT INTO t VALUES (3, 3)")
        assert run(client, "SELECT k FROM t WHERE k IN (1, 3)") == [(3,)]
        assert run(client, "SELECT a.v FROM t a JOIN t b ON a.k >= b.k WHERE b.k < 9") == [(3,)]
        expired = ExpiredRows(context.store)
        expired.run_once()
        context.coordinator.flush(lambda: False)
        assert run(client, "SELECT n FROM m") == [(3,)]
        with closing(context.lake.cursor()) as cursor:
            table = context.store.catalog.find("dev", "public", "t")
            assert table is not None
            stored = f"SELECT count(*) FROM {table.lake_name}"
            assert cursor.execute(stored).fetchall() == [(3,)]
            run(client, "DROP MATERIALIZED VIEW m")
            run(client, "DROP INDEX i")
            assert wait_until(lambda: expired.run_once() or cursor.execute(stored).fetchall() == [(0,)], 10)
    with opened(tmp_path / "lake") as (context, client):
        run(client, "INSERT INTO t VALUES (4, 4)")
        assert times(client).keys() == {4}
        assert wait_until(lambda: run(client, "SELECT k FROM t") == [], 10)


@pytest.mark.parametrize("append_only", [False, True])
def test_compaction_keeps_few_rows_of_many_writers(tmp_path: Path, append_only: bool) -> None:
    """Rows of many commits have times near their own in an append-only table, and none in another."""
    with opened(tmp_path / "lake") as (context, client):
        run(client, "CREATE TABLE t (k int, v int)" + " APPEND ONLY" * append_only)
        for k in range(MOST_RUNS + 20):
            run(client, f"INSERT INTO t VALUES ({k}, 0)")
        before = times(client)
        with closing(context.lake.cursor()) as cursor:
            with context.lake.transaction(cursor):
                compaction.flush(cursor, TABLE)
            with context.lake.transaction(cursor):
                files = [row[0] for row in cursor.execute(f"SELECT DISTINCT filename FROM {TABLE.sql}").fetchall()]
                found = [compaction.File(0, path, 0, 0, 0, False) for path in files]
                compaction.rewrite(cursor, TABLE, found, {TABLE: append_only})
            [(kept,)] = cursor.execute(f"SELECT count(*) FROM {MOVED}").fetchall()
        after = times(client)
    assert 0 < kept <= MOST_RUNS
    if append_only:
        assert all(before[k] <= after[k] <= before[min(k + 2, MOST_RUNS + 19)] for k in before)
    else:
        assert set(after.values()) == {None}
