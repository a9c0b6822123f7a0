"""What the tasks of a fragment look through for rows whose expressions failed: together each row once.

A task has some rows of the input that is cut, or of its exchanges, and of what is computed from these; the other inputs
each task reads whole, so that one alone looks through them.
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
    """The query of a task, and what it looks through if an expression fails."""

    query: exp.Select
    checks: tuple[Check, ...]


def whole_checks(plan: StreamPlan, fragment: Fragment) -> tuple[Check, ...]:
    """What the only task of a fragment looks through."""
    end = [fragment.end] if fragment.end is not None else []
    nodes = (*_below_end(fragment, ()), *end, *_above_end(fragment))
    return tuple(_checks(nodes, Rows(plan, "new"), lambda _: True))


def slice_checks(plan: StreamPlan, fragment: Fragment, driver: str) -> tuple[Check, ...]:
    """What each slice of a driver looks through."""
    rows = Rows(plan, "new", driver)
    return tuple(_checks(_below_end(fragment, ()), rows, lambda over: _reads(over, _is_scan_of((driver,)))))


def bucket_checks(plan: StreamPlan, fragment: Fragment) -> tuple[Check, ...]:
    """What each bucket of a fragment's exchanges looks through."""
    moved = {exchange.node: exchange.relation for exchange in fragment.exchanges}
    rows = Rows(plan, "new", moved=moved)
    return tuple(_checks(_below_end(fragment, moved), rows, lambda over: _reads(over, lambda node: node in moved)))


def rest_checks(plan: StreamPlan, fragment: Fragment, drivers: Collection[str] | None) -> tuple[Check, ...]:
    """What is in no slice of these drivers, or with None in no bucket."""
    moved = {exchange.node for exchange in fragment.exchanges} if drivers is None else set()
    is_cut = _is_scan_of(drivers) if drivers is not None else lambda node: node in moved
    return tuple(_checks(_below_end(fragment, moved), Rows(plan, "new"), lambda over: not _reads(over, is_cut)))


def merge_checks(plan: StreamPlan, fragment: Fragment) -> tuple[Check, ...]:
    """What who merges partial results looks through: those that are rows, and what comes out."""
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
    """Whether a node reads a source, not counting what other fragments have left."""
    if is_source(node):
        return True
    return not keeps_state(node) and any(_reads(child, is_source) for child in node.inputs)


def _above_end(fragment: Fragment) -> Iterator[Node]:
    """The operators over the one with state that a fragment ends in."""
    node = fragment.node
    while fragment.end is not None and node != fragment.end:
        yield node
        [node] = node.inputs


def _below_end(fragment: Fragment, moved: Collection[Node]) -> Iterator[Node]:
    """The operators under the one that a fragment ends in, if there is one, down to what it reads."""
    for top in (fragment.node,) if fragment.end is None else fragment.end.inputs:
        yield from _own(top, moved)


def _own(node: Node, moved: Collection[Node]) -> Iterator[Node]:
    if node in moved or keeps_state(node):
        return
    yield node
    for child in node.inputs:
        yield from _own(child, moved)
