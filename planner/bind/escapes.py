"""Escapes users' names in a bound query (`catalog.column_names`), so that they do not clash with names of plans."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp
from sqlglot.optimizer.scope import traverse_scope

from sparkwave.catalog.column_names import escaped, unescaped
from sparkwave.catalog.model import ROW_ID, Relation, has_row_id
from sparkwave.planner.bind.binder import BoundQuery
from sparkwave.planner.plan.nodes import Project


def escape_query(bound: BoundQuery) -> BoundQuery:
    """Escape every name of a column and an alias in a query, and the names of the relations' columns.

    The tree is changed in place.
    """
    row_ids = _row_ids(bound)
    for node in bound.tree.walk():
        match node:
            case exp.Identifier() if id(node.parent) in row_ids and node.arg_key == "this":
                continue
            case exp.Identifier(parent=exp.Column() | exp.Alias() | exp.TableAlias() | exp.Unnest()):
                node.set("this", escaped(node.name))
            case exp.Identifier(parent=exp.Table() as table) if table.name not in bound.tables:
                node.set("this", escaped(node.name))
    return BoundQuery(bound.tree, {name: escape_relation(relation) for name, relation in bound.tables.items()})


def _row_ids(bound: BoundQuery) -> set[int]:
    """Return the ids of the nodes that name the `_row_id` of a table."""
    if not any(column.name == ROW_ID for column in bound.tree.find_all(exp.Column)):
        return set()
    found = set()
    for scope in traverse_scope(bound.tree):
        for column in scope.columns:
            source = scope.sources.get(column.table)
            relation = bound.tables.get(source.name) if isinstance(source, exp.Table) else None
            if column.name == ROW_ID and relation is not None and has_row_id(relation):
                found.add(id(column))
    return found


def escape_relation(relation: Relation) -> Relation:
    """Return a relation whose columns have the names that plans use (`catalog.column_names`)."""
    names = {c.name: escaped(c.name) for c in relation.columns if not (relation.is_table and c.name == ROW_ID)}
    if all(name == own for own, name in names.items()):
        return relation
    watermark = relation.watermark and replace(relation.watermark, column=names[relation.watermark.column])
    columns = tuple(replace(c, name=names.get(c.name, c.name), made_as=c.lake_name) for c in relation.columns)
    return replace(relation, columns=columns, key=tuple(names.get(k, k) for k in relation.key), watermark=watermark)


def escape_outputs(root: Project) -> Project:
    """Return a root whose columns have the names that plans use."""
    return replace(root, items=tuple(replace(item, name=escaped(item.name)) for item in root.items))


def unescape_outputs(root: Project) -> Project:
    """Return the plan with the users' names of its outputs."""
    return replace(root, items=tuple(replace(item, name=unescaped(item.name)) for item in root.items))
