"""Gives arrays, rows and maps of intervals a form that is the same for equal ones, as `justify_interval` gives one."""

from __future__ import annotations

import sqlglot
from sqlglot import exp

from sparkwave.catalog.types import INTERVAL, Type
from sparkwave.planner.functions.scalar_functions import OURS, worked_out_once
from sparkwave.planner.functions.typed import data_type, type_of_part

_WHOLE = "whole"


def holds_intervals(type_: Type) -> bool:
    """Return whether a type is interval, an array of it, or a row or map with it."""
    return type_.name == INTERVAL.name or any(holds_intervals(field) for _, field in type_.fields)


def justified(value: exp.Expr) -> exp.Expr:
    """Return the value with each of its intervals justified."""
    type_ = type_of_part(value)
    if type_ is None or not holds_intervals(type_):
        return value
    made = sqlglot.parse_one(_justified(type_, _WHOLE), read="duckdb")

    def of(once: exp.Expr) -> exp.Expr:
        for place in [node for node in made.find_all(exp.Column) if node.name == _WHOLE and not node.table]:
            place.replace(once.copy())
        return made

    # A row of ROW(…) has no names in DuckDB.
    return worked_out_once(exp.cast(value, data_type(type_)) if type_.fields else value, of)


def _justified(type_: Type, value: str) -> str:
    if not holds_intervals(type_):
        return value
    return f"memory.{OURS}.justify_interval({value})" if type_ == INTERVAL else type_.over_parts(value, _justified)
