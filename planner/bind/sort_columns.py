"""Columns in expressions of ORDER BY: as in PostgreSQL those of FROM, even where an output has the same name."""

from __future__ import annotations

from contextlib import suppress

from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.resolver import Resolver
from sqlglot.optimizer.scope import traverse_scope
from sqlglot.schema import Schema


def qualify_sort_columns(tree: exp.Query, schema: Schema) -> None:
    """Qualify the columns that `qualify` has taken for outputs. Columns that FROM does not have stay as they are."""
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
