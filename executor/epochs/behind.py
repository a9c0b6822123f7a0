"""Created views that the others leave behind: why, and when they are tried again.

A view that cannot be taken to an epoch stays where it is, with all that reads it, and the epoch is the others'. The
catalog has its position (`catalog.model.Job`) before any epoch is committed without it, and it catches up from there
with an epoch of the others. How often it was tried is known to this server alone: another one tries at once.
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
from sparkwave.catalog.stores.job_store import catch_up, leave_behind
from sparkwave.catalog.stores.store import Store
from sparkwave.executor.faults import is_nobodys

logger = logging.getLogger(__name__)

# From so many failures in a row on that are a view's own, nobody may read it until it has caught up.
MAX_FAILURES = 3
# Then the time between two tries doubles: seconds of the first, and the longest where it is the view's fault and not.
FIRST_S, LONGEST_S, LONGEST_NOBODYS_S = 0.2, 60.0, 10.0
# Between two tries others have so many times as long as the first took.
REST = 4.0


@dataclass(frozen=True)
class Left:
    """Why an epoch goes on without a view, and whether nobody may read it meanwhile.

    Of one that waits for another, which that is, and its reason.
    """

    reason: Error
    has_failed: bool
    waits_for: str | None = None
    cause: Error | None = None


@dataclass
class Tries:
    """The tries of a view since it was up to date: the last one's error, the newest snapshot then, and its time."""

    error: Error
    count: int
    own: int
    snapshot: int
    ended: float
    took_s: float
    is_alone: bool  # it failed in the checkpoint, and with it all others: the next epoch does without it

    @property
    def _longest_s(self) -> float:
        return LONGEST_NOBODYS_S if is_nobodys(self.error) else LONGEST_S

    @property
    def rest_s(self) -> float:
        """For how long it is not tried again, whatever happens."""
        rest_s = REST * self.took_s
        if is_nobodys(self.error) and self.error.sqlstate != errors.QUERY_CANCELED:
            return min(rest_s, self._longest_s)
        return rest_s

    @property
    def delay_s(self) -> float:
        """After how long it is tried again if nothing happens."""
        return max(min(FIRST_S * 2.0 ** min(self.count - MAX_FAILURES, 10), self._longest_s), FIRST_S, self.rest_s)

    @property
    def left_s(self) -> float:
        """Seconds until it is tried again, whatever happens."""
        return max(self.ended + self.delay_s - time.monotonic(), 0.0)


class Behind:
    """Decides for the coordinator's thread; others may look."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._tries: dict[int, Tries] = {}
        self._held: dict[int, Error] = {}

    def hold(self, relation_id: int, reason: Error) -> None:
        """Do not try a view before it is released or another takes its place: its plan is not that of its rows."""
        self._held[relation_id] = reason

    def release(self, ids: Iterable[int]) -> None:
        for id_ in ids:
            self._held.pop(id_, None)

    def held(self, relation_id: int) -> Left | None:
        reason = self._held.get(relation_id)
        return Left(reason, True) if reason is not None else None

    def is_due(self, job: Job, has_changes: Callable[[int], bool], is_awaited: bool) -> bool:
        """Whether to try a view again: after a while, when its inputs have changed since a snapshot, or for a FLUSH."""
        tries = self._tries.get(job.id)
        if tries is None or not tries.left_s:
            return True
        if tries.is_alone or time.monotonic() < tries.ended + tries.rest_s:
            return False
        return (is_awaited and job.status != FAILED) or has_changes(tries.snapshot)

    def failed(self, relation: Relation, error: Error, snapshot: int, began: float, is_alone: bool = False) -> Left:
        """A try has failed."""
        last, now = self._tries.get(relation.id), time.monotonic()
        count, own = (last.count, last.own) if last is not None else (0, 0)
        tries = Tries(error, count + 1, own + (not is_nobodys(error)), snapshot, now, now - began, is_alone)
        self._tries[relation.id] = tries
        if tries.count & (tries.count - 1) == 0 or tries.own == MAX_FAILURES:
            logger.warning("%s failed %d times in a row: %s", relation.qualified_name, tries.count, error.message)
        return Left(error, self._has_failed(relation.id) or tries.own >= MAX_FAILURES)

    def still(self, job: Job) -> Left:
        """A view that is not tried this time."""
        tries = self._tries.get(job.id)
        return Left(tries.error if tries is not None else Error(job.error or ""), job.status == FAILED)

    def waiting(self, relation: Relation, behind: Mapping[int, Left]) -> Left | None:
        """A view that reads one of those which are left behind waits with it, and is tried as soon as that gets on."""
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
        """Write down which views stay at what all have applied, for those that do so from now on or for other reasons.

        At the snapshot `pinned` upstream views are as they were then.
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
                    self._store.add_event(cursor, "STREAM_JOB_FAIL", id_, {"error": reason})

    def has_news(self, left: Mapping[int, Left]) -> bool:
        """Whether `store` would write anything down."""
        return bool(self._news(left))

    def _news(self, left: Mapping[int, Left]) -> dict[int, Left]:
        jobs = self._store.catalog.job_by_id
        return {id_: item for id_, item in left.items() if _is_news(jobs[id_], item)}

    def caught_up(self, cursor: Cursor, jobs: Iterable[Job]) -> None:
        """In the transaction that takes them to where the others are."""
        for job in jobs:
            catch_up(cursor, job)
            if job.status == FAILED:
                self._store.add_event(cursor, "STREAM_JOB_RECOVER", job.id, {"error": job.error or ""})

    def lose_position(self, cursor: Cursor, jobs: Iterable[Job], left: Mapping[int, Left]) -> None:
        """What they have applied is not there any more, so that they are to be computed anew."""
        for job in jobs:
            leave_behind(cursor, job.id, None, left[job.id].reason.message, has_failed=True)

    def forget(self, ids: Collection[int]) -> None:
        """The tries of views that have caught up."""
        self.keep(self._tries.keys() - ids)

    def keep(self, ids: Collection[int]) -> None:
        """Only the tries of these views: the others have gone."""
        self._tries = {id_: tries for id_, tries in self._tries.items() if id_ in ids}

    def hurry(self) -> None:
        """Try all of them again as soon as possible."""
        self._tries = {}

    @property
    def lagging(self) -> list[Job]:
        """The views that are behind and may be read all the same."""
        return [job for job in self._store.catalog.jobs if job.is_behind and job.status != FAILED]

    @property
    def due_s(self) -> float | None:
        """Seconds until one is tried again."""
        return min((tries.left_s for tries in self._tries.values()), default=None)

    def error(self, job: Job) -> Error:
        """Why a view is behind."""
        return self.still(job).reason

    def tries(self, job_id: int) -> int:
        """How often a view has failed in a row."""
        tries = self._tries.get(job_id)
        return tries.count if tries is not None else 0

    def tried(self, job_id: int) -> tuple[int, datetime] | None:
        """How often a view has failed in a row, and when it is tried again."""
        tries = self._tries.get(job_id)
        return (tries.count, datetime.now(UTC) + timedelta(seconds=tries.left_s)) if tries is not None else None


def _is_news(job: Job, left: Left) -> bool:
    """Whether what is stored of a job says something else, numbers aside: those of rows, files and bytes vary."""
    has_changed = re.sub(r"\d+", "", job.error or "") != re.sub(r"\d+", "", redact(left.reason.message))
    return not job.is_behind or has_changed or (left.has_failed and job.status != FAILED)
