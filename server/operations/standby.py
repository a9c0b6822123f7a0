"""The role of a server on a shared PostgreSQL catalog: one writes, the others read and replace it on failure."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sparkwave.catalog.errors import Error, Refused
from sparkwave.catalog.lake.storage import Lease
from sparkwave.server.operations.config import Config

logger = logging.getLogger(__name__)

# How often a server checks that its role is still right.
PERIOD_S = 0.5

# Serves until the event is set; without the lease, the server only reads.
Serve = Callable[[Lease, threading.Event], None]


def take_turns(config: Config, stop: threading.Event, serve: Serve) -> None:
    """Serve until `stop` is set, in the role that the lease gives this server.

    Raises Refused when the files do not belong to the catalog, and Error when the catalog cannot be reached at the
    start. Later the server tries again until the catalog can be reached.
    """
    assert config.catalog is not None
    lease = Lease(config.catalog, config.advertised)
    while not stop.is_set():
        try:
            lease.try_acquire()
            _serve_as_long(lease, stop, serve)
        except Refused:
            lease.close()
            raise
        except Error as error:
            logger.error("%s; trying again", error.message)
            lease.close()
            lease = _again(config, stop) or lease
    lease.close()


def _serve_as_long(lease: Lease, stop: threading.Event, serve: Serve) -> None:
    """Serve until `stop`, or until a reader gets the lease. Raises Error 08006 when the catalog cannot be reached."""
    is_writer = lease.is_held
    over = threading.Event()
    lost: list[Error] = []

    def watch() -> None:
        try:
            while not over.wait(PERIOD_S):
                if stop.is_set() or (not is_writer and lease.try_acquire()):
                    break
                if is_writer:
                    lease.check()
        except Error as error:
            lost.append(error)
        over.set()

    watcher = threading.Thread(target=watch, name="role", daemon=True)
    watcher.start()
    try:
        serve(lease, over)
    finally:
        over.set()
        watcher.join()
    if lost and not stop.is_set():
        raise lost[0]


def _again(config: Config, stop: threading.Event) -> Lease | None:
    """Return a new lease once the catalog can be reached; None when the server stops."""
    assert config.catalog is not None
    while not stop.wait(1):
        try:
            return Lease(config.catalog, config.advertised)
        except Error:
            continue
    return None
