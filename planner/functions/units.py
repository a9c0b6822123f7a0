"""extract(), date_part() and date_trunc() of a constant unit, by functions for this unit alone.

DuckDB plans the functions for any unit ten times as long, since each call contains the cases of all units.
"""

from __future__ import annotations

from sqlglot import exp

from sparkwave.planner.functions.scalar_functions import ours

_SPANS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
_PARTS = (*_SPANS, "epoch", "dow", "isodow", "doy")
# Units that are infinite for an infinite time, which only a double can be.
_ENDLESS = ("epoch", "year")


def _unit(node: exp.Expr) -> str:
    """Return the unit of a constant; '' for anything else."""
    return node.name.lower() if node.is_string else ""


def _part(function: str, unit: str, value: exp.Expr) -> exp.Expr:
    return ours(f"{function}_{unit}", value if unit == "epoch" else ours("local", value))


def extract(arguments: list[exp.Expr]) -> exp.Expr:
    """Return `extract(unit FROM value)`, in DuckDB's spelling; the arguments are unit and value."""
    unit = _unit(arguments[0])
    return _part("part", unit, arguments[1]) if unit in _PARTS else ours("extract", *arguments)


def date_part(arguments: list[exp.Expr]) -> exp.Expr:
    """Return `date_part(unit, value)`, a double precision, in DuckDB's spelling."""
    unit = _unit(arguments[0])
    if unit in _ENDLESS:
        return _part("date_part", unit, arguments[1])
    made = extract(arguments) if unit in _PARTS else ours("date_part", *arguments)
    return exp.cast(made, exp.DataType.Type.DOUBLE)


def date_trunc(arguments: list[exp.Expr]) -> exp.Expr:
    """Return `date_trunc(unit, value [, zone])` in DuckDB's spelling."""
    unit = _unit(arguments[0])
    if unit not in _SPANS or len(arguments) > 2:
        return ours("date_trunc", *arguments)
    return ours("trunc_to", exp.Literal.string(unit), arguments[1])
