"""The command line: `sparkwave serve`. Wiring only."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import signal
import sys
import threading
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from catalog.errors import Error
from server.authentication import has_passwords, is_this_machine
from server.config import Config, load_config
from server.context import Context, open_context
from server.dispatch import Client
from server.wire import WireServer

if TYPE_CHECKING:
    from server.dashboard.listener import Dashboard

logger = logging.getLogger("sparkwave")


def main() -> None:
    """Run a command; exit 1 with one clear line when it cannot."""
    arguments = _parse_arguments()
    try:
        config, parameters = load_config(vars(arguments), os.environ, arguments.config)
        logging.basicConfig(level=config.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
        serve(config, parameters)
    except Error as error:
        sys.exit("\n".join(f"sparkwave: {text}" for text in (error.message, error.hint) if text))


def serve(config: Config, parameters: dict[str, str]) -> None:
    """Serve until SIGTERM or SIGINT. Raises Error when it cannot start."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    context = open_context(config, parameters)
    try:
        wire = _listen(config, context)
        threading.Thread(target=wire.serve_forever, name="wire", daemon=True).start()
        dashboard = _open_dashboard(config, context)
        host, port = wire.server_address[:2]
        print(f"sparkwave ready on {host}:{port}", flush=True)
        if not is_this_machine(str(host)) and not has_passwords(context.store.catalog.users):
            logger.warning("only this machine can connect before a user has a password: ALTER USER root PASSWORD '…'")
        stop.wait()
        if dashboard is not None:
            dashboard.close()
        wire.shutdown()
        wire.close_sessions()
        wire.server_close()
    finally:
        context.close()


def _listen(config: Config, context: Context) -> WireServer:
    try:
        return WireServer(
            config.address,
            lambda startup: Client(context, startup),
            lambda: context.store.catalog.users,
            config.max_message_bytes,
            config.tls_context,
            config.tls == "required",
        )
    except OSError as error:
        reason = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise Error(f"cannot listen on {config.listen}: {reason}", hint="Choose another with --listen.") from error


def _open_dashboard(config: Config, context: Context) -> Dashboard | None:
    """The dashboard, if there is to be one. Clients are served without it when it cannot listen."""
    address = config.dashboard_address
    if address is None:
        return None
    from server.dashboard.listener import Dashboard  # takes a fifth of a second, for those only who want it

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


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="sparkwave", description="Materialized views, backfilled on Spark.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve_parser = commands.add_parser("serve", help="serve SQL clients")
    serve_parser.add_argument("--config", type=Path, metavar="FILE", help="a TOML file with the same settings")
    for field in (field for field in fields(Config) if field.name in _HELP):
        default = f" (default {field.default})" if field.default is not None else ""
        name = field.name.replace("_", "-")
        serve_parser.add_argument(f"--{name}", help=f"{_HELP[field.name]}{default}", metavar=name.upper())
    return parser.parse_args()


_HELP = {
    "listen": "HOST:PORT to listen on",
    "dashboard": "HOST:PORT of the dashboard for browsers; '' for none",
    "data": "directory of the lake and its catalog",
    "spark_master": "Spark master URL; by default Spark runs in processes of this machine",
    "spark_start": "eager: start Spark with the server; on_demand: when the first view needs it",
    "spark_cores": "cores of the default resource group",
    "spark_memory_mib": "memory of the default resource group, MiB",
    "duckdb_memory": "memory limit of the server's own queries, e.g. 4GB",
    "max_message_bytes": "largest message a client may send",
    "log_level": "DEBUG, INFO, WARNING or ERROR",
    "tls": "off; optional: for clients that ask for it, if there is a certificate; required: for all",
    "tls_certificate": "PEM file with the server's certificate and those that lead to its authority",
    "tls_key": "PEM file with the certificate's key, if that is not in the same file",
}


if __name__ == "__main__":
    main()
