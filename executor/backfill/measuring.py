"""Measures finished backfills, and keeps what later ones are quoted by.

A finished backfill is noted at once. Its work is estimated a moment later, in the background, so that no creation
waits for it; what was noted in the last seconds before the server stops is lost.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.stores.measured_backfills import MeasuredBackfill, add_measured, load_measured
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.backfill.input_statistics import measured_work
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.faults import message_of
from sparkwave.planner.backfill.cost_model import IN_PROCESS, SERVERLESS, STEADY
from sparkwave.planner.plan.stream_plan import StreamPlan

logger = logging.getLogger(__name__)

# Seconds until a finished backfill is stored.
PERIOD_S = 2.0
# A finished backfill waits so long for others to finish, too. Not longer, since quotes follow the newest.
LONGEST_WAIT_S = 5.0
# The time of a backfill of fewer rows is that of its commits.
LEAST_ROWS = 10_000


@dataclass(frozen=True)
class _Noted:
    job_id: int
    plan: StreamPlan
    kind: str
    cores: int
    start_s: float
    seconds: float
    at: float = field(default_factory=time.monotonic)


class Measuring:
    """Notes finished backfills and returns the measured ones."""

    def __init__(self, store: Store, is_busy: Callable[[], bool]) -> None:
        """`is_busy` tells whether backfills run, which the measuring would slow down."""
        self._store, self._is_busy = store, is_busy
        self._noted: list[_Noted] = []
        self._lock = RankedLock()

    def note(self, work: Work) -> None:
        """Note a job that has just created its relation, unless something besides its work took time."""
        if not work.is_measured or (work.in_process and work.inputs.total < LEAST_ROWS):
            return
        seconds = time.monotonic() - work.began - work.start_s
        noted = _Noted(work.id, work.view.plan, _kind(work), _cores(work), work.start_s, seconds)
        with self._lock:
            self._noted.append(noted)

    def run_once(self) -> bool:
        """Store what was noted, if no backfill runs. Returns False, as one round is enough."""
        with self._lock:
            if self._noted and time.monotonic() - self._noted[0].at < LONGEST_WAIT_S and self._is_busy():
                return False
            noted, self._noted = self._noted, []
        found = [measured for each in noted if (measured := self._measured(each)) is not None]
        if found:
            with self._store.lake.transaction(self._store.lake.cursor()) as cursor:
                add_measured(cursor, found)
        return False

    def measured(self) -> Sequence[MeasuredBackfill]:
        """Return the measured backfills, the newest first; those that were just noted are missing."""
        return load_measured(self._store.lake.cursor())

    def _measured(self, of: _Noted) -> MeasuredBackfill | None:
        lake = self._store.lake
        try:
            work, inputs = measured_work(lake, of.plan, lake.newest(lake.cursor()))
        except (DuckDBError, Error, AssertionError) as error:  # an input was dropped meanwhile
            logger.info("the backfill of job %d is not measured: %s", of.job_id, message_of(error))
            return None
        rows = sum(size.rows for size in inputs.values())
        if rows < LEAST_ROWS:
            return None
        return MeasuredBackfill(of.job_id, of.kind, of.cores, rows, of.start_s, of.seconds, work.dump())


def _kind(work: Work) -> str:
    if work.in_process:
        return IN_PROCESS
    return SERVERLESS if work.is_serverless else STEADY


def _cores(work: Work) -> int:
    return (os.cpu_count() or 1) if work.in_process else work.cores
