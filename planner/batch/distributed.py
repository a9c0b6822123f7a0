"""Plans queries for Spark like those of views.

Where a view has NULL for an error of one row, a query raises an error, as on DuckDB.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import RW_TIMESTAMP
from sparkwave.planner.batch.query import Environment, find_relation, names_column
from sparkwave.planner.bind.output_names import name_outputs
from sparkwave.planner.bind.sql_functions import with_functions
from sparkwave.planner.bind.user_types import with_user_types
from sparkwave.planner.build.sort_keys import order_of
from sparkwave.planner.parse.trees import is_cte, name_of, query_of
from sparkwave.planner.plan.stream_plan import StreamPlan, plan_view
from sparkwave.planner.statements import CreateMaterializedView, Name

_HINT = "SET query_mode = local runs it in the server."


@dataclass(frozen=True)
class Distributed:
    """A query's plan. `order` is its ORDER BY over the numbers of its outputs, as SQL, or empty."""

    plan: StreamPlan
    order: str


def reads_stored(tree: exp.Expr, environment: Environment) -> bool:
    """Return whether a query reads users' relations and no system ones, nor when rows were written.

    Other queries are never distributed.
    """
    if names_column(tree, RW_TIMESTAMP):
        return False
    tables = [t for t in tree.find_all(exp.Table) if isinstance(t.this, exp.Identifier) and not is_cte(t)]
    found = [find_relation(name_of(table), environment) for table in tables]
    return bool(found) and all(each is not None and each.streaming.retention_s is None for each in found)


def plan_distributed(tree: exp.Expr, environment: Environment, width: int) -> Distributed:
    """Return the plan of a query that has been planned for DuckDB and has `width` outputs.

    Raises Error 0A000 with the reason why the query cannot run on Spark.
    """
    catalog, scope = environment.catalog, environment.scope
    if environment.versions or environment.overlays:
        raise _refused("it reads the past, or what its transaction has written")
    query = with_user_types(with_functions(tree, catalog, scope).copy(), catalog, scope)
    if isinstance(query, exp.Values):
        query = query_of(query)
    name_outputs(query)
    assert isinstance(query, exp.Query)
    try:
        names = tuple(f"output_{number}" for number in range(width))  # two of the query's own names may be equal
        view = CreateMaterializedView(Name(None, None, "query", 1), names, query, (), False, "")
        plan = plan_view(view, catalog, scope)
    except Error as error:
        raise _refused(error.message.replace(" in a materialized view", ""), error.position) from error
    return Distributed(plan, _order(query))


def _order(query: exp.Expr) -> str:
    """Return the ORDER BY over outputs. Raises Error 0A000 for another sort key."""
    while isinstance(query, exp.Subquery):
        query = query.this
    order = query.args.get("order")
    if order is None:
        return ""
    selects = query.selects if isinstance(query, exp.Query) else []
    names = [select.alias_or_name for select in selects]
    parts = []
    for ordered in order.expressions:
        by = ordered.this
        if isinstance(by, exp.Literal) and by.is_int:
            place = int(by.name)
        elif isinstance(by, exp.Column) and not by.table and names.count(by.name) == 1:
            place = names.index(by.name) + 1
        else:
            places = [n for n, select in enumerate(selects, start=1) if select.unalias() == by]
            if not places or any(select.is_star for select in selects):
                raise _refused("it is ordered by something that it does not return")
            place = places[0]
        found = order_of(str(place), ordered)
        direction = "DESC" if found.descending else "ASC"
        parts.append(f"{place} {direction} NULLS {'FIRST' if found.nulls_first else 'LAST'}")
    return f" ORDER BY {', '.join(parts)}"


def _refused(reason: str, position: int | None = None) -> Error:
    message = f"this query cannot run on Spark: {reason}"
    return Error(message, errors.FEATURE_NOT_SUPPORTED, hint=_HINT, position=position)
