"""The columns of a table that definitions read, so that ALTER TABLE leaves every view as it is."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.planner.bind.binder import annotated, scope_of
from sparkwave.planner.definitions.sinks import written_columns
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.statements import CreateMaterializedView, CreateSink, CreateView


def readers_of(catalog: Catalog, table: Relation, lake_name: str) -> list[Relation]:
    """Return the relations whose definitions read a column of a table, by its name in the lake; `SELECT *` reads all.

    Sinks that write the column are among them.
    """
    return [r for r in catalog.dependents(table.id) if lake_name in lake_columns_read(r, table, catalog)]


def lake_columns_read(reader: Relation, table: Relation, catalog: Catalog) -> frozenset[str]:
    """Return the columns of a table that a definition reads, also through views; all where they cannot be told.

    For an index, all are those that existed when it was made. For a sink into the table, they are those that it writes.
    """
    if reader.target == table.id:
        return frozenset(column.lake_name for column in written_columns(reader, table))
    known = table.as_of(reader.definition_id) if reader.is_index else table
    everything = frozenset(column.lake_name for column in known.stored)
    statement = parse_statement(reader.definition)
    if not isinstance(statement, CreateView | CreateMaterializedView | CreateSink):
        return everything
    if not isinstance(statement.query, exp.Query):
        return frozenset()
    try:
        bound = annotated(statement.query, catalog, scope_of(reader))
    except Error:
        return everything
    found: set[str] = set()
    lake_names: dict[str, dict[str, str]] = {}
    for source in bound.tree.find_all(exp.Table):
        relation = bound.tables.get(source.name)
        if relation is not None and relation.id == table.id:
            lake_names[source.alias] = {column.name: column.lake_name for column in relation.columns}
            found |= {column.lake_name for column in relation.columns if column.name in relation.key}
    for column in bound.tree.find_all(exp.Column):
        found.add(lake_names.get(column.table, {}).get(column.name, ""))
    return frozenset(found) & everything
