"""Deletes the remains of crashes and failures in the background: see `catalog.lake.orphans`.

Of several servers the writing one does this, and only while the files have its lake's identity. At a start only
temporary files are deleted, below a directory that no other server can have: an administrator may still be putting
files back that a catalog needs.
"""

from __future__ import annotations

import contextlib
import logging
from dataclasses import dataclass

from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.catalog.lake.orphans import Deleted, creating_jobs, delete_orphans, delete_temporary

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pace:
    """The interval between two runs, and the least age of a deleted file, in seconds. Clocks may differ.

    `temporary_s` is for files that other servers may still use, such as rows of a query that a client goes on reading.
    """

    period_s: float = 3600.0
    grace_s: float = 3600.0
    temporary_s: float = 86400.0


class Orphans:
    """Deletes files that nothing refers to."""

    def __init__(self, lake: Lake, pace: Pace | None = None) -> None:
        self._lake = lake
        self._pace = pace or Pace()

    @property
    def period_s(self) -> float:
        return self._pace.period_s

    def run_once(self) -> bool:
        """Delete the remains once. Raises Error when the files are not this lake's any more, or its lease is lost."""
        self._lake.confirm_identity()
        with contextlib.closing(self._lake.cursor()) as cursor:
            creating = creating_jobs(cursor)
            _tell("files that no snapshot knows", delete_orphans(self._lake, cursor, self._pace.grace_s))
        _tell("temporary directories", delete_temporary(self._lake, creating, self._pace.temporary_s))
        return False


def delete_own_temporary(lake: Lake, creating: set[int]) -> None:
    """Delete all temporary files at a start below a locked directory, where they belong to servers that have ended."""
    if lake.storage.shared is None:
        _tell("temporary directories", delete_temporary(lake, creating, 0))


def _tell(what: str, deleted: Deleted) -> None:
    if deleted.count:
        logger.warning("deleted %d %s (%d bytes), left by a crash or a failure", deleted.count, what, deleted.size)
