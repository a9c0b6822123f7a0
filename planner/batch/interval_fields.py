"""Texts that become intervals of columns with fields, of whose last a number alone is: '5' of `interval day`."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.modifiers import fields_of, modifier_of_length
from sparkwave.catalog.types import INTERVAL
from sparkwave.planner.parse.time_types import interval_literal


def modifier_of_column(column: Column, target: Relation) -> int | None:
    """Return PostgreSQL's modifier of a column of intervals with fields; None for any other column."""
    length = target.length_of(column) if column.type == INTERVAL else None
    modifier = modifier_of_length(length) if length is not None else None
    return modifier if modifier is not None and fields_of(modifier) else None


def interval_in_fields(text: str, modifier: int) -> str:
    """Return the text of an interval, as DuckDB reads it. Raises Error 22007, 22008 or 22015."""
    return interval_literal(exp.Literal.string(text), modifier).name


def in_fields(value: exp.Expr, column: Column, target: Relation) -> exp.Expr:
    """Return a value of a column, of which a text is read by the column's fields."""
    text, modifier = value.unnest(), modifier_of_column(column, target)
    return interval_literal(text, modifier) if modifier is not None and text.is_string else value
