"""How a view is filled: fragments, what drives each, and the SQL of a slice.

A fragment is a part of the plan without an aggregate inside it: it ends in an aggregate (and fills its state) or in
the view. Its drivers are the scans whose rows may be cut into slices, because every operator from there to the end
of the fragment is linear in them; the other inputs are read whole by every slice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from planner.bind import data_type
from planner.delta import Compiler
from planner.nodes import Aggregate, Call, Filter, Join, Node, Project, Scan, UnionAll, column
from planner.stream import StreamPlan

PARTIALS = "partials"


@dataclass(frozen=True)
class Fragment:
    """`target` is the state it fills, None for the view. `drivers` are names of inputs."""

    id: int
    target: str | None
    node: Node
    drivers: tuple[str, ...]

    @property
    def aggregate(self) -> Aggregate | None:
        """The aggregate at its end, whose slices are partial results to merge."""
        end = self.node.input if isinstance(self.node, Project) else self.node
        return end if isinstance(end, Aggregate) else None


def fragments(plan: StreamPlan, row_counts: Mapping[str, int]) -> tuple[Fragment, ...]:
    """The fragments of a plan, upstream ones first. `row_counts` are rows by input name."""
    found: list[Fragment] = []
    for state in plan.states:
        node = plan.root if state.in_view else state.node
        drivers = _drivers(state.node.input, row_counts)
        found.append(Fragment(len(found) + 1, None if state.in_view else state.name, node, drivers))
    if not any(state.in_view for state in plan.states):
        found.append(Fragment(len(found) + 1, None, plan.root, _drivers(plan.root, row_counts)))
    return tuple(found)


def _drivers(node: Node, row_counts: Mapping[str, int]) -> tuple[str, ...]:
    match node:
        case Scan():
            return (node.input,)
        case Filter() | Project():
            return _drivers(node.input, row_counts)
        case UnionAll():
            return tuple(driver for branch in node.branches for driver in _drivers(branch, row_counts))
        case Join():
            sides = [_drivers(side, row_counts) for side in node.inputs]
            return max(sides, key=lambda drivers: sum(row_counts[d] for d in drivers))
        case Aggregate():
            return ()


def whole_query(plan: StreamPlan, fragment: Fragment) -> exp.Select:
    """The rows of a fragment over all of its inputs at once."""
    if isinstance(fragment.node, Project) and fragment.aggregate is not None:
        return Compiler(plan).over(fragment.node, _computed(plan, fragment.aggregate))
    if fragment.aggregate is not None:
        return _computed(plan, fragment.aggregate)
    return Compiler(plan).full(fragment.node, "new")


def _computed(plan: StreamPlan, aggregate: Aggregate, driver: str | None = None) -> exp.Select:
    return Compiler.group(aggregate, Compiler(plan, driver=driver).full(aggregate.input, "new"))


def slice_query(plan: StreamPlan, fragment: Fragment, driver: str) -> exp.Select:
    """What one slice of a driver contributes: rows, or a partial row a group when the fragment ends in an aggregate."""
    if fragment.aggregate is not None:
        return _computed(plan, fragment.aggregate, driver)
    return Compiler(plan, driver=driver).full(fragment.node, "new")


def merge_query(plan: StreamPlan, fragment: Fragment) -> exp.Select:
    """The rows of a fragment from the partial rows of all its slices, in the relation `partials`."""
    aggregate = fragment.aggregate
    assert aggregate is not None
    outputs = [exp.alias_(_merge(call), call.name, quoted=True) for call in aggregate.calls]
    merged = exp.select(*map(column, aggregate.keys), *outputs).from_(PARTIALS)
    if aggregate.keys:
        merged = merged.group_by(*map(column, aggregate.keys))
    if isinstance(fragment.node, Project):
        return Compiler(plan).over(fragment.node, merged)
    return merged


def _merge(call: Call) -> exp.Expr:
    function = {"count": exp.Sum, "sum": exp.Sum, "min": exp.Min, "max": exp.Max}[call.function]
    return exp.cast(function(this=column(call.name)), data_type(call.type))
