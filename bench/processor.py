"""Processor time of processes, which other work on the machine changes less than the clock."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds(root: int) -> float:
    """What a process and all that it has started have used so far, those included that have ended (proc(5))."""
    children: dict[int, list[int]] = {}
    used = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            values = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        pid = int(stat.parent.name)
        children.setdefault(int(values[1]), []).append(pid)
        used[pid] = sum(map(int, values[11:15])) / _TICKS  # its own and its dead children's
    total, left = 0.0, [root]
    while left:
        pid = left.pop()
        total += used.get(pid, 0.0)
        left += children.get(pid, ())
    return total
