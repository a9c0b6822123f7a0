"""LATERAL: a subquery in FROM that reads columns of the rows before it becomes a join.

Where all that it reads stands in equalities of its WHERE, its own sides of them become keys of the subquery: of its
groups, windows and first rows. Any other subquery is computed over the distinct values that it reads (Neumann and
Kemper, "Unnesting Arbitrary Queries", BTW 2015, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparkwave.catalog.types import BIGINT, Type
from sparkwave.planner.batch.ties import has_ties
from sparkwave.planner.bind.binder import data_type, type_of
from sparkwave.planner.build.aggregate import grouping_sets, is_grouped
from sparkwave.planner.build.builder import (
    Builder,
    added,
    common_type,
    constant_of,
    names_of,
    picked,
    refuse,
    scalar,
    type_or_null,
    typed,
    typed_column,
    typed_output,
)
from sparkwave.planner.build.correlation import outer_columns, split_equalities
from sparkwave.planner.build.from_clause import aliased, outer_join, rows_beside
from sparkwave.planner.build.sort_keys import sort_source
from sparkwave.planner.build.subqueries import build_body, equalities, lift, query_of
from sparkwave.planner.functions.result_types import array_type
from sparkwave.planner.parse.set_returning import ROW_FUNCTIONS, makes_rows
from sparkwave.planner.plan.join_types import INNER, LEFT
from sparkwave.planner.plan.nodes import Aggregate, Field, Filter, Item, Node, Project, count_rows_call


@dataclass(frozen=True)
class _Keyed:
    """A query without outer columns. Its rows belong to the left rows whose `outer` equal its `inner` expressions."""

    builder: Builder
    query: exp.Query
    inner: list[exp.Expr]
    outer: list[exp.Expr]
    null_safe: list[bool]


def build_lateral(builder: Builder, left: Node, source: exp.Expr, join: exp.Join) -> Node:
    """Return each left row with the subquery's rows for it; of a LEFT JOIN also the left rows without any.

    Raises Error 0A000 for another kind of join, and for a subquery that reads a query further out.
    """
    side, on = join.side.upper(), join.args.get("on")
    if side not in ("", "LEFT") or join.method:
        raise refuse(f"{side or join.method.upper()} JOIN LATERAL", join)
    condition = scalar(on) if on is not None and on != exp.true() else None
    query = query_of(source.this)
    if not side and (beside := _beside(builder, left, query, source)) is not None:
        return Filter(beside, condition) if condition is not None else beside
    outer = outer_columns(query)
    if not outer.keys() <= names_of(left):
        raise refuse("a LATERAL subquery that refers to a query further out", source)
    assert isinstance(query, exp.Query)
    keyed = _by_equalities(builder, query, outer) or _by_values(builder, left, query, outer)
    if isinstance(keyed.query, exp.Select) and is_grouped(keyed.query) and grouping_sets(keyed.query) == [[]]:
        return _with_one_row(left, keyed, source, side, condition)
    rows = aliased(keyed.builder.query(keyed.builder, with_keys(keyed.query, keyed.inner), False), source)
    outputs, keys = rows.fields[: -len(keyed.inner)], rows.fields[-len(keyed.inner) :]
    pairs = equalities(keyed.outer, [key.name for key in keys], keyed.null_safe)
    if side:
        pairs = exp.and_(pairs, condition, copy=False) if condition is not None else pairs
        return picked(outer_join(left, rows, pairs, LEFT, join), (*left.fields, *outputs))
    joined = picked(outer_join(left, rows, pairs, INNER, join), (*left.fields, *outputs))
    return Filter(joined, condition) if condition is not None else joined


def _beside(builder: Builder, left: Node, query: exp.Expr, source: exp.Expr) -> Node | None:
    """Return the left rows with what is computed from them alone: VALUES, or a SELECT without FROM. None for others."""
    if isinstance(query, exp.Values):
        rows = [row.expressions if isinstance(row, exp.Tuple) else [row] for row in query.expressions]
        types = [common_type([type_or_null(row[place]) for row in rows], source) for place in range(len(rows[0]))]
        arrays = [
            typed(
                exp.Array(expressions=[exp.cast(scalar(row[n]), data_type(type_)) for row in rows]), array_type(type_)
            )
            for n, type_ in enumerate(types)
        ]
        names = [f"column{place + 1}" for place in range(len(types))]
        return rows_beside(builder, left, source, arrays, names)
    if not isinstance(query, exp.Select) or query.args.get("from_") is not None or is_grouped(query):
        return None
    if any(query.args.get(part) for part in ("limit", "offset", "distinct", "with_")):
        return None
    if query.find(exp.Window, *ROW_FUNCTIONS):
        return None
    alias = source.args.get("alias")
    given = [identifier.name for identifier in alias.columns] if alias is not None else []
    node, items = left, []
    for place, item in enumerate(query.selects):
        node, value = lift(builder, node, item.unalias())
        name = given[place] if place < len(given) else item.alias_or_name
        items.append(Item(f"{source.alias}.{name}", scalar(value), type_of(item)))
    where = query.args.get("where")
    if where is not None:
        node, condition = lift(builder, node, where.this)
        node = Filter(node, scalar(condition))
    return added(node, items)


def _by_equalities(builder: Builder, query: exp.Query, outer: dict[str, exp.Column]) -> _Keyed | None:
    """Return a SELECT keyed by its own sides of equalities in WHERE; None where it reads outer columns elsewhere."""
    found = split_equalities(query, outer)
    if found is None or not all(part.find(exp.Column) for part in found.inner):
        return None
    return _Keyed(builder, found.select, found.inner, list(map(scalar, found.outer)), found.null_safe)


def _by_values(builder: Builder, left: Node, query: exp.Query, outer: dict[str, exp.Column]) -> _Keyed:
    """Return a query computed for each distinct combination of the outer columns, which are its keys."""
    name = builder.fresh("outer")
    items = tuple(
        Item(f"{name}.{place}", typed_column(flat, type_of(column)), type_of(column))
        for place, (flat, column) in enumerate(outer.items())
    )
    values = Aggregate(Project(left, items), tuple(item.name for item in items), (count_rows_call(),))
    fields = [Field(item.name, item.type) for item in items]
    places = {(column.table, column.name): place for place, column in enumerate(outer.values())}
    types = [field.type for field in fields]

    def moved(place: int) -> exp.Column:
        return typed_output(name, str(place), types[place])

    def swap(part: exp.Expr) -> exp.Expr:
        place = places.get((part.table, part.name)) if isinstance(part, exp.Column) else None
        return part if place is None else moved(place)

    made = _over(query.copy().transform(swap), name)
    inner: list[exp.Expr] = [moved(place) for place in range(len(fields))]
    outer_parts: list[exp.Expr] = [typed_column(flat, type_of(column)) for flat, column in outer.items()]
    within = replace(builder, made=builder.made | {name: picked(values, fields)})
    return _Keyed(within, made, inner, outer_parts, [True] * len(fields))


def _over(query: exp.Expr, name: str) -> exp.Query:
    """Return the query with the table `name` first in FROM."""
    if isinstance(query, exp.Subquery | exp.SetOperation):
        for side in ("this", "expression"):
            if query.args.get(side) is not None:
                query.set(side, _over(query.args[side], name))
        return query
    if not isinstance(query, exp.Select):
        raise refuse("a LATERAL subquery of this form", query)
    table = exp.Table(this=exp.to_identifier(name, quoted=True))
    table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    before = query.args.get("from_")
    query.set("from_", exp.From(this=table))
    if before is not None:
        query.set("joins", [exp.Join(this=before.this), *(query.args.get("joins") or [])])
    return query


def _with_one_row(left: Node, keyed: _Keyed, source: exp.Expr, side: str, condition: exp.Expr | None) -> Node:
    """Return each left row with the aggregate's one row for it, which it has over no rows too."""
    select = keyed.query
    assert isinstance(select, exp.Select)
    if select.args.get("having") is not None or (side and condition is not None):
        what = "HAVING" if select.args.get("having") is not None else "a condition of a LEFT JOIN"
        raise refuse(f"{what} with an aggregate without GROUP BY in LATERAL", source)
    body = build_body(keyed.builder, select)
    groups, values = keyed.builder.groups(keyed.builder, select, body.node, list(map(scalar, keyed.inner)))
    keys = [f.name for f in groups.fields[: len(keyed.inner)]]
    joined = outer_join(left, groups, equalities(keyed.outer, keys, keyed.null_safe), LEFT, source)
    alias = source.args.get("alias")
    given = [identifier.name for identifier in alias.columns] if alias is not None else []
    names = given + [item.alias_or_name for item in select.selects[len(given) :]]
    items = [
        Item(f"{source.alias}.{name}", value, type_of(item))
        for name, value, item in zip(names, values, select.selects, strict=True)
    ]
    found = added(picked(joined, (*left.fields, *groups.fields)), items)
    rows = picked(found, (*left.fields, *(Field(item.name, item.type) for item in items)))
    return Filter(rows, condition) if condition is not None else rows


# A query with keys: what it does for all rows, it does for the rows of each combination of the keys.


def with_keys(query: exp.Expr, keys: Sequence[exp.Expr]) -> exp.Query:
    """Return a query with the keys as its last outputs, which its groups, windows and first rows are told apart by."""
    if isinstance(query, exp.SetOperation) and not any(map(query.args.get, ("limit", "offset", "with_"))):
        union = query.copy()
        for side in ("this", "expression"):
            union.set(side, with_keys(query_of(query.args[side]), keys))
        return union
    if not isinstance(query, exp.Select):
        raise refuse("a LATERAL subquery of this form", query)
    select = query.copy()
    if is_grouped(select):
        group = select.args["group"]
        group.set("expressions", [*(key.copy() for key in keys), *group.expressions])
    for window in select.find_all(exp.Window):
        if window.parent_select is select and not window.args.get("alias"):
            window.set("partition_by", [*(key.copy() for key in keys), *(window.args.get("partition_by") or [])])
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        on = distinct.args["on"]
        listed = on.expressions if isinstance(on, exp.Tuple) else [on.unnest()]
        distinct.set("on", exp.Tuple(expressions=[*(key.copy() for key in keys), *listed]))
    named = [exp.alias_(key.copy(), f"_key{place}", quoted=True) for place, key in enumerate(keys)]
    if not select.args.get("limit") and not select.args.get("offset"):
        select.set("expressions", [*select.expressions, *named])
        return select
    return _first_of_each(select, keys, named)


def _first_of_each(select: exp.Select, keys: Sequence[exp.Expr], named: Sequence[exp.Expr]) -> exp.Select:
    """Return LIMIT and OFFSET as conditions on the number of a row among those with its keys."""
    if select.args.get("distinct") is not None:
        raise refuse("DISTINCT with LIMIT in LATERAL", select, "Put the DISTINCT into a subquery.")
    limit, offset = constant_of(select.args.get("limit")), constant_of(select.args.get("offset")) or 0
    order = select.args.get("order")
    sorts = []
    for ordered in order.expressions if order is not None else ():
        found = sort_source(ordered, select)
        sort = ordered.copy()
        sort.set("this", (select.selects[found].unalias() if isinstance(found, int) else found).copy())
        sorts.append(sort)
    number = exp.Window(this=exp.Rank() if has_ties(select) else exp.RowNumber(), partition_by=[k.copy() for k in keys])
    number.set("order", exp.Order(expressions=sorts) if sorts else None)
    outputs = [(item.alias_or_name, type_of(item)) for item in (*select.selects, *named)]
    is_over_rows = any(makes_rows(part, select) for part in (*select.selects, order) if part is not None)
    for part in ("limit", "offset", "order"):
        select.set(part, None)
    if is_over_rows:
        select, number = _over_rows(select, named, outputs, number)
        named = []
    numbered = exp.alias_(typed(number, BIGINT), "_number", quoted=True)
    select.set("expressions", [*select.expressions, *named, numbered])
    rows = exp.Subquery(this=select, alias=exp.TableAlias(this=exp.to_identifier("_numbered", quoted=True)))

    place = typed_output("_numbered", "_number", BIGINT)
    bounds: list[exp.Expr] = []
    if limit is not None:
        bounds.append(exp.LTE(this=place.copy(), expression=typed(exp.Literal.number(offset + limit), BIGINT)))
    if offset:
        bounds.append(exp.GT(this=place.copy(), expression=typed(exp.Literal.number(offset), BIGINT)))
    listed = [exp.alias_(typed_output("_numbered", name, type_), name, quoted=True) for name, type_ in outputs]
    return exp.Select(expressions=listed, from_=exp.From(this=rows), where=exp.Where(this=exp.and_(*bounds)))


def _over_rows(
    select: exp.Select, named: Sequence[exp.Expr], outputs: Sequence[tuple[str, Type]], number: exp.Window
) -> tuple[exp.Select, exp.Window]:
    """Return a query over the rows that set-returning functions make, which are made after a SELECT's windows."""
    name = "_rows"
    order = number.args.get("order")
    sorts = [ordered.this for ordered in order.expressions] if order is not None else []
    made = [exp.alias_(sort.copy(), f"_sort{place}", quoted=True) for place, sort in enumerate(sorts)]
    for place, sort in enumerate(sorts):
        sort.replace(typed_output(name, f"_sort{place}", type_of(made[place])))
    keys = [typed_output(name, key.alias, type_of(key)) for key in named]
    number.set("partition_by", keys)
    inner = select.copy()
    inner.set("expressions", [*inner.expressions, *named, *made])
    rows = exp.Subquery(this=inner, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
    listed = [exp.alias_(typed_output(name, output, type_), output, quoted=True) for output, type_ in outputs]
    return exp.Select(expressions=listed, from_=exp.From(this=rows)), number
