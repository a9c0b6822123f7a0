"""Whether clients are still there: PostgreSQL's client_connection_check_interval, and its keepalives.

A client that closes its connection while its statement runs, or waits for a lock, is noticed within seconds; nobody
reads from it meanwhile. One that vanishes without a word no longer answers the system's probes.
"""

from __future__ import annotations

import logging
import select
import socket
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

logger = logging.getLogger(__name__)

CHECK_SECONDS = 2.0
# Probes after so long without traffic, so often, until so many are unanswered; and how long data may be unanswered.
_PROBES = {socket.TCP_KEEPIDLE: 60, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 6, socket.TCP_USER_TIMEOUT: 120_000}
_GONE = select.POLLRDHUP | select.POLLHUP | select.POLLERR


class Client(Protocol):
    process_id: int
    connection: socket.socket

    def terminate(self) -> None: ...


def probe(connection: socket.socket) -> None:
    """Have the system find out whether a silent client is there."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _PROBES.items():
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def has_gone(connection: socket.socket) -> bool:
    """Whether the client has closed its side of a connection, or there is none any more."""
    poll = select.poll()
    try:
        poll.register(connection.fileno(), _GONE)
        return bool(poll.poll(0))
    except (OSError, ValueError):  # closed here
        return False


def watch(clients: Callable[[], Iterable[Client]], stopping: threading.Event) -> None:
    """End the sessions of clients that have gone, until the event is set."""
    while not stopping.wait(CHECK_SECONDS):
        for client in clients():
            if has_gone(client.connection):
                client.terminate()
