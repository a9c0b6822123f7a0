"""The query of a streaming job, whatever its statement, with its outputs, order of rows and storage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.catalog.relation_details import INDEX, MATERIALIZED_VIEW, SINK, Index
from sparkwave.planner import since
from sparkwave.planner.bind.binder import Scope, resolve
from sparkwave.planner.bind.output_names import named_for_view, without_written_names
from sparkwave.planner.definitions.indexes import clustering, first_name, index_of, index_query
from sparkwave.planner.definitions.sinks import into_target, sink_options, target_of
from sparkwave.planner.plan.nodes import Order, Project
from sparkwave.planner.statements import CreateIndex, CreateMaterializedView, CreateSink, CreateStreaming, Option

KINDS: dict[type, str] = {CreateMaterializedView: MATERIALIZED_VIEW, CreateIndex: INDEX, CreateSink: SINK}


@dataclass(frozen=True)
class Streaming:
    """`shape` names the outputs of the query's plan, and casts them where they have to fit a table.

    `clustering` is the order in which rows are written together. Without `is_stored` the changes of rows are sent on
    and not kept. `index` has the properties of an index besides those of a relation.
    """

    query: exp.Query
    options: tuple[Option, ...]
    shape: Callable[[Project], Project]
    emits_on_window_close: bool = False
    clustering: tuple[Order, ...] = ()
    is_stored: bool = True
    index: Index | None = None


def streaming_of(statement: CreateStreaming, catalog: Catalog, scope: Scope, made: Relation | None = None) -> Streaming:
    """Return the streaming query of a statement. Raises Error 42P01, 42703, 42809, 42601 or 22023.

    `made` is the stored relation that the statement made earlier: its columns are as they were then.
    """
    match statement:
        case CreateMaterializedView():
            written = statement.query
            if made is not None and made.planner < since.WRITTEN_NAMES:
                without_written_names(written := written.copy())
            return Streaming(
                _told_apart(written, statement.columns) if statement.columns else named_for_view(written),
                statement.options,
                lambda root: _renamed(root, statement.columns),
                statement.emit_on_window_close,
            )
        case CreateIndex():
            index = index_of(statement, catalog, scope)
            query = index_query(statement, index, catalog, scope, made)
            return Streaming(query, statement.options, lambda root: root, clustering=clustering(index), index=index)
        case CreateSink():
            target = target_of(statement, catalog, scope)
            return Streaming(
                named_for_view(statement.query) if made is None else _as_made(statement, made, catalog, scope),
                sink_options(statement).of_job,
                lambda root: root if target is None else into_target(root, statement, target, made),
                statement.emit_on_window_close,
                is_stored=False,
            )


def _as_made(statement: CreateSink, made: Relation, catalog: Catalog, scope: Scope) -> exp.Query:
    """Return the query of a stored sink, whose source may have more columns, and another name, by now."""
    if statement.source is None:
        return statement.query
    query = statement.query.copy()
    assert isinstance(query, exp.Select)
    first = first_name(resolve(catalog, scope, statement.source, is_read=True), made)
    [table] = query.find_all(exp.Table)
    table.set("alias", exp.TableAlias(this=exp.to_identifier(first, quoted=True)))
    if made.target is not None:  # the table's columns have other names
        return query
    return query.select(*(exp.column(exp.to_identifier(c.name, quoted=True)) for c in made.visible), append=False)


def _told_apart(query: exp.Query, names: tuple[str, ...]) -> exp.Query:
    """Return a query whose outputs get these names, in which those of one name have them already."""
    query = query.copy()
    first: exp.Expr = query
    while isinstance(first, exp.SetOperation | exp.Subquery):
        first = first.this
    items = first.selects if isinstance(first, exp.Select) else []
    own = [item.alias_or_name for item in items]
    if len(items) == len(names) and not any(item.is_star for item in items):
        for item, taken, name in zip(items, own, names, strict=True):
            if taken and own.count(taken) > 1:
                made = exp.alias_(item.unalias().copy(), name, quoted=True)
                item.replace(made)
    return query


def _renamed(root: Project, names: tuple[str, ...]) -> Project:
    if not names:
        return root
    if len(names) != len(root.items):
        raise Error(f"the view has {len(root.items)} columns but {len(names)} names are given", errors.SYNTAX_ERROR)
    return replace(root, items=tuple(replace(i, name=n) for i, n in zip(root.items, names, strict=True)))
