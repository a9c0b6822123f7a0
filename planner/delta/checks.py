"""Finds the rows for which an operator computes an expression that may raise, to check them afterwards.

The input rows of an operator are checked when they arrive at the operator. So rows that are read later, as partners of
other rows or to compute a group again, have been checked before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from sqlglot import exp

from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.delta.full import Rows
from sparkwave.planner.delta.now import at_time
from sparkwave.planner.functions.raising import raised
from sparkwave.planner.functions.safe import is_call
from sparkwave.planner.plan.join_types import INNER, TEMPORAL, TEMPORAL_LEFT
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Field,
    Filter,
    Join,
    Node,
    OverWindow,
    Project,
    Scan,
    UnionAll,
    Unnest,
    conjuncts,
    keeps_state,
    walk,
)
from sparkwave.planner.plan.stream_plan import StreamPlan

_COMPARISONS = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ,
)  # fmt: skip


# Nodes around the arguments of an aggregate.
_NO_VALUES = (exp.Distinct, exp.Order, exp.Ordered, exp.Where)


@dataclass(frozen=True)
class Check:
    """Rows, changes with their weight or all of them new, and the expressions over them that may raise.

    With `is_of_changes` the rows follow from the changes of inputs alone, without reading anything else.
    """

    rows: exp.Select
    fields: tuple[Field, ...]
    parts: tuple[exp.Expr, ...]
    is_of_changes: bool

    @staticmethod
    def of(node: Node, rows: exp.Select, parts: tuple[exp.Expr, ...]) -> Check:
        """Return a check of rows of a node."""
        return Check(rows, node.fields, parts, all(map(_needs_nothing_else, walk(node))))


def _needs_nothing_else(node: Node) -> bool:
    if isinstance(node, Filter):
        return not node.reads_now
    return isinstance(node, Scan | Project | Unnest | UnionAll)


@dataclass(frozen=True)
class Sides:
    """The parts of a join's condition that may raise: over the rows of one side, and the conjuncts over both sides."""

    left: tuple[exp.Expr, ...]
    right: tuple[exp.Expr, ...]
    both: tuple[exp.Expr, ...]


NO_SIDES = Sides((), (), ())


@lru_cache(maxsize=4096)
def raising(node: Node) -> tuple[exp.Expr, ...]:
    """Return the expressions that an operator computes for each row of its only input and that may raise."""
    return _raising(_of_rows(node))


def _of_rows(node: Node) -> Iterator[exp.Expr]:
    match node:
        case Filter(predicate=predicate):
            yield at_time(predicate, "new")
        case Project(items=items):
            yield from (exp.cast(i.expression, data_type(i.type)) for i in items if i.source is None)
        case Aggregate() | OverWindow():
            for expression in node.expressions:
                yield from _arguments(expression)
        case _ if node.inputs:
            yield from node.expressions


def _arguments(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the largest parts of an expression with aggregates that are values and contain no aggregate."""
    if not isinstance(node, _NO_VALUES) and not any(is_call(part) for part in node.walk()):
        yield node
        return
    for part in node.iter_expressions():
        yield from _arguments(part)


def _raising(parts: Iterable[exp.Expr]) -> tuple[exp.Expr, ...]:
    return tuple(part for part in parts if raised(part) is not None)


@lru_cache(maxsize=4096)
def raising_sides(node: Join) -> Sides:
    """Return the checks of a join, as `raising` does those of other operators."""
    names = {field.name for field in node.left.fields}
    found: dict[frozenset[bool], list[exp.Expr]] = {}
    for conjunct in node.conjuncts:
        sides = (conjunct.this.unnest(), conjunct.expression.unnest()) if isinstance(conjunct, _COMPARISONS) else ()
        is_apart = bool(sides) and all(len(_read_of(side, names)) < 2 for side in sides)
        for part in sides if is_apart else (conjunct,):
            found.setdefault(_read_of(part, names), []).append(part)
    left, right, both = ({True}, {False}, {True, False})
    return Sides(*(_raising(found.get(frozenset(of), ())) for of in (left, right, both)))


def _read_of(part: exp.Expr, left: set[str]) -> frozenset[bool]:
    """Return whether a part reads fields of the left side (True) and of the right side (False)."""
    return frozenset(column.name in left for column in part.find_all(exp.Column))


def pairs_of(node: Join) -> Join:
    """Return an inner join of the rows for which the conjuncts over both sides that may raise are computed.

    A conjunct that all branches of an OR have is computed before it, as in PostgreSQL: otherwise all pairs would match.
    """
    both = raising_sides(node).both
    others = [part for part in node.conjuncts if part not in both]
    others += [part for condition in both for part in _common(condition)]
    others = [part.copy() for part in dict.fromkeys(others)]
    kind = TEMPORAL if node.kind in (TEMPORAL, TEMPORAL_LEFT) else INNER
    return replace(node, condition=exp.and_(*others, copy=False) if others else None, kind=kind)


def _common(condition: exp.Expr) -> list[exp.Expr]:
    """Return the conjuncts that may not raise and that all branches of an OR have."""
    if not isinstance(condition, exp.Or):
        return []
    first, *branches = (conjuncts(branch) for branch in condition.flatten())
    return [part for part in first if all(part in branch for branch in branches) and raised(part) is None]


def fill_checks(plan: StreamPlan) -> tuple[Check, ...]:
    """Return the checks for a plan all of whose input rows are new. States are read as they are then."""
    return tuple(_fill_checks(Rows(plan, "new"), plan.root, set()))


def _fill_checks(rows: Rows, node: Node, seen: set[str]) -> Iterator[Check]:
    if keeps_state(node):
        state = rows.plan.state_of(node)
        if state.name in seen:
            return
        seen.add(state.name)
        if state.source is not None:
            yield from _fill_checks(rows, state.source, seen)
    for child in node.inputs:
        yield from _fill_checks(rows, child, seen)
    for over, parts in looked_through(node):
        yield Check.of(over, rows.of(over), parts)


def looked_through(node: Node) -> Iterator[tuple[Node, tuple[exp.Expr, ...]]]:
    """Yield nodes, each with the expressions that an operator computes over its rows and that may raise."""
    if isinstance(node, Join):
        sides = raising_sides(node)
        for over, parts in ((node.left, sides.left), (node.right, sides.right), (pairs_of(node), sides.both)):
            if parts:
                yield over, parts
    elif raising(node):
        [over] = node.inputs
        yield over, raising(node)
