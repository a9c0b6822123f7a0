"""Casts of jsonb to numbers and booleans, which read no text as those of text do: 2.5 becomes 3, and "1" is refused."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import BOOLEAN, JSONB
from sparkwave.planner.batch.typer import Typer
from sparkwave.planner.functions.documents import OF_DOCUMENT
from sparkwave.planner.functions.typed import sql_type, type_of_part


def mark_casts(tree: exp.Expr, typed: Typer) -> None:
    """Mark the casts of jsonb in an untyped tree, in place, for `planner.functions.duckdb_spelling`."""
    casts = [cast for cast in tree.find_all(exp.Cast) if _may_be_marked(cast)]
    for cast, value in zip(casts, typed(tree, [cast.this for cast in casts]) if casts else (), strict=True):
        if value is not None and type_of_part(value) == JSONB:
            cast.meta[OF_DOCUMENT] = True


def _may_be_marked(cast: exp.Cast) -> bool:
    target = sql_type(cast.to)
    is_constant = isinstance(cast.this.unnest(), exp.Literal | exp.Parameter | exp.Placeholder | exp.Null)
    return target is not None and (target.is_numeric or target == BOOLEAN) and not target.dimensions and not is_constant
