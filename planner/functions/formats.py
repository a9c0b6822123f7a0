"""Postgres' date patterns (`to_char`, `to_date`, `to_timestamp`) as those of DuckDB's strftime and strptime."""

from __future__ import annotations

import re

from sqlglot import exp

from catalog import errors
from catalog.errors import Error

# Longest first where one begins with another.
_PATTERNS: dict[str, str] = {
    "HH24": "%H",
    "HH12": "%I",
    "HH": "%I",
    "MI": "%M",
    "SS": "%S",
    "MS": "%g",
    "US": "%f",
    "AM": "%p",
    "PM": "%p",
    "YYYY": "%Y",
    "YY": "%y",
    "IYYY": "%G",
    "IW": "%V",
    "ID": "%u",
    "Month": "%B",
    "Mon": "%b",
    "MM": "%m",
    "DDD": "%j",
    "DD": "%d",
    "FMDD": "%-d",
    "FMMM": "%-m",
    "FMHH24": "%-H",
    "FMHH12": "%-I",
    "FMMonth": "%B",
    "FMDay": "%A",
    "Dy": "%a",
}
_TOKEN = re.compile(
    '"[^"]*"|' + "|".join(sorted({*_PATTERNS, *map(str.lower, _PATTERNS)}, key=len, reverse=True)) + "|[A-Za-z]+|.",
    re.DOTALL,
)


def strftime_format(pattern: exp.Expr) -> exp.Expr:
    """The pattern of a constant. Raises Error 0A000 for another expression or an unknown pattern."""
    if not pattern.is_string:
        raise Error("a date pattern has to be a constant", errors.FEATURE_NOT_SUPPORTED)
    return exp.Literal.string("".join(_part(token) for token in _TOKEN.findall(pattern.name)))


def _part(token: str) -> str:
    if token.startswith('"') and token.endswith('"') and len(token) > 1:
        return token[1:-1].replace("%", "%%")
    # Only names tell upper from lower case.
    known = _PATTERNS.get(token) or (_PATTERNS.get(token.upper()) if token.islower() else None)
    if (known is None and len(token) > 1) or (token.isalpha() and known is None and token != "T"):
        raise Error(f'date pattern "{token}" is not supported', errors.FEATURE_NOT_SUPPORTED)
    return known or token.replace("%", "%%")
