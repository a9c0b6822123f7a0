"""Inlines SQL functions: each call is replaced by the function's expression, with arguments cast to the declared types.

So a function costs nothing at run time, views maintain it like any expression, and NULL has the usual meaning in it.
A call of a function in Python becomes one of a function that DuckDB has by a name of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import PYTHON_PREFIX, Catalog, Function
from sparkwave.catalog.types import JSON, VARCHAR, Type
from sparkwave.planner.bind.scopes import Scope
from sparkwave.planner.bind.user_types import with_user_types
from sparkwave.planner.functions.aggregates import is_aggregate
from sparkwave.planner.functions.operators import is_known
from sparkwave.planner.functions.python_call import python_call, result_of
from sparkwave.planner.functions.typed import data_type, sql_type
from sparkwave.planner.functions.undefined import undefined
from sparkwave.planner.parse.trees import folded, parse_tree, position_of
from sparkwave.planner.statements import CreateFunction

T = TypeVar("T", bound=exp.Expr)

# A query whose functions add more nodes is not planned, because calls in the arguments of calls multiply.
MOST_NODES = 20_000


def with_functions(tree: T, catalog: Catalog, scope: Scope) -> T:
    """Return the tree with its calls of SQL functions inlined: itself without such calls, else a changed copy.

    Raises Error 42883 for a number of arguments that no function of the name takes, 54000 for too large a result.
    """
    if not catalog.functions or next(calls(tree, catalog, scope), None) is None:
        return tree
    copied = tree.copy()
    _inlined(copied, catalog, scope, [MOST_NODES])
    return copied


def find_function(catalog: Catalog, scope: Scope, schema: str | None, name: str, arguments: int) -> Function | None:
    """Return the function of a name with this number of arguments, within the scope."""
    places = (schema,) if schema is not None else scope.path
    found = (catalog.functions_by_name.get((scope.database, place, name, arguments)) for place in places)
    return next((function for function in found if function is not None), None)


def calls(tree: exp.Expr, catalog: Catalog, scope: Scope) -> Iterator[tuple[exp.Expr, Function]]:
    """Yield the calls of SQL functions, inner ones first, each as the node to replace, with its schema."""
    names = {function.name for function in catalog.functions}
    for call in reversed(list(tree.find_all(exp.Anonymous, bfs=False))):
        name = _name(call)
        if name.startswith(PYTHON_PREFIX):
            raise undefined(name, call.expressions, position_of(call))
        if name not in names or isinstance(call.parent, exp.Table):
            continue
        schema, node = _place(call, scope)
        function = find_function(catalog, scope, schema, name, len(call.expressions))
        if function is not None:
            yield node, function
        elif not is_known(call) and _is_there(catalog, scope, schema, name):
            raise Error(
                f"function {name} does not take {len(call.expressions)} arguments",
                errors.UNDEFINED_FUNCTION,
                position=position_of(call),
            )


def _is_there(catalog: Catalog, scope: Scope, schema: str | None, name: str) -> bool:
    """Return whether a function of the name exists, with any number of arguments."""
    places = (schema,) if schema is not None else scope.path
    return any((f.database, f.name) == (scope.database, name) and f.schema in places for f in catalog.functions)


def _name(call: exp.Anonymous) -> str:
    return folded(call.this) if isinstance(call.this, exp.Identifier) else str(call.this).lower()


def _place(call: exp.Anonymous, scope: Scope) -> tuple[str | None, exp.Expr]:
    """Return the schema of a call, and the node that includes the schema."""
    dot = call.parent
    if not isinstance(dot, exp.Dot) or dot.expression is not call:
        return None, call
    parts = list(dot.this.find_all(exp.Identifier, bfs=False))
    if len(parts) == 2 and folded(parts[0]) == scope.database:
        parts = parts[1:]
    return (folded(parts[0]) if len(parts) == 1 else ""), dot


def _inlined(tree: exp.Expr, catalog: Catalog, scope: Scope, left: list[int]) -> exp.Expr:
    """Return the tree, changed in place. `left` is how many nodes may still be added."""
    for node, function in list(calls(tree, catalog, scope)):
        call = node if isinstance(node, exp.Anonymous) else node.expression
        value = _called(function, call) if function.is_python else _value(function, call, catalog, left)
        if isinstance(node.parent, exp.Select) and node.arg_key == "expressions":
            value = exp.alias_(value, function.name, quoted=True, copy=False)
        if node is tree:
            return value
        node.replace(value)
    return tree


def _value(function: Function, call: exp.Anonymous, catalog: Catalog, left: list[int]) -> exp.Expr:
    """Return the inlined expression of a call.

    Raises Error 0A000 where a volatile argument would be computed repeatedly.
    """
    body = _body(function.body, function.name, function.arguments).copy()
    scope = Scope(function.database, (function.schema,))
    body = with_user_types(_inlined(body, catalog, scope, left), catalog, scope)
    for node in body.walk():
        node.meta.pop("start", None)  # positions in another text
    places = list(body.find_all(exp.Parameter))
    numbers = [int(node.name) for node in places]
    for number, argument in enumerate(call.expressions, start=1):
        if numbers.count(number) != 1 and _is_volatile(argument):
            raise Error(
                f"a volatile argument that {function.name} does not use once is not supported",
                errors.FEATURE_NOT_SUPPORTED,
                position=position_of(argument) or position_of(call),
            )
    left[0] -= sum(1 for _ in body.walk())
    for place, number in zip(places, numbers, strict=True):
        _, type_ = function.arguments[number - 1]
        argument = call.expressions[number - 1]
        left[0] -= sum(1 for _ in argument.walk())
        if left[0] < 0:
            raise Error("functions make the statement too complex", errors.PROGRAM_LIMIT_EXCEEDED)
        value = exp.Paren(this=exp.cast(argument.copy(), data_type(type_)))
        if place is body:
            body = value
        else:
            place.replace(value)
    return exp.cast(exp.Paren(this=body), data_type(function.result))


def _called(function: Function, call: exp.Anonymous) -> exp.Expr:
    """Return the call of a function in Python, with arguments cast to the declared types."""
    pairs = zip(call.expressions, function.arguments, strict=True)
    casts = [exp.cast(argument.copy(), data_type(type_)) for argument, (_, type_) in pairs]
    arguments = [exp.Paren(this=exp.cast(c, data_type(VARCHAR)) if sql_type(c.to) == JSON else c) for c in casts]
    value = python_call(function, arguments)
    return exp.Paren(this=value) if result_of(value) == function.result else exp.cast(value, data_type(function.result))


_VOLATILE = frozenset({"random", "gen_random_uuid", "uuid", "nextval", "clock_timestamp", "setseed"})


def _is_volatile(argument: exp.Expr) -> bool:
    return any(
        isinstance(node, exp.Rand | exp.Uuid) or (isinstance(node, exp.Anonymous) and _name(node) in _VOLATILE)
        for node in argument.walk()
    )


@lru_cache(maxsize=1000)
def _body(text: str, name: str, arguments: tuple[tuple[str, Type], ...]) -> exp.Expr:
    """Return the expression of a function, with its arguments as parameters.

    Raises Error 42601, 0A000 for anything but an expression of single values, 42703 or 42P02 for unknown names.
    """
    tree = parse_tree(f"SELECT {text}")
    is_plain = isinstance(tree, exp.Select) and not any(
        value for key, value in tree.args.items() if key not in ("expressions", "kind", "hint")
    )
    if not is_plain or len(tree.expressions) != 1:
        raise _refused("anything but one expression in a SQL function", None)
    body = tree.expressions[0].unalias()
    numbers = {argument: number for number, (argument, _) in enumerate(arguments, start=1) if argument}
    for node in list(body.walk()):
        if isinstance(node, exp.Query | exp.Subquery | exp.Star):
            raise _refused("a query in a SQL function", node)
        if isinstance(node, exp.AggFunc | exp.Window) or is_aggregate(node):
            raise _refused("an aggregate or window function in a SQL function", node)
        if isinstance(node, exp.Parameter) and not 1 <= int(node.name) <= len(arguments):
            raise Error(f"there is no parameter ${node.name}", errors.UNDEFINED_PARAMETER)
    for column in list(body.find_all(exp.Column)):
        number = numbers.get(folded(column.this))
        if number is None or column.table not in ("", name) or column.args.get("db") is not None:
            written = column.sql(dialect="postgres").replace('"', "")
            raise Error(
                f'column "{written}" does not exist',
                errors.UNDEFINED_COLUMN,
                hint="A SQL function has only its arguments.",
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
    """Queries of one NULL: a function's call, and its expression before the cast, which may have no type."""

    call: exp.Select
    body: exp.Select
    has_type: bool


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


def check_function(statement: CreateFunction, catalog: Catalog, scope: Scope) -> Probe:
    """Return queries that show every fault of a new SQL function's expression when they are planned.

    Raises Error as `with_functions` does, and 42P13 for recursion.
    """
    name = statement.name.name
    try:
        body = _body(statement.body, name, statement.arguments)
        own = Function(
            0, scope.database, scope.path[0], name, statement.arguments, statement.result, statement.body, ""
        )
        for call in body.find_all(exp.Anonymous):
            if _name(call) == name and len(call.expressions) == len(statement.arguments):
                message = "recursive function is not supported"
                raise Error(message, errors.INVALID_FUNCTION_DEFINITION)
        nulls = [exp.null() for _ in statement.arguments]
        call = exp.Anonymous(this=exp.to_identifier(name, quoted=True), expressions=nulls)
        value = _value(own, call, catalog, [MOST_NODES])
        bare = value.this.unnest()
        return Probe(exp.select(value), exp.select(bare.copy()), not (isinstance(bare, exp.Null) or bare.is_string))
    except Error as error:
        error.position = statement.body_position
        raise
