"""Parameters where planning needs a constant: patterns of dates and numbers, and what `set_config` is told.

What runs is planned with their values in their places. Without values, to tell what it returns, each such call is a
NULL of its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from sparkwave.planner.batch.parameters import parameter_number

# Functions to the places of such arguments, counted from 0, and what they return.
_CALLS: dict[str, tuple[tuple[int, ...], str]] = {
    "to_char": ((1,), "varchar"),
    "to_date": ((1,), "date"),
    "to_timestamp": ((1,), "timestamptz"),
    "set_config": ((0, 1), "varchar"),
}


def constant_parameters(tree: exp.Expr) -> frozenset[int]:
    """The numbers of the parameters that stand in such places."""
    return frozenset(number for _, _, number in _places(tree))


def with_constants(tree: exp.Expr, values: Mapping[int, object] | None) -> exp.Expr:
    """The tree, which is changed, with values in such places; a call without one, or with NULL, is NULL."""
    for call, argument, number in list(_places(tree)):
        value = None if values is None else values[number]
        if value is not None:
            argument.replace(exp.Literal.string(str(value)))
        elif call.parent is not None:
            call.replace(exp.cast(exp.null(), _CALLS[call.name.lower()][1]))
    return tree


def _places(tree: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr, int]]:
    """Calls, the arguments that have to be constants and are not, and the numbers of their parameters."""
    for call in tree.find_all(exp.Anonymous):
        places, _ = _CALLS.get(call.name.lower(), ((), ""))
        for place in places:
            argument = call.expressions[place] if place < len(call.expressions) else None
            number = parameter_number(_uncast(argument)) if argument is not None else None
            if argument is not None and number is not None:
                yield call, argument, number


def _uncast(node: exp.Expr) -> exp.Expr:
    while isinstance(node, exp.Cast | exp.Paren):
        node = node.this
    return node
