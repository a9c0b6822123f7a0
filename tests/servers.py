"""Real Sparkwave servers for tests: a process each, on a free port, over a data directory of the test's own."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fork_server import Forked, ForkServer

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.storage import Storage

# For what takes seconds on an idle machine and may take minutes on one whose cores are all busy.
PATIENCE_SECONDS = 240
READY_SECONDS = PATIENCE_SECONDS
STOP_SECONDS = 60
# One thread reads as few rows as tests have anyway. With another one, the one that asked waits for it busily (DuckDB
# 1.5.5), which takes half of the processor time while both cores are busy. Random cases (tests/fuzz) use all cores.
DUCKDB_THREADS = 1


def in_files(data: Path) -> dict[str, str]:
    """Catalogs are files in their data directories, unless `--postgres` is given."""
    return {}


# Gives the options of a server that say where it keeps the catalog of a data directory.
CATALOGS: Callable[[Path], dict[str, str]] = in_files


class Server:
    """One `sparkwave serve` process. `options` are its command line options, with underscores.

    With `fills_on_spark` every view is filled there, however little it reads. `patch` is Python that it runs first.
    With `makes_lake` an empty directory stays empty, as at a user's first start.
    """

    def __init__(
        self,
        data: Path,
        environment: Mapping[str, str] | None = None,
        fills_on_spark: bool = False,
        patch: str = "",
        makes_lake: bool = False,
        **options: object,
    ) -> None:
        self.data = data if makes_lake or not options.keys().isdisjoint(("catalog", "shared")) else with_lake(data)
        self.log_file = data.with_name(f"{data.name}.log")
        given = {
            "listen": f"127.0.0.1:{free_port()}",
            "data": data,
            "spark_start": "on_demand",
            "duckdb_threads": DUCKDB_THREADS,
            **CATALOGS(data),
            **options,
        }
        self.address = str(given["listen"])
        self.port = int(self.address.rpartition(":")[2])
        self.process = launch(self.log_file, environment, patch, **given)
        self._wait_until_ready()
        if fills_on_spark:
            with self.connect() as own:
                own.execute("ALTER SYSTEM SET backfill_engine = spark")

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while f"sparkwave ready on {self.address}" not in self.log():
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended with {self.process.returncode}:\n{self.log()}")
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"the server was not ready within {READY_SECONDS} s:\n{self.log()}")
            time.sleep(0.02)

    def log(self) -> str:
        """What this and earlier servers of the directory have printed."""
        return self.log_file.read_text(errors="replace")

    def connect(self, **options: Any) -> psycopg.Connection[Any]:
        """An autocommit connection."""
        given = {"host": "127.0.0.1", "port": self.port, "user": "root", "dbname": "dev", "autocommit": True}
        return psycopg.connect(**{**given, "connect_timeout": PATIENCE_SECONDS, **options})

    def psql_command(self, *arguments: str) -> list[str]:
        """A psql that reads no startup file and connects here."""
        address = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "root", "-d", "dev"]
        return ["psql", "-X", *address, *arguments]

    def psql(self, *arguments: str, stdin: str | None = None, timeout: float = 60) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.psql_command(*arguments),
            input=stdin if stdin is not None else "",
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def java_processes(self) -> list[int]:
        """Process ids of the Spark applications that have to do with this data directory."""
        return java_processes(self.data)

    def kill(self) -> None:
        """SIGKILL, as a crash would: only the server, not what it has started."""
        self.process.kill()
        self.process.wait(STOP_SECONDS)

    def stop(self, timeout: float = STOP_SECONDS) -> int:
        """SIGTERM. Returns the exit code; a server that does not end in time is killed and the test fails."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise


def launch(
    log_file: Path, environment: Mapping[str, str] | None = None, patch: str = "", **options: object
) -> subprocess.Popen[bytes] | Forked:
    """Start `sparkwave serve` without waiting for anything; metrics and a dashboard only if the options have them."""
    given = {"metrics": "", "dashboard": "", **options}
    arguments = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SPARKWAVE_")}
    env = {**inherited, **(environment or {})}
    if not patch:
        return fork_server().start(["serve", *arguments], env, log_file)
    program = f"{patch}\nfrom sparkwave.server.command_line.main import main\nmain()"
    with open(log_file, "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", program, "serve", *arguments],
            cwd=Path(__file__).parent.parent,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=env,
            start_new_session=True,
        )


@functools.cache
def fork_server() -> ForkServer:
    return ForkServer()


def with_lake(data: Path) -> Path:
    """The directory, with a copy of a new lake if it has nothing: quicker than a first start, which others test."""
    if CATALOGS is in_files and not (data.exists() and any(data.iterdir())):
        shutil.copytree(_new_lake(), data, dirs_exist_ok=True)
    return data


@functools.cache
def _new_lake() -> Path:
    directory = Path(tempfile.mkdtemp(prefix="sparkwave-new-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    Lake(Storage(directory / "data")).close()
    return directory / "data"


def sparkwave(*arguments: object, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, with its output."""
    return subprocess.run(
        [sys.executable, "-m", "sparkwave", *map(str, arguments)],
        cwd=Path(__file__).parent.parent,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=240,
    )


def without_spark(directory: Path) -> dict[str, str]:
    """An environment in which Spark starts but never gets ready, so that jobs wait for it."""
    java = directory / "java" / "bin" / "java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text("#!/bin/sh\nexec sleep 600\n")
    java.chmod(0o755)
    return {"JAVA_HOME": str(directory / "java")}


def java_processes(data: Path) -> list[int]:
    """Process ids of the Spark applications that have to do with a data directory, the oldest first."""
    below = str(data.absolute()).encode() + b"/"
    commands = {pid: command_line(pid) for pid in _pids()}
    return sorted(p for p, c in commands.items() if c[0].endswith(b"java") and any(below in part for part in c))


def command_line(pid: int) -> list[bytes]:
    """The arguments of a process; one empty one if there is no such process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return [b""]


def descendants(pid: int) -> list[int]:
    """Process ids of all that a process has started, directly or not."""
    parents: dict[int, int] = {}
    for other in _pids():
        with contextlib.suppress(OSError):
            # After the name in parentheses: state, parent.
            parents[other] = int(Path(f"/proc/{other}/stat").read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [other for other, parent in parents.items() if parent == one]
    return found[1:]


def free_port() -> int:
    """Return a port that nobody listens on, below those that systems give to outgoing connections."""
    while True:
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", random.SystemRandom().randrange(10_000, 32_768)))
            return int(probe.getsockname()[1])


def wait_until(is_true: Callable[[], bool], timeout: float = 30, interval: float = 0.05) -> bool:
    """Poll until `is_true()` holds. Returns whether it did in time."""
    deadline = time.monotonic() + timeout
    while not is_true():
        if time.monotonic() > deadline:
            return False
        time.sleep(interval)
    return True


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def refused(connection: psycopg.Connection[Any], sql: str, *parameters: object) -> psycopg.DatabaseError:
    """The error that a statement ends with."""
    with pytest.raises(psycopg.DatabaseError) as caught:
        connection.execute(sql, parameters or None)
    return caught.value


def rows(
    connection: psycopg.Connection[Any], query: str, values: tuple[Any, ...] | None = None, **options: Any
) -> list[Any]:
    """All rows of a statement, as tuples."""
    return connection.execute(query, values, **options).fetchall()
