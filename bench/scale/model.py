"""The model: what a backfill and an epoch take, by cluster, data and design. Times are seconds, sizes bytes.

What the coordinator does has measured costs (`Costs`, from constants.json); what nodes and networks do is assumed
(`Cluster`, sources in README.md). A backfill is simulated job by job, as `executor.backfill.snapshot` runs them: a
Spark job has a task a node and two are there at a time; each is listed by the coordinator, launched by Spark's one
driver, computed by the nodes, and committed by one transaction, whose cost grows with its files and slices.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

CONSTANTS = Path(__file__).with_name("constants.json")
MIB, GB, TB = 1 << 20, 10**9, 10**12
# As in executor.backfill.slicing and executor.backfill.snapshot.
SLICE_ROWS, LEAST_ROWS, SLICE_SECONDS = 20e6, 1e6, 20.0


@dataclass(frozen=True)
class Curve:
    """A cost that was measured at several sizes: straight between two of them, and beyond the last as before it.

    More never costs less: where it was measured so, that is noise.
    """

    sizes: tuple[float, ...]
    costs: tuple[float, ...]

    @classmethod
    def of(cls, points: Mapping[str, float]) -> Curve:
        pairs = sorted((float(size), cost) for size, cost in points.items())
        return cls(tuple(size for size, _ in pairs), tuple(accumulate((cost for _, cost in pairs), max)))

    def at(self, size: float) -> float:
        """The cost at a size. Below the least size that was measured it is the cost there."""
        if size <= self.sizes[0]:
            return self.costs[0]
        upper = min(bisect_right(self.sizes, size), len(self.sizes) - 1)
        (x0, x1), (y0, y1) = self.sizes[upper - 1 : upper + 1], self.costs[upper - 1 : upper + 1]
        return y0 + (y1 - y0) * (size - x0) / (x1 - x0)


@dataclass(frozen=True)
class Costs:
    """What measure.py has found."""

    curves: Mapping[str, Curve]
    bytes: Mapping[str, float]

    @classmethod
    def read(cls, path: Path = CONSTANTS) -> Costs:
        """Raises FileNotFoundError before `python -m bench.scale.measure` has run."""
        found = json.loads(path.read_text())
        sections = [section for name, section in found.items() if name != "machine"]
        values = {name: value for section in sections for name, value in section.items()}
        return cls(
            {name: Curve.of(value) for name, value in values.items() if isinstance(value, dict)},
            {name: value for name, value in values.items() if not isinstance(value, dict)},
        )

    def at(self, name: str, size: float) -> float:
        return self.curves[name].at(size)


@dataclass(frozen=True)
class Cluster:
    """The nodes and what is assumed of them. `requests` is how many footers the coordinator asks for at a time."""

    nodes: int
    cores: int = 8
    node_read: float = 1.25 * GB  # 10 Gbit/s
    core_rows: float = 1.25e6  # of plain Spark: 10 M rows projected in about 4 s on 2 cores
    launches: float = 1500.0  # tasks a second and driver
    job_s: float = 0.4  # README: what is the same for a CREATE of any size
    fsync_s: float = 0.002  # of a COMMIT
    get_s: float = 0.0  # until an object store answers; 0 is a file system
    requests: int = 64

    @property
    def all_cores(self) -> int:
        return self.nodes * self.cores


@dataclass(frozen=True)
class Load:
    """What there is. `clustered` says whether changes meet few files by their keys, as they do by time or number."""

    bytes: float
    row_bytes: float = 100.0
    file_bytes: float = 64 * MIB
    output_share: float = 0.3  # bytes of the view to those of the table
    views: int = 100
    changed_views: int = 10  # an epoch
    changes: float = 1000.0  # rows a second
    writes: float = 10.0  # transactions of clients a second
    clustered: bool = True
    epoch_s: float = 1.0
    retention_s: float = 600.0

    @property
    def rows(self) -> float:
        return self.bytes / self.row_bytes

    @property
    def files(self) -> int:
        return max(math.ceil(self.bytes / self.file_bytes), 1)


@dataclass(frozen=True)
class Design:
    """The choices that are compared; the defaults are the code as it is.

    With `knows_files` the catalog says what is now read from all footers: which files have row ids and snapshots in
    them. `groups` are coordinators, each with views of its own. `buckets` is how many parts a table is in by its key.
    """

    name: str = "as it is"
    knows_files: bool = False
    groups: int = 1
    buckets: int = 1


@dataclass(frozen=True)
class Backfill:
    """How long it took; how long each part was busy, added up over its units; and how many slices, jobs and files."""

    seconds: float
    ideal: float
    plain: float
    slices: int
    jobs: int
    output_files: int
    busy: Mapping[str, float]

    @property
    def bound(self) -> str:
        """What there was least to spare of."""
        return max(self.busy, key=self.busy.__getitem__)

    @property
    def factor(self) -> float:
        """Against one plain Spark job."""
        return self.seconds / self.plain


def backfill(cluster: Cluster, load: Load, design: Design, costs: Costs) -> Backfill:
    """Fill a map-only view of one table, job by job."""
    slice_rows = min(SLICE_ROWS, max(load.rows / cluster.nodes, LEAST_ROWS)) if cluster.nodes > 1 else SLICE_ROWS
    slices = max(int(load.rows / slice_rows), 1)
    slice_rows = load.rows / slices
    slice_s = _computing(cluster, load, costs, slice_rows)
    planning = costs.at("row_count", load.files) + costs.at("row_ids", load.files) + costs.at("start_job", slices)
    first = _first_list(cluster, load, design, costs)
    known = costs.at("list_rows" if design.knows_files else "list_known", load.files)
    prepared = planning + first
    computed, committed = 0.0, [0.0, 0.0]
    at_once = 2 if cluster.nodes > 1 else 1
    files, jobs, length, waiting = 0, 0, 1, slices
    busy = {"nodes": 0.0, "driver": 0.0, "listing": first, "commits": 0.0, "planning": planning}
    while waiting:
        taken = min(cluster.nodes * min(length, math.ceil(waiting / cluster.nodes)), waiting)
        tasks = min(cluster.nodes, taken)
        a_task = math.ceil(taken / tasks)
        listing = known + tasks * costs.at("task_rows", load.files)
        launch, compute = tasks / cluster.launches, a_task * slice_s
        new = tasks * math.ceil(a_task * slice_rows * load.row_bytes * load.output_share / load.file_bytes)
        commit = _commit(cluster, costs, new, files, taken)
        # Of several nodes one job is prepared and committed while another one computes.
        prepared = max(prepared, committed[-at_once]) + listing + launch + cluster.job_s
        computed = max(prepared, computed) + compute
        committed.append(max(committed[-1], computed) + commit)
        a_slice = (listing + launch + cluster.job_s + compute + commit) / a_task
        length = max(min(int(SLICE_SECONDS / a_slice), 2 * length), 1)
        for part, seconds in (("nodes", compute), ("driver", launch), ("listing", listing), ("commits", commit)):
            busy[part] += seconds
        files, jobs, waiting = files + new, jobs + 1, waiting - taken
    return Backfill(
        committed[-1], ideal_seconds(cluster, load), plain_seconds(cluster, load), slices, jobs, files, busy
    )


def _computing(cluster: Cluster, load: Load, costs: Costs, rows: float) -> float:
    """What a node needs for so many rows: to read and to compute them."""
    return max(rows * load.row_bytes / cluster.node_read, rows / (cluster.cores * costs.bytes["kernel_rows"]))


def ideal_seconds(cluster: Cluster, load: Load) -> float:
    """What the nodes of plain Spark need at least: to read and to compute."""
    return max(load.bytes / (cluster.nodes * cluster.node_read), load.rows / (cluster.all_cores * cluster.core_rows))


def plain_seconds(cluster: Cluster, load: Load) -> float:
    """One plain Spark job over the same files: a task each two of them (128 MB), launched by one driver."""
    tasks = load.bytes / (128 * MIB)
    return cluster.job_s + max(ideal_seconds(cluster, load), tasks / cluster.launches)


def _first_list(cluster: Cluster, load: Load, design: Design, costs: Costs) -> float:
    """What the first listing needs more than others: every footer is read, if the catalog does not say what it says."""
    if design.knows_files:
        return 0.0
    more = costs.at("list", load.files) - costs.at("list_known", load.files)
    return max(more, 0.0) + load.files * cluster.get_s / cluster.requests


def _commit(cluster: Cluster, costs: Costs, new: int, present: int, slices: int) -> float:
    """A job's transaction: its files by one CALL, the notes that its slices are finished, COMMIT."""
    notes = costs.at("finish_slices", slices)
    return costs.at("register_files", new) + notes + costs.at("commit_here", present) + cluster.fsync_s


@dataclass(frozen=True)
class Epoch:
    """What one epoch costs the coordinator, by part, and how long it may take."""

    parts: Mapping[str, float]
    interval: float

    @property
    def seconds(self) -> float:
        return sum(self.parts.values())

    @property
    def busy(self) -> float:
        """1 and more: the views fall behind."""
        return self.seconds / self.interval

    @property
    def bound(self) -> str:
        return max(self.parts, key=self.parts.__getitem__)


def epoch(cluster: Cluster, load: Load, design: Design, costs: Costs) -> Epoch:
    """An epoch of changes to one large table and some views, one of which is a join that reads that table by key."""
    views, changed = load.views / design.groups, load.changed_views / design.groups
    idle = costs.at("idle_barrier", views)
    a_view = max(costs.at("busy_barrier", changed) - costs.at("idle_barrier", changed), 0.0)
    if load.clustered:
        keys = costs.at("delete_by_clustered_key", load.files)
    else:
        opened = load.files / design.buckets
        keys = costs.at("look_up_scattered_key", opened) + opened * cluster.get_s / cluster.requests
    a_commit = costs.at("commit_here", load.files) + cluster.fsync_s
    return Epoch(
        {
            "views without changes": idle,
            "views with changes": a_view,
            "keys looked up": keys,
            # All groups and all clients wait for one lake's commits.
            "commits": a_commit * (design.groups + load.writes * load.epoch_s),
            "change log": costs.at("changes_made", load.writes * load.epoch_s),
            "compaction's look": costs.at("compaction_look", load.files) * load.epoch_s / 10,
        },
        load.epoch_s,
    )


def snapshots_kept(load: Load) -> float:
    """Those younger than the retention: of clients' transactions and of checkpoints."""
    return load.retention_s * (load.writes + 1 / load.epoch_s)


def catalog_bytes(load: Load, costs: Costs, output_files: int = 0) -> dict[str, float]:
    """The catalog at rest, and what a day adds to it with compaction and expiry."""
    a_file = costs.bytes["catalog_bytes_a_file"]
    day = load.changes * 86_400 * load.row_bytes / load.file_bytes
    return {
        "files": (load.files + output_files) * a_file,
        "snapshots": snapshots_kept(load) * costs.bytes["catalog_bytes_a_snapshot"],
        "a day": day * a_file,
    }


def merging_seconds(load: Load) -> float:
    """Until the small files of a view are merged: one of the lake's size each `compaction_interval_ms` (10 s)."""
    return 10 * load.bytes * load.output_share / load.file_bytes


def coordinator_bytes(load: Load, costs: Costs) -> float:
    """Lists of files in Python's memory: one a job that runs, of which there are two, and compaction's."""
    return load.files * costs.bytes["memory_bytes_a_file"] * 3
