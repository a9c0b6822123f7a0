"""What the backfill of a view that is not created would do: what it reads and writes, and in which steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from sparkwave.catalog.model import Position
from sparkwave.catalog.stores.job_store import Slice
from sparkwave.executor.backfill.input_statistics import measured_work
from sparkwave.executor.backfill.slicing import plan_slices
from sparkwave.executor.backfill.work import Work
from sparkwave.planner.backfill.estimates import Estimate, InputSize
from sparkwave.planner.backfill.strategy import SNAPSHOT


@dataclass(frozen=True)
class Steps:
    """How a backfill is cut: `slices`, read by at most so many `tasks`, in so many `stages` one after the other."""

    slices: int
    tasks: int
    stages: int


ONE_STEP = Steps(1, 1, 1)


@dataclass(frozen=True)
class Appraisal:
    """The work of a backfill. `in_process` tells whether the server itself would do it."""

    work: Estimate
    inputs: Mapping[str, InputSize]
    in_process: bool


def appraise(work: Work, until: float) -> Appraisal:
    """Return what the backfill of a job that is not stored would do. Nothing is changed.

    What has not been counted by about the monotonic time `until` is guessed.
    """
    if work.reads_nothing:
        return Appraisal(Estimate(), {}, False)
    snapshot = work.lake.newest(work.lake.cursor())
    estimate, inputs = measured_work(work.lake, work.filling.plan, snapshot, work.inputs.of, until)
    return Appraisal(estimate, inputs, work.in_process)


def steps_on_spark(work: Work, shares: int) -> Steps:
    """Return the steps in a resource group; `shares` are the slots of its nodes if there are several, else 1."""
    slice_rows = work.settings.slice_rows()
    if work.reads_nothing:
        return Steps(0, 0, 0)
    if work.edit is None and (work.job.strategy != SNAPSHOT or work.job.rate_limit is not None):
        number = max(-(-work.inputs.total // slice_rows), 1)
        return Steps(number, number, number)
    with closing(work.lake.cursor()) as cursor:
        position = Position.at(work.now(cursor))
        slices = plan_slices(cursor, work.filling.plan, position, slice_rows, shares, work.inputs.of)
    if all(each.id == 1 for each in slices):
        return Steps(len(slices), 1, 1)
    return Steps(len(slices), len(slices), _stages(slices))


def _stages(slices: Sequence[Slice]) -> int:
    """Return the stages: one for each fragment's parts, and one for the slices that merge their results."""
    merged = {each.fragment_id for each in slices if each.input is None and each.id > 1}
    return len({each.fragment_id for each in slices}) + len(merged)
