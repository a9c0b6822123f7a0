"""The arguments of the command line, for argparse. This module imports nothing slow."""

from __future__ import annotations

import argparse
from dataclasses import fields
from importlib import metadata
from pathlib import Path

from sparkwave.server.operations.settings import HELP, Settings

# The settings of commands that read a lake without a server.
_OF_THE_LAKE = {"data", "catalog", "shared", "s3_endpoint", "s3_region"}


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; its result has the command's name in `command`."""
    made = argparse.ArgumentParser(prog="sparkwave", description="Materialized views, backfilled on Spark.")
    made.add_argument("--version", action="version", version=f"sparkwave {metadata.version('sparkwave')}")
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="serve SQL clients")
    serve.add_argument("--config", type=Path, metavar="FILE", help="a TOML file with the same settings")
    _add_client(commands.add_parser("status", help="say how a running server does"))
    sql = commands.add_parser("sql", help="run SQL on a running server, with psql or a small prompt")
    _add_client(sql)
    sql.add_argument("--command", "-c", dest="texts", action="append", default=[], metavar="SQL", help="run it and end")
    commands.add_parser("demo", help="a tour of half a minute, on a server of its own")
    check = commands.add_parser("check", help="say what is wrong with a lake that no server writes")
    backup = commands.add_parser("backup", help="copy all that a server has, as of one moment, while it runs")
    restore = commands.add_parser("restore", help="make a lake of a backup")
    completion = commands.add_parser("completion", help="print what lets a shell complete the arguments")
    completion.add_argument("shell", choices=("bash", "zsh"))
    for field in (field for field in fields(Settings) if field.name in HELP):
        default = f" (default {field.default})" if field.default is not None else ""
        name = field.name.replace("_", "-")
        readers = {"data": (check,)}.get(field.name, (check, backup, restore))
        for command in (serve, *(readers if field.name in _OF_THE_LAKE else ())):
            command.add_argument(f"--{name}", help=f"{HELP[field.name]}{default}", metavar=name.upper())
    check.add_argument("--views", action="store_true", help="compute every view anew and compare")
    check.add_argument("--online", action="store_true", help="have a running server compare the views of a database")
    _add_client(check)
    backup.add_argument("target", type=Path, metavar="TARGET", help="a directory to be made, on its machine")
    one = backup.add_mutually_exclusive_group()
    one.add_argument("--listen", help=f"HOST:PORT of the server (default {Settings.listen})", metavar="LISTEN")
    one.add_argument("--data", help="instead, a data directory that no server holds", metavar="DATA")
    backup.add_argument("--user", help="a superuser of it (default root)", metavar="USER", default="root")
    restore.add_argument("backup", type=Path, metavar="BACKUP", help="a directory that backup has made")
    restore.add_argument("--data", required=True, help="the directory to be made, or an empty one", metavar="DATA")
    return made


def _add_client(command: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that connects to a running server."""
    command.add_argument("--listen", help=f"HOST:PORT of the server (default {Settings.listen})", metavar="LISTEN")
    command.add_argument("--user", help="who to connect as (default root)", metavar="USER", default="root")
    command.add_argument("--database", help="the database (default dev)", metavar="DATABASE", default="dev")
