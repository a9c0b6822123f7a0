"""Privileges on single columns: the columns of a relation that a statement reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.qualify import qualify
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import MappingSchema

from sparkwave.catalog.errors import Error
from sparkwave.planner.batch.whole_queries import as_query
from sparkwave.planner.bind.merged_columns import is_natural
from sparkwave.planner.build.time_windows import prepare_from
from sparkwave.planner.parse.identifiers import folded

# The column names of relations, by the ids of the nodes that name the relations.
Named = Mapping[int, tuple[str, ...]]


def columns_read(
    tree: exp.Expr, named: Named, resolve: Callable[[exp.Expr], object]
) -> Mapping[int, frozenset[str]] | None:
    """Return the columns that a statement reads of some of its tables, by the ids of the nodes that name the tables.

    None when the columns cannot be told. Tables that are not among `named` keep their names.
    """
    marked = {number: id(node) for number, node in enumerate(tree.find_all(exp.Table)) if id(node) in named}
    copied = tree.copy()
    names: dict[str, int] = {}
    try:
        resolve(copied)
    except Error:
        return None
    for number, table in enumerate(copied.find_all(exp.Table)):
        if number not in marked:
            continue
        name = f"_{number}"
        names[name] = marked[number]
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(folded(table.this), quoted=True)))
        table.set("this", exp.to_identifier(name, quoted=True))
        table.set("db", None)
        table.set("catalog", None)
    schema = MappingSchema(
        {name: dict.fromkeys(named[node], "varchar") for name, node in names.items()},
        dialect="postgres",
        normalize=False,
    )
    try:
        query = prepare_from(as_query(copied))
        query = qualify(query, schema=schema, dialect="postgres", validate_qualify_columns=False)
        found: dict[int, set[str]] = {node: set() for node in names.values()}
        for source, column in _read(query):
            if source is None:
                return None
            if source.name in names:
                found[names[source.name]].add(column)
    except (SqlglotError, Error):
        return None
    is_known = all(columns <= set(named[node]) for node, columns in found.items())
    return {node: frozenset(columns) for node, columns in found.items()} if is_known else None


def _read(query: exp.Expr) -> Iterator[tuple[exp.Table | None, str]]:
    """Yield each column that a qualified query reads, with its table; None for an unknown table."""
    if any(map(is_natural, query.find_all(exp.Join))) or query.find(exp.Columns, exp.Pivot, exp.TableColumn):
        yield None, ""
    for scope in traverse_scope(query):
        inner = scope.expression
        outputs = {item.alias_or_name for item in inner.selects} if isinstance(inner, exp.Query) else set()
        for column in scope.columns:
            if column.table in scope.sources:
                source = scope.sources[column.table]
                if isinstance(source, exp.Table):
                    yield source, column.name
            elif not column.table and not (column.name in outputs and column.find_ancestor(exp.Order, exp.Group)):
                yield None, ""
        if any(isinstance(star.parent, exp.Select | exp.Column) for star in scope.find_all(exp.Star)):
            yield None, ""
