"""Inlines SQL functions: each call is replaced by the function's body, with arguments cast to the declared types.

So a function costs nothing at run time, views maintain it like any expression, and NULL has the usual meaning in it.
A call of a function in Python becomes one of a function that DuckDB has by a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import PYTHON_PREFIX, Catalog, Function
from sparkwave.catalog.types import Type
from sparkwave.planner.bind.function_queries import (
    first_value,
    gives_rows,
    is_source,
    place_arguments,
    put_rows,
    with_parameters,
    with_types,
)
from sparkwave.planner.bind.merged_columns import columns_in
from sparkwave.planner.bind.overloads import Call, resolved
from sparkwave.planner.bind.python_functions import called, put_elements, whole_call
from sparkwave.planner.bind.scopes import Scope
from sparkwave.planner.bind.user_types import with_user_types
from sparkwave.planner.functions.aggregates import is_aggregate
from sparkwave.planner.functions.operators import is_known
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.functions.undefined import undefined
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import parse_tree, position_of
from sparkwave.planner.statements import CreateFunction

T = TypeVar("T", bound=exp.Expr)

# A query whose functions add more nodes is not planned, because calls in the arguments of calls multiply.
MOST_NODES = 20_000


def with_functions(tree: T, catalog: Catalog, scope: Scope) -> T:
    """Return the tree with its calls of SQL functions inlined: itself without such calls, else a changed copy.

    Raises Error 42883 for a number of arguments that no function of the name takes, 54000 for too large a result.
    """
    if not catalog.functions or next(_found(tree, catalog, scope), None) is None:
        return tree
    copied = tree.copy()
    _inlined(copied, catalog, scope, [MOST_NODES])
    return copied


def calls(tree: exp.Expr, catalog: Catalog, scope: Scope) -> Iterator[tuple[exp.Expr, Function]]:
    """Yield the calls of SQL functions, inner ones first, each as the node to replace, with its schema.

    Raises the errors of `overloads.resolved`.
    """
    found = list(_found(tree, catalog, scope))
    if any(len(functions) > 1 for _, _, functions in found):
        return resolved(tree, found, catalog, scope)
    return ((node, functions[0]) for node, _, functions in found)


def _found(tree: exp.Expr, catalog: Catalog, scope: Scope) -> Iterator[Call]:
    """Yield the calls with all functions of their names and numbers of arguments."""
    names = {function.name for function in catalog.functions}
    for call in reversed(list(tree.find_all(exp.Anonymous, bfs=False))):
        name = _name(call)
        if name.startswith(PYTHON_PREFIX):
            raise undefined(name, call.expressions, position_of(call))
        if name not in names:
            continue
        schema, node = _place(call, scope)
        functions = _functions(catalog, scope, schema, name, len(call.expressions))
        if functions:
            yield node, call, functions
        elif not is_source(call) and not is_known(call) and _is_there(catalog, scope, schema, name):
            raise Error(
                f"function {name} does not take {len(call.expressions)} arguments",
                errors.UNDEFINED_FUNCTION,
                position=position_of(call),
            )


def _functions(catalog: Catalog, scope: Scope, schema: str | None, name: str, arguments: int) -> tuple[Function, ...]:
    """Return the functions of a name with this number of arguments, in the first schema of the scope that has any."""
    places = (schema,) if schema is not None else scope.path
    found = (catalog.functions_by_name.get((scope.database, place, name, arguments), ()) for place in places)
    return next(filter(None, found), ())


def _is_there(catalog: Catalog, scope: Scope, schema: str | None, name: str) -> bool:
    """Return whether a function of the name exists, with any number of arguments."""
    places = (schema,) if schema is not None else scope.path
    return any((f.database, f.name) == (scope.database, name) and f.schema in places for f in catalog.functions)


def _name(call: exp.Anonymous) -> str:
    return folded(call.this) if isinstance(call.this, exp.Identifier) else str(call.this).lower()


def _place(call: exp.Anonymous, scope: Scope) -> tuple[str | None, exp.Expr]:
    """Return the schema of a call, and the node that includes the schema."""
    dot = call.parent
    if is_source(call) and dot is not None:
        schema = dot.args.get("db")
        return (None if schema is None else folded(schema)), call
    if not isinstance(dot, exp.Dot) or dot.expression is not call:
        return None, call
    parts = list(dot.this.find_all(exp.Identifier, bfs=False))
    if len(parts) == 2 and folded(parts[0]) == scope.database:
        parts = parts[1:]
    return (folded(parts[0]) if len(parts) == 1 else ""), dot


def scope_within(function: Function) -> Scope:
    """Return the scope of the names in a function's body."""
    types = tuple(type_ for _, type_ in function.arguments)
    return Scope(function.database, (function.schema,), parameters=types)


def body_of(function: Function, catalog: Catalog) -> exp.Expr:
    """Return a copy of a function's query, or expression, with its arguments as parameters."""
    if _is_query(function.body):
        return with_parameters(_parsed(function.body).copy(), function, catalog)
    return exp.select(_body(function.body, function.name, function.arguments).copy())


def _inlined(tree: exp.Expr, catalog: Catalog, scope: Scope, left: list[int]) -> exp.Expr:
    """Return the tree, changed in place. `left` is how many nodes may still be added."""
    for node, function in list(calls(tree, catalog, scope)):
        call = node if isinstance(node, exp.Anonymous) else node.expression
        if is_source(call):
            _put_rows(function, call, catalog, scope, left)
            continue
        node = whole_call(node, function)
        value = called(function, call, node) if function.is_python else _value(function, call, catalog, scope, left)
        if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            value = exp.alias_(value, function.name, quoted=True, copy=False)
        if node is tree:
            return value
        node.replace(value)
    return tree


def _value(function: Function, call: exp.Anonymous, catalog: Catalog, scope: Scope, left: list[int]) -> exp.Expr:
    """Return the inlined expression or query of a call.

    Raises Error 0A000 where a volatile argument would be computed repeatedly.
    """
    if function.columns is not None:
        return _elements(function, call, catalog, scope, left)
    if _is_query(function.body):
        query = _query(function, call, catalog, scope, left)
        return exp.cast(first_value(query), data_type(function.result))
    body = _body(function.body, function.name, function.arguments).copy()
    inner = scope_within(function)
    body = with_user_types(_inlined(body, catalog, inner, left), catalog, inner)
    places = _places(body, function, call, left)
    for place in places:
        number = int(place.name)
        _, type_ = function.arguments[number - 1]
        value = exp.Paren(this=exp.cast(call.expressions[number - 1].copy(), data_type(type_)))
        if place is body:
            body = value
        else:
            place.replace(value)
    used = {int(place.name) for place in places}
    for number, argument in enumerate(call.expressions, start=1):
        if number not in used and _is_kept(argument):  # the rows of the query depend on it, or the client sends it
            is_null = exp.Is(this=argument.copy(), expression=exp.null())
            body = exp.Case(ifs=[exp.If(this=is_null, true=body)], default=body.copy())
    return exp.cast(exp.Paren(this=body), data_type(function.result))


def _is_kept(argument: exp.Expr) -> bool:
    """Return whether an argument has a part that a statement needs where the function does not use it."""
    return any(isinstance(node, _KEPT) or is_aggregate(node) for node in argument.walk())


_KEPT = (exp.AggFunc, exp.Parameter, exp.Explode, exp.ExplodingGenerateSeries)


def _elements(function: Function, call: exp.Anonymous, catalog: Catalog, scope: Scope, left: list[int]) -> exp.Expr:
    """Return a call in a select list of a function that returns rows: a row for each of its values.

    Raises Error 0A000 for a function of several columns.
    """
    if len(function.outputs) > 1:
        raise Error(
            f"{function.name}, which returns several columns, is not supported here",
            errors.FEATURE_NOT_SUPPORTED,
            hint="Call it in FROM.",
            position=position_of(call),
        )
    one = replace(function, columns=None)
    if not _is_query(function.body):
        return exp.Explode(this=exp.Array(expressions=[_value(one, call, catalog, scope, left)]))
    query = with_types(_query(function, call, catalog, scope, left), function)
    return exp.Explode(this=exp.Array(expressions=[query]))


def _query(function: Function, call: exp.Anonymous, catalog: Catalog, scope: Scope, left: list[int]) -> exp.Query:
    """Return the query of a function with the arguments of a call."""
    inner = scope_within(function)
    body = with_parameters(_parsed(function.body).copy(), function, catalog)
    query = with_user_types(_inlined(body, catalog, inner, left), catalog, inner)
    assert isinstance(query, exp.Query)
    _places(query, function, call, left)
    place_arguments(query, function, call, columns_in(catalog, scope))
    return query


def _places(body: exp.Expr, function: Function, call: exp.Anonymous, left: list[int]) -> list[exp.Parameter]:
    """Return the places of the parameters in a body. Raises Error 0A000 for a volatile argument, 54000."""
    for node in body.walk():
        node.meta.pop("start", None)  # positions in another text
    places = list(body.find_all(exp.Parameter))
    numbers = [int(node.name) for node in places]
    for number, argument in enumerate(call.expressions, start=1):
        if (numbers.count(number) != 1 or isinstance(body, exp.Query)) and _is_volatile(argument):
            raise Error(
                f"a volatile argument that {function.name} does not use once is not supported",
                errors.FEATURE_NOT_SUPPORTED,
                position=position_of(argument) or position_of(call),
            )
    sizes = [sum(1 for _ in argument.walk()) for argument in call.expressions]
    left[0] -= sum(1 for _ in body.walk()) + sum(sizes[number - 1] for number in numbers)
    if left[0] < 0:
        raise Error("functions make the statement too complex", errors.PROGRAM_LIMIT_EXCEEDED)
    return places


def _put_rows(function: Function, call: exp.Anonymous, catalog: Catalog, scope: Scope, left: list[int]) -> None:
    """Put the rows of a function in the place of its call in FROM. Raises Error 42809 for an aggregate."""
    if function.is_aggregate:
        message = f"{function.name} is an aggregate function"
        raise Error(message, errors.WRONG_OBJECT_TYPE, position=position_of(call))
    if function.is_python:
        put_elements(function, call)
    elif _is_query(function.body) or len(function.outputs) > 1:
        put_rows(call, _query(function, call, catalog, scope, left), function)
    else:
        one = replace(function, columns=None)
        put_rows(call, exp.select(_value(one, call, catalog, scope, left)), function)


_VOLATILE = frozenset({"random", "gen_random_uuid", "uuid", "nextval", "clock_timestamp", "setseed"})


def _is_volatile(argument: exp.Expr) -> bool:
    return any(
        isinstance(node, exp.Rand | exp.Uuid) or (isinstance(node, exp.Anonymous) and _name(node) in _VOLATILE)
        for node in argument.walk()
    )


@lru_cache(maxsize=1000)
def _parsed(text: str) -> exp.Query:
    """Return the query of a function's body, which is what follows SELECT. Raises Error 42601, 0A000."""
    tree = parse_tree(f"SELECT {text}")
    if not isinstance(tree, exp.Query):
        raise _refused("anything but a query in a SQL function", None)
    return tree


@lru_cache(maxsize=1000)
def _is_query(text: str) -> bool:
    """Return whether a body is more than one expression over the arguments."""
    tree = _parsed(text)
    is_plain = isinstance(tree, exp.Select) and not any(
        value for key, value in tree.args.items() if key not in ("expressions", "kind", "hint")
    )
    if not is_plain or len(tree.expressions) != 1:
        return True
    inside = tree.expressions[0].walk()
    return any(isinstance(node, exp.Query | exp.Subquery | exp.AggFunc) or is_aggregate(node) for node in inside)


@lru_cache(maxsize=1000)
def _body(text: str, name: str, arguments: tuple[tuple[str, Type], ...]) -> exp.Expr:
    """Return the expression of a function, with its arguments as parameters.

    Raises Error 0A000 for what has no place in it, 42703 or 42P02 for unknown names.
    """
    body = _parsed(text).expressions[0].unalias().copy()
    numbers = {argument: number for number, (argument, _) in enumerate(arguments, start=1) if argument}
    for node in list(body.walk()):
        if isinstance(node, exp.Star):
            raise _refused("* in a SQL function", node)
        if isinstance(node, exp.Window):
            raise _refused("a window function without FROM in a SQL function", node)
        if isinstance(node, exp.Parameter) and not 1 <= int(node.name) <= len(arguments):
            raise Error(f"there is no parameter ${node.name}", errors.UNDEFINED_PARAMETER)
    for column in list(body.find_all(exp.Column)):
        number = numbers.get(folded(column.this))
        if number is None or column.table not in ("", name) or column.args.get("db") is not None:
            written = column.sql(dialect="postgres").replace('"', "")
            raise Error(
                f'column "{written}" does not exist',
                errors.UNDEFINED_COLUMN,
                hint="An expression without FROM has only the arguments.",
            )
        parameter = exp.Parameter(this=exp.Literal.number(number))
        if column is body:
            return parameter
        column.replace(parameter)
    return body


def _refused(what: str, node: exp.Expr | None) -> Error:
    return Error(f"{what} is not supported", errors.FEATURE_NOT_SUPPORTED)


@dataclass(frozen=True)
class Probe:
    """Queries with a call over NULLs, and of the body before it is cast.

    `columns` are the names and types that the body's columns are declared to have; None for one without a type.
    """

    call: exp.Select
    body: exp.Select
    columns: tuple[tuple[str, Type] | None, ...]


def check_name(statement: CreateFunction) -> None:
    """Raise Error 42723 where the name of a new function is that of a built-in function."""
    name = statement.name.name
    marks = ", ".join("NULL" for _ in statement.arguments)
    probe = parse_tree(f"SELECT {name}({marks})").expressions[0] if name.isidentifier() else None
    if probe is not None and (not isinstance(probe, exp.Anonymous) or is_known(probe)):
        raise Error(
            f'"{name}" is the name of a built-in function or a keyword',
            errors.DUPLICATE_FUNCTION,
            position=statement.name.position,
        )


def with_function(catalog: Catalog, function: Function) -> Catalog:
    """Return a catalog that has a function, in the place of one with the same id or signature."""
    database, name, signature = function.database, function.qualified_name, function.signature
    others = (
        each
        for each in catalog.functions
        if each.id != function.id
        and (each.database, each.qualified_name, each.signature) != (database, name, signature)
    )
    return replace(catalog, functions=(*others, function))


def check_function(statement: CreateFunction, catalog: Catalog, scope: Scope) -> Probe:
    """Return queries that show every fault of a new SQL function's expression when they are planned.

    Raises Error as `with_functions` does, and 42P13 for recursion.
    """
    name = statement.name.name
    try:
        own = Function(
            0, scope.database, scope.path[0], name, statement.arguments, statement.result, statement.body, "",
            columns=statement.columns,
        )  # fmt: skip
        if any(
            callee is own for _, callee in calls(body_of(own, catalog), with_function(catalog, own), scope_within(own))
        ):
            raise Error("recursive function is not supported", errors.INVALID_FUNCTION_DEFINITION)
        nulls = [exp.null() for _ in statement.arguments]
        call = exp.Anonymous(this=exp.to_identifier(name, quoted=True), expressions=nulls)
        if not _is_query(statement.body) and statement.columns is None:
            value = _value(own, call, catalog, scope, [MOST_NODES])
            bare = value.this.unnest()
            return Probe(exp.select(value), exp.select(bare.copy()), (None if _is_untyped(bare) else own.outputs[0],))
        over = exp.Anonymous(this=call.this.copy(), expressions=_argument_columns(own))
        body = _bare_rows(own, over, catalog, scope)
        query = exp.select("*").from_(exp.Table(this=call))
        _put_rows(own, call, catalog, scope, [MOST_NODES])
        untyped = [_is_untyped(item.unalias()) for item in body.selects]
        columns: tuple[tuple[str, Type] | None, ...] = own.outputs
        if gives_rows(body, own):
            columns = (("", own.result),)
        if len(untyped) == len(columns):
            columns = tuple(None if is_untyped else each for is_untyped, each in zip(untyped, columns, strict=True))
        return Probe(query, _beside_arguments(own, body), columns)
    except Error as error:
        error.position = statement.body_position
        raise


def _argument_columns(function: Function) -> list[exp.Expr]:
    return [exp.column(f"a{number}", "arguments", quoted=True) for number, _ in enumerate(function.arguments)]


def _beside_arguments(function: Function, body: exp.Query) -> exp.Select:
    """Return the rows of a body over `_argument_columns`: the type of what is made from a bare NULL is not known."""
    if not function.arguments:
        return exp.select("*").from_(body.subquery("body", copy=False))
    nulls = [
        exp.alias_(exp.cast(exp.null(), data_type(type_)), f"a{number}", quoted=True)
        for number, (_, type_) in enumerate(function.arguments)
    ]
    rows = exp.Lateral(this=body.subquery(copy=False), alias=exp.TableAlias(this=exp.to_identifier("body")))
    return exp.select("body.*").from_(exp.select(*nulls).subquery("arguments")).join(rows, copy=False)


def _bare_rows(function: Function, call: exp.Anonymous, catalog: Catalog, scope: Scope) -> exp.Query:
    """Return the rows of a body before they get the declared types."""
    if _is_query(function.body) or len(function.outputs) > 1:
        return _query(function, call, catalog, scope, [MOST_NODES])
    value = _value(replace(function, columns=None), call, catalog, scope, [MOST_NODES])
    return exp.select(value.this.unnest().copy())


def _is_untyped(value: exp.Expr) -> bool:
    return isinstance(value, exp.Null) or value.is_string
