"""kill -9 and SIGTERM at any moment: what was acknowledged stays, jobs go on where they were, nothing is left over."""

from __future__ import annotations

import contextlib
import random
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest
from servers import Server, wait_until

Connection = psycopg.Connection[Any]

BASE_ROWS = 60_000
VIEWS = {
    "sums": "SELECT g, count(*) AS n, sum(v) AS total, max(v) AS most FROM t GROUP BY g",
    "on_sums": "SELECT sum(n) AS n, sum(total) AS total FROM sums",
    "copied": "SELECT k, g, v + 1 AS w FROM t WHERE v >= 3",
    "paired": "SELECT t.k, u.name FROM t JOIN u ON t.g = u.g",
}


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


def create_tables(connection: Connection, slice_rows: int) -> None:
    connection.execute("CREATE TABLE t (k int PRIMARY KEY, g int, v int)")
    connection.execute("CREATE TABLE u (g int PRIMARY KEY, name varchar)")
    connection.execute("INSERT INTO u SELECT i, 'group ' || i FROM range(0, 20, 2) AS r (i)")
    for start_ in range(0, BASE_ROWS, BASE_ROWS // 5):
        connection.execute(
            f"INSERT INTO t SELECT i, i % 20, i % 100 FROM range({start_}, {start_ + BASE_ROWS // 5}) AS r (i)"
        )
    connection.execute("ALTER SYSTEM SET backfill_engine = spark")
    connection.execute(f"ALTER SYSTEM SET backfill_slice_rows = {slice_rows}")
    connection.execute("ALTER SYSTEM SET barrier_interval_ms = 200")


# Writers.


@dataclass
class Writer:
    """A client that changes its own keys of t until the server dies, and remembers what was acknowledged.

    `expected` maps the keys it has touched to their value, None for deleted ones; `unsure` is what the last
    statement, sent but not acknowledged, would make of its keys.
    """

    server: Server
    number: int
    seed: int
    expected: dict[int, int | None] = field(default_factory=dict)
    unsure: dict[int, int | None] = field(default_factory=dict)
    acknowledged: int = 0
    failure: BaseException | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self.join()

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive(), "the writer hangs"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            with contextlib.suppress(psycopg.OperationalError), self.server.connect() as connection:
                while not self._stop.is_set():
                    statement, effect = self._next()
                    self.unsure = effect
                    connection.execute(statement)
                    self.expected |= effect
                    self.unsure = {}
                    self.acknowledged += 1
        except BaseException as error:
            self.failure = error

    def _next(self) -> tuple[str, dict[int, int | None]]:
        """A statement on three of its keys, old or new, and what it makes of them."""
        known = [k for k, value in self.expected.items() if value is not None]
        keys = {2 * self._random.randrange(BASE_ROWS) + self.number for _ in range(3)}
        value = self._random.randrange(1000)
        listed = ", ".join(map(str, sorted(keys)))
        match self._random.choice(["insert", "insert", "update", "delete"]):
            case "insert":
                rows = ", ".join(f"({k}, {k % 20}, {value})" for k in keys)
                return f"INSERT INTO t VALUES {rows}", dict.fromkeys(keys, value)
            case "update" if known:
                keys = set(self._random.sample(known, min(3, len(known))))
                listed = ", ".join(map(str, sorted(keys)))
                return f"UPDATE t SET v = {value} WHERE k IN ({listed})", dict.fromkeys(keys, value)
        return f"DELETE FROM t WHERE k IN ({listed})", dict.fromkeys(keys, None)


def start_writers(server: Server, seed: int, before: list[Writer] | None = None) -> list[Writer]:
    """Two writers, which go on from what earlier ones did."""
    known = [dict(writer.expected) for writer in before] if before else [{}, {}]
    return [Writer(server, number, seed + number, known[number]) for number in range(2)]


def check_rows(connection: Connection, writers: list[Writer]) -> None:
    """All that was acknowledged is there; the statement under way at the crash was done wholly or not at all."""
    found = dict(connection.execute("SELECT k, v FROM t").fetchall())
    expected: dict[int, int | None] = {k: k % 100 for k in range(BASE_ROWS)}
    for writer in writers:
        expected |= writer.expected
    for writer in writers:
        if writer.unsure and all(found.get(k) == value for k, value in writer.unsure.items()):
            expected |= writer.unsure
            writer.expected |= writer.unsure
        writer.unsure = {}
    wrong = {
        k: (expected.get(k), found.get(k)) for k in expected.keys() | found.keys() if expected.get(k) != found.get(k)
    }
    assert not wrong, f"{len(wrong)} rows differ, such as {dict(list(wrong.items())[:5])} (expected, found)"


def check_views(connection: Connection) -> None:
    connection.execute("FLUSH")
    existing = [name for (name,) in connection.execute("SHOW MATERIALIZED VIEWS").fetchall()]
    for name in (qualified.removeprefix("public.") for qualified in existing):
        view = connection.execute(f"SELECT * FROM {name}").fetchall()
        query = connection.execute(VIEWS[name]).fetchall()
        assert sorted(view) == sorted(query), name


# Jobs.


def progress_of(connection: Connection) -> tuple[int, int]:
    """(rows read, rows to read) of the one running job; all of them once there is no such job."""
    found = connection.execute("SELECT progress FROM rw_catalog.rw_ddl_progress").fetchone()
    if found is None:
        return 1 << 60, 1 << 60
    numbers = re.search(r"\((\d+)/(\d+)\)", found[0])
    if numbers:
        return int(numbers[1]), int(numbers[2])
    return (0, 1) if found[0] == "0.0%" else (1 << 60, 1 << 60)


def wait_for_progress(connection: Connection, share: float) -> int:
    """Wait until the running job has read this share of its rows. Returns the number of rows read."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        read, total = progress_of(connection)
        if read >= share * total:
            assert read < total, "the job was done before it could be interrupted"
            return read
        time.sleep(0.05)
    raise AssertionError("the job makes no progress")


def create_in_background(connection: Connection, name: str, with_: str = "") -> None:
    connection.execute("SET background_ddl = true")
    connection.execute(f"CREATE MATERIALIZED VIEW {name} {with_} AS {VIEWS[name]}")


def check_no_orphans(server: Server) -> None:
    """All Spark processes of a dead server end by themselves."""
    assert wait_until(lambda: not server.java_processes(), 10), f"java left: {server.java_processes()}"


def check_files(data: Path) -> None:
    """No file in the directory of a stopped server that its catalog does not know."""
    known: set[str] = set()
    with duckdb.connect(str(data / "catalog.ducklake"), read_only=True) as catalog:
        for table in ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion"):
            known |= {Path(path).name for (path,) in catalog.execute(f"SELECT path FROM {table}").fetchall()}
    present = [path for path in (data / "data").rglob("*") if path.is_file()]
    unknown = [str(path.relative_to(data)) for path in present if path.name not in known]
    assert not unknown, f"{len(unknown)} unknown files, such as {unknown[:5]}"
    staged = [str(path.relative_to(data)) for path in (data / "staging").rglob("*") if path.is_file()]
    assert not staged, f"staged files left: {staged[:5]}"


# Crashes.


@pytest.mark.spark
def test_crash_in_the_middle_of_a_backfill(servers: list[Server], tmp_path: Path) -> None:
    """The job goes on with the slices that were left, over the changes made meanwhile."""
    server = start(servers, tmp_path)
    with server.connect() as own:
        create_tables(own, slice_rows=3_000)
        writers = start_writers(server, seed=1)
        create_in_background(own, "sums")
        read_before = wait_for_progress(own, 0.2)
        server.kill()
    for writer in writers:
        writer.join()
        assert writer.acknowledged > 0
    check_no_orphans(server)

    server = start(servers, tmp_path)
    with server.connect() as own:
        read_after, _ = progress_of(own)
        assert read_after >= read_before, f"{read_before} rows were read before the crash, {read_after} after it"
        check_rows(own, writers)
        writers = start_writers(server, seed=3, before=writers)
        own.execute("WAIT MATERIALIZED VIEW sums")
        for writer in writers:
            writer.stop()
        check_rows(own, writers)
        check_views(own)
        assert own.execute("SHOW MATERIALIZED VIEWS").fetchall() == [("public.sums",)]
    assert server.stop() == 0
    check_files(server.data)


@pytest.mark.spark
def test_crash_in_steady_maintenance(servers: list[Server], tmp_path: Path) -> None:
    server = start(servers, tmp_path)
    with server.connect() as own:
        create_tables(own, slice_rows=4_000_000)
        for name in ("sums", "on_sums", "paired"):
            own.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
        writers = start_writers(server, seed=11)
        time.sleep(3)
        server.kill()
    for writer in writers:
        writer.join()
        assert writer.acknowledged > 0
    check_no_orphans(server)

    server = start(servers, tmp_path)
    with server.connect() as own:
        check_rows(own, writers)
        check_views(own)
        own.execute("DELETE FROM t WHERE g = 7")
        own.execute("INSERT INTO t VALUES (-1, 4, 4)")
        check_views(own)
        assert len(own.execute("SHOW MATERIALIZED VIEWS").fetchall()) == 3


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
        assert own.execute("SELECT name FROM rw_catalog.rw_relations").fetchall() == [("t",)]
        events = own.execute(
            "SELECT info FROM rw_catalog.rw_event_logs WHERE event_type = 'DIRTY_STREAM_JOB_CLEAR'"
        ).fetchall()
        assert len(events) == 1
        assert "copied" in str(events[0][0])
        own.execute("CREATE TABLE copied (k int)")
    assert server.stop() == 0
    check_files(server.data)


# SIGTERM.


def test_sigterm_with_an_idle_client(server: Server) -> None:
    idle = server.connect()
    started = time.monotonic()
    assert server.stop(timeout=20) == 0
    assert time.monotonic() - started < 10
    with pytest.raises(psycopg.OperationalError):
        idle.execute("SELECT 1")
    assert "Traceback" not in server.log()


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


@pytest.mark.spark
def test_sigterm_during_a_backfill(servers: list[Server], tmp_path: Path) -> None:
    """With an idle client and a running job it ends in time; the job goes on where it was at the next start."""
    server = start(servers, tmp_path)
    idle = server.connect()
    with server.connect() as own:
        create_tables(own, slice_rows=3_000)
        create_in_background(own, "copied")
        read_before = wait_for_progress(own, 0.2)
    assert server.stop(timeout=20) == 0
    check_no_orphans(server)
    with pytest.raises(psycopg.OperationalError):
        idle.execute("SELECT 1")
    server = start(servers, tmp_path)
    with server.connect() as own:
        assert progress_of(own)[0] >= read_before
        own.execute("WAIT")
        check_views(own)


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
        own.execute("ALTER SYSTEM SET serverless_backfill_sku = '1x1'")
        own.execute(f"ALTER SYSTEM SET streaming_engine = {chooser.choice(['auto', 'spark'])}")
        own.execute(f"ALTER SYSTEM SET backfill_engine = {chooser.choice(['auto', 'spark'])}")
    writers: list[Writer] = []
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
                    option = "WITH (cloud.serverless_backfill_enabled = true)" if is_serverless else ""
                    create_in_background(own, name, option)
            killer.join()
        killer.join()
        for writer in writers:
            writer.join()
        check_no_orphans(server)
        server = start(servers, tmp_path, spark_start="eager")
    with server.connect() as own:
        check_rows(own, writers)
        own.execute("WAIT")
        for name in VIEWS:
            with contextlib.suppress(psycopg.errors.DuplicateObject):
                own.execute(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
        own.execute("WAIT")
        assert len(own.execute("SHOW MATERIALIZED VIEWS").fetchall()) == len(VIEWS)
        check_views(own)
    assert server.stop() == 0
    start(servers, tmp_path).stop()
    check_files(server.data)
