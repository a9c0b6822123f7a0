"""Lets a process that has made its imports become Spark's daemon of Python workers, because imports take half a second.

Spark starts its daemon with the first task in Python. The process ahead is started together with Spark, makes the
imports meanwhile, and listens on a socket. The daemon that Spark starts hands over its standard streams, arguments,
environment and directory, and from then on waits for the other process to end. Where there is no such process, or it
has been taken, the daemon makes its imports itself.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

# The environment variable with the path of the socket, and the argument of the process ahead.
SOCKET = "SPARKWAVE_DAEMON_SOCKET"
AHEAD = "ahead"
_PERIOD_S = 0.5


def listen(path: str) -> socket.socket:
    """Return a socket for one connection, which only this user may open.

    Ends this process where there can be none: the path may be longer than the system allows.
    """
    listening = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o077)
    try:
        listening.bind(path)
    except OSError as error:
        sys.exit(f"the imports of Spark's Python workers are not made ahead: {error}: {path}")
    finally:
        os.umask(mask)
    listening.listen(1)
    return listening


def take_over(listening: socket.socket) -> None:
    """Wait for the daemon that Spark starts, and take its place. Ends this process at the end of standard input."""
    ready, _, _ = select.select([listening, sys.stdin], [], [])
    if listening not in ready:
        sys.exit()
    with listening, listening.accept()[0] as connection:
        Path(listening.getsockname()).unlink()
        size, streams, _, _ = socket.recv_fds(connection, 8, 3)
        with connection.makefile("rb") as file:
            place = json.loads(file.read(int.from_bytes(size)))
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        sys.argv[1:] = place["arguments"]
        os.environ.clear()
        os.environ.update(place["environment"])
        os.chdir(place["directory"])
        connection.sendall(os.getpid().to_bytes(8))


def hand_over(path: str) -> bool:
    """Let the process ahead take this one's place, and wait for its end. Returns False if there is none."""
    place = {"arguments": sys.argv[1:], "environment": dict(os.environ), "directory": os.getcwd()}
    text = json.dumps(place).encode()
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(path)
            socket.send_fds(connection, [len(text).to_bytes(8)], [0, 1, 2])
            connection.sendall(text)
            process = connection.recv(8)
    except OSError:
        return False
    if process:
        _wait(int.from_bytes(process))
    return bool(process)


def _wait(process: int) -> None:
    """Wait for the end of a process that is no child."""
    if hasattr(os, "pidfd_open"):
        with suppress(ProcessLookupError):
            select.select([os.pidfd_open(process)], [], [])
        return
    while _is_there(process):
        time.sleep(_PERIOD_S)


def _is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True
