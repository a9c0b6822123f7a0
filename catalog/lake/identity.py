"""Checks that a lake's files belong to its catalog: the file IDENTITY beside the files has the catalog's id.

A writing server deletes files that its catalog does not name, so it must never use another lake's files. The id is in
DuckLake's own `ducklake_metadata`, which can be read before the lake is opened and without its files. A catalog in a
PostgreSQL can be copied without the files, so IDENTITY also names the database that the files belong to.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error, Refused
from sparkwave.catalog.lake.places import Place, flush, sizes_below
from sparkwave.catalog.lake.storage import IDENTITY_FILE, Storage
from sparkwave.catalog.lake.translation import Cursor
from sparkwave.catalog.names import literal

logger = logging.getLogger(__name__)

_KEY = "sparkwave_lake"
_ATTACHED = "identified"
_UNFINISHED = f".{IDENTITY_FILE}."
_SYSTEM = (
    "SELECT system_identifier || '/' || oid FROM pg_control_system(), pg_database WHERE datname = current_database()"
)


@dataclass(frozen=True)
class Identity:
    """A lake's identity. `database` distinguishes a PostgreSQL's database from its copies; None for a catalog file.

    `snapshot` is one that the catalog has had: an older copy of the catalog does not name the files that came after
    it.
    """

    lake: str
    database: str | None = None
    snapshot: int = field(default=0, compare=False)


@dataclass(frozen=True)
class _Stored:
    """A lake's catalog, queried without opening the lake."""

    ask: Callable[[str], list[tuple[Any, ...]]]
    schema: str

    def metadata(self, key: str) -> str | None:
        rows = self.ask(f"SELECT value FROM {self.schema}.ducklake_metadata WHERE key = {literal(key)}")
        return rows[0][0] if rows else None

    def newest_snapshot(self) -> int:
        [(newest,)] = self.ask(f"SELECT max(snapshot_id) FROM {self.schema}.ducklake_snapshot")
        return int(newest)

    def files(self) -> dict[str, bool]:
        """The names of all files, which are unique, and whether the newest snapshot has them."""
        rows = self.ask(
            f"SELECT path, end_snapshot IS NULL FROM {self.schema}.ducklake_data_file "
            f"UNION ALL SELECT path, end_snapshot IS NULL FROM {self.schema}.ducklake_delete_file"
        )
        return {path.rpartition("/")[2]: is_current for path, is_current in rows}


def claim(cursor: Cursor, storage: Storage) -> Identity:
    """Return the identity of a lake before it is opened for writing; a new identity if it has none.

    A lake of an earlier version has none; it gets one if its catalog names existing files. Raises Refused when catalog
    and files do not belong together, Error 08006 or 58030 when one cannot be reached.
    """
    beside = read(storage.data_path)
    with _stored(cursor, storage) as (stored, database):
        if stored is None:
            _require_no_files(storage, beside)
            return Identity(str(uuid.uuid4()), database)
        lake = stored.metadata(_KEY)
        if beside is None:
            _require_own_files(storage, stored, lake is not None)
            return Identity(lake or str(uuid.uuid4()), database)
        _compare(storage, beside, lake, database)
        if stored.newest_snapshot() < beside.snapshot:
            hint = (
                f"Put the newest one back. If there is none, delete {_name(storage.data_path / IDENTITY_FILE)}: then "
            )
            hint += "the files that this one does not name are deleted in the end."
            raise _refused(
                storage, f"the files in {_name(storage.data_path)} are of a newer catalog than this one", hint
            )
        return beside


def verify(cursor: Cursor, storage: Storage, is_reader: bool) -> None:
    """Check the identity of a lake that is only read. A missing identity is no error, but a reader waits for it.

    Raises Refused as `claim` does, Error 57P03 for a reader.
    """
    beside = read(storage.data_path)
    with _stored(cursor, storage) as (stored, database):
        lake = stored.metadata(_KEY) if stored is not None else None
        if beside is not None and lake is not None:
            _compare(storage, beside, lake, database)
        elif is_reader:
            what = f"the files of {storage.name} are not in {_name(storage.data_path)}" if lake else _NOT_YET
            message = what.format(name=storage.name)
            raise Error(f"{message}; it waits for the server that writes", errors.CANNOT_CONNECT_NOW)


_NOT_YET = "{name} is not of this version"


def establish(cursor: Cursor, metadata: str, storage: Storage, identity: Identity) -> None:
    """Record the identity in the catalog, whose tables are in `metadata`, and then beside the files, if missing.

    In this order, a server that is interrupted in between does it again. Raises Refused when another server was
    faster.
    """
    cursor.execute(
        f"INSERT INTO {metadata}.ducklake_metadata (key, value) SELECT $key, $lake "
        f"WHERE NOT EXISTS (FROM {metadata}.ducklake_metadata WHERE key = $key)",
        {"key": _KEY, "lake": identity.lake},
    )
    beside = read(storage.data_path)
    if beside is None:
        write(storage.data_path, identity)
        beside = read(storage.data_path)
    if beside != identity:
        _compare(storage, beside or Identity(""), identity.lake, identity.database)


def renew(cursor: Cursor, metadata: str) -> Identity:
    """Give a copied catalog a new identity. Its files do not record it yet."""
    identity = Identity(str(uuid.uuid4()))
    cursor.execute(f"DELETE FROM {metadata}.ducklake_metadata WHERE key = ?", [_KEY])
    cursor.execute(f"INSERT INTO {metadata}.ducklake_metadata (key, value) VALUES (?, ?)", [_KEY, identity.lake])
    return identity


def database_of(storage: Storage) -> str | None:
    """Return the id of the PostgreSQL database with the catalog, None for a file. Raises Error 08006."""
    if storage.catalog is None:
        return None
    with _postgres(storage) as connection:
        return _database(connection)


def read(data_path: Place) -> Identity | None:
    """Return the identity beside the files; None if there is none.

    Raises Refused for an unreadable one, Error 58030.
    """
    file = data_path / IDENTITY_FILE
    try:
        given = json.loads(file.read_text())
        return Identity(given["lake"], given.get("database"), int(given.get("snapshot", 0)))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Error(f'"{file}" cannot be read: {error.strerror or error}', errors.IO_ERROR) from error
    except (ValueError, KeyError, TypeError) as error:
        message = f'"{file}" does not say which lake the files belong to'
        raise Refused(message, errors.DATA_CORRUPTED, hint="Restore it from a backup.") from error


def write(data_path: Place, identity: Identity) -> None:
    """Write the identity beside the files, completely or not at all, unless there is one.

    If several servers do so at once, one of them succeeds. Raises Error 53100 or 58030.
    """
    file, text = data_path / IDENTITY_FILE, _text(identity)
    try:
        with suppress(FileExistsError):
            if isinstance(file, Path):
                with _written(file, text) as written:
                    _name_new(written, file, text)
            else:
                file.create_text(text)
    except OSError as error:
        raise errors.cannot_write(file, error) from error


def replace(data_path: Place, identity: Identity) -> None:
    """Replace the identity beside the files, completely or not at all. Raises Error 53100 or 58030."""
    file, text = data_path / IDENTITY_FILE, _text(identity)
    try:
        if isinstance(file, Path):
            with _written(file, text) as written:
                written.replace(file)
        else:
            file.write_text(text)
    except OSError as error:
        raise errors.cannot_write(file, error) from error


def _text(identity: Identity) -> str:
    return json.dumps(asdict(identity)) + "\n"


@contextmanager
def _written(file: Path, text: str) -> Iterator[Path]:
    """A temporary file with the text beside `file`; at the end, the names in the directory are on the disk."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Servers on other machines may have the same process id.
    written = file.with_name(f"{_UNFINISHED}{uuid.uuid4().hex}")
    try:
        written.write_text(text)
        flush(written)
        yield written
    finally:
        written.unlink(missing_ok=True)
    flush(file.parent)


def _name_new(written: Path, file: Path, text: str) -> None:
    """Give a file its name. Raises FileExistsError if another file has it."""
    try:
        os.link(written, file)
    except FileExistsError:
        raise
    except OSError:  # a file system without links, where a crash may leave a partial file
        with open(file, "x") as own:
            try:
                own.write(text)
                own.flush()
                os.fsync(own.fileno())
            except OSError:
                file.unlink()
                raise


@contextmanager
def _stored(cursor: Cursor, storage: Storage) -> Iterator[tuple[_Stored | None, str | None]]:
    """The catalog of a lake, None if there is no lake, and the id of its database."""
    if storage.catalog is not None:
        with _postgres(storage) as connection:
            database = _database(connection)
            [(table,)] = connection.execute("SELECT to_regclass('public.ducklake_metadata')").fetchall()
            ask = lambda query: connection.execute(query).fetchall()  # noqa: E731
            yield (_Stored(ask, "public") if table is not None else None), database
        return
    file = storage.catalog_file
    if not file.exists() or not file.stat().st_size:
        yield None, None
        return
    cursor.execute(f"ATTACH {literal(str(file))} AS {_ATTACHED} (READ_ONLY)")
    try:
        ask = lambda query: cursor.execute(query).fetchall()  # noqa: E731
        query = f"FROM duckdb_tables() WHERE database_name = '{_ATTACHED}' AND table_name = 'ducklake_metadata'"
        yield (_Stored(ask, _ATTACHED) if ask(query) else None), None
    finally:
        cursor.execute(f"DETACH {_ATTACHED}")


@contextmanager
def _postgres(storage: Storage) -> Iterator[psycopg.Connection[Any]]:
    assert storage.catalog is not None
    try:
        with closing(psycopg.connect(storage.catalog, autocommit=True)) as connection:
            yield connection
    except psycopg.OperationalError as error:
        raise Error(f"{storage.name} cannot be reached: {error}", errors.CONNECTION_FAILURE) from error


def _database(connection: psycopg.Connection[Any]) -> str:
    [(database,)] = connection.execute(_SYSTEM).fetchall()
    return str(database)


def _refused(storage: Storage, reason: str, hint: str, sqlstate: str = errors.CONFIG_FILE_ERROR) -> Refused:
    return Refused(f"{storage.name} cannot be opened: {reason}", sqlstate, hint=hint)


def _compare(storage: Storage, beside: Identity, lake: str | None, database: str | None) -> None:
    where = _name(storage.data_path)
    if lake != beside.lake:
        raise _refused(storage, f"the files in {where} belong to another lake", _choose(storage))
    if database != beside.database:
        hint = "Servers on both would delete each other's files. Restore a backup into a place of its own; or, if "
        hint += f"that other database is gone for good, delete {_name(storage.data_path / IDENTITY_FILE)}."
        raise _refused(storage, f"the files in {where} belong to another database with a copy of the catalog", hint)


def _require_no_files(storage: Storage, beside: Identity | None) -> None:
    """Raise Refused if a lake without its catalog has left files."""
    file = storage.catalog_file
    parts = [] if storage.catalog is not None or file.exists() else sorted(file.parent.glob(f"{file.name}.*"))
    if parts:
        raise _refused(storage, f'there is "{parts[0].name}", of a catalog that is not whole', _choose(storage))
    for place in (storage.data_path, storage.staging_path):
        if beside is not None or _files(place):
            raise _refused(
                storage, f"there are files in {_name(place)}, and no catalog that names them", _choose(storage)
            )


def _require_own_files(storage: Storage, stored: _Stored, is_identified: bool) -> None:
    """Accept files without an identity if the catalog names some of them.

    All files of an identified catalog must exist: another place may have files that claim to be its own.
    """
    where, named = _name(storage.data_path), stored.files()
    present = {path.rpartition("/")[2] for path in _files(storage.data_path)}
    missing = sorted(name for name, is_current in named.items() if is_current and name not in present)
    if missing and (is_identified or not named.keys() & present):
        reason = f"{where} lacks {len(missing)} of the files that its catalog names, such as {missing[0]}"
        hint = f"Have all of them there, or restore a backup. They were in {stored.metadata('data_path')}."
        raise _refused(storage, reason, hint, errors.DATA_CORRUPTED)
    if present and not named.keys() & present:
        hint = f"{_choose(storage)} If they are no lake's, move them elsewhere."
        raise _refused(storage, f"there are files in {where}, and its catalog names none of them", hint)
    if missing:
        logger.warning("%d files that the catalog names are missing: see sparkwave check", len(missing))


def _files(place: Place) -> list[str]:
    try:
        return [path for path in sizes_below(place) if not path.rpartition("/")[2].startswith(_UNFINISHED)]
    except OSError as error:
        raise Error(f"{_name(place)} cannot be read: {error.strerror or error}", errors.IO_ERROR) from error


def _name(place: Place) -> str:
    return f'"{place}"'


def _choose(storage: Storage) -> str:
    if storage.catalog is None:
        return (
            f"Put their own {storage.catalog_file.name} back, all of a backup at once (sparkwave restore), or serve an "
            "empty directory with --data. Nothing has been changed."
        )
    place = "--shared" if storage.shared is not None else "--data"
    return f"Name their own database with --catalog, or an empty place with {place}. Nothing has been changed."
