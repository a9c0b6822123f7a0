"""Types of set-returning functions that are cast: `unnest(a)::int`, `generate_series(a, b)::bigint`.

DuckDB does not know them yet when it chooses the macro that reads a value of a type unknown to the planner, and would
choose the one that reads text, which takes many times as long.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import BIGINT
from sparkwave.planner.batch.typer import Typer
from sparkwave.planner.functions.typed import data_type, type_of_part


def with_cast_rows(tree: exp.Expr, typed: Typer) -> exp.Expr:
    """Return an untyped tree, changed in place, with the types of such functions of integers and floats noted.

    DuckDB's series of integers are of bigint.
    """
    calls = [call for call in tree.find_all(exp.Explode, exp.ExplodingGenerateSeries) if _is_cast(call)]
    for call, place in zip(calls, typed(tree, calls) if calls else (), strict=True):
        type_ = type_of_part(place) if place is not None else None
        if type_ is not None and (type_.is_integer or type_.is_float) and not type_.dimensions:
            call.type = data_type(BIGINT if isinstance(call, exp.ExplodingGenerateSeries) else type_)
    return tree


def _is_cast(call: exp.Expr) -> bool:
    around = call.parent
    while isinstance(around, exp.Paren):
        around = around.parent
    return isinstance(around, exp.Cast)
