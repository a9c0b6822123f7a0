"""Queries over the server's copies of relations in memory, which have a schema of their own."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog.model import Relation
from sparkwave.catalog.names import BUFFER, COPIES, SERVING_SCHEMA, copy_name
from sparkwave.catalog.types import Type
from sparkwave.planner.batch.parameters import parameter_number
from sparkwave.planner.parse.identifiers import folded

RELATION = "relation"  # marks a table of the lake with the id of its relation


@dataclass(frozen=True)
class Lookup:
    """A query for plain columns of the rows with a value in one column: `SELECT a, b FROM t WHERE k = $1`.

    `parameter` counts from 0. `column` and the returned `outputs` have the lake's names.
    """

    relation: int
    column: str
    parameter: int
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Served:
    """A query's text over copies of the relations that it reads, by id, and its lookup if it is one.

    `reads_views` tells that it reads materialized views, which are in memory in any case.
    """

    sql: str
    relations: frozenset[int]
    reads_views: bool
    lookup: Lookup | None = None


def over_copies(tree: exp.Expr) -> Served | None:
    """Return a finished tree over copies of all that it reads of the lake.

    None unless it reads only relations, in their present state. The tree is changed and must not be used again.
    """
    found, reads_views = set(), False
    for table in tree.find_all(exp.Table):
        if table.catalog == BUFFER:
            reads_views = True
            continue
        relation = table.meta.get(RELATION)
        if relation is None:
            if table.catalog:
                return None
            continue
        if table.args.get("when") is not None:
            return None
        found.add(relation)
        for part, name in (("this", copy_name(relation)), ("db", SERVING_SCHEMA), ("catalog", COPIES)):
            table.set(part, exp.to_identifier(name, quoted=True))
    if not found and not reads_views:
        return None
    return Served(tree.sql(dialect="duckdb", copy=False), frozenset(found), reads_views)


def find_lookup(tree: exp.Expr, relations: dict[int, Relation], parameters: tuple[Type, ...]) -> Lookup | None:
    """Return the lookup of a client's query, None if it is no lookup.

    `relations` are by the id of its tables' nodes.
    """
    if not isinstance(tree, exp.Select) or _given(tree) != {"expressions", "from_", "where"}:
        return None
    table, where = tree.args["from_"].this, tree.args["where"].this
    relation = relations.get(id(table))
    if relation is None or relation.is_view or not _given(table) <= {"this", "db", "catalog", "alias"}:
        return None
    alias = table.args.get("alias")
    if not isinstance(where, exp.EQ) or (alias is not None and alias.columns):
        return None
    columns = {column.name: column for column in relation.visible}
    name = folded(alias.this if alias is not None else table.this)
    column, number = _column(where.this, name), parameter_number(where.expression)
    if column not in columns or number is None or not _comparable(columns[column].type, parameters[number - 1]):
        return None
    outputs: list[str] = []
    for item in tree.expressions:
        value = item.unalias()
        if type(value) is exp.Star and not _given(value):
            outputs += columns
            continue
        output = _column(value, name)
        if output not in columns:
            return None
        outputs.append(output)
    stored = tuple(columns[output].lake_name for output in outputs)
    return Lookup(relation.id, columns[column].lake_name, number - 1, stored)


def _given(node: exp.Expr) -> set[str]:
    """Return the names of a node's non-empty arguments."""
    return {name for name, value in node.args.items() if value}


def _column(node: exp.Expr, table: str) -> str:
    """Return the name of a plain column of a table; empty for anything else."""
    if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier) or node.args.get("db"):
        return ""
    qualifier = node.args.get("table")
    return folded(node.this) if qualifier is None or folded(qualifier) == table else ""


def _comparable(column: Type, value: Type) -> bool:
    """Return whether values of both types compare as in Python."""
    return (column.is_integer and value.is_integer) or (column.is_text and value.is_text)
