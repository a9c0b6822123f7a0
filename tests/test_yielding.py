"""Backfills that give way to running views: the rule, its inputs, the share of a task, and a real server."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from sparkwave.catalog.lake.duckdb_threads import ALL_ROOM
from sparkwave.executor.backfill.pace import (
    DECREASE,
    LEAST_SHARE,
    QUIET_S,
    WHOLE,
    Barriers,
    Pace,
    next_pace,
    pause_s,
    reason,
)
from sparkwave.executor.epochs.barrier_times import BarrierTimes
from sparkwave.executor.spark.task_share import cores_of
from tests.servers import Server, descendants
from tests.servers import wait_until as wait

LATE, IN_TIME = Barriers(1, 180.0, 0.0), Barriers(1, 60.0, 0.0)


def after(pace: Pace, seen: Barriers, times: int, target_ms: int = 100) -> Pace:
    for _ in range(times):
        pace = next_pace(pace, seen, target_ms)
    return pace


def test_a_late_barrier_slows_at_once() -> None:
    assert next_pace(WHOLE, LATE, 100) == Pace(DECREASE, 180.0)
    assert reason(next_pace(WHOLE, LATE, 100), 100) == "slowed: views at 180 ms, target 100"
    assert reason(WHOLE, 100) is None


def test_a_backfill_never_stops() -> None:
    assert after(WHOLE, LATE, 1000).share == LEAST_SHARE


def test_barriers_in_time_give_the_share_back() -> None:
    slowed = after(WHOLE, LATE, 10)
    shares = [after(slowed, IN_TIME, times).share for times in range(101)]
    assert shares == sorted(shares)
    assert shares[99] < 1
    assert after(slowed, IN_TIME, 100) == WHOLE


def test_nobody_to_give_way_to() -> None:
    nobody = Barriers(0, 0.0, float("inf"))
    assert after(WHOLE, nobody, 1000) == WHOLE
    assert after(after(WHOLE, LATE, 10), Barriers(0, 0.0, QUIET_S + 1), 5) == WHOLE
    assert after(after(WHOLE, LATE, 10), Barriers(0, 0.0, QUIET_S - 1), 1000).share == LEAST_SHARE


def test_no_target_slows_nothing() -> None:
    assert after(WHOLE, LATE, 10, target_ms=0) == WHOLE
    assert next_pace(Pace(0.5, 180.0), LATE, 0) == WHOLE


def test_backfills_come_to_fair_shares() -> None:
    """Two that begin with different shares end with nearly the same, which is what AIMD is chosen for."""
    one, other = WHOLE, Pace(0.6, 180.0)
    for _ in range(20):
        is_late = one.share + other.share > 1.5
        one, other = (after(pace, LATE if is_late else IN_TIME, 1) for pace in (one, other))
        one, other = (after(pace, IN_TIME, 30) for pace in (one, other))
    assert abs(one.share - other.share) < 0.05


def test_pauses_in_process() -> None:
    assert pause_s(WHOLE, 0.3) == 0
    assert pause_s(Pace(0.5, 1.0), 0.3) == pytest.approx(0.3)
    assert pause_s(Pace(0.5, 1.0), 60.0) == 1.0


@pytest.mark.parametrize(
    ("cores", "share", "left"), [(8, 1.0, 8), (8, 0.99, 7), (8, 0.5, 4), (2, 0.9, 1), (2, 0.5, 1), (1, 0.5, 1)]
)
def test_cores_of_a_share(cores: int, share: float, left: int) -> None:
    found = cores_of(list(range(cores)), share)
    assert len(found) == left
    assert found[-1] == cores - 1


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_times_of_barriers() -> None:
    clock = Clock()
    times = BarrierTimes(clock)
    assert times.since(0) == (0, 0.0)
    assert times.quiet_s() == float("inf")
    for seconds, has_computed in ((0.2, True), (0.9, False), (0.1, True)):
        times.begin()
        clock.now += seconds
        times.end(has_computed)
    assert times.since(0) == (2, pytest.approx(0.2))
    assert times.since(100.5) == (1, pytest.approx(0.1))
    times.begin()
    clock.now += 5
    assert times.since(clock.now) == (0, pytest.approx(5.0))  # the running one
    times.leave_out()
    times.end(True)
    assert times.since(clock.now - 1) == (0, 0.0)
    assert times.quiet_s() == pytest.approx(5.0)


FOLLOWS = """
import os, sys, threading, time
from pathlib import Path
from sparkwave.executor.spark.task_share import Share
share, says = Path(sys.argv[1]), Path(sys.argv[2])
if os.fork():
    os.wait()
    sys.exit()
def cores():
    return {len(os.sched_getaffinity(int(thread))) for thread in os.listdir("/proc/self/task")}
seen = []
with Share(str(share)).followed():
    for text in ("", "0.5", ""):
        share.write_text(text) if text else share.unlink(missing_ok=True)
        time.sleep(0.5)
        seen.append(cores())
share.write_text("0.5")
with Share(str(share)).followed():
    time.sleep(0.5)
seen.append(cores())
says.write_text(repr(seen))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_process_follows_its_share(tmp_path: Path) -> None:
    says, cores = tmp_path / "says", len(os.sched_getaffinity(0))
    subprocess.run([sys.executable, "-c", FOLLOWS, str(tmp_path / "share"), str(says)], check=True, timeout=60)
    assert says.read_text() == repr([{cores}, {max(cores // 2, 1)}, {cores}, {cores}])


def one(connection: psycopg.Connection, query: str) -> object:
    row = connection.execute(query).fetchone()
    return row[0] if row else None


def wait_until(connection: psycopg.Connection, query: str, expected: object) -> None:
    deadline = time.monotonic() + 60
    while (found := one(connection, query)) != expected:
        assert time.monotonic() < deadline, (query, found)
        time.sleep(0.05)


class Changes:
    """Changes the table of a running view again and again, as long as entered."""

    def __init__(self, server: Server) -> None:
        self._server, self._is_over = server, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        with suppress(psycopg.OperationalError), self._server.connect() as own:  # the server may be killed
            while not self._is_over.wait(0.02):
                own.execute("INSERT INTO small VALUES (1)")
                own.execute("FLUSH")


REASON = "SELECT left(reason, 14) FROM rw_catalog.rw_backfill_status WHERE job_name = 'public.big'"
SHOWN = """
SELECT progress LIKE '%, slowed: views at % ms, target 1' AND state = 'RUNNING'
FROM rw_catalog.rw_ddl_progress, rw_catalog.rw_backfill_status
"""
EVENTS = """
SELECT string_agg(event_type, ' ' ORDER BY timestamp) FROM rw_catalog.rw_event_logs WHERE event_type LIKE 'BACKFILL%'
"""


def test_on_a_server(tmp_path: Path) -> None:
    """A limited backfill in process has fewer cores beside views, tells why, and has all of them again after."""
    server = Server(tmp_path / "data")
    with server.connect() as own:
        own.execute("CREATE TABLE small (k INT)")
        own.execute("CREATE MATERIALIZED VIEW running AS SELECT k, count(*) AS n FROM small GROUP BY k")
        own.execute("CREATE TABLE numbers AS SELECT i FROM generate_series(1, 20000) g(i)")
        own.execute("SET background_ddl = true")
        own.execute(
            "CREATE MATERIALIZED VIEW big WITH (backfill_rate_limit = 100, barrier_latency_target_ms = 1) "
            "AS SELECT i % 7 AS k, count(*) AS n FROM numbers GROUP BY 1"
        )
        wait_until(own, "SELECT state FROM rw_catalog.rw_backfill_status", "RUNNING")
        assert one(own, REASON) is None  # nobody to give way to
        with Changes(server):
            wait_until(own, REASON, "slowed: views ")
            wait_until(own, SHOWN, True)
            assert thread_cores(server) == {len(ALL_ROOM.cores), max(len(ALL_ROOM.cores) // 2, 1)}
            own.execute("ALTER MATERIALIZED VIEW big SET BARRIER_LATENCY_TARGET_MS = 0")
            wait_until(own, REASON, None)
            assert thread_cores(server) == {len(ALL_ROOM.cores)}
            own.execute("ALTER MATERIALIZED VIEW big SET BARRIER_LATENCY_TARGET_MS TO DEFAULT")
            own.execute("ALTER SYSTEM SET barrier_latency_target_ms = 1")
            wait_until(own, REASON, "slowed: views ")
            server.kill()
    server = Server(tmp_path / "data")
    with server.connect() as own:
        wait_until(own, REASON, None)
        own.execute("ALTER MATERIALIZED VIEW big SET BACKFILL_RATE_LIMIT = DEFAULT")
        own.execute("WAIT")
        assert one(own, "SELECT sum(n) FROM big") == 20000
        events = str(one(own, EVENTS)).split()
        assert events[:3] == ["BACKFILL_SLOWED", "BACKFILL_AT_FULL_SPEED", "BACKFILL_SLOWED"]
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="invalid value for barrier_latency_target_ms"):
            own.execute("CREATE MATERIALIZED VIEW x WITH (barrier_latency_target_ms = -1) AS SELECT 1 AS a")
        with pytest.raises(psycopg.errors.InvalidParameterValue, match="invalid value for barrier_latency_target_ms"):
            own.execute("ALTER MATERIALIZED VIEW big SET BARRIER_LATENCY_TARGET_MS = soon")
    server.stop()


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux" or len(os.sched_getaffinity(0)) < 2, reason="needs Linux and two cores")
def test_tasks_of_spark_follow(tmp_path: Path) -> None:
    """The process of a running task gets fewer cores beside views, and all of them again after; the rows are right."""
    server, rows, all_cores = Server(tmp_path / "data", fills_on_spark=True), 8_000_000, len(os.sched_getaffinity(0))
    query = "SELECT i % 2000000 AS k, count(*) AS n, min(i) AS low, max(i) AS high FROM numbers GROUP BY 1"
    with server.connect() as own:
        own.execute("CREATE TABLE small (k INT)")
        own.execute("CREATE MATERIALIZED VIEW running AS SELECT k, count(*) AS n FROM small GROUP BY k")
        own.execute(f"CREATE TABLE numbers AS SELECT i FROM generate_series(1, {rows}) g(i)")
        own.execute("CREATE MATERIALIZED VIEW first AS SELECT count(*) AS n FROM numbers")  # Spark has started
        own.execute("SET background_ddl = true")
        own.execute("ALTER SYSTEM SET barrier_latency_target_ms = 1")
        with Changes(server):
            own.execute(f"CREATE MATERIALIZED VIEW big AS {query}")
            assert wait(lambda: least_cores(server) < all_cores)
            assert one(own, REASON) == "slowed: views "
        own.execute("WAIT")
        assert least_cores(server) == all_cores
        assert one(own, "SELECT sum(n) FROM big") == rows
        assert one(own, "SELECT count(*) FROM big WHERE low <> k AND k > 0 OR high - low <> 6000000") == 0
    server.stop()


def thread_cores(server: Server) -> set[int]:
    """The numbers of cores that threads of a server may use; on systems that do not tell, 0."""
    found = set()
    for task in Path(f"/proc/{server.process.pid}/task").glob("*"):
        with suppress(OSError):
            found.add(len(os.sched_getaffinity(int(task.name))))
    return found or {0}


def least_cores(server: Server) -> int:
    """The fewest cores that any process of a server may use."""
    found = [len(os.sched_getaffinity(0))]
    for process in descendants(server.process.pid):
        with suppress(OSError):
            found.append(len(os.sched_getaffinity(process)))
    return min(found)
