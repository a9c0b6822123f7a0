"""Merges operators that keep the same state: a CTE or subquery that a query reads twice keeps its state once.

RisingWave shares such subplans too (`StreamShare`, src/frontend/src/optimizer/plan_node/logical_share.rs).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields, is_dataclass

from sqlglot import exp

from sparkwave.catalog.model import Relation
from sparkwave.planner.plan.nodes import Item, Node, Project, column, keeps_state, walk, with_inputs

# Attributes of nodes and their parts: those with names of fields, and those that only identify an occurrence.
_NAMES = frozenset({"name", "keys", "partition", "argument", "marker", "branch_key", "number", "position"})
_OCCURRENCE = frozenset({"input", "alias"})


def share_states(root: Node) -> Node:
    """Replace every operator with state that equals an earlier one, except for the names of its fields, by that one."""
    made: dict[Hashable, Node] = {}

    def share(node: Node) -> Node:
        form = _form(node) if keeps_state(node) else None
        if form in made:
            return _renamed(made[form], node)
        shared = with_inputs(node, tuple(map(share, node.inputs)))
        if form is not None:
            made[form] = shared
        return shared

    return share(root)


def _renamed(node: Node, other: Node) -> Node:
    """Return a node with the names of another's fields."""
    if node.fields == other.fields:
        return node
    pairs = zip(node.fields, other.fields, strict=True)
    return Project(node, tuple(Item(own.name, column(field.name), own.type) for field, own in pairs))


def _form(root: Node) -> Hashable:
    """Return a form that is equal for two plans that differ only in names, which are numbered by appearance."""
    numbers: dict[str, int] = {}

    def number(name: str) -> int:
        return numbers.setdefault(name, len(numbers))

    def numbered(part: exp.Expr) -> exp.Expr:
        return column(str(number(part.name))) if isinstance(part, exp.Column) else part

    def parts(value: object) -> Hashable:
        own = (field.name for field in fields(value) if field.name not in _OCCURRENCE)  # type: ignore[arg-type]
        return type(value).__name__, *(form(getattr(value, name), name in _NAMES) for name in own)

    def form(value: object, is_name: bool) -> Hashable:
        match value:
            case str():
                return number(value) if is_name else value
            case exp.Expr():
                return value.transform(numbered).sql()
            case tuple():
                return tuple(form(item, is_name) for item in value)
            case Relation():
                return value.id
        if isinstance(value, Node):
            return None  # a node is compared before its readers
        return parts(value) if is_dataclass(value) else value

    return tuple((parts(node), form(node.fields, False)) for node in walk(root))
