"""The model: what a backfill and an epoch take, by cluster, data and design. Times are seconds, sizes bytes.

What the coordinator does has measured costs (`Costs`, from constants.json); what nodes and networks do is assumed
(`Cluster`, sources in README.md). A backfill is simulated slice by slice: some at a time, each is listed by a thread of
the coordinator, launched by Spark's one driver, computed by its part of the nodes, and committed by one transaction at
a time, whose cost grows with the files that the view has by then.
"""

from __future__ import annotations

import heapq
import json
import math
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

CONSTANTS = Path(__file__).with_name("constants.json")
MIB, GB, TB = 1 << 20, 10**9, 10**12
ROW_GROUP_ROWS = 122_880  # executor.spark_engine.ROW_GROUP_ROWS: the least that one task reads


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
    core_rows: float = 1.25e6  # README: 10 M rows projected in about 4 s on 2 cores
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

    `slice_rows` and `slices_at_once` are for a small cluster; with `slices_fit` a slice is 20 s of the cluster's work.
    `lists_once` keeps a snapshot's list of files and looks into it by row ids. With `knows_files` the catalog says what
    is now read from all footers: which files have row ids and snapshots in them. With `fits_files` a slice's files have
    the lake's size. `registers_at_once` adds a slice's files as rows of the catalog in one statement, by statistics
    that the tasks return. `groups` are coordinators, each with views of its own. `buckets` is how many parts a table is
    in by its key.
    """

    name: str = "as it is"
    slice_rows: float = 20e6
    slices_at_once: int = 2
    slices_fit: bool = False
    lists_once: bool = False
    fits_files: bool = False
    registers_at_once: bool = False
    knows_files: bool = False
    groups: int = 1
    buckets: int = 1


@dataclass(frozen=True)
class Backfill:
    """How long it took; how long each part was busy, added up over its units; and how many slices and files."""

    seconds: float
    ideal: float
    plain: float
    slices: int
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


@dataclass(frozen=True)
class _Shape:
    """How a design cuts a table for a cluster."""

    slices: int
    at_once: int
    rows: float
    launched: int  # tasks
    tasks: int  # those that get a row
    files: int  # that a slice writes


def backfill(cluster: Cluster, load: Load, design: Design, costs: Costs) -> Backfill:
    """Fill a map-only view of one table, slice by slice."""
    shape = _shape(cluster, load, design)
    slots = min(shape.tasks, max(cluster.all_cores // shape.at_once, 1))
    share = slots / cluster.all_cores
    compute = max(
        shape.rows / (slots * cluster.core_rows),
        shape.rows * load.row_bytes / (share * cluster.nodes * cluster.node_read),
    )
    launch = shape.launched / cluster.launches
    listing = _listing(cluster, load, design, costs)
    planning = _planning(load, design, costs) + costs.at("start_job", shape.slices)
    first_listing = _list(cluster, load, design, costs) if design.lists_once else 0.0
    start = planning + first_listing

    driver = lake = start
    places = [start] * shape.at_once  # when each of those that run slices is free
    files, end, committing = 0, start, 0.0
    for number in range(shape.slices):
        driver = max(driver, places[0] + listing) + launch
        commit = _commit(cluster, design, costs, shape.files, files, number)
        lake = end = max(lake, driver + cluster.job_s + compute) + commit
        committing += commit
        files += shape.files
        heapq.heapreplace(places, lake)

    ideal, plain = ideal_seconds(cluster, load), plain_seconds(cluster, load)
    busy = {
        "nodes": ideal,
        "small slices": shape.slices * (compute + cluster.job_s) / shape.at_once - ideal,
        "driver": shape.slices * launch,
        "listing": first_listing + shape.slices * listing / shape.at_once,
        "commits": committing,
        "planning": planning,
    }
    return Backfill(end, ideal, plain, shape.slices, files, busy)


def ideal_seconds(cluster: Cluster, load: Load) -> float:
    """What the nodes need at least: to read and to compute."""
    return max(load.bytes / (cluster.nodes * cluster.node_read), load.rows / (cluster.all_cores * cluster.core_rows))


def plain_seconds(cluster: Cluster, load: Load) -> float:
    """One plain Spark job over the same files: a task each two of them (128 MB), launched by one driver."""
    tasks = load.bytes / (128 * MIB)
    return cluster.job_s + max(ideal_seconds(cluster, load), tasks / cluster.launches)


def _shape(cluster: Cluster, load: Load, design: Design) -> _Shape:
    rows, at_once = design.slice_rows, design.slices_at_once
    if design.slices_fit:
        # Of 10 to 60 s, as design.md has it; and some, so that one runs while another one commits.
        a_second = min(cluster.all_cores * cluster.core_rows, cluster.nodes * cluster.node_read / load.row_bytes)
        rows = max(min(20 * a_second, load.rows / 8), design.slice_rows)
        at_once = 4
    slices = max(math.ceil(load.rows / rows), 1)
    rows = load.rows / slices
    size = rows * load.row_bytes
    # As Spark cuts files (FilePartition.maxSplitBytes), and coalesce(actors); a row group goes to one task.
    split = min(128 * MIB, max(4 * MIB, size / cluster.all_cores))
    launched = min(math.ceil(size / split), cluster.all_cores)
    tasks = min(launched, math.ceil(rows / ROW_GROUP_ROWS))
    files = tasks
    if design.fits_files:
        files = min(tasks, math.ceil(size * load.output_share / load.file_bytes))
    return _Shape(slices, min(at_once, slices), rows, launched, tasks, files)


def _planning(load: Load, design: Design, costs: Costs) -> float:
    """How many rows there are, and which row ids they have."""
    if design.knows_files:
        return costs.at("list_rows", load.files)
    return costs.at("row_count", load.files) + costs.at("row_ids", load.files)


def _list(cluster: Cluster, load: Load, design: Design, costs: Costs) -> float:
    """All files of the table, with every footer or without."""
    if design.knows_files:
        return costs.at("list_rows", load.files)
    return costs.at("list", load.files) + load.files * cluster.get_s / cluster.requests


def _listing(cluster: Cluster, load: Load, design: Design, costs: Costs) -> float:
    """The files for one slice: among all of the table's, or among those of a list that is kept."""
    if design.lists_once:
        return costs.at("overlaps", load.files)
    return costs.at("row_count", load.files) + _list(cluster, load, design, costs)


def _commit(cluster: Cluster, design: Design, costs: Costs, new: int, present: int, slices: int) -> float:
    """A slice's transaction: its files one CALL each, the note that it is finished, COMMIT."""
    registering = costs.at("register", present) * (1 if design.registers_at_once else new)
    statement = new * costs.bytes["insert_file_s"] if design.registers_at_once else 0.0
    return registering + statement + costs.at("check_step", slices) + costs.at("commit_here", present) + cluster.fsync_s


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


def coordinator_bytes(load: Load, design: Design, costs: Costs) -> float:
    """Lists of files in Python's memory: one a slice that runs, and compaction's."""
    lists = 1 if design.lists_once else design.slices_at_once
    return load.files * costs.bytes["memory_bytes_a_file"] * (lists + 1)
