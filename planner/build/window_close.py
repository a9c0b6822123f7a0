"""EMIT ON WINDOW CLOSE: a group, or a row, appears when the watermark has passed its time, and is final then.

The watermark of a table is its highest time less a delay; late rows never get into the table. So the view is its query
with one further condition: the key is below the value that it would have at the watermark. RisingWave's StreamHashAgg
and StreamEowcSort have the same rule (docs "Emit on window close", `GenericRank` of a watermark through TUMBLE). A
materialized view that is read has the watermarks of the tables that its own query reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Relation
from sparkwave.catalog.types import DATE, INTERVAL, TIMESTAMP, Type
from sparkwave.planner.bind.binder import data_type
from sparkwave.planner.build.builder import added, picked, typed, typed_column
from sparkwave.planner.build.time_windows import SHIFTED
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.parse.calls import GAP
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
    count_rows_call,
    walk,
    with_inputs,
)

# Functions that keep the order of times, so that they can be applied to the watermark.
_MONOTONE = frozenset({"tumble_start", "shift_time", "date_trunc"})
# Fields with the last value of a row's session, and that value plus the gap.
_LAST, _END = "_last_of_session", "_end_of_session"


# Gives the plan of a materialized view's query, whose outputs have the names of the view's columns; else None.
RowsOf = Callable[[Relation], Project | None]


@dataclass(frozen=True)
class _Whole:
    """The whole plan, and the plans of the views that it reads."""

    root: Node
    rows_of: RowsOf


def on_window_close(root: Project, rows_of: RowsOf) -> Project:
    """Return the plan of a query that shows closed windows only.

    Raises Error 0A000 without a watermark to close them.
    """
    return replace(root, input=_closing(root.input, _Whole(root, rows_of)))


def _closing(node: Node, whole: _Whole) -> Node:
    found: Node | None = None
    match node:
        case Project() | Filter():
            return with_inputs(node, (_closing(node.inputs[0], whole),))
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
            found = _closed(node, [field.name for field in node.fields], whole)
    if found is None:
        raise Error(
            "Emit-On-Window-Close mode requires a watermark column in GROUP BY."
            if isinstance(node, Aggregate)
            else "The query cannot be executed in Emit-On-Window-Close mode.",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Group, partition or order by window_start of a TUMBLE or HOP over a table with a WATERMARK, "
            "or by its watermark column.",
        )
    return found


def _closed(node: Node, names: Iterable[str], whole: _Whole) -> Filter | None:
    """Return the rows whose first field with a watermark is below it; None if no field has one."""
    source = node.input if isinstance(node, Aggregate | OverWindow | TopN) else node
    for name in names:
        traced = _traced(source, column(name), whole)
        if traced is not None:
            return _closed_only(node, name, *traced, whole)
    return None


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
    traced = _traced(source, column(name), whole, is_deep=True)
    if traced is None:
        return None
    expression, scan = traced
    type_ = next(field.type for field in source.fields if field.name == name)
    end_type = TIMESTAMP if type_ == DATE else type_
    if end_type != type_:
        expression = typed(exp.cast(expression, data_type(end_type)), end_type)
    end = typed(exp.Add(this=typed_column(_LAST, type_), expression=_gap(gap, type_)), end_type)
    ends = added(rows, [Item(_END, end, end_type)])
    return picked(_closed_only(ends, _END, expression, scan, whole, exp.LTE), node.fields)


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


def _traced(node: Node, expression: exp.Expr, whole: _Whole, is_deep: bool = False) -> tuple[exp.Expr, Scan] | None:
    """Return the expression over a scan's watermark column, and the scan, if it keeps the column's order; else None.

    If `is_deep`, also through groups with the expression as a key, and through windows of earlier rows in its order,
    which those of a materialized view that is read always are.
    """
    used = {reference.name for reference in expression.find_all(exp.Column)}
    match node:
        case Scan(relation=relation):
            watermark = relation.watermark
            if watermark is None:
                below = whole.rows_of(relation)
                outputs = {f"{node.alias}.{item.name}": item.expression for item in below.items} if below else {}
                # The rows of a group or window below the watermark are final.
                return _traced(below.input, _put(expression, outputs), whole, is_deep=True) if below else None
            is_own = used == {f"{node.alias}.{watermark.column}"}
            return (expression, node) if is_own and _is_monotone(expression) else None
        case Project(items=items):
            inner = {item.name: item.expression for item in items}
            return _traced(node.input, _put(expression, inner), whole, is_deep)
        case Filter():
            return _traced(node.input, expression, whole, is_deep)
        case Unnest(array=exp.GenerateSeries() as series):
            # Of HOP's windows of a time, the earliest is the last to take rows below the watermark.
            return _traced(node.input, _put(expression, {node.element.name: series.args["end"]}), whole, is_deep)
        case Unnest():
            is_passed = used <= {f.name for f in node.input.fields}
            return _traced(node.input, expression, whole, is_deep) if is_passed else None
        case Join():
            for side in node.inputs:
                if used and used <= {f.name for f in side.fields}:
                    return _traced(side, expression, whole, is_deep)
        case Aggregate(keys=keys) if is_deep and used <= set(keys):
            return _traced(node.input, expression, whole, is_deep)
        case OverWindow(calls=calls) if is_deep and used <= {f.name for f in node.input.fields}:
            is_of_earlier = all(_rows_following(call) == 0 and set(_ascending(call.order)) == used for call in calls)
            return _traced(node.input, expression, whole, is_deep) if is_of_earlier else None
    return None


def _put(expression: exp.Expr, values: dict[str, exp.Expr]) -> exp.Expr:
    return expression.transform(
        lambda part: values[part.name].copy() if isinstance(part, exp.Column) and part.name in values else part
    )


def _is_monotone(expression: exp.Expr) -> bool:
    if isinstance(expression, exp.Column):
        return True
    if isinstance(expression, exp.Cast | exp.Paren):
        return _is_monotone(expression.this)
    call = as_call(expression)
    if call is None or call[0] not in _MONOTONE:
        return False
    moving = [argument for argument in call[1] if argument.find(exp.Column)]
    return len(moving) == 1 and _is_monotone(moving[0])


def _closed_only(
    node: Node, key: str, expression: exp.Expr, scan: Scan, whole: _Whole, is_below: type[exp.Predicate] = exp.LT
) -> Filter:
    watermark = scan.relation.watermark
    assert watermark is not None
    number = 1 + max(int(part.input.removeprefix("i")) for part in walk(whole.root) if isinstance(part, Scan))
    again = replace(
        scan, input=f"i{number}", alias="_watermark", columns=(watermark.column, *_keys(scan, watermark.column))
    )
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
    at_watermark = _put(expression, {f"{scan.alias}.{watermark.column}": moment})
    type_ = next(f.type for f in node.fields if f.name == key)
    bound = Project(latest, (Item("_bound", at_watermark, type_),))
    condition = is_below(this=typed_column(key, type_), expression=typed_column("_bound", type_))
    return Filter(Join(node, bound, None), condition)


def _keys(scan: Scan, watermark: str) -> tuple[str, ...]:
    return tuple(name for name in scan.relation.key if name != watermark)
