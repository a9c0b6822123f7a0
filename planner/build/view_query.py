"""Builds nodes from bound syntax. Syntax without an incremental rule is refused, with its name and position.

A SELECT is built in the order SQL evaluates it: FROM and WHERE, groups, HAVING, windows, the select list with its
set-returning functions, DISTINCT, ORDER BY with LIMIT.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import BIGINT, INTEGER, Type
from sparkwave.planner.batch.ties import has_ties
from sparkwave.planner.bind.binder import BoundQuery, data_type, type_of
from sparkwave.planner.build.aggregate import (
    Grouped,
    build_groups,
    check_grouped,
    correlated_groups,
    grouping_sets,
    is_grouped,
)
from sparkwave.planner.build.builder import (
    Builder,
    added,
    common_type,
    constant_of,
    picked,
    refuse,
    renamed,
    replaced,
    scalar,
    text,
    type_or_null,
    typed,
    typed_column,
)
from sparkwave.planner.build.change_logs import with_change_log
from sparkwave.planner.build.from_clause import arrays_of, element_type, elements_beside, values
from sparkwave.planner.build.lateral import build_lateral
from sparkwave.planner.build.sort_keys import distinct_on, order_of, place_of, sort_source
from sparkwave.planner.build.subqueries import build_body, keep_where, lift
from sparkwave.planner.build.windows import build_windows
from sparkwave.planner.functions.result_types import array_type
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Call,
    Field,
    Filter,
    Item,
    Node,
    Order,
    OverWindow,
    Project,
    TopN,
    UnionAll,
    Unnest,
    WindowCall,
    conjuncts,
    count_rows_call,
)

_LARGEST_BIGINT = 2**63 - 1


def build(bound: BoundQuery) -> Project:
    """Return the plan of a query; its root is a Project whose items are the output columns. Raises Error 0A000."""
    node = _query(Builder(bound.tables, _query, correlated_groups, build_lateral), bound.tree)
    if isinstance(node, Project):
        return node
    return renamed(node, [f.name for f in node.fields], [f.type for f in node.fields])


def _query(builder: Builder, query: exp.Expr, positional: bool = False) -> Node:
    """Return the outputs of a query under their names; with `positional` they are numbered instead."""
    with_ = query.args.get("with_")
    if with_ is not None:
        if with_.recursive:
            raise Error("RECURSIVE CTE is not supported", errors.FEATURE_NOT_SUPPORTED, position=position_of(with_))
        builder = replace(builder, ctes=builder.ctes | {cte.alias: cte for cte in with_.expressions})
    match query:
        case exp.Subquery():
            if (ordered := _limited_inside(query)) is not None:
                return _query(builder, ordered, positional)
            node = _query(builder, query.this, positional)
            return _first_rows(builder, node, query, positional)
        case exp.Select():
            return _select(builder, query, positional)
        case exp.SetOperation():
            return _first_rows(builder, _set_operation(builder, query), query, positional)
        case exp.Values():
            return values(builder, query)
    raise refuse(type(query).__name__.upper(), query)


def _limited_inside(query: exp.Subquery) -> exp.Expr | None:
    """Return `(SELECT … ORDER BY a) LIMIT 1` as one query, as PostgreSQL reads it; None if it is not of this form."""
    inner = query.this.unnest()
    own = {part: query.args[part] for part in ("limit", "offset") if query.args.get(part) is not None}
    is_first = own and query.args.get("order") is None and inner.args.get("order") is not None
    if not is_first or any(inner.args.get(part) is not None for part in ("limit", "offset")):
        return None
    made = inner.copy()
    for part, clause in own.items():
        made.set(part, clause.copy())
    return made


# Set operations.


def _set_operation(builder: Builder, query: exp.SetOperation) -> Node:
    sides = [_query(builder, query.left), _query(builder, query.right, positional=True)]
    flat = [
        branch
        for side in sides
        for branch in (side.branches if isinstance(query, exp.Union) and isinstance(side, UnionAll) else (side,))
    ]
    first = flat[0]
    if any(len(branch.fields) != len(first.fields) for branch in flat):
        kind = type(query).__name__.upper()
        raise Error(
            f"each {kind} query must have the same number of columns",
            errors.SYNTAX_ERROR,
            position=position_of(query.right),
        )
    names = [f.name for f in first.fields]
    types = [common_type([_known(branch, place) for branch in flat], query) for place in range(len(first.fields))]
    aligned = tuple(renamed(branch, names, types) for branch in flat)
    is_distinct = bool(query.args.get("distinct"))
    if isinstance(query, exp.Union):
        union = UnionAll(aligned, len(names))
        return _distinct(union) if is_distinct else union
    return _common_or_other(builder, aligned, names, isinstance(query, exp.Intersect), is_distinct)


def _known(node: Node, place: int) -> Type | None:
    """Return the type of an output; None for a bare NULL."""
    found = node.fields[place]
    if isinstance(node, Project) and _is_null(node.items[place].expression):
        return None
    return found.type


def _is_null(expression: exp.Expr) -> bool:
    inner = expression.unnest()
    while isinstance(inner, exp.Cast) and inner.meta.get("untyped"):
        inner = inner.this
    return isinstance(inner, exp.Null)


def _distinct(node: Node) -> Node:
    names = tuple(f.name for f in node.fields)
    distinct = Aggregate(node, names, (count_rows_call(),))
    return picked(distinct, node.fields)


def _common_or_other(
    builder: Builder, sides: tuple[Project, ...], names: list[str], is_common: bool, is_distinct: bool
) -> Node:
    """Build INTERSECT or EXCEPT: count each row on either side, then keep it as often as SQL says."""
    marks = [builder.fresh("side") for _ in sides]
    marked = []
    for side_number, side in enumerate(sides):
        flags = [Item(mark, exp.Literal.number(int(place == side_number)), INTEGER) for place, mark in enumerate(marks)]
        marked.append(added(side, flags))
    union = UnionAll(tuple(marked), len(names) + len(marks))
    calls = tuple(Call(f"_sum({mark})", "sum", mark, BIGINT) for mark in marks)
    counted = Aggregate(union, tuple(names), (count_rows_call(), *calls))
    left, right = (typed_column(call.name, BIGINT) for call in calls)
    if is_common:
        number: exp.Expr = exp.func("least", left, right)
    else:
        number = exp.Sub(this=left, expression=right)
    if is_distinct:
        zero = exp.Literal.number(0)
        on_right = (
            exp.GT(this=right.copy(), expression=zero) if is_common else exp.EQ(this=right.copy(), expression=zero)
        )
        kept: Node = Filter(counted, exp.and_(exp.GT(this=left.copy(), expression=zero.copy()), on_right, copy=False))
    else:
        series = exp.GenerateSeries(start=typed(exp.Literal.number(1), BIGINT), end=typed(number, BIGINT))
        kept = Unnest(counted, series, Field(builder.fresh("copy"), BIGINT), builder.fresh("position"))
    return picked(kept, counted.fields[: len(names)])


# SELECT.


def _select(builder: Builder, select: exp.Select, positional: bool) -> Node:
    body = build_body(builder, select)
    if body.correlated:
        raise refuse("a correlated subquery in this place", select)
    if not is_grouped(select):
        return _outputs(builder, select, body.node, {}, positional)
    sets = grouping_sets(select)
    all_keys = list(dict.fromkeys(key for keys in sets for key in keys))
    # Each grouping set has rows of its own, because plans share no nodes: every scan is one input.
    nodes = [body.node, *(build_body(builder, select).node for _ in sets[1:])]
    groups = [build_groups(select, node, keys, all_keys) for node, keys in zip(nodes, sets, strict=True)]
    if len(sets) > 1 and (select.find(exp.Window) or distinct_on(select) or _sorts_by_expression(select, positional)):
        return _outputs(builder, select, *_union(builder, groups), positional)
    branches: list[Node] = [
        _outputs(builder, select, grouped.node, grouped.replacements, positional, len(sets) == 1) for grouped in groups
    ]
    if len(branches) == 1:
        return branches[0]
    union: Node = UnionAll(tuple(branches), len(branches[0].fields))
    if select.args.get("distinct"):
        union = _distinct(union)
    return _ordered_by_outputs(builder, union, select)


def _sorts_by_expression(select: exp.Select, positional: bool) -> bool:
    """Return whether the first rows are in an order that `_ordered_by_outputs` cannot tell by outputs."""
    order, names = select.args.get("order"), () if positional else [item.alias_or_name for item in select.selects]
    if order is None or not (select.args.get("limit") or select.args.get("offset")):
        return False
    return not all(_names_output(ordered.this, names) for ordered in order.expressions)


def _names_output(by: exp.Expr, names: Collection[str]) -> bool:
    return by.name in names if isinstance(by, exp.Column) else isinstance(by, exp.Literal) and by.is_int


def _union(builder: Builder, groups: list[Grouped]) -> tuple[Node, dict[str, exp.Expr]]:
    """Return the groups of all grouping sets as the rows of one node, with their replacements."""
    names = {key: builder.fresh("set") for key in groups[0].replacements}
    types = {key: type_of(value) for key, value in groups[0].replacements.items()}
    branches = [
        Project(grouped.node, tuple(Item(names[key], value, types[key]) for key, value in grouped.replacements.items()))
        for grouped in groups
    ]
    columns: dict[str, exp.Expr] = {key: typed_column(name, types[key]) for key, name in names.items()}
    return UnionAll(tuple(branches), len(names)), columns


def _outputs(
    builder: Builder,
    select: exp.Select,
    node: Node,
    replacements: dict[str, exp.Expr],
    positional: bool,
    is_whole: bool = True,
) -> Node:
    """Build HAVING and everything after it. Without `is_whole` the rows are one grouping set's, to be ordered later."""
    having = select.args.get("having")
    for part in conjuncts(having.this) if having is not None else ():
        node = _having(builder, node, part, replacements)
    order = select.args.get("order") if is_whole else None
    names = [f"_{n}" if positional else item.alias_or_name for n, item in enumerate(select.selects)]
    sources = [item.unalias() for item in select.selects]
    sort_sources = [(o, sort_source(o, select)) for o in (order.expressions if order is not None else ())]
    on = distinct_on(select)
    parts = [
        *sources,
        *(s for _, s in sort_sources if isinstance(s, exp.Expr)),
        *(s for s in on if isinstance(s, exp.Expr)),
    ]
    node, replacements = with_change_log(builder, select, node, replacements)
    node, replacements = build_windows(builder, select, node, parts, replacements)
    node, replacements = _series(builder, select, node, replacements, [s for s in on if isinstance(s, exp.Expr)])

    def value(source: exp.Expr) -> exp.Expr:
        nonlocal node
        node, lifted = lift(builder, node, _replaced_outside(source, replacements))
        return replaced(scalar(lifted), replacements)

    items: list[Item] = []
    for name, source, selected in zip(names, sources, select.selects, strict=True):
        if any(item.name == name for item in items):
            raise Error(
                f'column "{name}" specified more than once', errors.DUPLICATE_COLUMN, position=position_of(selected)
            )
        expression = value(source)
        type_ = type_or_null(expression if isinstance(expression, exp.Column | exp.Cast | exp.Literal) else source)
        if type_ is None:
            type_ = Type("character varying")
            expression = exp.cast(expression, data_type(type_))
            expression.meta["untyped"] = True
        items.append(Item(name, expression, type_))
    sorts: list[Order] = []
    hidden: dict[str, Item] = {}

    def sort_field(source: int | exp.Expr) -> str:
        if isinstance(source, int):
            return items[source].name
        flat = value(source)
        for item in items:
            if item.expression == flat:
                return item.name
        type_ = type_of(flat if isinstance(flat, exp.Column) else source)
        made = hidden.setdefault(text(flat), Item(builder.fresh("sort"), flat, type_))
        return made.name

    sorts = [order_of(sort_field(source), ordered) for ordered, source in sort_sources]
    partition = tuple(sort_field(source) for source in on)
    if is_grouped(select):
        for item, selected in zip(items, select.selects, strict=True):
            check_grouped(node, item.expression, selected)
        for item in hidden.values():
            check_grouped(node, item.expression, order or select)
    result: Node = Project(node, (*items, *hidden.values()))
    if partition:
        result = TopN(result, partition, tuple(sorts), 1)
    elif select.args.get("distinct") and is_whole:
        if hidden:
            raise Error(
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
                errors.INVALID_COLUMN_REFERENCE,
                position=position_of(order or select),
            )
        result = _distinct(result)
    if is_whole:
        result = _limited(builder, result, select, tuple(sorts))
    if hidden:
        result = picked(result, result.fields[: len(items)])
    return result


def _having(builder: Builder, node: Node, part: exp.Expr, replacements: dict[str, exp.Expr]) -> Node:
    condition = _replaced_outside(part, replacements)
    if not part.find(exp.Query):
        check_grouped(node, condition, part)
    return keep_where(builder, node, condition)


def _replaced_outside(source: exp.Expr, replacements: dict[str, exp.Expr]) -> exp.Expr:
    """Replace aggregates and keys by their fields; subqueries stay as they are."""
    if not source.find(exp.Query):
        return replaced(scalar(source), replacements)

    def swap(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Query) or part.find_ancestor(exp.Query) is not None:
            return part
        found = replacements.get(text(scalar(part)))
        return found.copy() if found is not None else part

    return source.copy().transform(swap)


_SET_RETURNING = (exp.Explode, exp.ExplodingGenerateSeries, exp.Unnest)


def _series(
    builder: Builder, select: exp.Select, node: Node, replacements: dict[str, exp.Expr], on: Sequence[exp.Expr]
) -> tuple[Node, dict[str, exp.Expr]]:
    """Build the set-returning functions of the select list, ORDER BY and DISTINCT ON: rows of elements side by side."""
    order = select.args.get("order")
    places = [*select.selects, *((o.this for o in order.expressions) if order is not None else ()), *on]
    found: list[exp.Expr] = [
        call for item in places for call in item.find_all(*_SET_RETURNING) if call.parent_select is select
    ]
    if not found:
        return node, replacements
    inner = [call for call in found if call.find_ancestor(*_SET_RETURNING) is not None]
    if inner:
        node, replacements = _side_by_side(builder, node, inner, replacements)
    return _side_by_side(builder, node, [call for call in found if call not in inner], replacements)


def _side_by_side(
    builder: Builder, node: Node, found: list[exp.Expr], replacements: dict[str, exp.Expr]
) -> tuple[Node, dict[str, exp.Expr]]:
    """Return a row for each element of what functions return; equal calls have one element."""
    calls = list({text(scalar(call)): call for call in found}.values())
    arrays = [array for call in calls for array in arrays_of(call)]
    if len(arrays) != len(calls):
        raise refuse("unnest of several arrays in a select list", calls[0], "Put it into FROM.")
    elements = [Field(builder.fresh("element"), element_type(array)) for array in arrays]
    for place, array in enumerate(arrays):
        node, arrays[place] = lift(builder, node, array)
    flat = [
        typed(replaced(scalar(array), replacements), array_type(element.type))
        for array, element in zip(arrays, elements, strict=True)
    ]
    node = elements_beside(builder, node, flat, elements, builder.fresh("position"))
    values = {
        text(scalar(call)): typed_column(element.name, element.type)
        for call, element in zip(calls, elements, strict=True)
    }
    return node, replacements | values


# ORDER BY with LIMIT.


def _limited(builder: Builder, node: Node, query: exp.Expr, sorts: tuple[Order, ...]) -> Node:
    limit, offset = constant_of(query.args.get("limit")), constant_of(query.args.get("offset")) or 0
    if limit is not None and limit + offset > _LARGEST_BIGINT:
        limit = None  # that many rows there are never
    if limit is None and not offset:
        return node
    return _with_ties(builder, node, sorts, limit) if has_ties(query) else TopN(node, (), sorts, limit, offset)


def _with_ties(builder: Builder, node: Node, sorts: tuple[Order, ...], limit: int | None) -> Node:
    """Return the first rows and those with equal sort keys to the last of them: rank() <= n."""
    rank = builder.fresh("rank")
    ranked = OverWindow(node, (), (WindowCall(rank, exp.Rank(), BIGINT, sorts, None),))
    is_first = exp.LTE(this=typed_column(rank, BIGINT), expression=typed(exp.Literal.number(limit), BIGINT))
    return picked(Filter(ranked, is_first), node.fields)


def _ordered_by_outputs(builder: Builder, node: Node, query: exp.Expr) -> Node:
    order = query.args.get("order")
    sorts = []
    names = {f.name for f in node.fields}
    for ordered in order.expressions if order is not None else ():
        by = ordered.this
        if isinstance(by, exp.Literal) and by.is_int:
            name = node.fields[place_of(by, len(node.fields))].name
        elif isinstance(by, exp.Column) and by.name in names:
            name = by.name
        elif query.args.get("limit") or query.args.get("offset"):
            raise refuse("ORDER BY with an expression after a set operation", by)
        else:
            continue
        sorts.append(order_of(name, ordered))
    return _limited(builder, node, query, tuple(sorts))


def _first_rows(builder: Builder, node: Node, query: exp.Expr, positional: bool) -> Node:
    node = _ordered_by_outputs(builder, node, query)
    if not positional:
        return node
    return renamed(node, [f"_{number}" for number in range(len(node.fields))], [f.type for f in node.fields])
