"""The connector `posix_fs`: the files of a directory and all below it, each read once from beginning to end.

A split is a file, by its path below the directory. New files are looked for when the known ones are read. What is
delivered of a file is not taken back when it changes or goes; one that becomes shorter while it is read is an error.
"""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from catalog import errors
from catalog.errors import Error
from catalog.lake import Cursor, DuckDBError
from catalog.model import Column
from catalog.names import quote
from catalog.sources import Source, Split
from executor.sources.connector import READ, Batch, SplitError
from executor.sources.formats import FILE, LINE, OFFSET, Value, open_format

# How long a list of the directory counts as new.
LIST_S = 1.0
_INCLUDED = {"file": Value(quote(FILE)), "offset": Value(f"CAST({quote(OFFSET)} AS VARCHAR)")}


class Files:
    """The files of one source."""

    rows_per_second: int | None = None

    def __init__(self, source: Source, columns: tuple[Column, ...]) -> None:
        self._root = Path(source.options["posix_fs.root"])
        self._pattern = source.options.get("match_pattern") or "*"
        included = {column: what for what, column in source.includes}
        read = tuple(column for column in columns if column.name not in included)
        self._format = open_format(source.encode, source.encode_options, read)
        self._values = dict(zip((column.name for column in read), self._format.values(), strict=True))
        self._types = {column.name: column.type for column in read}
        self._has_lines = source.encode == "JSON"
        made = ((column, self._values.get(column.name) or _INCLUDED[included[column.name]]) for column in columns)
        self._sql = f"SELECT {', '.join(f'{value.sql} AS {quote(column.name)}' for column, value in made)} FROM {READ}"
        self._pending: list[str] = []
        self._listed_at = 0.0

    def check(self) -> None:
        """Raises Error 58P01 when there is no such directory."""
        if not self._root.is_dir():
            raise Error(
                f'directory "{self._root}" does not exist',
                errors.UNDEFINED_FILE,
                hint="It is one of the machine that the server runs on.",
            )

    def read(self, splits: Mapping[str, Split], held_back: Collection[str], rows: int, most: int) -> Batch | None:
        """The next rows of as many files as it takes. Raises SplitError for the first that cannot be read."""
        tables: list[Any] = []
        moved: list[Split] = []
        left = rows
        for name in self._unfinished(splits, held_back):
            split = splits.get(name, Split(name))
            try:
                part = self._format.read(self._root / name, split.position, left)
            except (OSError, ValueError, Error) as error:
                if moved:
                    break  # what was read before comes first
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
        """The files to read, in the order of their names."""
        self._pending = [name for name in self._pending if not (name in splits and splits[name].is_finished)]
        found = [name for name in self._pending if name not in held_back]
        if not found and time.monotonic() - self._listed_at > LIST_S:
            self._pending = [n for n in self._list() if not (n in splits and splits[n].is_finished)]
            self._listed_at = time.monotonic()
            found = [name for name in self._pending if name not in held_back]
        return found

    def _list(self) -> list[str]:
        """The paths of all files that match, but hidden ones. Raises Error 58P01 when the directory is gone."""

        def refuse(error: OSError) -> None:
            raise Error(f'directory "{error.filename}" cannot be read: {error.strerror}', errors.UNDEFINED_FILE)

        names = []
        for directory, folders, files in os.walk(self._root, onerror=refuse):
            folders[:] = [folder for folder in folders if not folder.startswith(".")]
            below = os.path.relpath(directory, self._root)
            prefix = "" if below == "." else f"{below}/"
            names += [prefix + file for file in files if not file.startswith(".")]
        return sorted(name for name in names if fnmatch.fnmatchcase(name, self._pattern))

    def blame(self, cursor: Cursor, batch: Batch, error: Error) -> SplitError | None:
        """The first row that a column's SQL fails for."""
        checks: list[tuple[str, str, str]] = []
        if self._has_lines:
            checks.append(("", f"NOT json_valid({quote(LINE)})", f"left(rtrim({quote(LINE)}, chr(10)), 100)"))
        for name, value in self._values.items():
            if value.text is not None:
                condition = f"{value.text} IS NOT NULL AND TRY({value.sql}) IS NULL"
                checks.append((name, condition, f"CAST({value.text} AS VARCHAR)"))
        for column, condition, shown in checks:
            try:
                row = cursor.execute(
                    f"SELECT {quote(FILE)}, {quote(OFFSET)}, {shown} FROM {READ} WHERE {condition} LIMIT 1"
                ).fetchone()
            except DuckDBError:
                continue
            if row is not None:
                name, offset, text = row
                split = next(split for split in batch.splits if split.name == name)
                place = self._format.place(self._root / name, offset)
                what = (
                    f'column "{column}": invalid input syntax for type {self._types[column]}' if column else "no JSON"
                )
                return SplitError(split, Error(f'{self._root / name}, {place}: {what}: "{text}"', error.sqlstate))
        return None

    def forget(self) -> None:
        pass

    def _wrong(self, name: str, error: Exception) -> Error:
        if isinstance(error, Error):
            return Error(f"{self._root / name}, {error.message}", error.sqlstate)
        if isinstance(error, OSError) and not isinstance(error, pa.ArrowException):
            return Error(f'file "{self._root / name}" cannot be read: {error.strerror}', errors.UNDEFINED_FILE)
        return Error(f"{self._root / name}: {str(error).splitlines()[0]}", errors.BAD_COPY_FILE_FORMAT)
