"""The number of a job's workers: RisingWave's `streaming_parallelism`."""

from __future__ import annotations

import re

from sparkwave.catalog.model import CREATED, Job


def actors_of(job: Job, cores: int) -> int:
    """Return the number of actors of a job on `cores` cores; a creating job may have a parallelism of its own.

    A fixed number may exceed the cores; then the tasks take turns. `bounded(n)` is at most n, `ratio(r)` a part of the
    cores (RisingWave: src/common/src/system_param/adaptive_parallelism_strategy.rs).
    """
    if job.status != CREATED and job.backfill_parallelism is not None:
        return job.backfill_parallelism
    if job.parallelism.isdigit():
        return max(int(job.parallelism), 1)
    bounded = re.fullmatch(r"bounded\((\d+)\)", job.parallelism)
    if bounded:
        return max(min(int(bounded[1]), cores), 1)
    ratio = re.fullmatch(r"ratio\(([\d.]+)\)", job.parallelism)
    return max(int(float(ratio[1]) * cores), 1) if ratio else cores
