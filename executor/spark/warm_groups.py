"""Keeps serverless groups ready before a job needs one: `serverless_backfill_warm_groups`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Lake
from sparkwave.executor.faults import message_of
from sparkwave.executor.spark.applications import Size
from sparkwave.executor.spark.groups import Groups
from sparkwave.executor.spark.spark_engine import warm_up

logger = logging.getLogger(__name__)

# Seconds between two counts of the idle groups. Seconds after one was taken before another is started, which would
# slow down the start of the job. Seconds after a failure before the next attempt.
PERIOD_SECONDS = 1.0
TAKEN_SECONDS = 4.0
RETRY_SECONDS = 15.0

# The size and the number of groups to keep ready.
Wanted = Callable[[], tuple[Size, int]]


class WarmGroups:
    """Keeps as many idle groups as `wanted` returns, on a thread of its own.

    A group that is taken, ends, or has the wrong size is replaced.
    """

    def __init__(self, groups: Groups, lake: Lake, wanted: Wanted) -> None:
        self._groups = groups
        self._lake = lake
        self._wanted = wanted
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warm-groups", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Start no more groups; the present ones end with all groups."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def _run(self) -> None:
        there, pause = 0, PERIOD_SECONDS
        while not self._stopping.wait(pause):
            try:
                before, pause = there, PERIOD_SECONDS
                wanted = self._wanted()
                there = self._groups.end_idle(*wanted)
                if there < before:
                    pause = TAKEN_SECONDS
                else:
                    there += self._add(wanted, wanted[1] - there)
            except Exception as error:
                if self._stopping.is_set():
                    return
                if not isinstance(error, Error) or error.sqlstate != errors.QUERY_CANCELED:
                    logger.warning("no resource group is kept ready: %s", message_of(error))
                    pause = RETRY_SECONDS

    def _add(self, wanted: tuple[Size, int], number: int) -> int:
        """Start up to `number` groups, fewer if `wanted` changes meanwhile. Returns their number."""
        for _ in range(number):
            group = self._groups.prepare(wanted[0], lambda: self._stopping.is_set() or self._wanted() != wanted)
            warm_up(group, self._lake, group.size.all_slots)
        return number
