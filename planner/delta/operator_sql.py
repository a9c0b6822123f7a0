"""The SQL of each operator over given rows of its inputs, in terms that can be printed for both engines.

Input queries are put into a query without a copy, which would be most of the work. So a query is never changed after it
is made, and a part may be in several queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sparkwave.catalog.types import BIGINT, DATE, INTEGER, SMALLINT, TIMESTAMP, TIMESTAMPTZ, Type
from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.functions.aggregates import canonical
from sparkwave.planner.functions.range_frames import give_room, sort_keys_of_offsets
from sparkwave.planner.functions.scalar_functions import IN_RANGE
from sparkwave.planner.plan.join_types import ANTI, AS_OF, AS_OF_LEFT, DYNAMIC, FULL, LEFT, SEMI, TEMPORAL_LEFT
from sparkwave.planner.plan.nodes import (
    DELETED,
    INSERTED,
    REPLACED,
    UPDATED,
    WEIGHT,
    Aggregate,
    Call,
    ChangeLog,
    Field,
    Join,
    Order,
    OverWindow,
    Project,
    Scan,
    TopN,
    Unnest,
    Values,
    WindowCall,
    column,
)

_DAYS = (DATE, TIMESTAMP, TIMESTAMPTZ)
_JOINS = {
    LEFT: "left", TEMPORAL_LEFT: "left", FULL: "full", SEMI: "semi", ANTI: "anti", AS_OF: "asof",
    AS_OF_LEFT: "asof left",
}  # fmt: skip
RANK = "_rank"


def scan(node: Scan, relation: str, *extra: str) -> exp.Select:
    """Return the scanned columns, and `extra` ones, of a relation in which they have the relation's own names."""
    renamed = (exp.alias_(column(name), f"{node.alias}.{name}", quoted=True) for name in node.output)
    return exp.select(*renamed, *map(column, extra)).from_(relation, copy=False)


def values(node: Values) -> exp.Select:
    rows = [
        exp.select(
            *(
                exp.alias_(exp.cast(value.copy(), data_type(f.type)), f.name, quoted=True)
                for value, f in zip(row, node.columns, strict=True)
            ),
            exp.alias_(exp.cast(exp.Literal.number(number), "int"), node.number, quoted=True),
        )
        for number, row in enumerate(node.rows, 1)
    ]
    return union(rows)


def over(below: exp.Select, fields: Iterable[Field], *extra: str) -> exp.Select:
    """Return a query of the fields of some rows."""
    return exp.select(*(column(f.name) for f in fields), *map(column, extra)).from_(
        below.subquery("s", copy=False), copy=False
    )


def project(node: Project, below: exp.Select, *extra: str) -> exp.Select:
    """Return the computed columns, and `extra` ones, of some rows.

    A date or time that may leave PostgreSQL's range is checked.
    """
    items = []
    for item in node.items:
        typed = item.expression if item.source else exp.cast(item.expression, data_type(item.type))
        if item.type in _DAYS and _may_leave_range(item.expression):
            typed = exp.Anonymous(this=IN_RANGE, expressions=[typed])
        items.append(exp.alias_(typed, item.name, quoted=True))
    return exp.select(*items, *map(column, extra)).from_(below.subquery("s", copy=False), copy=False)


def _may_leave_range(moment: exp.Expr) -> bool:
    """Return whether a date or time may be out of PostgreSQL's range.

    DuckDB's range is larger, and not all of it can be stored.
    """
    if isinstance(moment, exp.Anonymous) and moment.name in ("tumble_start", "shift_time"):
        return False
    return not isinstance(moment, exp.Column | exp.CurrentTimestamp | exp.Null) and not _is_typed_literal(moment)


def _is_typed_literal(moment: exp.Expr) -> bool:
    return isinstance(moment, exp.Cast) and isinstance(moment.this, exp.Literal | exp.Null)


def unnest(node: Unnest, below: exp.Select, *extra: str) -> exp.Select:
    """Return a row for each element of the array of a row, with the element and its place, from 1."""
    position = exp.Anonymous(this="generate_subscripts", expressions=[node.array.copy(), exp.Literal.number(1)])
    return exp.select(
        *(column(f.name) for f in node.input.fields),
        exp.alias_(exp.Explode(this=node.array.copy()), node.element.name, quoted=True),
        exp.alias_(position, node.position, quoted=True),
        *map(column, extra),
    ).from_(below.subquery("s", copy=False), copy=False)


def logged_first(node: ChangeLog, below: exp.Select) -> exp.Select:
    """Return the rows of a change log over the rows that are there at first."""
    return _logged(node, below, exp.Literal.number(INSERTED), exp.Literal.number(0))


def change_log(node: ChangeLog, changes: exp.Select) -> exp.Select:
    """Return the rows that a change log gains by the changes of an epoch, with their weight 1."""
    is_gained = exp.GT(this=column(WEIGHT), expression=exp.Literal.number(0))
    keys = list(map(column, dict.fromkeys(node.input.key)))
    count = exp.Window(this=exp.Count(this=exp.Star()), partition_by=keys)
    both = exp.GT(this=count, expression=exp.Literal.number(1))
    names = [column(f.name) for f in node.input.fields]
    rows = exp.select(*names, exp.alias_(is_gained, "_gained"), exp.alias_(both, "_both")).from_(
        consolidated(changes, node.input.fields).subquery("c", copy=False), copy=False
    )

    def code(of_both: int, alone: int) -> exp.Expr:
        return exp.Case().when(column("_both"), exp.Literal.number(of_both)).else_(exp.Literal.number(alone))

    codes = exp.Case().when(column("_gained"), code(UPDATED, INSERTED)).else_(code(REPLACED, DELETED))
    now = exp.Anonymous(this="getvariable", expressions=[exp.Literal.string("now_new")])
    time = exp.Anonymous(this="epoch_us", expressions=[exp.cast(now, data_type(TIMESTAMPTZ))])
    logged = _logged(node, rows, codes, time)
    return logged.select(exp.alias_(exp.Literal.number(1), WEIGHT), copy=False)


def _logged(node: ChangeLog, below: exp.Select, code: exp.Expr, time: exp.Expr) -> exp.Select:
    return exp.select(
        *(column(f.name) for f in node.input.fields),
        exp.alias_(exp.cast(code, data_type(node.code.type)), node.code.name, quoted=True),
        exp.alias_(exp.cast(time, data_type(node.time.type)), node.time.name, quoted=True),
    ).from_(below.subquery("s", copy=False), copy=False)


def join(node: Join, left: exp.Select, right: exp.Select, *extra: str) -> exp.Select:
    """Return the join of some rows of both inputs, with `extra` columns of either side."""
    query = exp.select(*(column(f.name) for f in node.fields), *map(column, extra)).from_(
        left.subquery("l", copy=False), copy=False
    )
    kind = _JOINS.get(node.kind)
    if node.condition is None:
        return query.join(right.subquery("r", copy=False), join_type="cross", copy=False)
    if node.as_of is not None and node.kind in (AS_OF, AS_OF_LEFT):
        right = _nearest(node, node.as_of, right)
    if node.kind == DYNAMIC:
        query.join(right.subquery("r", copy=False), join_type="cross", copy=False)
        return query.where(node.condition.copy(), copy=False)
    return query.join(right.subquery("r", copy=False), on=node.condition.copy(), join_type=kind or "inner", copy=False)


def _nearest(node: Join, compared: exp.Expr, right: exp.Select) -> exp.Select:
    """Return the right side of an as-of join with only one of the rows that are equally near."""
    near = [*(other for _, other, _ in node.pairs), compared]
    order = [*near, *(column(name) for name in node.right.key)]
    rows = exp.select(*(column(f.name) for f in node.right.fields)).from_(right.subquery("s", copy=False), copy=False)
    rows.set("distinct", exp.Distinct(on=exp.Tuple(expressions=[part.copy() for part in near])))
    return rows.order_by(*(part.copy() for part in order), copy=False)


def aggregate(node: Aggregate, below: exp.Select, calls: Iterable[Call] | None = None) -> exp.Select:
    """Return the groups of some rows, with the values of `calls`; None for all of the node's calls."""
    types = {field.name: field.type for field in node.input.fields}
    outputs = [exp.alias_(_computed(call, types), call.name, quoted=True) for call in calls or node.calls]
    query = exp.select(*map(column, node.keys), *outputs).from_(below.subquery("s", copy=False), copy=False)
    return query.group_by(*map(column, node.keys), copy=False) if node.keys else query


def _computed(call: Call, types: Mapping[str, Type]) -> exp.Expr:
    if call.expression is not None:
        return exp.cast(call.expression.copy(), data_type(call.type))
    if call.argument is None:
        return exp.cast(exp.Count(this=exp.Star()), data_type(call.type))
    argument: exp.Expr = column(call.argument)
    if call.function == "sum":
        # A stored sum starts at zero, so that merging needs no case for NULL.
        is_summed_so = _is_summed_so(types.get(call.argument), call.type)
        total = exp.Sum(this=argument if is_summed_so else exp.cast(argument, data_type(call.type)))
        zero = exp.cast(exp.Literal.number(0), data_type(call.type))
        return exp.cast(exp.func("coalesce", total, zero), data_type(call.type))
    return mergeable(call, argument)


def _is_summed_so(type_: Type | None, total: Type) -> bool:
    """Return whether DuckDB's sum has the result type without a cast of each value, which costs more than the sum."""
    if type_ in (SMALLINT, INTEGER, BIGINT):  # summed in 128 bits
        return True
    return type_ is not None and type_.name == total.name == "numeric" and type_.scale == total.scale


def mergeable(call: Call, argument: exp.Expr) -> exp.Expr:
    """Return the call as an aggregate of an expression."""
    node = {"sum": exp.Sum, "min": exp.Min, "max": exp.Max, "count": exp.Count}[call.function](this=argument)
    return exp.cast(node, data_type(call.type))


def top_n(node: TopN, below: exp.Select, first: int, last: int | None) -> exp.Select:
    """Return the rows at places `first < place <= last` of each partition; `last` None is the end."""
    names = [column(f.name) for f in node.input.fields]
    if not node.partition and node.place is None:
        query = exp.select(*names).from_(below.subquery("s", copy=False), copy=False)
        if node.full_order:  # one row has no order
            query = query.order_by(*map(ordered, node.full_order), copy=False)
        query = query.limit(last - first, copy=False) if last is not None else query
        return query.offset(first, copy=False) if first else query
    ranked = exp.select(
        *names,
        exp.alias_(_window(exp.RowNumber(), node.partition, node.full_order, None), RANK, quoted=True),
    ).from_(below.subquery("s", copy=False), copy=False)
    query = exp.select(*(name.copy() for name in names)).from_(ranked.subquery("t", copy=False), copy=False)
    if node.place is not None:
        place = exp.cast(column(RANK), data_type(node.place.type))
        query = query.select(exp.alias_(place, node.place.name, quoted=True), copy=False)
    if first:
        query = query.where(exp.GT(this=column(RANK), expression=exp.Literal.number(first)), copy=False)
    if last is not None:
        query = query.where(exp.LTE(this=column(RANK), expression=exp.Literal.number(last)), copy=False)
    return query


def over_window(node: OverWindow, below: exp.Select, *extra: str) -> exp.Select:
    """Return some rows, which are whole partitions, with the values of the window functions."""
    calls, types = [], {field.name: field.type for field in node.input.fields}
    for call in node.calls:
        window = _window(call.expression.copy(), node.partition, _sorts(node, call), call.frame)
        for key in sort_keys_of_offsets(window):
            give_room(key, types[key.name])
        calls.append(exp.alias_(exp.cast(canonical(window), data_type(call.type)), call.name, quoted=True))
    own = (column(f.name) for f in node.input.fields)
    return exp.select(*own, *calls, *map(column, extra)).from_(below.subquery("s", copy=False), copy=False)


def _sorts(node: OverWindow, call: WindowCall) -> tuple[Order, ...]:
    if not call.is_positional:
        return call.order
    named = {order.name for order in call.order} | set(node.partition)
    return call.order + tuple(Order(name) for name in dict.fromkeys(node.input.key) if name not in named)


def _window(
    call: exp.Expr, partition: Iterable[str], order: Iterable[Order], frame: exp.WindowSpec | None
) -> exp.Window:
    window = exp.Window(this=call, partition_by=[column(name) for name in partition])
    by = [ordered(item) for item in order]
    if by:
        window.set("order", exp.Order(expressions=by))
    if frame is not None:
        window.set("spec", frame.copy())
    return window


def ordered(order: Order) -> exp.Ordered:
    """Return a sort column of ORDER BY."""
    return exp.Ordered(this=column(order.name), desc=order.descending, nulls_first=order.nulls_first)


def union(queries: list[exp.Select]) -> exp.Select:
    """Return UNION ALL of queries with equal columns, as one SELECT."""
    if len(queries) == 1:
        return queries[0]
    names = [select.alias_or_name for select in queries[0].selects]
    combined: exp.Expr = queries[0]
    for query in queries[1:]:
        combined = exp.union(combined, query, distinct=False, copy=False)
    assert isinstance(combined, exp.Query)
    return exp.select(*map(column, names)).from_(combined.subquery("u", copy=False), copy=False)


def consolidated(below: exp.Select, fields: Iterable[Field]) -> exp.Select:
    """Return changes with the weights of equal rows summed, without sums of zero."""
    names = [f.name for f in fields]
    weight = exp.Sum(this=column(WEIGHT))
    query = exp.select(*map(column, names), exp.alias_(exp.cast(weight, "bigint"), WEIGHT)).from_(
        below.subquery("c", copy=False), copy=False
    )
    query = query.group_by(*map(column, names), copy=False) if names else query
    return query.having(exp.NEQ(this=weight.copy(), expression=exp.Literal.number(0)), copy=False)


def weighted(below: exp.Select, fields: Iterable[Field], weight: int) -> exp.Select:
    """Return rows as changes of one weight."""
    query = exp.select(*(column(f.name) for f in fields)).from_(below.subquery("s", copy=False), copy=False)
    return query.select(exp.alias_(exp.Literal.number(weight), WEIGHT), copy=False)


def same(left: exp.Expr, right: exp.Expr, null_safe: bool = True) -> exp.Expr:
    return (exp.NullSafeEQ if null_safe else exp.EQ)(this=left, expression=right)


def key_items(names: Iterable[str]) -> list[exp.Expr]:
    """Return fields as the columns `k0`, `k1`, … of a step with keys."""
    return [exp.alias_(column(name), f"k{number}") for number, name in enumerate(names)]
