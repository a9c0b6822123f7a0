"""A real PostgreSQL to compare with: Debian's, in a data directory of the test's own."""

from __future__ import annotations

import atexit
import functools
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from servers import Server, free_port, wait_until

_USER = "postgres"
_DATA = Path(__file__).parent / "data"


class Postgres:
    """One PostgreSQL, with Sparkwave's user `root` and database `dev`. It runs as an unprivileged user, as it must."""

    def __init__(self, *more: str) -> None:
        """With `more` settings. Skips the test where PostgreSQL is not installed or cannot be run."""
        binaries = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not binaries:
            pytest.skip("PostgreSQL is not installed (Debian: apt-get install postgresql)")
        self.port = free_port()
        self._as_other = []
        if os.geteuid() == 0:
            if not shutil.which("setpriv") or _USER not in {entry.pw_name for entry in pwd.getpwall()}:
                pytest.skip(f"PostgreSQL does not run as root, and there is no user {_USER} or no setpriv")
            self._as_other = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups"]
        as_other = tuple(self._as_other)
        self.directory = directory = _directory(as_other)
        data = directory / "pg"
        _run([*as_other, "cp", "-r", str(_new_data(binaries[-1], as_other)), str(data)], directory)
        settings = [
            f"port={self.port}",
            "listen_addresses=127.0.0.1",
            f"unix_socket_directories={directory}",
            "fsync=off",
            *more,
        ]
        self.process = subprocess.Popen(
            [
                *self._as_other,
                str(binaries[-1] / "postgres"),
                "-D",
                str(data),
                *(part for s in settings for part in ("-c", s)),
            ],
            cwd=directory,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if not wait_until(self._is_ready, timeout=60):
            self.stop()
            raise RuntimeError("PostgreSQL was not ready within 60 s")

    def _is_ready(self) -> bool:
        try:
            self.connect("postgres").close()
        except psycopg.OperationalError:
            return False
        return True

    def conninfo(self, database: str = "dev") -> str:
        return f"host=127.0.0.1 port={self.port} user=root dbname={database}"

    def connect(self, database: str = "dev") -> psycopg.Connection[Any]:
        """An autocommit connection."""
        return psycopg.connect(self.conninfo(database), autocommit=True)

    def stop(self) -> None:
        """At once: nothing in it is needed any more."""
        self.process.kill()
        self.process.wait(30)
        shutil.rmtree(self.directory, ignore_errors=True)


def _directory(as_other: tuple[str, ...]) -> Path:
    """A directory of PostgreSQL's user; not below pytest's directory, which only its own user may look into."""
    directory = Path(tempfile.mkdtemp(prefix="sparkwave-postgres-"))
    if as_other:
        shutil.chown(directory, _USER, _USER)
    return directory


@functools.cache
def _new_data(binaries: Path, as_other: tuple[str, ...]) -> Path:
    """A new data directory with the user and the database, made once and copied for each server."""
    directory = _directory(as_other)
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    data = directory / "pg"
    options = ["-D", str(data), "-U", "root", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync"]
    _run([*as_other, str(binaries / "initdb"), *options], directory)
    single = [str(binaries / "postgres"), "--single", "-D", str(data), "-c", "fsync=off", "postgres"]
    _run([*as_other, *single], directory, "CREATE DATABASE dev\n")
    return data


def _run(command: list[str], directory: Path, stdin: str = "") -> None:
    done = subprocess.run(command, cwd=directory, input=stdin, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


class PostgresCatalogs:
    """A database for each data directory, in one PostgreSQL."""

    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._databases: dict[Path, str] = {}

    def __call__(self, data: Path) -> dict[str, str]:
        """The options of a server with that data directory."""
        if data not in self._databases:
            self._databases[data] = f"catalog_{len(self._databases)}"
            with self._postgres.connect() as connection:
                connection.execute(f"CREATE DATABASE {self._databases[data]}")
        return {"catalog": self._postgres.conninfo(self._databases[data])}


@contextmanager
def beside(server: Server) -> Iterator[tuple[psycopg.Connection[Any], psycopg.Connection[Any]]]:
    """A connection to a server of ours, and one to a PostgreSQL of its own that ends with it."""
    started = Postgres()
    try:
        with server.connect() as own, started.connect() as postgres:
            yield own, postgres
    finally:
        started.stop()


def differences(
    clients: tuple[psycopg.Connection[Any], psycopg.Connection[Any]], file: str, other_words: Collection[str] = ()
) -> list[tuple[str, object, object]]:
    """The statements of a file of tests/data, run one after the other by both, that do not have the same rows, in any
    order, or the same SQLSTATE and message; of those with `other_words` the SQLSTATE alone counts."""
    found = []
    for statement in (_DATA / file).read_text().removesuffix(";\n").split(";\n"):
        here, there = (_answer(client, statement, statement not in other_words) for client in clients)
        if here != there:
            found.append((statement, here, there))
    return found


def _answer(client: psycopg.Connection[Any], statement: str, with_message: bool) -> object:
    try:
        cursor = client.execute(statement.encode())
        return sorted(cursor.fetchall(), key=repr) if cursor.description else None
    except psycopg.Error as error:
        return error.sqlstate, str(error.diag.message_primary) if with_message else ""
