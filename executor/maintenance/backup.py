"""Backups: a directory like a server's own, with a catalog as of one moment and all files that it names.

A backup is a lake of its own (`catalog.lake.identity`), so that no server takes its files for those of the original
lake. Other transactions may commit while a backup is made. Written files never change, so within a file system a backup
links to them and takes no room until the server deletes them; elsewhere they are copied.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake import identity
from sparkwave.catalog.lake.catalog_copy import (
    attached,
    copy_catalog,
    copy_postgres_catalog,
    fill_postgres_catalog,
    finished_steps,
    forget_deleted_files,
    make_empty_catalog,
    new_postgres_catalog,
)
from sparkwave.catalog.lake.compaction import all_tables, flush
from sparkwave.catalog.lake.ducklake import Cursor, Lake, without_lake
from sparkwave.catalog.lake.integrity import KnownFile, known_files
from sparkwave.catalog.lake.memory_transactions import rollback
from sparkwave.catalog.lake.places import BucketPath, Place, below, listed, log_of, remove_tree, sizes_below
from sparkwave.catalog.lake.places import flush as flush_names
from sparkwave.catalog.lake.relocation import move_files
from sparkwave.catalog.lake.storage import IDENTITY_FILE, LOCK_FILE, Lease, Storage, lock_directory
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.sealing import KEY_FILE
from sparkwave.executor.backfill.work import partial_results
from sparkwave.executor.maintenance.check import unserved


@dataclass(frozen=True)
class Backup:
    """A backup of everything that was committed up to a snapshot of the lake. `size` is in bytes."""

    snapshot: int
    files: int
    size: int


def back_up(lake: Lake, cursor: Cursor, target: Path, check: Callable[[], None]) -> Backup:
    """Write a backup of an open lake at `target`, an absolute path. Nothing is there unless the backup is complete.

    The backup is one directory, with the catalog in a file, wherever the lake's catalog and files are. `check` raises
    to give up. Raises its errors, and Error 22023 for a place within the lake's own directories, 58P01, 58P02, 53100 or
    58030 for one that cannot be written.
    """
    target = Path(os.path.normpath(target))
    with _writing(target):
        _check_target(lake, target)
        partial = target.with_name(f"{target.name}.partial")
        try:
            partial.mkdir(mode=0o700)  # the backup has passwords and secrets
        except FileExistsError as error:
            hint = "Another backup is being written there, or was cut short. In the latter case delete it."
            raise Error(f'directory "{partial}" exists already', errors.DUPLICATE_FILE, hint=hint) from error
        try:
            done = _write(lake, cursor, Storage(partial), Storage(target), check)
            os.sync()  # before the final name, so that a named backup is on the disk
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    return done


def _check_target(lake: Lake, target: Path) -> None:
    parent = target.parent.resolve()
    for own in (lake.directory, lake.storage.root):
        if isinstance(own, Path) and parent.joinpath(target.name).is_relative_to(own.resolve()):
            message = f'a backup in the data directory "{own}" would be part of it'
            raise Error(message, errors.INVALID_PARAMETER_VALUE)
    if not parent.is_dir():
        message = f'directory "{target.parent}" does not exist'
        raise Error(message, errors.UNDEFINED_FILE, hint="It is one of the machine that the server runs on.")
    if target.exists() or target.is_symlink():
        raise Error(f'"{target}" exists already', errors.DUPLICATE_FILE)


def _write(lake: Lake, cursor: Cursor, made: Storage, final: Storage, check: Callable[[], None]) -> Backup:
    held = lake.new_temporary("backup")
    with ExitStack() as stack:
        stack.callback(remove_tree, held)
        stack.enter_context(lake.keeping_files())
        if lake.storage.catalog is not None:
            make_empty_catalog(made.catalog_file)
        name = stack.enter_context(attached(cursor, made.catalog_file))
        stack.callback(rollback, cursor)
        with lake.exclusive():  # so that all is read as of one moment
            cursor.execute("BEGIN")
            snapshot = lake.snapshot(cursor)
            files = list({file.path: file for file in known_files(lake, cursor)}.values())
            # A job deletes its partial results when it has committed its end.
            for step in finished_steps(cursor):
                directory = partial_results(lake.staging_path, *step)
                for file in listed(directory.parent, directory.name):
                    place(below(lake.staging_path, file), _moved(file, lake.staging_path, held))
        if lake.storage.catalog is None:
            copy_catalog(cursor, name)
        else:
            copy_postgres_catalog(cursor, name)
        cursor.execute("COMMIT")
        forget_deleted_files(cursor, name)
        move_files(cursor, name, _local(final.data_path))
        own = identity.renew(cursor, name)
        size = 0
        for known in files:
            check()
            size += _place_known(lake, known, made.data_path)
        for file in sizes_below(held):
            check()
            place(below(held, file), _moved(file, held, made.staging_path))
        identity.write(made.data_path, own)
        if (lake.directory / KEY_FILE).exists():
            shutil.copy(lake.directory / KEY_FILE, made.directory / KEY_FILE)
    return Backup(snapshot, len(files), size)


def _place_known(lake: Lake, file: KnownFile, data_path: Place) -> int:
    """Link or copy a file of the lake into the backup. Returns its size in bytes."""
    try:
        place(below(lake.data_path, file.path), _moved(file.path, lake.data_path, data_path))
    except FileNotFoundError:
        if not file.may_be_gone:
            raise
        return 0
    return file.size


def _moved(file: str, root: Place, other: Place) -> Place:
    """Return the place of a file below another root."""
    return other / file.removeprefix(f"{root}/")


def back_up_storage(storage: Storage, target: Path) -> Backup:
    """Write a backup of a lake that no server is writing. Raises Error as `back_up` and `unserved` do."""
    try:
        with unserved(storage) as lake, closing(lake.cursor()) as cursor:
            return back_up(lake, cursor, target.absolute(), lambda: None)
    except DuckDBError as error:
        raise translate(error) from error


def restore(backup: Path, storage: Storage) -> None:
    """Make a lake from a backup, or from a stopped server's data directory. The original stays as it is.

    The new lake has an identity of its own. The catalog is written last, so that no server starts with a part of it.
    Raises Error F0000 where there is no backup, 55006 while a server holds the backup or the catalog, 58P02 for a
    directory that is not empty, 42710 for a PostgreSQL that has a lake, 53100 or 58030 for a place that cannot be
    written, XX001 for a catalog that cannot be read.
    """
    Storage(backup).require_catalog()
    directory = storage.directory
    with _writing(directory), ExitStack() as stack:
        if directory.exists() and any(directory.iterdir()):
            raise Error(f'directory "{directory}" is not empty', errors.DUPLICATE_FILE)
        if (backup / LOCK_FILE).exists():  # a data directory
            stack.callback(lock_directory(backup).close)
        held = stack.enter_context(closing(lock_directory(directory)))
        try:
            _copy(Storage(backup), Storage(directory))
            if storage.catalog is not None:
                held.close()
                _share(Storage(directory), storage)
        except BaseException as error:
            for path in directory.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()
            if isinstance(error, DuckDBError):
                raise translate(error) from error
            raise


def _share(made: Storage, shared: Storage) -> None:
    """Move a lake from a directory to a catalog in PostgreSQL and files that all servers share.

    Rows in the catalog become files first, because PostgreSQL stores them in other types.
    """
    assert shared.catalog is not None
    shared.check()
    roots = ((made.data_path, shared.data_path), (made.staging_path, shared.staging_path))
    for _, root in roots:
        if sizes_below(root):
            raise Error(f'"{root}" is not empty', errors.DUPLICATE_FILE)
    with ExitStack() as stack:
        lease = stack.enter_context(closing(Lease(shared.catalog, "restore")))
        if not lease.try_acquire():
            raise Error(f"{shared.name} is in use by the server at {lease.holder()}", errors.OBJECT_IN_USE)
        with closing(Lake(made)) as lake, closing(lake.cursor()) as cursor:
            for table in all_tables(cursor):
                with lake.transaction(cursor, shared=[table]):
                    flush(cursor, table)
        cursor = stack.enter_context(closing(without_lake()))
        name = stack.enter_context(new_postgres_catalog(cursor, shared))
        try:
            for source, root in roots:
                for path in _files_below(_local(source)):
                    place(path, root / str(path.relative_to(_local(source))))
            with attached(cursor, made.catalog_file) as own:
                move_files(cursor, own, shared.data_path)
                fill_postgres_catalog(cursor, name, own)
            made_as = identity.read(made.data_path)
            assert made_as is not None, "it has just been copied"
            identity.write(shared.data_path, replace(made_as, database=identity.database_of(shared)))
        except BaseException:
            for _, root in roots:
                remove_tree(root)
            raise
    made.catalog_file.unlink()
    for source, _ in roots:
        remove_tree(source)


def _copy(source: Storage, made: Storage) -> None:
    for root, copy in (
        (_local(source.data_path), _local(made.data_path)),
        (_local(source.staging_path), _local(made.staging_path)),
    ):
        for path in _files_below(root):
            place(path, copy / path.relative_to(root))
    if (source.directory / KEY_FILE).exists():
        shutil.copy(source.directory / KEY_FILE, made.directory / KEY_FILE)
    partial = made.catalog_file.with_name(f"{made.catalog_file.name}.partial")
    for path, copy in ((source.catalog_file, partial), (log_of(source.catalog_file), log_of(partial))):
        if path.exists():
            shutil.copyfile(path, copy)
    try:
        with closing(without_lake()) as cursor, attached(cursor, partial) as name:
            move_files(cursor, name, _local(made.data_path))
            own = identity.renew(cursor, name)
    except DuckDBError as error:
        message = f'the catalog in "{source.directory}" cannot be read: {translate(error).message}'
        raise Error(message, errors.DATA_CORRUPTED) from error
    identity.write(made.data_path, own)
    os.sync()
    partial.rename(made.catalog_file)
    flush_names(made.directory)


def place(source: Place, target: Place) -> None:
    """Put a file, which nobody changes, at another place too: by a link where possible, else as a copy."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(source, BucketPath):
        source.copy_to(target)
        return
    if isinstance(target, BucketPath):
        target.copy_from(source)
        return
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, one without links, or another user's file
        shutil.copyfile(source, target)


def _local(place: Place) -> Path:
    """Return a place of a lake whose catalog is a file, or of its backup, as a path."""
    assert isinstance(place, Path), "a bucket goes with a catalog in a PostgreSQL"
    return place


def _files_below(root: Path) -> Iterator[Path]:
    """Return the files of a lake, without the file of its identity."""
    return (path for path in root.rglob("*") if path.is_file() and path.name != IDENTITY_FILE)


@contextmanager
def _writing(target: Path) -> Iterator[None]:
    """While entered, errors of the operating system become an Error."""
    try:
        yield
    except OSError as error:
        raise errors.cannot_write(target, error) from error
