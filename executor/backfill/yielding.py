"""Lets a backfill give way to the running views: see `executor.backfill.pace` for how far.

A thread beside the job looks at the barriers and sets the job's pace (`executor.backfill.machine_share`), which running
queries follow. On Spark, fewer tasks are started, too.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.executor.backfill.pace import QUIET_S, WHOLE, Barriers, Pace, next_pace, reason
from sparkwave.executor.backfill.watching import watching
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.epochs.barrier_times import BarrierTimes

logger = logging.getLogger(__name__)

# Seconds between two looks at the barriers.
PERIOD_S = 0.1
# The reason that users read has new numbers at most so often, in seconds, because each is a commit.
_TELL_S = 10.0


@contextmanager
def giving_way(work: Work, barriers: BarrierTimes) -> Iterator[None]:
    """While entered, the job is slowed while barriers take longer than its target.

    A job that has machines of its own is not slowed.
    """
    if not work.shares_a_machine:
        yield
        return
    work.share.filling = threading.get_native_id() if work.in_process else None
    _look_for_views(work, barriers)  # before the first step is chosen
    try:
        with watching(work.id, "pace", partial(_watch, work, barriers)):
            yield
    finally:
        work.share.set(WHOLE)  # whatever becomes of the thread that watches


def _look_for_views(work: Work, barriers: BarrierTimes) -> None:
    work.share.is_beside_views = work.barrier_target_ms > 0 and barriers.quiet_s() <= QUIET_S


def _watch(work: Work, barriers: BarrierTimes, is_over: threading.Event) -> None:
    looked, told_at = time.monotonic(), 0.0
    while not is_over.wait(PERIOD_S):
        since, looked = looked, time.monotonic()
        count, longest_s = barriers.since(since)
        target_ms, before = work.barrier_target_ms, work.share.pace
        pace = next_pace(before, Barriers(count, longest_s * 1000, barriers.quiet_s()), target_ms)
        work.share.set(pace)
        _look_for_views(work, barriers)
        if pace.is_slowed != before.is_slowed or (pace.late_ms != before.late_ms and looked > told_at + _TELL_S):
            _tell(work, before, pace, target_ms)
            told_at = looked
    if work.share.pace.is_slowed:
        _tell(work, work.share.pace, WHOLE, work.barrier_target_ms)


def _tell(work: Work, before: Pace, pace: Pace, target_ms: int) -> None:
    """Store the reason, and an event when it begins or ends. If that fails, the backfill is slowed all the same."""
    event: tuple[str, dict[str, object]] | None = None
    info: dict[str, object] = {"name": work.relation.name, "target_ms": target_ms}
    if pace.is_slowed and not before.is_slowed:
        work.is_undisturbed = False
        event = "BACKFILL_SLOWED", {**info, "barrier_ms": round(pace.late_ms or 0), "share": round(pace.share, 2)}
    elif before.is_slowed and not pace.is_slowed:
        event = "BACKFILL_AT_FULL_SPEED", info
    try:
        work.waiting.slowed_because(reason(pace, target_ms), event)
    except DuckDBError:
        logger.warning("that a backfill is slowed cannot be stored", exc_info=True)
