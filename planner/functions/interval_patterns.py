"""`to_char` of intervals (PostgreSQL: src/backend/utils/adt/formatting.c, DCH_to_char with is_interval)."""

from __future__ import annotations

from sqlglot import exp

from sparkwave.catalog import errors
from sparkwave.catalog.errors import Error
from sparkwave.planner.functions.date_patterns import PLAIN_LETTERS, chain, tokens, unknown
from sparkwave.planner.functions.scalar_functions import duckdb_call, of_one, ours

_INTERVAL = "_interval"
_HOUR, _MINUTE, _SECOND, _DAY, _MONTH, _YEAR = (
    f"datepart('{unit}', {_INTERVAL})" for unit in ("hour", "minute", "second", "day", "month", "year")
)
_MICROS = f"datepart('us', {_INTERVAL}) % 1000000"
_DAYS = f"(({_YEAR} * 12 + {_MONTH}) * 30 + {_DAY})"
# The number of a pattern, the number whose sign makes it a place wider, if any, and its width; FM leaves the width out.
_NUMBERS: dict[str, tuple[str, str, int]] = {
    "HH24": (_HOUR, _HOUR, 2),
    **dict.fromkeys(("HH", "HH12"), (f"if({_HOUR} % 12 = 0, 12, {_HOUR} % 12)", _HOUR, 2)),
    "MI": (_MINUTE, _MINUTE, 2),
    "SS": (_SECOND, _SECOND, 2),
    "MS": (f"({_MICROS}) // 1000", "0", 3),
    "US": (_MICROS, "0", 6),
    **{f"FF{count}": (f"({_MICROS}) // {10 ** (6 - count)}", "0", count) for count in range(1, 7)},
    **dict.fromkeys(("SSSS", "SSSSS"), (f"{_HOUR} * 3600 + {_MINUTE} * 60 + {_SECOND}", "0", 0)),
    "DD": (_DAY, "0", 2),
    "DDD": (_DAYS, "0", 3),
    "W": (f"({_DAY} - 1) // 7 + 1", "0", 0),
    "WW": (f"({_DAYS} - 1) // 7 + 1", "0", 2),
    "MM": (_MONTH, _MONTH, 2),
    "Q": (f"({_MONTH} - 1) // 3 + 1", "0", 0),
    "YYYY": (_YEAR, _YEAR, 4),
    "YYY": (f"{_YEAR} % 1000", _YEAR, 3),
    "YY": (f"{_YEAR} % 100", _YEAR, 2),
    "Y": (f"{_YEAR} % 10", _YEAR, 1),
    "CC": (f"{_YEAR} // 100", f"{_YEAR} // 100", 2),
}
_FIXED = frozenset(("MS", "US", *(f"FF{count}" for count in range(1, 7))))  # whatever FM says
_HALVES = ("AM", "PM", "A.M.", "P.M.")
# What an interval has not, since it is not tied to a date.
_OF_DATES = frozenset(("AD", "BC", "A.D.", "B.C.", "MONTH", "MON", "DAY", "DY", "D", "ID", "TZ", "TZH", "TZM", "OF"))


def interval_chars(value: exp.Expr, pattern: exp.Expr) -> exp.Expr:
    """Return the text of an interval by a constant pattern. Raises Error 22007 and 0A000."""
    pieces: list[exp.Expr] = []
    for quoted, filled, name, suffix, other in tokens(pattern):
        if name:
            pieces += _pieces(name, bool(filled), suffix)
        elif other.isalpha() and other.upper() not in PLAIN_LETTERS:
            raise unknown(other)
        else:
            pieces.append(exp.Literal.string(quoted[1:-1] if quoted else filled + other))
    return of_one(value, chain(pieces or [exp.Literal.string("")]), _INTERVAL)


def _pieces(name: str, is_filled: bool, suffix: str) -> list[exp.Expr]:
    upper = name.upper()
    if upper in _OF_DATES:
        hint = "Intervals are not tied to specific calendar dates."
        raise Error("invalid format specification for an interval value", errors.INVALID_DATETIME_FORMAT, hint=hint)
    if upper in _HALVES:
        half = _sql(f"CASE WHEN {_HOUR} % 24 >= 12 THEN 'PM' WHEN {_HOUR} IS NOT NULL THEN 'AM' END")
        if "." in name:
            half = duckdb_call("regexp_replace", half, exp.Literal.string("(.)(.)"), exp.Literal.string(r"\1.\2."))
        return [duckdb_call("lower", half) if name.islower() else half]
    if upper not in _NUMBERS:
        raise unknown(name)
    number, signed, width = _NUMBERS[upper]
    widths = _sql("0" if is_filled and upper not in _FIXED else f"{width} + if({signed} < 0, 1, 0)")
    text = ours("_padded", _sql(number), widths)
    if upper == "Q":  # there is none without months
        text = duckdb_call("if", _sql(f"{_MONTH} = 0"), exp.Literal.string(""), text)
    if not suffix:
        return [text]
    ending = ours("_ordinal", text.copy())
    return [text, duckdb_call("upper", ending) if suffix == "TH" else ending]


def _sql(text: str) -> exp.Expr:
    parsed: exp.Expr = exp.maybe_parse(text, dialect="duckdb")
    return parsed
