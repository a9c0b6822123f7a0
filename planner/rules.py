"""Rewrites of a plan, in order. Each keeps the visible fields of the root; `apply_rules` checks it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from planner.bind import data_type
from planner.nodes import (
    Aggregate,
    Filter,
    Item,
    Join,
    Node,
    Project,
    Scan,
    UnionAll,
    branch_item,
    column,
    transform,
    with_inputs,
)


def apply_rules(root: Node) -> Node:
    """Run RULES over a plan."""
    for rule in RULES:
        rewritten = rule(root)
        visible = rewritten.fields[: len(root.fields)]
        assert [f.type for f in visible] == [f.type for f in root.fields], rule.__name__
        root = rewritten
    return root


def push_filters(root: Node) -> Node:
    """Move conjuncts of a filter into the join below it, and from there to the side they are about.

    `Filter(a = b AND c > 1, Join(L, R))` becomes `Join(L, Filter(c > 1, R), a = b)`.
    """

    def push(node: Node) -> Node:
        if isinstance(node, Filter) and isinstance(node.input, Join):
            return _place(node.input, _conjuncts(node.predicate))
        return node

    # Top down, because a pushed filter may meet the next join.
    pushed = push(root)
    return with_inputs(pushed, tuple(push_filters(child) for child in pushed.inputs))


def _place(join: Join, conjuncts: list[exp.Expr]) -> Join:
    left_names = {f.name for f in join.left.fields}
    right_names = {f.name for f in join.right.fields}
    left, right, both = [], [], _conjuncts(join.condition) if join.condition is not None else []
    for conjunct in conjuncts:
        used = {reference.name for reference in conjunct.find_all(exp.Column)}
        if used and used <= left_names:
            left.append(conjunct)
        elif used and used <= right_names:
            right.append(conjunct)
        else:
            both.append(conjunct)
    return Join(_filtered(join.left, left), _filtered(join.right, right), exp.and_(*both, copy=False) if both else None)


def _filtered(node: Node, conjuncts: list[exp.Expr]) -> Node:
    return Filter(node, exp.and_(*conjuncts, copy=False)) if conjuncts else node


def _conjuncts(predicate: exp.Expr) -> list[exp.Expr]:
    predicate = predicate.unnest()
    return list(predicate.flatten()) if isinstance(predicate, exp.And) else [predicate]


def prune_columns(root: Node) -> Node:
    """Scan only the columns that something above reads, and the key."""
    needed: set[str] = set()

    def note(node: Node) -> None:
        match node:
            case Filter():
                needed.update(c.name for c in node.predicate.find_all(exp.Column))
            case Project():
                for item in node.items:
                    needed.update(c.name for c in item.expression.find_all(exp.Column))
            case Join(condition=condition) if condition is not None:
                needed.update(c.name for c in condition.find_all(exp.Column))
        for child in node.inputs:
            note(child)

    note(root)

    def prune(node: Node) -> Node:
        if not isinstance(node, Scan):
            return node
        kept = (name for name in node.columns if f"{node.alias}.{name}" in needed or name in node.relation.key)
        return replace(node, columns=tuple(kept))

    return transform(root, prune)


def carry_keys(root: Node) -> Node:
    """Let every projection pass on the stream key of its input, and every union tell its branches apart."""

    def carry(node: Node) -> Node:
        match node:
            case Project():
                missing = [name for name in node.input.key if name not in node.passed_on]
                return replace(node, items=node.items + _pass_on(node.input, missing))
            case UnionAll():
                return _key_branches(node)
            case Join():
                return replace(node, right=_apart_from(node.left, node.right))
        return node

    return transform(root, carry)


def _apart_from(left: Node, right: Node) -> Node:
    """Rename the keys that both sides of a join carry: those of a CTE read twice. Nothing above names them."""
    taken = {f.name for f in left.fields}
    if not any(f.name in taken for f in right.fields):
        return right
    items = []
    for f in right.fields:
        name = f.name
        while name in taken:
            name += "_"
        items.append(Item(name, column(f.name), f.type))
    return Project(right, tuple(items))


def _pass_on(node: Node, names: list[str]) -> tuple[Item, ...]:
    types = {f.name: f.type for f in node.fields}
    return tuple(Item(name, column(name), types[name]) for name in dict.fromkeys(names))


def _key_branches(union: UnionAll) -> UnionAll:
    keys = [
        (number, name, next(f.type for f in branch.fields if f.name == name))
        for number, branch in enumerate(union.branches)
        for name in branch.key
    ]
    branches = []
    for number, branch in enumerate(union.branches):
        items = [Item(f.name, column(f.name), f.type) for f in branch.fields[: union.width]]
        items.append(branch_item(number))
        for owner, name, type_ in keys:
            value = column(name) if owner == number else exp.cast(exp.null(), data_type(type_))
            items.append(Item(f"_key{owner}.{name}", value, type_))
        branches.append(Project(branch, tuple(items)))
    names = tuple(f.name for f in branches[0].fields[union.width :])
    return UnionAll(tuple(branches), union.width, names)


def merge_projects(root: Node) -> Node:
    """`Project(Project(x))` becomes one projection, where the outer one only picks and renames fields."""

    def merge(node: Node) -> Node:
        if isinstance(node, Project) and isinstance(node.input, Project) and all(i.source for i in node.items):
            inner = {item.name: item for item in node.input.items}
            return Project(
                node.input.input,
                tuple(Item(i.name, inner[i.source or ""].expression, i.type) for i in node.items),
            )
        return node

    return transform(root, merge)


def keep_state_in_view(root: Node) -> Node:
    """A projection right over the topmost aggregate passes on all of its state, so the view is its own state."""
    if isinstance(root, Project) and isinstance(root.input, Aggregate):
        missing = [f.name for f in root.input.fields if f.name not in root.passed_on]
        return replace(root, items=root.items + _pass_on(root.input, missing))
    return root


RULES: tuple[Callable[[Node], Node], ...] = (
    push_filters,
    prune_columns,  # before keys are carried: it keeps the keys of scans by itself
    merge_projects,
    carry_keys,
    keep_state_in_view,  # last: it looks at what is on top
)
