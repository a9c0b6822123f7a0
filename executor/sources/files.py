"""The connectors `posix_fs` and `s3`: the files below a directory or in a bucket, each read once from start to end.

A split is a file, by its path below the directory. New files are looked for when the known ones are read. Delivered
rows stay when the file changes or is removed; a file that becomes shorter while it is read is an error.
"""

from __future__ import annotations

import fnmatch
import re
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import Column
from sparkwave.catalog.names import quote
from sparkwave.catalog.source_model import Source, Split
from sparkwave.executor.sources.connector import READ, Batch, SplitError
from sparkwave.executor.sources.file_formats import FILE, OFFSET, Value, find_fault, open_format, selected
from sparkwave.executor.sources.file_storage import Directory, Storage, bucket, text_of

# Seconds for which a list of a directory, and of a bucket, counts as new; each list of a bucket costs money
# (RisingWave: src/connector/src/source/filesystem/mod.rs).
LIST_S, LIST_BUCKET_S = 1.0, 60.0
_INCLUDED = {"file": Value(quote(FILE)), "offset": Value(f"CAST({quote(OFFSET)} AS VARCHAR)")}


class Files:
    """The files of one source."""

    rows_per_second: int | None = None

    def __init__(self, source: Source, columns: tuple[Column, ...]) -> None:
        self._storage, self._list_s = _storage(source)
        self._pattern = source.options.get("match_pattern") or "*"
        self._prefix = re.split(r"[*?\[]", self._pattern, maxsplit=1)[0]
        included = source.included
        read = tuple(column for column in columns if column.name not in included)
        self._format = open_format(source.encode, source.encode_options, read)
        self._read, self._values = read, self._format.values()
        values = dict(zip((column.name for column in read), self._values, strict=True))
        self._sql = f"SELECT {selected(columns, values, included, _INCLUDED)} FROM {READ}"
        self._pending: list[str] = []
        self._listed_at = float("-inf")

    def check(self) -> Mapping[str, str]:
        """Raise Error 58P01 when the directory or bucket does not exist, 08006 when it cannot be reached."""
        self._storage.check()
        return {}

    def read(self, splits: Mapping[str, Split], held_back: Collection[str], rows: int, most: int) -> Batch | None:
        """Return the next rows, of as many files as needed. Raises SplitError for the first unreadable file."""
        tables: list[Any] = []
        moved: list[Split] = []
        left = rows
        for name in self._unfinished(splits, held_back):
            split = splits.get(name, Split(name))
            try:
                part = self._format.read(self._storage.file(name), split.position, left)
            except (OSError, ValueError, Error) as error:
                if moved:
                    break  # deliver the rows read before first
                raise SplitError(split, self._wrong(name, error)) from error
            count = part.table.num_rows
            table = part.table.append_column(FILE, pa.repeat(pa.scalar(name), count))
            if tables and table.schema != tables[0].schema:
                break
            tables.append(table)
            moved.append(Split(name, part.position, split.row_count + count, part.is_last))
            left -= count
            if left <= 0 or len(moved) == most:
                break
        return Batch(self._sql, tuple(moved), pa.concat_tables(tables)) if moved else None

    def _unfinished(self, splits: Mapping[str, Split], held_back: Collection[str]) -> list[str]:
        """Return the files to read, sorted by name."""
        self._pending = [name for name in self._pending if not (name in splits and splits[name].is_finished)]
        found = [name for name in self._pending if name not in held_back]
        if not found and time.monotonic() - self._listed_at > self._list_s:
            self._pending = [n for n in self._list() if not (n in splits and splits[n].is_finished)]
            self._listed_at = time.monotonic()
            found = [name for name in self._pending if name not in held_back]
        return found

    def _list(self) -> list[str]:
        """Return the paths of all matching files, without hidden ones. Raises Error 58P01 or 08006."""
        return [name for name in self._storage.list(self._prefix) if fnmatch.fnmatchcase(name, self._pattern)]

    def blame(self, cursor: Cursor, batch: Batch, error: Error) -> SplitError | None:
        """Return the file of the first row for which a column's SQL fails."""
        fault = find_fault(cursor, (FILE, OFFSET), self._read, self._values)
        if fault is None:
            return None
        name, offset = fault.place
        split = next(split for split in batch.splits if split.name == name)
        file = self._storage.file(name)
        return SplitError(split, Error(f"{file}, {self._format.place(file, offset)}: {fault.text}", error.sqlstate))

    def forget(self) -> None:
        pass

    def _wrong(self, name: str, error: Exception) -> Error:
        file = self._storage.file(name)
        if isinstance(error, Error):
            return Error(f"{file}, {error.message}", error.sqlstate)
        if isinstance(error, OSError) and not isinstance(error, pa.ArrowException):
            return Error(f'file "{file}" cannot be read: {text_of(error)}', errors.UNDEFINED_FILE)
        return Error(f"{file}: {str(error).splitlines()[0]}", errors.BAD_COPY_FILE_FORMAT)


def _storage(source: Source) -> tuple[Storage, float]:
    """Return the storage of a source's files, and the seconds for which a list of them counts as new."""
    if source.connector == "s3":
        return bucket(source.options), float(source.options.get("refresh.interval.sec", LIST_BUCKET_S))
    return Directory(Path(source.options["posix_fs.root"])), LIST_S
