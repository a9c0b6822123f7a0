"""kill -9 and SIGTERM at any moment: what was acknowledged stays, jobs go on where they were, nothing is left over."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from crashes import (
    FILLS,
    IN_FLIGHT,
    VIEWS,
    Standing,
    Writer,
    check_files,
    check_no_orphans,
    check_rows,
    check_views,
    create_in_background,
    create_tables,
    delete_what_crashes_left,
    join,
    progress_of,
    standing,
    start_writers,
    unfinished_steps,
    wait_for_progress,
)
from marking import long_but
from servers import PATIENCE_SECONDS, Server, launch, wait_until

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[list[Server]]:
    """The servers a test starts, one after the other on one directory; at the end none runs."""
    started: list[Server] = []
    yield started
    for server in started:
        server.kill()


def start(servers: list[Server], tmp_path: Path, **options: object) -> Server:
    servers.append(Server(tmp_path / "data", **options))
    return servers[-1]


# Crashes.


def interrupted(server: Server, how: str) -> None:
    """End a server while its job runs."""
    if how == "kill":
        server.kill()
    else:
        assert server.stop(timeout=20) == 0
    check_no_orphans(server)


def finish(server: Server, writers: list[Writer], view: str) -> None:
    """The one job ends while the tables change, and everything is right."""
    with server.connect() as own:
        writers = start_writers(server, seed=30, before=writers)
        own.execute("WAIT")
        for writer in writers:
            writer.stop()
        check_rows(own, writers)
        assert check_views(own) == [view]


CRASHES = [(strategy, view, "kill") for strategy, view in FILLS] + [("no_shuffle", "copied", "stop")]
QUICK_IN_PROCESS = {("no_shuffle", "copied")}


@pytest.mark.spark
@pytest.mark.parametrize(
    ("strategy", "view", "how"),
    long_but([], CRASHES),
)
def test_crash_in_the_middle_of_a_backfill(
    servers: list[Server], tmp_path: Path, strategy: str, view: str, how: str
) -> None:
    """The job goes on with the steps that were left, over the changes made meanwhile to all its tables."""
    server = start(servers, tmp_path)
    with server.connect() as own:
        create_tables(own, slice_rows=8_000)
        writers = start_writers(server, seed=1)
        create_in_background(own, view, strategy)
        read_before = wait_for_progress(own, 0.2)
    interrupted(server, how)
    join(writers)
    before = standing(server.data)
    [begun] = unfinished_steps(server.data, before).values()
    assert len(begun) <= IN_FLIGHT[strategy], begun

    server = start(servers, tmp_path)
    with server.connect() as own:
        read_after, _ = progress_of(own)
        known = max(before.rows, read_before)  # a step that ran may have told more than is committed
        assert read_after >= known, f"{known} rows were read before the crash, {read_after} after it"
        check_rows(own, writers)
    finish(server, writers, view)
    assert server.stop() == 0
    standing(server.data).check_follows(before)
    delete_what_crashes_left(server.data)
    check_files(server.data)


@pytest.mark.parametrize(
    ("strategy", "view"),
    long_but(QUICK_IN_PROCESS, FILLS),
)
def test_crashes_in_process(servers: list[Server], tmp_path: Path, strategy: str, view: str) -> None:
    """Twice at any moment, where steps are so short that many moments are commits."""
    chooser = random.Random(f"{strategy} {view}")
    server = start(servers, tmp_path)
    with server.connect() as own:
        create_tables(own, slice_rows=2_000, engine="auto")
        own.execute("ALTER SYSTEM SET streaming_duckdb_max_rows = 1000000")
        # Without a limit a small Snapshot backfill is over in one step.
        options = ", backfill_rate_limit = 8000"
        create_in_background(own, view, strategy, options)
    writers: list[Writer] = []
    for crash in range(2):
        writers = start_writers(server, seed=10 * crash, before=writers)
        time.sleep(chooser.uniform(0, 1.5))
        interrupted(server, "kill")
        join(writers)
        before = standing(server.data)
        server = start(servers, tmp_path)
        with server.connect() as own:
            assert progress_of(own)[0] >= before.rows
            check_rows(own, writers)
    with server.connect() as own:
        own.execute(f"ALTER MATERIALIZED VIEW {view} SET BACKFILL_RATE_LIMIT TO DEFAULT")
    finish(server, writers, view)
    assert server.stop() == 0
    standing(server.data).check_follows(before)
    delete_what_crashes_left(server.data)
    check_files(server.data)


@pytest.mark.spark
@pytest.mark.long
def test_crash_in_steady_maintenance(servers: list[Server], tmp_path: Path) -> None:
    server = start(servers, tmp_path)
    with server.connect() as own:
        create_tables(own, slice_rows=4_000_000)
        for name in ("sums", "on_sums", "paired"):
            own.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
        writers = start_writers(server, seed=11)
        time.sleep(3)
        server.kill()
    join(writers)
    check_no_orphans(server)

    server = start(servers, tmp_path)
    with server.connect() as own:
        check_rows(own, writers)
        check_views(own)
        own.execute("DELETE FROM t WHERE g = 7")
        own.execute("INSERT INTO t VALUES (-1, 4, 4)")
        check_views(own)
        assert len(own.execute("SHOW MATERIALIZED VIEWS").fetchall()) == 3


@pytest.mark.long
def test_more_servers_on_the_same_directory(servers: list[Server], tmp_path: Path) -> None:
    """They end at once and touch nothing: the first one's job, its writers and its files go on as if alone."""
    server = start(servers, tmp_path)
    with server.connect() as own:
        create_tables(own, slice_rows=2_000, engine="auto")
        own.execute("ALTER SYSTEM SET streaming_duckdb_max_rows = 1000000")
        create_in_background(own, "sums", "arrangement", ", backfill_rate_limit = 4000")
        writers = start_writers(server, seed=1)
        read_before = wait_for_progress(own, 0.1)
        logs = [tmp_path / f"other_{number}.log" for number in range(2)]
        others = [launch(log, listen="127.0.0.1:0", data=server.data) for log in logs]
        try:
            assert [other.wait(PATIENCE_SECONDS) for other in others] == [1, 1]
        finally:
            for other in others:
                other.kill()
        assert all("in use by another server" in log.read_text() for log in logs)
        assert progress_of(own)[0] >= read_before
        own.execute("ALTER MATERIALIZED VIEW sums SET BACKFILL_RATE_LIMIT TO DEFAULT")
        own.execute("WAIT")
        for writer in writers:
            writer.stop()
        check_rows(own, writers)
        assert check_views(own) == ["sums"]
    assert server.stop() == 0
    assert standing(server.data).finished
    delete_what_crashes_left(server.data)
    check_files(server.data)


@pytest.mark.long
def test_crash_before_a_job_has_started(stuck_server: Server, servers: list[Server], tmp_path: Path) -> None:
    """A job that was still waiting for Spark is dropped; its name is free and the log says so."""
    with stuck_server.connect() as own:
        own.execute("CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
        creator = stuck_server.connect()
        creator.pgconn.send_query(f"CREATE MATERIALIZED VIEW copied AS {VIEWS['copied']}".encode())
        assert wait_until(lambda: len(own.execute("SHOW JOBS").fetchall()) == 1, 10)
        assert own.execute("SELECT progress FROM rw_catalog.rw_ddl_progress").fetchall() == [("0.0%",)]
    stuck_server.kill()
    server = start(servers, tmp_path)
    with server.connect() as own:
        assert own.execute("SHOW JOBS").fetchall() == []
        names = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
        assert own.execute(names).fetchall() == [("t",)]
        events = own.execute(
            "SELECT info FROM rw_catalog.rw_event_logs WHERE event_type = 'DIRTY_STREAM_JOB_CLEAR'"
        ).fetchall()
        assert len(events) == 1
        assert "copied" in str(events[0][0])
        own.execute("CREATE TABLE copied (k int)")
    assert server.stop() == 0
    delete_what_crashes_left(server.data)
    check_files(server.data)


# SIGTERM.


@pytest.mark.long
def test_sigterm_with_an_idle_client(server: Server) -> None:
    idle = server.connect()
    started = time.monotonic()
    assert server.stop(timeout=20) == 0
    assert time.monotonic() - started < 10
    with pytest.raises(psycopg.OperationalError):
        idle.execute("SELECT 1")
    assert "Traceback" not in server.log()


@pytest.mark.long
def test_sigterm_during_a_query(server: Server) -> None:
    running = server.connect()
    running.pgconn.send_query(
        b"SELECT count(*) FROM range(1000000) AS a (i), range(1000000) AS b (j) WHERE i * j % 7 = 3"
    )
    time.sleep(0.5)
    started = time.monotonic()
    assert server.stop(timeout=20) == 0
    assert time.monotonic() - started < 10


def test_sigterm_while_a_job_waits_for_spark(stuck_server: Server) -> None:
    with stuck_server.connect() as own:
        own.execute("CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
        creator = stuck_server.connect()
        creator.pgconn.send_query(f"CREATE MATERIALIZED VIEW copied AS {VIEWS['copied']}".encode())
        assert wait_until(lambda: len(own.execute("SHOW JOBS").fetchall()) == 1, 10)
    assert stuck_server.stop(timeout=20) == 0


# What a server is in that does not end: a call of a library, or as it ends one that has Python's own lock.
STUCK = """
import ctypes, sys
from pathlib import Path
from sparkwave.server.command_line import run_server as main
from sparkwave.server.operations.config import Config
lock = ctypes.create_string_buffer(256)
library = getattr(ctypes, sys.argv[1])(None)
library.pthread_mutex_lock(lock)
def serve(config, parameters, lease, stop):
    print("ready", flush=True)
    if sys.argv[1] == "PyDLL":
        stop.wait()
    library.pthread_mutex_lock(lock)
main._serve, main.STOP_SECONDS = serve, 0.5
main.serve(Config(data=Path(sys.argv[2])), {})
"""


@pytest.mark.parametrize(("library", "code"), [("CDLL", 0), ("PyDLL", -signal.SIGALRM)])
def test_sigterm_whatever_the_server_is_in(tmp_path: Path, library: str, code: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STUCK, library, str(tmp_path)], cwd=Path(__file__).parent.parent, stdout=subprocess.PIPE
    ) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            process.terminate()
            assert process.wait(10) == code
        finally:
            process.kill()


# Many more moments.


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_crashes_at_random_moments(servers: list[Server], tmp_path: Path, seed: int) -> None:
    """Eight times: start, create views in the background, write, kill at some moment. Then everything must be right."""
    chooser = random.Random(seed)
    server = start(servers, tmp_path, spark_start="eager")
    with server.connect() as own:
        create_tables(own, slice_rows=10_000)
        own.execute("ALTER SYSTEM SET serverless_backfill_enabled = true")
        own.execute("ALTER SYSTEM SET serverless_backfill_sku = '1c2g'")
        own.execute(f"ALTER SYSTEM SET streaming_engine = {chooser.choice(['auto', 'spark'])}")
        own.execute(f"ALTER SYSTEM SET backfill_engine = {chooser.choice(['auto', 'spark'])}")
    strategies = {name: [s for s, view in FILLS if view == name] or ["auto"] for name in VIEWS}
    writers: list[Writer] = []
    before: Standing | None = None
    for round_ in range(8):
        with contextlib.suppress(psycopg.OperationalError), server.connect() as own:
            if writers:
                check_rows(own, writers)
            killer = threading.Timer(chooser.uniform(0, 15), server.kill)
            killer.start()
            writers = start_writers(server, seed=100 * seed + 2 * round_, before=writers)
            for name in VIEWS:
                with contextlib.suppress(psycopg.errors.DatabaseError):
                    is_serverless = chooser.random() < 0.3
                    option = ", cloud.serverless_backfill_enabled = true" if is_serverless else ""
                    create_in_background(own, name, chooser.choice(strategies[name]), option)
            killer.join()
        killer.join()
        for writer in writers:
            writer.join()
        check_no_orphans(server)
        now = standing(server.data)
        if before is not None:
            now.check_follows(before)
        begun = unfinished_steps(server.data, now)
        assert all(len(steps) <= max(IN_FLIGHT.values()) for steps in begun.values()), begun
        before = now
        server = start(servers, tmp_path, spark_start="eager")
    with server.connect() as own:
        check_rows(own, writers)
        own.execute("WAIT")
        for name in VIEWS:
            with contextlib.suppress(psycopg.errors.DuplicateTable):
                own.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
        own.execute("WAIT")
        assert len(own.execute("SHOW MATERIALIZED VIEWS").fetchall()) == len(VIEWS)
        check_views(own)
    assert server.stop() == 0
    start(servers, tmp_path).stop()
    delete_what_crashes_left(server.data)
    check_files(server.data)
