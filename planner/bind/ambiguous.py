"""Finds names that several tables of a FROM have: sqlglot (30.30) takes a column of a query around it, or the first."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.schema import MappingSchema

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.bind.merged_columns import merged_pairs
from sparkwave.planner.parse.trees import cte_of, position_of

_BARE = "bare"


def mark_bare(tree: exp.Expr) -> None:
    """Mark the columns without a table, for `check_unambiguous`."""
    for column in tree.find_all(exp.Column):
        if not column.table:
            column.meta[_BARE] = True


def check_unambiguous(tree: exp.Expr, schema: MappingSchema) -> None:
    """Raise Error 42702 in a qualified tree for a name that means one of several columns."""
    for select in tree.find_all(exp.Select):
        _check_merged(select, schema)
    for column in tree.find_all(exp.Column):
        if column.table and column.meta.get(_BARE):  # sqlglot leaves merged columns in HAVING as they are
            _check(column, schema)


def _check(column: exp.Column, schema: MappingSchema) -> None:
    select = column.find_ancestor(exp.Select)
    while select is not None:
        sources = _visible(column, select)
        if any(source.alias_or_name == column.table for source in sources):
            return
        if sum(column.name in _names(source, schema) for source in sources) > 1:
            message = f'column reference "{column.name}" is ambiguous'
            raise Error(message, errors.AMBIGUOUS_COLUMN, position=position_of(column))
        select = select.find_ancestor(exp.Select)


def _visible(column: exp.Column, select: exp.Select) -> list[exp.Expr]:
    """Return the tables of a FROM that a column may name: in ON, those up to the join."""
    sources, joins = list(_sources(select)), select.args.get("joins") or []
    for number, join in enumerate(joins):
        on = join.args.get("on")
        if on is not None and any(part is on for part in _ancestors(column)):
            return sources[: number + 2]
    return sources


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    found: exp.Expr | None = node
    while found is not None:
        yield found
        found = found.parent


def _check_merged(select: exp.Select, schema: MappingSchema) -> None:
    """Raise Error 42702 for a column of USING that tables on the left have twice, apart from its merged columns."""
    sources = list(_sources(select))
    merged: dict[str, set[str]] = {}
    for number, join in enumerate(select.args.get("joins") or (), 1):
        for left, right in merged_pairs(join):
            tables = merged.setdefault(right.name, set())
            own = {source.alias_or_name for source in sources[:number] if right.name in _names(source, schema)}
            if len(own - tables) + bool(tables) > 1:
                message = f'common column name "{right.name}" appears more than once in left table'
                raise Error(message, errors.AMBIGUOUS_COLUMN, position=position_of(join))
            tables |= {*own, right.table, left.table}


def _sources(select: exp.Select) -> Iterator[exp.Expr]:
    first = select.args.get("from_")
    if first is not None:
        yield first.this
    yield from (join.this for join in select.args.get("joins") or ())


def _names(source: exp.Expr, schema: MappingSchema) -> list[str]:
    """Return the names of a table's columns, in a qualified tree; none where they are unknown."""
    holder = (cte_of(source) or source) if isinstance(source, exp.Table) else source
    if isinstance(holder, exp.Table):
        return list(schema.column_names(holder))
    query = holder.this if isinstance(holder, exp.Subquery | exp.CTE) else None
    return query.named_selects if isinstance(query, exp.Query) else [*holder.alias_column_names]
