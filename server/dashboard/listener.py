"""The dashboard's port: HTTP by uvicorn, with an event loop in a separate thread.

A slow client costs that thread a buffer: a request runs only once it has arrived, a connection without a complete
answer for a while is cut, and the number of connections is limited.
"""

from __future__ import annotations

import asyncio
import socket
import threading

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sparkwave.server.context import Context
from sparkwave.server.dashboard.app import make_app

MOST_CONNECTIONS = 64
# A connection without a complete answer for so long is cut, whether it is idle or slow.
SILENT_SECONDS = 30.0
LARGEST_HEADER = 16 << 10


class Connection(H11Protocol):
    """One client's connection, with a time limit."""

    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            transport.abort()
        else:
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._end is not None:
            self._end.cancel()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._end is not None:
            self._end.cancel()
        self._end = self.loop.call_later(SILENT_SECONDS, self.transport.abort)


class Dashboard:
    """Serves the dashboard at an address until `close`. The constructor raises OSError for a port in use.

    It speaks HTTPS, with the certificate of the wire, if the server has one.
    """

    def __init__(self, context: Context, address: tuple[str, int]) -> None:
        self._socket = socket.create_server(
            address, family=socket.AF_INET6 if ":" in address[0] else socket.AF_INET, backlog=MOST_CONNECTIONS
        )
        host, port = self._socket.getsockname()[:2]
        is_encrypted = context.config.tls_context is not None
        name = f"[{host}]" if ":" in host else host
        self.url = f"{'https' if is_encrypted else 'http'}://{name}:{port}"
        config = uvicorn.Config(
            make_app(context, port, is_encrypted),
            http=Connection,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # take the client's address from its connection
            h11_max_incomplete_event_size=LARGEST_HEADER,
            timeout_graceful_shutdown=1,
            ssl_certfile=context.config.tls_certificate if is_encrypted else None,
            ssl_keyfile=context.config.tls_key if is_encrypted else None,
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._run, name="dashboard", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def close(self) -> None:
        """End the connections and the thread."""
        self._server.should_exit = True
        self._thread.join(5)
        self._socket.close()
