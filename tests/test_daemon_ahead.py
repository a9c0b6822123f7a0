"""The process that makes the imports of Spark's Python daemon ahead, and takes the daemon's place."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import wait_until

from sparkwave.executor.spark import keeper
from sparkwave.executor.spark.daemon_ahead import AHEAD, SOCKET, listen

DAEMON = "sparkwave.executor.spark.kernel_daemon"


def started(path: Path, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, SOCKET: str(path / "daemon"), **variables}
    command = [sys.executable, "-m", DAEMON, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=path, env=environment)


@pytest.fixture
def ahead(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    process = started(tmp_path, AHEAD)
    assert wait_until((tmp_path / "daemon").exists)
    yield process
    process.kill()
    process.wait()


def port(daemon: subprocess.Popen[bytes]) -> int:
    """What the daemon writes once it takes connections (pyspark/daemon.py)."""
    assert daemon.stdout is not None
    return int.from_bytes(daemon.stdout.read(4))


def test_it_takes_the_place(tmp_path: Path, ahead: subprocess.Popen[bytes]) -> None:
    """It has the daemon's streams, directory and environment, and ends with the daemon's standard input."""
    (tmp_path / "elsewhere").mkdir()
    began = time.monotonic()
    daemon = started(tmp_path, "pyspark.worker", PWD=str(tmp_path), MARK="given")
    assert port(daemon) > 0 and time.monotonic() - began < 20
    process = Path(f"/proc/{ahead.pid}")
    assert ahead.stdout is not None
    assert (process / "cwd").resolve() == tmp_path and not (tmp_path / "daemon").exists()
    assert daemon.poll() is None
    assert daemon.stdin is not None
    daemon.stdin.close()
    ahead.wait(10)
    daemon.wait(10)


def test_the_daemon_ends_with_it(tmp_path: Path, ahead: subprocess.Popen[bytes]) -> None:
    daemon = started(tmp_path, "pyspark.worker")
    port(daemon)
    ahead.kill()
    ahead.wait()
    assert daemon.wait(10) == 0


@pytest.mark.parametrize("socket", ("none", "of a dead process"))
def test_without_it_the_daemon_goes_on_alone(tmp_path: Path, socket: str) -> None:
    if socket != "none":
        listen(str(tmp_path / "daemon")).close()
    daemon = started(tmp_path, "pyspark.worker")
    assert port(daemon) > 0
    assert daemon.stdin is not None
    daemon.stdin.close()
    daemon.wait(10)


def test_only_the_user_may_connect(tmp_path: Path) -> None:
    with listen(str(tmp_path / "daemon")):
        assert stat.S_IMODE((tmp_path / "daemon").stat().st_mode) & 0o077 == 0


def test_it_ends_with_the_keeper(tmp_path: Path) -> None:
    """Whether or not a daemon has come."""
    (tmp_path / "scratch").mkdir()
    companion = ["sh", "-c", f"cat > /dev/null; echo > {tmp_path}/ended"]
    command = [sys.executable, "-P", keeper.__file__, keeper.NORMAL, "0", str(tmp_path / "scratch"), "sleep", "60"]
    kept = subprocess.Popen([*command, "--", *companion], stdin=subprocess.PIPE)
    assert wait_until((tmp_path / "scratch" / "pid").exists)
    kept.terminate()
    kept.wait(15)
    assert wait_until((tmp_path / "ended").exists)
