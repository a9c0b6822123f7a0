"""Spells maps for DuckDB, whose own MAP has any order; here the entries are in the order of their keys.

So equal maps are equal values, and have one text. `Spell` is as in `struct_spelling`.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import JSONB, VARCHAR, Type
from sparkwave.planner.functions.map_types import map_of_both, map_with
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.scalar_functions import ELEMENT, duckdb_call, of_each, ours
from sparkwave.planner.functions.typed import data_type, type_of_part
from sparkwave.planner.functions.undefined import undefined
from sparkwave.planner.parse.lambdas import ElementLambda
from sparkwave.planner.parse.trees import position_of

_Args = list[exp.Expr]
Spell = Callable[[exp.Expr, Known, Type], exp.Expr]
Printed = Callable[[exp.Expr, Type], exp.Expr]
_PARTS = ("key", "value")


def cast_to_map(value: exp.Expr, source: Known, target: Type, spell: Spell) -> exp.Expr | None:
    """Return a value as a map or an array of maps; None where it is one. Raises Error 42846."""
    if source == target or isinstance(value.unnest(), exp.Null | exp.Parameter):
        return None
    if _is_empty(value):
        return exp.cast(exp.Map(keys=exp.Array(), values=exp.Array()), data_type(target))
    if target.dimensions:
        if isinstance(value, exp.Array):
            element = source.element if source is not None and source.dimensions else None
            return exp.Array(expressions=[spell(item, element, target.element) for item in value.expressions])
        if source is None or not source.dimensions:
            raise _cannot(value, source, target)
        return of_each(value, spell(exp.column(ELEMENT), source.element, target.element))
    if source is None and not isinstance(value.unnest(), exp.Literal | exp.Column):
        return None
    if source is None or not source.is_map:
        raise _cannot(value, source, target)
    return of_entries(value, source, target, spell)


def _is_empty(value: exp.Expr) -> bool:
    """Return whether a value, spelled already, is `MAP {}`."""
    call = value.unnest()
    inner = call.expression if isinstance(call, exp.Dot) else call
    is_made = isinstance(inner, exp.Anonymous) and inner.name == "map_from_key_values"
    return is_made and all(isinstance(array, exp.Array) and not array.expressions for array in inner.expressions)


def of_entries(value: exp.Expr, source: Type, target: Type, made: Spell) -> exp.Expr:
    """Return a map of the keys and values that `made` makes of each entry's."""
    element = exp.column(ELEMENT)
    parts = zip(_PARTS, source.fields, target.fields, strict=True)
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=made(part(element, name), own, wanted))
        for name, (_, own), (_, wanted) in parts
    ]
    entries = of_each(duckdb_call("map_entries", value), exp.Struct(expressions=fields))
    return ours("map_from_entries", entries)


def part(entry: exp.Expr, name: str) -> exp.Expr:
    """Return the key or the value of an entry."""
    return duckdb_call("struct_extract", entry.copy(), exp.Literal.string(name))


def text_of_map(value: exp.Expr, type_: Type, to_text: Printed) -> exp.Expr:
    """Return the text of a map: `{a:1,b:NULL}`."""
    element = exp.column(ELEMENT)
    key, held = (to_text(part(element, name), own) for name, own in type_.fields)
    entry = duckdb_call("concat", key, exp.Literal.string(":"), exp.Coalesce(this=held, expressions=[_text("NULL")]))
    return ours("_map_text", of_each(duckdb_call("map_entries", value), entry))


def _text(text: str) -> exp.Expr:
    return exp.Literal.string(text)


def _cannot(value: exp.Expr, source: Known, target: Type) -> Error:
    known = source.shown if source is not None else "unknown"
    message = f"cannot cast type {known} to {target.shown}"
    return Error(message, errors.CANNOT_COERCE, position=position_of(value))


def value_at(map_: exp.Expr, key: exp.Expr) -> exp.Expr:
    """Return the value of a key, NULL where the map has none."""
    return ours("map_access", map_, _in_type_of_key(map_, key))


def _in_type_of_key(map_: exp.Expr, key: exp.Expr) -> exp.Expr:
    type_ = type_of_part(map_)
    if type_ is None or not type_.is_map or type_of_part(key) == type_.fields[0][1]:
        return key
    return exp.cast(key, data_type(type_.fields[0][1]))


def _at_key(name: str) -> Callable[[_Args], exp.Expr]:
    return lambda arguments: ours(name, arguments[0], _in_type_of_key(*arguments[:2]), *arguments[2:])


def map_functions(spell: Callable[[bool], Spell]) -> dict[str, Callable[[_Args], exp.Expr]]:
    """Return the builders of the functions of maps that need the types of their arguments, by name."""

    def wide(value: exp.Expr, type_: Known) -> exp.Expr:
        own = type_of_part(value)
        return value if type_ is None or own is None else spell(False)(value, own, type_)

    def put(arguments: _Args) -> exp.Expr:
        type_ = map_with(tuple(map(type_of_part, arguments)))
        map_, key, value = wide(arguments[0], type_), *arguments[1:]
        if type_ is not None:
            value = exp.cast(value, data_type(type_.fields[1][1]))
        return ours("map_insert", map_, _in_type_of_key(arguments[0], key), value)

    def joined(arguments: _Args) -> exp.Expr:
        type_ = map_of_both(tuple(map(type_of_part, arguments)))
        return ours("map_cat", *(wide(argument, type_) for argument in arguments))

    def populated(arguments: _Args) -> exp.Expr:
        base, document = arguments
        type_ = type_of_part(base)
        document = duckdb_call("json", document) if document.is_string else document
        value = type_.fields[1][1] if type_ is not None and type_.is_map else VARCHAR
        element = exp.column(ELEMENT)
        if value.dimensions or value.fields or value.name == "bytea":
            message = f"jsonb_populate_map with values of type {value.shown} is not supported"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(base))
        held = ours("json_get" if value == JSONB else "json_get_text", document.copy(), element)
        given = held if value in (JSONB, VARCHAR) else spell(False)(held, VARCHAR, value)
        pairs = exp.Struct(expressions=[
            exp.PropertyEQ(this=exp.to_identifier("key"), expression=element.copy()),
            exp.PropertyEQ(this=exp.to_identifier("value"), expression=given),
        ])  # fmt: skip
        added = ours("map_from_entries", of_each(duckdb_call("json_keys", document), pairs))
        return ours("map_cat", base, added)

    return {
        "map_access": lambda arguments: value_at(*arguments),
        "map_contains": _at_key("map_contains"),
        "map_delete": _at_key("map_delete"),
        "map_insert": put,
        "map_cat": joined,
        "map_filter": _filtered,
        "jsonb_populate_map": populated,
    }


def _filtered(arguments: _Args) -> exp.Expr:
    map_, function = arguments
    if not isinstance(function, ElementLambda):
        raise undefined("map_filter", arguments)
    element = exp.to_identifier(ELEMENT + "_entry")
    for parameter, name in zip(function.parameters, _PARTS, strict=True):
        for use in function.uses(parameter):
            use.replace(part(exp.column(element.name), name))
    entries = duckdb_call("map_entries", map_)
    kept = duckdb_call("list_filter", entries, exp.Lambda(this=function.this, expressions=[element]))
    return ours("_map_of_some", kept)
