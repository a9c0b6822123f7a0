"""Places of the lake's files: below a directory, or below a prefix in a bucket of S3 or a compatible store.

A bucket has no directories, only objects with slashes in their keys: no directory has to be created, and an object
exists completely or not at all.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pyarrow import fs

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.conditional_put import ConditionUnknown, put_new
from sparkwave.catalog.lake.s3 import S3

_LIST = "files.txt"
# How often a directory is deleted again if files are added to it meanwhile.
_PASSES = 10


@dataclass(frozen=True)
class BucketPath:
    """An object, or all objects below a prefix, with the methods of Path that the lake needs; they raise OSError.

    `key` begins with the bucket.
    """

    s3: S3
    key: str

    def __str__(self) -> str:
        return f"s3://{self.key}"

    def __truediv__(self, name: str) -> BucketPath:
        return replace(self, key=f"{self.key}/{name}")

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    @property
    def parent(self) -> BucketPath:
        return replace(self, key=self.key.rpartition("/")[0])

    def mkdir(self, parents: bool = True, exist_ok: bool = True) -> None:
        """Do nothing, since a bucket has no directories."""

    def exists(self) -> bool:
        return bool(self.s3.filesystem.get_file_info(self.key).type != fs.FileType.NotFound)

    def iterdir(self) -> Iterator[BucketPath]:
        for info in self._listed(recursive=False):
            yield replace(self, key=info.path)

    def glob(self, pattern: str) -> Iterator[BucketPath]:
        """Yield the objects, not prefixes, whose names below this one match; `*` matches within a name."""
        wanted = pattern.split("/")
        for info in self._listed():
            names = info.path[len(self.key) + 1 :].split("/")
            if info.is_file and len(names) == len(wanted) and all(map(fnmatchcase, names, wanted)):
                yield replace(self, key=info.path)

    def sizes(self) -> dict[str, int]:
        """Return the sizes of all objects below, in bytes."""
        return {f"s3://{info.path}": info.size for info in self._listed() if info.is_file}

    def modified(self) -> dict[str, tuple[float, int]]:
        """Return for all objects below the modification time, in seconds since 1970, and the bytes."""
        return {f"s3://{i.path}": (i.mtime_ns / 1e9, i.size) for i in self._listed() if i.is_file}

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            self.s3.filesystem.delete_file(self.key)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def read_text(self) -> str:
        with self.s3.filesystem.open_input_file(self.key) as stream:
            return bytes(stream.read()).decode()

    def write_text(self, text: str) -> None:
        with self.s3.filesystem.open_output_stream(self.key) as stream:
            stream.write(text.encode())

    def create_text(self, text: str) -> None:
        """Write a new object. Raises FileExistsError if it exists.

        In a store without conditions, an object that another server creates at the same instant is overwritten.
        """
        try:
            put_new(self.s3, self.key, text.encode())
        except ConditionUnknown:
            self.write_text(text)

    def copy_to(self, target: Place) -> None:
        """Copy an object; within a store, without reading it."""
        if isinstance(target, BucketPath):
            self.s3.filesystem.copy_file(self.key, target.key)
            return
        with self.s3.filesystem.open_input_stream(self.key) as stream, open(target, "wb") as file:
            shutil.copyfileobj(stream, file)

    def copy_from(self, source: Path) -> None:
        """Write an object with a file's content."""
        with open(source, "rb") as file, self.s3.filesystem.open_output_stream(self.key) as stream:
            shutil.copyfileobj(file, stream)

    def check(self) -> None:
        """Raise Error F0000 when the bucket does not exist or cannot be used."""
        bucket = self.key.partition("/")[0]
        try:
            found = self.s3.filesystem.get_file_info(bucket)
        except OSError as error:
            raise Error(f'bucket "{bucket}" cannot be used: {error}', errors.CONFIG_FILE_ERROR) from error
        if found.type == fs.FileType.NotFound:
            raise Error(f'bucket "{bucket}" does not exist', errors.CONFIG_FILE_ERROR)

    def _listed(self, recursive: bool = True) -> list[Any]:
        selector = fs.FileSelector(self.key, allow_not_found=True, recursive=recursive)
        return sorted(self.s3.filesystem.get_file_info(selector), key=lambda info: info.path)


Place = Path | BucketPath


def below(root: Place, path: str) -> Place:
    """Return the place, below another one, of a path given as text."""
    return root / path.removeprefix(f"{root}/")


def check_url(text: str) -> str:
    """Return the URL of a bucket, or of a prefix in it, without a final slash. Raises ValueError for another text."""
    if not re.fullmatch(r"s3://[a-z0-9][a-z0-9.-]+(/[^/?#*\[]+)*/?", text):
        raise ValueError(text)
    return text.rstrip("/")


def remove_tree(place: Place) -> None:
    """Delete a place with everything below, as far as possible, including files that are added meanwhile."""
    if isinstance(place, Path):
        for _ in range(_PASSES):
            shutil.rmtree(place, ignore_errors=True)
            if not os.path.lexists(place):
                return
    else:
        with contextlib.suppress(OSError):
            place.s3.filesystem.delete_dir(place.key)


def sizes_below(place: Place) -> dict[str, int]:
    """Return the sizes of all files below, in bytes, by path."""
    if isinstance(place, Path):
        return {str(path): path.stat().st_size for path in place.rglob("*") if not path.is_dir()}
    return place.sizes()


def modified_below(place: Place) -> dict[str, tuple[float, int]]:
    """Return for all files below the modification time, in seconds since 1970, and the bytes, by path."""
    if not isinstance(place, Path):
        return place.modified()
    found = {}
    for path in place.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # files come and go
            if path.is_file():
                found[str(path)] = path.stat().st_mtime, path.stat().st_size
    return found


def log_of(file: Path) -> Path:
    """Return the write-ahead log that DuckDB keeps beside a file of its own."""
    return file.with_name(f"{file.name}.wal")


def flush(path: Path) -> None:
    """Write a file, or the names in a directory, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def delete_unused(directory: Place, used: Collection[str], levels: int) -> None:
    """Delete the unused Parquet files below a directory.

    Then empty directories are removed: those below, the directory itself and `levels` parents.
    """
    for file in sizes_below(directory):
        if file.endswith(".parquet") and file not in used:
            below(directory, file).unlink(missing_ok=True)
    if isinstance(directory, Path):
        for place in (*directory.glob("*"), directory, *directory.parents[:levels]):
            with contextlib.suppress(OSError):  # not empty, or a file
                place.rmdir()


def keep_list(directory: Place, files: Collection[str]) -> None:
    """Record the valid files of a directory, for `listed`: it may also have files of failed Spark tasks."""
    (directory / _LIST).write_text("\n".join(files))


def listed(place: Place, pattern: str) -> list[str]:
    """Return the valid Parquet files of the matching directories; without a list (older versions), all files."""
    found = [file for note in place.glob(f"{pattern}/{_LIST}") for file in note.read_text().splitlines()]
    if isinstance(place, Path):
        bare = (directory for directory in place.glob(pattern) if not (directory / _LIST).exists())
        found += [str(file) for directory in bare for file in sorted(directory.rglob("*.parquet"))]
    return found
