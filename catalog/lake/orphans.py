"""Deletes files that crashes and failures have left: files that no snapshot knows, and temporary ones.

Only a file with a name as DuckLake or a job gives it is deleted. DuckLake (1.5.5) names files
`<schema>/<table>/ducklake-<UUID>[-delete].parquet`.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from sparkwave.catalog.lake.ducklake import Cursor, Lake, at_one_moment
from sparkwave.catalog.lake.places import Place, below, modified_below, remove_tree
from sparkwave.catalog.model import CREATING, INITIAL
from sparkwave.catalog.names import METADATA, system_table

_UUID = r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_OF_TABLE = re.compile(rf"[^/]+/[^/]+/ducklake-{_UUID}(-delete)?\.parquet")
_OF_JOB = re.compile(r"job_(\d+)/(f\d+_s\d+|step_\d+)/.+")
# Partial results of a job, and `Lake.new_temporary`; earlier versions had no server's part in the name.
_TEMPORARY = re.compile(r"job_(\d+)|[a-z][a-z0-9_]*(_[0-9a-f]{8}){1,2}|(query|backup)_[0-9a-f]{32}")


@dataclass(frozen=True)
class Deleted:
    """The number of deleted files or directories, and their bytes."""

    count: int = 0
    size: int = 0


def is_own(path: str) -> bool:
    """Return whether a file below the data path has a name that only DuckLake or a job gives."""
    return bool(_OF_TABLE.fullmatch(path) or _OF_JOB.fullmatch(path))


def delete_orphans(lake: Lake, cursor: Cursor, grace_s: float) -> Deleted:
    """Delete files that no snapshot knows and that are `grace_s` seconds older than the oldest open write.

    A file that is about to be committed is younger than its transaction, or belongs to a creating job.
    """
    before = time.time() - grace_s - lake.oldest_write_s()
    # In this order, a file that is committed in between is known.
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
    """Delete staging files last written `grace_s` seconds ago, except those of creating jobs and this server."""
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
    """Return the ids of jobs with files that no snapshot knows yet."""
    states = f"'{INITIAL}', '{CREATING}'"
    return {
        id_ for (id_,) in cursor.execute(f"SELECT id FROM {system_table('jobs')} WHERE status IN ({states})").fetchall()
    }


def _known_names(cursor: Cursor) -> set[str]:
    """The names of all files in the catalog, which are unique."""
    tables = ("ducklake_data_file", "ducklake_delete_file", "ducklake_files_scheduled_for_deletion")
    query = " UNION ALL ".join(f"SELECT path FROM {METADATA}.{name}" for name in tables)
    return {path.rpartition("/")[2] for (path,) in cursor.execute(query).fetchall()}


def _modified(place: Place) -> float:
    """A directory's modification time; buckets have no empty directories."""
    return place.stat().st_mtime if isinstance(place, Path) else 0.0


def _remove_empty(file: Place, root: Place) -> None:
    if isinstance(file, Path):
        with contextlib.suppress(OSError):  # not empty
            for directory in file.parents:
                if directory == root:
                    break
                directory.rmdir()
