"""Programs of other clients that tests run against a server, and the environments they run in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from servers import Server

TESTS = Path(__file__).parent
ENVIRONMENT = TESTS.parent / ".venv-clients"
JDBC_DRIVER = Path("/usr/share/java/postgresql.jar")

needs_clients = pytest.mark.skipif(
    not (ENVIRONMENT / "installed").exists(), reason="the clients are not installed; `make clients` does that"
)
needs_jdbc = pytest.mark.skipif(
    shutil.which("javac") is None or not JDBC_DRIVER.exists(),
    reason="no JDK or no driver (Debian: apt-get install openjdk-17-jdk-headless libpostgresql-jdbc-java)",
)


def address(server: Server) -> dict[str, str]:
    """This process' environment, and where libpq and asyncpg find the server."""
    where = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "root", "PGDATABASE": "dev"}
    return {**os.environ, **where, "PYTHONDONTWRITEBYTECODE": "1"}


def run_checks(server: Server, client: str, timeout: float = 240) -> None:
    """Run tests/clients/<client>_client.py. The test fails with what it printed."""
    # psycopg 3 is installed with Sparkwave.
    python = sys.executable if client == "psycopg" else ENVIRONMENT / "bin" / "python"
    options = ["-q", "-c", os.devnull, "-p", "no:cacheprovider", "--rootdir", ".", "--confcutdir", "."]
    command = [str(python), "-m", "pytest", *options, f"{client}_client.py"]
    _output(command, timeout, cwd=TESTS / "clients", env=address(server))


def run_jdbc(server: Server, timeout: float = 240) -> None:
    """Run tests/clients/JdbcClient.java from its source. The test fails with what it printed."""
    url = f"jdbc:postgresql://127.0.0.1:{server.port}/dev?user=root"
    program = str(TESTS / "clients" / "JdbcClient.java")
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", str(JDBC_DRIVER), program, url]
    assert "ok simple mode" in _output(command, timeout)


def _output(command: list[str], timeout: float, **options: Any) -> str:
    """What a program prints. The test fails with it unless the program succeeds."""
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
