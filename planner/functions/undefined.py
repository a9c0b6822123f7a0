"""PostgreSQL's error for a call of a function that does not exist with these arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.functions.argument_counts import takes
from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.scalar_functions import ALIASES
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.set_returning import GIVEN, WRITTEN
from sparkwave.planner.parse.trees import position_of

# Operators that are read as calls of functions.
_OPERATORS: dict[type[exp.Expr], str] = {
    exp.RegexpLike: "~", exp.RegexpILike: "~*", exp.SimilarTo: "~", exp.Pow: "^", exp.ArrayContainsAll: "@>",
    exp.ArrayContainedBy: "<@", exp.ArrayOverlaps: "&&", exp.JSONBContainsTopKey: "?",
    exp.JSONBContainsAnyTopKeys: "?|", exp.JSONBContainsAllTopKeys: "?&", exp.JSONBExtract: "#>",
    exp.JSONBExtractScalar: "#>>", exp.JSONBDeleteAtPath: "#-",
}  # fmt: skip


def called(node: exp.Expr) -> tuple[str, list[exp.Expr]] | None:
    """Return the function of a call, by the name in the client's text, and its arguments; None for other nodes."""
    if isinstance(node, exp.Anonymous):
        return node.meta.get(WRITTEN) or node.name.lower(), node.expressions[: node.meta.get(GIVEN)]
    if isinstance(node, exp.Explode):
        is_own = WRITTEN in node.this.meta  # which is the call
        return None if is_own else ("unnest", [node.this, *node.expressions])
    if isinstance(node, exp.AggFunc):
        name = "string_agg" if isinstance(node, exp.GroupConcat) else node.sql_name().lower()
        return name, list(node.iter_expressions())
    return as_call(node)


def is_call_of(node: exp.Expr, name: str) -> bool:
    """Return whether a node calls a function of this name, or of another name of this function."""
    found = called(node)
    return found is not None and name in (found[0], node.name.lower(), ALIASES.get(found[0]))


def undefined(name: str, arguments: Iterable[exp.Expr], position: int | None = None) -> Error:
    """Return Error 42883 for a call, with the types of its arguments where they are known."""
    types = ", ".join(_types(arguments))
    if (name, types) == ("count", ""):
        message = "count(*) must be used to call a parameterless aggregate function"
        return Error(message, errors.WRONG_OBJECT_TYPE, position=position)
    message = f"function {name}({types}) does not exist"
    return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_FUNCTION, position=position)


def undefined_among(nodes: Sequence[exp.Expr]) -> Error | None:
    """Return Error 42883 for one of several calls in a typed tree, of which an engine does not know one.

    None where it may be any of several, or has arguments of unknown type. Untyped literals suit most functions.
    """
    if not all(map(_has_types, nodes)):
        return None
    found = {error.message: error for error in map(undefined_call, nodes)}
    found = {message: error for message, error in found.items() if len(found) == 1 or "(unknown)" not in message}
    return next(iter(found.values())) if len(found) == 1 else None


def _has_types(node: exp.Expr) -> bool:
    found = called(node)
    values = map(_value, found[1]) if found is not None else ()
    return all(
        type_of_part(value) is not None or isinstance(value, exp.Literal | exp.Null | exp.Lambda) for value in values
    )


def undefined_call(node: exp.Expr) -> Error:
    """Return Error 42883 for a call, or an operator that is read as one, in a typed tree."""
    found = called(node)
    assert found is not None
    name, arguments = found
    operator = _OPERATORS.get(type(node))
    if operator is None:
        return undefined(name, arguments, position_of(node))
    message = f"operator does not exist: {f' {operator} '.join(_types(arguments))}"
    return Error(message, errors.UNDEFINED_FUNCTION, hint=errors.NO_OPERATOR)


def _types(arguments: Iterable[exp.Expr]) -> list[str]:
    types = [type_of_part(_value(argument)) for argument in arguments]
    return [str(type_.without_digits) if type_ is not None else "unknown" for type_ in types]


def _value(argument: exp.Expr) -> exp.Expr:
    """Return an argument without its DISTINCT and ORDER BY."""
    while isinstance(argument, exp.Order | exp.Distinct):
        argument = argument.this if isinstance(argument, exp.Order) else argument.expressions[0]
    return argument.unnest()


_STAR = "columns"  # which DuckDB takes for a star, whatever may be read


def miscounted(tree: exp.Expr) -> exp.Expr | None:
    """Return the first call in a tree, in the order of its text, that no function takes by its number of arguments."""
    for node in tree.find_all(exp.Anonymous, exp.Substring, exp.GroupConcat, bfs=False):
        found = called(node)
        if found is not None and (found[0] == _STAR or not takes(found[0], len(found[1]))):
            return node
    return None


def check_counts(tree: exp.Expr, typed: Callable[[exp.Expr, Sequence[exp.Expr]], list[exp.Expr | None]]) -> None:
    """Raise Error 42883 for a call with a wrong number of arguments; `typed` finds typed counterparts of nodes."""
    node = miscounted(tree)
    if node is not None:
        error = undefined_call(typed(tree, [node])[0] or node)
        error.position = position_of(node)
        raise error
