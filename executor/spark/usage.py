"""The usage of this machine by every node: processors and memory, now and over the last quarter of an hour.

Nodes have the names of `rw_catalog.rw_worker_nodes` (`risingwave-compute-1-0`, `risingwave-backfill-2-0`). Further
names are `sparkwave-server`, and `<application>-driver` for a driver that is no node. Executors on other machines have
no numbers.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import psutil

from sparkwave.catalog.locks import RankedLock

logger = logging.getLogger(__name__)

SERVER = "sparkwave-server"

INTERVAL_SECONDS = 2.0
HISTORY_SECONDS = 15 * 60.0
# The search for new processes among all of the machine takes at most this part of the time.
SCAN_SHARE = 1 / 200

# No two samples are nearer to each other, in seconds: a system counts processor time in ticks.
_TICK_S = 0.01


@dataclass(frozen=True)
class Sample:
    """The usage of a node at the Unix time `at` in seconds.

    `cores` is the average number of cores used since the sample before, `memory_bytes` the resident memory,
    `cpu_seconds` the processor time since the node started.
    """

    at: float
    cores: float
    memory_bytes: int
    cpu_seconds: float


@dataclass(frozen=True)
class Tree:
    """The processes of an application on this machine: `pid` and all its descendants.

    With `is_one_node`, all of them are node 0; otherwise every executor is a node, and the rest is the driver.
    """

    name: str
    pid: int
    is_one_node: bool


@dataclass(frozen=True)
class _Process:
    """A process, which started at `started` (Unix seconds)."""

    pid: int
    started: float
    cpu_seconds: float
    memory_bytes: int


@dataclass
class _Node:
    """The samples of a node. `seen` has the processor time of each process, by its id and start, at the last sample."""

    measured_at: float
    cpu_seconds: float = 0.0
    seen: dict[tuple[int, float], float] = field(default_factory=dict)
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=round(HISTORY_SECONDS / INTERVAL_SECONDS)))


class Usage:
    """Samples the usage of all nodes every two seconds on a thread of its own, and keeps it for 15 minutes.

    `trees` returns the running applications. Nodes that have ended are kept until their samples expire.
    """

    def __init__(self, trees: Callable[[], Iterable[Tree]]) -> None:
        self._trees = trees
        self._nodes: dict[str, _Node] = {}
        self._running: frozenset[str] = frozenset()
        self._lock = RankedLock()
        self._members: dict[str, list[int]] = {}
        self._scanned: frozenset[Tree] = frozenset()
        self._next_scan = 0.0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="usage", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread.is_alive():  # a read-only server has not started it
            self._thread.join(5)

    def now(self) -> dict[str, Sample]:
        """Return the newest sample of every running node, by its name."""
        with self._lock:
            return {name: self._nodes[name].samples[-1] for name in sorted(self._running)}

    def history(self, since: float = 0.0) -> dict[str, list[Sample]]:
        """Return the samples after a Unix time in seconds, the oldest first, of every node that has any.

        A node whose last sample is older than that of `now()` has ended.
        """
        with self._lock:
            found = {name: [s for s in node.samples if s.at > since] for name, node in sorted(self._nodes.items())}
        return {name: samples for name, samples in found.items() if samples}

    def sample(self) -> None:
        """Take a sample of every node now."""
        members = self._find_members(frozenset(self._trees()))
        measured = {name: [p for pid in pids if (p := _read(pid)) is not None] for name, pids in members.items()}
        measured[SERVER] = [p for p in [_read(os.getpid())] if p is not None]
        at, clock = time.time(), time.monotonic()
        with self._lock:
            self._running = frozenset(name for name, processes in measured.items() if processes)
            for name in self._running:
                self._add(name, measured[name], at, clock)
            for name, node in list(self._nodes.items()):
                if node.samples[-1].at < at - HISTORY_SECONDS:
                    del self._nodes[name]

    def _add(self, name: str, processes: list[_Process], at: float, clock: float) -> None:
        node = self._nodes.get(name)
        if node is None:
            node = self._nodes[name] = _Node(clock - max(at - min(process.started for process in processes), _TICK_S))
        used = sum(p.cpu_seconds - node.seen.get((p.pid, p.started), 0.0) for p in processes)
        cores = used / max(clock - node.measured_at, _TICK_S)
        node.seen = {(p.pid, p.started): p.cpu_seconds for p in processes}
        node.measured_at = clock
        node.cpu_seconds += used
        node.samples.append(Sample(at, cores, sum(p.memory_bytes for p in processes), node.cpu_seconds))

    def _find_members(self, trees: frozenset[Tree]) -> Mapping[str, list[int]]:
        """Return the process ids of each node. New processes are missing until the next search."""
        if not trees:
            return {}
        started = time.monotonic()
        if trees != self._scanned or started >= self._next_scan:
            children = _children()
            self._members = {}
            for tree in trees:
                for name, pid in _assign(tree, children):
                    self._members.setdefault(name, []).append(pid)
            self._scanned = trees
            now = time.monotonic()
            self._next_scan = now + (now - started) / SCAN_SHARE
        return self._members

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.sample()
            except Exception:
                logger.exception("the nodes' usage cannot be measured")
            self._stopping.wait(INTERVAL_SECONDS)


def _assign(tree: Tree, children: Mapping[int, list[int]]) -> Iterator[tuple[str, int]]:
    """Return the processes of an application, with the names of their nodes."""
    below = _descendants(tree.pid, children)
    if tree.is_one_node:
        yield from ((f"{tree.name}-0", pid) for pid in below)
        return
    executors = sorted((id_, pid) for pid in below if (id_ := _executor_id(pid)) is not None)
    rest = set(below)
    for node, (_, executor) in enumerate(executors):
        for pid in _descendants(executor, children):
            rest.discard(pid)
            yield f"{tree.name}-{node}", pid
    yield from ((f"{tree.name}-driver", pid) for pid in sorted(rest))


def _descendants(pid: int, children: Mapping[int, list[int]]) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def _executor_id(pid: int) -> int | None:
    """Return the id of an executor (CoarseGrainedExecutorBackend's `--executor-id`); None for other processes."""
    try:
        arguments = psutil.Process(pid).cmdline()
        return int(arguments[arguments.index("--executor-id") + 1])
    except (psutil.Error, ValueError, IndexError):
        return None


def _children() -> dict[int, list[int]]:
    """Return the child processes of every process of the machine."""
    found: dict[int, list[int]] = {}
    for process in psutil.process_iter(["ppid"]):
        found.setdefault(process.info["ppid"], []).append(process.pid)
    return found


def _read(pid: int) -> _Process | None:
    """Return a process; None when it has ended, or only its exit code is left."""
    try:
        process = psutil.Process(pid)
        with process.oneshot():
            if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                return None
            times = process.cpu_times()
            return _Process(pid, process.create_time(), times.user + times.system, process.memory_info().rss)
    except psutil.Error:
        return None
