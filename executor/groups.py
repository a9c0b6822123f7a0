"""Resource groups: Spark applications, each a Spark Connect server process with its own cores and memory.

`default` is started on first use or at start-up; a serverless group is provisioned for one job and destroyed after it.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.connect.client.retries import DefaultPolicy

from catalog import errors
from catalog.errors import Error
from catalog.lake import Lake
from catalog.names import system_table

logger = logging.getLogger(__name__)

DEFAULT_GROUP = "default"
SPARK_CONNECT_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"


@dataclass(frozen=True)
class Size:
    """What a group may use: cores, and memory of its process in MiB. A higher niceness yields the CPU sooner."""

    cores: int
    memory_mib: int
    niceness: int = 0
    # Compile code once and lightly: a short-lived JVM is ready sooner and uses 40 % less CPU in its first minute.
    is_short_lived: bool = False


@dataclass
class Group:
    """A running Spark application. `node_name` is what `rw_worker_nodes` and the metrics call its node."""

    id: int
    name: str
    node_name: str
    size: Size
    port: int
    process: subprocess.Popen[bytes]
    log_file: Path
    _sessions: list[SparkSession] = field(default_factory=list)
    _idle_sessions: list[SparkSession] = field(default_factory=list)

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    @contextlib.contextmanager
    def session(self) -> Iterator[SparkSession]:
        """A Spark session of its own for the caller; sessions are reused, because a new one costs a second."""
        session = self._idle_sessions.pop() if self._idle_sessions else None
        if session is None:
            session = SparkSession.builder.remote(f"sc://127.0.0.1:{self.port}").create()
            session.client.set_retry_policies([_retry_policy()])
            self._sessions.append(session)
        try:
            yield session
        finally:
            self._idle_sessions.append(session)

    def close(self) -> None:
        """End the process and what the client library would still do with it when Python exits."""
        self.process.terminate()
        if self.process.stdin:
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        for session in self._sessions:
            session.client.close()


def _retry_policy() -> DefaultPolicy:
    """A group that does not answer for a few seconds is dead; the library's own policy tries for ten minutes."""
    return DefaultPolicy(max_retries=4, initial_backoff=100, max_backoff=1000)


class _Starting:
    """A group being started on a thread of its own, which any number of jobs wait for."""

    def __init__(self, start: Callable[[], Group]) -> None:
        self._done = threading.Event()
        self._group: Group | None = None
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, args=(start,), name="start-group", daemon=True)
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait until it has started or given up."""
        self._thread.join(timeout_s)

    def _run(self, start: Callable[[], Group]) -> None:
        try:
            self._group = start()
        except Exception as error:
            self._error = error
        finally:
            self._done.set()

    @property
    def is_over(self) -> bool:
        """It failed, or its process has ended since."""
        return self._done.is_set() and (self._group is None or not self._group.is_alive)

    def wait(self, is_cancelled: Callable[[], bool]) -> Group:
        while not self._done.wait(0.05):
            if is_cancelled():
                raise Error("canceling statement due to user request", errors.QUERY_CANCELED)
        if self._group is None:
            assert self._error is not None
            raise self._error
        return self._group


class Groups:
    """Starts, lists and ends groups. Nodes are rows of the lake while they live."""

    def __init__(self, lake: Lake, master: str | None, default_size: Size, provision_timeout_s: float) -> None:
        self._lake = lake
        self._master = master
        self._default_size = default_size
        self._timeout_s = provision_timeout_s
        self._lock = threading.Lock()
        self._default: _Starting | None = None
        self._closing = False
        self._groups: dict[int, Group] = {}
        self._next = {"compute": 1, "backfill": 1}
        with lake.transaction(lake.cursor()) as cursor:
            cursor.execute(f"DELETE FROM {system_table('nodes')}")

    def default(self, is_cancelled: Callable[[], bool] = lambda: False) -> Group:
        """The default group; starts it if it is not running, once for all who wait.

        Raises Error 57014 when cancelled, 53000 if the group cannot be had in time.
        """
        with self._lock:
            if self._default is None or self._default.is_over:
                self._default = _Starting(self._start_default)
            starting = self._default
        return starting.wait(is_cancelled)

    def _start_default(self) -> Group:
        for dead in [group for group in self._groups.values() if group.name == DEFAULT_GROUP]:
            self.destroy(dead)
        return self._start("compute", DEFAULT_GROUP, self._default_size, lambda: self._closing)

    def provision(self, size: Size, is_cancelled: Callable[[], bool]) -> Group:
        """A new group for one job. Raises Error 57014 when cancelled, 53000 when it cannot be had in time."""
        return self._start("backfill", None, size, is_cancelled)

    def destroy(self, group: Group) -> None:
        """End a group and everything it runs."""
        with self._lock:
            self._groups.pop(group.id, None)
        group.close()
        with self._lake.transaction(self._lake.cursor()) as cursor:
            cursor.execute(f"DELETE FROM {system_table('nodes')} WHERE id = ?", [group.id])

    def close(self) -> None:
        """End all groups."""
        self._closing = True
        if self._default is not None:
            self._default.join(10)
        for group in list(self._groups.values()):
            self.destroy(group)

    def _start(self, kind: str, name: str | None, size: Size, is_cancelled: Callable[[], bool]) -> Group:
        with self._lock:
            number = self._next[kind]
            self._next[kind] += 1
            node_id = sum(self._next.values())
        node_name = f"risingwave-{kind}-{number}"
        port = _free_port()
        log_file = self._lake.directory / "logs" / f"{node_name}.log"
        log_file.parent.mkdir(exist_ok=True)
        process = _launch(self._master or f"local[{size.cores}]", node_name, size, port, log_file)
        group = Group(node_id, name or node_name, node_name, size, port, process, log_file)
        with self._lock:
            self._groups[group.id] = group
        try:
            self._add_node(group)
            self._wait_until_ready(group, is_cancelled)
            with self._lake.transaction(self._lake.cursor()) as cursor:
                cursor.execute(f"UPDATE {system_table('nodes')} SET state = 'RUNNING' WHERE id = ?", [group.id])
        except BaseException:
            self.destroy(group)
            raise
        return group

    def _add_node(self, group: Group) -> None:
        with self._lake.transaction(self._lake.cursor()) as cursor:
            cursor.execute(
                f"INSERT INTO {system_table('nodes')} VALUES (?, ?, '127.0.0.1', ?, 'STARTING', ?, ?, ?, now())",
                [group.id, group.node_name, group.port, group.name, group.size.cores, group.size.memory_mib << 20],
            )

    def _wait_until_ready(self, group: Group, is_cancelled: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._timeout_s
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", group.port), 1):
                return
            if is_cancelled():
                raise Error("canceling statement due to user request", errors.QUERY_CANCELED)
            if not group.is_alive:
                raise Error(
                    f"resource group {group.name} could not be started: {_last_line(group.log_file)}",
                    errors.INSUFFICIENT_RESOURCES,
                )
            if time.monotonic() > deadline:
                raise Error(
                    f"resource group {group.name} was not ready within {self._timeout_s:.0f} s",
                    errors.INSUFFICIENT_RESOURCES,
                )
            time.sleep(0.05)


def _launch(master: str, name: str, size: Size, port: int, log_file: Path) -> subprocess.Popen[bytes]:
    settings = {
        "spark.app.name": name,
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(max(2 * size.cores, 2)),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.caseSensitive": "true",
        # As in Postgres, integers overflow with an error.
        "spark.sql.ansi.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.files.maxPartitionBytes": "32m",
        "spark.sql.warehouse.dir": str(log_file.parent / "warehouse"),
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
        "spark.local.dir": str(log_file.parent / "spark"),
    }
    home = Path(pyspark.__file__).parent
    command = [str(home / "bin" / "spark-submit"), "--class", SPARK_CONNECT_CLASS, "--master", master]
    java_options = "-XX:+UseParallelGC" + (" -XX:TieredStopAtLevel=1" if size.is_short_lived else "")
    command += ["--driver-memory", f"{size.memory_mib}m", "--driver-java-options", java_options]
    command += [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    with open(log_file, "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "executor.keeper", str(size.niceness), *command, "spark-internal"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "SPARK_HOME": str(home)},
        )


def require_java() -> None:
    """Raise Error when there is no Java for Spark to run on."""
    if not (os.environ.get("JAVA_HOME") or shutil.which("java")):
        raise Error("Spark needs Java 17 or newer, and no java was found", hint="Install a JRE, or set JAVA_HOME.")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _last_line(log_file: Path) -> str:
    lines = [line for line in log_file.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else f"see {log_file}"
