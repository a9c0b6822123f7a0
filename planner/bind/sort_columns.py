"""What sqlglot (30.30) reads otherwise than PostgreSQL in ORDER BY: columns in expressions, and positions."""

from __future__ import annotations

from contextlib import suppress

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.resolver import Resolver
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import Schema


def qualify_sort_columns(tree: exp.Query, schema: Schema) -> None:
    """Qualify the columns in expressions of ORDER BY that `qualify` has taken for outputs.

    Such columns are FROM's, even where an output has the same name. Columns that FROM does not have stay as they are.
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
