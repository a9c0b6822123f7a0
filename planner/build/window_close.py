"""EMIT ON WINDOW CLOSE: a group appears when the watermark has passed its key, and is final then.

The watermark of a table is its highest time less a delay; late rows never get into the table. So the view is its query
with one further condition: the key is below the value that it would have at the watermark. RisingWave's StreamHashAgg
and StreamEowcSort have the same rule (docs "Emit on window close", `GenericRank` of a watermark through TUMBLE).
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.build.builder import typed_column
from sparkwave.planner.build.time_windows import SHIFTED
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.plan.nodes import (
    Aggregate,
    Call,
    Field,
    Filter,
    Item,
    Join,
    Node,
    Project,
    Scan,
    Unnest,
    column,
    count_rows_call,
    walk,
    with_inputs,
)

# Functions that keep the order of times, so that they can be applied to the watermark.
_MONOTONE = frozenset({"tumble_start", "shift_time", "date_trunc"})


def on_window_close(root: Project) -> Project:
    """Return the plan of a query that shows closed windows only.

    Raises Error 0A000 without a watermark to close them.
    """
    return replace(root, input=_closing(root.input, root))


def _closing(node: Node, root: Node) -> Node:
    if isinstance(node, Project | Filter):
        return with_inputs(node, (_closing(node.inputs[0], root),))
    if isinstance(node, Aggregate):
        for key in node.keys:
            traced = _traced(node.input, column(key))
            if traced is not None:
                return _closed_only(node, key, *traced, root)
    raise Error(
        "Emit-On-Window-Close mode requires a watermark column in GROUP BY.",
        errors.FEATURE_NOT_SUPPORTED,
        hint="Group by window_start of a TUMBLE or HOP over a table with a WATERMARK, or by its watermark column.",
    )


def _traced(node: Node, expression: exp.Expr) -> tuple[exp.Expr, Scan] | None:
    """Return the expression over a scan's watermark column, and the scan, if it keeps the column's order; else None."""
    used = {reference.name for reference in expression.find_all(exp.Column)}
    match node:
        case Scan(relation=relation):
            watermark = relation.watermark
            is_own = watermark is not None and used == {f"{node.alias}.{watermark.column}"}
            return (expression, node) if is_own and _is_monotone(expression) else None
        case Project(items=items):
            inner = {item.name: item.expression for item in items}
            return _traced(node.input, _put(expression, inner))
        case Filter():
            return _traced(node.input, expression)
        case Unnest(array=exp.GenerateSeries() as series):
            # Of HOP's windows of a time, the earliest is the last to take rows below the watermark.
            return _traced(node.input, _put(expression, {node.element.name: series.args["end"]}))
        case Join():
            for side in node.inputs:
                if used and used <= {f.name for f in side.fields}:
                    return _traced(side, expression)
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


def _closed_only(node: Aggregate, key: str, expression: exp.Expr, scan: Scan, root: Node) -> Node:
    watermark = scan.relation.watermark
    assert watermark is not None
    number = 1 + max(int(part.input.removeprefix("i")) for part in walk(root) if isinstance(part, Scan))
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
    if watermark.delay_us:
        delay = exp.Literal.number(-watermark.delay_us)
        delay.type = exp.DataType.build("bigint")
        moment = exp.Anonymous(this=SHIFTED, expressions=[moment, delay])
        moment.type = exp.DataType.build(time.type.duckdb(), dialect="duckdb")
    at_watermark = _put(expression, {f"{scan.alias}.{watermark.column}": moment})
    type_ = next(f.type for f in node.fields if f.name == key)
    bound = Project(latest, (Item("_bound", at_watermark, type_),))
    condition = exp.LT(this=typed_column(key, type_), expression=typed_column("_bound", type_))
    return Filter(Join(node, bound, None), condition)


def _keys(scan: Scan, watermark: str) -> tuple[str, ...]:
    return tuple(name for name in scan.relation.key if name != watermark)
