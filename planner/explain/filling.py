"""Shows how a view is filled: the tasks into which each fragment is cut, and why (`planner.backfill`)."""

from __future__ import annotations

from collections.abc import Iterator

from sparkwave.planner.backfill.fragments import Fragment, fragments, sources
from sparkwave.planner.backfill.strategy import ARRANGEMENT, SNAPSHOT
from sparkwave.planner.explain.expressions import show
from sparkwave.planner.plan.join_types import FULL
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Join,
    Node,
    OverWindow,
    Scan,
    TopN,
    UnionAll,
    Values,
)
from sparkwave.planner.plan.stream_plan import StreamPlan


def filling(plan: StreamPlan) -> list[str]:
    """Return a line for each fragment of a Snapshot backfill, or for the steps of another one."""
    if plan.strategy != SNAPSHOT:
        read = "256 ranges of row ids of each input" if plan.strategy == ARRANGEMENT else "each input by its row ids"
        return [f"filled: step by step through {read}, one task a step, while changes are taken up"]
    found = fragments(plan, dict.fromkeys((scan.input for scan in plan.scans), 1))
    return [f"fragment {f.id}, {_target(plan, f)}: {_cut(plan, f)}" for f in found]


def _target(plan: StreamPlan, fragment: Fragment) -> str:
    return "the view" if fragment.target is None else f"state {fragment.target}"


def _cut(plan: StreamPlan, fragment: Fragment) -> str:
    below = fragment.node if fragment.end is None else fragment.end.input
    by_key = f"a task for each bucket of {_keys(fragment)}" if fragment.exchanges else ""
    if not fragment.drivers:
        return by_key + _put_together(fragment) if by_key else f"one task, because {_undivided(below)}"
    alternatives = _driving(below)
    tasks = f"a task for each range of rows of {_one_of(alternatives)}"
    cuttable = set(_cuttable(below))
    others = [name for name in dict.fromkeys(_read(plan, below)) if name not in cuttable]
    if len(alternatives) > 1:
        others = ["the other" if len(alternatives) == 2 else "the others", *others]
    whole = f", with all rows of {_listed(others)}" if others else ""
    otherwise = f", or if those are many, {by_key}" if by_key else ""
    return tasks + whole + otherwise + _put_together(fragment)


def _keys(fragment: Fragment) -> str:
    """Return the keys by which a fragment's exchanges put rows into buckets."""
    return _listed([_several([show(key, {}) for key in exchange.keys]) for exchange in fragment.exchanges])


def _put_together(fragment: Fragment) -> str:
    """Return how partial results are merged, if a fragment has any."""
    end = fragment.end
    by = f" by {_listed([show(key, {}) for key in fragment.keys])}" if fragment.keys else ""
    if isinstance(end, Aggregate) and not fragment.merges:
        call = next(call.expression for call in end.calls if call.expression is not None)
        return f"; then {show(call, {})} is computed from all of their rows{by}"
    return f"; then their partial results are merged{by}" if end is not None else ""


def _several(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def _driving(node: Node) -> tuple[str, ...]:
    """Return the possible drivers of the slices, of which the largest is used, as in `Fragment.drivers`."""
    if isinstance(node, Scan):
        return (_name(node),)
    inputs = [_driving(below) for below in node.linear_inputs]
    if isinstance(node, UnionAll):  # each branch is cut
        return (_listed([_one_of(branch) for branch in inputs]),) if all(inputs) else ()
    return tuple(dict.fromkeys(name for names in inputs for name in names))


def _cuttable(node: Node) -> Iterator[str]:
    if isinstance(node, Scan):
        yield _name(node)
    for below in node.linear_inputs:
        yield from _cuttable(below)


def _undivided(node: Node) -> str:
    """Return why no input's rows can be cut into ranges."""
    match node:
        case Join(kind=kind) if kind == FULL:
            return "a full join needs all rows of both sides"
        case Values():
            return "it reads no table"
        case OverWindow():
            return "window functions need all rows of their partitions"
        case TopN(limit=None):
            return "an order of all rows needs all of them"
    undivided = next((below for below in node.linear_inputs if not _driving(below)), None)
    return _undivided(undivided) if undivided else "what it reads is the rows of a state, which are there already"


def _read(plan: StreamPlan, node: Node) -> Iterator[str]:
    """Yield the sources of a fragment: tables, and the states of earlier fragments."""
    for source in sources(node):
        yield _name(source) if isinstance(source, Scan) else f"state {plan.state_of(source).name}"


def _name(scan: Scan) -> str:
    return scan.relation.name if scan.alias == scan.relation.name else f"{scan.relation.name} {scan.alias}"


def _one_of(names: tuple[str, ...]) -> str:
    if len(names) == 1:
        return names[0]
    apart = [f"({name})" if " and " in name else name for name in names]
    return f"the {'larger' if len(names) == 2 else 'largest'} of {_listed(apart)}"


def _listed(names: list[str] | tuple[str, ...]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
