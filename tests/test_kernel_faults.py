"""DuckDB in Spark's tasks when processes die, a job is cancelled, memory is little or a query is wrong."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import psycopg
import pytest
from servers import PATIENCE_SECONDS, Server, command_line, descendants, refused, rows, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]

Connection = psycopg.Connection[Any]
STATUS = "SELECT state, reason FROM rw_catalog.rw_backfill_status"
# One task writes this for seconds, file after file.
SERIES = "SELECT k, i, k * i AS p FROM (SELECT k, generate_series(1, 200) AS i FROM r) AS s"
# One that never ends by itself.
ENDLESS = "SELECT count(*) AS n FROM r a JOIN r b ON a.g = b.g JOIN r c ON b.g = c.g WHERE a.v + b.v + c.v = -1"
CONFIG = """
[resource_groups.two]
cores = 1
memory_mib = 1024
replicas = 2
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose groups are of one node, in one process, and of two, each with processes of its own."""
    directory = tmp_path_factory.mktemp("kernel")
    (directory / "sparkwave.toml").write_text(CONFIG)
    options = {"config": directory / "sparkwave.toml", "spark_cores": 2, "spark_memory_mib": 1024}
    started = Server(directory / "data", fills_on_spark=True, **options)
    with started.connect() as own:
        own.execute(f"ALTER SYSTEM SET serverless_backfill_provision_timeout = {PATIENCE_SECONDS}")
        own.execute("CREATE TABLE r (k int PRIMARY KEY, g int, v int)")
        own.execute("INSERT INTO r SELECT i, i % 5, i FROM range(30000) AS x (i)")
    yield started
    started.kill()


@pytest.fixture
def own(server: Server) -> Iterator[Connection]:
    with server.connect() as session:
        session.execute("SET background_ddl = true")
        yield session
        for (job,) in rows(session, "SELECT ddl_id FROM rw_catalog.rw_ddl_progress"):
            session.execute(f"CANCEL JOBS {job}")
        session.execute("DROP MATERIALIZED VIEW IF EXISTS made")


def workers(server: Server) -> list[int]:
    """Process ids of the Python workers of tasks: children of Spark's Python daemon that run as it does."""
    of_python = [
        p
        for p in descendants(server.process.pid)
        if command_line(p)[2:3] == [b"sparkwave.executor.spark.kernel_daemon"]
    ]
    return [pid for pid in of_python if parent(pid) in of_python]


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def executors(server: Server) -> list[int]:
    """Process ids of the nodes that are processes of their own."""
    name = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
    return [pid for pid in descendants(server.process.pid) if name in command_line(pid)]


def written(server: Server) -> set[Path]:
    """The files that tasks have written for views, whether they count or not."""
    return {path for path in (server.data / "data").glob("job_*/**/*.parquet") if path.stat().st_size}


def spilled(server: Server) -> list[Path]:
    return [path for top in server.data.rglob("duckdb_*") for path in (top, *top.rglob("*"))]


def create(own: Connection, query: str, group: str = "default") -> None:
    own.execute(f"CREATE MATERIALIZED VIEW made WITH (resource_group = '{group}') AS {query}")


def create_until_it_writes(server: Server, own: Connection, group: str) -> set[Path]:
    """Start a view that takes a while. Returns the files that were there while its task ran."""
    before = written(server)
    create(own, SERIES, group)
    assert wait_until(lambda: bool(written(server) - before), PATIENCE_SECONDS, 0.01)
    return written(server) - before


def is_right(own: Connection) -> bool:
    [(count, total)] = rows(own, "SELECT count(*)::int, sum(p)::bigint FROM made")
    return bool((count, total) == (30_000 * 200, 30_000 * 29_999 // 2 * 200 * 201 // 2))


def kill_workers(server: Server) -> None:
    assert workers(server)
    for pid in workers(server):
        os.kill(pid, signal.SIGKILL)


def kill_an_executor(server: Server) -> None:
    """That which has a worker."""
    [busy, *_] = [pid for pid in executors(server) if any(parent(parent(w)) == pid for w in workers(server))]
    os.kill(busy, signal.SIGKILL)


KILLS = [("default", kill_workers), ("two", kill_workers), ("two", kill_an_executor)]


@pytest.mark.parametrize(("group", "kill"), KILLS)
def test_a_process_dies(server: Server, own: Connection, group: str, kill: Callable[[Server], None]) -> None:
    """A node's task is tried again, by Spark where it has several; what the first try has written does not count."""
    retries = server.log().count("attempt 1: ")
    create_until_it_writes(server, own, group)
    kill(server)
    if group == "default":
        assert wait_until(lambda: "RETRYING" in str(rows(own, STATUS)), 60, 0.01)
        [(_, reason)] = rows(own, STATUS)
        assert reason == "retrying after an error: a worker process of Spark has ended unexpectedly"
    own.execute("WAIT")
    assert is_right(own)
    assert server.log().count("attempt 1: ") - retries == (group == "default"), server.log()


def test_cancel_ends_the_worker(server: Server, own: Connection) -> None:
    """Within seconds, and nothing of it is left: no process, no file."""
    create(own, ENDLESS)
    assert wait_until(lambda: any(cpu_s(pid) > 2 for pid in workers(server)), PATIENCE_SECONDS)
    busy = {pid for pid in workers(server) if cpu_s(pid) > 2}
    before = written(server)
    [(job,)] = rows(own, "SELECT ddl_id FROM rw_catalog.rw_ddl_progress")
    own.execute(f"CANCEL JOBS {job}")
    assert wait_until(lambda: not busy & set(workers(server)), 5), "the query goes on"
    assert written(server) <= before
    assert not list((server.data / "data").glob(f"job_{job}*"))


def cpu_s(pid: int) -> float:
    """The processor time that a process has had; 0 for none."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_what_a_job_fails_with(own: Connection) -> None:
    """DuckDB's error in PostgreSQL's words, for who creates and for who looks later."""
    own.execute("CREATE TABLE IF NOT EXISTS wide (k int PRIMARY KEY, n numeric(38, 0))")
    own.execute(f"INSERT INTO wide SELECT i, {'9' * 38} FROM range(3) AS x (i)")
    own.execute("SET background_ddl = false")
    error = refused(own, "CREATE MATERIALIZED VIEW made AS SELECT sum(n) AS s FROM wide")
    assert (error.sqlstate, error.diag.message_primary) == ("22003", "value overflows numeric format")
    events = "SELECT info->>'error' FROM rw_catalog.rw_event_logs WHERE event_type = 'CREATE_STREAM_JOB_FAIL'"
    assert rows(own, events) == [("value overflows numeric format",)]


# Memory.

LARGE = {
    "groups": "SELECT md5(i::varchar) || h AS h, count(*) AS n, max(i) AS s FROM large GROUP BY md5(i::varchar) || h",
    "join": "SELECT a.i, substr(b.h, 1, 32) AS h FROM large a JOIN large b ON a.h = b.h AND a.i % 10 < 8",
}


@pytest.fixture(scope="module")
def large(server: Server) -> None:
    """Two million rows with texts of 256 letters, in hash tables larger than what a task of the small node may use."""
    with server.connect() as own:
        own.execute("CREATE TABLE large (i bigint, h varchar)")
        own.execute("INSERT INTO large SELECT i, repeat(md5(i::varchar), 8) FROM range(2000000) AS x (i)")


@pytest.mark.usefixtures("large")
def test_a_cancelled_task_leaves_nothing_that_it_has_spilled(server: Server, own: Connection) -> None:
    create(own, LARGE["groups"])
    assert wait_until(lambda: any(path.is_file() for path in spilled(server)), PATIENCE_SECONDS, 0.01)
    [(job,)] = rows(own, "SELECT ddl_id FROM rw_catalog.rw_ddl_progress")
    own.execute(f"CANCEL JOBS {job}")
    assert wait_until(lambda: not spilled(server), 10), spilled(server)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("kind", LARGE)
def test_what_is_larger_than_memory_spills(server: Server, own: Connection, kind: str) -> None:
    """The node keeps to its 1 GiB: Java, and Python with DuckDB."""
    create(own, LARGE[kind])
    with memory_of(lambda: of_the_default_group(server)) as most, spills(server) as found:
        own.execute("WAIT")
    if kind == "groups":
        assert rows(own, "SELECT count(*)::int, sum(n)::int, count(DISTINCT s)::int FROM made") == [(2_000_000,) * 3]
    else:
        assert rows(own, "SELECT count(*)::int, min(i)::int, max(i)::int FROM made") == [(1_600_000, 0, 1_999_997)]
        assert rows(own, "SELECT 1 FROM made WHERE h <> md5(i::varchar)") == []
    assert found, "the query is too small for this test"
    assert most["sum"] < 1024, most


def of_the_default_group(server: Server) -> list[int]:
    """Process ids of Java and of the workers that it has: of the group with one node, in one process."""
    [java] = [p for p in server.java_processes() if b"spark.app.name=risingwave-compute-1" in command_line(p)]
    below = descendants(java)
    return [java, *(pid for pid in workers(server) if pid in below)]


@contextmanager
def memory_of(processes: Callable[[], list[int]]) -> Iterator[dict[str, int]]:
    """The most memory in MiB, while entered, of processes and of all together; what is shared counts once."""
    most: dict[str, int] = {}

    def look() -> None:
        now = {str(pid): pss_mib(pid) for pid in processes()}
        for name, mib in [*now.items(), ("sum", sum(now.values()))]:
            most[name] = max(mib, most.get(name, 0))

    with watched(look):
        yield most


@contextmanager
def spills(server: Server) -> Iterator[list[int]]:
    """The bytes that tasks spill while entered, as far as they are seen."""
    found: list[int] = []

    def look() -> None:
        size = sum(path.stat().st_size for path in spilled(server) if path.is_file())
        if size:
            found[:] = [max(size, *found)] if found else [size]

    with watched(look):
        yield found


@contextmanager
def watched(look: Callable[[], None]) -> Iterator[None]:
    is_over = Event()

    def watch() -> None:
        while not is_over.wait(0.1):
            try:
                look()
            except OSError:
                continue  # what has just ended

    thread = Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def pss_mib(pid: int) -> int:
    """Memory of a process, of which it has its share of what is shared."""
    return int(Path(f"/proc/{pid}/smaps_rollup").read_text().partition("\nPss:")[2].split()[0]) // 1024
