"""Serves `/metrics` over HTTP, in Prometheus' text formats."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

from sparkwave.catalog.counters import REGISTRY
from sparkwave.server.context import Context
from sparkwave.server.operations.metrics import register

logger = logging.getLogger(__name__)

# A client that is silent for so long is disconnected.
SILENCE_SECONDS = 10


class _Handler(WSGIRequestHandler):
    timeout = SILENCE_SECONDS

    def log_message(self, format: str, *arguments: Any) -> None:
        logger.debug("%s %s", self.client_address[0], format % arguments)


class MetricsServer(ThreadingMixIn, WSGIServer):
    """Serves metrics at `address` as soon as it is constructed.

    The constructor raises OSError for an unusable address.
    """

    daemon_threads = True

    def __init__(self, address: tuple[str, int], context: Context) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)
        register(context)
        self.set_app(_only_metrics(make_wsgi_app(REGISTRY)))
        threading.Thread(target=self.serve_forever, name="metrics-server", daemon=True).start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()


def _only_metrics(app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def serve(environment: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if environment["PATH_INFO"] == "/metrics":
            return app(environment, start_response)
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b"Metrics are at /metrics\n"]

    return serve
