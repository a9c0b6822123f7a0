"""A call to Spark that runs for too long is said, and no longer when it has ended."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from servers import PATIENCE_SECONDS, Server, java_processes, rows, wait_until, with_lake
from test_behind import STATES, large_and_small

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.spark.spark_calls import SparkCalls


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    lake = Lake(Storage(with_lake(tmp_path / "lake")))
    yield Store(lake)
    lake.close()


def events(store: Store) -> list[Any]:
    query = "SELECT job_id, info FROM lake.sparkwave.events WHERE event_type = 'SPARK_CALL_SLOW'"
    return [(job_id, json.loads(info)) for job_id, info in store.lake.cursor().execute(query).fetchall()]


def test_a_slow_call(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    said: list[str] = []
    unsaid: list[str] = []
    calls = SparkCalls(store, lambda: 0.2)
    calls.stop()  # the test looks itself
    with calls.watched(7, "slice", said.append, unsaid.append):
        calls.look()
        assert (said, caplog.messages, events(store)) == ([], [], [])
        time.sleep(0.25)
        calls.look()
        calls.look()
        # The reason again and again, since others may be said in between; the event once, the line seldom.
        assert len(said) == 2 and set(said) == {said[0]}
        assert said[0].startswith("Spark has been running the slice since ")
        assert caplog.messages == ["the slice on Spark has been running for 0 s"]
        assert events(store) == [(7, {"step": "slice", "seconds": 0, "slow_spark_call_secs": 0.2})]
        time.sleep(0.5)
        calls.look()
        assert len(caplog.messages) == 2
        assert unsaid == []
    assert unsaid == [said[0]]
    calls.look()
    assert (len(said), len(events(store))) == (3, 1)


def test_a_spark_that_does_not_answer(store: Store) -> None:
    """That is said whatever the limit is, and taken back when it answers again."""
    said: list[str] = []
    unsaid: list[str] = []
    silent_since: list[datetime] = []
    calls = SparkCalls(store, lambda: 300)
    calls.stop()
    with calls.watched(7, "slice", said.append, unsaid.append, lambda: next(iter(silent_since), None)):
        calls.look()
        assert said == []
        silent_since.append(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))
        calls.look()
        assert said == ["Spark has not answered since 03:04:05 UTC"]
        silent_since.clear()
        calls.look()
        assert unsaid == said
    assert len(unsaid) == 1
    assert events(store) == []


def test_who_holds_others_up_gives_up(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """Once, when Spark does not answer, however long it may run."""
    silent_since: list[datetime] = []
    given_up: list[bool] = []
    calls = SparkCalls(store, lambda: 0)
    calls.stop()
    silence = lambda: next(iter(silent_since), None)  # noqa: E731
    with calls.watched(7, "epoch", silent_since=silence, give_up=lambda: given_up.append(True)):
        calls.look()
        assert given_up == []
        silent_since.append(datetime.now(UTC))
        calls.look()
        calls.look()
    assert given_up == [True]
    assert caplog.messages == ["the epoch on Spark is given up: Spark does not answer"]


def test_no_limit(store: Store) -> None:
    said: list[str] = []
    calls = SparkCalls(store, lambda: 0)
    calls.stop()
    with calls.watched(7, "slice", said.append):
        time.sleep(0.05)
        calls.look()
    assert said == []


@pytest.mark.spark
@pytest.mark.long
def test_a_spark_that_hangs(tmp_path: Path) -> None:
    """A backfill whose Spark is stopped says so where one looks, and nothing of it when it has gone on."""
    server = Server(tmp_path / "data", fills_on_spark=True, spark_start="eager")
    status = "SELECT state, reason FROM rw_catalog.rw_backfill_status"
    try:
        with server.connect() as session:
            session.execute("ALTER SYSTEM SET slow_spark_call_secs = 1000")
            session.execute("ALTER SYSTEM SET backfill_slice_rows = 100000")
            session.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
            session.execute("INSERT INTO t SELECT i, i % 7 FROM range(1000000) AS r (i)")
            session.execute("SET background_ddl = true")
            session.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b")
            done = "SELECT rows_done > 0 FROM rw_catalog.rw_backfill_status"
            assert wait_until(lambda: rows(session, done) == [(True,)], 120)
            [spark] = java_processes(server.data)
            os.kill(spark, signal.SIGSTOP)
            try:
                assert wait_until(lambda: "Spark has not answered" in str(rows(session, status)), 10)
                assert [state for state, _ in rows(session, status)] == ["WAITING"]
                session.execute("ALTER SYSTEM SET slow_spark_call_secs = 2")
                wanted = "SELECT info->>'step' FROM rw_catalog.rw_event_logs WHERE event_type = 'SPARK_CALL_SLOW'"
                assert wait_until(lambda: set(rows(session, wanted)) == {("slice",)}, 10)
            finally:
                os.kill(spark, signal.SIGCONT)
            assert wait_until(lambda: "not answered" not in str(rows(session, status)), 20)
            session.execute("WAIT")
            assert rows(session, "SELECT sum(n) FROM v") == [(1_000_000,)]
        assert "the slice on Spark has been running for" in server.log()
        assert "[job_id=" in server.log()
    finally:
        server.kill()


@pytest.mark.spark
@pytest.mark.long
def test_nobody_waits_for_a_spark_that_hangs(tmp_path: Path) -> None:
    """CANCEL ends a Spark that does not answer, and so does SIGTERM; after the first one the next view gets another."""
    server = Server(tmp_path / "data", fills_on_spark=True, spark_start="eager")
    done = "SELECT rows_done > 0 FROM rw_catalog.rw_backfill_status"
    view = "CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n FROM t GROUP BY b"
    try:
        with server.connect() as session:
            session.execute("ALTER SYSTEM SET backfill_slice_rows = 100000")
            session.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
            session.execute("INSERT INTO t SELECT i, i % 7 FROM range(2000000) AS r (i)")
            session.execute("SET background_ddl = true")
            for is_first in (True, False):
                session.execute(view)
                assert wait_until(lambda: rows(session, done) == [(True,)], 120)
                [spark] = java_processes(server.data)
                os.kill(spark, signal.SIGSTOP)
                time.sleep(1)  # it may be answering just then
                started = time.monotonic()
                if is_first:
                    [(job,)] = rows(session, "SELECT ddl_id FROM rw_catalog.rw_ddl_progress")
                    session.execute(f"CANCEL JOBS {job}")
                    assert time.monotonic() - started < 5
                    assert rows(session, "SELECT * FROM rw_catalog.rw_ddl_progress") == []
                else:
                    server.stop()
                    assert time.monotonic() - started < 12
        assert java_processes(server.data) == []
        assert server.log().count("resource group default has not answered for") == 2
    finally:
        server.kill()


@pytest.mark.spark
@pytest.mark.long
def test_an_epoch_does_without_a_spark_that_hangs(tmp_path: Path) -> None:
    """The view that Spark computes is set apart with the reason; the others go on, and it does when Spark has."""
    server = Server(tmp_path / "data", spark_start="eager")
    try:
        with server.connect() as own:
            large_and_small(own)
            assert wait_until(lambda: java_processes(server.data) != [], 60)
            own.execute("INSERT INTO large_t SELECT i, i % 5 FROM range(1000) AS r (i)")
            own.execute("FLUSH")
            assert rows(own, "SELECT sum(n)::int FROM large") == [(1000,)]
            own.execute("INSERT INTO large_t SELECT i, i % 5 FROM range(1000, 1000000) AS r (i)")
            time.sleep(0.1)  # Spark computes, or is about to
            [spark] = java_processes(server.data)
            os.kill(spark, signal.SIGSTOP)
            stopped = time.monotonic()
            try:
                for n in range(5):
                    own.execute(f"INSERT INTO small_t VALUES ({n}, {n})")
                    assert wait_until(lambda: rows(own, f"SELECT g FROM small WHERE g = {n}") == [(n,)], 12)  # noqa: B023
                    [large, small] = rows(own, STATES)
                    assert small == ("small", "FOLLOWING", None)
                    assert large[1] == "BEHIND" and large[2].startswith("Spark has not answered since ")
                assert time.monotonic() - stopped < 20
                assert java_processes(server.data) == [spark]
            finally:
                os.kill(spark, signal.SIGCONT)
            caught_up = lambda: rows(own, "SELECT sum(n)::int FROM large") == [(1000000,)]  # noqa: E731
            assert wait_until(caught_up, PATIENCE_SECONDS), (rows(own, STATES), server.log())
            assert [state for _, state, _ in rows(own, STATES)] == ["FOLLOWING", "FOLLOWING"]
    finally:
        server.kill()


@pytest.mark.spark
@pytest.mark.long
def test_a_spark_that_is_killed(tmp_path: Path) -> None:
    """A backfill says so, says it no longer once another Spark has come, and ends with the right rows."""
    server = Server(tmp_path / "data", spark_start="eager")
    status = "SELECT state, reason FROM rw_catalog.rw_backfill_status"
    done = "SELECT rows_done FROM rw_catalog.rw_backfill_status"
    try:
        with server.connect() as own:
            own.execute("ALTER SYSTEM SET backfill_slice_rows = 100000")
            own.execute("CREATE TABLE t (a int PRIMARY KEY, b int)")
            own.execute("INSERT INTO t SELECT i, i % 7 FROM range(1500000) AS r (i)")
            own.execute("SET background_ddl = true")
            own.execute("CREATE MATERIALIZED VIEW v AS SELECT b, count(*) AS n, sum(a) AS s FROM t GROUP BY b")
            assert wait_until(lambda: bool(rows(own, done)[0][0]), 120)  # NULL while Spark starts
            [spark] = java_processes(server.data)
            os.kill(spark, signal.SIGKILL)
            [(before,)] = rows(own, done)
            assert wait_until(lambda: "Spark has gone" in str(rows(own, status)), 20)
            assert rows(own, status)[0][0] == "RETRYING"
            assert wait_until(lambda: rows(own, status) == [("RUNNING", None)], 60)
            assert rows(own, done)[0][0] >= before
            assert java_processes(server.data) not in ([], [spark])
            own.execute("WAIT")
            assert rows(own, "SELECT * FROM v EXCEPT SELECT b, count(*), sum(a) FROM t GROUP BY b") == []
            assert rows(own, "SELECT count(*)::int, sum(n)::int FROM v") == [(7, 1500000)]
    finally:
        server.kill()
