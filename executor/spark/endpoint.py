"""A Spark Connect server that this process has started: its operating system process and its sessions."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import grpc
from pyspark.sql import SparkSession

from sparkwave.catalog.locks import RankedLock
from sparkwave.executor.spark import keeper, pandas_import
from sparkwave.executor.spark.applications import Application, command, environment, nodes_of
from sparkwave.executor.spark.usage import Tree

_ERROR = re.compile(r"error|exception|could not", re.IGNORECASE)
# Seconds that its processes may take to end before they are killed.
END_SECONDS = 10.0


class Ended(Exception):
    """The application has ended before it was ready. The text is the reason, from its log."""


@dataclass(eq=False)
class _Lent:
    """A session in use, with its number of users, who belong to one owner."""

    session: SparkSession
    users: int = 0


class Endpoint:
    """An application, which `start` runs, again when it has ended. `priority` is as in the keeper."""

    def __init__(self, application: Application, priority: str, log_file: Path) -> None:
        self._application = application
        self._priority = priority
        self._log_file = log_file
        self._process: subprocess.Popen[bytes] | None = None
        self._sessions: list[SparkSession] = []
        self._idle_sessions: list[SparkSession] = []
        self._lent: dict[object, _Lent] = {}
        self._lock = RankedLock()

    def start(self) -> None:
        """Start the processes. Raises OSError if that fails."""
        scratch = self._application.scratch
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        self._log_file.parent.mkdir(exist_ok=True)
        grace = str(nodes_of(self._application).grace_s)
        kept = [sys.executable, "-P", keeper.__file__, self._priority, grace, str(scratch)]
        with open(self._log_file, "ab") as log:
            self._process = subprocess.Popen(
                [*kept, *command(self._application)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=environment(self._application),
            )

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def tree(self) -> Tree | None:
        """The application's processes; None when there are none."""
        app, process = self._application, self._process
        return Tree(app.name, process.pid, app.is_in_one_process) if process is not None and self.is_alive else None

    def wait_until_ready(self, deadline: float, check: Callable[[], None]) -> None:
        """Wait until the server answers, which it does once it has all its nodes.

        Meanwhile the client library is loaded. `deadline` is a time of `time.monotonic`; `check` raises to give up.
        Raises Ended, and TimeoutError with the reason for waiting.
        """
        pandas_import.load_spark_client()
        while not answers(self._application.port):
            check()
            if not self.is_alive:
                raise Ended(self._last_words())
            if time.monotonic() > deadline:
                one = self._application.is_in_one_process
                raise TimeoutError("Spark Connect did not answer" if one else "not all of its nodes have come")
            time.sleep(0.05)

    @contextlib.contextmanager
    def session(self, owner: object) -> Iterator[SparkSession]:
        """Yield a Spark session; only users with the same owner share it at a time.

        Sessions are reused, because a new session has to start its own workers, which takes half a second.
        """
        lent = self._lend(owner)
        try:
            yield lent.session
        finally:
            self._take_back(owner, lent)

    @property
    def has_idle_session(self) -> bool:
        """Whether a session can be had that is connected already."""
        return bool(self._idle_sessions)

    def _lend(self, owner: object) -> _Lent:
        with self._lock:
            lent = self._lent.get(owner)
            if lent is None:
                lent = self._lent[owner] = _Lent(self._idle_sessions.pop() if self._idle_sessions else self._connect())
            lent.users += 1
            return lent

    def _connect(self) -> SparkSession:
        session = connect(self._application.port)
        self._sessions.append(session)
        return session

    def _take_back(self, owner: object, lent: _Lent) -> None:
        with self._lock:
            lent.users -= 1
            if not lent.users and lent.session in self._sessions:
                del self._lent[owner]
                self._idle_sessions.append(lent.session)

    def abandon(self, session: SparkSession) -> None:
        """Make the calls of a session fail at once, even if the server does not answer.

        The session is not used again.
        """
        with self._lock:
            self._sessions.remove(session)
            self._lent = {owner: lent for owner, lent in self._lent.items() if lent.session is not session}
        session.client._channel.close()  # the client's own `close` would wait for the server

    def is_responsive(self, timeout_s: float) -> bool:
        """Return whether the gRPC server answers.

        A connection alone proves nothing: the system accepts it for a hung process.
        """
        with grpc.insecure_channel(f"127.0.0.1:{self._application.port}") as channel:
            try:
                grpc.channel_ready_future(channel).result(timeout_s)
            except grpc.FutureTimeoutError:
                return False
            return True

    def end(self) -> None:
        """End the processes, and the calls of the client library, which would wait for a hung process."""
        self.end_processes()
        for session in self._sessions:
            session.client.close()
        if self._process is not None and self._process.stdin:
            self._process.stdin.close()

    def end_processes(self) -> None:
        """End the processes; running calls fail."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            keeper.end_orphan(self._application.scratch)

    def _last_words(self) -> str:
        """Return the last line of the log that tells of an error, else the last line."""
        lines = [line.strip() for line in self._log_file.read_text(errors="replace").splitlines() if line.strip()]
        errors = [line for line in lines if _ERROR.search(line) and not line.startswith("at ")]
        return (errors or lines or [f"see {self._log_file}"])[-1]


def connect(port: int) -> SparkSession:
    """Return a new session on a Spark Connect server of this machine.

    A call is one stream of answers and is not retried: an unreachable server is soon dead, steps are tried again, and
    the answers of two attempts would name the files of both. To attach to a call again after a cut of the network, the
    library's way, would be two calls more.
    """
    session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    session.client.disable_reattachable_execute()
    session.client.set_retry_policies([])
    return session


def answers(port: int) -> bool:
    """Return whether a process listens on a port of this machine."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def free_port() -> int:
    """Return a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
