"""Finds names that several tables of a FROM have: sqlglot (30.30) takes a column of a query around it, or the first."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.schema import MappingSchema

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.bind.merged_columns import merged_pairs
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.trees import cte_of, position_of

# Columns without a table, with their parents.
Bare = list[tuple[exp.Column, exp.Expr | None]]


def bare_columns(tree: exp.Expr) -> Bare:
    """Return the columns without a table of a tree that is not qualified yet, for `check_unambiguous`."""
    return [(column, column.parent) for column in tree.find_all(exp.Column) if not column.table]


def check_unambiguous(tree: exp.Expr, schema: MappingSchema, bare: Bare) -> None:
    """Raise Error 42702 in a qualified tree for a name that means one of several columns."""
    for select in tree.find_all(exp.Select):
        _check_merged(select, schema)
    for column, parent in bare:
        if column.table:  # sqlglot leaves merged columns in HAVING as they are
            _check(column, column, schema)
        elif column.parent is None:  # sqlglot has put merged columns in its place, maybe those of a query around it
            _check(column, parent, schema)


def _check(column: exp.Column, node: exp.Expr | None, schema: MappingSchema) -> None:
    """Look from a node outwards: in a FROM the column may name all tables, in ON those up to the join."""
    join: exp.Join | None = None
    while node is not None:
        if isinstance(node, exp.Select):
            sources = from_items(node)
            if join is not None and join.parent is node:
                sources = sources[: (join.index or 0) + 2]
            if any(source.alias_or_name == column.table for source in sources) or _merges(node, column.name):
                return
            if sum(column.name in _names(source, schema) for source in sources) > 1:
                message = f'column reference "{column.name}" is ambiguous'
                raise Error(message, errors.AMBIGUOUS_COLUMN, position=position_of(column))
            join = None
        elif node.arg_key == "on" and isinstance(node.parent, exp.Join):
            join = node.parent
        node = node.parent


def _merges(select: exp.Select, name: str) -> bool:
    return any(right.name == name for join in select.args.get("joins") or () for _, right in merged_pairs(join))


def _check_merged(select: exp.Select, schema: MappingSchema) -> None:
    """Raise Error 42702 for a column of USING that tables on the left have twice, apart from its merged columns."""
    sources = from_items(select)
    merged: dict[str, set[str]] = {}
    for number, join in enumerate(select.args.get("joins") or (), 1):
        for left, right in merged_pairs(join):
            tables = merged.setdefault(right.name, set())
            own = {source.alias_or_name for source in sources[:number] if right.name in _names(source, schema)}
            if len(own - tables) + bool(tables) > 1:
                message = f'common column name "{right.name}" appears more than once in left table'
                raise Error(message, errors.AMBIGUOUS_COLUMN, position=position_of(join))
            tables |= {*own, right.table, *(column.table for column in left.find_all(exp.Column))}


def _names(source: exp.Expr, schema: MappingSchema) -> list[str]:
    """Return the names of a table's columns, in a qualified tree; none where they are unknown."""
    holder = (cte_of(source) or source) if isinstance(source, exp.Table) else source
    if isinstance(holder, exp.Table):
        return list(schema.column_names(holder))
    query = holder.this if isinstance(holder, exp.Subquery | exp.CTE) else None
    return query.named_selects if isinstance(query, exp.Query) else [*holder.alias_column_names]
