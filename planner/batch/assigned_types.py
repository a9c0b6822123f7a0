"""The types of the values that an INSERT or UPDATE stores are those of the columns, or cast to them by assignment."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from sqlglot import exp

from sparkwave.catalog.model import Column, Relation
from sparkwave.catalog.types import BOOLEAN, INTEGER, NUMERIC, Type
from sparkwave.planner.batch.typer import Typer
from sparkwave.planner.batch.values import is_default
from sparkwave.planner.functions.assignment import check_assigned
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.trees import folded

_Pair = tuple[Column, exp.Expr]


def check_values(tree: exp.Expr, target: Relation, columns: tuple[Column, ...], typed: Typer) -> None:
    """Raise Error 42804 for a value that its column cannot store: of an UPDATE, or of the source of an INSERT's rows.

    The values are those of VALUES, of a plain SELECT, and of SET; the types of others are left to DuckDB's casts.
    """
    later: list[_Pair] = []
    for column, value in _values(tree, target, columns):
        bare = value.unalias()
        while isinstance(bare, exp.Paren):
            bare = bare.this
        if is_default(bare) or bare.is_string or isinstance(bare, exp.Null | exp.Parameter | exp.Star):
            continue
        known = _type_of_constant(bare)
        if known is None:
            later.append((column, bare))
        else:
            check_assigned(column, known, value)
    nodes = typed(tree, [value for _, value in later]) if later else []
    for (column, value), node in zip(later, nodes, strict=True):
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Select):
            node = node.this.selects[0].unalias()
        found = type_of_part(node) if node is not None else None
        if found is not None:
            check_assigned(column, found, value)


def _type_of_constant(value: exp.Expr) -> Type | None:
    number = value.this if isinstance(value, exp.Neg) else value
    if isinstance(number, exp.Literal):
        return INTEGER if number.name.isdigit() else NUMERIC
    return BOOLEAN if isinstance(value, exp.Boolean) else None


def _values(tree: exp.Expr, target: Relation, columns: tuple[Column, ...]) -> Iterator[_Pair]:
    match tree:
        case exp.Update():
            by_name = {column.name: column for column in target.visible}
            for item in tree.expressions:
                column = by_name.get(folded(item.this.this)) if isinstance(item.this, exp.Column) else None
                if column is not None:
                    yield column, item.expression
        case exp.Values():
            rows = (row.expressions if isinstance(row, exp.Tuple) else [row] for row in tree.expressions)
            yield from chain.from_iterable(zip(columns, row, strict=False) for row in rows)
        case exp.Select() if not any(item.is_star for item in tree.selects):
            yield from zip(columns, tree.selects, strict=False)
