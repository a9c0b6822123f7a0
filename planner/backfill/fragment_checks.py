"""The checks of a fragment's tasks for rows whose expressions failed; all tasks together check each row once.

A task has some rows of the input that is cut, or of its exchanges, and of the operators over these; each task reads all
rows of the other inputs, so that a single task checks them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.planner.backfill.fragments import PARTIALS, Fragment
from sparkwave.planner.delta.checks import Check, looked_through
from sparkwave.planner.delta.full import Rows
from sparkwave.planner.plan.nodes import Node, Scan, keeps_state
from sparkwave.planner.plan.stream_plan import StreamPlan

_Reads = Callable[[Node], bool]


@dataclass(frozen=True)
class Part:
    """The query of a task, and its checks if an expression fails."""

    query: exp.Select
    checks: tuple[Check, ...]


def whole_checks(plan: StreamPlan, fragment: Fragment) -> tuple[Check, ...]:
    """Return the checks of the only task of a fragment."""
    end = [fragment.end] if fragment.end is not None else []
    nodes = (*_below_end(fragment, ()), *end, *_above_end(fragment))
    return tuple(_checks(nodes, Rows(plan, "new"), lambda _: True))


def slice_checks(plan: StreamPlan, fragment: Fragment, driver: str) -> tuple[Check, ...]:
    """Return the checks of each slice of a driver."""
    rows = Rows(plan, "new", driver)
    return tuple(_checks(_below_end(fragment, ()), rows, lambda over: _reads(over, _is_scan_of((driver,)))))


def bucket_checks(plan: StreamPlan, fragment: Fragment) -> tuple[Check, ...]:
    """Return the checks of each bucket of a fragment's exchanges."""
    moved = {exchange.node: exchange.relation for exchange in fragment.exchanges}
    rows = Rows(plan, "new", moved=moved)
    return tuple(_checks(_below_end(fragment, moved), rows, lambda over: _reads(over, lambda node: node in moved)))


def rest_checks(plan: StreamPlan, fragment: Fragment, drivers: Collection[str] | None) -> tuple[Check, ...]:
    """Return the checks of rows that are in no slice of these drivers, or with None in no bucket."""
    moved = {exchange.node for exchange in fragment.exchanges} if drivers is None else set()
    is_cut = _is_scan_of(drivers) if drivers is not None else lambda node: node in moved
    return tuple(_checks(_below_end(fragment, moved), Rows(plan, "new"), lambda over: not _reads(over, is_cut)))


def merge_checks(plan: StreamPlan, fragment: Fragment) -> tuple[Check, ...]:
    """Return the checks of a task that merges partial results: of those that are rows, and of the result."""
    end = fragment.end
    assert end is not None
    partials = () if fragment.merges else _checks([end], Rows(plan, "new", moved={end.input: PARTIALS}), lambda _: True)
    return (*partials, *_checks(_above_end(fragment), Rows(plan, "new"), lambda _: True))


def _checks(nodes: Iterable[Node], rows: Rows, is_wanted: _Reads) -> Iterator[Check]:
    for node in nodes:
        for over, parts in looked_through(node):
            if is_wanted(over):
                yield Check.of(over, rows.of(over), parts)


def _is_scan_of(inputs: Collection[str]) -> _Reads:
    return lambda node: isinstance(node, Scan) and node.input in inputs


def _reads(node: Node, is_source: _Reads) -> bool:
    """Return whether a node reads a source, except through the results of other fragments."""
    if is_source(node):
        return True
    return not keeps_state(node) and any(_reads(child, is_source) for child in node.inputs)


def _above_end(fragment: Fragment) -> Iterator[Node]:
    """Yield the operators above the one with state in which a fragment ends."""
    node = fragment.node
    while fragment.end is not None and not keeps_state(node):
        yield node
        [node] = node.inputs


def _below_end(fragment: Fragment, moved: Collection[Node]) -> Iterator[Node]:
    """Yield the operators below the one in which a fragment ends (or all), down to the fragment's sources."""
    for top in (fragment.node,) if fragment.end is None else fragment.end.inputs:
        yield from _own(top, moved)


def _own(node: Node, moved: Collection[Node]) -> Iterator[Node]:
    if node in moved or keeps_state(node):
        return
    yield node
    for child in node.inputs:
        yield from _own(child, moved)
