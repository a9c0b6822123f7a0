"""Parameters where planning needs a constant: patterns of dates and numbers, and the arguments of `set_config`.

A statement that runs is planned with their values in place. To describe a statement without values, each such call is a
NULL of its type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from sparkwave.planner.batch.parameters import parameter_number

# Functions with the places of such arguments, from 0, and their result types.
_CALLS: dict[str, tuple[tuple[int, ...], str]] = {
    "to_char": ((1,), "varchar"),
    "to_date": ((1,), "date"),
    "to_timestamp": ((1,), "timestamptz"),
    "set_config": ((0, 1), "varchar"),
}


def constant_parameters(tree: exp.Expr) -> frozenset[int]:
    """Return the numbers of the parameters in such places."""
    return frozenset(number for _, _, number in _places(tree))


def with_constants(tree: exp.Expr, values: Mapping[int, object] | None) -> exp.Expr:
    """Return the tree, changed in place, with values in such places; a call without a value, or with NULL, is NULL."""
    for call, argument, number in list(_places(tree)):
        value = None if values is None else values[number]
        if value is not None:
            argument.replace(exp.Literal.string(str(value)))
        elif call.parent is not None:
            call.replace(exp.cast(exp.null(), _CALLS[call.name.lower()][1]))
    return tree


def _places(tree: exp.Expr) -> Iterator[tuple[exp.Expr, exp.Expr, int]]:
    """Yield calls, the arguments that have to be constants and are not, and the numbers of their parameters."""
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
