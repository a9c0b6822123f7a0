"""What a creating job does when something else breaks: its Spark, an executor, the disk, a file, its own query."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from crashes import check_files
from servers import PATIENCE_SECONDS, Server, command_line, descendants, java_processes, wait_until
from test_law import check, run, without_epochs

from sparkwave.catalog.errors import Error
from sparkwave.executor.backfill import creation, job_engines, snapshot
from sparkwave.executor.epochs import advance
from sparkwave.executor.epochs.duckdb_engine import DuckDBEngine
from sparkwave.executor.spark import groups
from sparkwave.executor.spark.spark_engine import SparkEngine
from sparkwave.server.context import Context, open_context
from sparkwave.server.dispatch import Client
from sparkwave.server.operations.config import Config

pytestmark = pytest.mark.timeout(900)

ROWS = 24_000
SERIES = "SELECT k, i FROM (SELECT k, generate_series(1, 500) AS i FROM r) AS s WHERE i > 499"
SUMS = "SELECT g, count(*) AS n, max(i) AS i FROM (SELECT g, generate_series(1, 500) AS i FROM r) AS s GROUP BY g"
FILLS = {"snapshot": SUMS, "arrangement": SUMS, "no_shuffle": SERIES}
FAILURES = "SELECT event_type, info FROM rw_catalog.rw_event_logs WHERE event_type NOT LIKE 'RESOURCE_GROUP%'"
STATES = "SELECT state, reason FROM rw_catalog.rw_backfill_status"


@contextmanager
def opened(directory: Path, master: str | None = None, **parameters: str) -> Iterator[tuple[Context, Client]]:
    """A server's parts in this process, on a table whose backfill takes a few steps on Spark."""
    config = Config(data=directory, spark_start="on_demand", spark_cores=2, spark_memory_mib=1024, spark_master=master)
    patient = {"serverless_backfill_provision_timeout": str(PATIENCE_SECONDS)}
    context = open_context(config, {"barrier_interval_ms": "100", **patient, **parameters})
    try:
        client = Client(context, {"user": "root"})
        run(client, "CREATE TABLE r (k int PRIMARY KEY, g int, v int)")
        run(client, f"INSERT INTO r SELECT i, i % 5, i FROM range({ROWS}) AS x (i)")
        run(client, f"ALTER SYSTEM SET backfill_slice_rows = {ROWS // 6}")
        run(client, "SET background_ddl = true")
        yield context, client
    finally:
        context.close()


def create(client: Client, strategy: str, query: str, options: str = "", name: str = "made") -> None:
    run(client, f"CREATE MATERIALIZED VIEW {name} WITH (backfill_strategy = '{strategy}'{options}) AS {query}")


def finished(context: Context) -> set[tuple[object, ...]]:
    """The committed steps of the one job, with their times."""
    return set(context.lake.cursor().execute("FROM lake.sparkwave.finished_slices").fetchall())


def wait_for_a_step(context: Context) -> None:
    """Some are finished and another one is being made."""

    def is_working() -> bool:
        return bool(finished(context)) and any(job._work.controls._interrupts for job in context.jobs._running.values())

    assert wait_until(is_working, PATIENCE_SECONDS)
    time.sleep(0.3)


def check_made(context: Context, client: Client, query: str) -> None:
    """The job ends, and the view is right and follows its table."""
    run(client, "WAIT")
    run(client, f"INSERT INTO r VALUES ({ROWS}, 3, 7)")
    context.coordinator.flush(lambda: False)
    check(client, {"made": query}, "made")


def remains(context: Context, job: int) -> list[Path]:
    """The files of a job that is no more."""
    return [*context.lake.data_path.glob(f"**/job_{job}"), *context.lake.staging_path.iterdir()]


# Processes.


DEATHS = [(strategy, group) for strategy in FILLS for group in ("default", "serverless")]


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize(("strategy", "group"), DEATHS)
def test_death_of_the_application(tmp_path: Path, strategy: str, group: str) -> None:
    """Another application goes on from the cursor; what was finished stays, and only one node is listed for each."""
    parameters = {"serverless_backfill_enabled": "true", "serverless_backfill_sku": "1c2g", "backfill_engine": "spark"}
    with opened(tmp_path / "lake", **parameters) as (context, client):
        create(client, strategy, FILLS[strategy], f", cloud.serverless_backfill_enabled = {group == 'serverless'}")
        wait_for_a_step(context)
        before, killed = finished(context), java_processes(context.lake.directory)
        for pid in killed:
            os.kill(pid, signal.SIGKILL)

        def has_one_successor() -> bool:
            successors = java_processes(context.lake.directory)
            return len(successors) == 1 and successors != killed

        nodes = "SELECT state FROM rw_catalog.rw_worker_nodes"
        # Of a serverless group both are gone when the view is made.
        assert wait_until(has_one_successor, PATIENCE_SECONDS)
        assert wait_until(lambda: run(client, nodes) == [("RUNNING",)], PATIENCE_SECONDS)
        assert wait_until(lambda: finished(context) > before, PATIENCE_SECONDS)
        check_made(context, client, FILLS[strategy])
        assert before < finished(context)
    assert wait_until(lambda: not java_processes(context.lake.directory), 10)
    check_files(tmp_path / "lake")


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("strategy", FILLS)
def test_death_of_an_executor(tmp_path: Path, caplog: pytest.LogCaptureFixture, strategy: str) -> None:
    """Spark makes its tasks again by itself: no step of the job fails."""
    caplog.set_level(logging.WARNING, "sparkwave.executor")
    with opened(tmp_path / "lake", "local-cluster[2,1,1024]", backfill_engine="spark") as (context, client):
        create(client, strategy, FILLS[strategy])
        wait_for_a_step(context)
        application, *executors = java_processes(context.lake.directory)
        assert len(executors) == 2
        assert all(any(b"ExecutorBackend" in part for part in command_line(pid)) for pid in executors)
        os.kill(executors[0], signal.SIGKILL)
        check_made(context, client, FILLS[strategy])
        started = descendants(application)
    assert "attempt" not in caplog.text
    assert wait_until(lambda: all(command_line(pid) == [b""] for pid in (application, *started)), 15)
    check_files(tmp_path / "lake")


@pytest.mark.spark
@pytest.mark.long
def test_an_application_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as dead after a while, and another one goes on."""
    monkeypatch.setattr(groups, "WATCH_SECONDS", 0.5)
    monkeypatch.setattr(groups, "HANG_SECONDS", 5.0)
    with opened(tmp_path / "lake", backfill_engine="spark") as (context, client):
        create(client, "snapshot", FILLS["snapshot"])
        wait_for_a_step(context)
        [application] = java_processes(context.lake.directory)
        os.kill(application, signal.SIGSTOP)
        check_made(context, client, FILLS["snapshot"])
        assert application not in java_processes(context.lake.directory)
    check_files(tmp_path / "lake")


# The disk.


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 192 MiB in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=192m", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("file systems cannot be mounted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


def free(disk: Path) -> int:
    return shutil.disk_usage(disk).free


# Six million rows that do not compress: more than the disk has room for.
LARGE = (
    "SELECT k, i, (k::bigint * k * 7919 + i * i * k * 104729) % 100000007 AS a, "
    "(k::bigint * k * 104729 + i * i * k * 7919) % 100000037 AS b "
    "FROM (SELECT k, generate_series(1, 30)::bigint AS i FROM t) AS s"
)
DISKS = [("snapshot", "spark"), ("arrangement", "auto"), ("arrangement", "spark"), ("no_shuffle", "spark")]


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize(("strategy", "engine"), DISKS)
def test_full_disk(small_disk: Path, strategy: str, engine: str) -> None:
    """The job says why it failed and gives back all that it took; others go on; with room enough it succeeds."""
    server = Server(small_disk / "data", fills_on_spark=True)
    try:
        with server.connect() as own:
            own.execute("CREATE TABLE t (k int PRIMARY KEY, g int)")
            own.execute("INSERT INTO t SELECT i, i % 20 FROM range(200000) AS r (i)")
            own.execute(f"ALTER SYSTEM SET backfill_engine = {engine}")
            own.execute("ALTER SYSTEM SET streaming_duckdb_max_rows = 1000000")
            own.execute("CREATE MATERIALIZED VIEW other AS SELECT g, count(*) AS n FROM t GROUP BY g")
            ballast = small_disk / "ballast"
            ballast.write_bytes(bytes(free(small_disk) - (12 << 20)))
            before = free(small_disk)
            create_large = f"CREATE MATERIALIZED VIEW large WITH (backfill_strategy = '{strategy}') AS {LARGE}"
            with pytest.raises(psycopg.errors.DiskFull, match="No space left on device"):
                own.execute(create_large)
            assert free(small_disk) > before - (1 << 20)
            assert own.execute("SHOW JOBS").fetchall() == []
            [(event, info)] = own.execute(FAILURES).fetchall()
            assert event == "CREATE_STREAM_JOB_FAIL"
            assert "No space left on device" in info["error"]
            own.execute("INSERT INTO t VALUES (-1, 3)")
            own.execute("FLUSH")
            assert own.execute("SELECT sum(n)::int FROM other").fetchone() == (200_001,)
            with pytest.raises(psycopg.errors.DiskFull):
                own.execute("INSERT INTO t SELECT hash(i) % 2000000000, i FROM range(6000000) AS r (i)")
            assert free(small_disk) > before - (1 << 20)
            ballast.unlink()
            own.execute(create_large)
            assert own.execute("SELECT count(*) FROM large").fetchone() == (200_001 * 30,)
        assert server.stop() == 0
        assert server.log().count("attempt 3: ") == 1
        check_files(server.data)
    finally:
        server.kill()


def test_a_catalog_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A job that is given up meanwhile is removed as soon as it can be."""
    with opened(tmp_path / "lake", backfill_engine="auto") as (context, client):
        create(client, "arrangement", SUMS, ", backfill_rate_limit = 0")
        [job] = [job.id for job in context.store.catalog.jobs]
        drop, failures = creation.drop_relation, [duckdb.IOException("No space left on device")] * 2

        def drop_relation(*arguments: object) -> None:
            if failures:
                raise failures.pop()
            drop(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(creation, "drop_relation", drop_relation)
        assert run(client, f"CANCEL JOBS {job}") == [(str(job),)]
        assert not failures
        assert caplog.text.count("cannot be removed yet: No space left on device") == 2
        assert context.store.catalog.jobs == ()


# Files and queries.


def upstream_file(context: Context, table: str = "r") -> Path:
    [path] = context.lake.data_path.glob(f"*/{table}/*.parquet")
    return path


def states_until(client: Client, is_over: Callable[[], bool]) -> set[tuple[object, ...]]:
    """The states of the jobs, and their reasons, that were seen meanwhile."""
    seen: set[tuple[object, ...]] = set()
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_over():
        assert time.monotonic() < deadline, seen
        seen |= set(run(client, STATES))
    return seen


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("strategy", FILLS)
def test_a_step_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    """Once: it is tried again. Always: the job fails and says why. Other views go on, jobs are created."""
    with opened(tmp_path / "lake", backfill_engine="spark") as (context, client):
        run(client, "CREATE TABLE w (k int PRIMARY KEY, v numeric(38, 0))")
        run(client, "CREATE MATERIALIZED VIEW other AS SELECT k + 1 AS l FROM w")
        file, query = upstream_file(context), FILLS[strategy]
        check_retried(context, client, file, strategy, query, monkeypatch)
        with missing(file):
            check_failure(context, client, strategy, query, "", file.name)
        check_failure(context, client, strategy, query, "", file.name, missing(file))
        run(client, f"INSERT INTO w SELECT i, {'9' * 38} FROM range(3) AS x (i)")
        if strategy != "no_shuffle":  # a map makes NULL of what would be an error
            check_failure(context, client, strategy, "SELECT sum(v) AS n FROM w", "22003", "")
        context.coordinator.flush(lambda: False)
        assert run(client, "SELECT count(*) FROM other") == [(3,)]


def check_retried(
    context: Context, client: Client, file: Path, strategy: str, query: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step does not find the upstream's file once, and then it does."""
    away, engine = file.with_name("away"), job_engines.spark_engine

    def without_file(*arguments: Any) -> AbstractContextManager[SparkEngine]:
        monkeypatch.setattr(job_engines, "spark_engine", engine)
        file.rename(away)
        return engine(*arguments)

    monkeypatch.setattr(job_engines, "spark_engine", without_file)
    create(client, strategy, query)
    states_until(client, lambda: any(state == "RETRYING" for state, _ in run(client, STATES)))
    away.rename(file)
    seen = states_until(client, lambda: not run(client, STATES))
    assert {state for state, _ in seen} <= {"RETRYING", "PROVISIONING", "RUNNING", "CATCHING UP", "FINISHING"}
    context.coordinator.flush(lambda: False)
    check(client, {"made": query}, strategy)
    run(client, "DROP MATERIALIZED VIEW made")


@contextmanager
def missing(file: Path) -> Iterator[None]:
    """A file that is not found, however often it is tried."""
    away = file.with_name("away")
    file.rename(away)
    try:
        yield
    finally:
        away.rename(file)


def check_failure(
    context: Context, client: Client, strategy: str, query: str, sqlstate: str, reason: str,
    started: AbstractContextManager[None] | None = None,
) -> None:  # fmt: skip
    """A CREATE that fails, with its reason in the error and the event log, and leaves nothing.

    `started` happens once the job has started, and makes the wait for it fail; otherwise it does not get so far.
    """
    with pytest.raises(Error) as caught:
        create(client, strategy, query)
        with started or nullcontext():
            run(client, "WAIT MATERIALIZED VIEW made")
    assert reason in caught.value.message
    assert caught.value.sqlstate.startswith(sqlstate)
    events = "SELECT job_id, info FROM lake.sparkwave.events WHERE event_type = 'CREATE_STREAM_JOB_FAIL'"
    [*_, (job, info)] = context.lake.cursor().execute(f"{events} ORDER BY happened_at").fetchall()
    assert json.loads(info)["error"] == caught.value.message
    assert run(client, "SHOW JOBS") == []
    assert remains(context, job) == []
    assert run(client, "SELECT name FROM rw_catalog.rw_relations WHERE name = 'made'") == []


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("strategy", ["snapshot", "no_shuffle"])
def test_a_step_that_fails_after_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strategy: str) -> None:
    """It is not made again: the files that it wrote are the lake's by then."""
    failures = []

    def fail_once(step: Callable[..., None], *arguments: Any) -> None:
        """Fail as a disk may that is asked to delete, once the rows have been registered."""
        if not failures:
            failures.append(OSError(errno.EIO, "Input/output error"))
            raise failures[0]
        step(*arguments)

    monkeypatch.setattr(advance, "MIN_FILE_ROWS", 1)
    for module in (snapshot, advance):
        monkeypatch.setattr(module, "delete_unused", partial(fail_once, module.delete_unused))
    with opened(tmp_path / "lake", backfill_engine="spark") as (context, client):
        create(client, strategy, SERIES)
        assert wait_until(lambda: bool(failures), PATIENCE_SECONDS)
        before = finished(context)
        assert before, "the first step is committed"
        check_made(context, client, SERIES)
        assert before < finished(context)
        assert len({row[:3] for row in finished(context)}) == len(finished(context))


@pytest.mark.long
def test_a_broken_view_fails_no_job(tmp_path: Path) -> None:
    """Barriers fail until the view is marked failed; a job that waits for one waits longer."""
    with opened(tmp_path / "lake", backfill_engine="auto") as (context, client):
        run(client, "CREATE TABLE t (k int, v int)")
        run(client, "INSERT INTO t SELECT i, i FROM range(1000) AS x (i)")
        run(client, "CREATE MATERIALIZED VIEW broken AS SELECT v % 7 AS g, max(k) AS k FROM t GROUP BY v % 7")
        run(client, "WAIT")
        with without_epochs(context):
            create(client, "arrangement", "SELECT g, sum(v) AS s FROM r GROUP BY g")
            assert wait_until(lambda: [state for state, _ in run(client, STATES)] == ["FINISHING"], 20)
            run(client, "DELETE FROM t WHERE k = 7")  # so that the rows of a group are read again
            upstream_file(context, "t").write_bytes(b"rubbish")
        run(client, "WAIT")
        check(client, {"made": "SELECT g, sum(v) AS s FROM r GROUP BY g"}, "made")
        context.coordinator.flush(lambda: False)
        with pytest.raises(Error, match='"broken" has failed'):
            run(client, "SELECT * FROM broken")


@pytest.mark.long
def test_a_full_disk_fails_no_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Views that cannot advance for want of room are not marked failed: they catch up when there is some."""
    with opened(tmp_path / "lake", backfill_engine="auto") as (context, client):
        run(client, "CREATE MATERIALIZED VIEW made AS SELECT k, v + 1 AS w FROM r")
        run(client, "WAIT")
        tried = threading.Semaphore(0)

        def no_room(*_: object) -> None:
            tried.release()
            raise duckdb.IOException('Could not write file "/spill/x": No space left on device')

        with monkeypatch.context() as patched:
            patched.setattr(DuckDBEngine, "advance", no_room)
            run(client, f"INSERT INTO r VALUES ({ROWS}, 1, 1)")
            assert all(tried.acquire(timeout=10) for _ in range(5))
        context.coordinator.flush(lambda: False)
        check(client, {"made": "SELECT k, v + 1 AS w FROM r"}, "with room")


@pytest.mark.long
def test_a_disk_that_fills_up(small_disk: Path) -> None:
    """Writes and FLUSH say so in time; with room again everything goes on, and no view has failed."""
    server = Server(small_disk / "data", fills_on_spark=True)
    ballast = small_disk / "ballast"
    try:
        with server.connect() as own:
            own.execute("CREATE TABLE t (k int PRIMARY KEY, g int)")
            own.execute("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n FROM t GROUP BY g")
            own.execute("INSERT INTO t SELECT i, i % 20 FROM range(10000) AS r (i)")
            own.execute("FLUSH")
            with pytest.raises(OSError, match="No space"), ballast.open("wb") as file:
                while True:
                    file.write(bytes(1 << 16))
                    file.flush()
            started = time.monotonic()
            with pytest.raises(psycopg.errors.DiskFull):
                own.execute("INSERT INTO t SELECT i, i % 20 FROM range(10000, 12000) AS r (i)")
            with pytest.raises(psycopg.errors.DiskFull):  # it may have room for some of so few rows, but not for all
                for key in range(20_000, 30_000):
                    own.execute(f"INSERT INTO t VALUES ({key}, 1)")
                    own.execute("FLUSH")
            assert time.monotonic() - started < 30
            ballast.unlink()
            own.execute("FLUSH")
            count = own.execute("SELECT count(*) FROM t").fetchone()
            assert own.execute("SELECT sum(n)::bigint FROM v").fetchone() == count
            assert own.execute("SELECT state FROM rw_catalog.rw_job_status").fetchall() == [("FOLLOWING",)]
        assert server.stop() == 0
        check_files(server.data)
    finally:
        server.kill()
