"""The other server: a PostgreSQL of Debian's packages on this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from sparkwave.server.demo.local_server import free_port

# It may use about the memory that Spark has here. What makes it durable (fsync, synchronous_commit) stays as it is.
SETTINGS = {
    "shared_buffers": "1GB",
    "work_mem": "64MB",
    "maintenance_work_mem": "256MB",
    "effective_cache_size": "4GB",
    "max_wal_size": "8GB",
    "max_connections": "600",
}
NOTE = f"PostgreSQL is durable as it comes (fsync on), with {', '.join(f'{k} = {v}' for k, v in SETTINGS.items())}."


@dataclass(frozen=True)
class Target:
    """A server to measure."""

    port: int
    user: str
    database: str

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(host="127.0.0.1", port=self.port, user=self.user, dbname=self.database, autocommit=True)


@contextlib.contextmanager
def postgres() -> Iterator[Target | None]:
    """A server on an empty directory; None where PostgreSQL is not installed."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not programs:
        yield None
        return
    directory, port = Path(tempfile.mkdtemp(prefix="bench-postgres-")), free_port()
    as_user = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    data = directory / "data"
    try:
        if as_user:
            shutil.chown(directory, "postgres")
        initdb = [*as_user, str(programs[-1]), "-D", str(data), "-A", "trust", "-U", "postgres"]
        subprocess.run(initdb, check=True, capture_output=True)
        settings = {"listen_addresses": "127.0.0.1", "unix_socket_directories": directory, **SETTINGS}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        server = subprocess.Popen(
            [*as_user, str(programs[-1].with_name("postgres")), "-D", str(data), "-p", str(port), *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield _when_ready(Target(port, "postgres", "postgres"))
        finally:
            # At once, whoever is connected.
            stop = [*as_user, str(programs[-1].with_name("pg_ctl")), "-D", str(data), "stop", "-m", "fast"]
            subprocess.run(stop, check=True, capture_output=True)
            server.wait(60)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _when_ready(target: Target, seconds: float = 30) -> Target:
    deadline = time.monotonic() + seconds
    while True:
        try:
            target.connect().close()
            return target
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)
