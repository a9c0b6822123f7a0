"""WHERE and subqueries in expressions: EXISTS, IN and scalar subqueries become joins.

A condition of a subquery that reads columns of the surrounding query is a correlation: it becomes part of the join's
condition, and for an aggregate the subquery's side of it becomes a group key (Galindo-Legaria and Joshi, "Orthogonal
Optimization of Subqueries and Aggregation", SIGMOD 2001, sections 2 and 3).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog.types import BIGINT, BOOLEAN, Type
from sparkwave.planner.bind.binder import data_type, retype, type_of, untold
from sparkwave.planner.build.builder import (
    Builder,
    columns_in,
    constant_of,
    names_of,
    refuse,
    scalar,
    typed,
    typed_column,
    typed_output,
)
from sparkwave.planner.build.correlation import outer_columns, split_equalities
from sparkwave.planner.build.from_clause import build_from, element_type, outer_join
from sparkwave.planner.build.sort_keys import order_of, sort_source
from sparkwave.planner.functions.aggregates import aggregate_calls
from sparkwave.planner.functions.result_types import array_type
from sparkwave.planner.parse.row_comparisons import check_columns
from sparkwave.planner.parse.set_returning import ROW_FUNCTIONS, makes_rows, series_array
from sparkwave.planner.plan.join_types import ANTI, LEFT, SEMI
from sparkwave.planner.plan.nodes import (
    COUNT,
    Aggregate,
    Call,
    Field,
    Filter,
    Item,
    Join,
    Node,
    Project,
    TopN,
    column,
    conjuncts,
    count_rows_call,
    has_one_row,
)


@dataclass(frozen=True)
class Body:
    """FROM and WHERE of a query: its rows, and the conditions that read columns of the surrounding query."""

    node: Node
    correlated: tuple[exp.Expr, ...]


def build_body(builder: Builder, select: exp.Select) -> Body:
    """Return FROM and WHERE of a query as nodes.

    Raises the Error of `refuse` for a subquery in a condition that reads the surrounding query.
    """
    node = build_from(builder, select)
    retype(select, {f.name: f.type for f in node.fields})
    where = select.args.get("where")
    if where is None:
        return Body(node, ())
    plain: list[exp.Expr] = []
    later: list[exp.Expr] = []
    correlated: list[exp.Expr] = []
    available = names_of(node)
    for part in conjuncts(where.this):
        if _outer_columns(part, available):
            correlated.append(part)
        else:
            (later if part.find(exp.Query) else plain).append(part)
    for part in correlated:
        if part.find(exp.Query):
            raise refuse("a subquery in a condition about the query around it", part)
    if plain:
        node = Filter(node, exp.and_(*map(scalar, plain), copy=False))
    for part in later:
        node = keep_where(builder, node, part)
    return Body(node, tuple(scalar(part) for part in correlated))


def _outer_columns(part: exp.Expr, available: set[str]) -> bool:
    """Return whether a condition reads columns that neither the rows nor a subquery in the condition have."""
    return not outer_columns(part).keys() <= available


def keep_where(builder: Builder, node: Node, condition: exp.Expr) -> Node:
    """Return the rows for which one condition of WHERE or HAVING holds. The result may have more fields."""
    bare = condition.unnest()
    negated = isinstance(bare, exp.Not)
    inner = bare.this.unnest() if negated else bare
    if isinstance(inner, exp.EQ) and isinstance(inner.expression, exp.Any) and query_of(inner.expression.this):
        inner = exp.In(this=inner.this, query=inner.expression.this)
    if isinstance(inner, exp.Exists) and not _is_joined_by_outer(node, inner.this):
        body = _body_of(builder, inner.this)
        if body is not None and body.correlated:
            join = outer_join(node, body.node, _all(body.correlated), ANTI if negated else SEMI, inner)
            _check_sides(join, inner)
            return join
    if isinstance(inner, exp.In) and inner.args.get("query") is not None:
        if not negated and _is_joined_by_outer(node, inner.args["query"]):
            node, found = _exists_value(builder, node, _as_exists(inner))
            return Filter(node, scalar(found))
        if not negated:
            return _in(builder, node, inner)
        if len(_tuple(inner.this)) == 1:
            return _not_in(builder, node, inner)
    node, expression = lift(builder, node, condition)
    return Filter(node, scalar(expression))


def _all(parts: tuple[exp.Expr, ...]) -> exp.Expr | None:
    return exp.and_(*parts, copy=False) if parts else None


def query_of(node: exp.Expr) -> exp.Expr:
    """Return the query in parentheses, unless the parentheses have a LIMIT or the like of their own."""
    while isinstance(node, exp.Paren | exp.Subquery) and not any(map(node.args.get, ("with_", "limit", "offset"))):
        node = node.this
    return node


def _body_of(builder: Builder, query: exp.Expr) -> Body | None:
    """Return the rows of a subquery with FROM and WHERE only; None for other subqueries."""
    select = _plain_select(query)
    return build_body(builder, select) if select is not None else None


def _plain_select(query: exp.Expr) -> exp.Select | None:
    """Return a query that is a SELECT with FROM and WHERE only, and None for another one."""
    select = query_of(query)
    if not isinstance(select, exp.Select) or any(map(select.args.get, _CLAUSES)):
        return None
    return None if any(aggregate_calls(item) or makes_rows(item, select) for item in select.selects) else select


def _is_joined_by_outer(node: Node, query: exp.Expr) -> bool:
    """Return whether a subquery with FROM and WHERE only reads columns of the surrounding rows within FROM.

    FROM has an outer join by such columns, or a function of such columns.
    """
    select = _plain_select(query)
    if select is None:
        return False
    joins = select.args.get("joins") or ()
    parts = [join.args["on"] for join in joins if join.side and join.args.get("on") is not None]
    from_ = select.args.get("from_")
    sources = [*([from_.this] if from_ is not None else []), *(join.this for join in joins)]
    parts += [each for each in sources if isinstance(each, exp.Unnest | exp.Lateral) or isinstance(each.this, exp.Func)]
    read = outer_columns(query).keys() & names_of(node) if parts else set()
    return any(outer_columns(part).keys() & read for part in parts)


def _in(builder: Builder, node: Node, in_: exp.In) -> Node:
    right, outputs, correlated = _rows_and_outputs(builder, in_.args["query"])
    left = _tuple(in_.this)
    check_columns(len(left), len(outputs))
    node, left = _lift_all(builder, node, left)
    pairs = [exp.EQ(this=scalar(one), expression=other) for one, other in zip(left, outputs, strict=True)]
    join = outer_join(node, right, exp.and_(*pairs, *correlated, copy=False), SEMI, in_)
    _check_sides(join, in_)
    return join


def _as_exists(in_: exp.In) -> exp.Exists:
    """Return IN, in a condition, as EXISTS of the subquery's rows that equal its left side."""
    select = query_of(in_.args["query"]).copy()
    assert isinstance(select, exp.Select)
    left, outputs = _tuple(in_.this), [item.unalias() for item in select.selects]
    check_columns(len(left), len(outputs))
    for one, other in zip(left, outputs, strict=True):
        select.where(typed(exp.EQ(this=other.copy(), expression=one.copy()), BOOLEAN), copy=False)
    return exp.Exists(this=exp.Subquery(this=select))


def _not_in(builder: Builder, node: Node, in_: exp.In) -> Node:
    """Build SQL's NOT IN.

    NOT IN is false on a match, else NULL when a NULL is on either side, unless there are no rows at all.
    """
    right, outputs, correlated = _rows_and_outputs(builder, in_.args["query"])
    check_columns(1, len(outputs))
    node, (left,) = _lift_all(builder, node, _tuple(in_.this))
    left = scalar(left)
    match = exp.EQ(this=left, expression=outputs[0])
    unmatched = outer_join(node, right, exp.and_(match, *correlated, copy=False), ANTI, in_)
    _check_sides(unmatched, in_)
    again, again_outputs, again_correlated = _rows_and_outputs(builder, in_.args["query"])
    counted, rows, values = _counted(builder, unmatched, again, again_outputs[0], again_correlated, in_)
    none = exp.EQ(this=rows, expression=exp.Literal.number(0))
    known = exp.and_(
        exp.Not(this=exp.Is(this=left.copy(), expression=exp.null())),
        exp.EQ(this=rows.copy(), expression=values),
        copy=False,
    )
    return Filter(counted, exp.or_(none, known, copy=False))


def _tuple(value: exp.Expr) -> list[exp.Expr]:
    bare = value.unnest()
    return list(bare.expressions) if isinstance(bare, exp.Tuple) else [bare]


def _lift_all(builder: Builder, node: Node, parts: list[exp.Expr]) -> tuple[Node, list[exp.Expr]]:
    lifted = []
    for part in parts:
        node, expression = lift(builder, node, part)
        lifted.append(expression)
    return node, lifted


def _rows_and_outputs(builder: Builder, query: exp.Expr) -> tuple[Node, list[exp.Expr], tuple[exp.Expr, ...]]:
    """Return the rows of a subquery, its select list, and its correlated conditions."""
    body = _body_of(builder, query)
    if body is not None:
        select = query_of(query)
        assert isinstance(select, exp.Select)
        if not any(item.find(exp.Window, exp.Query) for item in select.selects):
            return body.node, [scalar(item.unalias()) for item in select.selects], body.correlated
    node = builder.query(builder, query, True)
    alias = builder.fresh("s")
    items = tuple(Item(f"{alias}.{f.name}", typed_column(f.name, f.type), f.type) for f in node.fields)
    return Project(node, items), [typed_column(item.name, item.type) for item in items], ()


def _check_sides(join: Join, place: exp.Expr) -> None:
    names = names_of(join.left) | names_of(join.right)
    if not columns_in(join.condition or exp.true()) <= names:
        raise refuse("a subquery that refers to a query further out", place)


def _counted(
    builder: Builder,
    node: Node,
    right: Node,
    value: exp.Expr | None,
    correlated: tuple[exp.Expr, ...],
    place: exp.Expr,
) -> tuple[Node, exp.Expr, exp.Expr]:
    """Return each row with the numbers of the subquery's rows for it and of those whose `value` is not NULL."""
    node, rows, values, _ = _summed_up(builder, node, right, value, correlated, place)
    return node, rows, values


def _summed_up(
    builder: Builder,
    node: Node,
    right: Node,
    value: exp.Expr | None,
    correlated: tuple[exp.Expr, ...],
    place: exp.Expr,
    extremes: tuple[str, ...] = (),
) -> tuple[Node, exp.Expr, exp.Expr, list[exp.Expr]]:
    """Return what `_counted` does, also with the `min` or `max` of `value`, or both."""
    inner, outer, null_safe = _correlation(right, correlated, place)
    keys = [Item(builder.fresh("k"), expression, type_of(expression)) for expression in inner]
    argument = builder.fresh("v")
    counted_value = Item(argument, exp.true(), BOOLEAN) if value is None else Item(argument, value, type_of(value))
    items = (*keys, counted_value)
    alias = builder.fresh("s")
    call = Call(f"{alias}.values", "count", argument, BIGINT)
    most = [Call(f"{alias}.{name}", name, argument, counted_value.type) for name in extremes]
    grouped = Aggregate(Project(right, items), tuple(key.name for key in keys), (count_rows_call(), call, *most))
    counted = Project(
        grouped,
        (
            *(Item(key.name, typed_column(key.name, key.type), key.type) for key in keys),
            Item(f"{alias}.rows", column("_count"), BIGINT),
            Item(call.name, column(call.name), BIGINT),
            *(Item(each.name, column(each.name), each.type) for each in most),
        ),
    )
    found: list[exp.Expr] = [typed_column(each.name, each.type) for each in most]
    zero = exp.Literal.number(0)
    counts: list[exp.Expr] = [
        exp.func("coalesce", typed_column(f"{alias}.{name}", BIGINT), zero.copy()) for name in ("rows", "values")
    ]
    if not keys:
        return Join(node, counted, None), counts[0], counts[1], found
    condition = equalities(outer, [key.name for key in keys], null_safe)
    return outer_join(node, counted, condition, LEFT, place), counts[0], counts[1], found


def _correlation(
    right: Node, correlated: tuple[exp.Expr, ...], place: exp.Expr
) -> tuple[list[exp.Expr], list[exp.Expr], list[bool]]:
    """Return correlated conditions as equalities: inner side, outer side, and whether NULL equals NULL."""
    inner, outer, null_safe = [], [], []
    names = names_of(right)
    for part in correlated:
        sides = [part.this.unnest(), part.expression.unnest()] if isinstance(part, exp.EQ | exp.NullSafeEQ) else []
        if sides and not columns_in(sides[0]) <= names:
            sides.reverse()
        if not sides or not columns_in(sides[0]) <= names or columns_in(sides[1]) & names:
            raise refuse("a correlated condition that is not an equality, in this place,", place)
        inner.append(sides[0])
        outer.append(sides[1])
        null_safe.append(isinstance(part, exp.NullSafeEQ))
    return inner, outer, null_safe


def equalities(outer: list[exp.Expr], keys: list[str], null_safe: list[bool]) -> exp.Expr:
    """Return the condition that joins a subquery's keys to the surrounding rows."""
    pairs = zip(outer, keys, null_safe, strict=True)
    equal = ((exp.NullSafeEQ if safe else exp.EQ)(this=one, expression=column(key)) for one, key, safe in pairs)
    return exp.and_(*equal, copy=False)


# Subqueries as values.


def lift(builder: Builder, node: Node, expression: exp.Expr) -> tuple[Node, exp.Expr]:
    """Join the results of an expression's subqueries to the rows, and replace the subqueries by fields."""
    if not expression.find(exp.Query):
        return node, expression
    holder = exp.Paren(this=expression.copy())
    # Qualified copies keep their annotations, from which the outputs get their types.
    done: set[int] = set()  # ids of nodes within quantified comparisons, which are built with these
    for part in list(holder.find_all(exp.Exists, exp.In, exp.Subquery, exp.Array, *_FOR_SOME)):
        if part.find_ancestor(exp.Query) is not None or not _has_query(part) or id(part) in done:
            continue
        match part:
            case exp.EQ() | exp.NEQ() | exp.LT() | exp.LTE() | exp.GT() | exp.GTE():
                done |= {id(each) for each in part.walk()}
                node, value = _quantified_value(builder, node, part)
            case exp.Exists():
                node, value = _exists_value(builder, node, part)
            case exp.In():
                node, value = _in_value(builder, node, part)
            case exp.Array():
                node, value = _array_value(builder, node, part)
            case _:
                if part.arg_key == "query" or isinstance(part.parent, exp.Exists):
                    continue
                node, value = _scalar_value(builder, node, part)
        part.replace(value)
    return node, holder.this


def _has_query(part: exp.Expr) -> bool:
    if isinstance(part, exp.Array):
        return len(part.expressions) == 1 and isinstance(part.expressions[0], exp.Query)
    if isinstance(part, _FOR_SOME):
        right = part.expression
        return isinstance(right, exp.Any | exp.All) and isinstance(query_of(right.this), exp.Query)
    return not isinstance(part, exp.In) or part.args.get("query") is not None


_CLAUSES = ("group", "having", "limit", "offset", "distinct", "with_")


def _array_value(builder: Builder, node: Node, array: exp.Array) -> tuple[Node, exp.Expr]:
    """Return `ARRAY(SELECT …)` as an array_agg of the subquery's output, in its order, and empty over no rows."""
    query = query_of(array.expressions[0])
    if isinstance(query, exp.SetOperation):
        query = _of_set_operation(query, builder.fresh("s"))
    if not isinstance(query, exp.Select) or len(query.selects) != 1:
        raise refuse("ARRAY of a subquery of this form", array, "Put it into FROM.")
    output = query.selects[0].unalias()
    type_ = array_type(_type_of_rows(output))
    if any(map(query.args.get, _CLAUSES)) or aggregate_calls(output) or output.find(exp.Window, *ROW_FUNCTIONS):
        query = _over_its_rows(query, builder.fresh("s"))
        output = query.selects[0].unalias()
    made = query.copy()
    made.set("order", None)
    made.set("expressions", [typed(exp.ArrayAgg(this=_ordered(query, output)), type_)])
    node, found_value = _scalar_value(builder, node, exp.Subquery(this=made))
    empty = exp.cast(exp.Array(expressions=[]), data_type(type_))
    return node, typed(exp.func("coalesce", found_value, empty), type_)


def _type_of_rows(output: exp.Expr) -> Type:
    """Return the type of an output, which may be a series."""
    is_series = isinstance(output, exp.ExplodingGenerateSeries)
    return element_type(series_array(output)) if is_series else type_of(output)


def _ordered(query: exp.Select, output: exp.Expr) -> exp.Expr:
    """Return the output of a query with the query's order, as the argument of an aggregate."""
    order = query.args.get("order")
    sorts = []
    for ordered in order.expressions if order is not None else ():
        found = sort_source(ordered, query)
        sort = ordered.copy()
        sort.set("this", (output if isinstance(found, int) else found).copy())
        sorts.append(sort)
    return exp.Order(this=output.copy(), expressions=sorts) if sorts else output.copy()


def _over_its_rows(query: exp.Select, alias: str) -> exp.Select:
    """Return a query that reads the output of another one from a subquery in FROM, in the same order.

    What DISTINCT and LIMIT do together takes one more subquery.
    """
    order, distinct = query.args.get("order"), query.args.get("distinct")
    is_distinct = distinct is not None and distinct.args.get("on") is None
    sources = [sort_source(ordered, query) for ordered in (order.expressions if order is not None else ())]
    values: list[exp.Expr] = [query.selects[0].unalias()]
    values += [source for source in sources if not isinstance(source, int)]
    inner = query.copy()
    inner.set("expressions", [exp.alias_(v.copy(), f"v{n}", quoted=True) for n, v in enumerate(values)])
    places = itertools.count(1)
    read = [0 if isinstance(source, int) else next(places) for source in sources]

    def outputs(name: str) -> list[exp.Expr]:
        return [typed_output(name, f"v{n}", _type_of_rows(value)) for n, value in enumerate(values)]

    def sorted_by(name: str) -> exp.Order | None:
        sorts = []
        for ordered, place in zip(order.expressions if order is not None else (), read, strict=True):
            sort = ordered.copy()
            sort.set("this", outputs(name)[place])
            sorts.append(sort)
        return exp.Order(expressions=sorts) if sorts else None

    bounds = {part: inner.args.get(part) for part in ("limit", "offset") if inner.args.get(part) is not None}
    if is_distinct or (not bounds and distinct is None):
        inner.set("order", None)
    elif order is not None:
        for sort, source, place in zip(inner.args["order"].expressions, sources, read, strict=True):
            sort.set("this", values[place].copy() if isinstance(source, int) else source.copy())
    if bounds and is_distinct:
        for part in bounds:
            inner.set(part, None)
        name = f"{alias}_"
        listed = [exp.alias_(value, f"v{n}", quoted=True) for n, value in enumerate(outputs(name))]
        inner = exp.Select(expressions=listed, from_=exp.From(this=_named_rows(inner, name)))
        inner.set("order", sorted_by(name))
        for part, bound in bounds.items():
            inner.set(part, bound)
    made = exp.Select(expressions=outputs(alias)[:1], from_=exp.From(this=_named_rows(inner, alias)))
    made.set("order", sorted_by(alias))
    return made


def _of_set_operation(query: exp.SetOperation, alias: str) -> exp.Select:
    """Return a query that reads the output of a set operation from a subquery in FROM, in the same order."""
    output = typed_output(alias, "v0", type_of(query.selects[0]))
    inner, order = query.copy(), query.args.get("order")
    if not any(map(query.args.get, ("limit", "offset"))):
        inner.set("order", None)
    source = _named_rows(inner, alias)
    source.args["alias"].set("columns", [exp.to_identifier("v0", quoted=True)])
    made = exp.Select(expressions=[output], from_=exp.From(this=source))
    if order is not None:
        made.set("order", order.copy())
        for sort in made.args["order"].expressions:
            sort.set("this", output.copy())
    return made


def _named_rows(query: exp.Query, name: str) -> exp.Subquery:
    return exp.Subquery(this=query, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))


def _exists_value(builder: Builder, node: Node, exists: exp.Exists) -> tuple[Node, exp.Expr]:
    query = query_of(exists.this)
    if isinstance(query, exp.Select) and any(makes_rows(item, query) for item in query.selects):
        rows_of = exp.Select(from_=exp.From(this=_named_rows(query.copy(), builder.fresh("s"))))
        node, rows = _scalar_value(builder, node, _count_of(rows_of))
    elif _is_joined_by_outer(node, exists.this):
        node, rows = _scalar_value(builder, node, _count_of(exists.this))
    else:
        right, _, correlated = _rows_and_outputs(builder, exists.this)
        node, rows, _ = _counted(builder, node, right, None, correlated, exists)
    return node, _boolean(exp.GT(this=rows, expression=exp.Literal.number(0)))


def _count_of(query: exp.Expr) -> exp.Subquery:
    """Return the number of rows of a subquery with FROM and WHERE only, as a subquery."""
    made = query_of(query).copy()
    made.set("order", None)
    made.set("expressions", [typed(exp.Count(this=exp.Star()), BIGINT)])
    return exp.Subquery(this=made)


def _boolean(node: exp.Expr) -> exp.Expr:
    node = exp.Paren(this=node)
    node.type = exp.DataType.build("boolean")
    return node


def _in_value(builder: Builder, node: Node, in_: exp.In) -> tuple[Node, exp.Expr]:
    left_parts = _tuple(in_.this)
    if len(left_parts) > 1:
        return _row_in_value(builder, node, in_, left_parts)
    right, outputs, correlated = _rows_and_outputs(builder, in_.args["query"])
    check_columns(len(left_parts), len(outputs))
    node, (left,) = _lift_all(builder, node, left_parts)
    left = scalar(left)
    node, rows, values = _counted(builder, node, right, outputs[0], correlated, in_)
    again, again_outputs, again_correlated = _rows_and_outputs(builder, in_.args["query"])
    match = exp.EQ(this=left, expression=again_outputs[0])
    node, matches, _ = _counted(builder, node, again, None, (match, *again_correlated), in_)
    zero = exp.Literal.number(0)
    unknown = exp.or_(exp.Is(this=left.copy(), expression=exp.null()), exp.LT(this=values, expression=rows), copy=False)
    case = (
        exp.Case()
        .when(exp.GT(this=matches, expression=zero), exp.true())
        .when(exp.EQ(this=rows.copy(), expression=zero.copy()), exp.false())
        .when(unknown, exp.cast(exp.null(), "boolean"))
        .else_(exp.false())
    )
    return node, _boolean(case)


# The most fields of a row in IN, where it may be NULL: it takes 3 ** fields aggregates.
_MOST_FIELDS = 2


def _row_in_value(builder: Builder, node: Node, in_: exp.In, left: list[exp.Expr]) -> tuple[Node, exp.Expr]:
    """Return whether a row is among those of a subquery, NULL where that is unknown.

    The answer is unknown if no row of the subquery matches, and one does in the fields that are not NULL on either
    side. Such rows are counted for each way in which the fields can be equal, NULL in the subquery, or NULL in the
    row.
    """
    if len(left) > _MOST_FIELDS:
        raise refuse(f"IN or NOT IN with more than {_MOST_FIELDS} columns, in this place,", in_)
    node, left = _lift_all(builder, node, left)
    left = [scalar(part) for part in left]
    zero = exp.Literal.number(0)
    matched: exp.Expr | None = None
    unknown: list[exp.Expr] = []
    for ways in itertools.product((_EQUAL, _NULL_IN_QUERY, _NULL_IN_ROW), repeat=len(left)):
        right, outputs, correlated = _rows_and_outputs(builder, in_.args["query"])
        check_columns(len(left), len(outputs))
        fields = list(zip(ways, left, outputs, strict=True))
        absent = [exp.Is(this=inner, expression=exp.null()) for way, _, inner in fields if way == _NULL_IN_QUERY]
        rows = Filter(right, exp.and_(*absent, copy=False)) if absent else right
        equal = (exp.EQ(this=outer.copy(), expression=inner) for way, outer, inner in fields if way == _EQUAL)
        node, count, _ = _counted(builder, node, rows, None, (*equal, *correlated), in_)
        is_there = exp.GT(this=count, expression=zero.copy())
        if matched is None:  # the first way: all are equal
            matched = is_there
            continue
        nulls = (exp.Is(this=outer.copy(), expression=exp.null()) for way, outer, _ in fields if way == _NULL_IN_ROW)
        unknown.append(exp.and_(is_there, *nulls, copy=False))
    assert matched is not None
    case = exp.Case().when(matched, exp.true()).when(exp.or_(*unknown, copy=False), exp.cast(exp.null(), "boolean"))
    return node, _boolean(case.else_(exp.false()))


_EQUAL, _NULL_IN_QUERY, _NULL_IN_ROW = "equal", "null in query", "null in row"

# Comparisons with some value, each with the extreme value that answers it; and their contraries, for ALL.
_EXTREMES: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.LT: ("max",),
    exp.LTE: ("max",),
    exp.GT: ("min",),
    exp.GTE: ("min",),
    exp.NEQ: ("min", "max"),
}
_CONTRARY: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.EQ: exp.NEQ, exp.NEQ: exp.EQ, exp.LT: exp.GTE, exp.GTE: exp.LT, exp.GT: exp.LTE, exp.LTE: exp.GT,
}  # fmt: skip
_FOR_SOME = tuple(_CONTRARY)
# Types whose least and greatest values compare as all values do.
_ORDERED = frozenset(
    ("smallint", "integer", "bigint", "numeric", "real", "double precision", "character varying", "text", "date",
     "time without time zone", "timestamp without time zone", "timestamp with time zone", "boolean", "uuid")
)  # fmt: skip


def _quantified_value(builder: Builder, node: Node, comparison: exp.Expr) -> tuple[Node, exp.Expr]:
    """Return `x < ANY (query)` or `x < ALL (query)`, by the least and the greatest value of the query.

    ANY is true if it holds for one of these, false over no rows, else NULL if x or a value is NULL. ALL is that no
    value has the contrary comparison.
    """
    quantifier = comparison.expression
    is_all = isinstance(quantifier, exp.All)
    kind = _CONTRARY[type(comparison)] if is_all else type(comparison)
    if kind is exp.EQ:
        node, value = _in_value(builder, node, exp.In(this=comparison.this, query=quantifier.this))
        return node, _boolean(exp.Not(this=value)) if is_all else value
    right, outputs, correlated = _rows_and_outputs(builder, quantifier.this)
    check_columns(1, len(outputs))
    node, (left,) = _lift_all(builder, node, [comparison.this])
    left = scalar(left)
    type_ = type_of(outputs[0])
    if type_.dimensions or type_.name not in _ORDERED:
        raise refuse(f"ANY or ALL of a subquery with values of type {type_.shown}", comparison)
    node, rows, values, found = _summed_up(builder, node, right, outputs[0], correlated, comparison, _EXTREMES[kind])
    holds = exp.or_(*(kind(this=left.copy(), expression=each) for each in found), copy=False)
    no_rows = exp.EQ(this=rows, expression=exp.Literal.number(0))
    unknown = exp.or_(
        exp.Is(this=left.copy(), expression=exp.null()), exp.LT(this=values, expression=rows.copy()), copy=False
    )
    case = (
        exp.Case()
        .when(holds, exp.false() if is_all else exp.true())
        .when(no_rows, exp.true() if is_all else exp.false())
        .when(unknown, exp.cast(exp.null(), "boolean"))
        .else_(exp.true() if is_all else exp.false())
    )
    return node, _boolean(case)


def _scalar_value(builder: Builder, node: Node, subquery: exp.Expr) -> tuple[Node, exp.Expr]:
    select = query_of(subquery)
    if not isinstance(select, exp.Select):
        return _uncorrelated_value(builder, node, subquery)
    if len(select.selects) != 1:
        raise refuse("a scalar subquery with several columns", subquery)
    having, limit = select.args.get("having"), constant_of(select.args.get("limit"))
    is_aggregate = having is not None or bool(aggregate_calls(select.selects[0]))
    outer = outer_columns(select).keys() & names_of(node)
    has_clauses = any(select.args.get(part) for part in ("group", "offset", "distinct", "with_"))
    has_clauses = has_clauses or limit == 0 or (having is not None and having.find(exp.Query) is not None)
    if outer and (has_clauses or split_equalities(select, outer) is None):
        if limit == 1 or (is_aggregate and having is None and not select.args.get("group")):
            return _lateral_value(builder, node, select)
        has_clauses = True
    if has_clauses:
        return _uncorrelated_value(builder, node, subquery)
    body = build_body(builder, select)
    if not body.correlated:
        return _uncorrelated_value(builder, node, subquery)
    inner, sides, null_safe = _correlation(body.node, body.correlated, subquery)
    if is_aggregate:
        groups, (value,) = builder.groups(builder, select, body.node, inner)
        keys = [f.name for f in groups.fields[: len(inner)]]
    else:
        groups, keys, value = _single_rows(builder, select, body.node, inner)
    condition = equalities(sides, keys, null_safe)
    joined = outer_join(node, groups, condition, LEFT, subquery)
    _check_sides(joined, subquery)
    return joined, typed(exp.Paren(this=value), type_of(select.selects[0]))


def _lateral_value(builder: Builder, node: Node, select: exp.Select) -> tuple[Node, exp.Expr]:
    """Return the one output of a subquery with at most one row for each surrounding row."""
    alias, output = builder.fresh("s"), select.selects[0].unalias()
    made = select.copy()
    order = made.args.get("order")
    for ordered in order.expressions if order is not None else ():
        ordered.set("this", _sorted_by(ordered, select).copy())
    made.set("expressions", [exp.alias_(output.copy(), "value", quoted=True)])
    source = exp.Lateral(this=exp.Subquery(this=made))
    source.set("alias", exp.TableAlias(this=exp.to_identifier(alias, quoted=True)))
    rows = builder.lateral(builder, node, source, exp.Join(this=source, side="LEFT", on=exp.true()))
    # Of a series of columns outside nothing tells the type before it is built.
    name = f"{alias}.value"
    type_ = next(field.type for field in rows.fields if field.name == name) if untold(output) else type_of(output)
    return rows, typed_column(name, type_)


def _single_rows(
    builder: Builder, select: exp.Select, node: Node, inner: list[exp.Expr]
) -> tuple[Node, list[str], exp.Expr]:
    """Return a correlated subquery of which each surrounding row takes one row: by its key, by LIMIT 1, or the only."""
    alias = builder.fresh("s")
    keys = [Item(f"{alias}.k{number}", expression, type_of(expression)) for number, expression in enumerate(inner)]
    output = select.selects[0].unalias()
    items = [*keys, Item(f"{alias}.value", scalar(output), type_of(output))]
    order = select.args.get("order")
    sorts = []
    for number, ordered in enumerate(order.expressions if order is not None else ()):
        by = _sorted_by(ordered, select)
        items.append(Item(f"{alias}.o{number}", scalar(by), type_of(by)))
        sorts.append(order_of(items[-1].name, ordered))
    names = [key.name for key in keys]
    projected: Node = Project(node, tuple(items))
    if constant_of(select.args.get("limit")) == 1:
        projected = TopN(projected, tuple(names), tuple(sorts), 1)
    elif not set(node.key) <= {expression.name for expression in inner if isinstance(expression, exp.Column)}:
        projected = _only_rows(projected, [Field(key.name, key.type) for key in keys], items[len(keys)])
    return projected, names, typed_column(f"{alias}.value", type_of(output))


def _sorted_by(ordered: exp.Expr, select: exp.Select) -> exp.Expr:
    """Return the expression that ORDER BY names by an output's name or place; any other as it is."""
    by: exp.Expr = ordered.this
    names_output = isinstance(by, exp.Literal) or (isinstance(by, exp.Column) and not by.table)
    found = sort_source(ordered, select) if names_output else by
    return select.selects[found].unalias() if isinstance(found, int) else found


def _only_rows(node: Node, keys: list[Field], value: Item) -> Node:
    """Return the value of the only row for each key. Where there are several, it raises PostgreSQL's error."""
    largest = Call("_max", "max", value.name, value.type)
    grouped = Aggregate(node, tuple(key.name for key in keys), (count_rows_call(), largest))
    only = exp.Anonymous(
        this="_only", expressions=[typed_column(largest.name, value.type), typed_column(COUNT, BIGINT)]
    )
    kept = (Item(key.name, typed_column(key.name, key.type), key.type) for key in keys)
    return Project(grouped, (*kept, Item(value.name, typed(only, value.type), value.type)))


def _uncorrelated_value(builder: Builder, node: Node, subquery: exp.Expr) -> tuple[Node, exp.Expr]:
    """Return an uncorrelated scalar subquery: one row, joined to all rows."""
    rows = builder.query(builder, subquery, True)
    if len(rows.fields) != 1:
        raise refuse("a scalar subquery with several columns", subquery)
    name, type_ = rows.fields[0].name, rows.fields[0].type
    alias = builder.fresh("s")
    if not has_one_row(rows) and not has_at_most_one_row(rows):
        rows = _only_rows(rows, [], Item(name, column(name), type_))
    elif not has_one_row(rows):
        # The largest of at most one value is that value, or NULL of none.
        rows = Aggregate(rows, (), (count_rows_call(), Call("_max", "max", name, type_)))
        name = "_max"
    value = f"{alias}.value"
    single = Project(rows, (Item(value, column(name), type_),))
    return Join(node, single, None), typed_column(value, type_)


def has_at_most_one_row(node: Node) -> bool:
    match node:
        case TopN(limit=limit, partition=partition):
            return limit is not None and limit <= 1 and not partition
        case Project(input=below) | Filter(input=below):
            return has_at_most_one_row(below) or has_one_row(below)
    return has_one_row(node) or not node.key
