"""Replaces `document - key` of jsonb by a call, because the operator's text does not tell DuckDB the operand types."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import JSONB
from sparkwave.planner.batch.typer import Columns, NameTables, Typer
from sparkwave.planner.bind.output_names import NO_NAME
from sparkwave.planner.functions.typed import type_of_part


def with_removals(tree: exp.Expr, typed: Typer) -> exp.Expr:
    """Replace removals in an untyped tree, changed in place; it is typed if there are any documents."""
    found = list(tree.find_all(exp.Sub))
    if not found or not _has_documents(tree, typed.name_tables):
        return tree
    for node, place in zip(found, typed(tree, found), strict=True):
        if place is None or type_of_part(place.this) != JSONB:
            continue
        call = exp.Anonymous(this="jsonb_without", expressions=[node.this, node.expression])
        call.meta["name"] = NO_NAME
        node.replace(call)
    return tree


def _has_documents(tree: exp.Expr, name_tables: NameTables) -> bool:
    kinds = (exp.DataType.Type.JSON, exp.DataType.Type.JSONB)
    if any(node.this in kinds for node in tree.find_all(exp.DataType)):
        return True
    tables: dict[str, Columns] = {}
    name_tables(tree.copy(), tables)
    return any(type_ == JSONB for columns in tables.values() for type_ in columns.values())
