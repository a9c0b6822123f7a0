"""Restricts the groups that a join reads to those that can meet the other side's filtered rows.

A join of `part` with a constant filter and the average price by part needs the averages of these parts alone. So the
rows under the aggregate get a semi join with the filtered relation, which is called a filter set: the aggregate keeps
fewer groups, and most changes of its input are dropped before they touch a group. This is the magic-sets rewriting
(Seshadri et al., "Cost-Based Optimization for Magic: Algebra and Implementation", SIGMOD 1996) with one filtered
relation as the set.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from sparkwave.planner.build.builder import names_of
from sparkwave.planner.plan.join_types import ANTI, INNER, LEFT, SEMI
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Filter,
    Join,
    Node,
    Project,
    Scan,
    TopN,
    column,
    conjuncts,
    walk,
    with_inputs,
)

# Joins whose right rows matter only if they meet a left one; and those of them where this is so for left rows, too.
_KINDS = (INNER, LEFT, SEMI, ANTI)
_BOTH_MEET = (INNER, SEMI)


@dataclass(frozen=True)
class _FilterSet:
    """The rows of a relation that a filter keeps, with the field whose values alone can meet the groups.

    `numbers` are those of new inputs, because a plan shares no scans.
    """

    rows: Filter
    field: str
    numbers: Iterator[int]

    @property
    def scan(self) -> Scan:
        assert isinstance(self.rows.input, Scan)
        return self.rows.input

    def joined(self, node: Node, field: str) -> Join:
        """Return the rows of a node whose field is in the set."""
        rows = replace(self.rows, input=replace(self.scan, input=f"i{next(self.numbers)}"))
        return Join(node, rows, exp.EQ(this=column(field), expression=column(self.field)), SEMI)


def restrict_groups(root: Node) -> Node:
    """Add a semi join with a filter set under each aggregate and top-n whose groups meet filtered rows by equality."""
    inputs = (int(scan.input[1:]) for scan in walk(root) if isinstance(scan, Scan) and scan.input[1:].isdecimal())
    return _restricted(root, count(1 + max(inputs, default=-1)))


def _restricted(node: Node, numbers: Iterator[int]) -> Node:
    node = with_inputs(node, tuple(_restricted(child, numbers) for child in node.inputs))
    if not isinstance(node, Join) or node.kind not in _KINDS:
        return node
    left, right = node.left, node.right
    for one, other in _equal_fields(node):
        right = _with_set(right, other, node.left, one, numbers)
        if node.kind in _BOTH_MEET:
            left = _with_set(left, one, node.right, other, numbers)
    return replace(node, left=left, right=right)


def _equal_fields(join: Join) -> Iterator[tuple[str, str]]:
    """Yield the pairs of fields of one type, left and right, that are equal where the sides of a join meet."""
    types = {field.name: field.type for side in join.inputs for field in side.fields}
    for one, other, is_null_safe in join.pairs:
        are_fields = isinstance(one, exp.Column) and isinstance(other, exp.Column)
        if are_fields and types[one.name] == types[other.name] and not is_null_safe:
            yield one.name, other.name


def _with_set(grouped: Node, field: str, filtered: Node, by: str, numbers: Iterator[int]) -> Node:
    """Return a node of which only the rows matter whose `field` is among the values of `by` in another node."""
    for rows, name in _filter_sets(filtered, by):
        made = _within(grouped, field, _FilterSet(rows, name, numbers), is_grouped=False)
        if made is not None:
            return made
    return grouped


def _filter_sets(node: Node, field: str) -> Iterator[tuple[Filter, str]]:
    """Yield filtered relations, each with a field of theirs that has all values of a field of a node."""
    match node:
        case Filter(input=Scan() as scan):
            # Conditions that may raise or be expensive are left out: they are not needed, and would run twice.
            selective = [part for part in conjuncts(node.predicate) if _is_selective(part)]
            if selective:
                yield Filter(scan, exp.and_(*selective)), field
        case Filter():
            yield from _filter_sets(node.input, field)
        case Project():
            if (source := node.source_of(field)) is not None:
                yield from _filter_sets(node.input, source)
        case Aggregate(keys=keys):
            if field in keys:
                yield from _filter_sets(node.input, field)
        case Join(kind=kind) if kind in _KINDS:
            pairs = [pair for pair in _equal_fields(node) if field in pair] if kind in _BOTH_MEET else []
            for name in dict.fromkeys((field, *(name for pair in pairs for name in pair))):
                if name in names_of(node.left):
                    yield from _filter_sets(node.left, name)
                elif name in names_of(node.right) and kind in _BOTH_MEET:
                    yield from _filter_sets(node.right, name)


def selectivity(node: Node) -> int:
    """Return a rank of a relation: the fewer of its rows its own filter may leave, the lower."""
    if not isinstance(node, Filter):
        return 2
    return 0 if any(map(_is_selective, conjuncts(node.predicate))) else 1


def _is_selective(condition: exp.Expr) -> bool:
    """Return whether a condition compares a field with constants so that, as a rule, few rows meet it."""
    match condition:
        case exp.EQ() | exp.Like():
            sides = condition.this.unnest(), condition.expression.unnest()
            return any(isinstance(one, exp.Column) and _is_literal(other) for one, other in (sides, sides[::-1]))
        case exp.In():
            listed = condition.expressions
            return isinstance(condition.this, exp.Column) and bool(listed) and all(map(_is_literal, listed))
    return False


def _is_literal(value: exp.Expr) -> bool:
    """Return whether a value is a literal, in a cast or not."""
    return isinstance(value.this if isinstance(value, exp.Cast) else value, exp.Literal)


def _within(node: Node, field: str, by: _FilterSet, is_grouped: bool) -> Node | None:
    """Return a node without groups that the set does not have; None if no operator groups by the field.

    The rows are joined with the set where they are read, so that the operators below the aggregate have fewer, too.
    `is_grouped` tells that the node is below the aggregate.
    """
    match node:
        case Scan() | Filter(input=Scan()):
            if not is_grouped or names_of(node) & names_of(by.rows):
                return None
            return by.joined(node, field)
        case Join(kind=kind) if kind in _KINDS:
            is_left = field in names_of(node.left)
            if not is_left and kind != INNER:
                return None
            below = _within(node.left if is_left else node.right, field, by, is_grouped)
            return None if below is None else replace(node, left=below) if is_left else replace(node, right=below)
        case Filter():
            below = _within(node.input, field, by, is_grouped)
        case Project():
            source = node.source_of(field)
            below = _within(node.input, source, by, is_grouped) if source is not None else None
        case Aggregate(keys=keys) | TopN(partition=keys):
            below = _within(node.input, field, by, True) if field in keys and not _reads(node, by) else None
        case _:
            return None
    return replace(node, input=below) if below is not None else None


def _reads(node: Node, by: _FilterSet) -> bool:
    """Return whether a node reads the relation of the set itself, so that it may have the filter already."""
    return any(isinstance(part, Scan) and part.relation.id == by.scan.relation.id for part in walk(node))
