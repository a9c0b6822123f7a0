"""The fields of a plan whose last digits depend on the order in which rows were added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from sparkwave.planner.plan.nodes import Aggregate, Call, Item, Node, OverWindow, Project, WindowCall


def inexact_fields(nodes: Iterable[Node]) -> frozenset[str]:
    """Return the fields with sums of floating-point numbers, and those computed from such fields, of any type.

    `nodes` are the operators of a plan, inputs first.
    """
    found: set[str] = set()
    for node in nodes:
        found |= {made.name for made in _made(node) if _is_sum_of_floats(made) or not found.isdisjoint(_read(made))}
    return frozenset(found)


def _made(node: Node) -> tuple[Item | Call | WindowCall, ...]:
    """Return the fields that an operator computes."""
    match node:
        case Project(items=items):
            return items
        case Aggregate(calls=calls) | OverWindow(calls=calls):
            return calls
    return ()


def _is_sum_of_floats(made: Item | Call | WindowCall) -> bool:
    return not isinstance(made, Item) and made.type.is_float


def _read(made: Item | Call | WindowCall) -> Iterator[str]:
    if isinstance(made, Call) and made.argument is not None:
        yield made.argument
    if made.expression is not None:
        yield from (column.name for column in made.expression.find_all(exp.Column))
