"""How a view is filled: fragments, what drives each, and the SQL of a slice.

A fragment is a part of the plan without an operator with state inside it: it ends in one (and fills its state) or in
the view. Its drivers are the scans whose rows may be cut into slices, because every operator from there to the end
of the fragment is linear in them; the other inputs are read whole by every slice. Without a driver it is one slice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp

from planner.bind import data_type
from planner.delta import sql
from planner.delta.full import Rows
from planner.nodes import (
    FULL,
    INNER,
    Aggregate,
    Call,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    TopN,
    UnionAll,
    Unnest,
    column,
    keeps_state,
)
from planner.stream import StreamPlan

PARTIALS = "partials"


@dataclass(frozen=True)
class FillQuery:
    """The rows that a step of a backfill adds to a fragment's target."""

    target: str | None  # as `Fragment.target`
    query: exp.Select

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(select.alias_or_name for select in self.query.selects)


def first_rows(plan: StreamPlan) -> tuple[FillQuery, ...]:
    """What the first step of a backfill adds, whose inputs were empty before: states first."""
    found = fragments(plan, dict.fromkeys((scan.input for scan in plan.scans), 0))
    return tuple(FillQuery(fragment.target, whole_query(plan, fragment)) for fragment in found)


def more_rows(plan: StreamPlan, inputs: Iterable[str]) -> tuple[FillQuery, ...]:
    """What more rows of some inputs add to a view without an operator that needs rows together."""
    [fragment] = fragments(plan, dict.fromkeys((scan.input for scan in plan.scans), 0))
    return tuple(FillQuery(None, slice_query(plan, fragment, name)) for name in inputs)


@dataclass(frozen=True)
class Fragment:
    """`target` is the state it fills, None for the view. `drivers` are names of inputs.

    `end` is the operator with state it ends in, whose slices are partial results to merge. `inputs` are the names of
    all inputs that it reads itself, not by what others have filled.
    """

    id: int
    target: str | None
    node: Node
    drivers: tuple[str, ...]
    end: Aggregate | TopN | None = None
    inputs: tuple[str, ...] = ()


def fragments(plan: StreamPlan, row_counts: Mapping[str, int]) -> tuple[Fragment, ...]:
    """The fragments of a plan, upstream ones first. `row_counts` are rows by input name."""
    found: list[Fragment] = []
    for state in plan.states:
        node = plan.root if state.in_view else state.node
        drivers = _drivers(state.node.input, row_counts) if _merges(state.node) else ()
        inputs = _inputs(state.node.input)
        found.append(Fragment(len(found) + 1, state.target, node, drivers, state.node, inputs))
    if not any(state.in_view for state in plan.states):
        drivers, inputs = _drivers(plan.root, row_counts), _inputs(plan.root)
        found.append(Fragment(len(found) + 1, None, plan.root, drivers, None, inputs))
    return tuple(found)


def sources(node: Node) -> Iterator[Scan | Aggregate | TopN]:
    """What a fragment reads: tables, and operators whose rows fragments before it have left."""
    if isinstance(node, Scan) or keeps_state(node):
        yield node
        return
    for child in node.inputs:
        yield from sources(child)


def _inputs(node: Node) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source.input for source in sources(node) if isinstance(source, Scan)))


def _merges(node: Aggregate | TopN) -> bool:
    """Whether results over parts of the input can be put together."""
    return isinstance(node, TopN) or node.is_mergeable


def linear_inputs(node: Node) -> tuple[Node, ...]:
    """The inputs of an operator whose rows may come in parts, the results of which are put together by adding them."""
    match node:
        case Join(kind=kind):
            return node.inputs if kind == INNER else () if kind == FULL else (node.left,)
        case UnionAll():
            return node.inputs
        case Filter() | Project() | Unnest():
            return (node.input,)
    return ()


def _drivers(node: Node, row_counts: Mapping[str, int]) -> tuple[str, ...]:
    if isinstance(node, Scan):
        return (node.input,)
    sides = [_drivers(side, row_counts) for side in linear_inputs(node)]
    if isinstance(node, UnionAll):
        # A slice of one branch leaves the others out, so each needs a driver of its own.
        return tuple(driver for side in sides for driver in side) if all(sides) else ()
    return max(sides, key=lambda drivers: sum(row_counts[d] for d in drivers), default=())


def whole_query(plan: StreamPlan, fragment: Fragment) -> exp.Select:
    """The rows of a fragment over all of its inputs at once."""
    if fragment.end is None:
        return _clustered(plan, Rows(plan, "new").of(fragment.node))
    return _to_target(fragment, _computed(plan, fragment.end))


def _computed(plan: StreamPlan, end: Aggregate | TopN, driver: str | None = None) -> exp.Select:
    return _stateful(end, Rows(plan, "new", driver).of(end.input))


def _stateful(end: Aggregate | TopN, below: exp.Select) -> exp.Select:
    """What an operator with state keeps, of all rows of its input."""
    if isinstance(end, Aggregate):
        return sql.aggregate(end, below)
    assert end.limit is not None
    return sql.top_n(end, below, 0, end.offset + end.limit)


def _to_target(fragment: Fragment, rows: exp.Select) -> exp.Select:
    """The state's rows as its table holds them: those of the view when that is the view."""
    return sql.project(fragment.node, rows) if isinstance(fragment.node, Project) else rows


def slice_query(plan: StreamPlan, fragment: Fragment, driver: str) -> exp.Select:
    """What one slice of a driver contributes: rows, or partial state when the fragment ends in an operator with it."""
    if fragment.end is not None:
        return _computed(plan, fragment.end, driver)
    return _clustered(plan, Rows(plan, "new", driver).of(fragment.node))


def _clustered(plan: StreamPlan, rows: exp.Select) -> exp.Select:
    """The rows in the order in which they are to lie, so that files and row groups have few of its values each."""
    return rows.order_by(*map(sql.ordered, plan.clustering)) if plan.clustering else rows


def merge_query(plan: StreamPlan, fragment: Fragment) -> exp.Select:
    """The rows of a fragment from the partial rows of all its slices, in the relation `partials`."""
    end = fragment.end
    assert end is not None
    if isinstance(end, TopN):
        return _to_target(
            fragment, _stateful(end, exp.select(*(column(f.name) for f in end.input.fields)).from_(PARTIALS))
        )
    outputs = [exp.alias_(_merge(call), call.name, quoted=True) for call in end.calls]
    merged = exp.select(*map(column, end.keys), *outputs).from_(PARTIALS)
    if end.keys:
        merged = merged.group_by(*map(column, end.keys))
    return _to_target(fragment, merged)


def _merge(call: Call) -> exp.Expr:
    function = {"count": exp.Sum, "sum": exp.Sum, "min": exp.Min, "max": exp.Max}[call.function]
    return exp.cast(function(this=column(call.name)), data_type(call.type))
