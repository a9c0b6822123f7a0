"""Replaces `a - b` of documents and of moments by calls, because the operator does not tell DuckDB the operands' types.

DuckDB's difference of two times with time zone counts days of the session's time zone, of which not all have 24 hours.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import DATE, JSON, JSONB, TIMESTAMP, TIMESTAMPTZ
from sparkwave.planner.batch.typer import Columns, NameTables, Typer, types_in
from sparkwave.planner.bind.output_names import NO_NAME
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.typed import data_type, sql_type

_WITH_CALL = (JSON, JSONB, TIMESTAMPTZ)
_MOMENTS = frozenset({DATE, TIMESTAMP, TIMESTAMPTZ})
_MAKE_MOMENTS = frozenset({"clock_timestamp", "make_timestamptz", "statement_timestamp", "to_timestamp"})


def with_differences(tree: exp.Expr, typed: Typer) -> exp.Expr:
    """Replace such differences in an untyped tree, changed in place; it is typed if there may be any."""
    found = [node for node in tree.find_all(exp.Sub) if not isinstance(node.expression, exp.Interval)]
    if not found or not _may_have(tree, typed.name_tables):
        return tree
    types = types_in(tree, typed)
    for node in found:
        call = _call(node, types.get(id(node.this)), types.get(id(node.expression)))
        if call is not None:
            call.meta["name"] = NO_NAME
            node.replace(call)
    return tree


def _call(node: exp.Sub, left: Known, right: Known) -> exp.Expr | None:
    sides = [node.this, node.expression]
    if left == JSONB:
        return exp.Anonymous(this="jsonb_without", expressions=sides)
    if right == TIMESTAMPTZ and node.this.is_string:
        left = DATE
    if TIMESTAMPTZ not in (left, right) or not _MOMENTS.issuperset((left, right)):
        return None
    moments = (
        side if type_ == TIMESTAMPTZ else exp.cast(side, data_type(TIMESTAMPTZ))
        for side, type_ in zip(sides, (left, right), strict=True)
    )
    return exp.Anonymous(this="between_moments", expressions=list(moments))


def _may_have(tree: exp.Expr, name_tables: NameTables) -> bool:
    makers = tree.find_all(exp.DataType, exp.CurrentTimestamp, exp.AtTimeZone, exp.Anonymous)
    if any(map(_makes_one, makers)):
        return True
    tables: dict[str, Columns] = {}
    name_tables(tree.copy(), tables)
    return any(type_ in _WITH_CALL for columns in tables.values() for type_ in columns.values())


def _makes_one(node: exp.Expr) -> bool:
    if isinstance(node, exp.DataType):
        return sql_type(node) in _WITH_CALL
    return not isinstance(node, exp.Anonymous) or node.name.lower() in _MAKE_MOMENTS
