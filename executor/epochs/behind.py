"""Created views that are left behind by an epoch: the reason, and the time of the next try.

If a view cannot be taken to an epoch, the view and its readers stay at their position and the other views go on. The
catalog stores the position (`catalog.model.Job`) before any epoch is committed without the view. A later epoch takes
the view along again from this position. The number of tries is in this server's memory only: after a restart the view
is tried at once.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.lake.ducklake import Cursor
from sparkwave.catalog.model import FAILED, Epoch, Job, Position, Relation
from sparkwave.catalog.redaction import redact
from sparkwave.catalog.stores.event_store import add_event
from sparkwave.catalog.stores.job_store import catch_up, leave_behind
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.faults import is_nobodys

logger = logging.getLogger(__name__)

# After this many failures in a row by the view's own fault, nobody may read the view until it has caught up.
MAX_FAILURES = 3
# After MAX_FAILURES the delay between two tries doubles: the first, and the longest for a view's own fault and
# otherwise.
FIRST_S, LONGEST_S, LONGEST_NOBODYS_S = 0.2, 60.0, 10.0
# A failed try of t seconds is followed by at least REST * t seconds for the other views.
REST = 4.0


@dataclass(frozen=True)
class Left:
    """Why an epoch goes on without a view.

    `has_failed` tells that nobody may read the view meanwhile. If the view waits for an upstream view, `waits_for` is
    its name and `cause` its reason.
    """

    reason: Error
    has_failed: bool
    waits_for: str | None = None
    cause: Error | None = None


@dataclass
class Tries:
    """The failed tries of a view since it was last up to date.

    `error` is the last try's error, `snapshot` the newest snapshot at that time. `own` counts the tries that failed by
    the view's own fault. `ended` is a monotonic time in seconds.
    """

    error: Error
    count: int
    own: int
    snapshot: int
    ended: float
    took_s: float
    is_alone: bool  # its failure was in the checkpoint and failed all other views: the next epoch does without it

    @property
    def _longest_s(self) -> float:
        return LONGEST_NOBODYS_S if is_nobodys(self.error) else LONGEST_S

    @property
    def rest_s(self) -> float:
        """Seconds until the next try is allowed at all."""
        rest_s = REST * self.took_s
        if is_nobodys(self.error) and self.error.sqlstate != errors.QUERY_CANCELED:
            return min(rest_s, self._longest_s)
        return rest_s

    @property
    def delay_s(self) -> float:
        """Seconds until the next try if nothing else causes one."""
        return max(min(FIRST_S * 2.0 ** min(self.count - MAX_FAILURES, 10), self._longest_s), FIRST_S, self.rest_s)

    @property
    def left_s(self) -> float:
        """Seconds that remain until the next try if nothing else causes one."""
        return max(self.ended + self.delay_s - time.monotonic(), 0.0)


class Behind:
    """Keeps the views that are left behind. The coordinator's thread decides; other threads may only read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tries: dict[int, Tries] = {}
        self._held: dict[int, Error] = {}

    def hold(self, relation_id: int, reason: Error) -> None:
        """Do not try a view until the view is released or replaced: the view's plan does not fit its stored rows."""
        self._held[relation_id] = reason

    def release(self, ids: Iterable[int]) -> None:
        for id_ in ids:
            self._held.pop(id_, None)

    def held(self, relation_id: int) -> Left | None:
        reason = self._held.get(relation_id)
        return Left(reason, True) if reason is not None else None

    def is_due(self, job: Job, has_changes: Callable[[int], bool], is_awaited: bool) -> bool:
        """Return whether to try a view again: its delay is over, its inputs have changed, or a FLUSH waits for it.

        `has_changes` tells whether the inputs have changed since a snapshot.
        """
        tries = self._tries.get(job.id)
        if tries is None or not tries.left_s:
            return True
        if tries.is_alone or time.monotonic() < tries.ended + tries.rest_s:
            return False
        return (is_awaited and job.status != FAILED) or has_changes(tries.snapshot)

    def failed(self, relation: Relation, error: Error, snapshot: int, began: float, is_alone: bool = False) -> Left:
        """Record a failed try of a view. `began` is the monotonic time of its start in seconds."""
        last, now = self._tries.get(relation.id), time.monotonic()
        count, own = (last.count, last.own) if last is not None else (0, 0)
        tries = Tries(error, count + 1, own + (not is_nobodys(error)), snapshot, now, now - began, is_alone)
        self._tries[relation.id] = tries
        if tries.count & (tries.count - 1) == 0 or tries.own == MAX_FAILURES:
            logger.warning("%s failed %d times in a row: %s", relation.qualified_name, tries.count, error.message)
        return Left(error, self._has_failed(relation.id) or tries.own >= MAX_FAILURES)

    def still(self, job: Job) -> Left:
        """Return why a view that is not tried this time stays behind."""
        tries = self._tries.get(job.id)
        return Left(tries.error if tries is not None else Error(job.error or ""), job.status == FAILED)

    def waiting(self, relation: Relation, behind: Mapping[int, Left]) -> Left | None:
        """Return why a view waits for an upstream view that is left behind; None if there is none.

        Its own tries are forgotten, so that it is tried as soon as the upstream view catches up.
        """
        id_ = next((up for up in relation.upstreams if up in behind), None)
        if id_ is None:
            return None
        self.forget((relation.id,))
        upstream, left = self._store.catalog.by_id[id_], behind[id_]
        waits_for, cause = left.waits_for or f"{upstream.kind} {upstream.qualified_name}", left.cause or left.reason
        error = Error(f"waits for {waits_for}: {cause.message}", cause.sqlstate, detail=cause.detail, hint=cause.hint)
        return Left(error, left.has_failed or self._has_failed(relation.id), waits_for, cause)

    def _has_failed(self, id_: int) -> bool:
        return self._store.catalog.job_by_id[id_].status == FAILED

    def store(self, left: Mapping[int, Left], applied: Epoch, pinned: int) -> None:
        """Store in the catalog which views stay at the epoch `applied`, if they are new or their reason is.

        At the snapshot `pinned` the lake has the upstream views as of that epoch.
        """
        jobs = self._store.catalog.job_by_id
        changed = self._news(left)
        if not changed:
            return
        here = Position(applied, pinned)
        with self._store.change() as cursor:
            for id_, item in changed.items():
                job, reason = jobs[id_], item.reason.message
                leave_behind(cursor, id_, job.position if job.is_behind else here, reason, item.has_failed)
                if item.has_failed and job.status != FAILED:
                    logger.error("job %d has failed: %s", id_, reason)
                    add_event(cursor, "STREAM_JOB_FAIL", id_, {"error": reason})

    def has_news(self, left: Mapping[int, Left]) -> bool:
        """Return whether `store` would write anything."""
        return bool(self._news(left))

    def _news(self, left: Mapping[int, Left]) -> dict[int, Left]:
        jobs = self._store.catalog.job_by_id
        return {id_: item for id_, item in left.items() if _is_news(jobs[id_], item)}

    def caught_up(self, cursor: Cursor, jobs: Iterable[Job]) -> None:
        """Record in the cursor's transaction that views have caught up."""
        for job in jobs:
            catch_up(cursor, job)
            if job.status == FAILED:
                add_event(cursor, "STREAM_JOB_RECOVER", job.id, {"error": job.error or ""})

    def lose_position(self, cursor: Cursor, jobs: Iterable[Job], left: Mapping[int, Left]) -> None:
        """Record that the lake has forgotten the changes since views' positions: the views are to be computed anew."""
        for job in jobs:
            leave_behind(cursor, job.id, None, left[job.id].reason.message, has_failed=True)

    def forget(self, ids: Collection[int]) -> None:
        """Forget the tries of views that have caught up."""
        self.keep(self._tries.keys() - ids)

    def keep(self, ids: Collection[int]) -> None:
        """Forget the tries of views without these ids, because those views are dropped."""
        self._tries = {id_: tries for id_, tries in self._tries.items() if id_ in ids}

    def hurry(self) -> None:
        """Try all views again as soon as possible."""
        self._tries = {}

    @property
    def lagging(self) -> list[Job]:
        """The views that are left behind by a fault, and that may be read all the same."""
        jobs = self._store.catalog.jobs
        return [job for job in jobs if job.is_behind and not job.is_resting and job.status != FAILED]

    @property
    def due_s(self) -> float | None:
        """Seconds until the next view is tried again, or None."""
        return min((tries.left_s for tries in self._tries.values()), default=None)

    def error(self, job: Job) -> Error:
        """Return why a view is left behind."""
        return self.still(job).reason

    def tries(self, job_id: int) -> int:
        """Return how often a view has failed in a row."""
        tries = self._tries.get(job_id)
        return tries.count if tries is not None else 0

    def tried(self, job_id: int) -> tuple[int, datetime] | None:
        """Return how often a view has failed in a row, and the time of its next try; None if it has not failed."""
        tries = self._tries.get(job_id)
        return (tries.count, datetime.now(UTC) + timedelta(seconds=tries.left_s)) if tries is not None else None


def _is_news(job: Job, left: Left) -> bool:
    """Return whether the stored reason of a job is out of date.

    Numbers (of rows, files, bytes) vary and do not count.
    """
    has_changed = re.sub(r"\d+", "", job.error or "") != re.sub(r"\d+", "", redact(left.reason.message))
    return not job.is_behind or has_changed or (left.has_failed and job.status != FAILED)
