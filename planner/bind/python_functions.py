"""Calls of users' functions in Python: with the arguments' declared types, as rows, or as aggregates.

A function that returns rows gives an array of them, which is unnested. An aggregate gets an array of the values of each
argument in the group.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Function
from sparkwave.catalog.types import JSON, VARCHAR
from sparkwave.planner.bind.function_queries import names_in_from, without_ordinality
from sparkwave.planner.functions.python_call import PythonCall, python_call, result_of
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.parse.set_returning import put_into_from
from sparkwave.planner.parse.trees import position_of


def called(function: Function, call: exp.Anonymous, place: exp.Expr) -> exp.Expr:
    """Return the value of a call, which with all that belongs to it is `place`. Raises Error 0A000 as `whole_call`."""
    if function.columns is not None:
        made = exp.Explode(this=_call(function, _arguments(function, call)))
        made.meta["name"] = function.name
        return made
    arguments = _arguments(function, call)
    if function.is_aggregate:
        arguments = [_gathered(argument, place) for argument in arguments]
    value = _call(function, arguments)
    return exp.Paren(this=value) if result_of(value) == function.result else exp.cast(value, data_type(function.result))


def whole_call(node: exp.Expr, function: Function) -> exp.Expr:
    """Return an aggregate's call with its FILTER and OVER.

    Raises Error 0A000 for DISTINCT, ORDER BY and WITHIN GROUP, 42809 for other functions with a FILTER.
    """
    call = node if isinstance(node, exp.Anonymous) else node.expression
    parent = node.parent
    if not function.is_aggregate:
        return node
    whole = parent if isinstance(parent, exp.Filter) and parent.this is node else node
    around = whole.parent
    if isinstance(around, exp.Window) and around.this is whole:
        whole = around
    if isinstance(around, exp.WithinGroup) or any(isinstance(a, exp.Distinct | exp.Order) for a in call.expressions):
        raise _refused(function, "DISTINCT, ORDER BY or WITHIN GROUP", call)
    return whole


def put_elements(function: Function, call: exp.Anonymous) -> None:
    """Put the rows of a function in the place of its call in FROM. Raises Error 0A000 for one without rows."""
    source = call.parent
    assert source is not None
    if function.columns is None:
        raise Error(
            f"{function.name} in FROM is not supported, because it returns no rows",
            errors.FEATURE_NOT_SUPPORTED,
            hint="RETURNS TABLE or SETOF makes a function that returns rows.",
            position=position_of(call),
        )
    name, columns = names_in_from(source, function)
    offset: exp.Expr | bool = False
    if source.args.get("ordinality"):
        offset = columns.pop() if len(columns) > len(function.outputs) else exp.to_identifier("ordinality")
    array = _call(function, _arguments(function, call))
    if len(function.columns) == 1:
        made: exp.Expr = exp.Unnest(expressions=[array], offset=offset)
        made.set("alias", exp.TableAlias(this=name.copy(), columns=[column.copy() for column in columns]))
        if isinstance(source, exp.Lateral):
            made = exp.Lateral(this=made, alias=made.args["alias"])
            made.this.set("alias", None)
        put_into_from(source, made)
        return
    if offset:
        raise without_ordinality(function, call)
    row = exp.TableAlias(this=exp.to_identifier("rows", quoted=True), columns=[exp.to_identifier("row", quoted=True)])
    rows = exp.Unnest(expressions=[array], alias=row, offset=False)
    fields = [
        exp.alias_(
            exp.Dot(
                this=exp.Paren(this=exp.column("row", "rows", quoted=True)),
                expression=exp.to_identifier(field, quoted=True),
            ),
            column,
            quoted=True,
        )
        for column, (field, _) in zip([each.name for each in columns], function.outputs, strict=True)
    ]
    query = exp.select(*fields).from_(rows).subquery(copy=False)
    named = exp.TableAlias(this=name.copy())
    is_first = isinstance(source.parent, exp.From)
    taken = query if is_first else exp.Lateral(this=query)
    taken.set("alias", named)
    put_into_from(source, taken)


def _call(function: Function, arguments: list[exp.Expr]) -> PythonCall:
    return python_call(function, arguments)


def _arguments(function: Function, call: exp.Anonymous) -> list[exp.Expr]:
    pairs = zip(call.expressions, function.arguments, strict=True)
    casts = [(exp.cast(argument.copy(), data_type(type_)), type_) for argument, (_, type_) in pairs]
    return [exp.Paren(this=exp.cast(c, data_type(VARCHAR)) if type_ == JSON else c) for c, type_ in casts]


def _gathered(argument: exp.Expr, place: exp.Expr) -> exp.Expr:
    """Return the array of an aggregate's argument over the rows of a group or a window's frame that pass the FILTER."""
    if isinstance(place, exp.Window):
        window = place.copy()
        window.set("this", _gathered(argument, place.this))
        return window
    array = exp.ArrayAgg(this=argument)
    return exp.Filter(this=array, expression=place.expression.copy()) if isinstance(place, exp.Filter) else array


def _refused(function: Function, what: str, call: exp.Expr) -> Error:
    message = f"{what} with the aggregate {function.name} is not supported"
    return Error(message, errors.FEATURE_NOT_SUPPORTED, position=position_of(call))
