"""The SQL that reads and writes what an operator keeps between epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from planner.nodes import COUNT, Aggregate, column

if TYPE_CHECKING:
    from planner.stream import State


def state_rows(state: State) -> exp.Select:
    """The stored rows under the node's field names."""
    listed = (exp.alias_(column(stored), name, quoted=True) for name, stored in state.columns)
    return exp.select(*listed).from_(f"{state.name}_state")


def alive(node: Aggregate, relation: str) -> exp.Select:
    """The groups that still have rows; without keys the one group never goes away."""
    query = exp.select(*(column(f.name) for f in node.fields)).from_(relation)
    if not node.keys:
        return query
    return query.where(exp.GT(this=column(COUNT), expression=exp.Literal.number(0)))
