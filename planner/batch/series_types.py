"""Types of the arguments of series over columns, which a tree that is not bound does not have."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from sqlglot import exp

from sparkwave.catalog.types import DATE, INTEGER, NUMERIC, SMALLINT, Type
from sparkwave.planner.batch.typer import Typer, type_of_value
from sparkwave.planner.bind.series_of_dates import moments_of
from sparkwave.planner.functions.typed import data_type
from sparkwave.planner.parse.set_returning import series_array, with_numbered_series


def with_series_of_columns(tree: exp.Expr, typed: Typer) -> exp.Expr:
    """Return an untyped tree, changed in place, in which the arguments of series have types.

    Those over columns are cast to their own; a text beside a time to the time's type: DuckDB would take it for an
    interval.
    """
    found = [(series, _arguments(series)) for series in tree.find_all(exp.ExplodingGenerateSeries, exp.GenerateSeries)]
    of_integers: set[int] = set()
    typed_parts = iter(typed(tree, [part for _, parts in found for part in parts]) if found else ())
    for series, parts in found:
        types = [type_of_value(part) if part is not None else None for part in islice(typed_parts, len(parts))]
        moment = moments_of(types[:2])
        for place, (part, type_) in enumerate(zip(parts, types, strict=True)):
            if moment is not None and place < 2 and (part.is_string or type_ == DATE):
                part.replace(exp.cast(part.copy(), data_type(moment)))
            elif type_ is not None and (part.is_string or part.find(exp.Column) is not None):
                part.replace(exp.cast(part.copy(), data_type(type_)))
        if isinstance(series, exp.ExplodingGenerateSeries):
            if _are_integers(types):
                of_integers.add(id(series))
        elif _are_integers(types):
            series.replace(_integers(series.copy()))
        elif any(type_ is not None and type_.name == NUMERIC.name for type_ in types):
            step = [] if series.args.get("step") else [exp.Literal.number(1)]
            ends = [part.copy() for part in _arguments(series)]
            series.replace(exp.Anonymous(this="series_of_numerics", expressions=[*ends, *step]))
    with_numbered_series(tree, lambda each: _integers(series_array(each)) if id(each) in of_integers else None)
    return tree


def _are_integers(types: Sequence[Type | None]) -> bool:
    return bool(types) and all(type_ in (INTEGER, SMALLINT) for type_ in types)


def _integers(series: exp.Expr) -> exp.Expr:
    """Return an array as one of integers: DuckDB's series are of bigint."""
    return exp.Anonymous(this="series_of_integers", expressions=[series])


def _arguments(series: exp.Expr) -> list[exp.Expr]:
    return [part for key in ("start", "end", "step") if isinstance(part := series.args.get(key), exp.Expr)]
