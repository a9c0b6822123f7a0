"""Keeps a query's rows in a file, for cursors that outlive their transaction or scroll back."""

from __future__ import annotations

import bisect
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa


class Spool:
    """Reads batches from a query on demand and keeps them; rows are numbered from 1.

    The file has no name, so that the system removes it when the process ends, in whatever way.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._batches = batches
        self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 - open as long as the cursor
        self._schema: pa.Schema | None = None
        self._ends: list[int] = []  # the number of the last row of each batch
        self._places: list[tuple[int, int]] = []  # each batch's offset in the file, and its length in bytes
        self._complete = False

    @property
    def kept(self) -> int:
        """The number of rows read from the query so far."""
        return self._ends[-1] if self._ends else 0

    def fill(self, upto: int | None = None) -> int:
        """Read rows until `upto` rows are kept, or all. Returns the number of kept rows."""
        while not self._complete and (upto is None or self.kept < upto):
            batch = next(self._batches, None)
            if batch is None:
                self._complete = True
            elif batch.num_rows:
                self._schema = batch.schema
                data = batch.serialize()
                self._places.append((self._file.seek(0, 2), data.size))
                self._file.write(data)
                self._ends.append(self.kept + batch.num_rows)
        return self.kept

    def rows(self, first: int, last: int | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows from `first` to `last`, or to the end, as far as rows exist."""
        while last is None or first <= last:
            if self.fill(first) < first:
                return
            number = bisect.bisect_left(self._ends, first)
            start = self._ends[number - 1] if number else 0
            batch = self._read(number).slice(first - start - 1, None if last is None else last - first + 1)
            yield batch
            first += batch.num_rows

    def backwards(self, first: int, last: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows from `last` down to `first`."""
        while last >= first:
            number = bisect.bisect_left(self._ends, last)
            start = self._ends[number - 1] if number else 0
            low = max(first, start + 1)
            batch = self._read(number).slice(low - start - 1, last - low + 1)
            yield batch.take(pa.array(range(batch.num_rows - 1, -1, -1), pa.int64()))
            last = low - 1

    def _read(self, number: int) -> pa.RecordBatch:
        offset, size = self._places[number]
        self._file.seek(offset)
        return pa.ipc.read_record_batch(pa.py_buffer(self._file.read(size)), self._schema)

    def close(self) -> None:
        self._file.close()


class Scroll:
    """The position of a cursor that scrolls: 0 is before the first row, the number of rows plus 1 is after the last."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self._at = 0

    def fetch(self, way: str, count: int | None) -> Iterator[pa.RecordBatch]:
        """Return the rows of a FETCH, and move the cursor as they are taken (PostgreSQL's page on FETCH).

        `way` is "forward", "backward", "absolute" or "relative"; `count` None means all rows.
        """
        if way in ("absolute", "relative"):
            assert count is not None
            target = self._target(way, count)
            self._at = min(max(target, 0), self.spool.fill(max(target, 0)) + 1)
            return self._current()
        if way == "backward":
            count = -count if count is not None else None
        if count is None:
            return self._forward(None) if way == "forward" else self._backward(self._at)
        if count == 0:
            return self._current()
        return self._forward(count) if count > 0 else self._backward(-count)

    def _target(self, way: str, count: int) -> int:
        if way == "relative":
            return self._at + count
        return count if count >= 0 else self.spool.fill() + 1 + count

    def _current(self) -> Iterator[pa.RecordBatch]:
        return self.spool.rows(self._at, self._at) if self._at else iter(())

    def _forward(self, count: int | None) -> Iterator[pa.RecordBatch]:
        last = None if count is None else self._at + count
        for batch in self.spool.rows(self._at + 1, last):
            self._at += batch.num_rows
            yield batch
        if last is None or self._at < last:
            self._at = self.spool.kept + 1

    def _backward(self, count: int) -> Iterator[pa.RecordBatch]:
        last = min(self._at - 1, self.spool.kept)
        first = max(self._at - count, 1)
        self._at = max(self._at - count, 0)
        return self.spool.backwards(first, last)
