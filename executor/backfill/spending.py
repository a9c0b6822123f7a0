"""Holds a serverless backfill to `backfill_max_cost`: pauses it once its group has cost more."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from sparkwave.catalog.lake.translation import DuckDBError
from sparkwave.catalog.stores.job_store import set_job_control
from sparkwave.executor.backfill.watching import watching
from sparkwave.executor.backfill.work import Work
from sparkwave.planner.definitions.stored_definitions import max_cost_of
from sparkwave.planner.explain.quote import money_text

logger = logging.getLogger(__name__)

# Seconds between two looks at the cost.
_PERIOD_S = 0.5


@contextmanager
def held_to_its_cost(work: Work) -> Iterator[None]:
    """While entered, pause the job when the cost of its group since the beginning exceeds what its statement allows.

    The pause is a rate limit of 0, with the reason in `jobs.waiting`; the group is given back.
    """
    most = max_cost_of(work.relation.definition) if work.is_serverless else None
    if most is None:
        yield
        return
    with watching(work.id, "cost", partial(_watch, work, most)):
        yield


def _watch(work: Work, most: float, is_over: threading.Event) -> None:
    started, cores = time.monotonic(), work.settings.serverless_size().all_cores
    while not is_over.wait(_PERIOD_S):
        spent = work.settings.price() * cores * (time.monotonic() - started) / 3600
        if spent > most and _paused(work, spent, most):
            return


def _paused(work: Work, spent: float, most: float) -> bool:
    """Pause a job. Returns False if that cannot be stored now."""
    reason = f"paused: it has cost {money_text(spent)}, more than backfill_max_cost = {money_text(most)}"
    try:
        with work.store.change() as cursor:
            set_job_control(cursor, replace(work.job, rate_limit=0))
    except DuckDBError:
        logger.warning("a backfill that costs too much cannot be paused yet", exc_info=True)
        return False
    logger.warning("%s is %s", work.relation.qualified_name, reason)
    work.paused_because = reason
    work.controls.changed()
    return True
