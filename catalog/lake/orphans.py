"""What crashes and failures have left: files below the data path that no snapshot knows, and temporary ones.

Only what has a name that DuckLake or a job gives is taken for such a file. DuckLake (1.5.5) names files
`<schema>/<table>/ducklake-<UUID>[-delete].parquet`.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from sparkwave.catalog.lake.ducklake import METADATA, Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.places import Place, below, modified_below, remove_tree
from sparkwave.catalog.model import CREATING, INITIAL
from sparkwave.catalog.names import system_table

_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OF_TABLE = re.compile(rf"[^/]+/[^/]+/ducklake-{_UUID}(-delete)?\.parquet")
_OF_JOB = re.compile(r"job_(\d+)/(f\d+_s\d+|step_\d+)/.+")
# Partial results of a job, and `Lake.new_temporary`; without the server's part in earlier versions.
_TEMPORARY = re.compile(r"job_(\d+)|[a-z][a-z0-9_]*(_[0-9a-f]{8}){1,2}|(query|backup)_[0-9a-f]{32}")


@dataclass(frozen=True)
class Deleted:
    """How many files, or directories, and how many bytes."""

    count: int = 0
    size: int = 0


def is_own(path: str) -> bool:
    """Whether a file has a name, below the data path, that no other program would give it."""
    return bool(_OF_TABLE.fullmatch(path) or _OF_JOB.fullmatch(path))


def delete_orphans(lake: Lake, cursor: Cursor, grace_s: float) -> Deleted:
    """Delete the files that no snapshot knows and that were there so long before any open write began.

    A file that is about to be committed is younger than its transaction, or of a job that is being created.
    """
    before = time.time() - grace_s - lake.oldest_write_s()
    # In this order: what is committed in between is known.
    present = modified_below(lake.data_path)
    with at_one_moment(cursor):
        creating, known = creating_jobs(cursor), _known_names(cursor)
    count = size = 0
    for path, (modified, bytes_) in present.items():
        relative = path.removeprefix(f"{lake.data_path}/")
        job = _OF_JOB.fullmatch(relative)
        is_awaited = job is not None and int(job[1]) in creating
        if modified < before and not is_awaited and is_own(relative) and path.rpartition("/")[2] not in known:
            file = below(lake.data_path, path)
            file.unlink(missing_ok=True)
            if job is not None:
                _remove_empty(file, lake.data_path)
            count, size = count + 1, size + bytes_
    return Deleted(count, size)


def delete_temporary(lake: Lake, creating: Collection[int], grace_s: float) -> Deleted:
    """Delete what is below the staging path, of no job and no work of this server, and was written so long ago."""
    if not lake.staging_path.exists():
        return Deleted()
    before, count, size = time.time() - grace_s, 0, 0
    places: list[Place] = [*lake.staging_path.iterdir()]
    for place in places:
        named = _TEMPORARY.fullmatch(place.name)
        is_used = named is not None and named[1] is not None and int(named[1]) in creating
        if named is None or is_used or f"_{lake.instance}_" in place.name:
            continue
        files = modified_below(place).values()
        newest = max((modified for modified, _ in files), default=_modified(place))
        if newest < before:
            remove_tree(place)
            count, size = count + 1, size + sum(bytes_ for _, bytes_ in files)
    return Deleted(count, size)


def creating_jobs(cursor: Cursor) -> set[int]:
    """The jobs that have files which no snapshot knows yet."""
    states = f"'{INITIAL}', '{CREATING}'"
    return {
        id_ for (id_,) in cursor.execute(f"SELECT id FROM {system_table('jobs')} WHERE status IN ({states})").fetchall()
    }


def _known_names(cursor: Cursor) -> set[str]:
    """The names of all files that the catalog has: no two files have one name."""
    tables = ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion")
    query = " UNION ALL ".join(f"SELECT path FROM {METADATA}.{name}" for name in tables)
    return {path.rpartition("/")[2] for (path,) in cursor.execute(query).fetchall()}


def _modified(place: Place) -> float:
    """Of a directory; a bucket has none that are empty."""
    return place.stat().st_mtime if isinstance(place, Path) else 0.0


def _remove_empty(file: Place, root: Place) -> None:
    if isinstance(file, Path):
        with contextlib.suppress(OSError):  # not empty
            for directory in file.parents:
                if directory == root:
                    break
                directory.rmdir()
