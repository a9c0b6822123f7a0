"""Spells rows for DuckDB, whose structs are cast field by field by name; PostgreSQL's rows are cast by place.

`Spell` casts a value, spelled already, to a type; it comes from `duckdb_spelling`, whose casts may call this module
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import VARCHAR, Type
from sparkwave.planner.batch.pg_casts import array_items
from sparkwave.planner.functions.composite_text import split_record
from sparkwave.planner.functions.map_spelling import text_of_map
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.scalar_functions import ELEMENT, of_each, ours
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.row_values import is_row
from sparkwave.planner.parse.trees import position_of

Spell = Callable[[exp.Expr, Known, Type], exp.Expr]


def cast_to_struct(value: exp.Expr, source: Known, target: Type, spell: Spell) -> exp.Expr | None:
    """Return a value as a struct or an array of structs; None where DuckDB's own cast does it.

    Raises Error 42846 for a value that cannot be one, 22P02 for malformed text.
    """
    bare = value.unnest()
    has_any_type = isinstance(bare, exp.Null | exp.Parameter) or (
        isinstance(bare, exp.Anonymous) and bare.name == "error"
    )
    if has_any_type or (source == target and not is_row(bare)):
        return None
    if target.dimensions:
        return _array(bare, source, target, spell)
    if bare.is_string:
        texts = split_record(bare.name)
        _check_width(value, len(texts), target)
        return _packed(target, [exp.null() if t is None else exp.Literal.string(t) for t in texts], None, spell)
    if is_row(bare):
        _check_width(value, len(bare.expressions), target)
        return _packed(target, bare.expressions, _known_fields(bare, source), spell)
    if source is None or not source.is_struct:
        raise _cannot(value, source, target)
    _check_width(value, len(source.fields), target)
    fields = [field_at(value, place) for place in range(1, len(source.fields) + 1)]
    return exp.Case().when(is_there(value), _packed(target, fields, source, spell))


def _array(value: exp.Expr, source: Known, target: Type, spell: Spell) -> exp.Expr:
    items = array_items(value)
    if items is not None:
        return exp.Array(expressions=[spell(_text_or_null(item), None, target.element) for item in items])
    if isinstance(value, exp.Array):
        element = source.element if source is not None and source.dimensions else None
        return exp.Array(
            expressions=[spell(item, item_type(item, element), target.element) for item in value.expressions]
        )
    if source is None or not source.dimensions:
        raise _cannot(value, source, target)
    return of_each(value, spell(exp.column(ELEMENT), source.element, target.element))


def item_type(item: exp.Expr, element: Known) -> Known:
    """Return the type of an array's item: that of its elements, unless it is text still to be read."""
    return None if item.is_string else element


def _text_or_null(text: str | None) -> exp.Expr:
    return exp.null() if text is None else exp.Literal.string(text)


def _packed(target: Type, values: list[exp.Expr], source: Known, spell: Spell) -> exp.Expr:
    """Return `{'a': .., 'b': ..}`, each value cast to its field's type."""
    sources: list[Known] = [type_ for _, type_ in source.fields] if source is not None else [None] * len(values)
    pairs = zip(target.fields, values, sources, strict=True)
    return exp.Struct(
        expressions=[
            exp.PropertyEQ(
                this=exp.to_identifier(name, quoted=True), expression=spell(value, item_type(value, own), type_)
            )
            for (name, type_), value, own in pairs
        ]
    )


def _known_fields(row: exp.Expr, source: Known) -> Known:
    """Return the type of a row constructor, without that of texts for values of unknown types."""
    if source is None or not source.is_struct or all(type_ != VARCHAR for _, type_ in source.fields):
        return source
    is_text = [type_of_part(item) is not None or item.is_string for item in row.expressions]
    return source if all(is_text) else None


def field_at(value: exp.Expr, place: int) -> exp.Expr:
    """Return a field by its place, which also works where DuckDB's struct has no names."""
    return exp.Anonymous(this="struct_extract_at", expressions=[value.copy(), exp.Literal.number(place)])


def rows_of_arrays(arrays: list[exp.Expr], names: Sequence[str] = ()) -> exp.Expr:
    """Return an array of rows, each of one element of every array, as many as the longest array has."""
    row = exp.column(ELEMENT)
    names = names or [f"f{place}" for place in range(1, len(arrays) + 1)]
    fields = [
        exp.PropertyEQ(this=exp.to_identifier(name), expression=field_at(row, place))
        for place, name in enumerate(names, start=1)
    ]
    return of_each(exp.Anonymous(this="list_zip", expressions=arrays), exp.Struct(expressions=fields))


def text_of(value: exp.Expr, type_: Type, to_text: Callable[[exp.Expr, Type], exp.Expr]) -> exp.Expr:
    """Return the text of a struct, a map or an array of them: `(1,"a b",)`. `to_text` makes the text of the parts."""
    if type_.dimensions:
        texts = of_each(value, to_text(exp.column(ELEMENT), type_.element))
        return ours("_list_text", texts)
    if type_.is_map:
        return text_of_map(value, type_, to_text)
    cells = [
        ours("_record_cell", to_text(field_at(value, place), field))
        for place, (_, field) in enumerate(type_.fields, start=1)
    ]
    joined = exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string(","), *cells])
    parts = (exp.Literal.string("("), joined, exp.Literal.string(")"))
    return exp.Case().when(is_there(value), exp.Anonymous(this="concat", expressions=list(parts)))


def is_there(value: exp.Expr) -> exp.Expr:
    """Return the condition that a value is not NULL."""
    return exp.Not(this=exp.Is(this=value.copy(), expression=exp.null()))


def _check_width(value: exp.Expr, width: int, target: Type) -> None:
    if width != len(target.fields):
        few_or_many = "few" if width < len(target.fields) else "many"
        raise Error(
            f"cannot cast type record to {target.shown}",
            errors.CANNOT_COERCE,
            detail=f"Input has too {few_or_many} columns.",
            position=position_of(value),
        )


def _cannot(value: exp.Expr, source: Known, target: Type) -> Error:
    hint = (
        "A row is made with ROW(..), and a constant can be text such as '(1,a)'." if source in (None, VARCHAR) else None
    )
    known = source.shown if source is not None else "unknown"
    return Error(
        f"cannot cast type {known} to {target.shown}", errors.CANNOT_COERCE, hint=hint, position=position_of(value)
    )
