"""SQL that reads and writes the state of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from sparkwave.planner.functions.typed import stored_value
from sparkwave.planner.plan.nodes import COUNT, Aggregate, column

if TYPE_CHECKING:
    from sparkwave.planner.plan.stream_plan import State


def state_rows(state: State) -> exp.Select:
    """Return the stored rows under the node's field names."""
    types = {f.name: f.type for f in state.node.fields}
    listed = (
        exp.alias_(stored_value(types[name], column(stored)), name, quoted=True) for name, stored in state.columns
    )
    return exp.select(*listed).from_(f"{state.name}_state", copy=False)


def alive(node: Aggregate, relation: str) -> exp.Select:
    """Return the groups that still have rows; without keys the one group never goes away."""
    query = exp.select(*(column(f.name) for f in node.fields)).from_(relation, copy=False)
    if not node.keys:
        return query
    return query.where(exp.GT(this=column(COUNT), expression=exp.Literal.number(0)))
