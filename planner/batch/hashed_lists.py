"""Long lists of constants in WHERE as rows, because DuckDB hashes rows, but compares each constant of a list.

The comparison took 20 s of processor time for 100,000 constants and 16,000 rows (DuckDB 1.5.5, `IN` as a scan's
filter). Only where both sides are texts or both integers, because DuckDB does not convert texts in rows.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog.types import Type
from sparkwave.planner.batch.typer import Typer
from sparkwave.planner.functions.typed import type_of_part
from sparkwave.planner.parse.constant_runs import ConstantRun, as_rows


def hash_lists(tree: exp.Expr, typed: Typer) -> exp.Expr:
    """Replace long lists of an untyped tree, changed in place."""
    lists = [node for node in tree.find_all(exp.In) if _run_of(node) is not None and _is_filter(node)]
    places = typed(tree, lists) if lists else []
    for list_, place in zip(lists, places, strict=True):
        run = _run_of(list_)
        if run is not None and place is not None and _is_of(run, type_of_part(place.this)):
            list_.set("expressions", [as_rows(run, has_null=len(list_.expressions) > 1)])
    return tree


def _run_of(list_: exp.In) -> ConstantRun | None:
    """Return the constants of a list that has only constants and NULL."""
    runs = [item for item in list_.expressions if not isinstance(item, exp.Null)]
    return runs[0] if len(runs) == 1 and isinstance(runs[0], ConstantRun) else None


def _is_filter(node: exp.Expr) -> bool:
    parent = node.parent
    while isinstance(parent, exp.And | exp.Or | exp.Not | exp.Paren):
        parent = parent.parent
    return isinstance(parent, exp.Where) and isinstance(parent.parent, exp.Select)


def _is_of(run: ConstantRun, type_: Type | None) -> bool:
    """Return whether all constants are of a type, or of one that DuckDB converts with it without a loss."""
    if type_ is None or type_.dimensions:
        return False
    return type_.is_text if run.is_string else type_.is_integer and "." not in run.first.name
