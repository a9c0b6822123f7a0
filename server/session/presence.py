"""Detects clients that have gone: PostgreSQL's client_connection_check_interval, and its keepalives.

No thread reads from a client while its statement runs or waits for a lock. So a watcher finds a closed connection
within seconds, and TCP keepalive probes find a client that vanished without closing.
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
# Probe after 60 s without traffic, every 10 s, give up after 6; sent data may stay unacknowledged for 120,000 ms.
_PROBES = {socket.TCP_KEEPIDLE: 60, socket.TCP_KEEPINTVL: 10, socket.TCP_KEEPCNT: 6, socket.TCP_USER_TIMEOUT: 120_000}
_GONE = select.POLLRDHUP | select.POLLHUP | select.POLLERR


class Client(Protocol):
    process_id: int
    connection: socket.socket

    def terminate(self) -> None: ...


def probe(connection: socket.socket) -> None:
    """Turn on TCP keepalive probes for a connection."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _PROBES.items():
            connection.setsockopt(socket.IPPROTO_TCP, option, value)


def has_gone(connection: socket.socket) -> bool:
    """Return whether the client has closed its side of the connection, or the connection is closed."""
    poll = select.poll()
    try:
        poll.register(connection.fileno(), _GONE)
        return bool(poll.poll(0))
    except (OSError, ValueError):  # closed by this server
        return False


def watch(clients: Callable[[], Iterable[Client]], stopping: threading.Event) -> None:
    """End the sessions of clients that have gone, until `stopping` is set."""
    while not stopping.wait(CHECK_SECONDS):
        for client in clients():
            if has_gone(client.connection):
                client.terminate()
