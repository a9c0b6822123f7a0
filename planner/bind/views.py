"""Views: each reference to a view is replaced by its stored definition."""

from __future__ import annotations

from functools import lru_cache

from sqlglot import exp

from sparkwave.catalog.model import Catalog, Relation
from sparkwave.planner import since
from sparkwave.planner.bind.dependent_columns import group_by_dependents
from sparkwave.planner.bind.merged_columns import columns_in
from sparkwave.planner.bind.output_names import name_selects, without_written_names
from sparkwave.planner.bind.scopes import scope_of
from sparkwave.planner.bind.session_rows import with_session_rows
from sparkwave.planner.bind.sql_functions import with_functions
from sparkwave.planner.bind.table_references import resolve_references
from sparkwave.planner.bind.typed_rows import with_typed_rows
from sparkwave.planner.bind.user_types import with_user_types
from sparkwave.planner.build.time_windows import prepare_from
from sparkwave.planner.functions.flat_unnest import without_flat_unnests
from sparkwave.planner.functions.written_json import with_json
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.statement import parse_statement
from sparkwave.planner.parse.trees import is_cte
from sparkwave.planner.statements import CreateView

# Arguments of a table node that move to its replacement.
_KEPT_ARGUMENTS = ("joins", "laterals", "sample", "pivots")


def reference(view: Relation, table: exp.Table, catalog: Catalog) -> exp.Subquery:
    """Return the subquery that replaces a reference to a view, with the view's column names and the reference's alias.

    Its names are still those of the definition, to be looked up in the view's scope. Its positions are the reference's,
    so that errors point into the user's statement.
    """
    scope = scope_of(view)
    definition = _definition(view.definition).copy()
    if view.planner < since.WRITTEN_NAMES:
        without_written_names(definition)
    name_selects(definition)
    with_session_rows(definition, columns_in(catalog, scope))
    with_typed_rows(definition, catalog, scope)
    definition = with_functions(definition, catalog, scope)
    if view.planner >= since.DEPENDENT_COLUMNS:
        group_by_dependents(definition, catalog, scope)
    if view.planner < since.FLAT_UNNESTS:
        without_flat_unnests(definition)
    query = with_user_types(with_json(definition, view.planner >= since.JSON_APART), catalog, scope)
    query = _as_subquery(resolve_references(query, catalog, scope), f"_view{view.id}_")
    for node in query.walk():
        if "start" in node.meta:
            node.meta.update(table.this.meta)
    subquery = exp.Subquery(this=query, alias=_alias(view, table))
    keep_arguments(table, subquery)
    return subquery


def keep_arguments(table: exp.Table, replacement: exp.Expr) -> None:
    """Move the joins and the like of a table node to its replacement."""
    for argument in _KEPT_ARGUMENTS:
        if table.args.get(argument):
            replacement.set(argument, table.args[argument])


def _alias(view: Relation, table: exp.Table) -> exp.TableAlias:
    """Return the reference's alias, or the view's name, with all column names, the reference's first."""
    given = table.args.get("alias")
    renamed = list(given.columns) if given is not None else []
    columns = [exp.to_identifier(column.name, quoted=True) for column in view.visible[len(renamed) :]]
    name = given.this if given is not None else exp.to_identifier(folded(table.this), quoted=True)
    return exp.TableAlias(this=name.copy(), columns=[*(column.copy() for column in renamed), *columns])


@lru_cache(maxsize=1000)
def _definition(text: str) -> exp.Query | exp.Values:
    statement = parse_statement(text)
    assert isinstance(statement, CreateView)
    return statement.query


def _as_subquery(query: exp.Query | exp.Values, prefix: str) -> exp.Query:
    """Return the query of a definition in a form that fits as a subquery; its CTEs get the prefix."""
    if isinstance(query, exp.Values):
        query.set("alias", exp.TableAlias(this=exp.to_identifier("values", quoted=True)))
        return exp.select("*").from_(query)
    query = prepare_from(query)
    _rename_ctes(query, prefix)
    if query.args.get("order") is not None:
        # ORDER BY may use the names of the outputs, which become the view's.
        return exp.select("*").from_(query.subquery("ordered", copy=False))
    return query


def _rename_ctes(query: exp.Query, prefix: str) -> None:
    """Keep the names of the definition's CTEs distinct from those of the surrounding query."""
    references = [t for t in query.find_all(exp.Table) if isinstance(t.this, exp.Identifier) and is_cte(t)]
    for table in references:
        name = folded(table.this)
        if not table.alias:
            table.set("alias", exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        table.set("this", _renamed(table.this, prefix))
    for cte in query.find_all(exp.CTE):
        cte.args["alias"].set("this", _renamed(cte.args["alias"].this, prefix))


def _renamed(identifier: exp.Identifier, prefix: str) -> exp.Identifier:
    renamed = exp.to_identifier(prefix + folded(identifier), quoted=True)
    renamed.meta.update(identifier.meta)
    return renamed
