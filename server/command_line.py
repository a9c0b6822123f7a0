"""The command line: `sparkwave serve`, `check`, `backup` and `restore`. Wiring only."""

from __future__ import annotations

import argparse
import errno
import logging
import os
import signal
import sys
import threading
import time
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.storage import Lease
from sparkwave.executor.maintenance.backup import back_up_storage, restore
from sparkwave.executor.maintenance.check import check_storage
from sparkwave.server.context import Context, open_context
from sparkwave.server.dispatch import Client
from sparkwave.server.operations import standby
from sparkwave.server.operations.config import Config, load_config
from sparkwave.server.operations.logs import start_logging
from sparkwave.server.operations.memory_release import keep_what_there_is
from sparkwave.server.operations.metrics_server import MetricsServer
from sparkwave.server.statements.backups import ask_for_backup
from sparkwave.server.wire.authentication import has_passwords, is_this_machine
from sparkwave.server.wire.connections import WireServer

if TYPE_CHECKING:
    from sparkwave.server.dashboard.listener import Dashboard

logger = logging.getLogger("sparkwave")

STOP_SECONDS = 9.0  # for all that runs to end; whoever runs servers in containers kills them after 10


def main() -> None:
    """Run a command; exit 1 with one clear line when it cannot."""
    arguments = _parse_arguments()
    try:
        config, parameters = load_config(vars(arguments), os.environ, getattr(arguments, "config", None))
        start_logging(config.log_level, config.log_format)
        match arguments.command:
            case "check":
                sys.exit(check(config, arguments.views))
            case "backup":
                back_up(config, arguments.data is not None, arguments.user, arguments.target)
            case "restore":
                restore(arguments.backup, config.storage)
                others = ", --catalog and --shared as here" if config.catalog else ""
                print(f"restored: sparkwave serve --data {arguments.data}{others}")
            case _:
                serve(config, parameters)
    except Error as error:
        sys.exit("\n".join(f"sparkwave: {text}" for text in (error.message, error.hint) if text))


def check(config: Config, views: bool) -> int:
    """Say what is wrong with a lake. Returns 1 if anything is. Raises Error when it cannot look."""
    report = check_storage(config.storage, views, config.duckdb_memory)
    for finding in report.findings:
        print(finding)
    for reason in report.skipped:
        print(f"not compared: {reason}")
    compared = f", {report.views} views and indexes compared with their queries" if views else ""
    print(f"{report.files} files, {report.relations} relations{compared}: {len(report.findings) or 'no'} findings")
    return 1 if report.findings else 0


def back_up(config: Config, is_stopped: bool, user: str, target: Path) -> None:
    """Back up a data directory that no server holds, or have the running server do that. Raises Error when it fails."""
    target = target.absolute()
    done = back_up_storage(config.storage, target) if is_stopped else ask_for_backup(config.address, user, target)
    print(f"snapshot {done.snapshot}: {done.files} files, {done.size} bytes, in {target}")


def serve(config: Config, parameters: dict[str, str]) -> None:
    """Serve until SIGTERM or SIGINT. Raises Error when it cannot start."""
    config.storage.check()
    stop = threading.Event()
    # Python calls handlers in the main thread, which may be in a call of a library, or hold what a handler needs.
    # So the system tells the thread that ends all.
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
    # All is closed. What Python does at its end waits for threads of libraries, which may wait for ever.
    logging.shutdown()
    sys.stdout.flush()
    os._exit(0)


def _end(told: int, stop: threading.Event) -> None:
    """Once the server is to stop it ends in time, as if killed: what was acknowledged is durable."""
    while not {*os.read(told, 64)} & {signal.SIGTERM, signal.SIGINT}:
        pass
    signal.setitimer(signal.ITIMER_REAL, STOP_SECONDS + 1)  # for a thread that lets no other one get on
    stop.set()
    time.sleep(STOP_SECONDS)
    text = f"the server has not stopped within {STOP_SECONDS:g} s; it ends now"
    saying = threading.Thread(target=logger.warning, args=(text,), daemon=True)
    saying.start()
    saying.join(0.5)  # nobody may read the log
    os._exit(0)


def _serve(config: Config, parameters: dict[str, str], lease: Lease | None, stop: threading.Event) -> None:
    config.storage.check()
    context = open_context(config, parameters, lease)
    metrics: MetricsServer | None = None
    try:
        metrics = _serve_metrics(config.metrics_address, context)
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


def _serve_metrics(address: tuple[str, int] | None, context: Context) -> MetricsServer | None:
    """Metrics are no reason not to serve SQL: an address that cannot be had is warned of."""
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
    """The dashboard, if there is to be one. Clients are served without it when it cannot listen."""
    address = config.dashboard_address
    if address is None:
        return None
    from sparkwave.server.dashboard.listener import Dashboard  # takes a fifth of a second, for those only who want it

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
    check_parser = commands.add_parser("check", help="say what is wrong with a lake that no server writes")
    backup_parser = commands.add_parser("backup", help="copy all that a server has, as of one moment, while it runs")
    restore_parser = commands.add_parser("restore", help="make a lake of a backup")
    for field in (field for field in fields(Config) if field.name in _HELP):
        default = f" (default {field.default})" if field.default is not None else ""
        name = field.name.replace("_", "-")
        readers = {"data": (check_parser,)}.get(field.name, (check_parser, backup_parser, restore_parser))
        for command in (serve_parser, *(readers if field.name in _OF_THE_LAKE else ())):
            command.add_argument(f"--{name}", help=f"{_HELP[field.name]}{default}", metavar=name.upper())
    check_parser.add_argument("--views", action="store_true", help="compute every view anew and compare")
    backup_parser.add_argument("target", type=Path, metavar="TARGET", help="a directory to be made, on its machine")
    one = backup_parser.add_mutually_exclusive_group()
    one.add_argument("--listen", help=f"HOST:PORT of the server (default {Config.listen})", metavar="LISTEN")
    one.add_argument("--data", help="instead, a data directory that no server holds", metavar="DATA")
    backup_parser.add_argument("--user", help="a superuser of it (default root)", metavar="USER", default="root")
    restore_parser.add_argument("backup", type=Path, metavar="BACKUP", help="a directory that backup has made")
    restore_parser.add_argument(
        "--data", required=True, help="the directory to be made, or an empty one", metavar="DATA"
    )
    return parser.parse_args()


_OF_THE_LAKE = {"data", "catalog", "shared", "s3_endpoint", "s3_region"}
_HELP = {
    "listen": "HOST:PORT to listen on",
    "dashboard": "HOST:PORT of the dashboard for browsers; '' for none",
    "data": "directory of the lake and its catalog",
    "catalog": "connection string of a PostgreSQL that holds the catalog instead",
    "shared": "directory for the lake's files that all servers and Spark nodes see, or s3://BUCKET; with --catalog",
    "advertise": "HOST:PORT where servers that only read send those who want to write (default: --listen)",
    "s3_endpoint": "URL of the bucket's server (default: Amazon's of the region); keys by configuration or environment",
    "s3_region": "region of the bucket",
    "spark_master": "Spark master URL; by default Spark runs in processes of this machine",
    "spark_start": "eager: start Spark with the server; on_demand: when the first view needs it",
    "spark_cores": "cores of the default resource group",
    "spark_memory_mib": "memory of the default resource group, MiB",
    "duckdb_memory": "memory limit of the server's own queries, e.g. 4GB",
    "duckdb_spill": "most of what they write to disk beyond that, e.g. 50GB; by default 90 %% of what is free",
    "max_message_bytes": "largest message a client may send",
    "metrics": "HOST:PORT where Prometheus may read metrics; empty for nowhere",
    "log_level": "DEBUG, INFO, WARNING or ERROR",
    "log_format": "text or json",
    "tls": "off; optional: for clients that ask for it, if there is a certificate; required: for all",
    "tls_certificate": "PEM file with the server's certificate and those that lead to its authority",
    "secret_key_file": "file with the key of stored secrets (default: secret.key in the data directory)",
    "tls_key": "PEM file with the certificate's key, if that is not in the same file",
}


if __name__ == "__main__":
    main()
