"""Serverless backfill: who gets a resource group of its own, its life, and what is left when something breaks."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from crashes import opened_lake
from marking import long_but
from servers import (
    PATIENCE_SECONDS,
    Server,
    command_line,
    descendants,
    java_processes,
    refused,
    wait_until,
    without_spark,
)

from sparkwave.catalog.errors import QUERY_CANCELED, Error
from sparkwave.executor.spark.applications import Size
from sparkwave.executor.spark.capacity import Capacity, of_this_machine, shortage
from sparkwave.server.context import open_context
from sparkwave.server.operations.config import Config

Connection = psycopg.Connection[Any]

ENABLE = "ALTER SYSTEM SET serverless_backfill_enabled = true"
ON, OFF = "cloud.serverless_backfill_enabled = true", "cloud.serverless_backfill_enabled = false"
APPLICATIONS = "SELECT state, reason FROM rw_catalog.rw_spark_applications WHERE is_serverless ORDER BY id"
STATUS = "SELECT state, reason, reason_since IS NOT NULL FROM rw_catalog.rw_backfill_status"
EVENTS = (
    "SELECT event_type FROM rw_catalog.rw_event_logs WHERE event_type LIKE 'RESOURCE_GROUP%' "
    "AND info->>'resource_group' LIKE 'risingwave-backfill-%' ORDER BY timestamp"
)
CONFIG = """
[resource_groups.analytics]
cores = 1
memory_mib = 1024

[serverless_skus.tiny]
cores = 1
memory_mib = 700
"""


def view(options: str, name: str = "v", query: str = "SELECT k, v + 1 AS w FROM t") -> str:
    return f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {query}"


def fill(session: Connection, rows: int = 1000) -> None:
    session.execute("CREATE TABLE t (k bigint PRIMARY KEY, v bigint)")
    session.execute(f"INSERT INTO t SELECT i, i % 7 FROM range({rows}) AS r (i)")
    session.execute(ENABLE)
    session.execute("ALTER SYSTEM SET serverless_backfill_sku = '1c2g'")
    session.execute("ALTER SYSTEM SET backfill_engine = spark")


# Who gets one. Spark never starts here: whoever asks for it is seen waiting.


@pytest.fixture
def configured(tmp_path: Path) -> Iterator[Server]:
    """A server with a resource group and a SKU of its configuration, whose Spark never gets ready."""
    config = tmp_path / "sparkwave.toml"
    config.write_text(CONFIG)
    started = Server(tmp_path / "data", without_spark(tmp_path), fills_on_spark=True, config=config)
    with started.connect() as session:
        fill(session)
    yield started
    started.kill()


@pytest.mark.parametrize(
    ("variable", "options", "is_serverless"),
    long_but(
        [("true", "", True), ("true", OFF, False)],
        [
            ("false", "", False),
            ("true", "", True),
            ("false", ON, True),
            ("true", OFF, False),
            ("true", "cloud.serverless_backfill_enabled = 'True'", False),  # as in RisingWave: only `true` is
            ("false", "cloud.serverless_backfill_enabled = TRUE", True),
            ("true", "resource_group = 'default'", False),
        ],
    ),
)
def test_who_is_serverless(configured: Server, variable: str, options: str, is_serverless: bool) -> None:
    """The option beats the session variable, and a resource group too."""
    with configured.connect() as own, configured.connect() as other:
        own.execute(f"SET enable_serverless_backfill = {variable}")
        own.execute("SET statement_timeout = '1s'")
        with_options = f" WITH ({options})" if options else ""
        refused(own, f"CREATE MATERIALIZED VIEW v{with_options} AS SELECT k, v + 1 AS w FROM t")
        assert [state for state, _ in other.execute(APPLICATIONS)] == (["DESTROYED"] if is_serverless else [])


def test_refusals(configured: Server) -> None:
    """None provisions anything."""
    with configured.connect() as session:
        both = refused(session, view(f"{ON}, resource_group = 'analytics'"))
        assert both.diag.message_primary == "Please do not specify serverless backfilling and resource group together"
        assert refused(session, view(ON, query="SELECT nope FROM t")).sqlstate == "42703"
        unknown = refused(session, view("resource_group = 'nope'"))
        assert (unknown.sqlstate, unknown.diag.message_primary) == ("42704", 'resource group "nope" does not exist')
        assert "analytics, default" in (unknown.diag.message_hint or "")
        session.execute(f"EXPLAIN {view(ON)}")
        session.execute("ALTER SYSTEM SET serverless_backfill_enabled = false")
        disabled = refused(session, view(ON))
        assert disabled.diag.message_primary == "Serverless Backfill is disabled"
        assert refused(session, view(ON, query="SELECT nope FROM t")).sqlstate == "42703"  # the plan comes first
        session.execute("CREATE TABLE other (k int)")  # never serverless
        assert session.execute(APPLICATIONS).fetchall() == []


@pytest.mark.long
def test_databases_in_other_groups(configured: Server) -> None:
    with configured.connect() as session:
        session.execute("CREATE DATABASE apart WITH (resource_group = analytics)")
        databases = "SELECT name, resource_group FROM rw_catalog.rw_databases ORDER BY name"
        assert session.execute(databases).fetchall() == [("apart", "analytics"), ("dev", "default")]
        assert refused(session, "CREATE DATABASE apart").sqlstate == "42P04"
        assert refused(session, "CREATE DATABASE more RESOURCE_GROUP = nope").sqlstate == "42704"
        assert refused(session, "DROP DATABASE dev").sqlstate == "55006"
        with configured.connect(dbname="apart") as own:
            own.execute("CREATE TABLE t (k bigint, v bigint)")
            error = refused(own, view(ON))
            assert error.sqlstate == "0A000"
            assert "not supported for databases in non-default resource groups" in str(error)
            own.execute("ALTER DATABASE apart RESET RESOURCE_GROUP DEFERRED")
            own.execute("SET statement_timeout = '1s'")
            assert refused(own, view(ON)).sqlstate == "57014"
        session.execute("DROP DATABASE apart")
        assert session.execute("SHOW DATABASES").fetchall() == [("dev",)]


@pytest.mark.long
def test_parameters(configured: Server) -> None:
    with configured.connect() as session:
        session.execute("ALTER SYSTEM SET serverless_backfill_sku = tiny")
        wrong = refused(session, "ALTER SYSTEM SET serverless_backfill_sku = '3c1g'")
        assert wrong.sqlstate == "22023"
        assert "2c4g" in (wrong.diag.message_hint or "") and "tiny" in (wrong.diag.message_hint or "")
        assert refused(session, "ALTER SYSTEM SET serverless_backfill_replicas = 0").sqlstate == "22023"
        shown = {name: value for name, value, *_ in session.execute("SHOW PARAMETERS") if "serverless" in name}
    assert shown == {
        "serverless_backfill_enabled": "true",
        "serverless_backfill_sku": "tiny",
        "serverless_backfill_replicas": "1",
        "serverless_backfill_provision_timeout": "120",
        "serverless_backfill_warm_groups": "0",
        "serverless_backfill_linger": "0",
        "serverless_backfill_price_per_core_hour": "0",
    }


def test_more_than_the_machine_has(configured: Server, tmp_path: Path) -> None:
    """Whoever asks for it is told so with the numbers, and so is the log of a server that starts with it."""
    with configured.connect() as session:
        told: list[tuple[str | None, str | None]] = []
        session.add_notice_handler(lambda notice: told.append((notice.severity, notice.message_primary)))
        session.execute("ALTER SYSTEM SET serverless_backfill_sku = tiny")
        assert told == []
        session.execute("ALTER SYSTEM SET serverless_backfill_replicas = 1000")
        [(severity, message)] = told
        cores = len(os.sched_getaffinity(0))
        assert severity == "WARNING" and message is not None
        start = "a serverless group of 1000 nodes of 1 core, 0.683594 GiB would take more than this machine has: "
        assert message.startswith(f"{start}1000 cores of {cores}, ")
        assert "; 683.594 GiB of memory of " in message
    assert message not in configured.log()
    configured.kill()
    again = Server(configured.data, without_spark(tmp_path), config=tmp_path / "sparkwave.toml")
    try:
        assert message in again.log()
    finally:
        again.kill()


@pytest.mark.parametrize(
    ("cpu", "memory", "expected"), [("max 100000", "max", None), ("50000 100000", str(3 << 30), Capacity(0.5, 3072))]
)
def test_a_control_group_limits_the_machine(tmp_path: Path, cpu: str, memory: str, expected: Capacity | None) -> None:
    (tmp_path / "cpu.max").write_text(f"{cpu}\n")
    (tmp_path / "memory.max").write_text(f"{memory}\n")
    assert of_this_machine(tmp_path) == (expected or of_this_machine(tmp_path / "none"))


def test_what_groups_would_have_too_little_of() -> None:
    has = Capacity(4, 8192)
    assert shortage(Size(2, 4096, 2), 0, None, has) is None
    assert "each of 1 node of 2 cores, 4 GiB would take" in str(shortage(Size(2, 4096), 3, None, has))
    assert "12 GiB of memory of 8.0" in str(shortage(Size(2, 4096), 3, None, has))
    assert shortage(Size(64, 1 << 20), 0, "spark://elsewhere:7077", has) is None


# Groups that cannot be had.


def test_none_starts_while_the_server_ends(tmp_path: Path) -> None:
    context = open_context(Config(data=tmp_path / "data", spark_start="on_demand"), {})
    context.close()
    with pytest.raises(Error) as caught:
        context.groups.get()
    assert caught.value.sqlstate == QUERY_CANCELED


@contextmanager
def creating(server: Server, sql: str) -> Iterator[list[psycopg.Error]]:
    """A statement runs on a session of its own meanwhile; what made it fail is in the list afterwards."""
    failures: list[psycopg.Error] = []

    def execute() -> None:
        with server.connect() as session:
            try:
                session.execute(sql)
            except psycopg.Error as error:
                failures.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    try:
        yield failures
    finally:
        thread.join(60)
        assert not thread.is_alive()


def status(session: Connection) -> tuple[Any, ...] | None:
    return session.execute(STATUS).fetchone()


@pytest.mark.long
def test_a_group_that_never_comes(configured: Server) -> None:
    """The job waits where everybody can see it, fails after the limit, and leaves nothing."""
    with configured.connect() as session:
        session.execute("ALTER SYSTEM SET serverless_backfill_provision_timeout = 3")
        with creating(configured, view(ON)) as failures:
            assert wait_until(lambda: (status(session) or ("",))[0] == "PROVISIONING", 3)
            _, reason, has_time = status(session) or ("", "", False)
            assert reason.startswith("provisioning resource group risingwave-backfill-") and has_time
            job = session.execute(
                "SELECT id, status, resource_group FROM rw_catalog.rw_streaming_jobs WHERE name = 'v'"
            ).fetchone()
            assert job is not None
            assert job[1:] == ("INITIAL", f"SERVERLESS_BACKFILL_RESOURCE_GROUP_TBD_FOR_{job[0]}")
            [(node, state)] = session.execute("SELECT host, state FROM rw_catalog.rw_worker_nodes")
            assert (node.rpartition("-")[0], state) == (reason.split()[3], "STARTING")
        assert [error.sqlstate for error in failures] == ["53000"]
        assert "was not ready within 3 s: Spark Connect did not answer" in str(failures[0])
        assert session.execute("SHOW JOBS").fetchall() == []
        assert session.execute(APPLICATIONS).fetchall() == [
            ("DESTROYED", "Spark Connect did not answer"),
        ]
        assert session.execute("SELECT * FROM rw_catalog.rw_worker_nodes").fetchall() == []
    assert wait_until(lambda: descendants(configured.process.pid) == [], 10)


@pytest.mark.long
def test_a_group_that_ends_while_it_starts(tmp_path: Path) -> None:
    """It is started again until the time is over; the reason is what its log ends with."""
    environment = without_spark(tmp_path)
    java = tmp_path / "java" / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho started >> {tmp_path}/starts\necho 'Error: no memory today' >&2\nexit 1\n")
    server = Server(tmp_path / "data", environment)
    try:
        with server.connect() as session:
            fill(session)
            session.execute("ALTER SYSTEM SET serverless_backfill_provision_timeout = 4")
            with creating(server, view(ON)) as failures:
                assert wait_until(lambda: "no memory today" in str(status(session)), 4)
        [error] = failures
        assert error.sqlstate == "53000"
        assert str(error).splitlines()[0].endswith("it ended while it started: Error: no memory today")
        assert len((tmp_path / "starts").read_text().split()) > 1
        assert descendants(server.process.pid) == []
    finally:
        server.kill()


@pytest.mark.parametrize("how", long_but(["the client"], ["CANCEL JOBS", "DROP", "the client"]))
def test_cancel_while_it_is_provisioned(configured: Server, how: str) -> None:
    with configured.connect() as session, configured.connect() as own:
        with creating(configured, view(ON)) if how != "the client" else nullcontext([]) as failures:
            if how == "the client":
                own.execute("SET statement_timeout = '1500ms'")
                assert refused(own, view(ON)).sqlstate == "57014"
            else:
                assert wait_until(lambda: (status(session) or ("",))[0] == "PROVISIONING", 5)
                [(job,)] = session.execute("SELECT ddl_id FROM rw_catalog.rw_ddl_progress")
                session.execute(f"CANCEL JOBS {job}" if how == "CANCEL JOBS" else "DROP MATERIALIZED VIEW v")
        assert [error.sqlstate for error in failures] in ([], ["57014"])
        assert session.execute(APPLICATIONS).fetchall() == [("DESTROYED", "cancelled")]
        assert session.execute("SHOW JOBS").fetchall() == []
    assert wait_until(lambda: descendants(configured.process.pid) == [], 10)


def test_a_statement_in_the_background_does_not_wait_for_a_group(configured: Server) -> None:
    """Its job is there before it has a group, and one that cannot be had is the job's failure."""
    with configured.connect() as session:
        session.execute("ALTER SYSTEM SET serverless_backfill_provision_timeout = 3")
        session.execute("SET background_ddl = true")
        session.execute(view(ON))
        assert session.execute("SELECT status FROM rw_catalog.rw_streaming_jobs WHERE name = 'v'").fetchall() == [
            ("INITIAL",)
        ]
        assert wait_until(lambda: (status(session) or ("",))[0] == "PROVISIONING", 3)
        assert wait_until(lambda: session.execute("SHOW JOBS").fetchall() == [], 20)
        failed = "SELECT info->>'error' FROM rw_catalog.rw_event_logs WHERE event_type = 'CREATE_STREAM_JOB_FAIL'"
        [(reason,)] = session.execute(failed)
        assert "was not ready within 3 s: Spark Connect did not answer" in reason


# Groups that are had.


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Server]:
    """A server with a table whose backfill takes several steps."""
    started = Server(tmp_path / "data", fills_on_spark=True, spark_memory_mib=1024)
    with started.connect() as session:
        fill(session, 100_000)
        session.execute("ALTER SYSTEM SET backfill_slice_rows = 10000")
    yield started
    started.kill()
    assert wait_until(lambda: java_processes(started.data) == [], 15)


def is_right(session: Connection, name: str = "v") -> bool:
    session.execute("FLUSH")
    totals = "SELECT count(*), sum(k), sum({}) FROM {}"
    maintained = session.execute(totals.format("w", name)).fetchone()
    return maintained == session.execute(totals.format("v + 1", "t")).fetchone()


@pytest.mark.spark
def test_the_life_of_a_group(filled: Server) -> None:
    """Its nodes and its processes live as long as the backfill, whose events tell the rest."""
    with filled.connect() as session:
        session.execute("ALTER SYSTEM SET streaming_engine = spark")  # the last step too, in the steady group
        session.execute("SET background_ddl = true")
        session.execute(view(ON))
        session.execute(view(ON, "second"))  # shares the group
        session.execute("INSERT INTO t VALUES (-2, 5)")
        assert wait_until(lambda: (status(session) or ("",))[0] == "RUNNING", 60)
        [application] = filled.java_processes()
        server, other = (os.getpriority(os.PRIO_PROCESS, pid) for pid in (filled.process.pid, application))
        assert other == min(server + 10, 19)
        [(host, state, group)] = session.execute("SELECT host, state, resource_group FROM rw_catalog.rw_worker_nodes")
        assert (host, state) == (f"{group}-0", "RUNNING")
        assert session.execute("SELECT resource_group FROM rw_catalog.rw_backfill_status").fetchone() == (group,)
        session.execute("WAIT")
        assert wait_until(lambda: session.execute(APPLICATIONS).fetchall() == [("DESTROYED", None)], 15)
        life = [f"RESOURCE_GROUP_{state}" for state in ("PROVISIONING", "READY", "DRAINING", "DESTROYED")]
        assert [event for (event,) in session.execute(EVENTS)] == life
        assert application not in filled.java_processes()
        assert [path.name[:18] for path in (filled.data / "scratch").iterdir()] in ([], ["risingwave-compute"])
        jobs = "SELECT status, resource_group FROM rw_catalog.rw_streaming_jobs WHERE name = 'v'"
        assert session.execute(jobs).fetchall() == [("CREATED", "default")]
        session.execute("INSERT INTO t VALUES (-1, 41)")
        assert is_right(session)
        assert is_right(session, "second")


@pytest.mark.spark
@pytest.mark.long
def test_views_that_come_together_share_a_group(filled: Server) -> None:
    """If they read the same, at once or one after the other; what one of them does is not the others' end."""
    with filled.connect() as session:
        session.execute("CREATE TABLE other (k int PRIMARY KEY, v int)")
        session.execute("ALTER SYSTEM SET max_concurrent_creating_streaming_jobs = 0")
        session.execute("SET background_ddl = true")
        for name in "abc":
            session.execute(view(ON, name))
        session.execute(view(ON, "apart").replace("FROM t", "FROM other"))
        session.execute("WAIT")
        assert all(is_right(session, name) for name in "abc")
        assert wait_until(lambda: session.execute(APPLICATIONS).fetchall() == [("DESTROYED", None)] * 2, 15)
        # The job that began the group is cancelled, which ends it; the other one gets a group of its own.
        for name in "de":
            session.execute(view(ON, name))
        jobs = "SELECT id FROM rw_catalog.rw_streaming_jobs WHERE name = 'd'"
        reasons = "SELECT count(*) FROM rw_catalog.rw_backfill_status WHERE reason LIKE 'waiting for resource group%'"
        assert wait_until(lambda: session.execute(reasons).fetchone() == (1,), 10)
        [(job,)] = session.execute(jobs)
        session.execute(f"CANCEL JOBS {job}")
        session.execute("WAIT")
        assert is_right(session, "e")
        ended = [("DESTROYED", None)] * 2 + [("DESTROYED", "cancelled"), ("DESTROYED", None)]
        assert wait_until(lambda: session.execute(APPLICATIONS).fetchall() == ended, 15)
        for name in "fgh":
            session.execute(view(ON, name))
    filled.kill()
    again = Server(filled.data, fills_on_spark=True, spark_memory_mib=1024)
    try:
        with again.connect() as session:  # jobs that are resumed come together too
            session.execute("WAIT")
            assert all(is_right(session, name) for name in "fgh")
            ended += [("DESTROYED", "the server ended"), ("DESTROYED", None)]
            assert wait_until(lambda: session.execute(APPLICATIONS).fetchall() == ended, 15)
    finally:
        again.kill()


@pytest.mark.spark
@pytest.mark.long
def test_a_warm_group_is_shared(filled: Server) -> None:
    """By a job at the same time and by one that comes before it is destroyed; one that has died is not."""
    with filled.connect() as session:
        session.execute("ALTER SYSTEM SET serverless_backfill_linger = 4")
        session.execute("SET background_ddl = true")
        for name in ("a", "b"):
            session.execute(view(ON, name))
        session.execute("WAIT")
        assert wait_until(lambda: [row[0] for row in session.execute(APPLICATIONS)] == ["DRAINING"], 5)
        session.execute(view(ON, "c"))
        assert wait_until(lambda: [row[0] for row in session.execute(APPLICATIONS)] == ["READY"], 3)
        session.execute("WAIT")
        assert wait_until(lambda: [row[0] for row in session.execute(APPLICATIONS)] == ["DRAINING"], 5)
        for pid in filled.java_processes():
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        session.execute(view(ON, "d"))
        session.execute("WAIT")
        assert all(is_right(session, name) for name in "abcd")
        assert len(session.execute(APPLICATIONS).fetchall()) == 2
        assert wait_until(lambda: {row[0] for row in session.execute(APPLICATIONS)} == {"DESTROYED"}, 15)


IDLE = "SELECT id, cores FROM rw_catalog.rw_spark_applications WHERE is_serverless AND state = 'READY' ORDER BY id"


@pytest.mark.spark
@pytest.mark.long
def test_groups_that_are_kept_ready(filled: Server) -> None:
    """A job takes one, another takes its place; what nobody wants any more ends, and all end with the server."""
    with filled.connect() as session:

        def idle(number: int, cores: int) -> bool:
            there = session.execute(IDLE).fetchall()
            return len(there) == number and all(row[1] == cores for row in there)

        session.execute("ALTER SYSTEM SET serverless_backfill_warm_groups = 1")
        assert wait_until(lambda: idle(1, 1), 60)
        [(first, _)] = session.execute(IDLE)
        assert session.execute("SELECT count(*) FROM rw_catalog.rw_worker_nodes").fetchone() == (1,)
        session.execute(view(ON))
        assert is_right(session)
        states = "SELECT id, state, reason FROM rw_catalog.rw_spark_applications WHERE is_serverless"
        assert wait_until(lambda: (first, "DESTROYED", None) in session.execute(states).fetchall(), 20)
        assert wait_until(lambda: idle(1, 1), 60)
        assert len(session.execute(states).fetchall()) == 2
        session.execute("ALTER SYSTEM SET serverless_backfill_sku = '2c4g'")
        assert wait_until(lambda: idle(1, 2), 60)
        [(last, _)] = session.execute(IDLE)
        os.kill(next(pid for pid in filled.java_processes() if is_of(pid, last)), signal.SIGKILL)
        assert wait_until(lambda: idle(1, 2) and session.execute(IDLE).fetchall() > [(last, 2)], 60)
        session.execute("ALTER SYSTEM SET serverless_backfill_enabled = false")
        assert wait_until(lambda: filled.java_processes() == [], 20)


def is_of(pid: int, application: int) -> bool:
    return any(f"risingwave-backfill-{application}".encode() in part for part in command_line(pid))


@pytest.mark.spark
@pytest.mark.long
def test_a_group_that_dies_while_it_starts(filled: Server) -> None:
    with filled.connect() as session:
        with creating(filled, view(ON)) as failures:
            assert wait_until(lambda: bool(filled.java_processes()), 10)
            os.kill(filled.java_processes()[0], signal.SIGKILL)
        assert failures == []
        assert is_right(session)
        assert len(session.execute(APPLICATIONS).fetchall()) == 1


@pytest.mark.spark
@pytest.mark.long
def test_nothing_outlives_a_crash(filled: Server) -> None:
    """Not even when the processes that look after the groups are killed too: the next server ends them."""
    with filled.connect() as session:
        session.execute("SET background_ddl = true")
        session.execute(view(f"{ON}, backfill_rate_limit = 20000"))
        assert wait_until(lambda: (status(session) or ("",))[0] == "RUNNING", 60)
        [application] = filled.java_processes()
    keepers = [pid for pid in descendants(filled.process.pid) if any(b"keeper" in p for p in command_line(pid))]
    for pid in (*keepers, filled.process.pid):
        os.kill(pid, signal.SIGKILL)
    filled.process.wait(10)
    time.sleep(0.5)
    assert filled.java_processes() == [application], "the test is to leave an orphan"
    again = Server(filled.data, spark_memory_mib=1024)
    try:
        assert application not in again.java_processes()
        with again.connect() as session:
            session.execute("WAIT")
            assert is_right(session)
            assert session.execute(APPLICATIONS).fetchall()[0] == ("DESTROYED", "the server ended")
    finally:
        again.stop()


@pytest.mark.spark
@pytest.mark.long
def test_many_groups_one_after_the_other(filled: Server) -> None:
    with filled.connect() as session:
        for number in range(6):
            session.execute(view(ON, f"v{number}"))
            assert is_right(session, f"v{number}")
        assert wait_until(lambda: set(session.execute(APPLICATIONS)) == {("DESTROYED", None)}, 15)
        assert wait_until(lambda: descendants(filled.process.pid) == [], 15)
        assert not list((filled.data / "scratch").iterdir())


@pytest.mark.spark
@pytest.mark.long
def test_a_group_of_two_nodes(filled: Server) -> None:
    """Each node is an executor, a process of its own."""
    with filled.connect() as session:
        session.execute("ALTER SYSTEM SET serverless_backfill_replicas = 2")
        session.execute("SET background_ddl = true")
        session.execute(view(ON))
        assert wait_until(lambda: (status(session) or ("",))[0] == "RUNNING", 60)
        nodes = session.execute("SELECT host, state, parallelism FROM rw_catalog.rw_worker_nodes").fetchall()
        assert [(host[-2:], state, cores) for host, state, cores in nodes] == [
            ("-0", "RUNNING", 1),
            ("-1", "RUNNING", 1),
        ]
        commands = [command_line(pid) for pid in descendants(filled.process.pid)]
        assert sum(any(b"ExecutorBackend" in part for part in command) for command in commands) == 2
        session.execute("WAIT")
        assert is_right(session)
        assert wait_until(lambda: descendants(filled.process.pid) == [], 15)


HASHED = f"{'md5(' * 8}k::varchar{')' * 8}"


def processor_time(pids: list[int]) -> int:
    """What processes have used of processors, in hundredths of a second."""
    used = 0
    for pid in pids:
        with suppress(OSError):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            used += int(fields[11]) + int(fields[12])
    return used


@pytest.mark.spark
@pytest.mark.long
def test_two_nodes_fill_a_view_at_once(filled: Server) -> None:
    """Of what one node would read as one slice each node reads half, in a task of its own, at the same time."""
    with filled.connect() as session:
        session.execute("ALTER SYSTEM SET backfill_slice_rows = DEFAULT")
        session.execute("ALTER SYSTEM SET serverless_backfill_replicas = 2")
        session.execute("INSERT INTO t SELECT i, i % 7 FROM range(100000, 2000000) AS r (i)")
        session.execute("SET background_ddl = true")
        session.execute(view(ON, query=f"SELECT v, count(*) AS n, max({HASHED}) AS w FROM t GROUP BY v"))

        def executors() -> list[int]:
            commands = {pid: command_line(pid) for pid in descendants(filled.process.pid)}
            return [pid for pid, command in commands.items() if any(b"ExecutorBackend" in part for part in command)]

        assert wait_until(lambda: len(executors()) == 2, PATIENCE_SECONDS)
        nodes = executors()

        def tasks() -> list[int]:
            """The time that the tasks of each executor have used."""
            return [processor_time(descendants(executor)) for executor in nodes]

        together = 0
        while session.execute("SELECT 1 FROM rw_catalog.rw_ddl_progress").fetchall():
            before = tasks()
            time.sleep(0.5)
            together += all(after - used > 5 for used, after in zip(before, tasks(), strict=True))
        assert together > 1
        assert session.execute("SELECT count(*), sum(n) FROM v").fetchall() == [(7, 2_000_000)]
    assert filled.stop() == 0
    with opened_lake(filled.data) as lake:
        # Merges of what these have left read no rows of the table.
        read = "SELECT row_count FROM lake.sparkwave.finished_slices WHERE row_count > 0"
        assert lake.cursor().execute(read).fetchall() == [(1_000_000,), (1_000_000,)]


# Groups of the configuration.


@pytest.mark.spark
@pytest.mark.long
def test_views_in_a_resource_group(tmp_path: Path) -> None:
    """A view is filled in its group, and moves by ALTER; a database's views are in the database's."""
    config = tmp_path / "sparkwave.toml"
    config.write_text(CONFIG)
    server = Server(tmp_path / "data", fills_on_spark=True, config=config, spark_memory_mib=1024)
    job = "SELECT resource_group FROM rw_catalog.rw_streaming_jobs WHERE name = 'v'"
    try:
        with server.connect() as session:
            fill(session)
            session.execute("ALTER SYSTEM SET streaming_engine = spark")
            session.execute(view("resource_group = 'analytics'"))
            assert session.execute(job).fetchall() == [("analytics",)]
            used = "SELECT DISTINCT resource_group FROM rw_catalog.rw_spark_applications"
            assert session.execute(used).fetchall() == [("analytics",)]
            session.execute("INSERT INTO t VALUES (-1, 41)")
            assert is_right(session)
            assert session.execute(used).fetchall() == [("analytics",)]
            assert refused(session, "ALTER MATERIALIZED VIEW v SET RESOURCE_GROUP = nope").sqlstate == "42704"
            session.execute("ALTER MATERIALIZED VIEW v RESET RESOURCE_GROUP")
            assert session.execute(job).fetchall() == [("default",)]
            session.execute("INSERT INTO t VALUES (-2, 41)")
            assert is_right(session)
            assert len(session.execute(used).fetchall()) == 2
            groups = "SELECT name, streaming_workers, streaming_jobs FROM rw_catalog.rw_resource_groups ORDER BY name"
            assert session.execute(groups).fetchall() == [("analytics", 1, 0), ("default", 1, 1)]
    finally:
        server.stop()
