"""Detects clients that have gone: PostgreSQL's client_connection_check_interval, and its keepalives.

No thread reads from a client while its statement runs or waits for a lock. So a watcher finds a closed connection
within seconds, and TCP keepalive probes find a client that vanished without closing. A session that is told to end and
waits for a client that does not read, as after the end of only one direction, is cut off.
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
# After so many checks a session that was told to end is cut off from its client.
CHECKS_TO_END = 5
# Probe after 60 s without traffic, every 10 s, give up after 6; sent data may stay unacknowledged for 120,000 ms. On
# macOS TCP_KEEPIDLE is TCP_KEEPALIVE, and TCP_USER_TIMEOUT does not exist.
_PROBES = {"TCP_KEEPIDLE": 60, "TCP_KEEPALIVE": 60, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 6, "TCP_USER_TIMEOUT": 120_000}
_ENDED = select.POLLHUP | select.POLLERR
# Tells that the client has closed its side; 0 where no event does (macOS).
_CLOSED = getattr(select, "POLLRDHUP", 0)


class Client(Protocol):
    process_id: int
    connection: socket.socket
    terminating: bool

    def terminate(self) -> None: ...

    def cut(self) -> None: ...


def probe(connection: socket.socket) -> None:
    """Turn on TCP keepalive probes for a connection."""
    with suppress(OSError):
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _PROBES.items():
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def has_gone(connection: socket.socket, closed: int = _CLOSED) -> bool:
    """Return whether the client has closed its side of the connection, or the connection is closed.

    If `closed` is 0, a closed side is seen once the client's messages are read.
    """
    poll = select.poll()
    try:
        poll.register(connection.fileno(), _ENDED | (closed or select.POLLIN))
        events = [event for _, event in poll.poll(0)]
        if events and not closed and not events[0] & _ENDED:
            return not connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        return bool(events)
    except (OSError, ValueError):  # closed by this server, or encrypted
        return False


def watch(clients: Callable[[], Iterable[Client]], stopping: threading.Event) -> None:
    """End the sessions of clients that have gone, until `stopping` is set."""
    told: dict[int, int] = {}  # how often a session was found that had been told to end, by its process id
    while not stopping.wait(CHECK_SECONDS):
        found = clients()
        told = {client.process_id: told.get(client.process_id, 0) + 1 for client in found if client.terminating}
        for client in found:
            if told.get(client.process_id, 0) > CHECKS_TO_END:
                client.cut()
            elif has_gone(client.connection):
                client.terminate()
