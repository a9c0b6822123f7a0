"""The model of bench/scale: more of anything that helps never hurts, and each change moves the wall that it is for."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from itertools import pairwise

import pytest

from bench.scale.model import (
    GB,
    TB,
    Cluster,
    Costs,
    Curve,
    Design,
    Load,
    backfill,
    catalog_bytes,
    coordinator_bytes,
    epoch,
)
from bench.scale.plot import svg
from bench.scale.sweep import AS_IS, DESIGNS, KNOWN, backfills, epoch_wall, most_changed_views, wall

NODES = (1, 10, 100, 1000)


@pytest.fixture(scope="module")
def costs() -> Costs:
    """Those measured; without bench.scale.measure's file there is nothing to test."""
    return Costs.read()


def test_a_curve_goes_through_its_points_and_on() -> None:
    curve = Curve.of({"1000": 3.0, "100": 1.0, "10000": 21.0})
    assert [curve.at(size) for size in (100, 1000, 10000)] == [1.0, 3.0, 21.0]
    assert (curve.at(1), curve.at(550), curve.at(19_000)) == (1.0, 2.0, 39.0)
    assert Curve.of({"1": 2.0, "3": 1.0, "5": 4.0}).at(3) == 2.0


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.name)
def test_no_backfill_is_faster_than_its_parts(costs: Costs, design: Design) -> None:
    for found in backfills(costs, design, NODES):
        assert found.seconds >= max(found.busy[part] for part in ("nodes", "driver", "commits"))
        assert found.seconds <= sum(found.busy.values()) + 60


def test_more_nodes_never_fill_slower_until_the_wall(costs: Costs) -> None:
    """A given table: what a node adds is not lost while the nodes are what is short."""
    times = [backfill(Cluster(n), Load(100 * GB), AS_IS, costs) for n in (1, 2, 4, 8, 16, 32)]
    for fewer, more in pairwise(times):
        if fewer.bound == "nodes":
            assert more.seconds <= fewer.seconds * 1.01
    assert times[0].seconds > times[-1].seconds


def test_more_data_never_costs_less(costs: Costs) -> None:
    sizes = (1 * GB, 10 * GB, 100 * GB, 1 * TB, 10 * TB)
    for design in DESIGNS:
        times = [backfill(Cluster(100), Load(size), design, costs).seconds for size in sizes]
        assert times == sorted(times)
        busy = [epoch(Cluster(100), Load(size, clustered=False), design, costs).busy for size in sizes]
        assert busy == sorted(busy)
    held = [coordinator_bytes(Load(size), costs) for size in sizes]
    assert held == sorted(held)


def test_jobs_grow_until_they_take_their_time(costs: Costs) -> None:
    """A table that a node reads for minutes is some jobs, though it is many slices."""
    found = backfill(Cluster(10), Load(10 * TB), AS_IS, costs)
    assert found.slices == 5000
    assert found.jobs < found.slices / 10 / 3
    assert found.seconds / found.jobs > 10


def test_ten_terabytes_take_no_longer_than_twice_a_plain_job(costs: Costs) -> None:
    as_is, known = (backfill(Cluster(1000), Load(10 * TB), design, costs) for design in DESIGNS)
    assert known.busy["listing"] < as_is.busy["listing"]
    assert known.factor <= as_is.factor <= 2


def test_an_object_store_is_felt_where_footers_are_read(costs: Costs) -> None:
    load = Load(1 * TB)
    once = load.files * 0.1 / Cluster(1000).requests

    def more(design: Design) -> float:
        near, far = (backfill(Cluster(1000, get_s=get_s), load, design, costs) for get_s in (0.0, 0.1))
        return far.seconds - near.seconds

    assert more(AS_IS) == pytest.approx(once)
    assert more(KNOWN) == 0


def test_scattered_keys_hit_a_wall_that_buckets_move(costs: Costs) -> None:
    sizes = (1 * GB, 10 * GB, 100 * GB, 1 * TB, 10 * TB)
    scattered = [(size, Load(size, clustered=False)) for size in sizes]
    at = epoch_wall(costs, AS_IS, scattered)
    moved = epoch_wall(costs, replace(AS_IS, buckets=256), scattered)
    assert at is not None and at <= 10 * TB
    assert moved is None or moved > at


def test_groups_share_the_views_but_not_the_commits(costs: Costs) -> None:
    load = Load(1 * GB, views=10_000, changed_views=1000)
    one, eight = (epoch(Cluster(10), load, replace(AS_IS, groups=n), costs) for n in (1, 8))
    assert eight.parts["views with changes"] < one.parts["views with changes"] / 4
    assert eight.parts["commits"] > one.parts["commits"]


def test_changed_views_fill_an_epoch(costs: Costs) -> None:
    load = Load(1 * GB)
    most = most_changed_views(costs, load)
    assert epoch(Cluster(1), replace(load, changed_views=most), AS_IS, costs).busy <= 1
    assert epoch(Cluster(1), replace(load, changed_views=most + 1), AS_IS, costs).busy > 1
    assert most_changed_views(costs, load, replace(AS_IS, groups=8)) > 4 * most


def test_the_catalog_follows_files_and_snapshots(costs: Costs) -> None:
    small, large = (catalog_bytes(Load(size), costs) for size in (10 * GB, 10 * TB))
    assert large["files"] == pytest.approx(1000 * small["files"], rel=0.01)
    assert large["snapshots"] == small["snapshots"]


def test_a_wall_is_where_it_stays_over() -> None:
    over = {1: True, 10: False, 100: True, 1000: True}
    assert wall(list(over), over.__getitem__) == 100
    assert wall([1, 10], lambda _: False) is None


def test_the_plot_is_svg() -> None:
    root = ElementTree.fromstring(svg("a < b", "x", "y", {"one": [(1, 0.5), (1000, 70)], "two": [(1, 1), (10, 1)]}))
    lines = [e for e in root if e.tag.endswith("polyline")]
    assert len(lines) == 2
    start, end = (tuple(map(float, point.split(","))) for point in lines[0].attrib["points"].split())
    assert start[0] < end[0] and start[1] > end[1]  # to the right and, as SVG counts, up
