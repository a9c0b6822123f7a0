"""EMIT ON WINDOW CLOSE: a group, or a row, appears when the watermark has passed its time, and is final then.

The watermark of a table is its highest time less a delay; late rows never get into the table. So the view is its query
with one further condition: the key is below the value that it would have at the watermark. RisingWave's StreamHashAgg
and StreamEowcSort have the same rule (docs "Emit on window close", `GenericRank` of a watermark through TUMBLE). A
materialized view that is read has the watermarks of the tables that its own query reads. A join has a watermark where
its condition ties the other side's to it (RisingWave's StreamHashJoin), and closes by both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import DATE, INTERVAL, TIMESTAMP, Type
from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.build.builder import added, picked, typed, typed_column
from sparkwave.planner.build.time_windows import EVENT_TIME, SHIFTED
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.parse.calls import GAP
from sparkwave.planner.plan.join_types import DYNAMIC
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Call,
    Field,
    Filter,
    Item,
    Join,
    Node,
    Order,
    OverWindow,
    Project,
    Scan,
    TopN,
    Unnest,
    WindowCall,
    column,
    conjuncts,
    count_rows_call,
    walk,
    with_inputs,
)
from sparkwave.planner.since import FINAL_JOINS, is_since

# Functions that keep the order of times, so that they can be applied to the watermark.
_MONOTONE = frozenset({"tumble_start", "shift_time", "date_trunc"})
# Fields with the last value of a row's session, and that value plus the gap.
_LAST, _END = "_last_of_session", "_end_of_session"


# Gives the plan of a materialized view's query, whose outputs have the names of the view's columns; else None.
RowsOf = Callable[[Relation], Project | None]
# Expressions over watermark columns, each with its scan: no later row is below the least of them at the watermarks.
_Traces = tuple[tuple[exp.Expr, Scan], ...]


@dataclass(frozen=True)
class _Whole:
    """The whole plan, the plans of the views that it reads, and the numbers of further scans."""

    root: Node
    rows_of: RowsOf
    numbers: Iterator[int]


def _whole(root: Node, rows_of: RowsOf) -> _Whole:
    last = max(int(part.input.removeprefix("i")) for part in walk(root) if isinstance(part, Scan))
    return _Whole(root, rows_of, count(last + 1))


def on_event_time(root: Project, rows_of: RowsOf) -> Project:
    """Return the plan of a query in which temporal joins by event time have their final rows alone.

    Raises Error 0A000 for one without watermarks of both sides.
    """
    if not any(_event_time(node) is not None for node in walk(root)):
        return root
    return replace(root, input=_with_final_rows(root.input, _whole(root, rows_of)))


def _event_time(node: Node) -> str | None:
    """Return the field of a join's left side as of whose time the right side is joined."""
    parts = node.conjuncts if isinstance(node, Join) else ()
    return next((part.this.name for part in parts if part.meta.get(EVENT_TIME)), None)


def _with_final_rows(node: Node, whole: _Whole) -> Node:
    if node.inputs:
        node = with_inputs(node, tuple(_with_final_rows(each, whole) for each in node.inputs))
    name = _event_time(node)
    if name is None:
        return node
    traces = _traced(node, column(name), whole)
    if not traces:
        raise Error(
            "a temporal join by event time requires the watermark column of its left side",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Declare a WATERMARK for the column in FOR SYSTEM_TIME AS OF.",
        )
    return picked(_closed_only(node, name, traces, whole), node.fields)


def on_window_close(root: Project, rows_of: RowsOf) -> Project:
    """Return the plan of a query that shows closed windows only.

    Raises Error 0A000 without a watermark to close them.
    """
    return replace(root, input=_closing(root.input, _whole(root, rows_of)))


def _closing(node: Node, whole: _Whole, met: tuple[exp.Expr, ...] = ()) -> Node:
    found: Node | None = None
    match node:
        case Project():
            return with_inputs(node, (_closing(node.input, whole),))
        case Filter(predicate=predicate):
            return with_inputs(node, (_closing(node.input, whole, (*met, *conjuncts(predicate))),))
        case Aggregate(keys=keys):
            found = _closed(node, keys, whole)
        case OverWindow(partition=partition):
            found = (
                _closed(node, partition, whole) or _sessions_of_closed(node, whole) or _windows_of_closed(node, whole)
            )
        case TopN(partition=partition, order=order):
            found = _closed(node, partition, whole)
            below = _closed(node.input, _ascending(order), whole) if found is None else None
            found = picked(replace(node, input=below), node.fields) if below is not None else found
        case _:
            found = _closed(node, _in_order_of_outputs(node, whole.root), whole, met)
    if found is None:
        raise Error(
            "Emit-On-Window-Close mode requires a watermark column in GROUP BY."
            if isinstance(node, Aggregate)
            else "The query cannot be executed in Emit-On-Window-Close mode.",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Group, partition or order by window_start of a TUMBLE or HOP over a table with a WATERMARK, "
            "or by its watermark column. A join is temporal, or has a condition about the watermarks of both sides.",
        )
    return found


def _closed(node: Node, names: Iterable[str], whole: _Whole, met: tuple[exp.Expr, ...] = ()) -> Filter | None:
    """Return the rows whose first field with a watermark is below it; None if no field has one."""
    source = node.input if isinstance(node, Aggregate | OverWindow | TopN) else node
    for name in names:
        traces = _traced(source, column(name), whole, met=met)
        if traces:
            return _closed_only(node, name, traces, whole)
    return None


def _in_order_of_outputs(node: Node, root: Node) -> list[str]:
    """Return the fields of a join as a query's outputs read them, the others last; those of other rows as they are."""
    fields = [field.name for field in node.fields]
    if not isinstance(node, Join) or not isinstance(root, Project) or not is_since(FINAL_JOINS):
        return fields
    read = [part.name for item in root.items for part in item.expression.find_all(exp.Column) if part.name in fields]
    return [*dict.fromkeys([*read, *fields])]


def _ascending(order: Sequence[Order]) -> list[str]:
    return [order[0].name] if order and not order[0].descending else []


def _windows_of_closed(node: OverWindow, whole: _Whole) -> Node | None:
    """Return window functions over closed rows, in the watermark's order; rows wait for those that their frames need.

    None for a frame that later rows may change for good.
    """
    following = [_rows_following(call) for call in node.calls]
    needed = [rows for rows in following if rows is not None]
    firsts = {tuple(_ascending(call.order)) for call in node.calls}
    first = firsts.pop() if len(firsts) == 1 else ()
    below = _closed(node.input, first, whole) if len(needed) == len(following) else None
    if below is None:
        return None
    if not max(needed):
        return picked(replace(node, input=below), node.fields)
    [time] = [field for field in node.input.fields if field.name == first[0]]
    lead = exp.Lead(this=typed_column(time.name, time.type), offset=exp.Literal.number(max(needed)))
    waits = WindowCall("_row_that_closes", lead, time.type, node.calls[0].order, None)
    windows = replace(node, input=below, calls=(*node.calls, waits))
    is_closed = exp.Not(this=exp.Is(this=typed_column(waits.name, time.type), expression=exp.null()))
    return picked(Filter(windows, is_closed), node.fields)


def _sessions_of_closed(node: OverWindow, whole: _Whole) -> Node | None:
    """Return the rows of closed sessions, by which windows are partitioned (`planner.build.session_frames`).

    A session is closed when no row above the watermark is within the gap of its last one. Windows of earlier rows may
    be beside them. None for other windows.
    """
    found = _with_last(node)
    if found is None:
        return None
    rows, (source, name), gap = found
    traces = _traced(source, column(name), whole, is_deep=True)
    if not traces:
        return None
    type_ = next(field.type for field in source.fields if field.name == name)
    end_type = TIMESTAMP if type_ == DATE else type_
    if end_type != type_:
        traces = tuple((typed(exp.cast(each, data_type(end_type)), end_type), scan) for each, scan in traces)
    end = typed(exp.Add(this=typed_column(_LAST, type_), expression=_gap(gap, type_)), end_type)
    ends = added(rows, [Item(_END, end, end_type)])
    return picked(_closed_only(ends, _END, traces, whole, exp.LTE), node.fields)


def _with_last(node: Node) -> tuple[Node, tuple[Node, str], exp.Expr] | None:
    """Return rows with sessions and the last value of each row's, the rows below and their value, and the gap."""
    match node:
        case OverWindow(calls=calls):
            first = _ascending(calls[0].order)
            gaps = [call.frame.meta[GAP] for call in calls if call.frame is not None and GAP in call.frame.meta]
            if len(gaps) == len(calls) and first:
                type_ = next(field.type for field in node.input.fields if field.name == first[0])
                last = WindowCall(_LAST, exp.Max(this=typed_column(first[0], type_)), type_, (), None)
                return replace(node, calls=(*calls, last)), (node.input, first[0]), gaps[0]
            if any(_rows_following(call) != 0 or _ascending(call.order) != first for call in calls) or not first:
                return None
        case Project():
            pass
        case _:
            return None
    below = _with_last(node.input)
    if below is None:
        return None
    rows, source, gap = below
    made = replace(node, input=rows)
    if isinstance(made, Project):
        [last_field] = [field for field in rows.fields if field.name == _LAST]
        made = replace(made, items=(*made.items, Item(_LAST, typed_column(_LAST, last_field.type), last_field.type)))
    return made, source, gap


def _gap(gap: exp.Expr, type_: Type) -> exp.Expr:
    """Return the gap of sessions over values of a type."""
    if type_.is_integer:
        return typed(exp.cast(gap.copy(), data_type(type_)), type_)
    return typed(exp.cast(gap.copy(), data_type(INTERVAL)), INTERVAL)


def _rows_following(call: WindowCall) -> int | None:
    """Return how many rows after a row its window call may read; None where any later row may change it."""
    function = call.expression
    while isinstance(function, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
        function = function.this
    if isinstance(function, exp.Lead):
        offset = function.args.get("offset")
        return _number(offset) if offset is not None else 1
    if isinstance(function, exp.RowNumber | exp.Rank | exp.DenseRank | exp.Lag):
        return 0
    if isinstance(function, exp.PercentRank | exp.CumeDist | exp.Ntile):
        return None
    if call.frame is None:
        return 0
    end, side = call.frame.args.get("end") or "CURRENT ROW", call.frame.args.get("end_side")
    if end == "CURRENT ROW" or side == "PRECEDING":
        return 0
    return _number(end) if call.frame.text("kind").upper() == "ROWS" else None


def _number(value: object) -> int | None:
    bare = value.unnest() if isinstance(value, exp.Expr) else None
    return int(bare.name) if isinstance(bare, exp.Literal) and bare.is_int else None


def _traced(
    node: Node, expression: exp.Expr, whole: _Whole, is_deep: bool = False, met: tuple[exp.Expr, ...] = ()
) -> _Traces:
    """Return the expression over the watermark columns of the scans that it depends on; none if it does not keep order.

    If `is_deep`, also through groups with the expression as a key, and through windows of earlier rows in its order,
    which those of a materialized view that is read always are. `met` are conditions that all rows of the node meet.
    """
    used = {reference.name for reference in expression.find_all(exp.Column)}
    match node:
        case Scan(relation=relation):
            watermark = relation.watermark
            if watermark is None:
                below = whole.rows_of(relation)
                outputs = {f"{node.alias}.{item.name}": item.expression for item in below.items} if below else {}
                # The rows of a group or window below the watermark are final.
                return _traced(below.input, _put(expression, outputs), whole, is_deep=True) if below else ()
            is_own = used == {f"{node.alias}.{watermark.column}"}
            return ((expression, node),) if is_own and _is_monotone(expression) else ()
        case Project(items=items):
            inner = {item.name: item.expression for item in items}
            return _traced(node.input, _put(expression, inner), whole, is_deep, tuple(_put(c, inner) for c in met))
        case Filter(predicate=predicate):
            return _traced(node.input, expression, whole, is_deep, (*met, *conjuncts(predicate)))
        case Unnest(array=exp.GenerateSeries() as series):
            # Of HOP's windows of a time, the earliest is the last to take rows below the watermark.
            return _traced(node.input, _put(expression, {node.element.name: series.args["end"]}), whole, is_deep)
        case Unnest():
            is_passed = used <= {f.name for f in node.input.fields}
            return _traced(node.input, expression, whole, is_deep) if is_passed else ()
        case Join(left=left, right=right):
            for side in (left, right):
                if used and used <= {f.name for f in side.fields}:
                    tied = _tied(expression, side, (*node.conjuncts, *met))
                    return _traced_join(node, side, expression, tied, whole, is_deep)
        case Aggregate(keys=keys) if is_deep and used <= set(keys):
            return _traced(node.input, expression, whole, is_deep)
        case OverWindow(calls=calls) if is_deep and used <= {f.name for f in node.input.fields}:
            is_of_earlier = all(_rows_following(call) == 0 and set(_ascending(call.order)) == used for call in calls)
            return _traced(node.input, expression, whole, is_deep) if is_of_earlier else ()
    return ()


def _traced_join(
    join: Join, side: Node, expression: exp.Expr, tied: Iterable[exp.Expr], whole: _Whole, is_deep: bool
) -> _Traces:
    """Return what `_traced` does for an expression over one side of a join: it waits for the other side's rows, too.

    It is never less than any of the expressions over the other side that are tied to it. A temporal join does not wait,
    and no row is final that meets a condition about the one row of a subquery.
    """
    traces = _traced(side, expression, whole, is_deep)
    if not is_since(FINAL_JOINS):
        return traces
    if join.is_temporal:
        return traces if side is join.left else ()
    other = join.right if side is join.left else join.left
    tied = tied if traces and join.kind != DYNAMIC else ()
    waits = next(filter(None, (_traced(other, each, whole, is_deep) for each in tied)), ())
    return traces + tuple(each for each in waits if not _is_one_of(each, traces)) if waits else ()


def _tied(expression: exp.Expr, side: Node, conditions: Iterable[exp.Expr]) -> Iterator[exp.Expr]:
    """Yield expressions without a column of the side that are never greater where the conditions hold."""
    names = {field.name for field in side.fields}
    for greater, less in _compared(conditions):
        tied = expression.transform(lambda part: less.copy() if part == greater else part)  # noqa: B023
        if names.isdisjoint(reference.name for reference in tied.find_all(exp.Column)):
            yield tied


def _compared(conditions: Iterable[exp.Expr]) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yield (a, b) of conditions where a is never less than b."""
    for part in conditions:
        match part:
            case exp.EQ():
                pairs = [(part.this, part.expression), (part.expression, part.this)]
            case exp.GT() | exp.GTE():
                pairs = [(part.this, part.expression)]
            case exp.LT() | exp.LTE():
                pairs = [(part.expression, part.this)]
            case exp.Between() if not part.args.get("symmetric"):
                pairs = [(part.this, part.args["low"]), (part.args["high"], part.this)]
            case _:
                pairs = []
        for greater, less in pairs:
            yield _without_shift(greater.unnest(), less.unnest())


def _without_shift(greater: exp.Expr, less: exp.Expr) -> tuple[exp.Expr, exp.Expr]:
    """Return the comparison without the constant that is added to the greater side, or taken from it."""
    if not isinstance(greater, exp.Add | exp.Sub) or greater.expression.find(exp.Column):
        return greater, less
    opposite = exp.Sub if isinstance(greater, exp.Add) else exp.Add
    shifted = opposite(this=less.copy(), expression=greater.expression.copy())
    shifted.type = less.type
    return greater.this.unnest(), shifted


def _is_one_of(trace: tuple[exp.Expr, Scan], others: _Traces) -> bool:
    def meaning(expression: exp.Expr, scan: Scan) -> tuple[int, exp.Expr]:
        assert scan.relation.watermark is not None
        name = scan.relation.watermark.column
        return scan.relation.id, _put(expression, {f"{scan.alias}.{name}": column(name)})

    return meaning(*trace) in [meaning(*each) for each in others]


def _put(expression: exp.Expr, values: dict[str, exp.Expr]) -> exp.Expr:
    return expression.transform(
        lambda part: values[part.name].copy() if isinstance(part, exp.Column) and part.name in values else part
    )


def _is_monotone(expression: exp.Expr) -> bool:
    if isinstance(expression, exp.Column):
        return True
    if isinstance(expression, exp.Cast | exp.Paren):
        return _is_monotone(expression.this)
    if isinstance(expression, exp.Add | exp.Sub) and is_since(FINAL_JOINS):
        return _is_monotone(expression.this) and not expression.expression.find(exp.Column)
    call = as_call(expression)
    if call is None or call[0] not in _MONOTONE:
        return False
    moving = [argument for argument in call[1] if argument.find(exp.Column)]
    return len(moving) == 1 and _is_monotone(moving[0])


def _closed_only(
    node: Node, key: str, traces: _Traces, whole: _Whole, is_below: type[exp.Predicate] = exp.LT
) -> Filter:
    """Return the rows whose key is below each of the expressions at the watermarks."""
    type_ = next(f.type for f in node.fields if f.name == key)
    for place, (expression, scan) in enumerate(traces):
        bound = Item("_bound" if place == 0 else f"_bound_{place}", expression, type_)
        at_watermark = _at_watermark(scan, bound, f"i{next(whole.numbers)}")
        condition = is_below(this=typed_column(key, type_), expression=typed_column(bound.name, type_))
        node = Filter(Join(node, at_watermark, None), condition)
    assert isinstance(node, Filter)
    return node


def _at_watermark(scan: Scan, bound: Item, number: str) -> Project:
    """Return the row with the value that an expression over a scan's watermark column has at the watermark."""
    watermark = scan.relation.watermark
    assert watermark is not None
    again = replace(scan, input=number, alias="_watermark", columns=(watermark.column, *_keys(scan, watermark.column)))
    time = next(f for f in again.fields if f.name == f"_watermark.{watermark.column}")
    highest = Field("_highest", time.type)
    latest = Aggregate(
        Project(again, (Item("_time", typed_column(time.name, time.type), time.type),)),
        (),
        (count_rows_call(), Call(highest.name, "max", "_time", time.type)),
    )
    moment: exp.Expr = typed_column(highest.name, time.type)
    if watermark.delay:
        delay = exp.Literal.number(-watermark.delay)
        delay.type = exp.DataType.build("bigint")
        if time.type.is_integer:
            moment = exp.Add(this=moment, expression=delay)
        else:
            moment = exp.Anonymous(this=SHIFTED, expressions=[moment, delay])
        moment.type = exp.DataType.build(time.type.duckdb(), dialect="duckdb")
    at_watermark = _put(bound.expression, {f"{scan.alias}.{watermark.column}": moment})
    return Project(latest, (replace(bound, expression=at_watermark),))


def _keys(scan: Scan, watermark: str) -> tuple[str, ...]:
    return tuple(name for name in scan.relation.key if name != watermark)
