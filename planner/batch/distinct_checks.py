"""The order of distinct rows, and of an aggregate's distinct values, is one of what is selected, or collected.

DuckDB orders distinct rows by other expressions, too: by those of any of the equal rows.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.parse.identifiers import folded
from sparkwave.planner.parse.trees import position_of

_IN_SELECT = "for SELECT DISTINCT, ORDER BY expressions must appear in select list"
_IN_ARGUMENTS = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list"
_ON = "SELECT DISTINCT ON expressions must match initial ORDER BY expressions"


def check_distinct_orders(tree: exp.Expr) -> None:
    """Raise Error 42P10 for an ORDER BY of distinct rows, or of distinct values, by anything else."""
    for distinct in tree.find_all(exp.Distinct, bfs=False):
        holder = distinct.parent
        on = distinct.args.get("on")
        if isinstance(holder, exp.Select):
            order = holder.args.get("order")
            keys = [item.this for item in order.expressions] if order is not None else []
            if on is not None:
                _check_on(holder, list(on.expressions) if isinstance(on, exp.Tuple) else [on], keys)
            else:
                _check_selected(holder, keys)
        elif isinstance(holder, exp.Order):
            for item in holder.expressions:
                if not _is_among(item.this, distinct.expressions):
                    raise Error(_IN_ARGUMENTS, errors.INVALID_COLUMN_REFERENCE, position=position_of(item))


def _check_selected(select: exp.Select, keys: Sequence[exp.Expr]) -> None:
    has_star = any(item.is_star for item in select.selects)
    values = [item.unalias() for item in select.selects]
    for key in keys:
        is_column = isinstance(key, exp.Column)
        is_output = is_column and not key.text("table") and _name(key) in {_output(item) for item in select.selects}
        if is_output or isinstance(key.unnest(), exp.Literal) or (has_star and is_column):
            continue
        if not _is_among(key, values):
            raise Error(_IN_SELECT, errors.INVALID_COLUMN_REFERENCE, position=position_of(key))


def _check_on(select: exp.Select, distinct: list[exp.Expr], keys: Sequence[exp.Expr]) -> None:
    """Check that the first keys of ORDER BY are expressions of DISTINCT ON, until all of these are among them."""
    meant, left = [_meant(select, each) for each in distinct], list(distinct)
    for key in keys:
        if not left:
            return
        own = _meant(select, key)
        if not _is_among(own, meant):
            raise Error(_ON, errors.INVALID_COLUMN_REFERENCE, position=position_of(left[0]))
        left = [each for each in left if not _is_same(_meant(select, each), own)]


def _meant(select: exp.Select, key: exp.Expr) -> exp.Expr:
    """Return the expression that a key means: that of an output by its name or place, else itself."""
    key = key.unnest()
    if isinstance(key, exp.Literal) and key.is_int and 1 <= int(key.name) <= len(select.selects):
        return select.selects[int(key.name) - 1].unalias()
    if isinstance(key, exp.Column) and not key.table:
        return next(
            (item.this for item in select.selects if isinstance(item, exp.Alias) and _output(item) == _name(key)), key
        )
    return key


def _is_among(key: exp.Expr, values: Sequence[exp.Expr]) -> bool:
    return any(_is_same(key, value) for value in values)


def _is_same(one: exp.Expr, other: exp.Expr) -> bool:
    """Return whether two expressions of a query are the same; a column may be named with its table or without."""
    one, other = one.unnest(), other.unnest()
    if isinstance(one, exp.Column) and isinstance(other, exp.Column):
        tables = {folded(part) for each in (one, other) if isinstance(part := each.args.get("table"), exp.Identifier)}
        return _name(one) == _name(other) and len(tables) < 2
    return _bare(one) == _bare(other)


def _bare(node: exp.Expr) -> exp.Expr:
    """Return an expression whose columns have no tables, and names in small letters unless they are quoted."""
    node = node.copy()
    for column in list(node.find_all(exp.Column)):
        bare = exp.column(exp.to_identifier(_name(column), quoted=True))
        if column is node:
            return bare
        column.replace(bare)
    for paren in list(node.find_all(exp.Paren)):
        paren.replace(paren.this)
    return node


def _name(column: exp.Expr) -> str:
    return folded(column.this) if isinstance(column.this, exp.Identifier) else column.name


def _output(item: exp.Expr) -> str | None:
    """Return the name of an output."""
    if isinstance(item, exp.Alias):
        alias = item.args["alias"]
        return folded(alias) if isinstance(alias, exp.Identifier) else item.alias
    return _name(item) if isinstance(item, exp.Column) else None
