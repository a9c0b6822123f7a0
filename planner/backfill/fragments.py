"""The fragments by which a view is filled, their division into tasks, and the SQL of a task.

A fragment is a part of the plan without an operator with state inside it: it ends in one (and fills its state) or in
the view. It is cut in one of two ways, or not at all:

- by ranges of rows of its drivers: the scans above which every operator up to the end of the fragment is linear. Each
  task reads all rows of the other inputs.
- by key: its exchanges write rows into buckets by the values that an operator needs together, such as the keys of a
  join. Each task has one bucket of all exchanges, and all rows of small inputs.

Where the fragment ends in an operator with state, its tasks write partial results, in buckets by the operator's keys,
and one task merges each bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from sparkwave.catalog.types import BIGINT, INTEGER, SMALLINT
from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.delta import operator_sql
from sparkwave.planner.delta.full import Rows
from sparkwave.planner.plan.join_types import ANTI, AS_OF, AS_OF_LEFT, DYNAMIC, FULL, INNER, LEFT, SEMI
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Call,
    ChangeLog,
    Field,
    Filter,
    Join,
    Memo,
    Node,
    OverWindow,
    Project,
    Scan,
    Stateful,
    TopN,
    UnionAll,
    Unnest,
    column,
    keeps_state,
)
from sparkwave.planner.plan.stream_plan import StreamPlan

PARTIALS = "partials"
# If one side of a join has this many times fewer rows it is small: it is read whole instead of moved.
SMALL_TIMES = 8


@dataclass(frozen=True)
class FillQuery:
    """A query of the rows that a step of a backfill adds to a fragment's target."""

    target: str | None  # as `Fragment.target`
    query: exp.Select

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(select.alias_or_name for select in self.query.selects)


def first_rows(plan: StreamPlan) -> tuple[FillQuery, ...]:
    """Return the queries of a backfill's first step, before which all inputs were empty: states first."""
    found = fragments(plan, dict.fromkeys((scan.input for scan in plan.scans), 0))
    return tuple(FillQuery(fragment.target, whole_query(plan, fragment)) for fragment in found)


def more_rows(plan: StreamPlan, inputs: Iterable[str]) -> tuple[FillQuery, ...]:
    """Return the queries of the rows that more rows of some inputs add to a view.

    The view has no operator that needs several rows together.
    """
    [fragment] = fragments(plan, dict.fromkeys((scan.input for scan in plan.scans), 0))
    return tuple(FillQuery(None, slice_query(plan, fragment, name)) for name in inputs)


@dataclass(frozen=True)
class Fragment:
    """A fragment. `target` is the state it fills, None for the view and for an exchange, which fills nothing.

    `drivers` are names of inputs. `end` is the operator with state in which it ends and whose partial results are
    merged. `inputs` are the names of all inputs that it reads itself, not through other fragments. `exchanges` are
    those that it reads when it is cut by key. `keys` are the expressions by which its rows, or partial results, are put
    into buckets. `given` are rows with the fields of the target's state that `end` does not compute.
    """

    id: int
    target: str | None
    node: Node
    drivers: tuple[str, ...]
    end: Stateful | None = None
    inputs: tuple[str, ...] = ()
    exchanges: tuple[Fragment, ...] = ()
    keys: tuple[exp.Expr, ...] = ()
    is_exchange: bool = False
    given: Node | None = None

    @property
    def merges(self) -> bool:
        """Whether partial results are smaller than the rows that they summarise."""
        return isinstance(self.end, TopN) or (isinstance(self.end, Aggregate) and self.end.is_mergeable)

    @property
    def relation(self) -> str:
        """The name of an exchange's rows in a bucket, for its readers."""
        return f"x{self.id}"

    @property
    def partial_fields(self) -> tuple[Field, ...]:
        """The fields that its tasks write for other tasks: rows of an exchange, or partial results."""
        if self.end is None:
            return self.node.fields
        return self.end.fields if isinstance(self.end, Aggregate) and self.merges else self.end.input.fields


def fragments(plan: StreamPlan, row_counts: Mapping[str, int]) -> tuple[Fragment, ...]:
    """Return the fragments of a plan, upstream ones first. `row_counts` are numbers of rows by input name."""
    ids = count(len(plan.states) + 2)  # after the ids of fragments that fill a target
    found: list[Fragment] = []
    for state in plan.states:
        end, given = state.computed or state.node, state.source if state.computed is not None else None
        if state.source is not None and given is None:
            source = replace(plan.root, input=state.source) if state.in_view else state.source
            drivers = _drivers(source, row_counts)
            found.append(Fragment(len(found) + 1, state.target, source, drivers, None, _inputs(source)))
            continue
        node, below = plan.root if state.in_view else state.node, end.input
        inputs = _inputs(below) + (_inputs(given) if given is not None else ())
        found.append(
            Fragment(
                len(found) + 1, state.target, node, _drivers(below, row_counts), end, inputs,
                _exchanges(below, row_counts, ids), tuple(map(column, state.key)), given=given,
            )
        )  # fmt: skip
    if not any(state.in_view for state in plan.states):
        root = plan.root
        exchanges = _exchanges(root, row_counts, ids)
        found.append(Fragment(len(found) + 1, None, root, _drivers(root, row_counts), None, _inputs(root), exchanges))
    return tuple(found)


def _exchanges(node: Node, row_counts: Mapping[str, int], ids: Iterator[int]) -> tuple[Fragment, ...]:
    """Return the exchanges by which the rows of a node can be computed bucket by bucket.

    None where that is impossible.
    """
    found = []
    for moved, keys in _moved(node, row_counts) or ():
        below = _exchanges(moved, row_counts, ids)
        drivers, inputs = _drivers(moved, row_counts), _inputs(moved)
        found.append(Fragment(next(ids), None, moved, drivers, None, inputs, below, keys, is_exchange=True))
    return tuple(found)


_Moved = tuple[tuple[Node, tuple[exp.Expr, ...]], ...]


def _moved(node: Node, row_counts: Mapping[str, int]) -> _Moved | None:
    """Return the nodes whose rows move into buckets, with the keys; None where no operator needs that.

    The node's rows are those of all buckets together, each computed with one bucket of these and all of the other
    inputs.
    """
    match node:
        case Filter() | Project() | Unnest() | ChangeLog():
            return _moved(node.input, row_counts)
        case UnionAll():
            branches = [(branch, _moved(branch, row_counts)) for branch in node.branches]
            if not any(moved for _, moved in branches):
                return None
            return tuple(pair for branch, moved in branches for pair in moved or (_by_row(branch),))
        case Join():
            return _moved_sides(node, row_counts)
        case OverWindow() | TopN(limit=None) if node.partition:
            return (_by(node.input, node.partition),)
    return None


def _by_row(node: Node) -> tuple[Node, tuple[exp.Expr, ...]]:
    """Return a node whose rows move by their key, or by all that is left of them where the key is not needed above."""
    names = [field.name for field in node.fields]
    return _by(node, node.key if set(node.key) <= set(names) else names)


def _by(node: Node, names: Iterable[str]) -> tuple[Node, tuple[exp.Expr, ...]]:
    return node, tuple(map(column, names))


# Joins that are linear in their left side.
_OF_LEFT_ROWS = (LEFT, SEMI, ANTI, AS_OF, AS_OF_LEFT)


def _moved_sides(node: Join, row_counts: Mapping[str, int]) -> _Moved | None:
    """Return both sides of a join with its keys; or the moved nodes within one side, where the other is small."""
    left, right = (_rows_below(side, row_counts) for side in node.inputs)
    if node.kind == DYNAMIC or (node.kind in (INNER, *_OF_LEFT_ROWS) and right * SMALL_TIMES <= left):
        return _moved(node.left, row_counts)
    if node.kind == INNER and left * SMALL_TIMES <= right:
        return _moved(node.right, row_counts)
    pairs = [pair for pair in node.pairs if _are_of_one_type(pair[0], node.left, pair[1], node.right)]
    if not pairs or node.kind not in (INNER, *_OF_LEFT_ROWS, FULL):
        return None
    return (node.left, tuple(pair[0] for pair in pairs)), (node.right, tuple(pair[1] for pair in pairs))


def _are_of_one_type(one: exp.Expr, left: Node, other: exp.Expr, right: Node) -> bool:
    """Return whether equal keys get into the same bucket: DuckDB's hash of a decimal depends on its scale."""
    types = [
        {field.name: field.type for field in node.fields}.get(key.name) if isinstance(key, exp.Column) else None
        for key, node in ((one, left), (other, right))
    ]
    return None not in types and (types[0] == types[1] or all(type_ in (SMALLINT, INTEGER, BIGINT) for type_ in types))


def _rows_below(node: Node, row_counts: Mapping[str, int]) -> int:
    """Return the most rows that a node may have, apart from joins that multiply rows."""
    below = sum(_rows_below(child, row_counts) for child in node.inputs)
    match node:
        case Scan():
            return row_counts[node.input]
        case Aggregate(keys=()):
            return 1
        case TopN(partition=(), limit=int(limit)):
            return min(below, limit)
    return below


def sources(node: Node) -> Iterator[Scan | Stateful]:
    """Yield what a fragment reads: tables, and operators whose rows earlier fragments have computed."""
    if isinstance(node, Scan) or keeps_state(node):
        yield node
        return
    for child in node.inputs:
        yield from sources(child)


def _inputs(node: Node) -> tuple[str, ...]:
    return tuple(dict.fromkeys(source.input for source in sources(node) if isinstance(source, Scan)))


def _drivers(node: Node, row_counts: Mapping[str, int]) -> tuple[str, ...]:
    if isinstance(node, Scan):
        return (node.input,)
    sides = [_drivers(side, row_counts) for side in node.linear_inputs]
    if isinstance(node, UnionAll):
        # A slice of one branch omits the other branches, so each branch needs a driver of its own.
        return tuple(driver for side in sides for driver in side) if all(sides) else ()
    return max(sides, key=lambda drivers: sum(row_counts[d] for d in drivers), default=())


def whole_query(plan: StreamPlan, fragment: Fragment) -> exp.Select:
    """Return the rows of a fragment over all of its inputs at once."""
    return _finished(plan, fragment, Rows(plan, "new"))


def slice_query(plan: StreamPlan, fragment: Fragment, driver: str) -> exp.Select:
    """Return the result of one slice of a driver: rows, or partial results if the fragment has an `end`."""
    return _part(plan, fragment, Rows(plan, "new", driver))


def bucket_query(plan: StreamPlan, fragment: Fragment) -> exp.Select:
    """Return the result of one bucket of the fragment's exchanges."""
    moved = {exchange.node: exchange.relation for exchange in fragment.exchanges}
    return _part(plan, fragment, Rows(plan, "new", moved=moved))


def _part(plan: StreamPlan, fragment: Fragment, rows: Rows) -> exp.Select:
    end = fragment.end
    if end is None:
        return _finished(plan, fragment, rows)
    return _stateful(end, rows.of(end.input)) if fragment.merges else rows.of(end.input)


def _finished(plan: StreamPlan, fragment: Fragment, rows: Rows) -> exp.Select:
    if fragment.end is not None:
        return _to_target(plan, fragment, _stateful(fragment.end, rows.of(fragment.end.input)))
    return rows.of(fragment.node) if fragment.is_exchange else _clustered(plan, rows.of(fragment.node))


def _stateful(end: Stateful, below: exp.Select) -> exp.Select:
    """Return the state of an operator, from all rows of its input."""
    if isinstance(end, Aggregate):
        return operator_sql.aggregate(end, below)
    if isinstance(end, Memo):
        return below
    assert end.limit is not None
    return operator_sql.top_n(end, below, 0, end.offset + end.limit)


def _to_target(plan: StreamPlan, fragment: Fragment, rows: exp.Select) -> exp.Select:
    """Return the state's rows as its table stores them: the rows of the view when the view is the state."""
    if fragment.given is not None:
        rows = _with_given(plan, fragment, fragment.given, rows)
    return operator_sql.project(fragment.node, rows) if isinstance(fragment.node, Project) else rows


def _with_given(plan: StreamPlan, fragment: Fragment, given: Node, groups: exp.Select) -> exp.Select:
    """Return groups with all fields of the state: both sides have the same groups, or this side has some of them."""
    assert isinstance(fragment.end, Aggregate)
    keys, present = fragment.end.keys, fragment.end.present
    computed = [column(call.name, "c") for call in fragment.end.calls]
    names = [column(field.name, "g") for field in given.fields]
    same = [operator_sql.same(column(key, "c"), column(key, "g"), key not in present) for key in keys]
    both = exp.select(*names, *computed).from_(Rows(plan, "new").of(given).subquery("g", copy=False))
    return both.join(
        groups.subquery("c", copy=False),
        on=exp.and_(*same, copy=False) if same else None,
        join_type="inner" if same else "cross",
        copy=False,
    )


def _clustered(plan: StreamPlan, rows: exp.Select) -> exp.Select:
    """Return the rows in clustering order, so that files and row groups have narrow ranges of the values."""
    return rows.order_by(*map(operator_sql.ordered, plan.clustering)) if plan.clustering else rows


def merge_query(plan: StreamPlan, fragment: Fragment) -> exp.Select:
    """Return the rows of a fragment from the relation `partials`, the partial results of its tasks or a bucket of
    them.
    """
    end = fragment.end
    assert end is not None
    if not isinstance(end, Aggregate) or not fragment.merges:
        partials = exp.select(*(column(f.name) for f in fragment.partial_fields)).from_(PARTIALS)
        return _to_target(plan, fragment, _stateful(end, partials))
    outputs = [exp.alias_(_merge(call), call.name, quoted=True) for call in end.calls]
    merged = exp.select(*map(column, end.keys), *outputs).from_(PARTIALS)
    if end.keys:
        merged = merged.group_by(*map(column, end.keys))
    return _to_target(plan, fragment, merged)


def _merge(call: Call) -> exp.Expr:
    function = {"count": exp.Sum, "sum": exp.Sum, "min": exp.Min, "max": exp.Max}[call.function]
    return exp.cast(function(this=column(call.name)), data_type(call.type))
