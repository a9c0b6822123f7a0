"""Runs DuckDB text with parameter values and returns the record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.lake.translation import DuckDBError, is_interrupt, is_passing, restored, translate
from sparkwave.planner.batch.query import Batch
from sparkwave.server.session.session import Session
from sparkwave.server.wire.union_arrays import batch_without_unions

# How often a query is run when DuckDB interrupts it unasked.
_TRIES = 5
_UNASKED = "the query was interrupted, and nobody asked for that"
# The most rows of a batch that is sent to the client at once.
BATCH_ROWS = 16_384


def given(cursor: Cursor, batch: Batch, values: tuple[object, ...]) -> list[object] | dict[str, object] | None:
    """Return the values of a query's parameters: by name if planning has made some constant, else as a list."""
    if batch.constants:
        return bindings(cursor, batch.sql, values)
    return list(values) if batch.parameters else None


def execute(cursor: Cursor, sql: str, values: list[object] | dict[str, object] | None) -> None:
    """Run a query, and again after a passing error, three times at most."""
    for last in (False, False, True):
        try:
            cursor.execute(sql, values)
            return
        except DuckDBError as error:
            if last or not is_passing(error):
                raise


def bindings(cursor: Cursor, sql: str, values: tuple[object, ...]) -> dict[str, object] | None:
    """Return by name the values of the parameters that a text has, which may be some of the statement's parameters."""
    if not values:
        return None
    used = cursor.extract_statements(sql)[0].named_parameters
    return {name: values[int(name) - 1] for name in used} or None


class Batches:
    """The record batches of a running query. Errors become Error; to close the batches ends the query.

    `kept` is the snapshot that is pinned for the query. `again` runs the query anew: DuckDB (1.5.5) reports about one
    error in 300 of a query of several threads as an interrupt, since the failing thread interrupts the others, and the
    reading thread may see that first.
    """

    def __init__(
        self,
        session: Session,
        cursor: Cursor,
        reader: pa.RecordBatchReader,
        kept: int | None,
        again: Callable[[], pa.RecordBatchReader] | None = None,
    ) -> None:
        self._session = session
        self._again = again
        self._has_begun = False
        self._cursor = cursor
        self._reader = reader
        self._kept = kept

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self

    def __next__(self) -> pa.RecordBatch:
        for _ in range(_TRIES):
            try:
                with self._session.interrupting(self._cursor):
                    batch = batch_without_unions(self._reader.read_next_batch())
            except (DuckDBError, pa.ArrowException, OSError) as error:
                self._session.running.check()
                found = error if isinstance(error, DuckDBError) else restored(error)
                if not is_interrupt(found) or self._again is None:
                    raise translate(found) from error
                self._find_error(self._again)
            else:
                self._has_begun = True
                return batch
        raise Error(_UNASKED)

    def _find_error(self, again: Callable[[], pa.RecordBatchReader]) -> None:
        """Run the query anew. Raises its error where rows have been handed out; else its rows are the result."""
        for _ in range(_TRIES):
            try:
                with self._session.interrupting(self._cursor):
                    self._reader = again()
                    while self._has_begun:
                        self._reader.read_next_batch()
                return
            except StopIteration:
                break
            except (DuckDBError, pa.ArrowException, OSError) as error:
                self._session.running.check()
                found = error if isinstance(error, DuckDBError) else restored(error)
                if not is_interrupt(found):
                    raise translate(found) from error
        raise Error(_UNASKED)

    def close(self) -> None:
        self._cursor.close()
        self._session.context.lake.unpin(self._kept)
        self._kept = None
