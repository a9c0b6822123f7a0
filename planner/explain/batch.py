"""Shows queries and writes as RisingWave's batch operators, and any plan as logical operators.

DuckDB plans and runs a query itself. This is the planner's own plan, before keys are carried for maintenance.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import Catalog, Relation
from sparkwave.planner.batch.index_selection import select_indexes
from sparkwave.planner.bind.binder import BoundQuery, Scope, bind, resolve
from sparkwave.planner.bind.scopes import find_read
from sparkwave.planner.bind.table_references import resolve_references
from sparkwave.planner.build.builder import columns_in, scalar
from sparkwave.planner.build.sort_keys import order_of
from sparkwave.planner.build.view_query import build
from sparkwave.planner.explain.expressions import show, show_order
from sparkwave.planner.explain.operator_tree import BATCH, LOGICAL, Operator, exchange
from sparkwave.planner.explain.plan_tree import Printer
from sparkwave.planner.parse.trees import is_cte, name_of, other_tables
from sparkwave.planner.plan.distribution import SINGLE, Distribution, distribution
from sparkwave.planner.plan.nodes import Aggregate, Node, Order, OverWindow, Project, TopN, walk
from sparkwave.planner.plan.outputs import limit_outputs
from sparkwave.planner.plan.rules import RULES, carry_keys, keep_state_in_view
from sparkwave.planner.statements import Delete, Insert, Merge, Query, Update

_UPKEEP_ONLY = (carry_keys, keep_state_in_view, limit_outputs)


def logical_steps(query: exp.Expr, catalog: Catalog, scope: Scope) -> Iterator[tuple[str, Project]]:
    """Yield a query's plan as built, then after each rule that changed it, with the rules' names."""
    root = build(bind(_as_query(query), catalog, scope))
    yield "Begin", root
    for rule in RULES:
        if rule in _UPKEEP_ONLY:
            continue
        rewritten = rule(root)
        assert isinstance(rewritten, Project)
        if rewritten != root:
            yield rule.__name__.replace("_", " ").title(), rewritten
        root = rewritten


def logical_operators(root: Node, verbose: bool, keeps_unused: bool = False) -> Operator:
    """Return a plan in logical operators; with `keeps_unused` also with columns that no operator reads."""
    return Printer(LOGICAL, verbose, used=None if keeps_unused else _used(root)).of(root)[0]


def batch_operators(
    statement: Query | Insert | Update | Delete | Merge,
    catalog: Catalog,
    scope: Scope,
    verbose: bool,
    indexes: bool = False,
) -> Operator:
    """Return the plan of a query, which may read `indexes`, or of a write.

    Raises Error where the planner has no operator for a part of it.
    """
    if isinstance(statement, Query):
        return _query(
            _over_indexes(statement.tree, catalog, scope) if indexes else statement.tree, catalog, scope, verbose
        )
    target = resolve(catalog, scope, statement.table)
    if isinstance(statement, Merge) or (not isinstance(statement, Insert) and other_tables(statement.tree)):
        raise Error("no plan for a write that reads other tables", errors.FEATURE_NOT_SUPPORTED)
    if isinstance(statement, Insert):
        names = statement.columns or tuple(column.name for column in target.visible)
        source = statement.source or exp.select(*(exp.null() for _ in target.visible))
        below = _query(source, catalog, scope, verbose)
        places = [column.name for column in target.visible]
        mapping = tuple(f"{n}:{places.index(name)}" for n, name in enumerate(names[: len(below.output)]))
        return _write("Insert", target, below, ("mapping", mapping))
    matching = exp.select("*").from_(statement.tree.this.copy())
    where = statement.tree.args.get("where")
    matching = matching.where(where.this.copy()) if where is not None else matching
    below = _query(matching, catalog, scope, verbose, keeps_key=True)
    if isinstance(statement, Delete):
        return _write("Delete", target, below)
    new = {assignment.this.name: assignment.expression for assignment in statement.tree.expressions}
    old = {column.name: f"${place}" for place, column in enumerate(target.visible)}
    values = tuple(show(new[name], old) if name in new else place for name, place in old.items())
    return _write("Update", target, below, ("exprs", values))


def _over_indexes(tree: exp.Expr, catalog: Catalog, scope: Scope) -> exp.Expr:
    """Return the query over the indexes that serve it."""
    tree = resolve_references(tree.copy(), catalog, scope)

    def find_table(table: exp.Table) -> Relation | None:
        return None if is_cte(table) else find_read(catalog, scope, name_of(table))

    select_indexes(tree, catalog, find_table, lambda index: exp.table_(index.name, db=index.schema, quoted=True))
    return tree


def _write(name: str, target: Relation, below: Operator, *fields: tuple[str, tuple[str, ...]]) -> Operator:
    return Operator(f"{BATCH}{name}", (("table", target.name), *fields), (below,))


def _as_query(tree: exp.Expr) -> exp.Query:
    return tree if isinstance(tree, exp.Query) else exp.select("*").from_(tree.copy())


def _query(tree: exp.Expr, catalog: Catalog, scope: Scope, verbose: bool, keeps_key: bool = False) -> Operator:
    """Return a query with its ORDER BY, in one place; with `keeps_key` the rows of `SELECT *` have their keys too."""
    query = _as_query(tree)
    *_, (_, output) = logical_steps(query, catalog, scope)
    root = output.input if keeps_key else output
    printer = Printer(BATCH, verbose, used=_used(root))
    operator, names = printer.of(root)
    order = show_order(_sorts(bind(query, catalog, scope), output, names), {})
    if order:
        operator = Operator("BatchSort", (("order", order),), (operator,), output=operator.output)
    if distribution(root).kind != SINGLE:
        operator = exchange(BATCH, operator, (), names, Distribution(SINGLE))
        fields = tuple((key, order if key == "order" else value) for key, value in operator.fields)
        operator = Operator(operator.name, fields, operator.children, output=operator.output)
    return operator


def _sorts(bound: BoundQuery, root: Project, names: dict[str, str]) -> tuple[Order, ...]:
    """Return the ORDER BY of a query without LIMIT, for which its plan has no operator, with the plan's names."""
    query: exp.Expr = bound.tree
    while isinstance(query, exp.Subquery):
        query = query.this
    order = query.args.get("order")
    if order is None or query.args.get("limit") or query.args.get("offset"):
        return ()
    outputs = [item.name for item in root.items]
    tables = {f.name: f"{f.name}" for node in walk(root) for f in node.fields}
    selected = query.selects if isinstance(query, exp.Select) else []
    sorts = []
    for ordered in order.expressions:
        by = ordered.this
        if isinstance(by, exp.Literal) and by.is_int:
            shown = names[outputs[int(by.name) - 1]]
        elif isinstance(by, exp.Column) and not by.table and by.name in outputs:
            shown = names[by.name]
        else:
            place = next((n for n, item in enumerate(selected) if item.unalias() == by), None)
            shown = names[outputs[place]] if place is not None else show(scalar(by), tables)
        sorts.append(order_of(shown, ordered))
    return tuple(sorts)


def _used(root: Node) -> frozenset[str]:
    """Return the fields that an operator of a plan reads, or that the plan outputs."""
    used = {f.name for f in root.fields}
    for node in walk(root):
        for expression in node.expressions:
            used |= columns_in(expression)
        match node:
            case Aggregate(keys=keys, calls=calls):
                used |= {*keys, *(call.argument for call in calls if call.argument is not None)}
            case TopN(partition=keys, order=order):
                used |= {*keys, *(each.name for each in order)}
            case OverWindow(partition=keys, calls=windows):
                used |= {*keys, *(each.name for window in windows for each in window.order)}
    return frozenset(used)
