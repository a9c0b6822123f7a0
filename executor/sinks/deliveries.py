"""The delivery of an epoch's changes by sinks, in the transaction that ends the epoch or before it.

The transaction itself writes the rows for a table. A file gets its final name before the transaction commits: the name
contains the epoch, so that after a crash it is known whether the epoch was committed. Rows for another server are
written by the transaction into the sink's log, an internal table; `executor.sinks.outbox` sends them from there.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.places import flush
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.model import CREATING, IGNORE, Catalog, Column, Relation, for_writing
from sparkwave.catalog.names import INTERNAL_PREFIX, LakeTable, literal, quote
from sparkwave.catalog.relation_details import APPEND_ONLY, TABLE
from sparkwave.catalog.types import BIGINT, INTEGER, Type
from sparkwave.planner.definitions.sinks import written_columns

# The column of a log with the snapshot that identifies a row's epoch.
EPOCH = "?epoch"
# The column of a file that tells the operation on a row, for a sink that is not append-only.
OPERATION = "_op"
_COPY = {"parquet": "FORMAT parquet", "json": "FORMAT json", "csv": "FORMAT csv, HEADER"}


@dataclass(frozen=True)
class Rows:
    """One sink's changes for a table: a query of the keys of rows to remove, and a query of rows to add, in order.

    The added rows have values for `columns`. Of rows with one key, a later one meets the earlier ones. With
    `keeps_added`, a key that an added row has is not removed.
    """

    removed: str | None
    added: str
    columns: tuple[Column, ...]
    keeps_added: bool = False


@dataclass(frozen=True)
class Staged:
    """One sink's changes for a table, checked: `added` is a temporary table with all columns of the table."""

    removed: str | None
    added: str


class TableWriter(Protocol):
    """Writes rows into a table by the table's rules."""

    def stage(self, cursor: Cursor, target: Relation, rows: Rows, name: str) -> Staged:
        """Store complete rows in a temporary table, which has a name.

        Rows with NULL where the table has NOT NULL are left out, as in RisingWave. Raises Error for any other row that
        does not fit.
        """

    def check(self, cursor: Cursor, target: Relation, staged: Staged) -> None:
        """Raise the Error of `write` for the rows of one sink."""

    def write(self, cursor: Cursor, target: Relation, parts: Sequence[Staged]) -> None:
        """Write the rows of sinks inside the cursor's transaction.

        All rows are removed first. Raises Error for a row that does not fit once it has met those of its key.
        """


@dataclass(frozen=True)
class Delivery:
    """The changes that one sink has to deliver: `changes` is a relation with the sink's columns and `_weight`.

    `snapshot` is unique among the sink's deliveries. `staged` are the rows for a table.
    """

    relation: Relation
    changes: str
    snapshot: int
    file: Path | None = None
    staged: Staged | None = None


class Undeliverable(Exception):
    """A transaction failed because of the rows of one sink, and would succeed without them."""

    def __init__(self, relation: Relation, error: Exception) -> None:
        super().__init__(str(error))
        self.relation = relation
        self.error = error


class Sinks:
    """Delivers changes for the components that compute them."""

    def __init__(self, writer: TableWriter) -> None:
        self._writer = writer

    def prepare(self, cursor: Cursor, catalog: Catalog, relation: Relation, changes: str, snapshot: int) -> Delivery:
        """Do all that can fail because of the sink, before the transaction: write files, complete and check rows.

        Raises Error 58030, or that of a row which does not fit the table.
        """
        sink = relation.sink
        file = _write_file(cursor, relation, changes, snapshot) if sink.is_local else None
        staged = None
        if sink.connector == TABLE:
            target = for_writing(catalog.by_id[sink.target or 0])
            staged = self._writer.stage(cursor, target, _rows(target, relation, changes), f"sink_rows_{relation.id}")
        return Delivery(relation, changes, snapshot, file, staged)

    def deliver(self, cursor: Cursor, catalog: Catalog, deliveries: Iterable[Delivery]) -> None:
        """Write the rows for tables and logs in the cursor's transaction.

        Each table is written once for all its sinks. Raises Undeliverable.
        """
        by_table: dict[int, list[Delivery]] = {}
        for delivery in sorted(deliveries, key=lambda delivery: delivery.relation.id):
            if delivery.relation.sink.is_remote:
                _write_log(cursor, delivery)
            if delivery.relation.target is not None:
                by_table.setdefault(delivery.relation.target, []).append(delivery)
        for target_id, group in by_table.items():
            target = for_writing(catalog.by_id[target_id])
            try:
                self._writer.write(cursor, target, [delivery.staged for delivery in group if delivery.staged])
            except Error as error:
                raise self._of_one(cursor, target, group, error) from error
            except DuckDBError as error:  # the transaction is no use any more to look for the sink
                raise Undeliverable(group[0].relation, error) from error

    def _of_one(self, cursor: Cursor, target: Relation, group: Sequence[Delivery], error: Error) -> Undeliverable:
        """Return the failure of the sink whose rows do not fit the table."""
        for delivery in group:
            try:
                if delivery.staged is not None:
                    self._writer.check(cursor, target, delivery.staged)
            except Error as own:
                return Undeliverable(delivery.relation, own)
        return Undeliverable(group[0].relation, error)  # no sink's rows alone: the others go on without the first

    def forget(self, deliveries: Iterable[Delivery]) -> None:
        """Delete the files of deliveries whose transaction has failed."""
        for delivery in deliveries:
            if delivery.file is not None:
                delivery.file.unlink(missing_ok=True)

    def remove_uncommitted(self, catalog: Catalog, epoch: int) -> None:
        """Delete the files that no transaction has committed. This is safe only before any delivery begins.

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
    return f"{INTERNAL_PREFIX}{job_id}_log_sink"


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
    kept = "" if relation.sink.removes else "WHERE _weight > 0"
    cursor.execute(
        f"INSERT INTO {log_of(relation).sql} SELECT {columns}, _weight, {delivery.snapshot} "
        f"FROM {delivery.changes} {kept}"
    )


def _rows(target: Relation, relation: Relation, changes: str) -> Rows:
    """Return the changes as rows to remove and to add.

    A row that changes and keeps its key is not removed, so that it keeps the columns that the sink leaves out; only
    where the table ignores rows with an existing key, nothing else would replace it.
    """
    listed = ", ".join(quote(column.lake_name) for column in relation.visible)
    order = f" ORDER BY {order_of(relation)}" if needs_order(relation, target) else ""
    added = f"SELECT {listed} FROM {changes} WHERE _weight > 0{order}"
    columns = written_columns(relation, target)
    if not relation.sink.removes:
        return Rows(None, added, columns)
    names = {column.lake_name: own.lake_name for column, own in zip(columns, relation.visible, strict=True)}
    key = ", ".join(quote(names[name]) for name in target.in_lake(target.primary_key))
    removed = f"SELECT {key} FROM {changes} WHERE _weight < 0"
    return Rows(removed, added, columns, keeps_added=target.conflict.action != IGNORE)


def needs_order(relation: Relation, target: Relation) -> bool:
    """Return whether several rows of a sink may have one key of its table, so that their order counts."""
    key = set(relation.in_lake(relation.key))
    columns = zip(relation.visible, written_columns(relation, target), strict=True)
    names = {own.lake_name for own, column in columns if column.name in target.primary_key}
    return bool(target.primary_key) and not key <= names


def order_of(relation: Relation) -> str:
    """Return SQL of the order of a sink's rows: by the key that tells them apart."""
    return ", ".join(quote(name) for name in relation.in_lake(relation.key))


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
        kept = "" if sink.removes else "WHERE _weight > 0"
        query = f"SELECT {operation}, {columns} FROM {changes} {kept} ORDER BY _weight"
    if cursor.execute(f"SELECT 1 FROM ({query}) LIMIT 1").fetchone() is None:
        return False
    file.parent.mkdir(parents=True, exist_ok=True)
    cursor.execute(f"COPY ({query}) TO {literal(str(file))} ({_COPY[sink.format]})")
    return True


def _in_file(column: Column, format_: str) -> str:
    """Return SQL of a column in a file. Parquet has no intervals below zero or of microseconds, so they become text.

    json becomes text, and a part of the line in a file of JSON.
    """
    name = quote(column.lake_name)
    if column.type.holds_json:
        return _document(column.type, name) if format_ == "json" else f"{name}::{column.type.in_lake()}"
    return f"{name}::{column.type.in_lake()}" if format_ == "parquet" and column.type.is_text_in_lake else name


def _document(type_: Type, value: str) -> str:
    """Return SQL of a value in which json is DuckDB's JSON."""
    if not type_.holds_json:
        return value
    if type_.dimensions or type_.fields:
        return type_.over_parts(value, _document)
    return f"CAST(CAST({value} AS VARCHAR) AS JSON)"


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
