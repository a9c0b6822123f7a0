"""The start of a sink that delivers only later changes: it has delivered all that there is, without reading it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from sparkwave.catalog.stores.job_store import Start, move_delivery, start_job
from sparkwave.executor.backfill.work import Work
from sparkwave.executor.epochs.coordinator import Coordinator

# Seconds to wait for a barrier before looking whether the job is to stop.
PATIENCE_S = 0.5


def begin(work: Work, coordinator: Coordinator) -> None:
    """Store that the sink has delivered all rows of this moment; barriers deliver what changes from then on."""
    with closing(work.lake.cursor()) as cursor:
        while not work.is_planned:
            work.controls.check()
            with coordinator.between_barriers(PATIENCE_S) as epoch:
                if epoch is None:
                    continue
                start = Start(work.now(cursor))  # the lake has the views as they are read now
                with work.store.change() as transaction:
                    start_job(transaction, work.job, start)
                    job = replace(work.job, snapshot=start.epoch.snapshot, time_us=start.epoch.time_us)
                    move_delivery(transaction, job, None)
    work.started.set()
