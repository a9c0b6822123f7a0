"""extract(), date_part() and date_trunc() of a unit that is known: functions that have this unit alone.

Those of any unit DuckDB plans for ten times as long, since each call brings along what every unit stands for.
"""

from __future__ import annotations

from sqlglot import exp

from planner.functions.functions import ours

_SPANS = ("microseconds", "milliseconds", "second", "minute", "hour", "day", "week", "month", "quarter", "year")
_PARTS = (*_SPANS, "epoch", "dow", "isodow", "doy")
# An infinite time has an infinite one of these, which only a double can be.
_ENDLESS = ("epoch", "year")
# Other names of some of them, as pg._unit has them too.
_SAME = {
    "millisecond": "milliseconds",
    "msec": "milliseconds",
    "microsecond": "microseconds",
    "usec": "microseconds",
    "seconds": "second",
}


def _unit(node: exp.Expr) -> str:
    """The unit that a constant names; '' for what is none."""
    name = node.name.lower() if node.is_string else ""
    return _SAME.get(name, name)


def extract(arguments: list[exp.Expr]) -> exp.Expr:
    unit = _unit(arguments[0])
    return ours(f"part_{unit}", arguments[1]) if unit in _PARTS else ours("extract", *arguments)


def date_part(arguments: list[exp.Expr]) -> exp.Expr:
    unit = _unit(arguments[0])
    if unit not in _PARTS:
        return ours("date_part", *arguments)
    if unit in _ENDLESS:
        return ours(f"date_part_{unit}", arguments[1])
    return exp.cast(ours(f"part_{unit}", arguments[1]), exp.DataType.Type.DOUBLE)


def date_trunc(arguments: list[exp.Expr]) -> exp.Expr:
    unit = _unit(arguments[0])
    if unit not in _SPANS or len(arguments) > 2:
        return ours("date_trunc", *arguments)
    return ours("trunc_to", exp.Literal.string(unit), arguments[1])
