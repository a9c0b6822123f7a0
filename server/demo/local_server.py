"""Runs a temporary server: starts it, waits until it is ready, and always cleans up."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import psycopg

START_TIMEOUT_S = 60
STOP_TIMEOUT_S = 30


class ServerError(Exception):
    """The server did not start, or ended by itself."""


class LocalServer:
    """A running `sparkwave serve`, its data directory and its log."""

    def __init__(self, *options: str) -> None:
        """Start the server with more command-line options. Raises ServerError when it does not start."""
        self.directory = Path(tempfile.mkdtemp(prefix="sparkwave-"))
        self.data = self.directory / "data"
        self.port = free_port()
        self._log = self.directory / "server.log"
        command = [str(Path(sys.executable).with_name("sparkwave")), "serve", "--listen", f"127.0.0.1:{self.port}"]
        with open(self._log, "wb") as log:
            # A separate process group: Ctrl-C reaches only this process, which then stops the server properly.
            self._process = subprocess.Popen(
                [*command, "--data", str(self.data), *options], stdout=log, stderr=log, start_new_session=True
            )
        try:
            self._wait()
        except BaseException:
            self.stop()
            raise

    def _wait(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ServerError(f"the server did not start:\n{self.log_tail()}")
            with contextlib.suppress(psycopg.OperationalError):
                self.connect().close()
                return
            time.sleep(0.05)
        raise ServerError(f"the server was not ready within {START_TIMEOUT_S} s:\n{self.log_tail()}")

    def connect(self) -> psycopg.Connection:
        """Return a new connection that commits each statement by itself."""
        return psycopg.connect(
            host="127.0.0.1", port=self.port, user="root", dbname="dev", autocommit=True, connect_timeout=10
        )

    @property
    def process_id(self) -> int:
        return self._process.pid

    def log_tail(self, lines: int = 15) -> str:
        """Return the last lines of the server's log, without the line that says it is ready."""
        text = self._log.read_text(errors="replace") if self._log.exists() else ""
        return "\n".join([line for line in text.splitlines() if "sparkwave ready" not in line][-lines:])

    def stop(self) -> None:
        """Stop the server and remove its directory."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)


@contextlib.contextmanager
def local_server(*options: str) -> Iterator[LocalServer]:
    """A context with a server; SIGTERM ends the context too, so that nothing is left behind."""
    previous = signal.signal(signal.SIGTERM, _exit)
    server = LocalServer(*options)
    try:
        yield server
    finally:
        server.stop()
        signal.signal(signal.SIGTERM, previous)


def _exit(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
