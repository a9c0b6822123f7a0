"""What crashes and failures have left is deleted in the background: see `catalog.lake.orphans` for what that is.

Of several servers the one that writes does it, and only while the files say that they are its lake's. Nothing is
deleted when a server starts, but temporary files below a directory that no other server can have: somebody may still
be putting files back that a catalog needs.
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
    """How often, and how old a file has to be, in seconds. Clocks may differ.

    `temporary_s` is for what other servers may still use: rows of a query that a client goes on reading.
    """

    period_s: float = 3600.0
    grace_s: float = 3600.0
    temporary_s: float = 86400.0


class Orphans:
    """Deletes what nobody knows."""

    def __init__(self, lake: Lake, pace: Pace | None = None) -> None:
        self._lake = lake
        self._pace = pace or Pace()

    @property
    def period_s(self) -> float:
        return self._pace.period_s

    def run_once(self) -> bool:
        """Raises Error when the files are not this lake's any more, or its lease is lost."""
        self._lake.confirm_identity()
        with contextlib.closing(self._lake.cursor()) as cursor:
            creating = creating_jobs(cursor)
            _tell("files that no snapshot knows", delete_orphans(self._lake, cursor, self._pace.grace_s))
        _tell("temporary directories", delete_temporary(self._lake, creating, self._pace.temporary_s))
        return False


def delete_own_temporary(lake: Lake, creating: set[int]) -> None:
    """At a start: below a directory that is locked all temporary files are those of servers that have ended."""
    if lake.storage.shared is None:
        _tell("temporary directories", delete_temporary(lake, creating, 0))


def _tell(what: str, deleted: Deleted) -> None:
    if deleted.count:
        logger.warning("deleted %d %s (%d bytes), left by a crash or a failure", deleted.count, what, deleted.size)
