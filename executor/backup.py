"""Backups: a directory as a server's own, with a catalog as of one moment and all files that it names.

Whatever commits meanwhile goes on. Files are never changed once they are written, so within a file system a backup has
them by another link, and takes no room until the server deletes them; elsewhere they are copied.
"""

from __future__ import annotations

import errno
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from catalog import errors
from catalog.backup import attached, copy_catalog, finished_steps, forget_deleted_files, move_files
from catalog.check import KnownFile, known_files
from catalog.errors import Error
from catalog.lake import Cursor, DuckDBError, Lake, rollback, translate, without_lake
from catalog.places import Place
from catalog.secrets import KEY_FILE
from catalog.storage import LOCK_FILE, Storage, lock_directory
from executor.work import partial_results


@dataclass(frozen=True)
class Backup:
    """What was backed up: everything that was committed up to a snapshot of the lake. `size` is in bytes."""

    snapshot: int
    files: int
    size: int


def back_up(lake: Lake, cursor: Cursor, target: Path, check: Callable[[], None]) -> Backup:
    """Write a backup of an open lake. Nothing is at `target`, an absolute path, unless the backup is whole.

    `check` raises to give up. Raises what it raises, and Error 0A000 for a catalog in a PostgreSQL, 22023 for a place
    within the lake's own directories, 58P01, 58P02, 53100 or 58030 for one that cannot be written.
    """
    target = Path(os.path.normpath(target))
    with _writing(target):
        _check_target(lake, target)
        partial = target.with_name(f"{target.name}.partial")
        try:
            partial.mkdir(mode=0o700)  # passwords and secrets are in it
        except FileExistsError as error:
            hint = "Another backup is being written there, or was cut short. In the latter case delete it."
            raise Error(f'directory "{partial}" exists already', errors.DUPLICATE_FILE, hint=hint) from error
        try:
            done = _write(lake, cursor, Storage(partial), Storage(target), check)
            os.sync()  # what has its name is on the disk
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return done


def _check_target(lake: Lake, target: Path) -> None:
    if lake.storage.catalog is not None:
        raise Error(
            "BACKUP of a catalog in a PostgreSQL is not supported",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Stop the servers, copy that database with pg_dump, and the directory of --shared and secret.key.",
        )
    parent = target.parent.resolve()
    if parent.joinpath(target.name).is_relative_to(lake.directory.resolve()):
        message = f'a backup in the data directory "{lake.directory}" would be part of it'
        raise Error(message, errors.INVALID_PARAMETER_VALUE)
    if not parent.is_dir():
        message = f'directory "{target.parent}" does not exist'
        raise Error(message, errors.UNDEFINED_FILE, hint="It is one of the machine that the server runs on.")
    if target.exists() or target.is_symlink():
        raise Error(f'"{target}" exists already', errors.DUPLICATE_FILE)


def _write(lake: Lake, cursor: Cursor, made: Storage, final: Storage, check: Callable[[], None]) -> Backup:
    held = _local(lake.staging_path) / f"backup_{uuid.uuid4().hex}"
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, held, ignore_errors=True)
        stack.enter_context(lake.keeping_files())
        name = stack.enter_context(attached(cursor, made.catalog_file))
        stack.callback(rollback, cursor)
        with lake.exclusive():  # so that all that is read is of one moment
            cursor.execute("BEGIN")
            snapshot = lake.snapshot(cursor)
            files = list({file.path: file for file in known_files(lake, cursor)}.values())
            # A job deletes its partial results when it has committed its end.
            for step in finished_steps(cursor):
                directory = _local(partial_results(lake.staging_path, *step))
                for path in directory.glob("*.parquet"):
                    place(path, held / path.relative_to(_local(lake.staging_path)))
        copy_catalog(cursor, name)
        cursor.execute("COMMIT")
        forget_deleted_files(cursor, name)
        move_files(cursor, name, _local(final.data_path))
        size = 0
        for file in files:
            check()
            size += _place_known(lake, file, _local(made.data_path))
        for path in _files_below(held):
            check()
            place(path, _local(made.staging_path) / path.relative_to(held))
        if (lake.directory / KEY_FILE).exists():
            shutil.copy(lake.directory / KEY_FILE, made.directory / KEY_FILE)
    return Backup(snapshot, len(files), size)


def _place_known(lake: Lake, file: KnownFile, data_path: Path) -> int:
    """Returns the size of the file."""
    try:
        place(Path(file.path), data_path / Path(file.path).relative_to(_local(lake.data_path)))
    except FileNotFoundError:
        if not file.may_be_gone:
            raise
        return 0
    return file.size


def back_up_directory(directory: Path, target: Path) -> Backup:
    """Write a backup of a data directory that no server holds. Raises Error as `back_up` does, and as `Lake` does."""
    storage = Storage(directory)
    storage.require_catalog()
    lake = Lake(storage, read_only=True)
    try:
        with closing(lake.cursor()) as cursor:
            return back_up(lake, cursor, target.absolute(), lambda: None)
    except DuckDBError as error:
        raise translate(error) from error
    finally:
        lake.close()


def restore(backup: Path, directory: Path) -> None:
    """Make a data directory of a backup, or of a stopped server's data directory. The backup stays as it is.

    Until all is there the catalog says that its files are elsewhere, so that no server starts with a part of it.
    Raises Error F0000 where there is no backup, 55006 while a server holds that, 58P02 for a directory that is not
    empty, 53100 or 58030 for one that cannot be written, XX001 for a catalog that cannot be read.
    """
    Storage(backup).require_catalog()
    with _writing(directory), ExitStack() as stack:
        if directory.exists() and any(directory.iterdir()):
            raise Error(f'directory "{directory}" is not empty', errors.DUPLICATE_FILE)
        if (backup / LOCK_FILE).exists():  # a data directory
            stack.callback(lock_directory(backup).close)
        stack.callback(lock_directory(directory).close)
        try:
            _copy(Storage(backup), Storage(directory))
        except BaseException:
            for path in directory.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            raise


def _copy(source: Storage, made: Storage) -> None:
    for path in (source.catalog_file, source.catalog_file.with_name(f"{source.catalog_file.name}.wal")):
        if path.exists():
            shutil.copyfile(path, made.directory / path.name)
    for root, copy in (
        (_local(source.data_path), _local(made.data_path)),
        (_local(source.staging_path), _local(made.staging_path)),
    ):
        for path in _files_below(root):
            place(path, copy / path.relative_to(root))
    if (source.directory / KEY_FILE).exists():
        shutil.copy(source.directory / KEY_FILE, made.directory / KEY_FILE)
    os.sync()
    try:
        with closing(without_lake()) as cursor, attached(cursor, made.catalog_file) as name:
            move_files(cursor, name, _local(made.data_path))
    except DuckDBError as error:
        message = f'the catalog in "{source.directory}" cannot be read: {translate(error).message}'
        raise Error(message, errors.DATA_CORRUPTED) from error


def place(source: Path, target: Path) -> None:
    """Have a file, which nobody changes, at another place too: by a link where that can be, else as a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, one without links, or another user's file
        shutil.copyfile(source, target)


def _local(place: Place) -> Path:
    """A place of a lake whose catalog is a file."""
    assert isinstance(place, Path), "a bucket goes with a catalog in a PostgreSQL"
    return place


def _files_below(root: Path) -> Iterator[Path]:
    return (path for path in root.rglob("*") if path.is_file())


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    """What the operating system says becomes an Error."""
    try:
        yield
    except OSError as error:
        state = errors.DISK_FULL if error.errno == errno.ENOSPC else errors.IO_ERROR
        raise Error(f'"{target}" cannot be written: {error.strerror}', state) from error
