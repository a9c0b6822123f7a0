"""Series of dates, which are series of times with time zone as in PostgreSQL: DuckDB (1.5.5) has no others either."""

from __future__ import annotations

from collections.abc import Callable, Collection

from sqlglot import exp

from sparkwave.catalog.types import DATE, TIMESTAMPTZ, Type
from sparkwave.planner.functions.operators import times_of_series
from sparkwave.planner.functions.result_types import Known
from sparkwave.planner.functions.typed import data_type


def moments_of(types: Collection[Known]) -> Type | None:
    """Return the type of a series whose ends are of these types; None unless one is a date or time."""
    return times_of_series(types) or (TIMESTAMPTZ if DATE in types else None)


def with_series_of_times(tree: exp.Expr, type_of: Callable[[exp.Expr], Known]) -> bool:
    """Make times of the dates at the ends of series, in place. Returns whether there are any."""
    found = False
    for series in tree.find_all(exp.ExplodingGenerateSeries, exp.GenerateSeries):
        ends = [series.args["start"], series.args["end"]]
        types = [type_of(end) for end in ends]
        to = moments_of(types)
        for end, type_ in zip(ends, types, strict=True):
            if to is not None and type_ == DATE:
                end.replace(exp.cast(end.copy(), data_type(to)))
                found = True
    return found
