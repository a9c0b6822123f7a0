"""`sparkwave serve`: starts a server's parts, waits for a signal, and stops them."""

from __future__ import annotations

import errno
import logging
import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.pandas_stand_in import give_stand_in
from sparkwave.catalog.lake.storage import Lease
from sparkwave.executor.spark import pandas_import
from sparkwave.server.context import Context, open_context
from sparkwave.server.dispatch import Client
from sparkwave.server.operations import standby
from sparkwave.server.operations.config import Config
from sparkwave.server.operations.memory_release import keep_what_there_is
from sparkwave.server.operations.metrics_server import MetricsServer
from sparkwave.server.wire.authentication import has_passwords, is_this_machine
from sparkwave.server.wire.connections import WireServer

if TYPE_CHECKING:
    from sparkwave.server.dashboard.listener import Dashboard

logger = logging.getLogger("sparkwave")

STOP_SECONDS = 9.0  # for all parts to stop; container systems kill a server after 10


def serve(config: Config, parameters: dict[str, str]) -> None:
    """Serve until SIGTERM or SIGINT. Raises Error when the server cannot start."""
    config.storage.check()
    give_stand_in()
    pandas_import.defer()
    stop = threading.Event()
    # Python calls signal handlers in the main thread, which may be inside a library's call or hold a lock that the
    # handler needs. So the signal's wakeup descriptor informs the thread that ends the process.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell)
    threading.Thread(target=_end, args=(told, stop), name="end", daemon=True).start()
    if config.catalog is None:
        _serve(config, parameters, None, stop)
    else:
        standby.take_turns(config, stop, lambda lease, over: _serve(config, parameters, lease, over))
    # All parts are closed. Python's own exit waits for threads of libraries, which may never end.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def _end(told: int, stop: threading.Event) -> None:
    """Stop the server after a signal, and end the process if that takes too long: acknowledged writes are durable."""
    while not {*os.read(told, 64)} & {signal.SIGTERM, signal.SIGINT}:
        pass
    signal.setitimer(signal.ITIMER_REAL, STOP_SECONDS + 1)  # kills the process if one thread blocks all others
    stop.set()
    time.sleep(STOP_SECONDS)
    text = f"the server has not stopped within {STOP_SECONDS:g} s; it ends now"
    saying = threading.Thread(target=logger.warning, args=(text,), daemon=True)
    saying.start()
    saying.join(0.5)  # nobody may read the log's pipe
    os._exit(0)


def _serve(config: Config, parameters: dict[str, str], lease: Lease | None, stop: threading.Event) -> None:
    config.storage.check()
    context = open_context(config, parameters, lease)
    metrics: MetricsServer | None = None
    try:
        metrics = serve_metrics(config.metrics_address, context)
        wire = _listen(config, context)
        threading.Thread(target=wire.serve_forever, args=(0.1,), name="wire", daemon=True).start()
        dashboard = _open_dashboard(config, context)
        host, port = wire.server_address[:2]
        keep_what_there_is()
        print(f"sparkwave ready on {host}:{port}{' for reading' if context.lake.read_only else ''}", flush=True)
        if not is_this_machine(str(host)) and not has_passwords(context.store.catalog.users):
            logger.warning("only this machine can connect before a user has a password: ALTER USER root PASSWORD '…'")
        stop.wait()
        if dashboard is not None:
            dashboard.close()
        wire.shutdown()
        wire.close_sessions()
        wire.server_close()
    finally:
        if metrics is not None:
            metrics.stop()
        context.close()


def serve_metrics(address: tuple[str, int] | None, context: Context) -> MetricsServer | None:
    """Start the metrics server, None if it is off.

    An unusable address only gives a warning: SQL is served without metrics.
    """
    if address is None:
        return None
    try:
        server = MetricsServer(address, context)
    except OSError as error:
        reason = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
        logger.warning("no metrics: cannot listen on %s:%d: %s; choose another with --metrics", *address, reason)
        return None
    logger.info("metrics are at http://%s:%d/metrics", *server.server_address[:2])
    return server


def _listen(config: Config, context: Context) -> WireServer:
    try:
        return WireServer(
            config.address,
            lambda startup: Client(context, startup),
            context.users,
            config.max_message_bytes,
            config.tls_context,
            config.tls == "required",
        )
    except OSError as error:
        reason = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise Error(f"cannot listen on {config.listen}: {reason}", hint="Choose another with --listen.") from error


def _open_dashboard(config: Config, context: Context) -> Dashboard | None:
    """Start the dashboard, None if it is off. An unusable address only gives a warning."""
    address = config.dashboard_address
    if address is None:
        return None
    from sparkwave.server.dashboard.listener import Dashboard  # imported late: takes 0.2 s

    try:
        dashboard = Dashboard(context, address)
    except OSError as error:
        reason = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
        logger.warning(
            "no dashboard: cannot listen on %s: %s; choose another with --dashboard", config.dashboard, reason
        )
        return None
    print(f"dashboard on {dashboard.url}", flush=True)
    return dashboard
