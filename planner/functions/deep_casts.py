"""Casts of arrays of several dimensions: in PostgreSQL `int[]` is the type of arrays of any number of dimensions."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sparkwave.planner.functions.typed import type_of_part


def array_casts(tree: exp.Expr) -> list[exp.Cast]:
    """Return the casts to arrays of a tree."""
    return [cast for cast in tree.find_all(exp.Cast) if cast.to.this == exp.DType.ARRAY]


def deepen(pairs: Iterable[tuple[exp.Cast, exp.Expr | None]]) -> bool:
    """Give casts, each with its typed value, a type of as many dimensions as the value has, in place.

    Returns whether any has changed. Then the types of others may, too: repeat it with a tree that is typed again.
    """
    is_any = False
    for cast, value in pairs:
        type_ = type_of_part(value) if value is not None else None
        wanted = type_.dimensions if type_ is not None else _subscripts(cast)
        missing = wanted - _dimensions(cast.to)
        if missing > 0:
            cast.set("to", deeper(cast.to, missing))
            is_any = True
    return is_any


def _subscripts(cast: exp.Cast) -> int:
    """Return the number of subscripts of a parameter that is cast, of which nothing else says the dimensions."""
    count, node = 0, cast.parent
    while isinstance(node, exp.Paren | exp.Bracket):
        count += isinstance(node, exp.Bracket)
        node = node.parent
    return count if isinstance(cast.this.unnest(), exp.Parameter) else 0


def deeper(kind: exp.DataType, dimensions: int) -> exp.DataType:
    """Return the type of arrays of a type, with so many more dimensions."""
    made = kind.copy()
    for _ in range(dimensions):
        made = exp.DataType(this=exp.DType.ARRAY, expressions=[made], nested=True)
    return made


def _dimensions(kind: exp.DataType) -> int:
    count, inner = 0, kind
    while inner.this == exp.DType.ARRAY and inner.expressions and isinstance(inner.expressions[0], exp.DataType):
        count, inner = count + 1, inner.expressions[0]
    return count
