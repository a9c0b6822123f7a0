"""Writes the rows of sinks and sources, which no session sends, into a table like the rows of an INSERT."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Catalog, Relation, same_key
from sparkwave.catalog.names import quote
from sparkwave.catalog.system.system_views import is_system
from sparkwave.executor.memory.delta_tables import drop_later
from sparkwave.executor.sinks.deliveries import Rows, Staged
from sparkwave.planner.batch.query import Environment
from sparkwave.planner.batch.sequence_calls import Draws
from sparkwave.planner.batch.values import given_columns
from sparkwave.planner.batch.write import INSERTED
from sparkwave.planner.bind.binder import scope_of
from sparkwave.server.session.variables import SESSION
from sparkwave.server.writes.row_checks import check_rows
from sparkwave.server.writes.staging import (
    compute_defaults,
    compute_generated,
    create_staging,
    fill_staging,
    scalar,
    settle,
    take_in,
)
from sparkwave.server.writes.stores import Stored, key_of, listed

logger = logging.getLogger(__name__)


class SinkWriter:
    """Writes the rows of sinks into their tables (`executor.sinks.deliveries.TableWriter`)."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def stage(self, cursor: Cursor, target: Relation, rows: Rows, name: str) -> Staged:
        environment = _environment(self._catalog(), target)
        create_staging(cursor, target, name)
        drop_later(cursor, name)
        cursor.execute(fill_staging(rows.columns, rows.added, name))
        compute_defaults(environment, cursor, target, rows.columns, refuse_drawing, name)
        compute_generated(environment, cursor, target, name)
        _leave_out_nulls(cursor, target, name)
        check_rows(environment, cursor, target, name, target.primary_key if target.fills_up else None)
        removed = rows.removed
        if removed is not None and rows.keeps_added:
            removed += f" EXCEPT SELECT {listed(key_of(target))} FROM {name}"
        return Staged(removed, name)

    def check(self, cursor: Cursor, target: Relation, staged: Staged) -> None:
        _take_up(cursor, target, [staged])
        settle(_environment(self._catalog(), target), cursor, Stored(target))

    def write(self, cursor: Cursor, target: Relation, parts: Sequence[Staged]) -> None:
        gone = " UNION ".join(f"({part.removed})" for part in parts if part.removed is not None)
        if gone:
            key = listed(key_of(target))
            met = same_key(target, "t", "gone")
            cursor.execute(f"DELETE FROM {target.lake_name} AS t USING ({gone}) AS gone({key}) WHERE {met}")
        if _take_up(cursor, target, parts):
            take_in(_environment(self._catalog(), target), cursor, Stored(target))


def _leave_out_nulls(cursor: Cursor, target: Relation, rows: str) -> None:
    """Delete the staged rows that have NULL where the table does not take it, and log their number."""
    required = [c for c in target.visible if c.name in target.primary_key or (c.not_null and not target.fills_up)]
    if not required:
        return
    missing = " OR ".join(f"{quote(column.lake_name)} IS NULL" for column in required)
    left_out = scalar(cursor, f"DELETE FROM {rows} WHERE {missing}")
    if left_out:
        logger.warning("rows of a sink into %s with NULL for NOT NULL are left out: %d", target.name, left_out)


def _take_up(cursor: Cursor, target: Relation, parts: Sequence[Staged]) -> int:
    """Stage the rows of sinks, one sink after the other. Returns their number."""
    create_staging(cursor, target)
    for part in parts:
        cursor.execute(f"INSERT INTO {INSERTED} FROM {part.added}")  # DuckDB keeps the order
    return scalar(cursor, f"SELECT count(*) FROM {INSERTED}")


@contextmanager
def refuse_drawing(cursor: Cursor, draws: Draws) -> Iterator[None]:
    """Raise Error 0A000 for a default that draws from a sequence: the barrier holds the lock that reserves numbers."""
    if draws:
        raise Error("a sink cannot leave out a column whose default is nextval", errors.FEATURE_NOT_SUPPORTED)
    yield


class Delivery:
    """Writes the rows of sources into their tables (`executor.sources.reader.Writer`)."""

    def __init__(self, catalog: Callable[[], Catalog]) -> None:
        self._catalog = catalog

    def stage(self, cursor: Cursor, target: Relation, rows: str) -> int:
        """Stage the rows of a query with the target's columns except generated ones.

        Returns the number of staged rows. Raises the errors of `check_rows`.
        """
        create_staging(cursor, target)
        cursor.execute(fill_staging(given_columns(target), rows))
        environment = _environment(self._catalog(), target)
        compute_generated(environment, cursor, target)
        check_rows(environment, cursor, target, INSERTED, target.primary_key if target.fills_up else None)
        return scalar(cursor, f"SELECT count(*) FROM {INSERTED}")

    def store(self, cursor: Cursor, target: Relation, removed: str | None, clears: bool) -> None:
        """Write the staged rows, inside the cursor's transaction.

        Before that, the rows with the keys of the query `removed` are deleted, or with `clears` all rows.
        """
        store = Stored(target)
        if clears:
            store.clear(cursor)
        elif removed is not None:
            key = listed(key_of(target))
            met = same_key(target, "s", "gone")
            store.delete(cursor, f"SELECT s.rowid FROM {store.rows} s SEMI JOIN ({removed}) AS gone({key}) ON {met}")
        take_in(_environment(self._catalog(), target), cursor, store)


def _environment(catalog: Catalog, target: Relation) -> Environment:
    """Return the environment for a table's expressions without a session: the owner's, with default settings."""
    settings = {variable.name: variable.default for variable in SESSION.values()}
    return Environment(catalog, scope_of(target), settings, is_system, catalog.users[target.owner])
