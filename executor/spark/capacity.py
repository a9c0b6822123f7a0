"""Checks that this machine has the resources of serverless groups."""

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
    """Return the resources that this process may use: the machine's, or less under a control group."""
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
    """Return the words of a cgroup v2 limit; the first is `max` where there is no limit."""
    try:
        return file.read_text().split()
    except OSError:
        return ["max"] * number


def shortage(size: Size, kept_ready: int, master: str | None, has: Capacity) -> str | None:
    """Return which resources serverless groups of a size would lack, in words; None if they lack nothing.

    Only a cluster itself knows its resources. There, a group that does not fit fails to start and reports it.
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
