"""The operators of a created relation's fragment: of the whole plan, which one program computes."""

from __future__ import annotations

from sparkwave.catalog.model import Catalog, Relation
from sparkwave.planner.explain.operator_tree import Operator, with_readable_names
from sparkwave.planner.explain.plan_tree import view_operators
from sparkwave.planner.explain.table_operators import table_operators
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.plan.stream_plan import plan_definition
from sparkwave.planner.statements import CreateTable


def fragment_operators(relation: Relation, catalog: Catalog) -> Operator:
    """Return the operators of a table, source, materialized view, index or sink, with all fields."""
    if relation.is_streaming:
        return with_readable_names(view_operators(plan_definition(relation, catalog), verbose=True))
    if relation.is_table and relation.kind == "table":
        statement = parse_statement(relation.definition)
        assert isinstance(statement, CreateTable)
        return table_operators(statement)
    columns = tuple(column.name for column in relation.visible)
    return Operator("StreamSource", (("source", relation.name), ("columns", columns)), output=columns)
