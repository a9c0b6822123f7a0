"""The delivery of an epoch's changes by sinks, in the transaction that ends the epoch or before it.

The transaction itself writes the rows for a table. A file gets its final name before the transaction commits: the name
contains the epoch, so that after a crash it is known whether the epoch was committed. Rows for another server are
written by the transaction into the sink's log, an internal table; `executor.sinks.outbox` sends them from there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.places import flush
from sparkwave.catalog.model import CREATING, Catalog, Column, Relation
from sparkwave.catalog.names import LakeTable, literal, quote
from sparkwave.catalog.relation_details import APPEND_ONLY, TABLE
from sparkwave.catalog.types import BIGINT, INTEGER

# The column of a log with the snapshot that identifies a row's epoch.
EPOCH = "?epoch"
# The column of a file that tells the operation on a row, for a sink that is not append-only.
OPERATION = "_op"
_COPY = {"parquet": "FORMAT parquet", "json": "FORMAT json", "csv": "FORMAT csv, HEADER"}


@dataclass(frozen=True)
class Rows:
    """Changes for a table: a query of the keys of rows to remove, in key order, and a query of rows to add.

    The added rows have values for `columns`. A key that is also added is not removed.
    """

    removed: str | None
    added: str
    columns: tuple[str, ...]


# Writes rows into a table by the table's rules, inside the cursor's transaction; of rows with one key the last
# counts.
TableWriter = Callable[[Cursor, Relation, Sequence[Rows]], None]


@dataclass(frozen=True)
class Delivery:
    """The changes that one sink has to deliver: `changes` is a relation with the sink's columns and `_weight`.

    `snapshot` is unique among the sink's deliveries.
    """

    relation: Relation
    changes: str
    snapshot: int
    file: Path | None = None


class Sinks:
    """Delivers changes for the components that compute them."""

    def __init__(self, write: TableWriter) -> None:
        self._write = write

    def prepare(self, cursor: Cursor, catalog: Catalog, relation: Relation, changes: str, snapshot: int) -> Delivery:
        """Do all that can fail because of the sink, before the transaction: write files, check NULLs.

        Raises Error 23502 or 58030.
        """
        sink = relation.sink
        if sink.connector == TABLE:
            _check_not_null(cursor, relation, catalog.by_id[sink.target or 0], changes)
        file = _write_file(cursor, relation, changes, snapshot) if sink.is_local else None
        return Delivery(relation, changes, snapshot, file)

    def deliver(self, cursor: Cursor, catalog: Catalog, deliveries: Iterable[Delivery]) -> None:
        """Write the rows for tables and logs in the cursor's transaction.

        Each table is written once for all its sinks.
        """
        by_table: dict[int, list[Delivery]] = {}
        for delivery in deliveries:
            if delivery.relation.sink.is_remote:
                _write_log(cursor, delivery)
            if delivery.relation.target is not None:
                by_table.setdefault(delivery.relation.target, []).append(delivery)
        for target_id, group in by_table.items():
            target = catalog.by_id[target_id]
            self._write(cursor, target, [_rows(target, delivery) for delivery in group])

    def forget(self, deliveries: Iterable[Delivery]) -> None:
        """Delete the files of deliveries whose transaction has failed."""
        for delivery in deliveries:
            if delivery.file is not None:
                delivery.file.unlink(missing_ok=True)

    def remove_uncommitted(self, catalog: Catalog, epoch: int) -> None:
        """Delete the files that no transaction has committed. Only safe before any delivery begins.

        `epoch` is the newest snapshot that created sinks have applied.
        """
        for relation in catalog.relations:
            if relation.is_sink and relation.sink.is_local:
                job = catalog.job_by_id[relation.id]
                last = epoch if job.status != CREATING else job.delivered
                for file, snapshot in _files(relation):
                    if last is None or snapshot > last:
                        file.unlink(missing_ok=True)

    def remove_all(self, relation: Relation) -> None:
        """Delete the files of a sink that was given up before it was created."""
        if relation.is_sink and relation.sink.is_local:
            for file, _ in _files(relation):
                file.unlink(missing_ok=True)


def targets(catalog: Catalog, relations: Iterable[Relation]) -> list[LakeTable]:
    """Return the lake tables that these sinks write to; clients write to them as well."""
    return [catalog.by_id[relation.target].lake_table for relation in relations if relation.target is not None]


def log_of(relation: Relation) -> LakeTable:
    """Return the log of a sink that delivers to another server."""
    return replace(relation.lake_table, name=log_name(relation.id))


def log_name(job_id: int) -> str:
    return f"__internal_{job_id}_log_sink"


def log_columns(relation: Relation) -> tuple[Column, ...]:
    """Return the columns of a sink's log: those of the sink, the weight of a row, and its epoch."""
    own = tuple(Column(column.lake_name, column.type) for column in relation.visible)
    return (*own, Column("_weight", INTEGER), Column(EPOCH, BIGINT))


def logs(relations: Iterable[Relation]) -> list[LakeTable]:
    """Return the logs of those of these sinks that have one."""
    return [log_of(relation) for relation in relations if relation.sink.is_remote]


def _write_log(cursor: Cursor, delivery: Delivery) -> None:
    relation = delivery.relation
    columns = ", ".join(quote(column.lake_name) for column in relation.visible)
    kept = "WHERE _weight > 0" if relation.sink.type == APPEND_ONLY else ""
    cursor.execute(
        f"INSERT INTO {log_of(relation).sql} SELECT {columns}, _weight, {delivery.snapshot} "
        f"FROM {delivery.changes} {kept}"
    )


def _rows(target: Relation, delivery: Delivery) -> Rows:
    """Return the changes as rows to remove and to add."""
    relation, changes = delivery.relation, delivery.changes
    columns = tuple(column.name for column in relation.visible)
    listed = ", ".join(quote(column.lake_name) for column in relation.visible)
    added = f"SELECT {listed} FROM {changes} WHERE _weight > 0"
    if relation.sink.type == APPEND_ONLY:
        return Rows(None, added, columns)
    key = ", ".join(map(quote, relation.in_lake(target.primary_key)))
    return Rows(f"SELECT {key} FROM {changes} WHERE _weight < 0", added, columns)


def _check_not_null(cursor: Cursor, relation: Relation, target: Relation, changes: str) -> None:
    """Raise Error 23502 for a NULL in an added row where the table allows none."""
    given = {column.name: column.lake_name for column in relation.visible}
    for column in target.visible:
        if column.name in given and (column.not_null or column.name in target.primary_key):
            row = cursor.execute(
                f"SELECT 1 FROM {changes} WHERE _weight > 0 AND {quote(given[column.name])} IS NULL LIMIT 1"
            ).fetchone()
            if row is not None:
                raise Error(
                    f'null value in column "{column.name}" of relation "{target.name}" violates not-null constraint',
                    errors.NOT_NULL_VIOLATION,
                )


# Files.


def _stem(relation: Relation) -> str:
    return f"sink-{relation.sink.token}"


def file_name(relation: Relation, snapshot: int) -> str:
    """Return the name of an epoch's file."""
    return f"{_stem(relation)}-{snapshot:012d}.{relation.sink.format}"


def copy_changes(cursor: Cursor, relation: Relation, changes: str, file: Path) -> bool:
    """Write the delivered rows of `changes` into a file. Returns whether there are any; without any, no file is made.

    Removed rows come first; an update is a removed and an added row.
    """
    sink = relation.sink
    assert sink.format is not None
    columns = ", ".join(f"{_in_file(column, sink.format)} AS {quote(column.name)}" for column in relation.visible)
    if sink.type == APPEND_ONLY:
        query = f"SELECT {columns} FROM {changes} WHERE _weight > 0"
    else:
        operation = f"if(_weight > 0, 'insert', 'delete') AS {quote(OPERATION)}"
        query = f"SELECT {operation}, {columns} FROM {changes} ORDER BY _weight"
    if cursor.execute(f"SELECT 1 FROM ({query}) LIMIT 1").fetchone() is None:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    cursor.execute(f"COPY ({query}) TO {literal(str(file))} ({_COPY[sink.format]})")
    return True


def _in_file(column: Column, format_: str) -> str:
    """Return SQL of a column in a file. Parquet has no intervals below zero or of microseconds, so they become text."""
    name = quote(column.lake_name)
    return f"{name}::{column.type.in_lake()}" if format_ == "parquet" and column.type.is_text_in_lake else name


def _write_file(cursor: Cursor, relation: Relation, changes: str, snapshot: int) -> Path | None:
    """Write the changes into a file of their own, completely or not at all. Returns the file, None without rows."""
    directory = relation.sink.path
    assert directory is not None
    name = file_name(relation, snapshot)
    written, file = Path(directory, f".{name}"), Path(directory, name)
    try:
        if not copy_changes(cursor, relation, changes, written):
            return None
        flush(written)
        os.replace(written, file)
        flush(file.parent)  # the commit that follows relies on the file
    except OSError as error:
        raise Error(f'could not write "{file}": {error.strerror}', errors.IO_ERROR) from error
    return file


def _files(relation: Relation) -> list[tuple[Path, int]]:
    """Return a sink's files with the snapshots in their names; unfinished files have a snapshot above all others."""
    assert relation.sink.path is not None
    directory, stem = Path(relation.sink.path), _stem(relation)
    finished = [(file, int(file.stem.rpartition("-")[2])) for file in directory.glob(f"{stem}-*")]
    return finished + [(file, 1 << 62) for file in directory.glob(f".{stem}-*")]
