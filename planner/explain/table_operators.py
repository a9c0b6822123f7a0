"""The operators of a table or source, which have no plan: RisingWave's, as EXPLAIN CREATE TABLE prints them."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from sparkwave.catalog.model import IGNORE, OVERWRITE, ROW_ID, UPDATE_IF_NOT_NULL
from sparkwave.planner.explain.expressions import show
from sparkwave.planner.explain.operator_tree import Operator, materialize, show_distribution
from sparkwave.planner.plan.distribution import by
from sparkwave.planner.statements import CreateTable

_CONFLICTS = {OVERWRITE: "Overwrite", IGNORE: "IgnoreConflict", UPDATE_IF_NOT_NULL: "DoUpdateIfNotNull"}


def table_operators(statement: CreateTable) -> Operator:
    """Return RisingWave's plan of a table: the rows of writes and of sinks into it, by its key."""
    key = statement.primary_key or (ROW_ID,)
    visible = tuple(column.name for column in statement.columns)
    columns = visible if statement.primary_key else (*visible, ROW_ID)
    there = ("dist", show_distribution(by(key), {}))
    writes = Operator("StreamDml", (("columns", columns),), (Operator("StreamSource"),))
    sent = Operator("StreamExchange", (there,), (writes,), positions=tuple(str(columns.index(name)) for name in key))
    rows = Operator("StreamUnion", (("all", "true"),), (sent, Operator("StreamUpstreamSinkUnion")))
    mark = statement.watermark
    if mark is not None:
        column = next(column for column in statement.columns if column.name == mark.column)
        seconds = exp.Interval(this=exp.Literal.string(f"{mark.delay / 1e6:g}"), unit=exp.Var(this="second"))
        delay = str(mark.delay) if column.type.is_integer else show(seconds, {})
        desc = f"Desc {{ column: {mark.column}, expr: ({mark.column} - {delay}) }}"
        rows = Operator(
            "StreamWatermarkFilter",
            (("watermark_descs", (desc,)), ("output_watermarks", (f"[{mark.column}]",))),
            (rows,),
        )
    if not statement.primary_key:
        rows = Operator("StreamRowIdGen", (("row_id_index", str(len(visible))),), (rows,))
    shown = tuple(name if name in visible else f"{name}(hidden)" for name in columns)
    conflict = _CONFLICTS[statement.conflict.action]
    if statement.append_only and not statement.primary_key:
        conflict = "NoCheck"
    made = materialize(shown, key, conflict, rows)
    if mark is not None:
        made = replace(made, fields=(*made.fields, ("watermark_columns", (mark.column,))))
    return made
