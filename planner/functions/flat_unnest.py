"""unnest of an array of several dimensions gives all elements, as in PostgreSQL, where DuckDB's gives inner arrays.

Before `since.FLAT_UNNESTS` it gave inner arrays, and it still does in the views that were defined then. So do
the set-returning functions that other functions become (`planner.parse.set_returning`), such as regexp_matches.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.set_returning import WRITTEN_UNNEST


def without_flat_unnests(tree: exp.Expr) -> exp.Expr:
    """Return a definition of an earlier version, changed in place, in which unnest gives inner arrays."""
    for unnest in tree.find_all(exp.Unnest, exp.Explode):
        unnest.meta.pop(WRITTEN_UNNEST, None)
    return tree


def unnested(tree: exp.Expr) -> list[exp.Expr]:
    """Return the arrays of all calls of unnest in a client's text."""
    calls = (call for call in tree.find_all(exp.Unnest, exp.Explode) if WRITTEN_UNNEST in call.meta)
    return [array for call in calls for array in (call.expressions if isinstance(call, exp.Unnest) else [call.this])]


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
