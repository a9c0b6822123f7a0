"""Spells json for DuckDB, which has a type with texts for it (`planner.functions.written_json`).

Its parts are found in the jsonb of the text, so that a part has jsonb's spaces.
"""

from __future__ import annotations

import json

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import INTEGER, JSON, JSONB, NUMERIC, VARCHAR, Type
from sparkwave.planner.batch.pg_casts import nested_items
from sparkwave.planner.functions.documents import in_document
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.scalar_functions import ELEMENT, duckdb_call, of_each, ours
from sparkwave.planner.functions.struct_spelling import field_at, is_there
from sparkwave.planner.functions.typed import data_type, type_of_part
from sparkwave.planner.parse.trees import position_of

_Args = list[exp.Expr]
_NUMBERS = ("numeric", "real", "double precision")


def document(value: exp.Expr) -> exp.Expr:
    """Return json, which may be given as text, as the jsonb from which its parts are taken."""
    return duckdb_call("json", value) if value.is_string else ours("document", value)


def takes_field(node: exp.Expr) -> bool:
    """Return whether the right side of `->` or `->>` is the name of a field, written out."""
    path = node.expression
    return isinstance(path, exp.JSONPath) and not isinstance(path.expressions[-1], exp.JSONPathSubscript)


def of_jsonb(value: exp.Expr) -> exp.Expr:
    """Return jsonb as json."""
    return ours("json_of_jsonb", value)


def to_json(arguments: _Args) -> exp.Expr:
    """Return to_json of one value. Raises Error 42883 for pretty printing."""
    if len(arguments) != 1:
        raise Error("function to_json with more than one argument does not exist", errors.UNDEFINED_FUNCTION)
    return _as_json(_text(arguments[0]))


def json_array(arguments: _Args) -> exp.Expr:
    """Return json_build_array: `[1, 2]`."""
    return _as_json(_joined("[", [[_text_or_null(argument)] for argument in arguments], "]"))


def json_object(arguments: _Args) -> exp.Expr:
    """Return json_build_object: `{"a" : 1, "b" : 2}`. Raises Error 22023 for a key without a value or that is none."""
    if len(arguments) % 2:
        hint = "The arguments of json_build_object() must consist of alternating keys and values."
        raise Error("argument list must have even number of elements", errors.INVALID_PARAMETER_VALUE, hint=hint)
    fields = []
    for place in range(0, len(arguments), 2):
        key, value = arguments[place : place + 2]
        type_ = type_of_part(key)
        if type_ is not None and (type_.dimensions or type_.fields or type_ in (JSON, JSONB)):
            message = "key value must be scalar, not array, composite, or json"
            raise Error(message, errors.INVALID_PARAMETER_VALUE)
        name = _text(key) if key.is_string else ours("key_in_json", key, exp.Literal.number(place + 1))
        fields.append([name, exp.Literal.string(" : "), _text_or_null(value)])
    return _as_json(_joined("{", fields, "}"))


def json_of_items(arguments: _Args) -> exp.Expr:
    """Return json_agg from an array of the values; arrays and rows begin a line each."""
    [array] = arguments
    type_ = type_of_part(array)
    element = exp.column(ELEMENT)
    of_lines = False
    if type_ is not None and type_.dimensions:
        element.type = data_type(type_.element)
        of_lines = bool(type_.element.dimensions or type_.element.fields)
    return ours("json_of_items", of_each(array, _text(element)), exp.Literal.string(", \n " if of_lines else ", "))


def json_field(arguments: _Args) -> exp.Expr:
    """Return a field of json_object_agg."""
    key, value = arguments
    return ours("json_field", exp.cast(ours("to_text", key), "VARCHAR", dialect="duckdb"), _text(value))


def _text(value: exp.Expr) -> exp.Expr:
    """Return the text that a value has in json, NULL for NULL."""
    type_ = type_of_part(value)
    if type_ is None and not value.is_string:
        return ours("text_in_json", value)
    if type_ == JSON:
        return exp.cast(value, "VARCHAR", dialect="duckdb")
    if type_ == JSONB:
        return ours("jsonb_text", value)
    if type_ is not None and (type_.dimensions or type_.fields) and _keeps_text(type_):
        return _text_of_parts(value, type_)
    if type_ is not None and type_.name in _NUMBERS and not type_.dimensions:
        return exp.cast(in_document(value), "VARCHAR", dialect="duckdb")
    return exp.cast(duckdb_call("to_json", in_document(value)), "VARCHAR", dialect="duckdb")


def _keeps_text(type_: Type) -> bool:
    """Return whether an array or row has values whose texts DuckDB would change: documents, and 1.50."""
    if type_.name == "map":
        return False
    return type_.name in ("json", "jsonb", *_NUMBERS) or any(_keeps_text(field) for _, field in type_.fields)


def _text_of_parts(value: exp.Expr, type_: Type) -> exp.Expr:
    """Return the text of an array or row whose parts keep their own texts: `[{"a": 1},{"a": 2}]`, `[1.50]`."""
    if type_.dimensions:
        element = exp.column(ELEMENT)
        element.type = data_type(type_.element)
        listed = ours("json_of_items", of_each(value, _text(element)), exp.Literal.string(","))
        return exp.cast(listed, "VARCHAR", dialect="duckdb")
    parts: _Args = []
    for place, (name, field) in enumerate(type_.fields, start=1):
        part = field_at(value, place)
        part.type = data_type(field)
        key = f"{',' if parts else ''}{json.dumps(name, ensure_ascii=False)}:"
        parts += [exp.Literal.string(key), _text_or_null(part)]
    text = duckdb_call("concat", exp.Literal.string("{"), *parts, exp.Literal.string("}"))
    return exp.Case().when(is_there(value), text)


def _text_or_null(value: exp.Expr) -> exp.Expr:
    return duckdb_call("coalesce", _text(value), exp.Literal.string("null"))


def _joined(start: str, parts: list[_Args], end: str) -> exp.Expr:
    """Return the concatenation of texts, with commas between the parts."""
    texts: _Args = [exp.Literal.string(start)]
    for number, part in enumerate(parts):
        texts += [*([exp.Literal.string(", ")] if number else []), *part]
    return duckdb_call("concat", *texts, exp.Literal.string(end))


def _as_json(text: exp.Expr) -> exp.Expr:
    """Return a text that is known to be json as json."""
    return ours("json_from_lake", text)


def cast_of_json(node: exp.Expr, source: Known, target: Known, lenient: bool) -> exp.Expr | None:
    """Return a cast to or from json, or arrays of it; None where DuckDB's own does it.

    Raises Error 42846 for a type that has no such cast.
    """
    value = node.this
    if target is None or source == target or target.is_text:
        return None
    if lenient and source is None and isinstance(value, exp.Column | exp.AggFunc | exp.Window):
        return None  # the planner's own cast, to the type that it has
    if target.dimensions:
        return _arrays(value, source, target, lenient)
    return _one(value, source, target, lenient)


def _one(value: exp.Expr, source: Known, target: Type, lenient: bool) -> exp.Expr:
    if source == JSON and target == JSONB:
        return ours("jsonb_in", value)
    if source == JSONB and target == JSON:
        return of_jsonb(value)
    if isinstance(value, exp.Literal) and not value.is_string:
        source = INTEGER if value.is_int else NUMERIC
    if target != JSON or not (source is None or source.is_text):
        message = f"cannot cast type {source.shown if source is not None else 'unknown'} to {target.shown}"
        raise Error(message, errors.CANNOT_COERCE, position=position_of(value))
    is_text = source is not None or value.is_string or isinstance(value.unnest(), exp.Parameter | exp.Placeholder)
    made = ours("json_in" if is_text else "as_json", value)
    return duckdb_call("try", made) if lenient else made


def _arrays(value: exp.Expr, source: Known, target: Type, lenient: bool) -> exp.Expr | None:
    """Return an array whose items are cast one by one."""
    items = nested_items(value)
    if items is not None:
        return _listed(items, target, lenient)
    if isinstance(value, exp.Array):
        return exp.Array(expressions=[_item(item, source, target, lenient) for item in value.expressions])
    if source is not None and not source.dimensions:
        return None  # a text, whose items are cast one by one, too
    if source is None and isinstance(value.unnest(), exp.Parameter | exp.Placeholder):
        source = Type(VARCHAR.name, dimensions=target.dimensions)
        value = exp.cast(value, data_type(source))
    if source is not None and source.element == VARCHAR and target.element == VARCHAR:
        return None
    element = exp.column(ELEMENT)
    return of_each(value, _item(element, source, target, lenient))


def _item(item: exp.Expr, source: Known, target: Type, lenient: bool) -> exp.Expr:
    own = source.element if source is not None and source.dimensions and not item.is_string else None
    if isinstance(item, exp.Null) or own == target.element:
        return item
    if target.element.dimensions:
        return _arrays(item, own, target.element, lenient) or item
    if target.element.is_text:
        return exp.cast(item, data_type(target.element))
    return _one(item, own, target.element, lenient)


def _listed(items: list, target: Type, lenient: bool) -> exp.Expr:
    """Return the array of the texts of an array's literal, nested in lists."""
    return exp.Array(
        expressions=[
            exp.null()
            if item is None
            else _listed(item, target.element, lenient)
            if isinstance(item, list)
            else _one(exp.Literal.string(item), None, target.element, lenient)
            for item in items
        ]
    )
