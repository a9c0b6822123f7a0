"""Whether this machine has what serverless groups are to have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from sparkwave.executor.spark.applications import Size, is_local

_CGROUP = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Capacity:
    """Cores, and MiB of memory."""

    cores: float
    memory_mib: int


def of_this_machine(cgroup: Path = _CGROUP) -> Capacity:
    """What this process may use of the machine: less than there is where a control group limits it."""
    cores = float(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else psutil.cpu_count() or 1)
    memory = psutil.virtual_memory().total
    quota, period = _words(cgroup / "cpu.max", 2)
    if quota.isdigit():
        cores = min(cores, int(quota) / int(period))
    [limit] = _words(cgroup / "memory.max", 1)
    if limit.isdigit():
        memory = min(memory, int(limit))
    return Capacity(cores, memory >> 20)


def _words(file: Path, number: int) -> list[str]:
    """The words of a limit of cgroup v2, whose first is `max` where there is no limit."""
    try:
        return file.read_text().split()
    except OSError:
        return ["max"] * number


def shortage(size: Size, kept_ready: int, master: str | None, has: Capacity) -> str | None:
    """What serverless groups of a size would have too little of, in words; None where all is well.

    What a cluster has only the cluster knows: there a group that does not fit says so when it does not come.
    """
    if not is_local(master):
        return None
    groups = max(kept_ready, 1)
    cores, memory_mib = size.all_cores * groups, size.memory_mib * size.replicas * groups
    lacking = []
    if cores > has.cores:
        lacking.append(f"{cores} cores of {has.cores:g}, so that it is slower than the size says")
    if memory_mib > has.memory_mib:
        memory = f"{memory_mib / 1024:g} GiB of memory of {has.memory_mib / 1024:.1f}"
        lacking.append(f"{memory}, so that its processes may be killed before they spill")
    if not lacking:
        return None
    what = "a serverless group" if groups == 1 else f"{groups} serverless groups kept ready, each"
    return f"{what} of {size} would take more than this machine has: {'; '.join(lacking)}"
