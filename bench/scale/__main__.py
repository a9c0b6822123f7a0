"""`python -m bench.scale`: prints what the model says about 1,000 nodes and 10 TB, and draws wall.svg."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from bench.scale.model import (
    CONSTANTS,
    GB,
    TB,
    Cluster,
    Costs,
    Design,
    Load,
    backfill,
    catalog_bytes,
    coordinator_bytes,
    epoch,
    ideal_seconds,
    merging_seconds,
    plain_seconds,
)
from bench.scale.plot import svg
from bench.scale.sweep import (
    A_NODE,
    BYTES,
    DESIGNS,
    NODES,
    VIEWS,
    backfill_wall,
    backfills,
    epoch_wall,
    most_changed_views,
)

PLOT = Path(__file__).with_name("wall.svg")
OBJECT_STORE_S = 0.1  # until the first byte of a GET


def main() -> int:
    """Print the tables and write the plot. Returns the exit code."""
    try:
        costs = Costs.read()
    except FileNotFoundError:
        print("bench.scale: no constants.json; run python -m bench.scale.measure", file=sys.stderr)
        return 1
    machine = json.loads(CONSTANTS.read_text())["machine"]
    print("Measured on " + ", ".join(f"{name} {value}" for name, value in machine.items()) + "\n")
    _print_curves(costs)
    _print_backfills(costs)
    _print_walls(costs)
    _print_epochs(costs)
    _print_memory(costs)
    lines = {design.name: _line(costs, design) for design in DESIGNS}
    lines["one plain Spark job"] = [(n, plain_seconds(Cluster(n), Load(n * A_NODE))) for n in NODES]
    PLOT.write_text(svg("Backfill of 10 GB a node", "nodes", "seconds", lines))
    print(f"wrote {PLOT.name}")
    return 0


def _line(costs: Costs, design: Design) -> list[tuple[float, float]]:
    return [(n, found.seconds) for n, found in zip(NODES, backfills(costs, design), strict=True)]


def _print_curves(costs: Costs) -> None:
    print("What it costs, by number of files (snapshots, slices, views), ms of one processor")
    for name, curve in sorted(costs.curves.items()):
        points = "  ".join(
            f"{size:>7,.0f}: {1000 * cost:<9.4g}" for size, cost in zip(curve.sizes, curve.costs, strict=True)
        )
        print(f"  {name:<24} {points}")
    print("  " + ", ".join(f"{name} {value:g}" for name, value in costs.bytes.items()) + "\n")


def _print_backfills(costs: Costs) -> None:
    load = Load(10 * TB)
    cluster = Cluster(1000)
    print(
        f"Backfill of 10 TB on 1,000 nodes: {load.rows:.0e} rows, {load.files:,} files; the nodes need "
        f"{_time(ideal_seconds(cluster, load))}, one plain Spark job {_time(plain_seconds(cluster, load))}"
    )
    title = f"{'takes':>9} {'x plain':>8} {'slices':>7} {'jobs':>5} {'new files':>10}  bound by"
    print(f"  {'design':<34} {title}")
    for design in DESIGNS:
        found = backfill(cluster, load, design, costs)
        print(
            f"  {design.name:<34} {_time(found.seconds):>9} {found.factor:>8.1f} {found.slices:>7,} "
            f"{found.jobs:>5} {found.output_files:>10,}  {_parts(found.busy)}"
        )
    print()


def _print_walls(costs: Costs) -> None:
    for where, get_s in (
        ("a file system", 0.0),
        (f"an object store, {1000 * OBJECT_STORE_S:.0f} ms a GET", OBJECT_STORE_S),
    ):
        print(f"Times one plain Spark job, by nodes, 10 GB each, on {where}")
        print(f"  {'design':<34} " + " ".join(f"{n:>7,}" for n in NODES) + "  wall at")
        for design in DESIGNS:
            factors = " ".join(f"{found.factor:>7.1f}" for found in backfills(costs, design, NODES, get_s))
            print(f"  {design.name:<34} {factors}  {_wall(backfill_wall(costs, design, get_s=get_s), 'nodes')}")
        print()


def _print_epochs(costs: Costs) -> None:
    print(
        "How busy an epoch of 1 s keeps the coordinator, %: 100 views, 10 with changes, 10 client transactions a second"
    )
    base = Load(1 * GB)
    many = Design("256 buckets by key", buckets=256)
    _print_epoch_rows("by size of the table", BYTES, _bytes, (
        ("keys that are clustered", Design(), [replace(base, bytes=b) for b in BYTES]),
        ("keys that are scattered", Design(), [replace(base, bytes=b, clustered=False) for b in BYTES]),
        ("scattered, 256 buckets by key", many, [replace(base, bytes=b, clustered=False) for b in BYTES]),
    ), costs)  # fmt: skip
    eight = Design("8 coordinators", groups=8)
    views = [replace(base, views=n, changed_views=n // 10) for n in VIEWS]
    quiet = [replace(load, changed_views=1) for load in views]
    _print_epoch_rows("by number of views", VIEWS, lambda n: f"{n:,}", (
        ("a tenth of them changes", Design(), views),
        ("one of them changes", Design(), quiet),
        ("a tenth, 8 coordinators", eight, views),
    ), costs)  # fmt: skip
    print(f"  Views that may change in an epoch of 1 s: {most_changed_views(costs, base)}, or ", end="")
    print(f"{most_changed_views(costs, base, eight)} with eight coordinators\n")


def _print_epoch_rows(
    title: str, scales: Sequence[float], shown: Callable[[float], str],
    rows: Sequence[tuple[str, Design, Sequence[Load]]], costs: Costs,
) -> None:  # fmt: skip
    print(f"  {title:<34} " + " ".join(f"{shown(scale):>8}" for scale in scales) + "  wall at")
    for name, design, loads in rows:
        found = [epoch(Cluster(1000), load, design, costs) for load in loads]
        at = epoch_wall(costs, design, list(zip(scales, loads, strict=True)))
        busy = " ".join(f"{100 * one.busy:>8.1f}" for one in found)
        print(f"  {name:<34} {busy}  {shown(at) if at is not None else 'none'}; at the end {_parts(found[-1].parts)}")


def _print_memory(costs: Costs) -> None:
    print("The catalog and the coordinator, MB, and how long the small files of a view take to be merged")
    sizes = f"{'of files':>9} {'snapshots':>10} {'a day':>7} {'lists in memory':>16}"
    print(f"  {'table':<10} {'files':>9} {sizes} {'merging':>9}")
    for size in BYTES:
        load = Load(size)
        found = {name: value / 1e6 for name, value in catalog_bytes(load, costs).items()}
        memory = coordinator_bytes(load, costs) / 1e6
        print(
            f"  {_bytes(size):<10} {load.files:>9,} {found['files']:>9.1f} {found['snapshots']:>10.1f} "
            f"{found['a day']:>7.2f} {memory:>16.1f} {_time(merging_seconds(load)):>9}"
        )
    print()


def _parts(parts: Mapping[str, float]) -> str:
    """The largest two parts."""
    largest = sorted(parts.items(), key=lambda part: -part[1])[:2]
    return ", ".join(f"{name} {_time(seconds)}" for name, seconds in largest)


def _time(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{1000 * seconds:.1f} ms"


def _bytes(size: float) -> str:
    return f"{size / TB:g} TB" if size >= TB else f"{size / GB:g} GB"


def _wall(scale: int | None, unit: str) -> str:
    return f"{scale:,} {unit}" if scale is not None else "none"


if __name__ == "__main__":
    sys.exit(main())
