"""The operators of a created relation's fragment: of the whole plan, which one program computes without exchanges."""

from __future__ import annotations

from dataclasses import replace

from sparkwave.catalog.model import Catalog, Relation
from sparkwave.planner.explain.operator_tree import Operator, with_readable_names
from sparkwave.planner.explain.plan_tree import view_operators
from sparkwave.planner.explain.table_operators import table_operators
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.plan.stream_plan import plan_definition
from sparkwave.planner.statements import CreateTable


def fragment_operators(relation: Relation, catalog: Catalog) -> Operator:
    """Return the operators of a table, source, materialized view, index or sink, with all fields and no exchanges."""
    if relation.is_streaming:
        operators = view_operators(plan_definition(relation, catalog), verbose=True)
        return _without_exchanges(with_readable_names(operators))
    if relation.kind == "table":
        statement = parse_statement(relation.definition)
        assert isinstance(statement, CreateTable)
        return _without_exchanges(table_operators(statement))
    columns = tuple(column.name for column in relation.visible)
    return Operator("StreamSource", (("source", relation.name), ("columns", columns)), output=columns)


def _without_exchanges(operator: Operator) -> Operator:
    if operator.name == "StreamExchange":
        return _without_exchanges(operator.children[0])
    return replace(operator, children=tuple(map(_without_exchanges, operator.children)))
