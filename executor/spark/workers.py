"""How many workers a job has of those there are: RisingWave's `streaming_parallelism`."""

from __future__ import annotations

import re

from sparkwave.catalog.model import CREATED, Job


def actors_of(job: Job, cores: int) -> int:
    """The actors of a job on so many cores; a job that is being created may have a parallelism for that.

    A fixed number may be more than there are cores: the tasks then take turns. `bounded(n)` is at most n, `ratio(r)` a
    part of the cores (RisingWave: src/common/src/system_param/adaptive_parallelism_strategy.rs).
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
