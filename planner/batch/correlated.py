"""Columns of an outer query in the expressions of a subquery.

DuckDB (1.5.5) chooses among the overloads of a macro by the types of its arguments, but does not know the type of an
outer query's column then: it takes the only overload that names a type, or reports that there are several. Within a
query of its own the column has a type. It has no outer join either whose condition reads such a column, but a LEFT JOIN
LATERAL of a query that does.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import alias_of


def with_outer_columns(tree: exp.Expr) -> exp.Expr:
    """Make queries of the outer columns in expressions of subqueries, and of the sides of LEFT JOINs that are joined by
    such columns, in the tree itself.

    Columns of tables beside a query in FROM are left out, because DuckDB (1.5.5) fails to bind such a query.
    """
    selects = list(tree.find_all(exp.Select))
    for select in selects if len(selects) > 1 else ():
        for join in select.args.get("joins") or ():
            if _is_joined_by_outer(join, select):
                _make_lateral(join)
        for column in [column for column in _computed_with(select) if _is_outer(column, select)]:
            if _is_around(select, column):
                column.replace(exp.Subquery(this=exp.select(column.copy())))
    return tree


def _is_joined_by_outer(join: exp.Join, select: exp.Select) -> bool:
    """Return whether a LEFT JOIN with a name has a condition with a column of a table that the select has not."""
    condition, side = join.args.get("on"), join.this
    if join.side.upper() != "LEFT" or condition is None or not isinstance(side, exp.Table | exp.Subquery):
        return False
    if "" in _tables(select):  # a join in parentheses, whose tables are not known here
        return False
    return any(_is_from_outside(column, select) for column in condition.find_all(exp.Column))


def _is_from_outside(column: exp.Column, select: exp.Select) -> bool:
    """Return whether neither a select nor a query of its own around a column has the column's table."""
    around = column.find_ancestor(exp.Select)
    while around is not None and around is not select and _table_of(column) not in _tables(around):
        around = around.find_ancestor(exp.Select)
    return bool(column.table) and around is select and _table_of(column) not in _tables(select)


def _make_lateral(join: exp.Join) -> None:
    """Let the right side of a LEFT JOIN be a query of its rows that meet the condition."""
    side, condition = join.this, join.args["on"]
    alias = side.args.get("alias") or exp.TableAlias(this=side.this.copy())
    rows = exp.select("*").from_(side.copy()).where(condition.copy())
    join.set("this", exp.Lateral(this=exp.Subquery(this=rows), alias=exp.TableAlias(this=alias.this.copy())))
    join.set("on", exp.true())


def _is_around(select: exp.Expr, column: exp.Column) -> bool:
    """Return whether a select is nested, at any depth, in expressions of a query that has the column's table."""
    parent = select.find_ancestor(exp.Select, exp.From, exp.Join, exp.Lateral)
    while isinstance(parent, exp.Select):
        tables, table = _tables(parent), _table_of(column)
        if table in tables or (tables and not table):
            return True
        parent = parent.find_ancestor(exp.Select, exp.From, exp.Join, exp.Lateral)
    return False


def _computed_with(select: exp.Select) -> list[exp.Column]:
    """Return the columns that are arguments of a function, cast or operator, in the select itself."""
    found = []
    for column in select.find_all(exp.Column):
        around = column.parent
        while isinstance(around, exp.Paren):
            around = around.parent
        is_plain = isinstance(around, exp.Predicate | exp.Connector | exp.Dot)
        if not isinstance(around, exp.Func | exp.Binary) or is_plain:
            continue
        if column.find_ancestor(exp.Select) is select and not _is_of_lambda(column):
            aggregate = column.find_ancestor(exp.AggFunc, exp.Select)
            if not isinstance(aggregate, exp.AggFunc) or not _is_all_outer(aggregate, select):
                found.append(column)
    return found


def _is_of_lambda(column: exp.Column) -> bool:
    """Return whether a column is the parameter of a lambda expression around it."""
    function = column.find_ancestor(exp.Lambda, exp.Select)
    while isinstance(function, exp.Lambda):
        if any(parameter.name == column.name for parameter in function.expressions) and not column.table:
            return True
        function = function.find_ancestor(exp.Lambda, exp.Select)
    return False


def _is_all_outer(aggregate: exp.AggFunc, select: exp.Select) -> bool:
    """Return whether it is an aggregate of the outer query, by PostgreSQL's rule."""
    return all(_is_outer(column, select) for column in aggregate.find_all(exp.Column))


def _is_outer(column: exp.Column, select: exp.Select) -> bool:
    """Return whether a column belongs to none of the select's own tables, as far as its form tells."""
    tables, table = _tables(select), _table_of(column)
    return table not in tables if table else not tables


def _table_of(column: exp.Column) -> str:
    return folded(column.args["table"]) if column.table else ""


def _tables(select: exp.Select) -> set[str]:
    from_ = select.args.get("from_")
    sources = [from_.this] if from_ is not None else []
    sources += [join.this for join in select.args.get("joins") or ()] + (select.args.get("laterals") or [])
    return {alias_of(source) for source in sources}
