"""SQL that reads and writes the state of an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import exp

from sparkwave.catalog.names import quote
from sparkwave.catalog.types import Type
from sparkwave.planner.plan.nodes import COUNT, Aggregate, column

if TYPE_CHECKING:
    from sparkwave.planner.plan.stream_plan import State


def state_rows(state: State) -> exp.Select:
    """Return the stored rows under the node's field names."""
    types = {f.name: f.type for f in state.node.fields}
    listed = (exp.alias_(_stored_value(stored, types[name]), name, quoted=True) for name, stored in state.columns)
    return exp.select(*listed).from_(f"{state.name}_state")


def _stored_value(name: str, type_: Type) -> exp.Expr:
    if type_.is_read_as_stored:
        return column(name)
    return sqlglot.parse_one(type_.from_lake(quote(name)), read="duckdb")


def alive(node: Aggregate, relation: str) -> exp.Select:
    """Return the groups that still have rows; without keys the one group never goes away."""
    query = exp.select(*(column(f.name) for f in node.fields)).from_(relation)
    if not node.keys:
        return query
    return query.where(exp.GT(this=column(COUNT), expression=exp.Literal.number(0)))
