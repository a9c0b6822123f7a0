"""Keeps the uncommitted writes of an atomic transaction and commits them; the first transaction to commit wins."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.change_feed import table_changes
from sparkwave.catalog.lake.ducklake import Cursor, Lake
from sparkwave.catalog.lake.translation import DuckDBError, is_conflict
from sparkwave.catalog.model import Catalog, Relation, row_shape
from sparkwave.catalog.names import COPIES, ROW, LakeTable, name_in_memory, quote
from sparkwave.server.session.portal import Portal
from sparkwave.server.writes.stores import LIVE, NEWEST, ROW_ID, Overlay, Stored, key_of, listed, names_of

_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Mark:
    """A savepoint, or the transaction's start: the number of log entries then, the variables and the portals."""

    name: str
    entries: int
    variables: Mapping[str, str]
    portals: tuple[Portal, ...]


@dataclass
class Block:
    """An atomic transaction: the overlays of its writes over a pinned snapshot.

    Before the commit, nothing of a block is in the lake and it holds no lock. `is_implicit`: the block is a simple
    query with several statements, or a pipeline. `marks` are the start and the savepoints. `committed` are the commands
    that have committed a part of the block by themselves.
    """

    lake: Lake
    snapshot: int
    marks: list[Mark]
    is_implicit: bool
    has_failed: bool = False
    committed: tuple[str, ...] = ()
    schema: str = field(default_factory=lambda: f"block {next(_NUMBERS)}")
    entries: int = 0
    _overlays: dict[LakeTable, Overlay] = field(default_factory=dict)

    @property
    def names(self) -> Mapping[LakeTable, str]:
        """The schema of the overlay of each written table."""
        return dict.fromkeys(self._overlays, self.schema)

    def overlay(self, target: Relation) -> Overlay:
        """Return a table's overlay, which the first write creates.

        Raises Error 0A000 for a table with a column "rowid".
        """
        table = target.lake_table
        if table not in self._overlays:
            if any(column.lake_name.lower() == "rowid" for column in target.visible):
                message = 'a table with a column "rowid" cannot be changed in an atomic transaction'
                raise Error(message, errors.FEATURE_NOT_SUPPORTED)
            views, logs = (f"{COPIES}.{quote(schema)}" for schema in (self.schema, self._logs))
            name = quote(name_in_memory(table))
            made = Overlay(target, f"{views}.{name}", f"{logs}.{name}", iter(self._next_entry, None))
            cursor = self.lake.cursor()
            try:
                cursor.execute("BEGIN")
                for schema in (views, logs):
                    cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")
                made.create(cursor, self.snapshot)
                cursor.execute("COMMIT")
            finally:
                cursor.close()
            self._overlays[table] = made
        return self._overlays[table]

    @property
    def _logs(self) -> str:
        return f"{self.schema} log"

    def _next_entry(self) -> int:
        self.entries += 1
        return self.entries

    def forget(self, mark: Mark) -> None:
        """Drop the writes since a savepoint."""
        cursor = self.lake.cursor()
        try:
            for overlay in self._overlays.values():
                cursor.execute(f'DELETE FROM {overlay.log} WHERE "?entry" > {mark.entries}')
        finally:
            cursor.close()

    def discard(self) -> None:
        """Drop all overlays."""
        if self._overlays:
            cursor = self.lake.cursor()
            try:
                for schema in (self.schema, self._logs):
                    cursor.execute(f"DROP SCHEMA IF EXISTS {COPIES}.{quote(schema)} CASCADE")
            finally:
                cursor.close()
            self._overlays.clear()

    def commit(self, cursor: Cursor, newest_catalog: Callable[[], Catalog]) -> bool:
        """Write everything in one transaction of the lake. Returns whether there was a write.

        Raises Error 40001 when another transaction has changed one of the rows, or added one of the keys, since the
        snapshot. Locks are taken only here, all at once and in one order, so that no two blocks wait for each other.
        """
        written = {table: each for table, each in self._overlays.items() if _any(cursor, f"FROM {each.log}")}
        if not written:
            return False
        try:
            with self.lake.table_transaction(cursor, *written):
                _refuse_altered(newest_catalog(), written.values())
                newest = self.lake.snapshot(cursor)
                changed = self.lake.changed_tables(cursor, self.snapshot, newest)
                for table, overlay in written.items():
                    has_deletes = changed.get((table.schema, table.name))
                    if has_deletes is not None:
                        changes = table_changes(table, self.snapshot, newest, has_deletes)
                        _refuse_conflict(cursor, overlay, changes)
                for overlay in written.values():
                    _apply(cursor, overlay)
        except DuckDBError as error:
            if is_conflict(error):
                raise _conflict("update") from error
            raise
        return True


def _refuse_altered(catalog: Catalog, overlays: Iterable[Overlay]) -> None:
    """Raise Error 40001 if a table was dropped or altered since the block first wrote it."""
    for overlay in overlays:
        table = catalog.by_id.get(overlay.target.id)
        if table is None:
            raise _conflict("drop of a table")
        if row_shape(table) != row_shape(overlay.target):
            raise _conflict("alteration of a table")


def _refuse_conflict(cursor: Cursor, overlay: Overlay, changes: str) -> None:
    """Raise Error 40001 if other transactions changed rows, or added keys, that are in the block's log.

    With a watermark any change is a conflict: which rows are late depends on all stored rows.
    """
    target, conditions = overlay.target, [f"rowid IN (SELECT {ROW_ID} FROM {overlay.log})"]
    if target.primary_key:
        key = listed(key_of(target))
        conditions.append(f"({key}) IN (SELECT ({key}) FROM {overlay.log} WHERE {LIVE})")
    met = "true" if target.watermark is not None else " OR ".join(conditions)
    if _any(cursor, f"FROM ({changes}) AS changes WHERE {met}"):
        raise _conflict("update")


def _apply(cursor: Cursor, overlay: Overlay) -> None:
    """Write the changes of the log to the stored table."""
    stored, target = Stored(overlay.target), overlay.target
    cursor.execute(f"CREATE OR REPLACE TEMPORARY TABLE {_NEWEST_ENTRIES} AS FROM {overlay.log} {NEWEST}")
    gone = f"FROM {_NEWEST_ENTRIES} WHERE NOT {LIVE} AND {ROW_ID} >= 0"
    if _any(cursor, gone):
        stored.delete(cursor, f"SELECT {ROW_ID} {gone}")
    assigned = tuple(column.name for column in target.visible if column.name not in target.primary_key)
    changed = f"FROM {_NEWEST_ENTRIES} WHERE {LIVE} AND {ROW_ID} >= 0"
    if assigned and _any(cursor, changed):
        stored.update(cursor, assigned, f'SELECT {listed(names_of(target))}, {ROW_ID} AS "{ROW}" {changed}')
    added = f"FROM {_NEWEST_ENTRIES} WHERE {LIVE} AND {ROW_ID} < 0"
    if _any(cursor, added):
        names = listed(names_of(target))
        cursor.execute(f"INSERT INTO {stored.rows} ({names}) SELECT {names} {added} ORDER BY {ROW_ID} DESC")


_NEWEST_ENTRIES = "newest_entries"


def _any(cursor: Cursor, source: str) -> bool:
    return cursor.execute(f"SELECT 1 {source} LIMIT 1").fetchone() is not None


def _conflict(what: str) -> Error:
    message = f"could not serialize access due to concurrent {what}"
    return Error(message, errors.SERIALIZATION_FAILURE, hint="The transaction might succeed if retried.")
