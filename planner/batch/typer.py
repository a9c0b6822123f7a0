"""Types of the expressions in a statement that is not bound, worked out by sqlglot on a copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.annotate_types import TypeAnnotator
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

from sparkwave.catalog.errors import Error
from sparkwave.catalog.types import DATE, TIMESTAMPTZ, Type
from sparkwave.planner.batch.row_functions import expand_series
from sparkwave.planner.batch.whole_queries import as_query
from sparkwave.planner.bind.grouped_queries import with_grouped_queries
from sparkwave.planner.bind.lateral_types import annotate_with_laterals
from sparkwave.planner.bind.output_names import name_subqueries
from sparkwave.planner.bind.sort_columns import without_positions
from sparkwave.planner.build.time_windows import prepare_from
from sparkwave.planner.functions.operators import METADATA
from sparkwave.planner.functions.result_types import Known, common
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.set_returning import WRITTEN_UNNEST

# The types of a relation's columns by name.
Columns = Mapping[str, Type]
# Gives the tables of a tree unique names, and adds the types of their columns under these.
NameTables = Callable[[exp.Expr, dict[str, Columns]], None]
# Identifies a node in a copy of its tree.
_MARK = "number"


def name_apart(table: exp.Table, columns: Columns, tables: dict[str, Columns]) -> None:
    """Give a table a unique name, under which `tables` gets its columns; its alias is the name that it had."""
    unique = f"_{len(tables)}"
    tables[unique] = columns
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(folded(table.this), quoted=True)))
    table.set("this", exp.to_identifier(unique, quoted=True))
    table.set("db", None)
    table.set("catalog", None)


class Typer:
    """Finds the typed counterparts of nodes. A tree is typed once, and again after it has changed."""

    def __init__(self, name_tables: NameTables) -> None:
        self.name_tables = name_tables
        self._nodes: list[exp.Expr] = []  # of the tree that was typed last; held, so that no other node has their ids
        self._found: dict[int, exp.Expr] = {}  # their counterparts, by the ids of the nodes

    def __call__(self, tree: exp.Expr, nodes: Sequence[exp.Expr]) -> list[exp.Expr | None]:
        """Return the counterparts of some nodes of a tree, None where there is none."""
        # sqlglot forgets the hash of a node and of all above it whenever a part of it is set.
        if not self._nodes or self._nodes[0] is not tree or tree._hash is None:
            self._type(tree)
        return [self._found.get(id(node)) for node in nodes]

    def _type(self, tree: exp.Expr) -> None:
        hash(tree)
        self._nodes = list(tree.walk())
        copied = tree.copy()
        for number, part in enumerate(copied.walk()):
            part.meta[_MARK] = number
        found = {part.meta[_MARK]: part for part in self._typed(copied).walk() if _MARK in part.meta}
        self._found = {id(self._nodes[number]): part for number, part in found.items()}

    def copy_of(self, tree: exp.Expr) -> exp.Expr:
        """Return a query with the same expressions, typed as far as possible."""
        return self._typed(tree.copy())

    def _typed(self, tree: exp.Expr) -> exp.Expr:
        """Type the tree itself, where `copy_of` types a copy."""
        try:
            query = expand_series(prepare_from(as_query(tree), copy=False))
            with_grouped_queries(query)
            name_subqueries(query)
            if query.find(exp.Star) is not None:
                without_positions(query)
            tables: dict[str, Columns] = {}
            self.name_tables(query, tables)
            types: dict[str, object] = {
                name: {column: _data_type(type_) for column, type_ in columns.items()}
                for name, columns in tables.items()
            }
            schema = MappingSchema(types, dialect="postgres", normalize=False)
            query = qualify(query, schema=schema, dialect="postgres", validate_qualify_columns=False)
            return annotate_with_laterals(query, schema, _METADATA)
        except (SqlglotError, Error):
            return tree  # its error is reported when it is planned


def types_in(tree: exp.Expr, typed: Typer) -> dict[int, Known]:
    """Return the types of the nodes of a tree, by their ids."""
    nodes = list(tree.walk())
    pairs = zip(nodes, typed(tree, nodes), strict=True)
    types = {id(node): type_of_part(place) for node, place in pairs if place is not None}
    for select in tree.find_all(exp.Select):
        _type_order(select, types)
    return types


def _type_order(select: exp.Select, types: dict[int, Known]) -> None:
    """Type what ORDER BY and GROUP BY have of the select list: the typed tree has names and places instead."""
    order, group = select.args.get("order"), select.args.get("group")
    items = {item: item for item in (item.unalias() for item in select.selects)}
    given = [ordered.this for ordered in order.expressions] if order is not None else []
    for place in [*given, *(group.expressions if group is not None else ())]:
        if (item := items.get(place)) is not None:
            for part, same in zip(place.walk(), item.walk(), strict=True):
                types[id(part)] = types.get(id(same)) or types.get(id(part))


def type_of_value(node: exp.Expr) -> Known:
    """Return the type of an expression, also of a subquery, in a typed tree."""
    node = node.unalias().unnest()
    if isinstance(node, exp.Subquery):
        return output_type(node.unnest(), 0)
    if isinstance(node, exp.Select):
        return output_type(node, 0)
    return type_of_part(node)


def output_type(query: exp.Expr, place: int) -> Known:
    """Return the type of an output of a query in a typed tree."""
    selects = query.selects if isinstance(query, exp.Query) else []
    return type_of_value(selects[place]) if place < len(selects) else None


def _series(annotator: TypeAnnotator, node: exp.Expr) -> exp.Expr:
    found = common(tuple(type_of_value(part) for part in (node.args["start"], node.args["end"])))
    annotator._set_type(node, _data_type(TIMESTAMPTZ if found == DATE else found) if found is not None else None)
    return node


def _unnested(annotator: TypeAnnotator, node: exp.Expr) -> exp.Expr:
    """Annotate unnest, which gives the elements of inner arrays; elements of several arrays have no common type.

    A function that is written otherwise, such as regexp_matches, gives inner arrays.
    """
    arrays = node.expressions if isinstance(node, exp.Unnest) else [node.this, *node.expressions]
    found = type_of_value(arrays[0]) if len(arrays) == 1 else None
    is_array = found is not None and found.dimensions > 0
    dimensions = 0 if found is None or WRITTEN_UNNEST in node.meta else found.dimensions - 1
    of_element = _data_type(replace(found, dimensions=dimensions)) if found is not None and is_array else None
    annotator._set_type(node, of_element)
    return node


_METADATA: dict[type[exp.Expr], Any] = {
    **METADATA,
    exp.ExplodingGenerateSeries: {"annotator": _series},
    **{kind: {"annotator": _unnested} for kind in (exp.Unnest, exp.Explode)},
}


def _data_type(type_: Type) -> exp.DataType:
    return _built(type_).copy()


@lru_cache(maxsize=1000)
def _built(type_: Type) -> exp.DataType:
    return exp.DataType.build(type_.duckdb(), dialect="duckdb")
