"""Keeps the definitions of the system catalogs in a file: to open it takes a twentieth of the time of making them.

The file is a DuckDB database in the user's cache directory, named by a digest of everything that it is made from. It is
attached read-only as DuckDB's own database `memory`, so that queries find the definitions under the same name as in
processes without the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

from sparkwave.catalog.lake.ducklake import ENGINE_VERSION, Cursor
from sparkwave.catalog.lake.places import log_of
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.names import COPIES, literal

_DATABASE = "memory"
# A file of another version is deleted when it was not opened for so long.
_UNUSED_SECONDS = 30 * 24 * 3600


def path_of(made_from: Iterable[str]) -> Path:
    """Return the path of the file that is made from these texts, whether or not it exists."""
    digest = hashlib.sha256("\0".join((ENGINE_VERSION, *made_from)).encode()).hexdigest()[:16]
    return _cache() / "sparkwave" / f"system-{digest}.duckdb"


def _cache() -> Path:
    """The user's cache directory.

    Without one no file is kept: a shared directory could hold definitions of another user.
    """
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    except RuntimeError:  # the home directory is unknown
        return Path(os.devnull)


def open_definitions(cursor: Cursor, path: Path, define: Callable[[], None]) -> None:
    """Open the definitions from the file, or makes them and the file by `define`.

    If no file can be written, the definitions are in memory. No transaction may be open. Raises the errors of
    `define`.
    """
    if _is_open(cursor, path) or _open(cursor, path):
        return
    if not _make(cursor, path, define) or not _open(cursor, path):
        with contextlib.suppress(DuckDBError):
            _exchange(cursor, "':memory:'")
        define()


def _is_open(cursor: Cursor, path: Path) -> bool:
    found = cursor.execute(f"SELECT path FROM duckdb_databases() WHERE database_name = '{_DATABASE}'").fetchall()
    return found == [(str(path),)]


def _open(cursor: Cursor, path: Path) -> bool:
    if not path.exists():
        return False
    try:
        _exchange(cursor, literal(str(path)), " (READ_ONLY)")
        with contextlib.suppress(OSError):
            os.utime(path)
    except DuckDBError:  # the file is damaged
        return False
    return True


def _make(cursor: Cursor, path: Path, define: Callable[[], None]) -> bool:
    """Write the file. Returns whether that succeeded."""
    made = path.with_name(f"{path.stem}.{uuid.uuid4().hex}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _exchange(cursor, literal(str(made)), " (STORAGE_VERSION 'latest')")
        define()
        _exchange(cursor, "':memory:'")
        os.replace(made, path)
        _forget_unused(path)
    except (OSError, DuckDBError):
        for left in (made, log_of(made)):
            with contextlib.suppress(OSError):
                left.unlink(missing_ok=True)
        return False
    return True


def _exchange(cursor: Cursor, target: str, options: str = "") -> None:
    """Attach another file, or none, as the database `memory`.

    Raises DuckDBError, also when the last writes of the file before it fail; that file is detached anyway.
    """
    cursor.execute(f"USE {COPIES}")
    try:
        try:
            cursor.execute(f"DETACH DATABASE IF EXISTS {_DATABASE}")
        finally:
            cursor.execute(f"ATTACH IF NOT EXISTS {target} AS {_DATABASE}{options}")
    finally:
        cursor.execute(f"ATTACH IF NOT EXISTS ':memory:' AS {_DATABASE}; USE {_DATABASE}")


def _forget_unused(path: Path) -> None:
    for other in path.parent.glob("system-*.duckdb"):
        with contextlib.suppress(OSError):
            if other != path and time.time() - other.stat().st_mtime > _UNUSED_SECONDS:
                other.unlink()
