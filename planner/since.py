"""The versions of the planner, and since which of them a definition has another meaning, or another plan.

A relation keeps the version that planned it first, because its stored rows fit no other plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

PLANNER = 19  # that of new definitions

ESCAPED_NAMES = 3  # columns of any name; before, a few names were refused
EXACT_AVERAGES = 4  # avg() of integers and numerics is a numeric; before, it was of double precision
EXACT_NUMERICS = 5  # quotients and elements of arrays are exact; before, they had the dividend's and DuckDB's scale
NUMERIC_EXPONENTS = 6  # 1e5 is a numeric; before, it was of double precision
JSON_APART = 7  # json is a type of its own; before, it was another name of jsonb
FLAT_UNNESTS = 8  # unnest gives the elements of inner arrays; before, it gave the inner arrays
TYPED_OUTPUTS = 9  # a text beside numbers in a set operation is a number; before, it made texts of them
EXACT_FUNCTIONS = 10  # sqrt of numeric(10,2), and stddev of numerics, are exact; before, ten places and floats
WIDE_LITERALS = 10  # an integer constant beside a smallint is an integer; before, it was a smallint
DEPENDENT_COLUMNS = 10  # a primary key in GROUP BY stands for its table's columns; before, for itself alone
WRITTEN_NAMES = 11  # an unnamed variance(x) is named variance; before, it was var_samp
EXACT_DIGITS = 12  # computed numerics keep more than ten digits after the point; before, they were rounded
EXACT_ROUNDS = 13  # round(i, 2) of an integer is a numeric, percentile_cont of a real a double; before, other floats
NEAREST_FLOATS = 14  # a number of more than 15 digits beside a float is the nearest float; before, one beside it
NEAREST_NUMERICS = 15  # a numeric that becomes a float is the nearest float; before, DuckDB rounded some twice
ZONES_OF_DATES = 15  # a date at a time zone is a time without one, 'UTC+3' is west; before, one with a zone, and east
WIDE_ARRAYS = 15  # int[] || 3.5 is numeric[]; before, it was int[], and the element was rounded
TIMES_OF_SERIES = 15  # a series of dates is one of times with time zone; before, its times were cut to dates
FINAL_JOINS = 16  # EMIT ON WINDOW CLOSE waits for both sides of a join; before, for one alone
TEMPORAL_VIEWS = 16  # a temporal join with a view that stores nothing is refused; before, it was any other join
NUMERIC_LOGARITHMS = 17  # log(2, 8), of integers, is a numeric; before, of double precision
TYPED_SERIES = 17  # a series of numbers has a type within an expression; before, none, or that of its first number
ZONE_ABBREVIATIONS = 18  # AT TIME ZONE 'PST' is PostgreSQL's; before, a zone with summer time, and BST Bangladesh
OWN_AGGREGATES = 18  # an aggregate of a query around a subquery is refused; before, it was the subquery's
SUMMED_INTERVALS = 19  # sum and avg of intervals come from sums that changes add to; before, from all values
EXACT_SPREADS = 19  # stddev and variance of exact numbers come from sums that changes add to; before, from floats
WIDE_BITS = 14  # the same as WIDE_LITERALS for & | #

_VERSION: ContextVar[int] = ContextVar("planner", default=PLANNER)


@contextmanager
def planned_by(version: int) -> Iterator[None]:
    """While entered, a definition of a version of the planner is planned; otherwise it is a new one."""
    before = _VERSION.set(version)
    try:
        yield
    finally:
        _VERSION.reset(before)


def is_since(change: int) -> bool:
    """Return whether the definition that is planned has the meaning that definitions have since a version."""
    return _VERSION.get() >= change
