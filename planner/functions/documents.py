"""Values in the form that they have in json and jsonb, where DuckDB's own form differs."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import JSON, QUOTIENT, Type
from sparkwave.planner.functions.map_spelling import of_entries
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.scalar_functions import ELEMENT, duckdb_call, of_each, ours
from sparkwave.planner.functions.struct_spelling import field_at, is_there
from sparkwave.planner.functions.typed import type_of_part

# Marks a cast of jsonb in a tree without types.
OF_DOCUMENT = "of document"
_BUILDERS = frozenset(
    {"to_jsonb", "jsonb_build_array", "jsonb_build_object", "to_json", "json_build_array", "json_build_object"}
)
_AGGREGATES = frozenset({"jsonb_agg", "json_agg", "jsonb_object_agg", "json_object_agg"})
_FLOATS = ("real", "double precision", "numeric")
_MOMENTS = ("timestamp without time zone", "timestamp with time zone")
_TEXTS = ("date", "interval", "bytea")


def makes_document(node: exp.Expr) -> bool:
    """Return whether a node calls a function or aggregate whose arguments become json or jsonb."""
    if isinstance(node, exp.JSONArrayAgg | exp.JSONObjectAgg | exp.JSONBObjectAgg):
        return True
    call = as_call(node)
    if call is not None:
        return call[0] in _BUILDERS
    return isinstance(node, exp.Anonymous) and node.name.lower() in _AGGREGATES


def in_document(value: exp.Expr) -> exp.Expr:
    """Return the expression from which DuckDB makes the JSON of a value, whose type may be known."""
    type_ = type_of_part(value)
    return value if type_ is None or isinstance(value, exp.Literal) else _in_document(value, type_)


def _in_document(value: exp.Expr, type_: Type) -> exp.Expr:
    if type_.dimensions:
        element = exp.column(ELEMENT)
        made = _in_document(element, type_.element)
        return value if made is element else of_each(value, made)
    if type_.is_map:
        return of_entries(value, type_, type_, lambda part, own, _: _in_document(part, own) if own else part)
    if type_.fields:
        parts = [
            part
            for place, (name, field) in enumerate(type_.fields, start=1)
            for part in (exp.Literal.string(name), _in_document(field_at(value, place), field))
        ]
        return exp.Case().when(is_there(value), duckdb_call("json_object", *parts))
    if type_ == QUOTIENT:
        return exp.cast(ours("quotient_text", value), "JSON", dialect="duckdb")
    if type_.name in _FLOATS:
        return ours("number_in_json", value)
    if type_ == JSON:
        return ours("document", value)
    if type_.name in _MOMENTS:
        return ours("time_in_json", value)
    return ours("to_text", value) if type_.name in _TEXTS else value
