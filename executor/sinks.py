"""What sinks hand on: the changes of an epoch go where they are to be in the transaction that ends it, or before that.

Into a table they are written by the transaction itself. A file has its last name before the transaction commits: the
name carries the epoch, so that after a crash it is known whether that was ever committed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog import errors
from catalog.errors import Error
from catalog.kinds import APPEND_ONLY, TABLE
from catalog.lake import Cursor
from catalog.model import CREATING, Catalog, Relation
from catalog.names import LakeTable, literal, quote

# The column of a file with what became of a row, of a sink that is not append-only.
OPERATION = "_op"
_COPY = {"parquet": "FORMAT parquet", "json": "FORMAT json", "csv": "FORMAT csv, HEADER"}


@dataclass(frozen=True)
class Rows:
    """Rows for a table: queries of the keys of those to go, and of those to come, which have `columns`.

    A key that comes too does not go.
    """

    removed: str | None
    added: str
    columns: tuple[str, ...]


# Writes rows into a table by the table's own rules, the last of a key last, inside the cursor's transaction.
TableWriter = Callable[[Cursor, Relation, Sequence[Rows]], None]


@dataclass(frozen=True)
class Delivery:
    """What one sink has to hand on: `changes` is a relation with its columns and `_weight`.

    `snapshot` tells these changes from any before and after.
    """

    relation: Relation
    changes: str
    snapshot: int
    file: Path | None = None


class Sinks:
    """Hands changes on for those who compute them."""

    def __init__(self, write: TableWriter) -> None:
        self._write = write

    def prepare(self, cursor: Cursor, catalog: Catalog, relation: Relation, changes: str, snapshot: int) -> Delivery:
        """All that can fail because of what the sink is, before the transaction: write files, look at NULLs.

        Raises Error 23502 or 58030.
        """
        sink = relation.sink
        if sink.connector == TABLE:
            _check_not_null(cursor, relation, catalog.by_id[sink.target or 0], changes)
        file = _write_file(cursor, relation, changes, snapshot) if sink.path is not None else None
        return Delivery(relation, changes, snapshot, file)

    def deliver(self, cursor: Cursor, catalog: Catalog, deliveries: Iterable[Delivery]) -> None:
        """Write the rows for tables, inside the cursor's transaction: each table once, whatever writes to it."""
        by_table: dict[int, list[Delivery]] = {}
        for delivery in deliveries:
            if delivery.relation.target is not None:
                by_table.setdefault(delivery.relation.target, []).append(delivery)
        for target_id, group in by_table.items():
            target = catalog.by_id[target_id]
            self._write(cursor, target, [_rows(target, delivery) for delivery in group])

    def forget(self, deliveries: Iterable[Delivery]) -> None:
        """The transaction has failed: what was written before it is of no use."""
        for delivery in deliveries:
            if delivery.file is not None:
                delivery.file.unlink(missing_ok=True)

    def remove_uncommitted(self, catalog: Catalog, epoch: int) -> None:
        """Delete the files that no transaction has committed. Only safe before anything is being delivered.

        `epoch` is the newest snapshot that created sinks have applied.
        """
        for relation in catalog.relations:
            if relation.is_sink and relation.sink.path is not None:
                job = catalog.job_by_id[relation.id]
                last = epoch if job.status != CREATING else job.delivered
                for file, snapshot in _files(relation):
                    if last is None or snapshot > last:
                        file.unlink(missing_ok=True)

    def remove_all(self, relation: Relation) -> None:
        """Delete what a sink has written that was given up before it was created."""
        if relation.is_sink and relation.sink.path is not None:
            for file, _ in _files(relation):
                file.unlink(missing_ok=True)


def targets(catalog: Catalog, relations: Iterable[Relation]) -> list[LakeTable]:
    """The lake tables that these sinks write to, which clients write to as well."""
    return [catalog.by_id[relation.target].lake_table for relation in relations if relation.target is not None]


def _rows(target: Relation, delivery: Delivery) -> Rows:
    """The changes as rows to go and to come."""
    relation, changes = delivery.relation, delivery.changes
    columns = tuple(column.name for column in relation.visible)
    listed = ", ".join(map(quote, columns))
    added = f"SELECT {listed} FROM {changes} WHERE _weight > 0"
    if relation.sink.type == APPEND_ONLY:
        return Rows(None, added, columns)
    key = ", ".join(map(quote, target.primary_key))
    return Rows(f"SELECT {key} FROM {changes} WHERE _weight < 0", added, columns)


def _check_not_null(cursor: Cursor, relation: Relation, target: Relation, changes: str) -> None:
    """Raise Error 23502 for a NULL in a row to come where the table has none."""
    given = {column.name for column in relation.visible}
    for column in target.visible:
        if column.name in given and (column.not_null or column.name in target.primary_key):
            row = cursor.execute(
                f"SELECT 1 FROM {changes} WHERE _weight > 0 AND {quote(column.name)} IS NULL LIMIT 1"
            ).fetchone()
            if row is not None:
                raise Error(
                    f'null value in column "{column.name}" of relation "{target.name}" violates not-null constraint',
                    errors.NOT_NULL_VIOLATION,
                )


# Files.


def _stem(relation: Relation) -> str:
    return f"sink-{relation.sink.token}"


def _write_file(cursor: Cursor, relation: Relation, changes: str, snapshot: int) -> Path | None:
    """Write the changes into a file of their own, which is there as a whole or not. Returns it, if there are any.

    Rows that go come first; an update is a row that goes and one that comes.
    """
    sink = relation.sink
    assert sink.path is not None and sink.format is not None
    columns = ", ".join(quote(column.name) for column in relation.visible)
    if sink.type == APPEND_ONLY:
        query = f"SELECT {columns} FROM {changes} WHERE _weight > 0"
    else:
        operation = f"if(_weight > 0, 'insert', 'delete') AS {quote(OPERATION)}"
        query = f"SELECT {operation}, {columns} FROM {changes} ORDER BY _weight"
    if cursor.execute(f"SELECT 1 FROM ({query}) LIMIT 1").fetchone() is None:
        return None
    name = f"{_stem(relation)}-{snapshot:012d}.{sink.format}"
    written, file = Path(sink.path, f".{name}"), Path(sink.path, name)
    try:
        written.parent.mkdir(parents=True, exist_ok=True)
        cursor.execute(f"COPY ({query}) TO {literal(str(written))} ({_COPY[sink.format]})")
        _flush(written)
        os.replace(written, file)
        _flush(file.parent)
    except OSError as error:
        raise Error(f'could not write "{file}": {error.strerror}', errors.IO_ERROR) from error
    return file


def _flush(path: Path) -> None:
    """Have a file, or the names in a directory, on the disk: the commit that follows says that they are."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _files(relation: Relation) -> list[tuple[Path, int]]:
    """A sink's files and what their names say of the snapshot; unfinished ones too, with one beyond all."""
    assert relation.sink.path is not None
    directory, stem = Path(relation.sink.path), _stem(relation)
    finished = [(file, int(file.stem.rpartition("-")[2])) for file in directory.glob(f"{stem}-*")]
    return finished + [(file, 1 << 62) for file in directory.glob(f".{stem}-*")]
