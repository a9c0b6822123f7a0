"""Rewrites of a plan, in order. Each keeps the visible fields of the root; `apply_rules` checks it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeGuard

from sqlglot import exp

from sparkwave.catalog.types import INTEGER
from sparkwave.planner import since
from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.build.builder import columns_in, names_of, typed_column
from sparkwave.planner.plan.distinct_counts import split_distinct_counts
from sparkwave.planner.plan.filter_sets import restrict_groups
from sparkwave.planner.plan.join_types import ANTI, DYNAMIC, FULL, INNER, LEFT, SEMI
from sparkwave.planner.plan.nodes import (
    COUNT,
    Aggregate,
    ChangeLog,
    Field,
    Filter,
    Item,
    Join,
    Memo,
    Node,
    OverWindow,
    Project,
    Scan,
    TopN,
    UnionAll,
    Unnest,
    Values,
    branch_item,
    column,
    conjuncts,
    has_one_row,
    keeps_state,
    transform,
    walk,
    with_inputs,
)
from sparkwave.planner.plan.outputs import limit_outputs
from sparkwave.planner.plan.sharing import share_states


def apply_rules(root: Project, is_stored: bool = True, version: int = since.PLANNER) -> Project:
    """Run the RULES of a version of the planner over a plan.

    `is_stored` tells whether its rows are stored or only sent on.
    """
    for rule in RULES:
        if (rule is keep_state_in_view and not is_stored) or _SINCE.get(rule, 1) > version:
            continue
        rewritten = rule(root)
        visible = rewritten.fields[: len(root.fields)]
        assert [f.type for f in visible] == [f.type for f in root.fields], rule.__name__
        assert isinstance(rewritten, Project)
        root = rewritten
    return root


def push_filters(root: Node) -> Node:
    """Move conjuncts of a filter into the join below it, and from there to the side whose fields they read.

    `Filter(a = b AND c > 1, Join(L, R))` becomes `Join(L, Filter(c > 1, R), a = b)`. Past an outer, semi or anti join
    only conjuncts over its left side go.
    """

    def push(node: Node) -> Node:
        if isinstance(node, Filter) and isinstance(node.input, Filter):
            both = exp.and_(*conjuncts(node.predicate), *conjuncts(node.input.predicate), copy=False)
            return push(Filter(node.input.input, both))
        if isinstance(node, Filter) and isinstance(node.input, Join):
            return _place(node.input, conjuncts(node.predicate))
        return _spread(node) if isinstance(node, Join) else node

    # Top down, because a pushed filter may meet the next join.
    pushed = push(root)
    return with_inputs(pushed, tuple(push_filters(child) for child in pushed.inputs))


def _spread(join: Join) -> Join:
    """Move conjuncts of a join's condition to the side they read, if that side's rows without a match are dropped."""
    if join.kind == INNER:
        placed = _place(replace(join, condition=None), list(join.conjuncts))
        assert isinstance(placed, Join)
        return placed
    if join.kind not in (LEFT, SEMI, ANTI):
        return join
    names = names_of(join.right)
    about_right = [part for part in join.conjuncts if columns_in(part) and columns_in(part) <= names]
    both = [part for part in join.conjuncts if part not in about_right]
    return replace(join, right=_filtered(join.right, about_right), condition=exp.and_(*both, copy=False))


def _place(join: Join, parts: list[exp.Expr]) -> Node:
    left_names, right_names = names_of(join.left), names_of(join.right)
    left, right, both = [], [], []
    for part in parts:
        used = columns_in(part)
        if used and used <= left_names and join.kind != FULL:
            left.append(part)
        elif used and used <= right_names and join.kind == INNER and not has_one_row(join.right):
            right.append(part)
        else:
            both.append(part)
    placed = replace(join, left=_filtered(join.left, left), right=_filtered(join.right, right))
    if join.kind != INNER:
        return _filtered(placed, both)
    joined = [*join.conjuncts, *both]
    return replace(placed, condition=exp.and_(*joined, copy=False) if joined else None)


def _filtered(node: Node, parts: list[exp.Expr]) -> Node:
    return Filter(node, exp.and_(*parts, copy=False)) if parts else node


def connect_joins(root: Node) -> Node:
    """Order the inputs of inner joins so that each has an equality with an earlier one, where there is any.

    `FROM a, b, c WHERE a.x = c.x AND b.y = c.y` joins a, c, b instead of starting with a cross product.
    """
    node = root
    if isinstance(node, Join) and node.kind == INNER:
        leaves, conditions = _flattened(node)
        return _connected([connect_joins(leaf) for leaf in leaves], conditions)
    return with_inputs(node, tuple(connect_joins(child) for child in node.inputs))


def _flattened(node: Node) -> tuple[list[Node], list[exp.Expr]]:
    if not (isinstance(node, Join) and node.kind == INNER):
        return [node], []
    left, left_conditions = _flattened(node.left)
    right, right_conditions = _flattened(node.right)
    return left + right, [*left_conditions, *right_conditions, *node.conjuncts]


def _connected(leaves: list[Node], conditions: list[exp.Expr]) -> Node:
    joined, *rest = leaves
    while rest:
        chosen = next((leaf for leaf in rest if _joined(joined, leaf, conditions).pairs), rest[0])
        rest = [leaf for leaf in rest if leaf is not chosen]
        made = _joined(joined, chosen, conditions)
        conditions = [part for part in conditions if part not in made.conjuncts]
        joined = made
    return _filtered(joined, conditions)


def _joined(left: Node, right: Node, conditions: list[exp.Expr]) -> Join:
    names = names_of(left) | names_of(right)
    parts = [part for part in conditions if columns_in(part) <= names]
    return Join(left, right, exp.and_(*parts, copy=False) if parts else None)


def limit_windows(root: Node) -> Node:
    """Let `row_number() … <= n` over a window keep only the first n rows of each partition below it.

    RisingWave's OverWindowToTopNRule does the same for the group top-n pattern.
    """

    def limit(node: Node) -> Node:
        numbered = _numbered_rows(node)
        if numbered is None:
            return node
        filter_, window, name = numbered
        bounds = [n for part in conjuncts(filter_.predicate) if (n := _upper_bound(part, name)) is not None]
        if not bounds:
            return node
        limited = replace(window, input=TopN(window.input, window.partition, window.calls[0].order, min(bounds)))
        below = replace(filter_.input, input=limited) if isinstance(filter_.input, Project) else limited
        return replace(filter_, input=below)

    return transform(root, limit)


def drop_known_places(root: Node) -> Node:
    """Drop a filter by row number where `limit_windows` has made it true for all rows.

    Unless the row numbers are read elsewhere, the window is dropped, too.
    """

    def drop(node: Node) -> Node:
        numbered = _numbered_rows(node)
        if numbered is None:
            return node
        filter_, window, name = numbered
        first = window.input
        if not isinstance(first, TopN) or first.limit is None or not {*first.partition} <= {*window.partition}:
            return node
        bounds = ((part, _upper_bound(part, name)) for part in conjuncts(filter_.predicate))
        # `= n` says more than `<= n`, except for n = 1.
        unknown = [
            part
            for part, bound in bounds
            if bound is None or bound < first.limit or (isinstance(part, exp.EQ) and bound != 1)
        ]
        return _filtered(filter_.input, unknown)

    return transform(root, drop)


def place_rows(root: Node) -> Node:
    """Number the first rows of partitions in the top-n itself, instead of in a window above it."""

    def place(node: Node) -> Node:
        if not _numbers_rows(node) or not isinstance(node.input, TopN):
            return node
        [call], first = node.calls, node.input
        is_same = (call.order, node.partition) == (first.order, first.partition) and first.limit is not None
        if not is_same or first.offset or first.place is not None:
            return node
        return replace(first, place=Field(call.name, call.type))

    return transform(root, place)


def _numbered_rows(node: Node) -> tuple[Filter, OverWindow, str | None] | None:
    """Return a filter on row numbers, the window below it, and the filter's name for the number; None if it is none."""
    if not (isinstance(node, Filter) and isinstance(node.input, Project | OverWindow)):
        return None
    window = node.input.input if isinstance(node.input, Project) else node.input
    if not _numbers_rows(window) or not window.calls[0].order:
        return None
    call = window.calls[0]
    return node, window, node.input.passed_on.get(call.name) if isinstance(node.input, Project) else call.name


def _numbers_rows(node: Node) -> TypeGuard[OverWindow]:
    """Return whether a node is a window that does nothing but `row_number()`."""
    return isinstance(node, OverWindow) and len(node.calls) == 1 and isinstance(node.calls[0].expression, exp.RowNumber)


def _upper_bound(part: exp.Expr, name: str | None) -> int | None:
    """Return the n of `name <= n`, or of an equivalent comparison."""
    if not isinstance(part, exp.LTE | exp.LT | exp.EQ):
        return None
    left, right = part.this.unnest(), part.expression.unnest()
    if isinstance(left, exp.Column) and left.name == name and isinstance(right, exp.Literal) and right.is_int:
        return max(int(right.name) - isinstance(part, exp.LT), 0)
    return None


def store_temporal_joins(root: Node) -> Node:
    """Store the results of temporal joins and change logs that are looked up or taken back: nothing else has them.

    Operators above may look their input up again, and the left side may lose rows.
    """
    return _with_memos(root, True)


def _with_memos(node: Node, is_linear: bool) -> Node:
    is_temporal = isinstance(node, Join) and node.is_temporal
    is_memo = is_temporal and not (is_linear and node.inputs[0].grows)
    is_memo = is_memo or (isinstance(node, ChangeLog) and not is_linear)
    keeps = isinstance(node, Project | UnionAll | Unnest)
    keeps = keeps or (isinstance(node, Filter) and not node.reads_now)
    keeps = keeps or (isinstance(node, Aggregate) and all(call.is_linear for call in node.calls))
    inputs = tuple(
        _with_memos(child, is_memo or (is_linear and (keeps or (is_temporal and number == 0))))
        for number, child in enumerate(node.inputs)
    )
    made = with_inputs(node, inputs)
    return Memo(made) if is_memo else made


def prune_columns(root: Node) -> Node:
    """Compute and scan only the columns that are read above, and the keys of scans."""
    return _prune(root, names_of(root))


def _prune(node: Node, needed: set[str]) -> Node:
    match node:
        case Scan():
            kept = [n for n in node.columns if f"{node.alias}.{n}" in needed or n in node.relation.key]
            # A query has at least one column, while a relation of one row has no key.
            return replace(node, columns=tuple(kept) or node.columns[:1])
        case Values():
            return node
        case Filter():
            return replace(node, input=_prune(node.input, needed | columns_in(node.predicate)))
        case Project():
            # A relation has at least one column.
            items = tuple(item for item in node.items if item.name in needed) or node.items[:1]
            return Project(_prune(node.input, set().union(*(columns_in(i.expression) for i in items))), items)
        case Unnest():
            below = (needed - {node.element.name, node.position}) | columns_in(node.array)
            return replace(node, input=_prune(node.input, below))
        case Join():
            below = needed | (columns_in(node.condition) if node.condition is not None else set())
            if node.kind == INNER and node.condition is not None and has_one_row(node.right):
                # Only the condition reads the one row: none of its values is in the result.
                node = node if needed & names_of(node.right) else replace(node, kind=DYNAMIC)
            return replace(node, left=_prune(node.left, below), right=_prune(node.right, below))
        case UnionAll():
            names = [f.name for f in node.fields]
            kept_names = [name for name in names if name in needed] or names[:1]
            branches = tuple(_prune(branch, set(kept_names)) for branch in node.branches)
            return replace(node, branches=branches, width=len(kept_names))
        case Aggregate():
            calls = tuple(call for call in node.calls if call.name in needed or call.name == COUNT)
            below = set(node.keys) | {call.argument for call in calls if call.argument is not None}
            for call in calls:
                below |= columns_in(call.expression) if call.expression is not None else set()
            return replace(node, input=_prune(node.input, below), calls=calls)
        case TopN():
            below = needed | set(node.partition) | {order.name for order in node.order}
            return replace(node, input=_prune(node.input, below))
        case Memo():
            return replace(node, input=_prune(node.input, needed | set(node.key)))
        case OverWindow():
            windows = tuple(call for call in node.calls if call.name in needed)
            if not windows:
                return _prune(node.input, needed)
            below = needed | set(node.partition)
            for window in windows:
                below |= columns_in(window.expression) | {order.name for order in window.order}
            return replace(node, input=_prune(node.input, below - {w.name for w in windows}), calls=windows)
    return with_inputs(node, tuple(_prune(below, names_of(below)) for below in node.inputs))


def merge_projects(root: Node) -> Node:
    """Merge two projections, one over the other, where either only picks and renames fields."""

    def merge(node: Node) -> Node:
        if not (isinstance(node, Project) and isinstance(node.input, Project)):
            return node
        inner = {item.name: item for item in node.input.items}
        if all(item.source for item in node.items) or all(item.source for item in node.input.items):
            items = (Item(i.name, substituted(i, inner), i.type) for i in node.items)
            return Project(node.input.input, tuple(items))
        return node

    return transform(root, merge)


def substituted(item: Item, inner: Mapping[str, Item]) -> exp.Expr:
    """Return an item of a projection over the input of the projection below, whose items are `inner`."""
    if item.source is not None:
        found = inner[item.source]
        if found.type != item.type:
            return exp.cast(found.expression.copy(), data_type(item.type))
        return found.expression
    return item.expression.transform(
        lambda part: inner[part.name].expression.copy() if isinstance(part, exp.Column) else part
    )


def carry_keys(root: Node) -> Node:
    """Let every projection pass on the stream key of its input, and every union distinguish its branches.

    Below an aggregate no key is needed: its groups are the key.
    """
    if isinstance(root, Aggregate):
        below = root.input
        if isinstance(below, UnionAll):
            return replace(root, input=with_inputs(below, tuple(map(_carried_below, below.branches))))
        return replace(root, input=_carried_below(below) if isinstance(below, Project) else carry_keys(below))
    node = with_inputs(root, tuple(carry_keys(child) for child in root.inputs))
    match node:
        case Project():
            missing = [name for name in node.input.key if name not in node.passed_on]
            return replace(node, items=node.items + _pass_on(node.input, missing, {i.name for i in node.items}))
        case UnionAll():
            return _key_branches(node)
        case Join():
            left = node.left
            if node.kind == FULL:
                # Rows of one side alone have NULLs for the other's key; the marker distinguishes them.
                left = Project(
                    left,
                    (
                        *(Item(f.name, column(f.name), f.type) for f in left.fields),
                        Item(f"_left.{len(list(walk(node)))}", exp.Literal.number(1), INTEGER),
                    ),
                )
                node = replace(node, marker=left.items[-1].name)
            return replace(node, left=left, right=_apart_from(left, node.right))
    return node


def _carried_below(node: Node) -> Node:
    return with_inputs(node, tuple(carry_keys(child) for child in node.inputs))


def _apart_from(left: Node, right: Node) -> Node:
    """Rename the keys that both sides of a join carry, as for a CTE read twice. No operator above uses these names."""
    taken = names_of(left)
    if not any(f.name in taken for f in right.fields):
        return right
    # A key that need not be renamed keeps its name, which no renamed key may get.
    kept = {f.name for f in right.fields if free_name(f.name, taken) == f.name}
    taken = taken | kept
    items: list[Item] = []
    for field in right.fields:
        name = field.name if field.name in kept else free_name(field.name, taken)
        taken.add(name)
        items.append(Item(name, column(field.name), field.type))
    return Project(right, tuple(items))


def _pass_on(node: Node, names: list[str], taken: set[str]) -> tuple[Item, ...]:
    types = {f.name: f.type for f in node.fields}
    items: list[Item] = []
    for name in dict.fromkeys(names):
        output = free_name(name, taken | {item.name for item in items})
        items.append(Item(output, column(name), types[name]))
    return tuple(items)


def free_name(name: str, taken: set[str]) -> str:
    """Return the name, or a similar one that is not taken in any case of letters.

    Engines do not distinguish "A" from a.
    """
    lowered = {each.lower() for each in taken}
    while name.lower() in lowered:
        name += "_"
    return name


def _key_branches(union: UnionAll) -> UnionAll:
    keys = [
        (number, name, next(f.type for f in branch.fields if f.name == name))
        for number, branch in enumerate(union.branches)
        for name in dict.fromkeys(branch.key)
    ]
    branches = []
    for number, branch in enumerate(union.branches):
        items = [Item(f.name, column(f.name), f.type) for f in branch.fields[: union.width]]
        items.append(branch_item(number))
        for owner, name, type_ in keys:
            value = typed_column(name, type_) if owner == number else exp.cast(exp.null(), data_type(type_))
            items.append(Item(f"_key{owner}.{name}", value, type_))
        branches.append(Project(branch, tuple(items)))
    names = tuple(f.name for f in branches[0].fields[union.width :])
    return UnionAll(tuple(branches), union.width, names)


def keep_state_in_view(root: Node) -> Node:
    """Let a projection over the topmost aggregate or top-n pass on all of its state, so that the view is its state."""
    if not isinstance(root, Project):
        return root
    below = root.input
    if keeps_state(below) and not (isinstance(below, TopN) and below.offset):
        missing = [f.name for f in below.fields if f.name not in root.passed_on]
        return replace(root, items=root.items + _pass_on(below, missing, {i.name for i in root.items}))
    return root


RULES: tuple[Callable[[Node], Node], ...] = (
    split_distinct_counts,
    push_filters,
    connect_joins,
    merge_projects,
    limit_windows,
    drop_known_places,
    restrict_groups,  # when filters are at the relations that they are about, and top-ns are known
    store_temporal_joins,
    prune_columns,  # before keys are carried: it keeps the keys of scans by itself
    place_rows,  # where an operator reads them
    merge_projects,
    carry_keys,
    keep_state_in_view,  # after all rules that change the topmost operators
    limit_outputs,  # after all rules that change what is read
    share_states,  # last: it looks for equal operators in the final plan
)
# The version in which a rule was added, if not the first.
_SINCE: dict[Callable[[Node], Node], int] = {
    drop_known_places: 2,
    place_rows: 2,
    share_states: 2,
    store_temporal_joins: 6,
    split_distinct_counts: 7,
    restrict_groups: 17,
}
