"""The place of a lake, and the right to write it: a lock on a file, or in a PostgreSQL."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import IO

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, Refused, cannot_write, is_full
from sparkwave.catalog.lake.places import BucketPath, Place
from sparkwave.catalog.locks import RankedLock

# The advisory lock of the writing server: "sparkwav" as a number.
_LOCK = int.from_bytes(b"sparkwav", "big")
# A process that uses a data directory holds a lock on this file in it.
LOCK_FILE = "LOCK"
CATALOG_FILE = "catalog.ducklake"
# Beside the files of a lake: see `catalog.lake.identity`.
IDENTITY_FILE = "IDENTITY"
# Files allowed in a new server's directory: those of file systems, and those named in the server's options.
_BESIDE = (LOCK_FILE, "lost+found", ".snapshot", "*.toml", "*.key", "*.pem", "*.crt")
# The application names of a writing and a reading server's connections to PostgreSQL.
_WRITER = "sparkwave writer"
_READER = "sparkwave reader"
# The longest application_name of PostgreSQL, in bytes (NAMEDATALEN).
_NAME_BYTES = 63


def check_catalog(text: str) -> str:
    """Return a connection string of PostgreSQL, if it names a database. Raises ValueError for another text."""
    try:
        if "dbname" not in conninfo_to_dict(text):
            raise ValueError("no database")
    except psycopg.ProgrammingError as error:
        raise ValueError(str(error)) from error
    return text


@dataclass(frozen=True)
class Storage:
    """The place of a lake. `directory` is the server's own.

    `catalog` is the connection string of a PostgreSQL, None for a file in `directory`. `shared` is a directory or a
    bucket that all servers and Spark nodes can reach, None for `directory`.
    """

    directory: Path
    catalog: str | None = None
    shared: Place | None = None

    @property
    def root(self) -> Place:
        """The place of the lake's files."""
        place = self.shared or self.directory
        return place.absolute() if isinstance(place, Path) else place

    @property
    def data_path(self) -> Place:
        return self.root / "data"

    @property
    def staging_path(self) -> Place:
        return self.root / "staging"

    def check(self) -> None:
        """Raise Error F0000 when the bucket cannot be used."""
        if isinstance(self.root, BucketPath):
            self.root.check()

    @property
    def catalog_file(self) -> Path:
        """The file of a catalog that is not in a PostgreSQL."""
        return self.directory.absolute() / CATALOG_FILE

    def require_catalog(self) -> None:
        """Raise Error F0000 if the catalog file is missing."""
        if not self.catalog_file.exists():
            message = f'there is no catalog in the directory "{self.directory.absolute()}"'
            raise Error(message, errors.CONFIG_FILE_ERROR)

    @property
    def name(self) -> str:
        """The name of the place in messages, without a password."""
        if self.catalog is None:
            return f'data directory "{self.directory.absolute()}"'
        known = conninfo_to_dict(self.catalog)
        return f'catalog "{known.get("dbname", "")}" at {known.get("host", "localhost")}:{known.get("port", 5432)}'

    def target(self, read_only: bool) -> str:
        """Return the text for DuckDB's ATTACH."""
        if self.catalog is None:
            return f"ducklake:{self.catalog_file}"
        name = _READER if read_only else _WRITER
        return f"ducklake:postgres:{make_conninfo(self.catalog, application_name=name)}"


class Lease:
    """The right to write a lake whose catalog is in a PostgreSQL: an advisory lock, held by a connection.

    PostgreSQL passes it to another server when this server, its machine or the connection dies. The new holder ends the
    connections of the old one, so that the old one cannot commit any more (`check`).
    """

    def __init__(self, catalog: str, address: str) -> None:
        """Connects. `address` is the address of this server that readers are told.

        Raises Error 08006 without a connection, F0000 for an address that is too long for an application name.
        """
        # A connection to a machine that is gone is found dead within some seconds.
        keepalive = {"keepalives_idle": 3, "keepalives_interval": 1, "keepalives_count": 3, "tcp_user_timeout": 5000}
        name = f"sparkwave lease {address}"
        if len(name.encode()) > _NAME_BYTES:
            message = f"the address {address} is longer than the {_NAME_BYTES - len(name) + len(address)} bytes that"
            message += " a catalog in a PostgreSQL can note"
            raise Error(message, errors.CONFIG_FILE_ERROR, hint="Choose a shorter one with --advertise.")
        self._lock = RankedLock()
        self.is_held = False
        try:
            self._connection = psycopg.connect(
                make_conninfo(catalog, application_name=name, connect_timeout=5, **keepalive), autocommit=True
            )
        except psycopg.OperationalError as error:
            raise Error(f"the catalog cannot be reached: {_first_line(error)}", errors.CONNECTION_FAILURE) from error

    def try_acquire(self) -> bool:
        """Try to get the lease, and returns whether this server holds it. Raises Error 08006."""
        with self._asking() as connection:
            row = connection.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK]).fetchone()
            self.is_held = row is not None and row[0]
            if not self.is_held:
                return False
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND application_name = %s",
                [_WRITER],
            ).fetchall()
            return True

    def holder(self) -> str | None:
        """Return the address of the server that holds the lease; None if none does. Raises Error 08006."""
        with self._asking() as connection:
            row = connection.execute(
                "SELECT split_part(a.application_name, ' ', 3) FROM pg_locks l JOIN pg_stat_activity a USING (pid) "
                "WHERE l.locktype = 'advisory' AND l.granted AND a.datname = current_database() "
                "AND (l.classid::bigint << 32) + l.objid::bigint = %s",
                [_LOCK],
            ).fetchone()
            return row[0] if row else None

    def check(self) -> None:
        """Raise Error 08006 if the lease is lost with its connection."""
        with self._asking() as connection:
            connection.execute("SELECT 1")

    def close(self) -> None:
        """Return the lease."""
        self._connection.close()

    @contextlib.contextmanager
    def _asking(self) -> Iterator[psycopg.Connection]:
        with self._lock:
            try:
                yield self._connection
            except psycopg.Error as error:
                raise Error(f"the catalog's lock is lost: {_first_line(error)}", errors.CONNECTION_FAILURE) from error


def lock_directory(directory: Path) -> IO[str]:
    """Create the directory if needed, and locks it as long as the returned file is open.

    Raises Refused for a directory with other uses, Error 55006 if another server holds it, F0000 when it cannot be
    used, 53100 when the disk is full.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _require_own(directory)
        file = open(directory / LOCK_FILE, "a+")  # noqa: SIM115 - held while the server runs
    except OSError as error:
        if is_full(error):
            raise cannot_write(directory, error) from error
        raise Error(
            f'data directory "{directory}" cannot be used: {error.strerror}', errors.CONFIG_FILE_ERROR
        ) from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        holder = file.read().strip()
        file.close()
        raise Error(
            f'data directory "{directory}" is in use by another server' + (f" (pid {holder})" if holder else ""),
            errors.OBJECT_IN_USE,
            hint="Stop that server, or serve another directory with --data.",
        ) from error
    try:
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
    except OSError as error:
        with contextlib.suppress(OSError):  # close tries the failed write again
            file.close()
        raise cannot_write(directory / LOCK_FILE, error) from error
    return file


def _require_own(directory: Path) -> None:
    """Raise Refused for a directory that is neither empty nor a server's or a backup.

    The names in a server's directory are common ones: other files below `data` or `scratch` would be lost.
    """
    names = {path.name for path in directory.iterdir()}
    known = CATALOG_FILE in names or IDENTITY_FILE in _names(directory / "data")
    if known or (LOCK_FILE in names and (directory / LOCK_FILE).read_text(errors="replace").isdigit()):
        return
    others = sorted(name for name in names if not any(fnmatch(name, pattern) for pattern in _BESIDE))
    if others:
        shown = ", ".join(others[:3]) + (", …" if len(others) > 3 else "")
        raise Refused(
            f'"{directory}" is neither empty nor a data directory: it has {shown}',
            errors.CONFIG_FILE_ERROR,
            hint="Name an empty or a new directory with --data. Of a data directory the catalog is missing: "
            f"put {CATALOG_FILE} back.",
        )


def _names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()} if directory.is_dir() else set()


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
