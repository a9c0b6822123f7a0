"""Starts servers without importing their modules each time, which takes half of a start.

`ForkServer` runs this file as a process that has imported a server's modules and forks it for every server. Everything
after the imports is what `sparkwave serve` does.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parent.parent


class ForkServer:
    """The process that is forked; it ends with this one."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                cwd=ROOT,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._file = ours.makefile("rw")
        self._lock = threading.Lock()

    def start(self, arguments: list[str], environment: Mapping[str, str], log: Path) -> Forked:
        """Run `sparkwave` with arguments, whose output is appended to a file, in a session of its own."""
        log.touch()
        return Forked(self, self.ask("start", arguments, dict(environment), str(log)))

    def ask(self, *request: object) -> int:
        with self._lock:
            print(json.dumps(request), file=self._file, flush=True)
            return int(json.loads(self._file.readline()))


class Forked:
    """A forked process, with the methods of `subprocess.Popen`."""

    def __init__(self, server: ForkServer, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._server = server
        self._descriptor = os.pidfd_open(pid)
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None and select.select([self._descriptor], [], [], 0)[0]:
                self.returncode = self._server.ask("reap", self.pid)
                os.close(self._descriptor)
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            select.select([self._descriptor], [], [], timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired("sparkwave", timeout or 0)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def _serve(control: socket.socket) -> None:
    """Answer requests; returns in each forked process, and ends this one when nobody asks any more."""
    file = control.makefile("rw")
    for line in file:
        match json.loads(line):
            case ["start", arguments, environment, log]:
                answer = os.fork()
                if answer == 0:
                    file.close()
                    control.close()
                    return _become(arguments, environment, log)
            case ["reap", pid]:
                answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(answer, file=file, flush=True)
    os._exit(0)


def _become(arguments: list[str], environment: dict[str, str], log: str) -> None:
    os.setsid()
    for flags, path, descriptors in (
        (os.O_RDONLY, os.devnull, (0,)),
        (os.O_WRONLY | os.O_APPEND | os.O_CREAT, log, (1, 2)),
    ):
        opened = os.open(path, flags, 0o666)
        for descriptor in descriptors:
            os.dup2(opened, descriptor)
        os.close(opened)
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    sys.argv = ["sparkwave", *arguments]


if __name__ == "__main__":
    sys.path[0] = str(ROOT)
    from sparkwave.server.command_line.allocator import use_jemalloc

    use_jemalloc()  # as `sparkwave serve` does
    gc.disable()
    import duckdb

    from sparkwave.server.command_line import run_server  # noqa: F401
    from sparkwave.server.command_line.main import main

    duckdb.default_connection().close()  # its thread, which a forked process lacks, would be waited for
    gc.freeze()
    gc.enable()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    main()
