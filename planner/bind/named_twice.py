"""Finds names that mean two columns of one source, or two outputs of one query: the engines take the first."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.bind.merged_columns import ColumnsOf, columns_of_item
from sparkwave.planner.bind.output_names import output_name
from sparkwave.planner.bind.output_references import is_key, may_have
from sparkwave.planner.parse.from_items import from_items
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import is_cte, position_of

_CLAUSES = {"order": "ORDER BY", "group": "GROUP BY", "distinct": "DISTINCT ON"}


def check_named_once(tree: exp.Expr, columns_of: ColumnsOf) -> None:
    """Raise Error 42702 for such a name in a statement as written."""
    selects = list(tree.find_all(exp.Select))
    for select in selects:
        for key in _keys(select):
            _check_key(key, select, columns_of)
    twice = {id(select): found for select in selects if any((found := _twice_in_from(select, columns_of)).values())}
    for column in tree.find_all(exp.Column) if twice else ():
        if isinstance(column.this, exp.Identifier):
            _check_column(column, twice, columns_of)


def _twice_in_from(select: exp.Select, columns_of: ColumnsOf) -> dict[str, set[str]]:
    """Return the names that each source of a FROM has twice."""
    found: dict[str, set[str]] = {}
    for source in from_items(select):
        alias = source.args.get("alias")
        given = list(map(folded, alias.columns)) if isinstance(alias, exp.TableAlias) else []
        is_query = isinstance(source, exp.Subquery)
        if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
            is_query = is_cte(source)
        if given or is_query:
            columns = columns_of_item(source, columns_of)
            names = [column.name for column in columns] if columns is not None else given
            found[source.alias_or_name] = {name for name in names if names.count(name) > 1}
    return found


def _check_column(column: exp.Column, twice: dict[int, dict[str, set[str]]], columns_of: ColumnsOf) -> None:
    """Look for a column outwards, up to the first FROM that may have it."""
    name, table = folded(column.this), column.args.get("table")
    inner: exp.Expr = column
    below: exp.Expr = column
    around = column.parent
    while around is not None:
        sees = below.arg_key not in ("from_", "joins", "with_") or inner.arg_key == "on"
        if isinstance(around, exp.Select) and sees:
            if is_key(column, around) and any(output_name(item) == name for item in around.expressions):
                return
            for source, names in twice.get(id(around), {}).items():
                if name in names and (table is None or folded(table) == source):
                    message = f'column reference "{name}" is ambiguous'
                    raise Error(message, errors.AMBIGUOUS_COLUMN, position=position_of(column))
            if may_have(folded(table) if table is not None else name, around, columns_of):
                return
        inner, below, around = below, around, around.parent


def _keys(select: exp.Select) -> Iterator[tuple[str, exp.Expr]]:
    """Yield the expressions by which a query sorts, groups or leaves out rows, each with its clause."""
    for clause, name in _CLAUSES.items():
        part = select.args.get(clause)
        part = part.args.get("on") if isinstance(part, exp.Distinct) else part
        for key in part.expressions if part is not None else ():
            yield name, key.this if isinstance(key, exp.Ordered) else key


def _check_key(key: tuple[str, exp.Expr], select: exp.Select, columns_of: ColumnsOf) -> None:
    clause, column = key
    if not isinstance(column, exp.Column) or column.table or not isinstance(column.this, exp.Identifier):
        return
    name = folded(column.this)
    found = [item.unalias() for item in select.expressions if output_name(item) == name]
    if len(found) < 2 or all(_is_same(found[0], item) for item in found):
        return
    if clause != "GROUP BY" or not may_have(name, select, columns_of):
        raise Error(f'{clause} "{name}" is ambiguous', errors.AMBIGUOUS_COLUMN, position=position_of(column))


def _is_same(first: exp.Expr, other: exp.Expr) -> bool:
    """Return whether two outputs are one: a column may be written with its table, or without."""
    if isinstance(first, exp.Column) and isinstance(other, exp.Column) and "" in (first.table, other.table):
        return folded(first.this) == folded(other.this)
    return first == other
