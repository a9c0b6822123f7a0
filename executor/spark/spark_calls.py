"""Watches calls to Spark: slow ones are reported in the log, as an event, and as the reason why a creating job waits.

Calls that hold others up are given up when Spark does not answer. Other calls are not ended here:
`executor.spark.groups` ends a group whose server has died, and a call that is only slow may still finish.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from sparkwave.catalog.counters import SLOW_SPARK_CALLS
from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.locks import RankedLock
from sparkwave.catalog.log_context import logged
from sparkwave.catalog.stores.event_store import add_event
from sparkwave.catalog.stores.store import Store

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
# The beginnings of reasons; by the first, rw_backfill_status tells that the fragment still runs
# (catalog/system/rw_catalog.sql).
RUNS_LONG = "Spark has been running"
IS_SILENT = "Spark has not answered"


def _nothing(reason: str) -> None:
    pass


def _answers() -> datetime | None:
    return None


@dataclass(eq=False)
class Call:
    """A call in progress.

    `say` is called repeatedly with the reason why the job waits; `unsay` when the reason is gone. `silent_since`
    returns the time since when Spark does not answer, None while it answers; without an answer `give_up` is called.
    `said` is the last reason.
    """

    job_id: int
    step: str
    say: Callable[[str], None]
    unsay: Callable[[str], None]
    silent_since: Callable[[], datetime | None] = _answers
    give_up: Callable[[], None] | None = None
    said: str | None = None
    started: float = field(default_factory=time.monotonic)
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    next_warning_s: float = 0.0  # 0 before the first warning

    @property
    def age(self) -> float:
        return time.monotonic() - self.started

    def reason(self, limit_s: float) -> str | None:
        """Return why the job waits, if it seems to.

        A call may take `limit_s` seconds without a report; 0 means no limit.
        """
        silent_since = self.silent_since()
        if silent_since is not None:
            return f"{IS_SILENT} since {silent_since:%H:%M:%S} UTC"
        if limit_s and self.age >= limit_s:
            return f"{RUNS_LONG} the {self.step} since {self.started_at:%H:%M:%S} UTC"
        return None


class SparkCalls:
    """Watches the running calls from a thread. A call may take `limit_s` seconds without a report; 0 means no limit."""

    def __init__(self, store: Store, limit_s: Callable[[], float]) -> None:
        self._store = store
        self._limit_s = limit_s
        self._calls: list[Call] = []
        self._lock = RankedLock()
        self._stopping = threading.Event()
        threading.Thread(target=self._watch, name="watch-spark-calls", daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()

    @contextmanager
    def watched(
        self, job_id: int, step: str, say: Callable[[str], None] = _nothing, unsay: Callable[[str], None] = _nothing,
        silent_since: Callable[[], datetime | None] = _answers, give_up: Callable[[], None] | None = None,
    ) -> Iterator[None]:  # fmt: skip
        """While entered, Spark runs a step of a job."""
        call = Call(job_id, step, say, unsay, silent_since, give_up)
        with self._lock:
            self._calls.append(call)
        try:
            yield
        finally:
            with self._lock:
                self._calls.remove(call)
            if call.next_warning_s:
                logger.info("the %s on Spark has ended after %.0f s", step, call.age)
            if call.said is not None:
                unsay(call.said)

    def _watch(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            try:
                self.look()
            except Exception:
                logger.exception("calls to Spark cannot be watched")

    def look(self) -> None:
        """Report the calls that have run too long, and those to which Spark does not answer."""
        limit_s = self._limit_s()
        with self._lock:
            calls = list(self._calls)
        slow = [call for call in calls if limit_s and call.age >= limit_s]
        SLOW_SPARK_CALLS.set(len(slow))
        for call in calls:
            with logged(job_id=call.job_id):
                if call.give_up is not None and call.silent_since() is not None:
                    logger.warning("the %s on Spark is given up: Spark does not answer", call.step)
                    give_up, call.give_up = call.give_up, None
                    give_up()
                if call in slow:
                    self._report(call, limit_s)
                self._say(call, call.reason(limit_s))

    def _say(self, call: Call, reason: str | None) -> None:
        before, call.said = call.said, reason
        try:
            if before is not None and before != reason:
                call.unsay(before)
            if reason is not None:
                call.say(reason)
        except DuckDBError:  # a full disk
            logger.warning("the reason why the %s waits cannot be stored", call.step, exc_info=True)
        with self._lock:
            has_ended = call not in self._calls
        if has_ended and reason is not None:  # it ended in between, so this reason came after the final `unsay`
            call.unsay(reason)

    def _report(self, call: Call, limit_s: float) -> None:
        is_first, age = not call.next_warning_s, call.age
        if age >= call.next_warning_s:
            logger.warning("the %s on Spark has been running for %.0f s", call.step, age)
            call.next_warning_s = max(2 * age, limit_s)
        try:
            if is_first:
                with self._store.lake.transaction(self._store.lake.cursor()) as cursor:
                    info = {"step": call.step, "seconds": round(age), "slow_spark_call_secs": limit_s}
                    add_event(cursor, "SPARK_CALL_SLOW", call.job_id, info)
        except DuckDBError:  # a full disk
            logger.warning("the event of a slow %s cannot be stored", call.step, exc_info=True)
