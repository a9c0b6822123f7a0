"""Checks a lake: the files that its catalog names, and the references in Sparkwave's own relations.

From DuckLake's specification 1.0, tables `ducklake_data_file`, `ducklake_delete_file` and
`ducklake_files_scheduled_for_deletion`: the first two name every file of the existing snapshots, with its size and
rows; a file in the third may be gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.migrating import version_of
from sparkwave.catalog.lake.orphans import is_own
from sparkwave.catalog.lake.places import sizes_below
from sparkwave.catalog.lake.storage import IDENTITY_FILE
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import CREATING
from sparkwave.catalog.names import METADATA, literal, system_table
from sparkwave.catalog.stores.epoch_store import stored_epoch
from sparkwave.catalog.stores.migrations import MIGRATIONS
from sparkwave.catalog.stores.store import Store

_FILES_AT_ONCE = 500


@dataclass(frozen=True)
class KnownFile:
    """A file that the catalog names, with the catalog's values; `size` is in bytes.

    `may_be_gone`: Spark wrote the file for a table that was dropped; the end of its job deletes the file.
    """

    table: str
    path: str
    size: int
    rows: int
    may_be_gone: bool


def is_current(cursor: Cursor) -> bool:
    """Return whether the catalog is of this version, neither older nor newer."""
    return version_of(cursor) == len(MIGRATIONS)


def known_files(lake: Lake, cursor: Cursor) -> list[KnownFile]:
    """Return the files of all snapshots."""
    newest = "QUALIFY row_number() OVER (PARTITION BY {0} ORDER BY begin_snapshot DESC) = 1"
    rows = cursor.execute(
        f"WITH schemas AS (FROM {METADATA}.ducklake_schema {newest.format('schema_id')}), "
        f"tables AS (FROM {METADATA}.ducklake_table {newest.format('table_id')}), "
        "directories AS (SELECT table_id, concat(schema_name, '.', table_name) AS name, "
        "t.end_snapshot IS NOT NULL AS is_dropped, if(t.path_is_relative, "
        "if(s.path_is_relative, ? || s.path, s.path) || t.path, t.path) AS directory "
        "FROM tables t JOIN schemas s USING (schema_id)), "
        "files AS (SELECT table_id, path, path_is_relative, file_size_bytes, record_count AS rows "
        f"FROM {METADATA}.ducklake_data_file "
        "UNION ALL SELECT table_id, path, path_is_relative, file_size_bytes, delete_count "
        f"FROM {METADATA}.ducklake_delete_file) "
        "SELECT name, if(path_is_relative, directory || path, path), file_size_bytes, rows, "
        "is_dropped AND NOT path_is_relative "
        "FROM files JOIN directories USING (table_id) ORDER BY 1, 2",
        [f"{lake.data_path}/"],
    ).fetchall()
    return [KnownFile(*row) for row in rows]


def check_files(lake: Lake, cursor: Cursor, files: Sequence[KnownFile]) -> Iterator[str]:
    """Yield the faults of the files below the data path: missing, of another size, unreadable, or of no snapshot.

    It reads sizes and footers, not the rows.
    """
    of_its_size = []
    present = sizes_below(lake.data_path)
    for file in files:
        size = present.get(file.path)
        if size is None:
            if not file.may_be_gone:
                yield f"{file.table}: file {file.path} is missing"
        elif size != file.size:
            yield f"{file.table}: file {file.path} has {size} bytes and should have {file.size}"
        else:
            of_its_size.append(file)
    for start in range(0, len(of_its_size), _FILES_AT_ONCE):
        batch = of_its_size[start : start + _FILES_AT_ONCE]
        counts = _row_counts(cursor, [file.path for file in batch])
        for file in batch:
            count = counts.get(file.path)
            if count is None:
                yield f"{file.table}: file {file.path} cannot be read as Parquet"
            elif count != file.rows:
                yield f"{file.table}: file {file.path} has {count} rows and should have {file.rows}"
    known = {file.path for file in files} | _scheduled(lake, cursor)
    for path in sorted(present.keys() - known - {str(lake.data_path / IDENTITY_FILE)}):
        deleter = (
            "a server that writes deletes it"
            if is_own(path.removeprefix(f"{lake.data_path}/"))
            else "nobody deletes it"
        )
        yield f"file {path} belongs to no snapshot; {deleter}"


def _row_counts(cursor: Cursor, paths: Sequence[str]) -> Mapping[str, int]:
    """The rows of Parquet files by their footers, without unreadable files."""
    listed = ", ".join(map(literal, paths))
    try:
        query = f"SELECT file_name, num_rows FROM parquet_file_metadata([{listed}])"
        return dict(cursor.execute(query).fetchall())
    except DuckDBError:
        if len(paths) == 1:
            return {}
        half = len(paths) // 2
        return {**_row_counts(cursor, paths[:half]), **_row_counts(cursor, paths[half:])}


def _scheduled(lake: Lake, cursor: Cursor) -> set[str]:
    rows = cursor.execute(
        f"SELECT if(path_is_relative, ? || path, path) FROM {METADATA}.ducklake_files_scheduled_for_deletion",
        [f"{lake.data_path}/"],
    ).fetchall()
    return {path for (path,) in rows}


def check_references(store: Store, cursor: Cursor) -> Iterator[str]:
    """Yield dangling references in Sparkwave's own relations: to tables, relations, snapshots, rows of jobs."""
    yield from _check_tables(store, cursor)
    yield from _check_snapshots(store, cursor)
    yield from _check_progress(store, cursor)


def _check_tables(store: Store, cursor: Cursor) -> Iterator[str]:
    catalog = store.catalog
    tables = set(
        cursor.execute(
            f"SELECT s.schema_name, t.table_name FROM {METADATA}.ducklake_table t "
            f"JOIN {METADATA}.ducklake_schema s USING (schema_id) "
            "WHERE t.end_snapshot IS NULL AND s.end_snapshot IS NULL"
        ).fetchall()
    )
    for relation in catalog.relations:
        name = f"{relation.kind} {relation.qualified_name}"
        stored = relation.lake_table
        if relation.is_stored and (stored.schema, stored.name) not in tables:
            yield f"{name}: its table {stored.sql} is missing"
        if relation.is_streaming and relation.id not in catalog.job_by_id:
            yield f"{name}: it has no job"
        for upstream in relation.upstreams:
            if upstream not in catalog.by_id:
                yield f"{name}: it reads relation {upstream}, which is missing"
        for key in relation.constraints.foreign_keys:
            if key.parent not in catalog.by_id:
                yield f"{name}: its foreign key {key.name} references table {key.parent}, which is missing"
    for job in catalog.jobs:
        if job.id not in catalog.by_id:
            yield f"job {job.id}: its relation is missing"
    states = cursor.execute(f"SELECT job_id, name FROM {system_table('states')}").fetchall()
    for job_id, state in states:
        owner = catalog.by_id.get(job_id)
        if owner is None:
            yield f"state {state}: its job {job_id} is missing"
        elif (owner.lake_table.schema, state) not in tables:
            yield f"{owner.kind} {owner.qualified_name}: its state {state} is missing"


def _check_snapshots(store: Store, cursor: Cursor) -> Iterator[str]:
    rows = cursor.execute(f"SELECT snapshot_id FROM {METADATA}.ducklake_snapshot").fetchall()
    snapshots = {snapshot for (snapshot,) in rows}
    newest = max(snapshots)
    epoch = stored_epoch(cursor)
    if epoch.snapshot not in snapshots:
        yield f"the views have applied snapshot {epoch.snapshot}, which is missing"
    for job in store.catalog.jobs:
        for snapshot in (job.snapshot, job.delivered) if job.status == CREATING else ():
            if snapshot is not None and snapshot not in snapshots:
                yield f"job {job.id}: it stands at snapshot {snapshot}, which is missing"
    for subscription in store.catalog.subscriptions.values():
        # A subscription's first snapshot may expire after its retention.
        if subscription.snapshot > newest:
            yield f"subscription {subscription.id}: it begins at snapshot {subscription.snapshot}, of {newest}"


def _check_progress(store: Store, cursor: Cursor) -> Iterator[str]:
    twice = cursor.execute(
        f"SELECT job_id, fragment_id, slice_id FROM {system_table('finished_slices')} GROUP BY ALL HAVING count(*) > 1"
    ).fetchall()
    for job_id, fragment, step in twice:
        yield f"job {job_id}: step {step} of fragment {fragment} has been finished more than once"
    wrong = cursor.execute(
        f"SELECT job_id, vnode, position, row_id_from, row_id_to FROM {system_table('positions')} "
        "WHERE position NOT BETWEEN row_id_from AND row_id_to"
    ).fetchall()
    for job_id, vnode, position, first, stop in wrong:
        yield f"job {job_id}: vnode {vnode} stands at row {position}, outside of {first} to {stop}"
    for (relation_id,) in cursor.execute(
        f"SELECT DISTINCT relation_id FROM {system_table('source_splits')}"
    ).fetchall():
        if relation_id not in store.catalog.by_id:
            yield f"source_splits: relation {relation_id} is missing"
