"""Functions of documents in FROM whose columns the query lists: `jsonb_to_record(j) AS t(a int, b text)`.

Each becomes a query over the document's fields, or over the elements of an array, so that batch queries and views read
it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.set_returning import GIVEN, WRITTEN, put_into_from

# Those of one row, and of a row for each element, with the function that checks the document.
LISTED_ONE = {"jsonb_to_record": "jsonb_record", "json_to_record": "json_record"}
LISTED_EACH = {"jsonb_to_recordset": "jsonb_records", "json_to_recordset": "json_records"}
_ELEMENT = "_record"


def with_records(tree: exp.Expr) -> exp.Expr:
    """Return the tree, changed in place, with queries in place of these functions.

    Raises Error 42601 for one without a list of columns, 42701 for two columns of a name.
    """
    for call in list(tree.find_all(exp.Anonymous)):
        function, source = call.name.lower(), call.parent
        if function not in (*LISTED_ONE, *LISTED_EACH) or len(call.expressions) != 1:
            continue
        if call.arg_key == "this" and isinstance(source, exp.Table | exp.Lateral):
            alias = source.args.get("alias")
            columns = _listed(call, alias, bool(source.args.get("ordinality")))
            is_of_each = function in LISTED_EACH
            document = document_of(call, call.expressions[0], (LISTED_ONE | LISTED_EACH)[function], is_of_each)
            made = rows_of_documents(document, is_of_each, partial(_columns, columns))
            name = alias.this if alias is not None and alias.this is not None else exp.to_identifier(function)
            put_query(source, made, exp.TableAlias(this=name.copy()))
    return tree


def _listed(call: exp.Anonymous, alias: exp.TableAlias | None, has_ordinality: bool) -> list[exp.ColumnDef]:
    columns = alias.columns if alias is not None else []
    if not columns or not all(isinstance(column, exp.ColumnDef) for column in columns):
        message = 'a column definition list is required for functions returning "record"'
        raise Error(message, errors.SYNTAX_ERROR, position=_place(call))
    if has_ordinality:
        message = "WITH ORDINALITY cannot be used with a column definition list"
        hint = "Put the column definition list inside ROWS FROM()."
        raise Error(message, errors.SYNTAX_ERROR, hint=hint, position=_place(columns[0].this))
    names = [_name(column) for column in columns]
    if (twice := next((name for name in names if names.count(name) > 1), None)) is not None:
        raise Error(f'column name "{twice}" specified more than once', errors.DUPLICATE_COLUMN)
    return columns


def document_of(call: exp.Anonymous, argument: exp.Expr, reader: str, is_of_each: bool) -> exp.Expr:
    """Return the document of a call, or the array of documents, with the function that checks it."""
    made = own(reader, argument.copy(), *([exp.Literal.string(call.name.lower())] if is_of_each else []))
    made.meta.update({**call.meta, WRITTEN: call.name.lower(), GIVEN: 1})
    return made


def rows_of_documents(
    document: exp.Expr,
    is_of_each: bool,
    items: Callable[[exp.Expr], list[exp.Expr]],
    ordinality: exp.Identifier | None = None,
) -> exp.Select:
    """Return a query of items computed from a document, or from each of an array of documents."""
    if not is_of_each:
        number = [exp.alias_(exp.cast(exp.Literal.number(1), "bigint"), ordinality)] if ordinality is not None else []
        return exp.select(*items(document), *number)
    element = exp.to_identifier(_ELEMENT, quoted=True)
    named = exp.TableAlias(this=element, columns=[element.copy()])
    source = exp.Unnest(expressions=[document], alias=named, offset=ordinality or False)
    number = [exp.column(ordinality.copy(), table=element.copy())] if ordinality is not None else []
    return exp.select(*items(exp.column(element.copy(), table=element.copy())), *number).from_(source)


def put_query(source: exp.Expr, query: exp.Query, alias: exp.TableAlias) -> None:
    """Put a query into FROM in place of a function, which may read the sources before it."""
    made: exp.Expr = exp.Subquery(this=query, alias=alias)
    if not isinstance(source.parent, exp.From):
        made.set("alias", None)
        made = exp.Lateral(this=made, alias=alias)
    put_into_from(source, made)


def _columns(columns: list[exp.ColumnDef], document: exp.Expr) -> list[exp.Expr]:
    names = map(_name, columns)
    return [
        exp.alias_(field_of(document, name, column.args["kind"]), exp.to_identifier(name, quoted=True))
        for name, column in zip(names, columns, strict=True)
    ]


def field_of(document: exp.Expr, name: str, kind: exp.DataType) -> exp.Expr:
    """Return a field of an object as a value of a type. JSON's null is NULL, a text is read as the type's input."""
    key = exp.Literal.string(name)
    part = own("jsonb_extract_path", document.copy(), key)
    if kind.this in _DOCUMENTS:
        value: exp.Expr = own("jsonb_value", part)
    elif kind.this == exp.DType.ARRAY:
        is_of_documents = any(inner.this in _DOCUMENTS for inner in kind.find_all(exp.DataType))
        value = own("jsonb_array_of_documents" if is_of_documents else "jsonb_array_of_texts", part)
    else:
        value = own("jsonb_extract_path_text", document.copy(), key)
        if kind.this in exp.DataType.TEXT_TYPES and kind.expressions:
            value = own("text_within", value, kind.expressions[0].this.copy())
    return exp.Cast(this=value, to=kind.copy())


_DOCUMENTS = (exp.DType.JSON, exp.DType.JSONB)


def own(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    """Return a call of a function, which the client has not written."""
    return exp.Anonymous(this=name, expressions=list(arguments))


def _name(column: exp.ColumnDef) -> str:
    return folded(column.this)


def _place(name: exp.Expr) -> int | None:
    """Return the position of a name in the client's text."""
    start = name.meta.get("start")
    return None if start is None else int(start) + 1
