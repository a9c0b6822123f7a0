"""Old snapshots are forgotten, those that somebody needs are not, and the lake becomes smaller."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from servers import DUCKDB_THREADS, wait_until, with_lake

from sparkwave.catalog.names import METADATA, LakeTable
from sparkwave.catalog.stores.epoch_store import stored_epoch
from sparkwave.executor.maintenance.background import Periodic
from sparkwave.executor.maintenance.retention import Pace, Retention
from sparkwave.server.context import Context, open_context
from sparkwave.server.dispatch import Client
from sparkwave.server.operations.config import Config

AT_ONCE = Pace(settle_s=0, files_s=0)


@contextmanager
def opened(directory: Path, **parameters: str) -> Iterator[tuple[Context, Client]]:
    """A server without sockets, whose views are filled in process and whose barriers run for FLUSH only."""
    config = Config(data=with_lake(directory), spark_start="on_demand", duckdb_threads=DUCKDB_THREADS)
    given = {"backfill_engine": "auto", "streaming_engine": "duckdb", "barrier_interval_ms": "3600000", **parameters}
    context = open_context(config, given)
    try:
        yield context, Client(context, {"user": "root"})
    finally:
        context.close()


def run(client: Client, *statements: str) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for sql in statements:
        result = client.execute(client.prepare(sql, ()), ())
        rows = [r for b in result.batches or () for r in zip(*(c.to_pylist() for c in b.columns), strict=True)]
    return rows


def retention(context: Context, milliseconds: int = 0) -> Retention:
    return Retention(context.store, context.coordinator, lambda: milliseconds, AT_ONCE)


def forget(context: Context, milliseconds: int = 0) -> None:
    for _ in range(2):  # what views in memory read goes the second time
        while retention(context, milliseconds).run_once():
            pass


def snapshots(context: Context) -> list[int]:
    query = f"SELECT snapshot_id FROM {METADATA}.ducklake_snapshot ORDER BY 1"
    return [snapshot for (snapshot,) in context.lake.cursor().execute(query).fetchall()]


def inlined_rows(context: Context, table: str) -> int:
    cursor = context.lake.cursor()
    names = cursor.execute(
        f"SELECT i.table_name FROM {METADATA}.ducklake_inlined_data_tables i "
        f"JOIN {METADATA}.ducklake_table t USING (table_id) WHERE t.table_name = '{table}'"
    ).fetchall()
    counts = [cursor.execute(f"SELECT count(*) FROM {METADATA}.{name}").fetchone() for (name,) in set(names)]
    return sum(count[0] for count in counts if count)


def size(context: Context) -> int:
    return sum(path.stat().st_size for path in context.lake.data_path.rglob("*.parquet"))


def check(client: Client, view: str, query: str) -> None:
    run(client, "FLUSH")
    assert sorted(run(client, f"SELECT * FROM {view}"), key=repr) == sorted(run(client, query), key=repr)


SUMS = "SELECT g, count(*) AS n, sum(v) AS total FROM t GROUP BY g"


def make_history(context: Context, client: Client) -> None:
    run(client, "CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
    run(client, "INSERT INTO t SELECT i, i % 5, i FROM range(20000) AS r (i)")
    run(client, f"CREATE MATERIALIZED VIEW sums AS {SUMS}")
    for number in range(8):
        run(client, f"UPDATE t SET v = v + 1 WHERE k = {number}", f"DELETE FROM t WHERE k = {100 + number}", "FLUSH")
        context.coordinator.checkpoints.run()
    run(client, "CREATE TABLE big (i int)", "INSERT INTO big SELECT i FROM range(50000) AS r (i)", "DROP TABLE big")
    run(client, "FLUSH")


def test_what_nobody_needs_goes(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as (context, client):
        make_history(context, client)
        before = (len(snapshots(context)), size(context), inlined_rows(context, "epoch"))
        for number in range(2):  # epochs are deleted by a snapshot, which outlives the first time
            run(client, f"UPDATE t SET v = v + 1 WHERE k = {number}", "FLUSH")
            forget(context)
        after = (len(snapshots(context)), size(context), inlined_rows(context, "epoch"))
        assert before[0] > 30
        assert after[0] <= 6  # the epoch, its checkpoint, and what others committed between these
        assert after[1] < before[1]
        assert before[2] > 8
        assert after[2] <= 3
        check(client, "sums", SUMS)
        run(client, "UPDATE t SET v = 0 WHERE k < 50", "DELETE FROM t WHERE g = 3")
        check(client, "sums", SUMS)
    with opened(tmp_path / "data") as (_, client):
        check(client, "sums", SUMS)


@pytest.mark.long
def test_what_clients_go_on_reading_stays(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as (context, client):
        make_history(context, client)
        # More than one file, of which the cursor has opened the first only.
        run(client, "CREATE TABLE wide (i int, s varchar)")
        for part in range(4):
            run(client, f"INSERT INTO wide SELECT {part}, repeat(i::varchar, 40) FROM range(50000) AS r (i)")
        reader = Client(context, {"user": "root"})
        run(reader, "BEGIN READ ONLY")
        run(client, "DECLARE c CURSOR FOR SELECT * FROM wide")
        first = run(client, "FETCH c")
        others = Client(context, {"user": "root"})
        run(others, "DELETE FROM t WHERE g = 1", "DROP TABLE wide", "FLUSH")
        forget(context)
        assert len(first + run(client, "FETCH ALL c")) == 200_000
        assert run(reader, "SELECT count(*) FROM t") == [(19_992,)]
        run(client, "CLOSE c")
        run(reader, "COMMIT")
        assert context.lake.pinned == []
        run(others, "FLUSH")
        forget(context)
        assert len(snapshots(context)) <= 3


@pytest.mark.long
def test_young_snapshots_stay(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as (context, client):
        make_history(context, client)
        before = snapshots(context)
        forget(context, milliseconds=600_000)
        assert snapshots(context) == before
        forget(context, milliseconds=1)
        assert len(snapshots(context)) <= 3


def test_a_creating_job_keeps_its_snapshot_and_change_log(tmp_path: Path) -> None:
    """One that is paused, while its upstream changes and other views follow, and the server restarts in between."""
    with opened(tmp_path / "data") as (context, client):
        make_history(context, client)
        run(client, "SET background_ddl = true")
        run(client, f"CREATE MATERIALIZED VIEW paused WITH (backfill_rate_limit = 0) AS {SUMS}")
        assert wait_until(lambda: any(job.snapshot is not None for job in context.store.catalog.jobs), 20)
        pinned = min(job.snapshot for job in context.store.catalog.jobs if job.snapshot is not None)
        for number in range(5):
            run(client, f"UPDATE t SET v = 7 WHERE k = {number}", f"DELETE FROM t WHERE k = {200 + number}", "FLUSH")
            forget(context)
        assert snapshots(context)[0] == pinned
    with opened(tmp_path / "data") as (context, client):
        forget(context)
        assert snapshots(context)[0] == pinned
        run(client, "ALTER MATERIALIZED VIEW paused SET BACKFILL_RATE_LIMIT = DEFAULT", "WAIT")
        check(client, "paused", SUMS)
        check(client, "sums", SUMS)
        for _ in range(3):  # the times of what expires are kept, by a commit
            run(client, "FLUSH")
            forget(context)
        assert snapshots(context)[0] > pinned
        assert len(snapshots(context)) <= 3
        run(client, "UPDATE t SET v = 9 WHERE k < 20")
        check(client, "paused", SUMS)


@pytest.mark.long
def test_views_that_have_not_followed_keep_what_they_need(tmp_path: Path) -> None:
    """No barrier runs: the changes since the last one are still there for it."""
    with opened(tmp_path / "data") as (context, client):
        make_history(context, client)
        run(client, "FLUSH")
        epoch = stored_epoch(context.lake.cursor()).snapshot
        for number in range(6):
            run(client, f"UPDATE t SET v = {number} WHERE k = {number}", f"DELETE FROM t WHERE k = {300 + number}")
        forget(context)
        assert snapshots(context)[0] <= max(epoch, stored_epoch(context.lake.cursor()).snapshot)
        check(client, "sums", SUMS)


def test_an_idle_lake_comes_to_rest(tmp_path: Path) -> None:
    """Changes that no view reads move the stored epoch on once, and then nothing makes snapshots any more."""
    with opened(tmp_path / "data") as (context, client):
        run(client, "CREATE TABLE unread (k int)")
        for number in range(10):
            run(client, f"INSERT INTO unread VALUES ({number})")
        for _ in range(3):  # the last change expires later, and its time is kept
            run(client, "FLUSH")
            for _ in range(5):
                forget(context)
        last = snapshots(context)
        assert len(last) <= 3
        run(client, "FLUSH")
        for _ in range(5):
            forget(context)
        assert snapshots(context)[-1] == last[-1]


def test_no_transaction_stays_open(tmp_path: Path) -> None:
    """One would keep all that others change in memory, and the catalog's log from being taken into its file."""
    with opened(tmp_path / "data") as (context, client):
        run(
            client, "CREATE TABLE t (k int PRIMARY KEY, v int)", "CREATE MATERIALIZED VIEW sums AS SELECT sum(v) FROM t"
        )
        run(client, "INSERT INTO t VALUES (1, 1)", "FLUSH", "SELECT * FROM sums", "SHOW TABLES")
        context.lake.cursor().execute(f"CHECKPOINT {METADATA}")
        copied = "SELECT count(*) FROM rw_catalog.rw_serving_cache"
        assert wait_until(lambda: bool(run(client, "SELECT * FROM t")) and run(client, copied) == [(1,)])
        run(client, "UPDATE t SET v = 2", "SELECT * FROM t", "CREATE SUBSCRIPTION s FROM t WITH (retention = '1h')")
        run(client, "DECLARE c SUBSCRIPTION CURSOR FOR s FULL", "FETCH c", "FETCH c")
        context.lake.cursor().execute(f"CHECKPOINT {METADATA}")


@pytest.mark.long
def test_a_reader_goes_on(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as (context, client):
        make_history(context, client)
        reader = context.lake.cursor()
        reader.execute("BEGIN")
        total = 'SELECT count(*), sum(v) FROM lake."dev.public".t'
        expected = reader.execute(total).fetchone()
        run(client, "DELETE FROM t WHERE g = 2", "FLUSH")
        keeps_files = Retention(context.store, context.coordinator, lambda: 0, Pace(settle_s=0))
        keeps_files.run_once()
        assert reader.execute(total).fetchone() == expected
        reader.execute("ROLLBACK")


@pytest.mark.long
def test_a_long_write_keeps_the_snapshots_since_its_start(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as (context, client):
        make_history(context, client)
        writer = context.lake.cursor()
        with context.lake.table_transaction(writer, LakeTable("dev.public", "t")):
            writer.execute('INSERT INTO lake."dev.public".t VALUES (-1, 0, 0)')
            at_start = snapshots(context)[-1]
            with ThreadPoolExecutor(1) as other:  # a thread that holds a table's lock waits for nobody
                other.submit(run, client, "CREATE TABLE o (k int)", "INSERT INTO o VALUES (1)", "FLUSH").result()
                other.submit(forget, context).result()
            assert at_start in snapshots(context)
        check(client, "sums", SUMS)


@pytest.mark.long
def test_the_thread_works_and_stops(tmp_path: Path) -> None:
    with opened(tmp_path / "data") as (context, client):
        make_history(context, client)
        run(client, "FLUSH")
        background = Periodic("retention", lambda: 0.05, retention(context).run_once)
        background.start()
        assert wait_until(lambda: len(snapshots(context)) <= 3, 20)
        check(client, "sums", SUMS)
        started = time.monotonic()
        background.stop()
        assert time.monotonic() - started < 5


def test_an_error_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    rounds: list[int] = []

    def fail() -> bool:
        rounds.append(1)
        raise OSError("the disk is gone")

    background = Periodic("retention", lambda: 0.05, fail)
    with caplog.at_level(logging.ERROR, "sparkwave.executor.maintenance.background"):
        background.start()
        assert wait_until(lambda: len(rounds) > 3, 10)
        background.stop()
    assert len(caplog.records) == 1


@pytest.mark.parametrize(("value", "is_allowed"), [("0", True), ("600000", True), ("599999", False), ("-1", False)])
def test_the_parameter(tmp_path: Path, value: str, is_allowed: bool) -> None:
    with opened(tmp_path / "data") as (_, client):
        statement = f"ALTER SYSTEM SET time_travel_retention_ms = {value}"
        if is_allowed:
            run(client, statement)
            return
        with pytest.raises(Exception, match="time_travel_retention_ms"):
            run(client, statement)
