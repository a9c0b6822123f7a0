"""Rows of the types of relations, `ROW(1, 'x')::t`, and of documents, `jsonb_populate_record(NULL::t, j)`."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog
from sparkwave.catalog.types import JSON, Type
from sparkwave.planner.bind.scopes import Scope, find
from sparkwave.planner.bind.user_types import find_row_type, find_type
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.parse.record_functions import document_of, field_of, own, put_query, rows_of_documents
from sparkwave.planner.parse.row_values import is_row, row
from sparkwave.planner.parse.set_returning import BEFORE, ORDINALITY
from sparkwave.planner.parse.trees import position_of
from sparkwave.planner.parse.type_text import user_type_name

_ONE = {"jsonb_populate_record": "jsonb_record", "json_populate_record": "json_record"}
_EACH = {"jsonb_populate_recordset": "jsonb_records", "json_populate_recordset": "json_records"}


def with_typed_rows(tree: exp.Expr, catalog: Catalog, scope: Scope, in_definition: bool = True) -> None:
    """Put queries and rows in place of these functions, and types in place of relations' names, in the tree itself.

    Raises Error 42704 for an unknown type, 0A000 for a row that is no cast of NULL or of ROW(..) to a type.
    """
    for cast in list(tree.find_all(exp.Cast)):
        if not _is_base(cast):
            _become_row(cast, catalog, scope, in_definition)
    for call in list(tree.find_all(exp.Anonymous)):
        function = call.name.lower()
        if (function not in _ONE and function not in _EACH) or len(call.expressions) != 2:
            continue
        base, type_ = _base(call, catalog, scope, in_definition)
        is_of_each = function in _EACH
        document = document_of(call, call.expressions[1], (_ONE | _EACH)[function], is_of_each)
        document.meta[BEFORE] = str(user_type_name(call.expressions[0].unnest().to))
        if call.arg_key == "this" and isinstance(call.parent, exp.Table | exp.Lateral):
            _in_from(call.parent, function, document, base, type_)
        elif is_of_each:
            message = f"{function} in a select list is not supported"
            raise Error(message, errors.FEATURE_NOT_SUPPORTED, hint="Call it in FROM.", position=position_of(call))
        else:
            value = _row_of(document, base, type_)
            call.replace(exp.alias_(value, function) if isinstance(call.parent, exp.Select) else exp.paren(value))


def _is_base(cast: exp.Cast) -> bool:
    """Return whether a cast is the row of one of these functions."""
    around = cast.parent
    return isinstance(around, exp.Anonymous) and around.name.lower() in (*_ONE, *_EACH) and cast.index == 0


def _become_row(cast: exp.Cast, catalog: Catalog, scope: Scope, in_definition: bool) -> None:
    name = user_type_name(cast.to)
    if name is None or find_type(catalog, scope, name.schema, name.name) or find(catalog, scope, name) is None:
        return
    type_ = find_row_type(catalog, scope, name, in_definition, position_of(cast.to))
    assert type_ is not None
    cast.set("to", data_type(type_))
    cast.meta["name"] = name.name


def _base(
    call: exp.Anonymous, catalog: Catalog, scope: Scope, in_definition: bool
) -> tuple[list[exp.Expr | None], Type]:
    """Return the values that fields have which a document lacks, None for NULL, and the type of the row."""
    cast = call.expressions[0].unnest()
    name = user_type_name(cast.to) if isinstance(cast, exp.Cast) else None
    type_ = find_row_type(catalog, scope, name, in_definition, position_of(cast)) if name is not None else None
    value = cast.this.unnest()
    if type_ is None or not (isinstance(value, exp.Null) or is_row(value)):
        message = f"{call.name.lower()} of what is not a cast of NULL or of ROW(..) to a type of rows is not supported"
        raise Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
    if isinstance(value, exp.Null):
        return [None] * len(type_.fields), type_
    if len(value.expressions) != len(type_.fields):
        raise Error(f"cannot cast type record to {name}", errors.CANNOT_COERCE, position=position_of(call))
    return list(value.expressions), type_


def _in_from(source: exp.Expr, function: str, document: exp.Expr, base: list[exp.Expr | None], type_: Type) -> None:
    alias = source.args.get("alias")
    given = list(alias.columns) if alias is not None else []
    number = None
    if source.args.get("ordinality"):
        number = given.pop() if len(given) > len(type_.fields) else exp.to_identifier(ORDINALITY)
        if given:
            given.append(number.copy())
    name = alias.this if alias is not None and alias.this is not None else exp.to_identifier(function)

    def items(part: exp.Expr) -> list[exp.Expr]:
        values = _values(part, base, type_)
        names = (exp.to_identifier(name, quoted=True) for name, _ in type_.fields)
        return [exp.alias_(value, name) for value, name in zip(values, names, strict=True)]

    made = rows_of_documents(document, function in _EACH, items, number)
    put_query(source, made, exp.TableAlias(this=name.copy(), columns=given))


def _row_of(document: exp.Expr, base: list[exp.Expr | None], type_: Type) -> exp.Expr:
    made = exp.cast(row(_values(document, base, type_)), data_type(type_))
    if any(value is not None for value in base):
        return made
    return exp.Case().when(exp.Not(this=exp.Is(this=document.copy(), expression=exp.null())), made)


def _values(document: exp.Expr, base: list[exp.Expr | None], type_: Type) -> list[exp.Expr]:
    made = []
    for (name, field), value in zip(type_.fields, base, strict=True):
        kind = exp.DataType(this=exp.DType.JSON) if field == JSON else data_type(field)
        found = field_of(document, name, kind)
        if value is not None:
            has_field = own("jsonb_exists", document.copy(), exp.Literal.string(name))
            found = exp.Case().when(has_field, found).else_(exp.Cast(this=value.copy(), to=kind))
        made.append(found)
    return made
