"""unnest and ANY read all elements of an array of several dimensions, as in PostgreSQL; DuckDB's read inner arrays.

Before `since.FLAT_UNNESTS` it gave inner arrays, and it still does in the views that were defined then. So do
the set-returning functions that other functions become (`planner.parse.set_returning`), such as regexp_matches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlglot import exp

from sparkwave.planner.functions.operators import as_call
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.set_returning import WRITTEN_UNNEST


def without_flat_unnests(tree: exp.Expr) -> exp.Expr:
    """Return a definition of an earlier version, changed in place, in which unnest gives inner arrays."""
    for unnest in tree.find_all(exp.Unnest, exp.Explode):
        unnest.meta.pop(WRITTEN_UNNEST, None)
    return tree


Typed = Callable[[exp.Expr, Sequence[exp.Expr]], Sequence[exp.Expr | None]]


def flat_arrays(tree: exp.Expr, typed: Typed) -> list[exp.Expr]:
    """Return the arrays of which all elements are read: by unnest in a client's text, array_to_string, ANY and ALL.

    `typed` finds typed counterparts of nodes. An array beside ANY is compared with inner arrays.
    """
    found: list[exp.Expr] = []
    compared: list[tuple[exp.Expr, exp.Expr]] = []
    for node in tree.find_all(exp.Unnest, exp.Explode, exp.Anonymous, exp.ArrayToString, exp.Any, exp.All):
        if isinstance(node, exp.Any | exp.All):
            if isinstance(node.parent, exp.Binary) and not isinstance(node.this.unnest(), exp.Query):
                compared.append((node.parent.this, node.this.unnest()))
        elif isinstance(node, exp.Anonymous | exp.ArrayToString):
            call = as_call(node)
            found += call[1][:1] if call is not None and call[0] == "array_to_string" else []
        elif WRITTEN_UNNEST in node.meta:
            found += node.expressions if isinstance(node, exp.Unnest) else [node.this]
    sides = typed(tree, [side for side, _ in compared]) if compared else ()
    return found + [array for (_, array), side in zip(compared, sides, strict=True) if _is_scalar(side)]


def _is_scalar(side: exp.Expr | None) -> bool:
    type_ = type_of_part(side) if side is not None else None
    return type_ is None or not type_.dimensions


def flatten(pairs: Iterable[tuple[exp.Expr, exp.Expr | None]]) -> bool:
    """Replace arrays of several dimensions, each given with its typed counterpart, by arrays of all their elements.

    Returns whether any has changed. Then the types of others may, too: repeat it with a tree that is typed again.
    """
    is_any = False
    for array, typed in pairs:
        (own, count), (known, _) = _inner(array), _inner(array if typed is None else typed)
        type_ = type_of_part(known)
        wanted = max(type_.dimensions - 1, 0) if type_ is not None else 0
        if typed is None or wanted == count:
            continue
        flat = own.copy()
        for _ in range(wanted):
            flat = exp.Anonymous(this="array_flatten", expressions=[flat])
            flat.meta[_OURS] = True
        array.replace(flat)
        is_any = True
    return is_any


_OURS = "flattens"


def _inner(array: exp.Expr) -> tuple[exp.Expr, int]:
    """Return the array as written, and how often it is flattened."""
    count = 0
    while array.meta.get(_OURS):
        array, count = array.expressions[0], count + 1
    return array, count
