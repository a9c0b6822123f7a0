"""What sqlglot (30.30) reads otherwise than PostgreSQL in ORDER BY: columns in expressions, and positions."""

from __future__ import annotations

from contextlib import suppress

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.resolver import Resolver
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import Schema

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.catalog.model import ROW_ID
from sparkwave.planner.bind.merged_columns import ColumnsOf, columns_of_from
from sparkwave.planner.bind.output_names import output_name
from sparkwave.planner.parse.trees import folded, position_of


def qualify_sort_columns(tree: exp.Query, schema: Schema) -> None:
    """Qualify the columns in expressions of ORDER BY that `qualify` has taken for outputs.

    They are those of FROM, even where an output has the same name. Columns that FROM does not have stay as they are.
    """
    for scope in traverse_scope(tree):
        select = scope.expression
        order = select.args.get("order") if isinstance(select, exp.Select) else None
        listed = [ordered for ordered in order.expressions if not isinstance(ordered.this, exp.Column)] if order else []
        left = [column for ordered in listed for column in ordered.find_all(exp.Column) if not column.table]
        resolver = Resolver(scope, schema) if left else None
        for column in left:
            if resolver is not None and column.parent_select is select:
                with suppress(OptimizeError):  # ambiguous
                    column.set("table", resolver.get_table(column))


def check_sort_columns(tree: exp.Expr, columns_of: ColumnsOf) -> None:
    """Raise Error 42703 for an output's name within an expression of ORDER BY or DISTINCT ON, in a query as written.

    There, as in PostgreSQL, an output is named only alone; the engines take it everywhere. A name that may be a column
    of a FROM, of which some columns are unknown, is none.
    """
    for clause in tree.find_all(exp.Order, exp.Distinct):
        select = clause.parent
        on = clause if isinstance(clause, exp.Order) else clause.args.get("on")
        if not isinstance(select, exp.Select) or on is None:
            continue
        keys = (key.this if isinstance(key, exp.Ordered) else key for key in on.expressions)
        listed = [key for key in keys if not isinstance(key.unnest(), exp.Column)]
        outputs = {output_name(item) for item in select.expressions} if listed else set()
        for column in (column for key in listed for column in key.find_all(exp.Column)):
            is_own = not column.table and column.find_ancestor(exp.Query) is select
            if is_own and folded(column.this) in outputs and _is_no_column(folded(column.this), select, columns_of):
                message = f'column "{folded(column.this)}" does not exist'
                raise Error(message, errors.UNDEFINED_COLUMN, position=position_of(column))


def _is_no_column(name: str, select: exp.Select, columns_of: ColumnsOf) -> bool:
    """Return whether neither the FROM of a query nor that of a query around it has a column or table of a name."""
    around: exp.Expr | None = select
    while around is not None:
        from_ = around.args.get("from_")
        if isinstance(around, exp.Select) and from_ is not None:
            found = columns_of_from(from_.this, around.args.get("joins") or [], columns_of)
            if around.args.get("laterals") or found is None:
                return False
            if name == ROW_ID or any(name in (column.name, column.table) for column in found):
                return False
        around = around.parent
    return True


def without_positions(tree: exp.Expr) -> exp.Expr:
    """Return a tree, changed in place, with NULL for every position in its ORDER BY, GROUP BY and DISTINCT ON.

    `qualify` does not take a position where a star stands for columns that are not known.
    """
    for clause in tree.find_all(exp.Order, exp.Group, exp.Distinct):
        on = clause.args.get("on") if isinstance(clause, exp.Distinct) else clause
        for item in list(on.expressions) if on is not None else ():
            position = item.this if isinstance(item, exp.Ordered) else item
            if isinstance(position, exp.Literal) and position.is_int:
                position.replace(exp.null())
    return tree
