"""Checks a lake that no server is writing, without changing it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.integrity import check_files, check_references, is_current, known_files
from sparkwave.catalog.lake.storage import Lease, Storage
from sparkwave.catalog.lake.translation import DuckDBError, translate
from sparkwave.catalog.sealing import KEY_FILE
from sparkwave.catalog.stores.store import Store
from sparkwave.catalog.stores.view_checksums import Checksum, checksums
from sparkwave.catalog.system import system_views
from sparkwave.executor.epochs.plans import Plans
from sparkwave.executor.functions.python_registry import PythonFunctions
from sparkwave.executor.maintenance.view_check import ViewCheck, check_checksum, check_view


@dataclass(frozen=True)
class Report:
    """The numbers of checked objects, and the faults. `skipped` are views that were not compared, with the reason.

    The rows of `checksums` views have been compared with their recorded checksums, those of `views` with their queries.
    """

    files: int
    relations: int
    checksums: int
    views: int
    findings: tuple[str, ...]
    skipped: tuple[str, ...]


def check_directory(directory: Path, views: bool, memory_limit: str | None = None) -> Report:
    """Find the faults of a data directory, also by the views' checksums; with `views` compare them with their queries.

    Raises Error 55006 while a server holds the directory, F0000 if it has no catalog or another version's, XX001 if the
    catalog cannot be opened.
    """
    return check_storage(Storage(directory), views, memory_limit)


def check_storage(storage: Storage, views: bool, memory_limit: str | None = None) -> Report:
    """Check as `check_directory` does, wherever the catalog and the files are.

    Raises Error 55006 also while a server writes, 08006 when the catalog is out of reach.
    """
    with unserved(storage, memory_limit) as lake:
        return _check(lake, views)


@contextlib.contextmanager
def unserved(storage: Storage, memory_limit: str | None = None) -> Iterator[Lake]:
    """Yield a lake to read, and keep servers from writing it. Raises Error as `check_storage` does."""
    with contextlib.ExitStack() as held:
        if storage.catalog is not None:
            lease = held.enter_context(contextlib.closing(Lease(storage.catalog, "check")))
            if not lease.try_acquire():
                raise Error(
                    f"{storage.name} is in use by the server at {lease.holder()}",
                    errors.OBJECT_IN_USE,
                    hint="Stop that server, and those that would take its place.",
                )
        else:
            storage.require_catalog()
        storage.check()
        yield held.enter_context(contextlib.closing(Lake(storage, memory_limit, read_only=True)))


def _check(lake: Lake, views: bool) -> Report:
    cursor = lake.cursor()
    if not is_current(cursor):
        raise Error(
            f"the catalog of {lake.storage.name} is another version's",
            errors.CONFIG_FILE_ERROR,
            hint="Use the version that has served it last.",
        )
    files = known_files(lake, cursor)
    findings = list(check_files(lake, cursor, files))
    try:
        with tempfile.TemporaryDirectory() as scratch:  # secrets stay sealed, so any key will do
            store = Store(lake, Path(scratch) / KEY_FILE)
        findings += check_references(store, cursor)
    except DuckDBError as error:  # Sparkwave's own relations have files too
        findings.append(f"the catalog's relations cannot be read: {translate(error).message}")
        return Report(len(files), 0, 0, 0, tuple(findings), ())
    checked = _check_views(store) if views else {}
    findings += [finding for view in checked.values() for finding in view.findings]
    skipped = tuple(f"{view.name}: {view.skipped}" for view in checked.values() if view.skipped)
    compared = {id_ for id_, view in checked.items() if not view.skipped}
    others = {id_: checksum for id_, checksum in checksums(cursor).items() if id_ not in compared}
    findings += _check_checksums(store, cursor, others)
    return Report(len(files), len(store.catalog.relations), len(others), len(compared), tuple(findings), skipped)


def _check_checksums(store: Store, cursor: Cursor, recorded: Mapping[int, Checksum]) -> Iterator[str]:
    """Yield what is wrong with the rows of views, by the checksums that are recorded for them."""
    for relation in store.catalog.relations:
        if relation.id not in recorded:
            continue
        try:
            difference = check_checksum(cursor, relation, recorded[relation.id])
        except DuckDBError as error:
            difference = f"its rows cannot be read: {translate(error).message}"
        if difference is not None:
            yield f"{relation.kind} {relation.qualified_name}: {difference}"


def _check_views(store: Store) -> dict[int, ViewCheck]:
    """Return the results of comparing views with their queries, by id."""
    plans, checked = Plans(), dict[int, ViewCheck]()
    catalog = store.catalog
    # DuckDB forgets the functions in Python with the cursor that has defined them, and would crash in a call.
    with contextlib.closing(store.lake.cursor()) as definitions:
        system_views.define_python_functions(definitions, lambda user, process, signal: False)
        system_views.install(definitions)  # they have functions that views may use
        PythonFunctions(store)
        for relation in catalog.in_dependency_order([job.id for job in catalog.jobs if job.id in catalog.by_id]):
            if relation.is_sink:
                continue
            cursor = store.lake.cursor()  # its temporary relations are dropped with it
            try:
                checked[relation.id] = check_view(store, cursor, plans, relation)
            except (Error, DuckDBError) as error:
                reason = error.message if isinstance(error, Error) else translate(error).message
                name = f"{relation.kind} {relation.qualified_name}"
                checked[relation.id] = ViewCheck(name, (f"{name}: it cannot be computed: {reason}",))
            finally:
                cursor.close()
    return checked
